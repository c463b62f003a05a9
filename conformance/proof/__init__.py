"""The proof: every check can fail, and fails for the reason given."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from conformance.contract import TABLE, Contract, Requirement, Version
from conformance.errors import UsageError
from conformance.proof import written  # noqa: F401 - registers its faults
from conformance.proof.crossings import crossed
from conformance.proof.faults import WRITTEN, Fault
from conformance.proof.generated import generated
from conformance.target.embedded import DEFAULT_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = ["Fault", "all_faults", "faults_named", "version_for"]


def all_faults(contract: Contract, version: str | None = None) -> tuple[Fault, ...]:
    """Return the faults written by hand, those derived from the contract, and crossings of both, each with its version.

    With a version: all faults of requirements that apply at it. Without one: those at the reference's own version, and
    for requirements that do not apply there, the faults at the nearest version where they do.
    """
    return tuple(_each_and_crossed(contract, version))


def faults_named(contract: Contract, names: Collection[str], version: str | None = None) -> tuple[Fault, ...]:
    """Return the faults of these names, and make no others; raise UsageError when a name is unknown."""
    found: dict[str, Fault] = {}
    known: list[str] = []
    for fault in _each_and_crossed(contract, version):
        known.append(fault.name)
        if fault.name in names:
            found[fault.name] = fault
        if len(found) == len(set(names)):
            return tuple(found.values())
    unknown = next(name for name in names if name not in found)
    near = get_close_matches(unknown, known)
    hint = f"Did you mean '{near[0]}'?" if near else "`conformance prove` without options names all that there are."
    raise UsageError(f"There is no fault '{unknown}'. {hint}")


def version_for(requirement: Requirement) -> Version | None:
    """Return the default version for proving a requirement; None if the requirement applies at no version."""
    default = Version.parse(DEFAULT_VERSION)
    owed = [version for version in map(Version.parse, TABLE) if requirement.applies_to(version)]
    before = [version for version in owed if version <= default]
    return max(before) if before else min(owed, default=None)


def _each_and_crossed(contract: Contract, version: str | None) -> Iterator[Fault]:
    plain: list[Fault] = []
    for fault in _each(contract, version):
        plain.append(fault)
        yield fault
    yield from crossed(plain)


def _each(contract: Contract, version: str | None) -> Iterator[Fault]:
    """Yield the faults, starting with those that are quickly made."""
    asked = Version.parse(version) if version is not None else None
    for fault in WRITTEN.values():
        requirement = contract.requirements.get(fault.requirement)
        if requirement and requirement.tested and (asked is None or requirement.applies_to(asked)):
            place = asked or version_for(requirement)
            if place is not None:
                yield replace(fault, version=fault.version or str(place))
    if asked is not None:
        yield from _generated_at(contract, asked)
        return
    default = Version.parse(DEFAULT_VERSION)
    yield from _generated_at(contract, default)
    places = {entry.id: version_for(entry) for entry in contract.requirements.values()}
    for place in sorted({found for found in places.values() if found not in (None, default)}, key=str):
        for fault in _generated_at(contract, place):
            if places[fault.requirement] == place:
                # The faults at the reference's version may include one of this name.
                yield replace(fault, name=f"{fault.name} at {place}")


def _generated_at(contract: Contract, version: Version) -> Iterator[Fault]:
    return (replace(fault, version=str(version)) for fault in generated(contract, version))
