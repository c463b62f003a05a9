"""Faults of approvals that count in some rules alone, and of rules that something beside them changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, around, told_otherwise
from conformance.reference.areas.approval_rule_records import Level, RuleRequest, home_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import ApprovalRule


# -- what a creation says about branches -------------------------------------------------------------------------------


@fault("project-approval-rules.create.applies-to-all-protected-branches.stored")
def a_flag_that_is_sent_is_on(service: Service) -> None:
    """A new rule of a project applies to all protected branches if applies_to_all_protected_branches is sent at all."""

    def on(wanted: RuleRequest) -> RuleRequest:
        is_sent = wanted.applies_to_all_protected_branches is not None
        return replace(wanted, applies_to_all_protected_branches=True) if is_sent else wanted

    told_otherwise(service.project_approval_rules, "create_rule", 1, on)


@fault("project-approval-rules.create.protected-branch-ids")
def branches_beside_the_flag_are_lost(service: Service) -> None:
    """A new rule of a project loses its branches if applies_to_all_protected_branches is sent, true or false."""

    def without(wanted: RuleRequest) -> RuleRequest:
        is_sent = wanted.applies_to_all_protected_branches is not None
        return replace(wanted, protected_branch_ids=None) if is_sent else wanted

    told_otherwise(service.project_approval_rules, "create_rule", 1, without)


@fault("project-approval-rules.create.user-ids-and-usernames")
def users_of_both_lists_come_twice(service: Service) -> None:
    """A user of a new rule who is named in both lists is shown twice."""
    rules = service.approval_rules

    def twice(rule: ApprovalRule, subject: Any, home: Any, wanted: RuleRequest, _: Any) -> ApprovalRule:
        if home.level is not Level.PROJECT:
            return rule
        known = service.identities.find_username
        found = [user.id for user in map(known, wanted.usernames or ()) if user is not None]
        both = [number for number in found if number in (wanted.user_ids or ())]
        rules.rules[rule.id] = replace(rule, users=(*rule.users, *both))
        return rules.rules[rule.id]

    afterwards(rules, "create_rule", twice)


# -- in which rules an approval counts ---------------------------------------------------------------------------------


def counting(service: Service, counts: Callable[[ApprovalRule, int], bool]) -> None:
    """Let a rule count only some of those who have approved."""

    def make(approvers: Callable[..., Any]) -> Any:
        def some(rule: ApprovalRule, merge_request: Any) -> Any:
            return tuple(user for user in approvers(rule, merge_request) if counts(rule, user))

        return some

    around(service.merge_request_approvals, "approvers", make)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def members_of_groups_are_in_no_rule(service: Service) -> None:
    """approved_by of a rule in the state leaves out those who may approve because of a group."""

    def alter(shown: dict[str, Any], rule: ApprovalRule, *_: Any) -> dict[str, Any]:
        return {**shown, "approved_by": [one for one in shown["approved_by"] if one["id"] in rule.users]}

    afterwards(service.merge_request_approvals, "present_state_rule", alter)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def rules_of_the_project_count_nobody(service: Service) -> None:
    """approved_by of a rule of the project is empty in the state."""
    counting(service, lambda rule, _: rule.home.level is not Level.PROJECT)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def copies_count_nobody(service: Service) -> None:
    """approved_by of a rule that was copied from the project is empty in the state."""
    counting(service, lambda rule, _: rule.source_id is None)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def users_named_by_username_do_not_count(service: Service) -> None:
    """approved_by of a rule leaves out those whom its creation named by username."""
    named: set[tuple[int, int]] = set()

    def remember(rule: ApprovalRule, subject: Any, home: Any, wanted: RuleRequest, _: Any) -> None:
        found = [service.identities.find_username(name) for name in wanted.usernames or ()]
        named.update((rule.id, user.id) for user in found if user is not None)

    afterwards(service.approval_rules, "create_rule", remember)
    counting(service, lambda rule, user: (rule.id, user) not in named)


# -- what is changed beside it -----------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.belong-to-their-merge-request")
def rules_are_found_by_the_iid_of_another_project(service: Service) -> None:
    """A rule of a merge request is found under the same iid in other projects."""
    rules = service.approval_rules

    def make(find: Any) -> Any:
        def found(merge_request: Any, number: int) -> Any:
            rule = rules.rules.get(number)
            known = service.repositories.merge_requests.values()
            homes = [home_of(one) for one in known if one.iid == merge_request.iid]
            return rule if rule is not None and rule.home in homes else find(merge_request, number)

        return found

    for name in ("find", "find_listed"):
        around(service.merge_request_approval_rules, name, make)


@fault("merge-request-approvals.rules.copy.leaves-project-rule")
def a_copy_takes_its_source_along(service: Service) -> None:
    """Deleting a copy of a project's rule deletes that rule too."""
    rules = service.approval_rules

    def take_along(_: None, rule: ApprovalRule) -> None:
        if rule.source_id is not None:
            rules.rules.pop(rule.source_id, None)

    afterwards(rules, "delete_rule", take_along)


@fault("merge-request-approvals.leaves-the-rest")
def rules_of_a_merge_request_withdraw_approvals_of_others(service: Service) -> None:
    """Whoever changes the rules of a merge request withdraws the approvals of the project's other ones."""
    approvals = service.merge_request_approvals.approvals

    def withdraw(_: Any, merge_request: Any, *__: Any) -> None:
        for one in service.repositories.merge_requests.values():
            if one.project_id == merge_request.project_id and one.id != merge_request.id:
                approvals.pop(one.id, None)

    for name in ("create_rule", "update_rule", "delete_rule"):
        afterwards(service.merge_request_approval_rules, name, withdraw)


@fault("project-approval-rules.leaves-the-rest")
def rules_of_a_project_withdraw_approvals_of_others(service: Service) -> None:
    """Whoever changes the rules of a project withdraws the approvals in all other projects."""
    approvals = service.merge_request_approvals.approvals

    def withdraw(_: Any, project: Any, *__: Any) -> None:
        for one in service.repositories.merge_requests.values():
            if one.project_id != project.id:
                approvals.pop(one.id, None)

    for name in ("create_rule", "update_rule", "delete_rule"):
        afterwards(service.project_approval_rules, name, withdraw)
