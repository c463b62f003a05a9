"""Faults in changes that leave approvers of a rule out, and name no other ones in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around

if TYPE_CHECKING:
    from conformance.reference import Service


def keeps_all(service: Service, area: Any, part: str) -> None:
    """Let a change that names some of the former `users` or `groups`, and no other ones, keep all."""
    rules = service.approval_rules.rules

    def make(update: Any) -> Any:
        def keeping(home: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = rules.get(number)
            rule = update(home, number, wanted, caller)
            if before and {*getattr(before, part)} > {*getattr(rule, part)} > set():
                rule = rules[number] = replace(rule, **{part: getattr(before, part)})
            return rule

        return keeping

    around(area, "update_rule", make)


@fault("project-approval-rules.update.user-ids.removes-others")
def fewer_users_of_a_project_rule_change_nothing(service: Service) -> None:
    """A change of a project's rule that names some of its users, and nobody else, keeps all."""
    keeps_all(service, service.project_approval_rules, "users")


@fault("project-approval-rules.update.group-ids.removes-others")
def fewer_groups_of_a_project_rule_change_nothing(service: Service) -> None:
    """A change of a project's rule that names some of its groups, and no other ones, keeps all."""
    keeps_all(service, service.project_approval_rules, "groups")


@fault("merge-request-approvals.rules.update.users-are-replaced")
def fewer_users_of_a_merge_request_rule_change_nothing(service: Service) -> None:
    """A change of a merge request's rule that names some of its users, and nobody else, keeps all."""
    keeps_all(service, service.merge_request_approval_rules, "users")


@fault("merge-request-approvals.rules.update.groups-are-replaced")
def fewer_groups_of_a_merge_request_rule_change_nothing(service: Service) -> None:
    """A change of a merge request's rule that names some of its groups, and no other ones, keeps all."""
    keeps_all(service, service.merge_request_approval_rules, "groups")
