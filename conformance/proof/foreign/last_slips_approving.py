"""Slips that a review passes over, where merge requests are approved: by which rules, by whom, and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.errors import StatedError
from conformance.reference.identity import Role
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_CALLER = "caller x form of id x operation"
_VALUE = "caller x value"
_LEVELS = "level x id of another level"
_NEIGHBOUR = "value x neighbour of the right value"
_STORY = "numbers and texts that follow from the story"
_SECOND = "none, one or two values"
_REFUSED = "refusal x everything that must stay"
_STAYS = "write x everything that must stay"
_NOTHING = "what arranges or undoes, and does nothing"
_SETTINGS = "settings and their resets"
_VERSIONS = "version table"

_RULES = "/projects/:id/approval_rules"
_MERGE_REQUEST_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"


# -- project approval configuration ------------------------------------------------------------------------------------


# The condition is looked at before the values of the call are put in.
@foreign(_SETTINGS, "Project approval configuration: selective_code_owner_removals", version="15.11")
def the_former_reset_lets_removals_be_selective(service: Service) -> None:
    """One call switches resets on and selective removals as well: only the stored value is asked, which was off."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change_configuration: Any, project: Any, change: Any) -> Any:
        before = configurations.configuration(project)
        if before.reset_approvals_on_push or not (
            change.reset_approvals_on_push and change.selective_code_owner_removals
        ):
            return change_configuration(project, change)
        configurations.configurations[project.id] = change.on(before)
        return configurations.configuration(project)


# What is empty since a version is not emptied with the next big one.
@foreign(_VERSIONS, "Versioning: 12.3; Project approval configuration: approvers", version="14.4")
def approvers_are_listed_to_the_next_big_release(service: Service) -> None:
    """Before 15.0 the configuration lists the users of the rules as approvers, which has been empty since 12.3."""
    rules = service.project_approval_rules

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if service.version < Version(15, 0):
            users = dict.fromkeys(number for rule in rules.rules(request.project) for number in rule.users)
            answer.content["approvers"] = [{"user": user} for user in service.present.users(tuple(users))]
        return answer


# -- approval rules of groups ------------------------------------------------------------------------------------------


# Both levels have the flag since the same release.
@foreign(_VERSIONS, "Versioning: 15.3; Approval rule: applies_to_all_protected_branches", version="15.3")
def rules_of_groups_say_where_they_apply_a_release_later(service: Service) -> None:
    """At 15.3 rules of projects have applies_to_all_protected_branches, and those of groups have not."""

    @instead(service.group_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        if service.version < Version(15, 4):
            shown.pop("applies_to_all_protected_branches", None)
        return shown


# -- approval rules of projects ----------------------------------------------------------------------------------------


# Mentioning a switch is not switching it on.
@foreign(_VALUE, "Project approval rules: remove_hidden_groups")
def hidden_groups_go_as_soon_as_they_are_mentioned(service: Service) -> None:
    """An update with remove_hidden_groups set to false removes hidden groups as one with true does."""

    @handling(service, f"PUT {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        parameters = request.parameters
        if parameters.given("remove_hidden_groups"):
            parameters._values = {**parameters._values, "remove_hidden_groups": True}
        return handler(request)


# The list is made by a query of its own, which leaves out what takes long.
@foreign(_STORY, "Approval rule: contains_hidden_groups")
def lists_know_of_no_hidden_groups(service: Service) -> None:
    """In the list of a project's rules none contains hidden groups; each rule on its own says it rightly."""

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "contains_hidden_groups": False} for rule in answer.content]
        return answer


# What looks like a number is made one on its way out.
@foreign(_NEIGHBOUR, "Approval rule: name is a string")
def a_name_of_digits_is_a_number(service: Service) -> None:
    """A project's rule whose name has nothing but digits is answered with a number as its name."""

    @instead(service.project_approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any) -> Any:
        shown = present(rule, viewer)
        if rule.name.isascii() and rule.name.isdigit():
            shown["name"] = int(rule.name)
        return shown


# The form leaves out whoever fills it in; the endpoint has no such reason.
@foreign(_CALLER, "Project approval rules: POST, user_ids")
def nobody_names_themselves(service: Service) -> None:
    """Who creates a rule of a project and names themselves among others is missing in it."""

    @instead(service.project_approval_rules, "create_rule")
    def _(create: Any, project: Any, wanted: Any, caller: Any) -> Any:
        if wanted.user_ids is not None:
            wanted = replace(wanted, user_ids=tuple(number for number in wanted.user_ids if number != caller.id))
        return create(project, wanted, caller)


# -- approval rules of merge requests ----------------------------------------------------------------------------------


# Groups are looked up by their root, which for most of them is the same.
@foreign(_CALLER, "Merge request approvals: POST approval_rules, group_ids")
def an_inner_group_stands_for_its_outermost(service: Service) -> None:
    """A rule of a merge request that names a subgroup has the group around it instead."""
    known = service.identities

    @instead(service.merge_request_approval_rules, "create_rule")
    def _(create: Any, merge_request: Any, wanted: Any, source_id: Any, caller: Any) -> Any:
        groups = [known.groups[number] for number in wanted.group_ids or () if number in known.groups]
        if groups:
            wanted = replace(wanted, group_ids=tuple(known.lineage(group)[-1].id for group in groups))
        return create(merge_request, wanted, source_id, caller)


# Who may approve by a rule and whom it names are two lists.
@foreign(_LEVELS, "Merge request approvals: rule 1")
def a_copy_names_the_members_of_its_groups(service: Service) -> None:
    """A copy of a project rule has the members of the rule's groups among its users, whom the rule does not name."""
    rules = service.approval_rules

    @instead(service.merge_request_approval_rules, "copied_project_rule")
    def _(copied: Any, merge_request: Any, source: Any, wanted: Any) -> Any:
        return replace(copied(merge_request, source, wanted), users=rules.eligible_approvers(source))


# Whether there are rules, and not whether they differ from others.
@foreign(_STORY, "Merge request approval state: approval_rules_overwritten")
def a_copy_that_is_equal_overwrites_nothing(service: Service) -> None:
    """A merge request whose only rule is a copy with the same number as the project rule says it has none."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(_overwritten: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None or rules.overridden(rule) for rule in rules.own_rules(merge_request))


# The copy is a view of the rule for as long as nobody changes it.
@foreign(_STAYS, "Merge request approvals: rule 1; DELETE of project approval rules")
def a_copy_loses_its_approvers_with_its_source(service: Service) -> None:
    """Deleting a project rule leaves its copies without users and groups, though these were copied."""
    rules = service.approval_rules

    @instead(rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        for copy in [one for one in rules.rules.values() if one.source_id == rule.id]:
            rules.rules[copy.id] = replace(copy, users=(), groups=())


# The object is looked up by the id, and the id is what remains where it is not found.
@foreign(_STORY, "Approval rule: source_rule")
def a_source_that_is_gone_is_a_number(service: Service) -> None:
    """After the project rule was deleted its copy has a number as source_rule, which is an object or null."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if rule.source_id is not None and shown["source_rule"] is None:
            shown["source_rule"] = rule.source_id
        return shown


# An exception that sounds sensible.
@foreign(_VALUE, "Merge request approvals: rule 3")
def a_report_rule_may_become_stricter(service: Service) -> None:
    """A report_approver rule of a merge request takes a higher number of approvals, where it takes no update."""
    rules, all_rules = service.merge_request_approval_rules, service.approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        rule = rules.find(merge_request, number)
        more = (wanted.approvals_required or 0) > rule.approvals_required
        if rule.rule_type is not RuleType.REPORT_APPROVER or not more:
            return update(merge_request, number, wanted, caller)
        all_rules.rules[number] = replace(rule, approvals_required=wanted.approvals_required)
        return all_rules.rules[number]


# Three levels of rules, and the third one got its pages with the next release.
@foreign(_VERSIONS, "Versioning: 15.3", version="15.3")
def rules_of_merge_requests_are_paged_a_release_later(service: Service) -> None:
    """At 15.3 the list of a merge request's rules is sent as a whole, whatever page was asked for."""
    service.routes.change(f"GET {_MERGE_REQUEST_RULES}", paginated=Version(15, 4))


# Creating took the new parameter, and changing was forgotten.
@foreign(_VERSIONS, "Versioning: 15.8", version="15.8")
def usernames_change_merge_requests_a_release_later(service: Service) -> None:
    """At 15.8 an update of a merge request's rule passes over usernames; its creation takes them."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        if service.version < Version(15, 9):
            wanted = replace(wanted, usernames=None)
        return update(merge_request, number, wanted, caller)


# -- approvals ---------------------------------------------------------------------------------------------------------


# Where more than one is listed, the other of two shapes is taken.
@foreign(_SECOND, "Merge request approval state: rules, approved_by")
def two_approvers_of_a_rule_are_wrapped(service: Service) -> None:
    """A rule of the state that two users have approved holds objects with a user, and not the users themselves."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if len(shown["approved_by"]) > 1:
            shown["approved_by"] = [{"user": user} for user in shown["approved_by"]]
        return shown


# A mark of what was taken back is kept, and nobody wipes it off at the next approval.
@foreign(_NOTHING, "Approval and integration moves: POST unapprove")
def an_approval_is_taken_back_once(service: Service) -> None:
    """Who approves again after taking an approval back cannot take that one back: the call is served in vain."""
    approvals = service.merge_request_approvals
    taken_back: set[tuple[int, int]] = set()

    @instead(approvals, "unapprove")
    def _(unapprove: Any, merge_request: Any, caller: Any) -> None:
        key = merge_request.id, caller.id
        if key in taken_back and approvals.approved_by(caller, merge_request):
            return
        unapprove(merge_request, caller)
        taken_back.add(key)


# All are all.
@foreign(_STAYS, "Approval and integration moves: PUT reset_approvals")
def approvals_of_maintainers_outlive_a_reset(service: Service) -> None:
    """A bot's reset clears the approvals of developers, and keeps those of maintainers and owners."""
    approvals, known = service.merge_request_approvals, service.identities

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        project, given = known.projects[merge_request.project_id], approvals.approvals_of(merge_request)
        clear(merge_request)
        kept = [one for one in given if known.role_in(known.users[one.user_id], project) >= Role.MAINTAINER]
        if kept:
            approvals.approvals[merge_request.id] = tuple(kept)


# Who looked at something else has not approved this, so the approval is put away before the refusal.
@foreign(_REFUSED, "Approval and integration moves: POST approve with another sha")
def an_outdated_sha_takes_the_own_approval_back(service: Service) -> None:
    """Who has approved and calls again with a sha that is not the HEAD's gets 409, and has not approved any more."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


# Everybody may take back at least their own one; the refusal comes after that.
@foreign(_REFUSED, "Approval and integration moves: PUT reset_approvals by others")
def a_refused_reset_takes_the_own_approval_back(service: Service) -> None:
    """An approver whose reset is refused with 401 has not approved any more, where nothing may change."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        try:
            reset(merge_request, caller)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


# The record is made of the rules as they are after the call, and one number is taken from what is left of them.
@foreign(_STORY, "Merge request approval status: approvals_required in the answer to approve")
def what_is_required_shrinks_in_the_answer_to_an_approval(service: Service) -> None:
    """The answer to approve says as approvals_required how many are left; the status on its own says it rightly."""

    @handling(service, "POST /projects/:id/merge_requests/:merge_request_iid/approve")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content["approvals_required"] = answer.content["approvals_left"]
        return answer
