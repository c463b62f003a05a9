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
    """Return the rules of other homes of that level that have the same approvers and ask for as many approvals."""
    return [
        other
        for other in list(stored(service).values())
        if other.home.level is rule.home.level
        and other.home != rule.home
        and (other.approvals_required, other.users, other.groups) == (rule.approvals_required, rule.users, rule.groups)
    ]


#: The requirement that the rules of one home leave those of another, by level; and where those levels delete rules.
_SEPARATE = {
    Level.GROUP: ("group-approval-rules.groups-are-separate", None),
    Level.PROJECT: ("project-approval-rules.projects-are-separate", "project_approval_rules"),
    Level.MERGE_REQUEST: ("merge-request-approvals.rules.are-separate", "merge_request_approval_rules"),
}


def _equal_rules_go_along(requirement: str, area: str) -> None:
    """Register a fault: a deletion also removes the equal rules elsewhere."""

    def apply(service: Service) -> None:
        rules = getattr(service, area)

        def make(delete: Any) -> Any:
            def deleting(home: Any, number: int) -> None:
                twins = _twins_elsewhere(service, rules.find(home, number))
                delete(home, number)
                for twin in twins:
                    stored(service).pop(twin.id)

            return deleting

        around(rules, "delete_rule", make)

    says = "A deletion also removes the rules of other projects or merge requests with the same approvers and number."
    fault(requirement)(named("equal_rules_go_along", says, apply))


def _equal_rules_change_along(level: Level, requirement: str) -> None:
    """Register a fault: a change also changes the number of equal rules elsewhere."""

    def apply(service: Service) -> None:
        def make(update: Any) -> Any:
            def changing(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
                twins = _twins_elsewhere(service, rule) if rule.home.level is level else []
                found = update(subject, rule, wanted, caller)
                for twin in twins:
                    stored(service)[twin.id] = replace(twin, approvals_required=found.approvals_required)
                return found

            return changing

        around(service.approval_rules, "update_rule", make)

    says = "A change also changes the number of those rules elsewhere that had the same approvers and number."
    fault(requirement)(named("equal_rules_change_along", says, apply))


for _level, (_requirement, _area) in _SEPARATE.items():
    _equal_rules_change_along(_level, _requirement)
    if _area is not None:
        _equal_rules_go_along(_requirement, _area)


#: The requirement that a change leaves the other rules of one home, by level.
_BESIDE = {
    Level.GROUP: "group-approval-rules.update.leaves-other-rules",
    Level.PROJECT: "project-approval-rules.update.leaves-other-rules",
    Level.MERGE_REQUEST: "merge-request-approvals.leaves-the-rest",
}


def _namesakes_change_along(level: Level, requirement: str) -> None:
    """Register a fault: a change reaches the rules by their name, and so all of a home that have it."""

    def apply(service: Service) -> None:
        def make(update: Any) -> Any:
            def changing(subject: Any, rule: Any, wanted: Any, caller: Any) -> Any:
                found = update(subject, rule, wanted, caller)
                for other in list(stored(service).values()) if rule.home.level is level else ():
                    if (other.home, other.name) == (rule.home, rule.name) and other.id != rule.id:
                        stored(service)[other.id] = replace(other, approvals_required=found.approvals_required)
                return found

            return changing

        around(service.approval_rules, "update_rule", make)

    says = "A change of a rule also changes the number of those beside it that have the name it had before."
    fault(requirement)(named("namesakes_change_along", says, apply))


for _level, _requirement in _BESIDE.items():
    _namesakes_change_along(_level, _requirement)
