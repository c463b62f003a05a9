"""What a call may change beside the thing that it is about, as `openapi/side-effects.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Where(StrEnum):
    """How something lies to the project, group or merge request that a call is about."""

    OWN = "own"
    INSIDE = "inside"
    AROUND = "around"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is read of a project, group or merge request."""

    name: str
    operation: str
    """operationId of the call that reads it."""
    feature: str | None
    """Only a target that declares it is read."""
    of: tuple[str, ...]
    """The fixtures whose part it is."""
    near: tuple[str, ...]
    """Those whose part is read too around the calls of its own area: beside them in a group, or inside."""
    readers: tuple[str, ...]
    """The actors who may read it; the first who is served does."""
    each_of: str | None
    """The part for each of whose entries it is read once, as far as the profile knows them."""
    within: str | None
    """The property that holds the list, where the answer is a record."""
    by: str | None
    """What identifies an entry of a list; None where the answer is a record, whose entries are its fields."""
    keeps: tuple[str, ...]
    """What of an entry must stay."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some operations, and some parts of the world that lie to what they are about in one of several ways."""

    operations: frozenset[str]
    parts: frozenset[str]
    where: frozenset[Where]

    def covers(self, operation: str, part: str, where: Where) -> bool:
        """Tell whether it is about a part that lies so to what an operation is about."""
        return operation in self.operations and part in self.parts and where in self.where


@dataclass(frozen=True, slots=True)
class Move:
    """What may change beside the thing that a call is about, or is that thing."""

    scope: Scope
    entries: tuple[str, ...]
    """Which entries of the part; all of them when it is empty."""
    item: str
    """What allows it: an ambiguity by its number, or `call`."""


@dataclass(frozen=True, slots=True)
class SideEffects:
    """The whole table."""

    parts: Mapping[str, Part]
    moves: tuple[Move, ...]
    prepared: tuple[Scope, ...]
    """What the suite itself changes while it makes a call right."""
    stated: tuple[tuple[Scope, str], ...]
    """Where a requirement says of just this that it stays."""
    rest: Mapping[str, str]
    """By area: the requirement that all else stays."""

    def may_move(self, operation: str, part: str, where: Where) -> tuple[Move, ...]:
        """Return what may change of a part that lies so to what an operation is about."""
        return tuple(move for move in self.moves if move.scope.covers(operation, part, where))

    def is_prepared(self, operation: str, part: str, where: Where) -> bool:
        """Tell whether the suite may change a part while it makes the call of an operation right."""
        return any(scope.covers(operation, part, where) for scope in self.prepared)

    def requirement(self, operation: str, area: str, part: str, where: Where) -> str:
        """Return the requirement that a part stays which lies so to what an operation of an area is about."""
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
        parts=MappingProxyType({name: _part(name, row) for name, row in data["parts"].items()}),
        moves=tuple(Move(_scope(row), tuple(row.get("entries", ())), row["item"]) for row in data["moves"]),
        prepared=tuple(_scope(row) for row in data["prepared"]),
        stated=tuple((_scope(row), row["requirement"]) for row in data["stated"]),
        rest=MappingProxyType(dict(data["rest"])),
    )


def _part(name: str, row: Mapping[str, Any]) -> Part:
    return Part(
        name=name,
        operation=row["operation"],
        feature=row.get("feature"),
        of=tuple(row["of"]),
        near=tuple(row.get("near", ())),
        readers=tuple(row["readers"]),
        each_of=row.get("each_of"),
        within=row.get("within"),
        by=row.get("by"),
        keeps=tuple(row["keeps"]),
    )


def _scope(row: Mapping[str, Any]) -> Scope:
    where = frozenset(Where(name) for name in row["where"])
    return Scope(frozenset(row["operations"]), frozenset(row["parts"]), where)
