"""A profile that is filled step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.target.names import PLURALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.target.provisioning.calls import Entry

Data = dict[str, Any]

#: The field with the path of a project or group in answers.
PATHS = {"group": "full_path", "project": "path_with_namespace"}


@dataclass
class ProfileDraft:
    """A profile's data without its secrets. Existing values are not changed."""

    data: Data
    filled: list[str] = field(default_factory=list)
    """The places where something was filled in, such as `fixtures.project.id`."""

    @property
    def fixtures(self) -> Data:
        """The fixtures of the profile."""
        fixtures: Data = self.data.setdefault("fixtures", {})
        return fixtures

    def fill(self, place: str, where: Data, key: str, value: Any) -> None:
        """Fill in a missing value of a part of the profile; `place` is the name of the value."""
        if key not in where:
            where[key] = value
            self.filled.append(place)

    def name(self, fixture: str, entry: Any) -> None:
        """Add a fixture, unless the entry is empty."""
        if entry:
            self.fill(f"fixtures.{fixture}", self.fixtures, fixture, entry)

    def name_first(self, fixture: str, kind: str, entries: Iterable[Entry]) -> None:
        """Add the first of some projects or groups as a fixture."""
        self.name(fixture, next((as_fixture(kind, entry) for entry in entries), None))

    def declare(self, feature: str, *, value: bool) -> None:
        """Declare a feature; false means that it was tried and is absent."""
        features: Data = self.data.setdefault("features", {})
        if value or feature.endswith(("_integration", "_events")):
            self.fill(f"features.{feature}", features, feature, value)

    def entries(self, kind: str) -> Iterator[tuple[str, Data]]:
        """Yield the projects or groups of the profile, each with the name of its fixture."""
        for name, value in self.fixtures.items():
            if kind_of(name) == kind:
                for entry in value if isinstance(value, list) else [value]:
                    yield name, entry

    def ids(self, kind: str) -> set[Any]:
        """Return the ids of the projects or groups of the profile."""
        return {entry.get("id") for _, entry in self.entries(kind)}


def kind_of(fixture: str) -> str:
    """Return the kind of a fixture: the last word of its name."""
    return PLURALS.get(fixture, fixture).rpartition("_")[2]


def as_fixture(kind: str, entry: Entry) -> Data:
    """Return a project or group in the form of a fixture."""
    return {"id": entry["id"], "path": entry[PATHS[kind]], "name": entry["name"]}
