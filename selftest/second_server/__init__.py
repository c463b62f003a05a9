"""A second implementation of the Project Automation API, written from the specification alone.

Its author knew neither the reference nor the suite. Where the specification is silent, it often differs from the
reference, and on request it also does what `choices` names. The suite is run against it. No part of it follows the
suite, and it imports nothing from `conformance`.
"""
