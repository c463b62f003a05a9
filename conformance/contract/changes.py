"""The version table of the specification, item by item, as `openapi/changes.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from conformance.contract.versions import Version
from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from pathlib import Path


class ChangeKind(StrEnum):
    """What happens to an item."""

    INTRODUCED = "introduced"
    DEPRECATED = "deprecated"
    RENAMED = "renamed"
    REMOVED = "removed"
    CHANGED = "changed"
    ANNOUNCED = "announced"


@dataclass(frozen=True, slots=True)
class Probe:
    """A harmless call that shows an item on a target that offers it."""

    method: str
    path: str
    judged: bool = False
    parameter: str | None = None
    """The query parameter that the change is about."""
    field: str | None = None
    """The field of the record, or of each entry of the list, that the change is about."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A recorded call that uses an item."""

    method: str
    path: str
    is_outside: bool = False
    """Whether the path is outside the prefix of the API."""
    sends: str | None = None
    """The parameter, of the query or the body, that shows the use of the item."""
    value: str | None = None
    """The only value of that parameter that shows it; None if every value does."""
    shows: str | None = None
    """The field of the answer that shows the item."""
    is_empty: bool = False
    """Whether only a successful answer with an empty list shows it."""


@dataclass(frozen=True, slots=True)
class ReplacedBy:
    """The evidence that the replacement of a deprecated item works, beside the item."""

    operation: str
    """operationId of a call that uses the replacement."""
    parameter: str
    """The parameter of that call with the same meaning as the item."""
    requirement: str
    """The requirement that both work."""
    agreement: str
    """The id under which it is noted whether the two agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One item of one row of the version table."""

    id: str
    version: Version | None
    """None for an announcement without a version."""
    kind: ChangeKind
    item: str
    summary: str
    replacement: str | None = None
    replaced_by: ReplacedBy | None
    """None if the text names no replacement, or does not describe it."""
    removal_planned: Version | None
    places: tuple[str, ...] = ()
    shown_as: str | None = None
    """Where a parameter that the item introduces shows: `property`, or `property.field`."""
    described: bool = True
    probe: Probe | None
    traffic: tuple[Traffic, ...]
    never_called: str | None = None
    requirement: str

    def reached(self, version: Version | None) -> bool:
        """Tell whether the row is in effect at a version; at an unknown version it may be."""
        if self.version is None:
            return False
        return version is None or self.version <= version


def load_changes(file: Path) -> tuple[Change, ...]:
    """Read the version table in its order."""
    return tuple(_change(row) for row in read_checked(file, "changes.schema.json")["changes"])


def _change(row: dict[str, Any]) -> Change:
    planned = row.get("removal_planned")
    return row_of(
        Change,
        row,
        version=None if row["version"] == "future" else Version.parse(row["version"]),
        kind=ChangeKind(row["kind"]),
        replaced_by=ReplacedBy(**row["replaced_by"]) if "replaced_by" in row else None,
        removal_planned=Version.parse(planned) if planned else None,
        probe=Probe(**row["probe"]) if "probe" in row else None,
        traffic=tuple(Traffic(**call) for call in row.get("traffic", ())),
    )
