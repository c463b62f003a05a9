"""What all answers with one record must have in common, as `openapi/records.yaml` lists it."""

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
    """A kind of record: the operations that answer with it, and the parts that all their answers have in common."""

    requirement: str
    """The requirement that records of this kind say the same everywhere."""
    operations: tuple[str, ...]
    """operationIds."""
    says: tuple[str, ...]
    """Places in the record, such as `users[].id`, without times and values that count by themselves."""
    by: str | None
    """The field that identifies list entries; None if a project, group or merge request has only one such record."""
    to_each: tuple[str, ...]
    """Places that may differ for another caller."""
    unless: Mapping[str, str]
    """Place -> flag: the place has no meaning while the flag is on."""
    follows: Mapping[str, str]
    """Place -> another place: the former must be equal only if the latter is, which itself may differ."""


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
