"""Faults of changes that send what is stored already, or a part of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around
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
