"""What all answers with one record must have in common, as `openapi/records.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """A kind of record: the operations that answer with it, and the parts that all their answers have in common."""

    requirement: str
    """The requirement that records of this kind say the same everywhere."""
    operations: tuple[str, ...]
    """operationIds."""
    says: tuple[str, ...]
    """Places in the record, such as `users[].id`, without times and values that count by themselves."""
    by: str | None = None
    """The field that identifies list entries; None if a project, group or merge request has only one such record."""
    to_each: tuple[str, ...] = ()
    """Places that may differ for another caller."""
    unless: Mapping[str, str] = field(default_factory=dict)
    """Place -> flag: the place has no meaning while the flag is on."""
    follows: Mapping[str, str] = field(default_factory=dict)
    """Place -> another place: the former must be equal only if the latter is, which itself may differ."""


def load_records(file: Path) -> tuple[Record, ...]:
    """Read the table; raise ContractError or UsageError when it is broken."""
    data = read_checked(file, "records.schema.json")
    return tuple(row_of(Record, row, requirement=requirement) for requirement, rows in data.items() for row in rows)
