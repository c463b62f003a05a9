"""The handful of calls that give a service its fixtures, so that a run can be prepared through the API alone.

The specification does not describe them; they are shaped as clients of servers of this kind call them.
"""
