"""Who may write the approval rules of a merge request, and which rule or merge request an id means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import finding_any_rule, is_rule_of_a_merge_request
from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, LEVEL
from conformance.proof.foreign.paths import MERGE_REQUEST_RULE, MERGE_REQUEST_RULES
from conformance.proof.foreign.registry import foreign, instead
from conformance.reference.areas.approval_rule_records import Level, RuleType

if TYPE_CHECKING:
    from conformance.reference import Service


# -- reading -----------------------------------------------------------------------------------------------------------


@foreign(LEVEL, "Merge request approvals: rules")
def rules_of_other_merge_requests_are_read(service: Service) -> None:
    """A merge request shows the rule of another merge request."""
    finding_any_rule(service, f"GET {MERGE_REQUEST_RULE}", Level.MERGE_REQUEST)


# -- creating and copying ----------------------------------------------------------------------------------------------


# Groups are looked up by their top-level group, which is the group itself for most of them.
@foreign(CALLER_AND_FORM, "Merge request approvals: POST approval_rules, group_ids")
def an_inner_group_stands_for_its_outermost(service: Service) -> None:
    """A rule of a merge request that names a subgroup gets its parent group instead."""
    known = service.identities

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        groups = [known.groups[number] for number in wanted.group_ids or () if number in known.groups]
        if groups:
            wanted = replace(wanted, group_ids=tuple(known.lineage(group)[-1].id for group in groups))
        return create(merge_request, wanted, source_id, caller)


# Eligible approvers and users of a rule are two lists.
@foreign(LEVEL, "Merge request approvals: rule 1")
def a_copy_names_the_members_of_its_groups(service: Service) -> None:
    """A copy of a project rule has the members of the rule's groups among its users, which the rule does not name."""
    rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), users=rules.eligible_approvers(source))


@foreign(LEVEL, "Merge request approvals: rule 1")
def rules_of_other_projects_are_copied(service: Service) -> None:
    """A merge request can copy a rule of another project; the id must be one of its own project."""
    finding_any_rule(service, f"POST {MERGE_REQUEST_RULES}", Level.PROJECT)


@foreign(LEVEL, "Merge request approvals: Rules, 1")
def a_deleted_project_rule_can_still_be_copied(service: Service) -> None:
    """A deleted project rule is only marked, and approval_project_rule_id ignores the mark."""
    deleted: dict[tuple[int, int], Any] = {}

    @instead(service.project_approval_rules, "delete_rule")
    def _(delete_rule: Any, project: Any, number: int) -> None:
        rule = service.project_approval_rules.find(project, number)
        delete_rule(project, number)
        deleted[project.id, number] = rule

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create_rule: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        source = deleted.get((merge_request.project_id, source_id or 0))
        if source is None:
            return create_rule(merge_request, wanted, source_id, caller)
        rules = service.merge_request_approval_rules
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


@foreign(LEVEL, "Merge request approvals: approval_project_rule_id")
def a_merge_request_copies_a_rule_of_another_one(service: Service) -> None:
    """approval_project_rule_id finds any rule below the project, even one of a merge request."""

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create_rule: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        rules, known = service.merge_request_approval_rules, service.repositories.merge_requests
        source = service.approval_rules.rules.get(source_id or 0)
        inside = {one.id for one in known.values() if one.project_id == merge_request.project_id}
        if source is None or source.home.level is not Level.MERGE_REQUEST or source.home.id not in inside:
            return create_rule(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


@foreign(LEVEL, "Merge request approvals: rules")
def rules_of_merge_requests_are_copied(service: Service) -> None:
    """A merge request can copy a rule of a merge request where a rule of the project must be named."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: int | None, caller: Any) -> Any:
        rule = service.approval_rules.rules.get(source_id or 0)
        if rule is None or rule.home.level is not Level.MERGE_REQUEST:
            return create(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, rule, wanted))


@foreign(LEVEL, "Merge request approvals: POST of a rule")
def a_rule_of_a_merge_request_is_copied_as_one_of_the_project(service: Service) -> None:
    """The id of a rule of a merge request is accepted as approval_project_rule_id, and that rule is copied."""
    rules = service.merge_request_approval_rules

    @instead(rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        source = service.approval_rules.rules.get(source_id)
        if source is None or not is_rule_of_a_merge_request(service, source, rules.project_of(merge_request)):
            return create(merge_request, wanted, source_id, caller)
        return service.approval_rules.add_rule(rules.copied_project_rule(merge_request, source, wanted))


# -- updating ----------------------------------------------------------------------------------------------------------


# An exception that sounds reasonable.
@foreign(CALLER_AND_VALUE, "Merge request approvals: rule 3")
def a_report_rule_may_become_stricter(service: Service) -> None:
    """A report_approver rule of a merge request accepts a higher number of approvals; it must accept no update."""
    rules, all_rules = service.merge_request_approval_rules, service.approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = rules.find(merge_request, number)
        more = (wanted.approvals_required or 0) > rule.approvals_required
        if rule.rule_type is not RuleType.REPORT_APPROVER or not more:
            return update(merge_request, number, wanted, caller)
        all_rules.rules[number] = replace(rule, approvals_required=wanted.approvals_required)
        return all_rules.rules[number]


# Only the rule in the path is changed.
@foreign(LEVEL, "Merge request approvals: PUT approval_rules")
def an_update_reaches_all_copies_of_a_project_rule(service: Service) -> None:
    """A copy is looked up by its project rule, so copies in other merge requests are changed as well."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        if changed.source_id is not None:
            for copy in [rule for rule in rules.values() if rule.source_id == changed.source_id]:
                rules[copy.id] = replace(changed, id=copy.id, home=copy.home)
        return changed


@foreign(LEVEL, "Merge request approvals: rules")
def merge_requests_change_rules_of_projects(service: Service) -> None:
    """A merge request can change a rule of its project, for all merge requests."""
    finding_any_rule(service, f"PUT {MERGE_REQUEST_RULE}", Level.PROJECT)


# -- deleting ----------------------------------------------------------------------------------------------------------


@foreign(LEVEL, "Merge request approvals: rules")
def rules_of_other_merge_requests_are_deleted(service: Service) -> None:
    """A merge request can delete the rule of another merge request."""
    finding_any_rule(service, f"DELETE {MERGE_REQUEST_RULE}", Level.MERGE_REQUEST)


@foreign(LEVEL, "Merge request approvals: rules")
def merge_requests_delete_rules_of_projects(service: Service) -> None:
    """A merge request can delete a rule of its project, for all merge requests."""
    finding_any_rule(service, f"DELETE {MERGE_REQUEST_RULE}", Level.PROJECT)
