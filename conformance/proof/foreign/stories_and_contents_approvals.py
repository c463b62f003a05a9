"""What reviews say after several calls: numbers, texts and people, copies of rules, and pages of them."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import ApiError, NotFoundError, StatedError
from conformance.reference.http import Page, ok

if TYPE_CHECKING:
    from conformance.reference import Service

_STORY = "numbers and texts that follow from the story"
_AGAIN = "again, by another caller, after an undo"
_WRITES = "write x everything that must stay"
_REFUSALS = "refusal x everything that must stay"
_LISTS = "none, one or two values"
_PAGES = "pages and totals"
_VERSIONS = "version table"

_RULES = "/projects/:id/merge_requests/:merge_request_iid/approval_rules"


# -- numbers, texts and people -----------------------------------------------------------------------------------------


@foreign(_STORY, "Merge request approval status: approvals_left")
def of_two_approvals_one_lowers_what_is_left(service: Service) -> None:
    """A rule that two of its users have to approve lacks one approval still after both did."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(left: Any, merge_request: Any, rules: Any = None) -> Any:
        known = approvals.rules(merge_request) if rules is None else rules
        given = [min(1, len(approvals.approvers(rule, merge_request))) for rule in known]
        return approvals.counted(
            [max(0, rule.approvals_required - number) for rule, number in zip(known, given, strict=True)]
        )


@foreign(_STORY, "Merge request approval status: approved_by, web_url")
def all_who_approved_have_the_address_of_the_first(service: Service) -> None:
    """The page of everybody who approved is that of whoever did so first."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        for approval in shown["approved_by"]:
            approval["user"]["web_url"] = shown["approved_by"][0]["user"]["web_url"]
        return shown


@foreign(_STORY, "Merge request approval status: title")
def a_merge_request_has_the_title_of_the_first_from_its_branch(service: Service) -> None:
    """Of two merge requests from one source branch to different targets both have the title of the older one."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown, place = status(merge_request, viewer), (merge_request.project_id, merge_request.source_branch)
        known = service.repositories.merge_requests.values()
        shown["title"] = next(one.title for one in known if (one.project_id, one.source_branch) == place)
        return shown


@foreign(_STORY, "Merge request approvals: approve, title")
def the_answer_to_an_approval_has_an_escaped_title(service: Service) -> None:
    """The title in the answer to an approval is escaped as for a page; the status that is read has it as it is."""

    @handling(service, "POST /projects/:id/merge_requests/:merge_request_iid/approve")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content["title"] = html.escape(answer.content["title"], quote=False)
        return answer


@foreign(_STORY, "Merge request approvals: rules, groups, full_path")
def a_nested_group_has_half_a_path_in_rules_of_merge_requests(service: Service) -> None:
    """The full path of a group in a rule of a merge request lacks the groups that it lies in."""

    @instead(service.merge_request_approval_rules, "present")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        for group in shown["groups"]:
            group["full_path"] = group["path"]
        return shown


# -- writes and refusals -----------------------------------------------------------------------------------------------


@foreign(_WRITES, "Merge request approvals: DELETE of a rule, other copies")
def deleting_one_copy_of_a_rule_deletes_those_of_others(service: Service) -> None:
    """With a copy of a project rule all its copies are gone, also those of other merge requests."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        source = rules[number].source_id if number in rules else None
        delete(merge_request, number)
        for rule in list(rules.values()):
            if source is not None and rule.source_id == source:
                del rules[rule.id]


@foreign(_WRITES, "Merge request approvals: PUT of a rule, its source")
def changing_a_copy_of_a_rule_changes_the_approvers_of_its_source(service: Service) -> None:
    """The users and groups that a copy of a project rule is given are those of the project rule from then on."""
    rules = service.approval_rules.rules

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        changed = update(merge_request, number, wanted, caller)
        if changed.source_id in rules:
            rules[changed.source_id] = replace(rules[changed.source_id], users=changed.users, groups=changed.groups)
        return changed


@foreign(_REFUSALS, "Merge request approvals: approve, 409 after an approval")
def a_wrong_sha_takes_back_the_approval_given_before(service: Service) -> None:
    """Who has approved and approves once more with another sha is refused with 409, and has approved no longer."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(_REFUSALS, "Merge request approvals: reset_approvals, 401")
def a_refused_reset_takes_back_the_approval_of_who_asked(service: Service) -> None:
    """Who has approved and asks for a reset is refused with 401, and has approved no longer."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        try:
            reset(merge_request, caller)
        except ApiError:
            approvals.remove_approval(caller, merge_request)
            raise


# -- again -------------------------------------------------------------------------------------------------------------


@foreign(_AGAIN, "Merge request approvals: approve, after a reset")
def an_approval_given_again_after_a_reset_lowers_nothing(service: Service) -> None:
    """Who approves again after a reset is among the approvers, and approvals_left stays as after the reset."""
    approvals = service.merge_request_approvals
    cleared: set[tuple[int, int]] = set()

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        cleared.update((merge_request.id, one.user_id) for one in approvals.approvals_of(merge_request))
        clear(merge_request)

    @instead(approvals, "approvals_left")
    def _(left: Any, merge_request: Any, rules: Any = None) -> Any:
        known = approvals.rules(merge_request) if rules is None else rules
        counted = []
        for rule in known:
            given = [one for one in approvals.approvers(rule, merge_request) if (merge_request.id, one) not in cleared]
            counted.append(max(0, rule.approvals_required - len(given)))
        return approvals.counted(counted)


@foreign(_AGAIN, "Merge request approvals: GET of a rule, after a DELETE")
def a_rule_that_was_read_is_found_after_its_deletion(service: Service) -> None:
    """A rule of a merge request that was read before it was deleted is answered with 200 as it was."""
    known: dict[tuple[str, ...], Any] = {}

    @handling(service, f"GET {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        key = tuple(request.path.values())
        try:
            answer = handler(request)
        except NotFoundError:
            if key not in known:
                raise
            return ok(dict(known[key]))
        known[key] = answer.content
        return answer


@foreign("the older of two", "Merge request approvals: DELETE of a rule, another with the same users")
def the_older_of_two_rules_loses_its_users_with_the_newer(service: Service) -> None:
    """Of two rules of the same users the older one names nobody any more once the newer one was deleted."""
    rules = service.approval_rules.rules

    @instead(service.approval_rules, "delete_rule")
    def _(delete: Any, rule: Any) -> None:
        delete(rule)
        for other in list(rules.values()):
            if other.home == rule.home and other.users == rule.users and other.id < rule.id:
                rules[other.id] = replace(other, users=())


# -- lists and pages ---------------------------------------------------------------------------------------------------


@foreign(_PAGES, "Group approval rules: GET, the last page")
def the_last_page_of_rules_of_a_group_is_filled_up(service: Service) -> None:
    """A last page that would be shorter begins with rules of the page before it."""

    @handling(service, "GET /groups/:id/approval_rules")
    def _(handler: Any, request: Any) -> Any:
        answer, groups = handler(request), service.group_approval_rules
        rules, page = groups.rules(request.group), Page.of(request.parameters, request.choices)
        start = (page.number - 1) * page.size
        if start and start < len(rules) < start + page.size:
            answer.content = [groups.present(rule, request.caller) for rule in rules[-page.size :]]
        return answer


@foreign(_PAGES, "Merge request approvals: GET of rules, order across pages")
def later_pages_of_rules_of_a_merge_request_count_from_the_end(service: Service) -> None:
    """All pages but the first have the rules in the other order: some stand twice in a walk, and some nowhere."""
    area = service.merge_request_approval_rules

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        merge_request = merge_request_of(request)
        if page.number > 1:
            start = (page.number - 1) * page.size
            rules = area.listed(merge_request)[::-1][start : start + page.size]
            answer.content = [area.present(rule, merge_request, request.caller) for rule in rules]
        return answer


@foreign(_LISTS, "Project approval rules: protected_branches, two")
def of_two_protected_branches_one_is_shown_twice(service: Service) -> None:
    """A rule of a project for two protected branches shows the second of them twice, and the first nowhere."""

    @instead(service.approval_rules, "present_branches")
    def _(present_branches: Any, rule: Any, present: Any) -> Any:
        shown = present_branches(rule, present)
        branches = shown["protected_branches"]
        if rule.home.level is Level.PROJECT and not rule.applies_to_all_protected_branches:
            shown["protected_branches"] = branches[-1:] * len(branches)
        return shown


# -- versions ----------------------------------------------------------------------------------------------------------


@foreign(_VERSIONS, "Merge request approvals: PUT of a rule, usernames", version="15.8")
def usernames_are_not_taken_when_a_rule_of_a_merge_request_changes(service: Service) -> None:
    """At the first version with usernames they are taken when a rule is made, and passed over when it is changed."""

    @instead(service.merge_request_approval_rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(merge_request, number, replace(wanted, usernames=None), caller)


@foreign(_VERSIONS, "Project approval rules: PUT, applies_to_all_protected_branches", version="15.3")
def a_changed_rule_keeps_its_flag_for_all_branches(service: Service) -> None:
    """At the first version with the flag for all protected branches a change of a rule leaves it as it was."""

    @instead(service.project_approval_rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        return update(project, number, replace(wanted, applies_to_all_protected_branches=None), caller)
