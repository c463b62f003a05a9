"""Small bugs of a tired developer in what concerns the approving: rules, approvals and how a project wants them."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.errors import RejectedError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.areas.project_approval_configuration import ConfigurationChange

_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_STAY = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_STORY = "numbers and texts that follow from the story"
_NEIGHBOUR = "value x neighbour of the right value"
_RESETS = "settings and their resets"
_OF_TWO = "the older of two"
_NOTHING = "what arranges or undoes, and does nothing"
_RULES = "/projects/:id/approval_rules"
_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


# -- project approval rules --------------------------------------------------------------------------------------------


# Both lists are added.
@foreign(_SECOND, "Project approval rules: user_ids and usernames")
def no_ids_are_no_usernames(service: Service) -> None:
    """An empty list of ids empties the rule, whatever usernames come with it."""

    @instead(service.approval_rules, "users_named")
    def _(named: Any, wanted: Any, subject: Any) -> Any:
        return () if wanted.user_ids == () else named(wanted, subject)


# Groups that are sent are the groups of the rule.
@foreign(_AGAIN, "Project approval rules: PUT, group_ids")
def a_group_that_is_sent_again_leaves_the_rule(service: Service) -> None:
    """An update changes what it names: a group that the rule already has is taken out."""

    @instead(service.approval_rules, "groups_after")
    def _(after: Any, rule: Any, wanted: Any, caller: Any) -> Any:
        groups = after(rule, wanted, caller)
        if rule.home.level is not Level.PROJECT or wanted.group_ids is None:
            return groups
        return tuple(number for number in groups if number not in rule.groups)


# A single rule is read as it is.
@foreign(_AGAIN, "Project approval rules: GET /:approval_rule_id")
def a_rule_that_was_read_stays_until_it_is_renamed(service: Service) -> None:
    """A single rule is remembered under its id and name; a change that keeps the name shows in the list alone."""
    rules, remembered = service.project_approval_rules, dict[tuple[int, str], Any]()

    @handling(service, f"GET {_RULES}/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        rule = rules.find(request.project, request.path_id("approval_rule_id"))
        answer = handler(request)
        return remembered.setdefault((rule.id, rule.name), answer)


# -- merge request approval rules --------------------------------------------------------------------------------------


# Every merge request may have a copy.
@foreign(_STAY, "Merge request approvals: Rules, 1")
def a_copy_moves_to_the_merge_request_that_asks_last(service: Service) -> None:
    """There is one copy of a rule: who copies it for a second merge request takes it from the first."""
    rules = service.approval_rules

    @instead(rules, "add_rule")
    def _(add: Any, candidate: Any) -> Any:
        if candidate.source_id is not None:
            for other in [one for one in rules.rules.values() if one.source_id == candidate.source_id]:
                del rules.rules[other.id]
        return add(candidate)


# The number that is sent is the number of the rule.
@foreign(_NEIGHBOUR, "Merge request approvals: PUT approval_rules, approvals_required")
def rules_of_merge_requests_only_get_stricter(service: Service) -> None:
    """A smaller number than before is answered with success, and not kept."""
    rules = service.merge_request_approval_rules

    @instead(rules, "update_rule")
    def _(update: Any, merge_request: Any, number: int, wanted: Any, caller: Any) -> Any:
        before = rules.find(merge_request, number).approvals_required
        if wanted.approvals_required is not None:
            wanted = replace(wanted, approvals_required=max(before, wanted.approvals_required))
        return update(merge_request, number, wanted, caller)


# Approvers that an update does not name are removed.
@foreign(_STAY, "Merge request approvals: Rules, 2")
def usernames_only_add_to_rules_of_merge_requests(service: Service) -> None:
    """An update that names approvers by username keeps those that the rule had."""

    @instead(service.approval_rules, "users_after")
    def _(after: Any, rule: Any, wanted: Any, subject: Any) -> Any:
        users = after(rule, wanted, subject)
        if rule.home.level is not Level.MERGE_REQUEST or not wanted.usernames:
            return users
        return tuple(dict.fromkeys((*rule.users, *users)))


# -- merge request approvals -------------------------------------------------------------------------------------------


# A sha that is passed is compared each time.
@foreign(_AGAIN, "Merge request approvals: POST approve, sha")
def who_approved_before_needs_no_right_sha(service: Service) -> None:
    """Once somebody approved with a sha, another sha is not looked at when they approve again after taking it back."""
    approvals, checked = service.merge_request_approvals, set[tuple[int, int]]()

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        known = merge_request.id, caller.id
        approve(merge_request, caller, None if known in checked else sha, password)
        checked.add(known)


# A merge request is approved by whoever approved it.
@foreign(_OF_TWO, "Merge request approval status: approved_by")
def merge_requests_of_one_branch_share_their_approvals(service: Service) -> None:
    """Approvals belong to the source branch: of two merge requests from one branch both are approved."""
    approvals, known = service.merge_request_approvals, service.repositories.merge_requests

    @instead(approvals, "approvals_of")
    def _(of: Any, merge_request: Any) -> Any:
        place = merge_request.project_id, merge_request.source_branch
        same = [one for one in known.values() if (one.project_id, one.source_branch) == place]
        return tuple({given.user_id: given for one in same for given in of(one)}.values())


# All approvals are cleared.
@foreign(_NOTHING, "Merge request approvals: PUT reset_approvals")
def a_reset_clears_approvals_of_those_whom_rules_name(service: Service) -> None:
    """Only the approvals that a rule asks for by name are cleared; who approved beside them stays."""
    approvals = service.merge_request_approvals

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        named = {user for rule in approvals.rules(merge_request) for user in rule.users}
        kept = tuple(given for given in approvals.approvals_of(merge_request) if given.user_id not in named)
        clear(merge_request)
        if kept:
            approvals.approvals[merge_request.id] = kept


# A title is the title of the merge request.
@foreign(_STORY, "Merge request approval status: title and description")
def texts_are_escaped_as_for_a_page(service: Service) -> None:
    """Signs that mean something in HTML are escaped in titles and descriptions."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        return {**shown, "title": escape(shown["title"]), "description": escape(shown["description"])}


# The password is required for each approval.
@foreign(_AGAIN, "Authentication: approve")
def a_password_that_was_given_once_lasts(service: Service) -> None:
    """Who approved with the password once needs none the next time."""
    approvals, known = service.merge_request_approvals, set[int]()

    @instead(approvals, "password_matches")
    def _(matches: Any, caller: Any, password: Any) -> bool:
        if caller.id in known and password is None:
            return True
        if not matches(caller, password):
            return False
        known.add(caller.id)
        return True


# -- project approval configuration ------------------------------------------------------------------------------------


# The answer is the configuration, with what was not sent as well.
@foreign(_RESETS, "Project approval configuration: POST", version="15.11")
def what_is_not_sent_is_shown_as_it_was_at_first(service: Service) -> None:
    """The answer to a change shows what was sent on top of what a project begins with; what is kept is right."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: ConfigurationChange) -> Any:
        change(project, wanted)
        return wanted.on(configurations.initial_configuration())


# A change that is refused changes nothing.
@foreign(_REFUSED, "Project approval configuration: selective_code_owner_removals", version="15.11")
def a_refused_pair_leaves_the_other_flags_changed(service: Service) -> None:
    """Flags are written one after the other, and those before the refused one stay written."""
    configurations = service.project_approval_configurations

    @instead(configurations, "change_configuration")
    def _(change: Any, project: Any, wanted: ConfigurationChange) -> Any:
        try:
            return change(project, wanted)
        except RejectedError:
            written = replace(wanted, selective_code_owner_removals=None, reset_approvals_on_push=None)
            change(project, written)
            raise
