"""The memory of the service: tables of frozen records, and the sequences of ids.

Records are never changed in place: a change replaces the record in its table. A snapshot therefore copies
the tables and not the records, which takes well under a millisecond for the seeded world.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Table(dict[K, V]):
    """A dict that belongs to a store: snapshots of the store hold it.

    Each part of the service makes its tables, once: `self.labels: Table[int, Label] = Table(store)`.
    Keys and records must be immutable.
    """

    def __init__(self, store: Store) -> None:
        super().__init__()
        store.adopt(self)


@dataclass(frozen=True)
class Snapshot:
    """The content of all tables and sequences at one moment."""

    tables: tuple[dict[object, object], ...]
    sequences: dict[str, int]


#: Sequences that begin later than the others, and by how much. So a project has another id than its group, and a merge
#: request another one than its iid: a client that takes one for the other is found out.
_LATER = {"namespaces": 1, "merge_requests": 100, "approval_rules": 7}


class Store:
    """All tables, and the sequences that give ids. `first_id` is the first id of most of them."""

    def __init__(self, first_id: int = 1) -> None:
        self._tables: list[dict[object, object]] = []
        self._sequences: dict[str, int] = {}
        self._first_id = first_id

    def adopt(self, table: dict[K, V]) -> None:
        """Make a table part of the store. Tables call this themselves."""
        self._tables.append(table)  # type: ignore[arg-type] # the store copies tables, whatever they hold

    def next_id(self, sequence: str) -> int:
        """Return the next id of a sequence such as "users"."""
        number = self._sequences.get(sequence, self._first_id + _LATER.get(sequence, 0))
        self._sequences[sequence] = number + 1
        return number

    def next_number(self, sequence: str) -> int:
        """Return the next number of a sequence that always counts from 1, such as the iids of a project."""
        number = self._sequences.get(sequence, 1)
        self._sequences[sequence] = number + 1
        return number

    def snapshot(self) -> Snapshot:
        """Remember everything as it is now."""
        return Snapshot(tuple(dict(table) for table in self._tables), dict(self._sequences))

    def restore(self, snapshot: Snapshot) -> None:
        """Make everything as it was when the snapshot was taken; tables keep their identity."""
        for table, content in zip(self._tables, snapshot.tables, strict=True):
            table.clear()
            table.update(content)
        self._sequences = dict(snapshot.sequences)
