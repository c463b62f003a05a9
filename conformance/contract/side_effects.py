"""What a call may change besides its own object, as `openapi/side-effects.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Where(StrEnum):
    """The position of something relative to the project, group or merge request of a call."""

    OWN = "own"
    INSIDE = "inside"
    AROUND = "around"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A thing that is read from a project, group or merge request."""

    name: str
    operation: str
    """operationId of the call that reads it."""
    feature: str | None = None
    """Read only if the target declares this feature."""
    of: tuple[str, ...]
    """The fixtures that have this part."""
    near: tuple[str, ...] = ()
    """Further fixtures whose part is read around the calls of its own area: beside the others in a group, or inside."""
    readers: tuple[str, ...]
    """The actors who may read it; the first one who is served reads it."""
    each_of: str | None = None
    """Another part: this part is read once for each entry of it that the profile knows."""
    within: str | None = None
    """The property with the list, if the answer is a record."""
    by: str | None = None
    """The field that identifies a list entry; None if the answer is a record, whose entries are its fields."""
    keeps: tuple[str, ...]
    """Fields of an entry that must stay."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some operations, and some parts of the world in one of several positions relative to their objects."""

    operations: frozenset[str]
    parts: frozenset[str]
    where: frozenset[Where]

    def covers(self, operation: str, part: str, where: Where) -> bool:
        """Tell whether it covers a part in this position relative to the object of an operation."""
        return operation in self.operations and part in self.parts and where in self.where


@dataclass(frozen=True, slots=True)
class Move:
    """A change that is allowed besides the object of a call, or to that object."""

    scope: Scope
    entries: tuple[str, ...]
    """The entries of the part that may change; all of them if empty."""
    item: str
    """What permits it: an ambiguity by its number, or `call`."""


@dataclass(frozen=True, slots=True)
class SideEffects:
    """The whole table."""

    parts: Mapping[str, Part]
    moves: tuple[Move, ...]
    prepared: tuple[Scope, ...]
    """What the suite itself changes while it makes a call right."""
    stated: tuple[tuple[Scope, str], ...]
    """Requirements that exactly this part stays."""
    rest: Mapping[str, str]
    """By area: the requirement that everything else stays."""

    def may_move(self, operation: str, part: str, where: Where) -> tuple[Move, ...]:
        """Return the allowed changes of a part in this position relative to the object of an operation."""
        return tuple(move for move in self.moves if move.scope.covers(operation, part, where))

    def is_prepared(self, operation: str, part: str, where: Where) -> bool:
        """Tell whether the suite may change a part while it makes the call of an operation right."""
        return any(scope.covers(operation, part, where) for scope in self.prepared)

    def requirement(self, operation: str, area: str, part: str, where: Where) -> str:
        """Return the requirement that a part in this position stays when an operation of an area is called."""
        found = (name for scope, name in self.stated if scope.covers(operation, part, where))
        return next(found, self.rest[area])

    def requirements(self, operation: str, area: str) -> frozenset[str]:
        """Return all requirements that something stays when an operation is called."""
        stated = {name for scope, name in self.stated if operation in scope.operations}
        return frozenset({self.rest[area], *stated})


def load_side_effects(file: Path) -> SideEffects:
    """Read the table; raise ContractError or UsageError when it is broken."""
    data = read_checked(file, "side-effects.schema.json")
    return SideEffects(
        parts=MappingProxyType({name: row_of(Part, row, name=name) for name, row in data["parts"].items()}),
        moves=tuple(Move(_scope(row), tuple(row.get("entries", ())), row["item"]) for row in data["moves"]),
        prepared=tuple(_scope(row) for row in data["prepared"]),
        stated=tuple((_scope(row), row["requirement"]) for row in data["stated"]),
        rest=MappingProxyType(dict(data["rest"])),
    )


def _scope(row: Mapping[str, Any]) -> Scope:
    where = frozenset(Where(name) for name in row["where"])
    return Scope(frozenset(row["operations"]), frozenset(row["parts"]), where)
