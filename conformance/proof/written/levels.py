"""Faults of rules that are found where they do not belong, and of lists that are only partly used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, bodies
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.errors import ForbiddenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service


def found_as_well(service: Service, area: Any, method: str, strange: Callable[[Any, Any], bool]) -> None:
    """Let a method also find rules of other places, if a condition for the place and the rule holds."""
    rules = service.approval_rules
    find = rules.find

    def wider(home: Any, number: int) -> Any:
        rule = rules.rules.get(number)
        return rule if rule is not None and strange(home, rule) else find(home, number)

    def make(act: Any) -> Any:
        def acting(*arguments: Any) -> Any:
            rules.find = wider
            try:
                return act(*arguments)
            finally:
                rules.find = find

        return acting

    around(area, method, make)


def of_level(level: str) -> Callable[[Any, Any], bool]:
    """Return a test for rules of a level."""
    return lambda home, rule: rule.home.level == level and home.level != level


def of_a_sibling(home: Any, rule: Any) -> bool:
    """Tell whether a rule belongs to another place of the same level."""
    return bool(rule.home.level == home.level and rule.home != home)


@fault("project-approval-rules.read.rule-of-another-project", operation="getProjectApprovalRule")
def rule_of_a_merge_request_is_read_in_the_project(service: Service) -> None:
    """A rule of a merge request can be read as a rule of a project."""
    found_as_well(service, service.project_approval_rules, "find", of_level("merge request"))


@fault("project-approval-rules.update.rule-of-another-project", operation="updateProjectApprovalRule")
def rule_of_a_group_is_changed_in_the_project(service: Service) -> None:
    """A rule of a group can be changed as a rule of a project."""
    found_as_well(service, service.project_approval_rules, "update_rule", of_level("group"))


@fault("project-approval-rules.delete.rule-of-another-project", operation="deleteProjectApprovalRule")
def rule_of_a_merge_request_is_deleted_in_the_project(service: Service) -> None:
    """A rule of a merge request can be deleted as a rule of a project."""
    found_as_well(service, service.project_approval_rules, "delete_rule", of_level("merge request"))


@fault("group-approval-rules.update.rule-of-another-group", operation="updateGroupApprovalRule")
def rule_of_a_project_is_changed_in_the_group(service: Service) -> None:
    """A rule of a project can be changed as a rule of a group."""
    found_as_well(service, service.group_approval_rules, "update_rule", of_level("project"))


@fault("merge-request-approvals.rules.read-one.unknown-rule", operation="getMergeRequestApprovalRule")
def rule_of_another_merge_request_is_read(service: Service) -> None:
    """A rule of any merge request can be read as a rule of this one."""
    found_as_well(service, service.merge_request_approval_rules, "find_listed", of_a_sibling)


@fault("merge-request-approvals.rules.update.unknown-rule", operation="updateMergeRequestApprovalRule")
def rule_of_the_project_is_changed_in_the_merge_request(service: Service) -> None:
    """A rule of a project can be changed as a rule of a merge request."""
    found_as_well(service, service.merge_request_approval_rules, "update_rule", of_level("project"))


@fault("merge-request-approvals.rules.delete.leaves-others", operation="deleteMergeRequestApprovalRule")
def rule_of_the_project_is_deleted_in_the_merge_request(service: Service) -> None:
    """A rule of a project can be deleted as a rule of a merge request."""
    found_as_well(service, service.merge_request_approval_rules, "delete_rule", of_level("project"))


def only_the_first(service: Service, key: str, name: str) -> None:
    """Use only the first entry of a list that is sent."""

    def shorten(body: dict[str, Any]) -> dict[str, Any]:
        return {**body, name: body[name][:1]} if isinstance(body.get(name), list) else body

    bodies(service, key, shorten)


@fault("project-approval-rules.create.protected-branch-ids", operation="createProjectApprovalRule")
def second_branch_of_a_new_rule_is_lost(service: Service) -> None:
    """Of several protected_branch_ids, only the first is used when a project's rule is created."""
    only_the_first(service, "POST /projects/:id/approval_rules", "protected_branch_ids")


@fault("merge-request-approvals.rules.create.groups", operation="createMergeRequestApprovalRule")
def second_group_of_a_new_rule_is_lost(service: Service) -> None:
    """Of several group_ids, only the first is used when a merge request's rule is created."""
    only_the_first(service, "POST /projects/:id/merge_requests/:merge_request_iid/approval_rules", "group_ids")


@fault("group-approval-rules.update.user-ids", operation="updateGroupApprovalRule")
def second_user_of_a_changed_rule_is_lost(service: Service) -> None:
    """Of several user_ids, only the first is used when a group's rule is changed."""
    only_the_first(service, "PUT /groups/:id/approval_rules/:approval_rule_id", "user_ids")


@fault("group-approval-rules.groups-are-separate")
def groups_inside_list_the_rules_around_them(service: Service) -> None:
    """A group inside another one lists the rules of that one in place of its own."""

    def make(rules: Any) -> Any:
        def outside(group: Any) -> Any:
            return rules(service.identities.groups.get(group.parent_id, group))

        return outside

    around(service.group_approval_rules, "rules", make)


@fault("merge-request-approvals.rules.delete.answer")
def last_rules_cannot_be_deleted(service: Service) -> None:
    """A merge request that has rules of its own keeps the last of them: deleting it is refused."""
    rules = service.merge_request_approval_rules

    def make(delete: Any) -> Any:
        def but_one(merge_request: Any, number: int) -> None:
            if len(rules.own_rules(merge_request)) == 1:
                raise ForbiddenError("403 Forbidden - the last rule stays")
            delete(merge_request, number)

        return but_one

    around(rules, "delete_rule", make)


@fault("project-approval-rules.delete.succeeds")
def last_rules_of_projects_cannot_be_deleted(service: Service) -> None:
    """A project that has rules keeps the last of them: deleting it is refused."""
    rules = service.project_approval_rules

    def make(delete: Any) -> Any:
        def but_one(project: Any, number: int) -> None:
            if len([rule for rule in rules.rules(project) if rule.rule_type is RuleType.REGULAR]) == 1:
                raise ForbiddenError("403 Forbidden - the last rule stays")
            delete(project, number)

        return but_one

    around(rules, "delete_rule", make)
