"""What a run owes: one planned row per requirement, known before the first request."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.contract import Level
from conformance.results.record import PlannedRequirement, Reason, TableItem

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from conformance.contract import Contract, Requirement
    from conformance.target import Profile


def plan(
    contract: Contract,
    profile: Profile,
    claims: Mapping[str, Collection[str]],
    selected: Collection[str],
    known_failures: Mapping[str, str] = MappingProxyType({}),
) -> tuple[PlannedRequirement, ...]:
    """
    Return a row for every requirement of the contract, in its order.

    `claims` names for each requirement the tests that claim to verify it, `selected` the tests that will run, and
    `known_failures` those that the operator knows to fail, with the reason.
    """
    chosen = frozenset(selected)
    rows = []
    for requirement in contract.requirements.values():
        row = _row(requirement, profile)
        tests = tuple(sorted(claims.get(requirement.id, ())))
        if row.status == "applicable" and not chosen.intersection(tests):
            reason = Reason.SWITCHED_OFF if tests else Reason.NO_TEST_YET
            detail = "not selected for this run" if tests else "no collected test verifies it"
            row = replace(row, reason=reason, detail=detail)
        rows.append(replace(row, tests=tests, known_failure=known_failures.get(requirement.id)))
    return tuple(rows)


def table(contract: Contract) -> tuple[TableItem, ...]:
    """Return the version table as the record of a run keeps it."""
    return tuple(
        TableItem(
            id=change.id,
            version=str(change.version or "future"),
            kind=str(change.kind),
            item=change.item,
            summary=change.summary,
            requirement=change.requirement,
            replacement=change.replacement,
            removal_planned=str(change.removal_planned) if change.removal_planned else None,
        )
        for change in contract.changes
    )


def _row(requirement: Requirement, profile: Profile) -> PlannedRequirement:
    status, reason, detail = _status(requirement, profile)
    return PlannedRequirement(
        id=requirement.id,
        area=requirement.area,
        statement=requirement.statement,
        section=requirement.section,
        level=str(_level(requirement, profile)),
        kind=str(requirement.kind),
        when=requirement.when(),
        status=status,
        reason=reason,
        detail=detail,
    )


def _level(requirement: Requirement, profile: Profile) -> Level:
    """Return how much a statement weighs for a target, which may have declared to read it otherwise."""
    eased = requirement.eased_by is not None and profile.declares(requirement.eased_by)
    return Level.SHOULD if eased and requirement.level is Level.MUST else requirement.level


def _status(requirement: Requirement, profile: Profile) -> tuple[str, Reason | None, str | None]:
    if requirement.not_testable:
        return "not testable", Reason.NOT_OBSERVABLE, requirement.not_testable
    if not requirement.applies_to(profile.version):
        return "not applicable", Reason.VERSION, f"holds {requirement.when()}, the target is {profile.version}"
    if requirement.feature and not profile.declares(requirement.feature):
        return "not applicable", Reason.FEATURE_NOT_DECLARED, f"the target does not declare {requirement.feature}"
    if not requirement.tested:
        return "pending", Reason.NO_TEST_YET, "the suite has no test for it yet"
    return "applicable", None, None
