"""The calls to repeat to see a failure: the changes before it, and the call that shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.results.grouping import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.results.record import Check, Evidence

_MOST_CALLS = 5
#: The part of the path after one of these is a name; elsewhere such parts are numbers.
_NAMED = re.compile(r"(?<=/)(integrations|services)/([^/]+)")
_API = "/api/v4"


@dataclass(frozen=True, slots=True)
class Steps:
    """The calls that show a failure, in order."""

    calls: tuple[Evidence, ...]
    left_out: int = 0
    """How many earlier calls are left out."""

    @property
    def note(self) -> str:
        """Say how many calls are left out, as a shell comment; empty when none is."""
        if not self.left_out:
            return ""
        calls = "1 earlier call is" if self.left_out == 1 else f"{self.left_out} earlier calls are"
        return f"# {calls} left out; junit.xml and report.json have all that were kept"

    @property
    def commands(self) -> tuple[str, ...]:
        """A command for each call, below the note where there is one."""
        return (*filter(None, (self.note,)), *(entry.curl for entry in self.calls))


def to_repeat(check: Check) -> Steps:
    """Return the calls to repeat to see a failure: the writes that led to it, and the last call.

    Only writes that may have changed what the last call is about are included. Refused writes did not; but the last
    write before a read is always shown, because the read may show that it did change something.
    """
    *before, last = check.evidence or (None,)
    if last is None:
        return Steps(())
    writes = [entry for entry in before if entry is not None and not entry.is_read]
    shown = [
        entry
        for entry in writes
        if (not str(entry.status).startswith("4") and are_of_one_thing(entry.request, last.request))
        or (entry is writes[-1] and last.is_read)
    ]
    steps = _since_it_was_gone((*shown, last))
    return Steps(steps[-_MOST_CALLS:], max(0, len(steps) - _MOST_CALLS))


def _since_it_was_gone(steps: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Drop the calls on a thing before it was deleted, if it was made and deleted once more since then."""
    gone = grouped(
        (_place(entry.request), number) for number, entry in enumerate(steps) if entry.request.startswith("DELETE ")
    )
    for place, numbers in gone.items():
        for first in numbers[-2:-1]:
            of_it = (place, place[:-1])
            steps = tuple(entry for at, entry in enumerate(steps) if at > first or _place(entry.request) not in of_it)
            return _since_it_was_gone(steps)
    return steps


def are_of_one_thing(request: str, other: str) -> bool:
    """Tell from the paths of two calls whether a change by one may be visible in the other.

    It may, unless the paths name two different things of one kind: two projects, or two integrations. A project may
    have its number in one path and its name in the other.
    """
    for mine, yours in zip(_segments(request), _segments(other), strict=False):
        if mine != yours:
            if _is_name(mine) and _is_name(yours):
                return False
            if not (_is_name(mine) or _is_name(yours)):
                return True  # such as the rules of a project and its merge requests
    return True


def _place(request: str) -> tuple[str, ...]:
    """Return the path of a call without its project or group."""
    first, *rest = _segments(request)
    return (first, *rest[1:])


def _segments(request: str) -> Sequence[str]:
    """Return the path of a call as a list of segments, with a mark before each that names one of many."""
    path = request.partition(" ")[2] or request
    path = path.partition("?")[0].removeprefix(_API).strip("/")
    return _NAMED.sub(r"\1/=\2", f"/{path}").strip("/").split("/")


def _is_name(segment: str) -> bool:
    return segment.isdecimal() or segment.startswith("=")
