"""How changes of a run are restored, as `openapi/restoring.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Restored:
    """The operations that restore former values of one part of the world."""

    part: str
    """Its name in the table of side effects, which says how to read it."""
    body: Mapping[str, str]
    """Parameter of the calls -> place of its value in the data that was read."""
    set: str | None = None
    """operationId of the call that accepts fields of a record; None for lists."""
    add: str | None = None
    change: str | None = None
    remove: str | None = None
    """operationIds of the calls for one entry of a list; entries without `remove` stay."""
    read_each: str | None = None
    """operationId of the call that reads one complete entry, if the list does not show all of it."""
    entry: str | None = None
    """The parameter that names an entry."""
    named: str | None = None
    """The properties of a creation's body that find its entry before its number is known."""
    always: tuple[str, ...] = ()
    """Parameters that are sent with every change."""
    by_caller: bool = False
    """Whether an entry belongs to its caller, so that only the same caller can restore it."""
    needs: tuple[str, Mapping[str, Any]] | None = None
    """operationId and body of a call without which the others may be refused."""

    @property
    def operations(self) -> tuple[str, ...]:
        """All operations that it names."""
        named = (self.set, self.add, self.change, self.remove, self.read_each, self.needs[0] if self.needs else None)
        return tuple(name for name in named if name)


@dataclass(frozen=True, slots=True)
class Restoring:
    """The whole table."""

    parts: tuple[Restored, ...]
    """In the order in which they are put back."""
    stays: Mapping[str, str]
    """operationId -> permanent effects of a call of it, which nothing removes."""

    def adds_for_good(self, operation: str) -> bool:
        """Tell whether no operation removes what an operation adds to a list."""
        return any(part.add == operation and part.remove is None for part in self.parts)


def load_restoring(file: Path) -> Restoring:
    """Read the table; raise ContractError or UsageError when it is broken."""
    data = read_checked(file, "restoring.schema.json")
    return Restoring(tuple(_restored(row) for row in data["parts"]), MappingProxyType(dict(data["stays"])))


def _restored(row: Mapping[str, Any]) -> Restored:
    needs = row.get("needs")
    return row_of(Restored, row, needs=(needs["operation"], MappingProxyType(needs["body"])) if needs else None)
