"""Small bugs of other code bases around approval rules and approvals: wrong joins, stale rows, what is checked once."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import home_of
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import InvalidError, RejectedError, StatedError, not_found

if TYPE_CHECKING:
    from conformance.reference import Service

_SENT = "forms of what is sent"
_STORY = "numbers and texts that follow from the story"
_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_STAYS = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_NOTHING = "what arranges or undoes, and does nothing"
_NEIGHBOUR = "value x neighbour of the right value"
_AT_ONCE = "two write at once"

_GROUP_RULES = "/groups/:id/approval_rules"
_PROJECT_RULES = "/projects/:id/approval_rules"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


# -- rules of groups ---------------------------------------------------------------------------------------------------


# A parameter of the query is the same text as one of a body.
@foreign(_SENT, "Group approval rules: parameters in the query")
def names_in_a_query_are_read_byte_by_byte(service: Service) -> None:
    """The name of a rule that comes in the query is read as Latin-1: other letters become two."""

    @handling(service, f"POST {_GROUP_RULES}", f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if b"name=" in request.query and isinstance(values.get("name"), str):
            mangled = values["name"].encode().decode("latin-1")
            request.parameters._values = {**values, "name": mangled}
        return handler(request)


# The endpoints are for the administrators of the group, not for one of them.
@foreign(_AGAIN, "Group approval rules: PUT by another administrator")
def a_rule_is_changed_by_who_made_it(service: Service) -> None:
    """The rules of a group are looked up among those that the caller made: another owner finds none."""
    made_by: dict[int, int] = {}

    @handling(service, f"POST {_GROUP_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            made_by[answer.content["id"]] = request.caller.id
        return answer

    @handling(service, f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        if made_by.get(request.path_id("approval_rule_id"), request.caller.id) != request.caller.id:
            raise not_found("Approval Rule")
        return handler(request)


# The name is what was sent.
@foreign(_NEIGHBOUR, "Group approval rules: PUT, name")
def another_name_is_made_safe_for_pages(service: Service) -> None:
    """The new name of a rule is stored as it would stand in a page: `&` as `&amp;`."""

    @handling(service, f"PUT {_GROUP_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if isinstance(values.get("name"), str):
            request.parameters._values = {**values, "name": escape(values["name"], quote=False)}
        return handler(request)


# Both rules are changed.
@foreign(_AT_ONCE, "Group approval rules: PUT of two rules")
def rules_of_a_group_are_written_all_together(service: Service) -> None:
    """The rules of a group lie in one column: of two that are changed at the same time, one is as before."""
    rules = service.approval_rules.rules

    def write(seen: Any, request: Any) -> None:
        changed = request.path_id("approval_rule_id")
        for rule in seen.values():
            if rule.home == home_of(request.group) and rule.id != changed:
                rules[rule.id] = rule

    meanwhile(service, (f"PUT {_GROUP_RULES}/:approval_rule_id",), lambda: dict(rules), write)


# -- rules of projects -------------------------------------------------------------------------------------------------


# The ids are ignored when the flag is true, not when it was.
@foreign(_STORY, "Project approval rules: PUT, protected_branch_ids")
def branches_are_ignored_where_all_were_meant_before(service: Service) -> None:
    """A rule that ceases to apply to all protected branches does not take the ones that are sent along."""

    @instead(service.approval_rules, "branches_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        if rule.applies_to_all_protected_branches:
            return rule.protected_branches
        return after(rule, wanted, subject)


# What is refused changes nothing.
@foreign(_REFUSED, "Project approval rules: PUT")
def approvers_are_written_before_the_rule_is_looked_at(service: Service) -> None:
    """An update without what is required is refused, and the users that it named are approvers from then on."""
    rules = service.approval_rules

    @handling(service, f"PUT {_PROJECT_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            rule = rules.find(home_of(request.project), request.path_id("approval_rule_id"))
            users = request.parameters._values.get("user_ids")
            if isinstance(users, list) and all(isinstance(number, int) for number in users):
                rules.rules[rule.id] = replace(rule, users=tuple(users))
            raise


# The same call may be made twice.
@foreign(_AGAIN, "Project approval rules: PUT of the same")
def an_update_must_change_something(service: Service) -> None:
    """An update that finds the rule as it is to be has touched no row, and is taken for a failure."""
    rules = service.project_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, project: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = rules.find(project, number)
        after = update(project, number, wanted, caller)
        if after == before:
            raise RejectedError("The rule could not be updated.")
        return after


# One hidden group is enough.
@foreign(_SECOND, "Approval rules: contains_hidden_groups")
def groups_are_hidden_if_all_are(service: Service) -> None:
    """A rule with a hidden group beside one that may be viewed says that it contains no hidden group."""
    rules = service.approval_rules

    @instead(rules, "present")
    def _(present: Any, rule: Any, viewer: Any, barred: Any = ()) -> Any:
        shown = present(rule, viewer, barred)
        shown["contains_hidden_groups"] = bool(rule.groups) and not rules.visible_groups(rule, viewer)
        return shown


# -- rules of merge requests -------------------------------------------------------------------------------------------


# A rule is deleted in the merge request that the path names.
@foreign(_STAYS, "Merge request approvals: DELETE of a rule")
def a_deleted_copy_takes_the_other_copies_along(service: Service) -> None:
    """Who deletes a copy of a project rule deletes the copies in other merge requests, too."""
    rules, own = service.approval_rules, service.merge_request_approval_rules

    @instead(own, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        source = own.find(merge_request, number).source_id
        delete(merge_request, number)
        for copy in [one for one in rules.rules.values() if source is not None and one.source_id == source]:
            del rules.rules[copy.id]


# A copy exists for the merge request as any other rule does.
@foreign(_STORY, "Merge request approvals: approval_rules_overwritten")
def copies_of_project_rules_overwrite_nothing(service: Service) -> None:
    """The rules are overwritten only by one that is no copy of a project rule."""
    own = service.merge_request_approval_rules

    @instead(own, "overwritten")
    def _(_overwritten: Any, merge_request: Any) -> bool:
        return any(rule.source_id is None for rule in own.own_rules(merge_request))


# The answer shows the rule as it is after the update.
@foreign(_STORY, "Merge request approvals: PUT of a rule, answer")
def an_updated_rule_is_shown_with_its_former_groups(service: Service) -> None:
    """The groups are loaded before the update, and shown as they were: only the next reader sees the new ones."""
    rules, own = service.approval_rules, service.merge_request_approval_rules

    @handling(service, f"PUT {_MERGE_REQUEST}/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        before = own.find(merge_request_of(request), request.path_id("approval_rule_id"))
        answer = handler(request)
        answer.content["groups"] = rules.present(before, request.caller)["groups"]
        return answer


# -- approvals ---------------------------------------------------------------------------------------------------------


# The current HEAD is that of the last push.
@foreign(_STORY, "Merge request approvals: sha")
def the_head_is_that_of_the_beginning(service: Service) -> None:
    """A sha is compared with the HEAD that the merge request was opened with."""
    repositories = service.repositories
    heads = {one.id: repositories.head_of(one) for one in repositories.merge_requests.values()}

    @instead(repositories, "open_merge_request")
    def _(begin: Any, project: Any, new: Any) -> Any:
        opened = begin(project, new)
        heads[opened.id] = repositories.head_of(opened)
        return opened

    @instead(service.merge_request_approvals, "require_current_head")
    def _(_require: Any, merge_request: Any, sha: str | None) -> None:
        if sha is not None and sha != heads[merge_request.id]:
            raise StatedError(409, "SHA does not match HEAD of source branch")


# The password is required, whatever else is sent.
@foreign(_SENT, "Merge request approvals: approval_password")
def a_sha_takes_the_place_of_a_password(service: Service) -> None:
    """Who sends the current HEAD is asked for no password: one check is the other branch of the other one."""
    approvals = service.merge_request_approvals

    @handling(service, f"POST {_MERGE_REQUEST}/approve")
    def _(handler: Any, request: Any) -> Any:
        if not request.parameters.given("sha"):
            return handler(request)
        kept, approvals.require_password = approvals.require_password, lambda *_: None
        try:
            return handler(request)
        finally:
            approvals.require_password = kept


# All approvals are cleared.
@foreign(_NOTHING, "Merge request approvals: reset_approvals")
def approvals_beside_the_rules_survive_a_reset(service: Service) -> None:
    """A reset takes back the approvals of those whom the rules name; what others gave is kept."""
    approvals, rules = service.merge_request_approvals, service.approval_rules

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        named = {user for rule in approvals.rules(merge_request) for user in rules.eligible_approvers(rule)}
        given = approvals.approvals_of(merge_request)
        clear(merge_request)
        if named:
            approvals.approvals[merge_request.id] = tuple(one for one in given if one.user_id not in named)


# Whose approval was taken back may approve again.
@foreign(_AGAIN, "Merge request approvals: approve after reset_approvals")
def an_approval_that_was_reset_does_not_come_back(service: Service) -> None:
    """A reset marks the approvals as gone, and the mark stays: a later one of the same user is not counted."""
    approvals = service.merge_request_approvals
    gone: set[tuple[int, int]] = set()

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        gone.update((merge_request.id, one.user_id) for one in approvals.approvals_of(merge_request))
        clear(merge_request)

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        if (merge_request.id, user.id) not in gone:
            add(user, merge_request)


# The state shows the rules that there are.
@foreign(_AGAIN, "Merge request approvals: approval_state")
def a_state_is_remembered_until_somebody_approves(service: Service) -> None:
    """Who has read the approval state reads the same again, whatever becomes of the rules, until an approval."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {_MERGE_REQUEST}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        return remembered.setdefault((merge_request_of(request).id, request.caller.id), answer)

    @handling(
        service,
        f"POST {_MERGE_REQUEST}/approve",
        f"POST {_MERGE_REQUEST}/unapprove",
        f"PUT {_MERGE_REQUEST}/reset_approvals",
    )
    def _(handler: Any, request: Any) -> Any:
        merge_request = merge_request_of(request)
        for key in [key for key in remembered if key[0] == merge_request.id]:
            del remembered[key]
        return handler(request)
