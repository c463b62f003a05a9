"""
A second implementation of the Project Automation API, written from the specification alone.

Whoever wrote it knew neither the reference nor the suite. Where the specification leaves something open, it often does
otherwise than the reference, and on demand what `choices` names besides. It is there for the suite to be run against:
nothing of it follows the suite, and it imports nothing of `conformance`.
"""
