"""What can go wrong outside the target, each with the exit code that the command line gives it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a run ends with; 2 to 5 are pytest's own."""

    CONFORMANT = 0
    NON_CONFORMANT = 1
    INTERRUPTED = 2
    PYTEST_BROKE = 3
    USAGE = 4
    NOTHING_RAN = 5
    INCOMPLETE = 6
    SUITE_BROKE = 7
    COULD_NOT_RUN = 8


class ConformanceError(Exception):
    """Something the operator must know, worded so that it says what to do."""

    exit_code = ExitCode.SUITE_BROKE


class UsageError(ConformanceError):
    """The call, the profile or a file given by the operator is wrong."""

    exit_code = ExitCode.USAGE


class TargetError(ConformanceError):
    """The target cannot be tested at all: it does not answer, or what answers is not the service."""

    exit_code = ExitCode.COULD_NOT_RUN


class ContractError(ConformanceError):
    """The contract contradicts itself; the suite's own fault, never the target's."""
