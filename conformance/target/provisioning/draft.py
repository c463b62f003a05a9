"""A profile that is being filled with what was found out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.target.names import PLURALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.target.provisioning.calls import Entry

Data = dict[str, Any]

#: What the path of a project or group is called where it is shown.
PATHS = {"group": "full_path", "project": "path_with_namespace"}


@dataclass
class ProfileDraft:
    """A profile as its file holds it, without its secrets. What it says already stays as it is."""

    data: Data
    filled: list[str] = field(default_factory=list)
    """The places where something was filled in, such as `fixtures.project.id`."""

    @property
    def fixtures(self) -> Data:
        """The fixtures that it names."""
        fixtures: Data = self.data.setdefault("fixtures", {})
        return fixtures

    def fill(self, place: str, where: Data, key: str, value: Any) -> None:
        """Fill in a value that a part of the profile lacks; `place` says where that is."""
        if key not in where:
            where[key] = value
            self.filled.append(place)

    def name(self, fixture: str, entry: Any) -> None:
        """Name a fixture, if there is anything to name."""
        if entry:
            self.fill(f"fixtures.{fixture}", self.fixtures, fixture, entry)

    def name_first(self, fixture: str, kind: str, entries: Iterable[Entry]) -> None:
        """Name the first of some projects or groups."""
        self.name(fixture, next((as_fixture(kind, entry) for entry in entries), None))

    def declare(self, feature: str, *, value: bool) -> None:
        """Declare a feature; that there is none is said of what was tried."""
        features: Data = self.data.setdefault("features", {})
        if value or feature.endswith(("_integration", "_events")):
            self.fill(f"features.{feature}", features, feature, value)

    def entries(self, kind: str) -> Iterator[tuple[str, Data]]:
        """Yield the projects or groups that it names, each with the name of its fixture."""
        for name, value in self.fixtures.items():
            if kind_of(name) == kind:
                for entry in value if isinstance(value, list) else [value]:
                    yield name, entry

    def ids(self, kind: str) -> set[Any]:
        """Return the numbers of the projects or groups that it names."""
        return {entry.get("id") for _, entry in self.entries(kind)}


def kind_of(fixture: str) -> str:
    """Return what a fixture is, by the last word of its name."""
    return PLURALS.get(fixture, fixture).rpartition("_")[2]


def as_fixture(kind: str, entry: Entry) -> Data:
    """Return a project or group as a profile names it."""
    return {"id": entry["id"], "path": entry[PATHS[kind]], "name": entry["name"]}
