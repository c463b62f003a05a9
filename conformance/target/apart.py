"""Checks that each world of a profile has its own projects and groups for its tests to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Fixtures that most tests change.
_CHANGED = ("project", "sibling_project", "fuzz_project", "group", "sibling_group", "fuzz_group")


class _Entry(Protocol):
    def get(self, name: str) -> Any:
        """Return the value that a fixture gives for a name."""


def changed_places(fixtures: Mapping[str, Sequence[_Entry]]) -> Iterator[tuple[str, str]]:
    """Yield each project and group of a world that its tests change, such as `project 7`, and the fixture's name."""
    for name in _CHANGED:
        kind = "group" if name.endswith("group") else "project"
        for entry in fixtures.get(name, ()):
            if entry.get("id") is not None:
                yield f"{kind} {entry.get('id')}", name


def require_own_places(worlds: Sequence[Mapping[str, Sequence[_Entry]]], source: str) -> None:
    """Raise UsageError when two worlds, given by their fixtures, name a project or group that both would change."""
    taken: dict[str, int] = {}
    for number, fixtures in enumerate(worlds, start=1):
        for place, name in changed_places(fixtures):
            other = taken.setdefault(place, number)
            if other != number:
                raise UsageError(
                    f"The worlds {other} and {number} of {source} both name {place} ({name}), and two workers would "
                    "change it under each other. Give each world what is its own, as `conformance provision --worlds "
                    "N` does."
                )
