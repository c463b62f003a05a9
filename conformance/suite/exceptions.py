"""What ends a test of the suite before its last line, and what each of these says about the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.results.record import Outcome, Reason

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange


class Violation(AssertionError):  # noqa: N818 - the word of the reports
    """The target did something that the specification rules out."""

    def __init__(self, expected: str, actual: str, *exchanges: Exchange) -> None:
        """Say what was expected and what was seen, and in which exchanges."""
        super().__init__(f"expected {expected}; got {actual}")
        self.expected = expected
        self.actual = actual
        self.exchanges = exchanges


class Unmet(Exception):  # noqa: N818 - no error: something could not be seen
    """What a check needs before it can show anything is not there, so it shows nothing."""

    outcome = Outcome.INCONCLUSIVE
    """What it comes to for a requirement."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """Name the reason, one of the closed set, and say in words what was missing."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class NotTested(Exception):  # noqa: N818 - no error: the test is not for this target
    """The profile lacks what the test needs, or the operator switched it off."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """Name the reason, one of the closed set, and say in words what is missing."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

    @property
    def outcome(self) -> Outcome:
        """What it comes to for a requirement: only the plan says that something is not applicable."""
        return Outcome.NOT_TESTED


class MisuseError(Exception):
    """A test of the suite is wrong: it verifies what it does not declare, or looks at nothing."""
