"""How what a run changed is put back, as `openapi/restoring.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Restored:
    """Which operations bring former values of one part of the world back."""

    part: str
    """Its name in the table of side effects, which says how it is read."""
    body: Mapping[str, str]
    """Parameter of the calls -> where what was read has its value."""
    set: str | None = None
    """operationId of the call that takes fields of a record; None for lists."""
    add: str | None = None
    change: str | None = None
    remove: str | None = None
    """operationIds of the calls for one entry of a list; what has no `remove` stays."""
    read_each: str | None = None
    """operationId of the call that reads one entry whole, where the list does not show all of it."""
    entry: str | None = None
    """The parameter that names an entry."""
    named: str | None = None
    """Of a creation's body, what its entry is found by before it is known under a number."""
    always: tuple[str, ...] = ()
    """Parameters that are sent with any change."""
    by_caller: bool = False
    """Whether an entry is the caller's own, so that only they bring it back."""
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
    """operationId -> what a call of it leaves that nothing takes away."""

    def adds_for_good(self, operation: str) -> bool:
        """Tell whether what an operation adds to a list is taken away by none."""
        return any(part.add == operation and part.remove is None for part in self.parts)


def load_restoring(file: Path) -> Restoring:
    """Read the table; raise ContractError or UsageError when it is broken."""
    data = read_checked(file, "restoring.schema.json")
    return Restoring(tuple(_restored(row) for row in data["parts"]), MappingProxyType(dict(data["stays"])))


def _restored(row: Mapping[str, Any]) -> Restored:
    needs = row.get("needs")
    plain = {name: value for name, value in row.items() if name not in ("always", "needs")}
    return Restored(
        **plain,
        always=tuple(row.get("always", ())),
        needs=(needs["operation"], MappingProxyType(dict(needs["body"]))) if needs else None,
    )
