"""Approvals and resets that are answered but not done, or lost because of a concurrent call."""

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
    """If two users approve concurrently, one is not among the approvers."""
    acting_on_what_was(service, service.merge_request_approvals.approvals, f"POST {APPROVE}")


@foreign(AT_ONCE, "Merge request approvals: approve")
def approving_and_taking_back_get_in_each_others_way(service: Service) -> None:
    """If one user approves while another withdraws, one of the two has no effect."""
    keys = f"POST {APPROVE}", f"POST {UNAPPROVE}"
    acting_on_what_was(service, service.merge_request_approvals.approvals, *keys)


@foreign(AT_ONCE, "Merge request approvals: approve")
def the_later_of_two_approvals_wins(service: Service) -> None:
    """If two users approve concurrently, one approval is lost."""
    approvals = service.merge_request_approvals.approvals

    def write(seen: Any, _: Any) -> None:
        approvals.clear()
        approvals.update(seen)

    meanwhile(service, (f"POST {APPROVE}",), lambda: dict(approvals), write)


@foreign(AT_ONCE, "Merge request approvals: approve")
def who_approves_twice_at_once_stands_there_twice(service: Service) -> None:
    """A user who sends two concurrent approvals is listed twice."""
    approvals, current = service.merge_request_approvals, []

    def write(seen: Any, _: Any) -> None:
        current[:] = [seen]

    @instead(approvals, "approved_by")
    def _(approved_by: Any, user: Any, merge_request: Any) -> bool:
        if not current:
            return bool(approved_by(user, merge_request))
        return any(one.user_id == user.id for one in current.pop().get(merge_request.id, ()))

    meanwhile(service, (f"POST {APPROVE}",), lambda: dict(approvals.approvals), write)


# Each caller gets the requested merge request.
@foreign(AT_ONCE, "Merge request approval status: GET")
def of_two_readers_both_get_what_the_later_asked_for(service: Service) -> None:
    """The requested merge request is kept in a shared object: of two concurrent readers, one gets the other's status."""
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


# A mark for a withdrawn approval is stored, and the next approval does not remove it.
@foreign(NOTHING_DONE, "Approval and integration moves: POST unapprove")
def an_approval_is_taken_back_once(service: Service) -> None:
    """A user who approves again after withdrawing cannot withdraw again: the call succeeds without effect."""
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
    """Withdrawing writes back the list of approvals from a moment before: an approval given meanwhile is lost."""
    table = service.merge_request_approvals.approvals

    def write(seen: Any, request: Any) -> None:
        one = service.repositories.merge_requests.get((request.project.id, request.path_id("merge_request_iid")))
        if one is not None and one.id in seen:
            table[one.id] = seen[one.id]

    meanwhile(service, (f"POST {UNAPPROVE}",), lambda: dict(table), write)


@foreign(NOTHING_DONE, "Merge request approvals: unapprove")
def unapproving_does_nothing(service: Service) -> None:
    """Withdrawing an approval is answered, but not done."""
    undoing(service, f"POST {UNAPPROVE}")


# -- resetting approvals -----------------------------------------------------------------------------------------------


# Approvals are cleared rule by rule, so those outside of rules stay.
@foreign(NOTHING_DONE, "Approval and integration moves: PUT reset_approvals")
def resets_leave_approvals_outside_the_rules(service: Service) -> None:
    """If a rule names approvers, a reset clears their approvals and keeps all others."""
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
    """A reset clears the approvals of users that the rules name, and keeps the others."""
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
    """After a reset, the rules of the state still show the former approvers, until the next approval."""
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


# The deleted rows are found by a join with the rules that count them.
@foreign(NOTHING_DONE, "States and transitions: PUT reset_approvals")
def a_reset_leaves_approvals_that_no_rule_counts(service: Service) -> None:
    """A reset clears the approvals of users that a rule names, and keeps those of others."""
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
    """A reset clears only approvals that a rule names; other approvals stay."""
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
    """A reset by the bot of a group token is answered but does nothing; one by the bot of a project token works."""

    def is_of_group(request: Any) -> bool:
        return request.caller.bot is not None and request.caller.bot.kind is Kind.GROUP

    undoing(service, f"PUT {RESET_APPROVALS}", when=is_of_group)


# In either order, the approvals from before the reset are gone.
@foreign(AT_ONCE, "Merge request approvals: PUT reset_approvals, all approvals cleared")
def an_approval_during_a_reset_brings_the_former_ones_back(service: Service) -> None:
    """An approval during a reset writes back the list of approvals from before the reset."""
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
