"""The entries of the status of an export: whether a relation has ended, and what a new export changes.

Specification: Resources and their fields > Group relations export status entry.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import records_of
from conformance.suite.expectations import whole_number
from conformance.suite.moments import Moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STARTED, FINISHED, FAILED = 0, 1, -1

Entry = dict[str, Any]
#: Relation -> its `updated_at` and `batched`.
Marks = dict[str, tuple[Any, Any]]

#: Such as `12:30:15.250`, `12:30:15,25` and `T123015.250`.
_PART_OF_A_SECOND = re.compile(r"\d\d[.,]\d*[1-9]")


def has_ended(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry of the status belongs to a relation that is exported, or whose export failed."""
    return entry.get("status") in (FINISHED, FAILED)


def entries_in(status: object) -> list[Entry]:
    """Return the entries of a status that have a state; the status of one relation may be one entry, and no array."""
    return [entry for entry in records_of(status) if whole_number(entry.get("status")) is not None]


def marks_in(entries: Iterable[Entry]) -> Marks:
    """Return by relation what a new export would change."""
    return {str(entry.get("relation")): (_moment(entry), entry.get("batched")) for entry in entries}


def finished_marks_in(entries: Iterable[Entry]) -> Marks:
    """Return the marks of relations that are exported: what runs goes on, and what failed may be tried again."""
    return marks_in(entry for entry in entries if entry.get("status") == FINISHED)


def is_told_in_seconds(entries: Iterable[Entry]) -> bool:
    """Tell whether an entry tells its last change only in whole seconds; other entries may be more precise."""
    told = [str(entry["updated_at"]) for entry in entries if entry.get("updated_at") is not None]
    return not all(map(_PART_OF_A_SECOND.search, told))


def _moment(entry: Entry) -> Any:
    """Return when an entry was updated, in a form that equals other spellings of the same time."""
    found = entry.get("updated_at")
    return Moment(found) if isinstance(found, str) else found
