"""Faults of changes that send what is stored already, or a part of it, and of rules that equal another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around
from conformance.proof.written.approval_rules import stored
from conformance.reference.areas.approval_rule_records import Level

if TYPE_CHECKING:
    from conformance.reference import Service

#: The requirement that a change of the number shows, by the level of the rule.
_NUMBER = {
    Level.GROUP: "group-approval-rules.update.approvals-required",
    Level.PROJECT: "project-approval-rules.update.stored",
    Level.MERGE_REQUEST: "merge-request-approvals.rules.update.approvals-required",
}


def _with_its_own_name(level: Level, requirement: str) -> None:
    """Register a fault: rules of a level are not changed by a call that sends the name they have."""

    def apply(service: Service) -> None:
        def make(update: Any) -> Any:
            def skipping(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
                if rule.home.level is level and wanted.name == rule.name:
                    wanted = replace(wanted, approvals_required=None)
                return update(subject, rule, wanted, caller)

            return skipping

        around(service.approval_rules, "update_rule", make)

    says = "A change of a rule ignores approvals_required if it sends the name that the rule already has."
    fault(requirement)(named("number_beside_the_stored_name_is_ignored", says, apply))


for _level, _requirement in _NUMBER.items():
    _with_its_own_name(_level, _requirement)


@fault("project-approval-rules.update.protected-branch-ids")
def fewer_branches_are_no_change(service: Service) -> None:
    """A change of a project's rule keeps the branches if all that are sent are among them."""

    def make(after: Any) -> Any:
        def keeping(rule: Any, wanted: Any, subject: Any) -> Any:
            found = after(rule, wanted, subject)
            return rule.protected_branches if found and set(found) <= set(rule.protected_branches) else found

        return keeping

    around(service.approval_rules, "branches_after", make)


def _twins_elsewhere(service: Service, rule: Any) -> list[Any]:
    """Return the rules of other projects that have the same approvers and ask for as many approvals."""
    return [
        other
        for other in list(stored(service).values())
        if other.home.level is Level.PROJECT
        and other.home != rule.home
        and (other.approvals_required, other.users, other.groups) == (rule.approvals_required, rule.users, rule.groups)
    ]


@fault("project-approval-rules.projects-are-separate")
def an_equal_rule_goes_along(service: Service) -> None:
    """A deletion also removes the rules of other projects that have the same approvers and number."""
    area = service.project_approval_rules

    def make(delete: Any) -> Any:
        def deleting(project: Any, number: int) -> None:
            twins = _twins_elsewhere(service, area.find(project, number))
            delete(project, number)
            for twin in twins:
                stored(service).pop(twin.id)

        return deleting

    around(area, "delete_rule", make)


@fault("project-approval-rules.projects-are-separate")
def an_equal_rule_changes_along(service: Service) -> None:
    """A change also changes the number of those rules of other projects that had the same approvers and number."""

    def make(update: Any) -> Any:
        def changing(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
            twins = _twins_elsewhere(service, rule) if rule.home.level is Level.PROJECT else []
            found = update(subject, rule, wanted, caller)
            for twin in twins:
                stored(service)[twin.id] = replace(twin, approvals_required=found.approvals_required)
            return found

        return changing

    around(service.approval_rules, "update_rule", make)
