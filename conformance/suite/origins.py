"""Which values of the profile an expectation was made of, so that whoever sees it fail can look at these first."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite.exceptions import Violation
    from conformance.target import Profile

#: Texts that are expected because the profile says so.
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
#: What is sent because the profile says so, and may be refused for that.
_SENT = ("relation", "sha", "settings", "distinctive_value", "parameters")
_SHORTEST = 3
_MOST = 3


def values_behind(profile: Profile, violation: Violation) -> str | None:
    """Name the values of a profile that stand in an expectation, or in the call that shows it; None without any."""
    found = list(dict.fromkeys(_places(profile, violation)))
    return f"the expectation is made of the profile: {', '.join(found[:_MOST])}" if found else None


def _places(profile: Profile, violation: Violation) -> Iterator[str]:
    call = violation.exchanges[-1].call if violation.exchanges else None
    sent = f"{dict(call.query)} {(call.body or b'').decode('utf-8', 'replace')}" if call is not None else ""
    for entries in profile.fixtures.values():
        for entry in entries:
            for name, value in entry.values.items():
                wholes = [violation.expected] * (name in _EXPECTED) + [sent] * (name in _SENT)
                is_number = name in ("id", "iid") and re.search(rf"\b{name} = {value}\b", violation.expected)
                if is_number or any(_stands_in(text, whole) for text in _texts(value) for whole in wholes):
                    yield f"{entry.place}.{name}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for inner in value.values() for text in _texts(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _texts(inner))


def _stands_in(text: str, whole: str) -> bool:
    escaped = json.dumps(text)[1:-1]
    return len(text) >= _SHORTEST and any(
        re.search(rf"(?<![\w-]){re.escape(form)}(?![\w-])", whole) for form in {text, escaped}
    )
