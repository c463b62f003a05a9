"""Approvals and resets that are answered and not done, or lost to another one at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import QUICKER_CALL_SECONDS, acting_on_what_was, overtaken, undoing
from conformance.proof.foreign.dimensions import AT_ONCE, NOTHING_DONE
from conformance.proof.foreign.paths import APPROVE, MERGE_REQUEST, RESET_APPROVALS, UNAPPROVE
from conformance.proof.foreign.registry import foreign, handling, instead, meanwhile
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service


# -- approving ---------------------------------------------------------------------------------------------------------


@foreign(AT_ONCE, "Merge request approvals: approve")
def of_two_approvals_one_is_lost(service: Service) -> None:
    """Of two who approve at the same time one is not among the approvers."""
    acting_on_what_was(service, service.merge_request_approvals.approvals, f"POST {APPROVE}")


@foreign(AT_ONCE, "Merge request approvals: approve")
def approving_and_taking_back_get_in_each_others_way(service: Service) -> None:
    """Of an approval that is given while somebody else takes one back one is not as it was answered to be."""
    keys = f"POST {APPROVE}", f"POST {UNAPPROVE}"
    acting_on_what_was(service, service.merge_request_approvals.approvals, *keys)


@foreign(AT_ONCE, "Merge request approvals: approve")
def the_later_of_two_approvals_wins(service: Service) -> None:
    """Of two approvals at the same time one is lost."""
    approvals = service.merge_request_approvals.approvals

    def write(seen: Any, _: Any) -> None:
        approvals.clear()
        approvals.update(seen)

    meanwhile(service, (f"POST {APPROVE}",), lambda: dict(approvals), write)


@foreign(AT_ONCE, "Merge request approvals: approve")
def who_approves_twice_at_once_stands_there_twice(service: Service) -> None:
    """Somebody whose two approvals come at the same time stands among the approvers twice."""
    approvals, current = service.merge_request_approvals, []

    def write(seen: Any, _: Any) -> None:
        current[:] = [seen]

    @instead(approvals, "approved_by")
    def _(approved_by: Any, user: Any, merge_request: Any) -> bool:
        if not current:
            return bool(approved_by(user, merge_request))
        return any(one.user_id == user.id for one in current.pop().get(merge_request.id, ()))

    meanwhile(service, (f"POST {APPROVE}",), lambda: dict(approvals.approvals), write)


# Each is answered what they asked for.
@foreign(AT_ONCE, "Merge request approval status: GET")
def of_two_readers_both_get_what_the_later_asked_for(service: Service) -> None:
    """One object keeps which merge request is asked for: of two readers at once, one gets the status of the other's."""
    later: list[Any] = []

    async def wait(request: Any) -> None:
        if request.route.key == f"GET {MERGE_REQUEST}/approvals":
            later[:] = [request.path["merge_request_iid"]]
            await asyncio.sleep(QUICKER_CALL_SECONDS)

    service.interruption = wait

    @handling(service, f"GET {MERGE_REQUEST}/approvals")
    def _(handler: Any, request: Any) -> Any:
        request.path = {**request.path, "merge_request_iid": later[0]}
        return handler(request)


# -- taking an approval back -------------------------------------------------------------------------------------------


# A mark of what was taken back is kept, and nobody wipes it off at the next approval.
@foreign(NOTHING_DONE, "Approval and integration moves: POST unapprove")
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


@foreign(AT_ONCE, "Approval moves: POST unapprove; POST approve")
def an_approval_is_lost_while_another_is_taken_back(service: Service) -> None:
    """Taking back writes the list of approvals as it was a moment ago: who approved meanwhile did not."""
    table = service.merge_request_approvals.approvals

    def write(seen: Any, request: Any) -> None:
        one = service.repositories.merge_requests.get((request.project.id, request.path_id("merge_request_iid")))
        if one is not None and one.id in seen:
            table[one.id] = seen[one.id]

    meanwhile(service, (f"POST {UNAPPROVE}",), lambda: dict(table), write)


@foreign(NOTHING_DONE, "Merge request approvals: unapprove")
def unapproving_does_nothing(service: Service) -> None:
    """Taking an approval back is answered and not done."""
    undoing(service, f"POST {UNAPPROVE}")


# -- resetting approvals -----------------------------------------------------------------------------------------------


# Approvals are cleared rule by rule, so those that belong to none are forgotten.
@foreign(NOTHING_DONE, "Approval and integration moves: PUT reset_approvals")
def resets_leave_approvals_outside_the_rules(service: Service) -> None:
    """Where a rule names approvers, a reset clears their approvals and keeps those of everybody else."""
    approvals = service.merge_request_approvals

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        rules = [one for one in approvals.rules(merge_request) if one.rule_type is not RuleType.ANY_APPROVER]
        named = {number for rule in rules for number in service.approval_rules.eligible_approvers(rule)}
        kept = tuple(one for one in approvals.approvals_of(merge_request) if one.user_id not in named)
        clear(merge_request)
        if named and kept:
            approvals.approvals[merge_request.id] = kept


# All approvals are cleared.
@foreign(NOTHING_DONE, "Merge request approvals: reset_approvals")
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


# All approvals are cleared, wherever they are shown.
@foreign(NOTHING_DONE, "Merge request approvals: PUT reset_approvals")
def a_reset_clears_the_status_and_not_the_state(service: Service) -> None:
    """After a reset the rules of the state still say who approved, until somebody approves anew."""
    approvals, kept = service.merge_request_approvals, {}

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        kept[merge_request.id] = approvals.approvals_of(merge_request)
        clear(merge_request)

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        kept.pop(merge_request.id, None)
        add(user, merge_request)

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        if not kept.get(merge_request.id):
            return state(merge_request, viewer)
        approvals.approvals[merge_request.id] = kept[merge_request.id]
        try:
            return state(merge_request, viewer)
        finally:
            approvals.approvals.pop(merge_request.id)


# What is deleted is found by a join with the rules that count it.
@foreign(NOTHING_DONE, "States and transitions: PUT reset_approvals")
def a_reset_leaves_approvals_that_no_rule_counts(service: Service) -> None:
    """A reset clears the approvals of those whom a rule names, and leaves those of others who approved."""
    approvals = service.merge_request_approvals

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        counted = {
            user for rule in approvals.rules(merge_request) for user in service.approval_rules.eligible_approvers(rule)
        }
        left = tuple(one for one in approvals.approvals_of(merge_request) if one.user_id not in counted)
        clear(merge_request)
        if left:
            approvals.approvals[merge_request.id] = left


# All approvals are cleared.
@foreign(NOTHING_DONE, "Merge request approvals: PUT reset_approvals")
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


@foreign(NOTHING_DONE, "Merge request approvals: reset_approvals")
def bots_of_groups_reset_nothing(service: Service) -> None:
    """The bot of a group's token resets approvals, is answered, and nothing happens; that of a project does."""

    def is_of_group(request: Any) -> bool:
        return request.caller.bot is not None and request.caller.bot.kind is Kind.GROUP

    undoing(service, f"PUT {RESET_APPROVALS}", when=is_of_group)


# Whichever comes first: what was there before the reset is gone.
@foreign(AT_ONCE, "Merge request approvals: PUT reset_approvals, all approvals cleared")
def an_approval_during_a_reset_brings_the_former_ones_back(service: Service) -> None:
    """Who approves while a bot resets writes back the list of approvals as it was before the reset."""
    approvals, resets = service.merge_request_approvals, []

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        clear(merge_request)
        resets.append(merge_request.id)

    def write(seen: Any, request: Any) -> None:
        before, number = seen
        merge_request = merge_request_of(request)
        if merge_request.id in resets[number:]:
            approvals.approvals[merge_request.id] = before.get(merge_request.id, ())

    def look() -> Any:
        return dict(approvals.approvals), len(resets)

    overtaken(service, f"POST {APPROVE}", f"PUT {RESET_APPROVALS}", look, write)
