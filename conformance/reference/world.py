"""The prepared world: everybody and everything that a run against the service needs, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


#: In place of the id of what has none: ids may begin with 0.
NO_ID = -1


@dataclass(frozen=True)
class ActorRecord:
    """Somebody a run can act as. `role` is the one in the main project, "none", or "admin"."""

    id: int
    username: str
    token: str
    password: str
    role: str


@dataclass(frozen=True)
class Fixture:
    """Something that exists in the world: its id or NO_ID, its full path where it has one, and what else is known."""

    id: int
    path: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass
class World:
    """The names of everybody and everything."""

    actors: dict[str, ActorRecord] = field(default_factory=dict)
    fixtures: dict[str, Fixture | tuple[Fixture, ...]] = field(default_factory=dict)

    def one(self, name: str) -> Fixture:
        """Return the fixture of that name. Raise KeyError when there is none, TypeError when it is many."""
        found = self.fixtures[name]
        if isinstance(found, tuple):
            raise TypeError(f"{name} names {len(found)} fixtures")
        return found

    def many(self, name: str) -> tuple[Fixture, ...]:
        """Return the fixtures of that name."""
        found = self.fixtures[name]
        return found if isinstance(found, tuple) else (found,)
