"""The testable statements of the specification, as `openapi/requirements/` lists them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract.versions import Version, holds
from conformance.contract.yaml_files import read_checked, row_of
from conformance.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Level(StrEnum):
    """How important a statement is."""

    MUST = "must"
    SHOULD = "should"
    NOTE = "note"


class Kind(StrEnum):
    """What sort of statement it is."""

    SCHEMA = "schema"
    STATUS = "status"
    VALIDATION = "validation"
    AUTHORIZATION = "authorization"
    TRANSITION = "transition"
    PAGINATION = "pagination"
    VERSION = "version"
    LIMIT = "limit"
    SEMANTICS = "semantics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A testable statement: what a conformant service does, and how that is verified."""

    id: str
    area: str
    statement: str
    section: str
    level: Level
    kind: Kind
    introduced: Version | None
    removed: Version | None
    feature: str | None
    eased_by: str | None = None
    """A feature of targets that read the text differently: for them, breaking the statement is only a warning."""
    needs: tuple[str, ...] = ()
    shows_in: tuple[str, ...] = ()
    """Other areas in which alone it shows: it is asked only where at least one of them is claimed, too."""
    tested: bool
    """Whether the suite claims a test for it."""
    not_testable: str | None = None
    """Why nobody outside the service can observe it."""

    def applies_to(self, version: Version | None) -> bool:
        """Tell whether a service of this version must fulfil it."""
        return holds(version, self.introduced, self.removed)

    def when(self) -> str:
        """Say for which versions it holds."""
        bounds = []
        if self.introduced:
            bounds.append(f"from {self.introduced}")
        if self.removed:
            bounds.append(f"before {self.removed}")
        return ", ".join(bounds) or "every version"


def load_requirements(folder: Path) -> Mapping[str, Requirement]:
    """Read all requirement files of a folder, by id in reading order; raise ContractError on an id given twice."""
    found: dict[str, Requirement] = {}
    for file in sorted(folder.glob("*.yaml")):
        data = read_checked(file, "requirements.schema.json")
        for row in data["requirements"]:
            requirement = _requirement(data, row)
            if requirement.id in found:
                raise ContractError(f"Requirement {requirement.id} is stated twice; the second time in {file}.")
            if not requirement.id.startswith(data["area"] + "."):
                raise ContractError(f"Requirement {requirement.id} in {file} must begin with '{data['area']}.'.")
            found[requirement.id] = requirement
    areas = {requirement.area for requirement in found.values()}
    for requirement in found.values():
        if unknown := sorted(set(requirement.shows_in) - areas):
            raise ContractError(f"Requirement {requirement.id} shows in {', '.join(unknown)}, which is no area.")
    return MappingProxyType(found)


def _requirement(area: Mapping[str, Any], row: Mapping[str, Any]) -> Requirement:
    introduced = row.get("introduced", area.get("introduced"))
    return row_of(
        Requirement,
        {name: value for name, value in row.items() if name != "verified_by"},
        area=area["area"],
        level=Level(row["level"]),
        kind=Kind(row["kind"]),
        introduced=Version.parse(introduced) if introduced else None,
        removed=Version.parse(row["removed"]) if "removed" in row else None,
        feature=row.get("feature", area.get("feature")),
        tested=row.get("verified_by") == "tests",
    )
