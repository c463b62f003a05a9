"""The exceptions that end a test of the suite early, and what each of them says about the target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from conformance.http.redaction import REDACTION, beginning
from conformance.results.record import Outcome, Reason
from conformance.results.text import as_json

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange
    from conformance.target import Profile

#: Shown of each value, and of what is equal before the first difference.
_SHOWN, _SHOWN_BEFORE = 300, 40
_NOTHING = object()


class Violation(AssertionError):  # noqa: N818 - the word of the reports
    """The target did something that the specification forbids."""

    def __init__(self, expected: str, actual: str, *exchanges: Exchange) -> None:
        """Say what was expected and what was seen, and in which exchanges."""
        super().__init__(f"expected {expected}; got {actual}")
        self.expected = expected
        self.actual = actual
        self.exchanges = exchanges
        self.requirement: str | None = None
        """The requirement that was failed for it, once one was: no other one is failed for the same thing."""

    @classmethod
    def of_change(cls, what: str, before: Any, after: Any, *exchanges: Exchange) -> Self:
        """Say that something is not as it was before, and of both values what differs."""
        was, now = (
            REDACTION.text(value if isinstance(value, str) else as_json(value)) for value in _differing(before, after)
        )
        pairs = enumerate(zip(was, now, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), min(len(was), len(now)))
        if same > _SHOWN_BEFORE and max(len(was), len(now)) > _SHOWN:
            was, now = (f"... {text[same - _SHOWN_BEFORE :]}" for text in (was, now))
        return cls(f"{what} as before: {beginning(was, _SHOWN)}", beginning(now, _SHOWN), *exchanges)


def _differing(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two values, without the entries of mappings that are equal in both."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return one, other
    pairs = {name: (one.get(name, _NOTHING), other.get(name, _NOTHING)) for name in (*one, *other)}
    found = {name: _differing(*pair) for name, pair in pairs.items() if pair[0] != pair[1]}
    ones, others = ({name: pair[at] for name, pair in found.items() if pair[at] is not _NOTHING} for at in (0, 1))
    return ones, others


class Unseen(Exception):  # noqa: N818 - no error: something could not be seen
    """A check shows nothing."""

    outcome: Outcome
    """The resulting outcome of a requirement; never not applicable, because only the plan says that."""

    def __init__(self, reason: Reason, detail: str, waits_for: str | None = None) -> None:
        """Name the reason, one of a closed set, and describe in words what was missing.

        `waits_for` is the requirement whose failure is the only cause, if there is one.
        """
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.waits_for = waits_for


class Unmet(Unseen):
    """A precondition of a check is not fulfilled."""

    outcome = Outcome.INCONCLUSIVE


class NotTested(Unseen):
    """The profile lacks what the test needs, or the operator switched it off."""

    outcome = Outcome.NOT_TESTED


def require_in(profile: Profile, need: str) -> None:
    """Raise NotTested when a profile does not name an actor or fixture that is needed."""
    missing = profile.missing(need)
    if missing:
        raise NotTested(Reason.PREREQUISITE_MISSING, missing)


class MisuseError(Exception):
    """A test of the suite is wrong: it verifies what it does not declare, or checks nothing."""
