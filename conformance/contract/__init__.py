"""The contract: the specification as data, and what it says at a version."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

from conformance.contract.at_version import at_version, property_names
from conformance.contract.bundle import Json, bundle
from conformance.contract.changes import Change, ChangeKind, load_changes
from conformance.contract.folders import CONTRACT_FOLDER
from conformance.contract.open_places import OpenPlace, load_open_places
from conformance.contract.operations import DocumentedResponse, Operation, Parameter, read_operations
from conformance.contract.published import for_drawing, published
from conformance.contract.records import Record, load_records
from conformance.contract.requirements import Kind, Level, Requirement, load_requirements
from conformance.contract.restoring import Restored, Restoring, load_restoring
from conformance.contract.side_effects import SideEffects, load_side_effects
from conformance.contract.versions import NEWEST, OLDEST, TABLE, Version
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
from types import MappingProxyType

__all__ = [
    "NEWEST",
    "OLDEST",
    "TABLE",
    "Change",
    "ChangeKind",
    "Contract",
    "DocumentedResponse",
    "Kind",
    "Level",
    "OpenPlace",
    "Operation",
    "Parameter",
    "Requirement",
    "Restored",
    "Restoring",
    "SideEffects",
    "Version",
]


@dataclass(frozen=True)
class Contract:
    """The whole contract, of all versions."""

    document: Json
    """The OpenAPI document of all versions in one piece, with extensions."""
    requirements: Mapping[str, Requirement]
    changes: tuple[Change, ...]
    open_places: tuple[OpenPlace, ...]
    """Places where the specification is silent, and how the suite treats them."""
    side_effects: SideEffects
    """What a call may change besides its own object."""
    restoring: Restoring
    """How changes of a run are restored."""
    records: tuple[Record, ...]
    """What all answers with one record must have in common."""
    digest: str
    """SHA-256 of the contract's files: two runs with the same digest judged by the same text."""
    _views: dict[Version | None, Json] = field(default_factory=dict, repr=False, compare=False)
    _operations: dict[Version | None, tuple[Operation, ...]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, folder: Path = CONTRACT_FOLDER) -> Contract:
        """Read the contract of a folder (once); raise ContractError or UsageError when it is broken."""
        return _load(folder)

    def at(self, version: Version | None) -> Json:
        """Return the document of a version with its extensions; None stands for an unknown version."""
        if version not in self._views:
            self._views[version] = at_version(self.document, version)
        return self._views[version]

    def as_of(self, version: str | Version | None) -> Json:
        """Return the plain OpenAPI document that a service of this version must meet; None is an unknown version."""
        known = Version.parse_known(version) if isinstance(version, str) else version
        return published(self.at(known), known)

    def for_drawing(self, version: Version | None) -> Json:
        """Return the plain OpenAPI document of a version with the limits for drawn calls."""
        return for_drawing(self.at(version))

    def operations(self, version: Version | None) -> tuple[Operation, ...]:
        """Return the operations of a version in the document's order."""
        if version not in self._operations:
            self._operations[version] = read_operations(self.at(version))
        return self._operations[version]

    def requirement(self, requirement_id: str) -> Requirement:
        """Return a requirement; raise UsageError that suggests the nearest ids if there is none."""
        try:
            return self.requirements[requirement_id]
        except KeyError:
            from difflib import get_close_matches  # noqa: PLC0415 - only for this message

            name = requirement_id.strip().lower()
            holding = [each for each in self.requirements if name and name in each]
            near = holding[:3] or get_close_matches(name, self.requirements, n=3, cutoff=0.5)
            hint = f" Did you mean {', '.join(near)}?" if near else " `conformance requirements` lists them."
            raise UsageError(f"There is no requirement '{requirement_id}'.{hint}") from None

    def require_area(self, name: str) -> None:
        """Raise UsageError that lists the areas if there is none with this name."""
        if name not in self.areas:
            raise UsageError(f"There is no area '{name}'. Areas are: {', '.join(self.areas)}.")

    @cached_property
    def areas(self) -> tuple[str, ...]:
        """The areas that have requirements, in reading order."""
        return tuple(dict.fromkeys(requirement.area for requirement in self.requirements.values()))

    @cached_property
    def property_names(self) -> frozenset[str]:
        """The names of all properties in requests and answers of any version."""
        return frozenset(property_names(self.document))

    @cached_property
    def general_areas(self) -> tuple[str, ...]:
        """The areas without operations of their own: their statements hold for all operations of a target."""
        own = {tag["name"] for tag in self.document["tags"]} - {"versions"}
        return tuple(area for area in self.areas if area not in own)


@cache
def _load(folder: Path) -> Contract:
    index = folder / "openapi.yaml"
    if not index.is_file():
        raise UsageError(f"No contract in {folder}: openapi.yaml is missing. Reinstall the package.")
    document = bundle(index)
    return Contract(
        document=document,
        requirements=_in_order(load_requirements(folder / "requirements"), [tag["name"] for tag in document["tags"]]),
        changes=load_changes(folder / "changes.yaml"),
        open_places=load_open_places(folder / "open-places.yaml"),
        side_effects=load_side_effects(folder / "side-effects.yaml"),
        restoring=load_restoring(folder / "restoring.yaml"),
        records=load_records(folder / "records.yaml"),
        digest=_digest(folder),
    )


def _in_order(requirements: Mapping[str, Requirement], areas: list[str]) -> Mapping[str, Requirement]:
    """Put the areas with operations in the document's order, and the general ones behind them."""
    places = {area: place for place, area in enumerate(areas)}
    # "versions" has operations, but its statements are about the version table as a whole.
    places["versions"] = len(areas) + 1
    ordered = sorted(requirements.values(), key=lambda requirement: places.get(requirement.area, len(areas)))
    return MappingProxyType({requirement.id: requirement for requirement in ordered})


def _digest(folder: Path) -> str:
    content = hashlib.sha256()
    for file in sorted(folder.rglob("*.yaml")):
        content.update(file.relative_to(folder).as_posix().encode())
        content.update(b"\0")
        content.update(file.read_bytes())
        content.update(b"\0")
    return content.hexdigest()
