"""What all answers that show one record must say alike, as `openapi/records.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import read_checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """A kind of record: the operations that answer with it, and what of it must be the same in all their answers."""

    requirement: str
    """The requirement that records of this kind say the same everywhere."""
    operations: tuple[str, ...]
    """operationIds."""
    says: tuple[str, ...]
    """Places in the record, such as `users[].id`. Times and what counts by itself are none of them."""
    by: str | None
    """What tells the entries of a list apart; None for a record of which a project, group or merge request has one."""
    to_each: tuple[str, ...]
    """What of it may be another for another caller."""
    unless: Mapping[str, str]
    """Place -> flag: what means nothing while the flag is on."""
    follows: Mapping[str, str]
    """Place -> another place: what must be the same only where that other place is, which itself may be another."""


def load_records(file: Path) -> tuple[Record, ...]:
    """Read the table; raise ContractError or UsageError when it is broken."""
    data = read_checked(file, "records.schema.json")
    return tuple(_record(requirement, row) for requirement, rows in data.items() for row in rows)


def _record(requirement: str, row: Mapping[str, Any]) -> Record:
    return Record(
        requirement=requirement,
        operations=tuple(row["operations"]),
        says=tuple(row["says"]),
        by=row.get("by"),
        to_each=tuple(row.get("to_each", ())),
        unless=MappingProxyType(dict(row.get("unless", {}))),
        follows=MappingProxyType(dict(row.get("follows", {}))),
    )
