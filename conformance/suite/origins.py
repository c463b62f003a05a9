"""Finds the values of the profile that an expectation was made from, so that the reader can check these first."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.target.names import FIXTURE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.http.exchange import Call
    from conformance.suite.exceptions import Violation
    from conformance.target import Profile

#: Texts that are expected because the profile gives them.
_EXPECTED = (
    "title",
    "description",
    "sha",
    "name",
    "path",
    "relation",
    "objects",
    "slug",
    "distinctive_value",
    "events",
)
_INTEGRATIONS = ("integrations", "services")
#: Values that are sent because the profile gives them, and that may be refused for that reason -> parts of the paths to
#: which they are sent: the same words elsewhere are not of the profile.
_SENT: Mapping[str, tuple[str, ...]] = {
    "relation": ("export_relations",),
    "sha": ("approve",),
    "settings": _INTEGRATIONS,
    "distinctive_value": _INTEGRATIONS,
    "parameters": _INTEGRATIONS,
}
#: Part of a path -> the kind of the fixtures whose numbers it shows; None where it shows those of other things.
_SHOWS_NUMBERS_OF: Mapping[str, str | None] = {
    "allowlist": "project",
    "groups_allowlist": "group",
    "approvals": "merge_request",
    "approve": "merge_request",
    "approval_state": None,
    "approval_rules": None,
    "integrations": None,
    "services": None,
}
_SHORTEST = 3
_MOST = 3


@dataclass(frozen=True, slots=True)
class _Value:
    """A value of a profile, and the forms in which it may occur in an expectation and in a call."""

    place: str
    kind: str
    """The kind of its fixture."""
    expected: tuple[str, ...]
    number: tuple[str, ...]
    sent: tuple[str, ...]
    sent_to: tuple[str, ...]

    def is_in(self, violation: Violation, call: Call | None, sent: str) -> bool:
        """Tell whether it occurs in an expectation, or in what was sent in the call that shows it."""
        forms = (*self.expected, *(self.number if self._is_shown_by(call) else ()))
        is_sent_to = call is not None and not {*call.path.split("/")}.isdisjoint(self.sent_to)
        return _any_in(forms, violation.expected) or (is_sent_to and _any_in(self.sent, sent))

    def _is_shown_by(self, call: Call | None) -> bool:
        """Tell whether a number in an answer to this call may be that of the fixture, and not that of another thing."""
        parts = reversed(call.path.partition("?")[0].split("/")) if call is not None else ()
        kinds = [_SHOWS_NUMBERS_OF[part] for part in parts if part in _SHOWS_NUMBERS_OF][:1]
        return not kinds or (kinds[0] is not None and self.kind.startswith(kinds[0]))


class Origins:
    """Knows the values of the last profile that it was asked about."""

    def __init__(self) -> None:
        """Begin with no profile."""
        self._known: tuple[Profile | None, tuple[_Value, ...]] = (None, ())

    def behind(self, profile: Profile, violation: Violation) -> str | None:
        """Name the values of a profile that occur in an expectation, or in the call that shows it; None without any."""
        known, values = self._known
        if known is not profile:
            values = tuple(_values(profile))
            self._known = profile, values
        call = violation.exchanges[-1].call if violation.exchanges else None
        sent = f"{dict(call.query)} {(call.body or b'').decode('utf-8', 'replace')}" if call is not None else ""
        found = [value.place for value in values if value.is_in(violation, call, sent)]
        return f"the expectation is made of the profile: {', '.join(found[:_MOST])}" if found else None


def _values(profile: Profile) -> Iterator[_Value]:
    written = {name: entries for name, entries in profile.fixtures.items() if name in FIXTURE_ROWS}  # not by the run
    for fixture, entries in written.items():
        kind = FIXTURE_ROWS[fixture].kind or ""
        for entry in entries:
            for name, value in entry.values.items():
                # Unchanged, and as JSON writes them.
                texts = (text for text in _texts(value) if len(text) >= _SHORTEST)
                forms = tuple(form for text in texts for form in {text, json.dumps(text)[1:-1]})
                number = (f"{name} = {value}",) * (name in ("id", "iid"))
                expected, sent = forms * (name in _EXPECTED), forms * (name in _SENT)
                if expected or number or sent:
                    yield _Value(f"{entry.place}.{name}", kind, expected, number, sent, _SENT.get(name, ()))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _texts(inner))


def _any_in(forms: tuple[str, ...], whole: str) -> bool:
    # Check first whether it occurs at all: compiling patterns for so many texts each time would be slow.
    return any(form in whole and re.search(rf"(?<![\w-]){re.escape(form)}(?![\w-])", whole) for form in forms)
