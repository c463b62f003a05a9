"""What can go wrong outside the target, each with the exit code that the command line gives it."""

from __future__ import annotations

from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExitCode(IntEnum):
    """What a run ends with, and what that means; 2 to 5 are pytest's own."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> Self:  # a look-up by code gives no meaning
        """Make the member for `code`."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    CONFORMANT = 0, "Conformant for the claimed scope; or, with --area, --requirement or --failed, the selection holds."
    NON_CONFORMANT = 1, "Non-conformant: at least one requirement of level must failed."
    INTERRUPTED = 2, "Interrupted, by Ctrl-C or by pytest's own -x. What was seen until then is in the report."
    PYTEST_BROKE = 3, "pytest itself broke."
    USAGE = 4, "The call, the profile or a file that was given is wrong; the message says what to do."
    NOTHING_RAN = 5, "No test ran, so there is no verdict."
    INCOMPLETE = 6, "Incomplete: nothing failed, and something that is owed could not be verified."
    SUITE_BROKE = (
        7,
        "Nothing failed, but a test of the suite broke, or a report could not be written. The target is not to blame.",
    )
    COULD_NOT_RUN = 8, "The target could not be tested: no connection, a wrong token, not this API."
    TERMINATED = (
        143,
        "Terminated, by SIGTERM or SIGHUP: what was changed is put back, and what was seen is in the report.",
    )


class ConformanceError(Exception):
    """Something the operator must know, worded so that it says what to do."""

    exit_code = ExitCode.SUITE_BROKE


class UsageError(ConformanceError):
    """The call, the profile or a file given by the operator is wrong."""

    exit_code = ExitCode.USAGE


@contextmanager
def or_usage_error(complaint: str, advice: str = "") -> Iterator[None]:
    """Within the context, let a file that cannot be read or written raise UsageError: complaint, reason and advice."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{complaint}: {error.strerror or error}. {advice}".rstrip()) from error


class TargetError(ConformanceError):
    """The target cannot be tested at all: it does not answer, or what answers is not the service."""

    exit_code = ExitCode.COULD_NOT_RUN


class ReportError(ConformanceError):
    """A report could not be made; the suite's own fault, and the record is not lost."""


class StoppedError(ConformanceError):
    """Somebody stopped a run within a command: the command ends as the run did."""

    def __init__(self, code: ExitCode, message: str) -> None:
        """Say how the run ended."""
        super().__init__(message)
        self.exit_code = code


class ContractError(ConformanceError):
    """The contract contradicts itself; the suite's own fault, never the target's."""
