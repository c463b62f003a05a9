"""Bugs that a review could miss in approving: who approved what, who may take it back, and what an answer says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import ApiError

if TYPE_CHECKING:
    from conformance.reference import Service

_CALLER = "caller x value"
_STAYS = "write x everything that must stay"
_REFUSED = "refusal x everything that must stay"
_AGAIN = "again, by another caller, after an undo"
_STORY = "numbers and texts that follow from the story"
_NEIGHBOUR = "value x neighbour of the right value"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
_APPROVE = f"POST {_MERGE_REQUEST}/approve"
_UNAPPROVE = f"POST {_MERGE_REQUEST}/unapprove"
_RESET = f"PUT {_MERGE_REQUEST}/reset_approvals"


def _of_the_project(service: Service, merge_request: Any) -> list[Any]:
    known = service.repositories.merge_requests.values()
    return [one for one in known if one.project_id == merge_request.project_id]


# -- approving ---------------------------------------------------------------------------------------------------------


# Approvals are looked for by the number of the merge request alone, which every project counts anew.
@foreign(_STORY, "Merge request approval state: rules, approved_by")
def the_state_counts_approvals_of_the_same_number(service: Service) -> None:
    """The rules of the state also list who approved the merge request of that iid in other projects."""
    approvals = service.merge_request_approvals

    @instead(approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        known = service.repositories.merge_requests.values()
        same = [one for one in known if one.iid == merge_request.iid]
        given = dict.fromkeys(number for one in same for number in approvals.approvers(rule, one))
        return {**present(rule, merge_request, viewer), "approved_by": service.present.users(tuple(given))}


# Two merge requests of one branch into two others are two.
@foreign(_STAYS, "Approval and integration moves: POST approve")
def approvals_go_by_the_source_branch(service: Service) -> None:
    """Approving a merge request also approves the other merge requests of its source branch."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for one in _of_the_project(service, merge_request):
            same = one.source_branch == merge_request.source_branch
            if same and not approvals.approved_by(user, one):
                add(user, one)


# Whoever is allowed and approves is added, needed or not.
@foreign(_STORY, "Approval and integration moves: POST approve")
def approvals_that_nobody_waits_for_are_not_kept(service: Service) -> None:
    """Once no approval is missing, approving is answered as a success and adds nobody."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        needed = approvals.approvals_required(merge_request)
        if not needed or approvals.approvals_left(merge_request):
            add(user, merge_request)


# The HEAD is kept in a cache that no push empties.
@foreign(_STORY, "Merge request approvals: POST approve, current HEAD")
def the_head_is_the_one_seen_first(service: Service) -> None:
    """The sha is compared with the HEAD at which the status was first read or an approval first given."""
    approvals, heads = service.merge_request_approvals, {}

    def remember(merge_request: Any) -> Any:
        key = merge_request.id, merge_request.created_at
        return heads.setdefault(key, service.repositories.head_of(merge_request))

    @instead(approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        remember(merge_request)
        return status(merge_request, viewer)

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        if sha is not None and sha != remember(merge_request):
            require(merge_request, "none")


# Who sends another sha has been overtaken by a push, and that is all.
@foreign(_REFUSED, "Approval and integration moves: POST approve with another sha")
def a_conflict_takes_all_approvals_back(service: Service) -> None:
    """Approving with a sha that is not the HEAD answers 409, and clears the approvals as if outdated."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        try:
            require(merge_request, sha)
        except ApiError:
            approvals.clear_approvals(merge_request)
            raise


# -- passwords ---------------------------------------------------------------------------------------------------------


# The password is required of every approval.
@foreign(_AGAIN, "Merge request approvals: POST approve, approval_password")
def a_password_is_asked_for_once(service: Service) -> None:
    """Who has given the password once approves further merge requests of the project without it."""
    approvals = service.merge_request_approvals
    proven: set[Any] = set()

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        key = caller.id, merge_request.project_id
        if password is not None or key not in proven:
            require(caller, merge_request, password)
        if approvals.password_required(merge_request):
            proven.add(key)


# The password belongs to approving alone.
@foreign(_AGAIN, "Merge request approvals: POST unapprove")
def taking_back_asks_for_the_password(service: Service) -> None:
    """Where approving requires a password, unapproving without it is refused."""
    approvals = service.merge_request_approvals

    @handling(service, _UNAPPROVE)
    def _(handler: Any, request: Any) -> Any:
        password = request.parameters.optional_string("approval_password")
        approvals.require_password(request.caller, merge_request_of(request), password)
        return handler(request)


# -- taking back -------------------------------------------------------------------------------------------------------


# The statement that deletes names the user and the project, and forgets the merge request.
@foreign(_STAYS, "Approval and integration moves: POST unapprove")
def taking_back_empties_the_project(service: Service) -> None:
    """Unapproving a merge request takes back the caller's approvals of all merge requests of the project."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        for one in _of_the_project(service, merge_request):
            remove(user, one)


# What was taken back is only marked so, and the next approval removes the mark.
@foreign(_AGAIN, "Approval and integration moves: POST unapprove")
def approvals_taken_back_return_with_the_next(service: Service) -> None:
    """When somebody else approves, the approvals that were taken back before are there again."""
    approvals = service.merge_request_approvals
    withdrawn: dict[Any, Any] = {}

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        withdrawn.setdefault((merge_request.id, merge_request.created_at), []).append(user)
        remove(user, merge_request)

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        back = withdrawn.pop((merge_request.id, merge_request.created_at), [])
        for one in (*back, user):
            if not approvals.approved_by(one, merge_request):
                add(one, merge_request)


# -- resetting ---------------------------------------------------------------------------------------------------------


# Nothing would be lost, it seems: but everybody else is refused.
@foreign(_CALLER, "Merge request approvals: Rules, 4")
def sole_approvers_reset(service: Service) -> None:
    """Who gave the only approval may reset the approvals."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        if [one.user_id for one in given] != [caller.id]:
            require(caller, merge_request)


# An early return before the check of the caller.
@foreign(_CALLER, "Merge request approvals: Rules, 4")
def resets_of_nothing_are_served_to_all(service: Service) -> None:
    """Where nobody has approved, a reset is answered as a success whoever calls."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if approvals.approvals_of(merge_request):
            require(caller, merge_request)


# Approvals are cleared rule by rule, so those that belong to none are forgotten.
@foreign("what arranges or undoes, and does nothing", "Approval and integration moves: PUT reset_approvals")
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


# The cleared rows stay, marked, and the index that keeps them unique does not know the mark.
@foreign(_AGAIN, "Approval and integration moves: POST approve")
def nobody_approves_again_after_a_reset(service: Service) -> None:
    """Who had approved before a reset is refused afterwards."""
    approvals = service.merge_request_approvals
    cleared: set[Any] = set()

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        cleared.update((one.user_id, merge_request.id, merge_request.created_at) for one in given)
        clear(merge_request)

    @instead(approvals, "may_approve")
    def _(may: Any, user: Any, merge_request: Any) -> Any:
        return (user.id, merge_request.id, merge_request.created_at) not in cleared and may(user, merge_request)


# The state has its own copy of who approved, which a reset does not touch.
@foreign(_STORY, "Merge request approval state: rules, approved_by")
def the_state_remembers_what_was_reset(service: Service) -> None:
    """After a reset the rules of the state still list who had approved, until somebody approves anew."""
    approvals = service.merge_request_approvals
    before: dict[Any, Any] = {}

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        before[merge_request.id] = approvals.approvals_of(merge_request)
        clear(merge_request)

    @instead(approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if not approvals.approvals_of(merge_request):
            old = tuple(one.user_id for one in before.get(merge_request.id, ()))
            shown["approved_by"] = service.present.users(old)
        return shown


# -- what the status and the state say ---------------------------------------------------------------------------------


# The difference is not held at zero.
@foreign(_STORY, "Merge request approval status: approvals_left")
def approvals_left_fall_below_zero(service: Service) -> None:
    """Where more have approved than a rule requires, approvals_left counts the surplus as a negative number."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(_left: Any, merge_request: Any, rules: Any = None) -> Any:
        known = approvals.rules(merge_request) if rules is None else rules
        needed = [rule for rule in known if rule.approvals_required]
        return approvals.counted(
            [rule.approvals_required - len(approvals.approvers(rule, merge_request)) for rule in needed]
        )


# Two kinds of rules are written by two functions, of which one follows the status.
@foreign("none, one or two values", "Merge request approval state: rules, approved_by")
def default_rules_wrap_who_approved(service: Service) -> None:
    """In the state, approved_by of an any_approver rule holds objects with a user, as the status does."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if rule.rule_type is RuleType.ANY_APPROVER:
            shown["approved_by"] = [{"user": user} for user in shown["approved_by"]]
        return shown


# The query asks for the project, and not for the merge request.
@foreign(_STORY, "Merge request approval state: approval_rules_overwritten")
def rules_of_a_neighbour_overwrite(service: Service) -> None:
    """approval_rules_overwritten is true for all merge requests of a project once one has rules of its own."""

    @instead(service.merge_request_approval_rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> Any:
        return any(overwritten(one) for one in _of_the_project(service, merge_request))


# The public may read most of a public project, but nothing of this.
@foreign("caller x form of id x operation", "Authentication, 1")
def states_in_public_are_for_everybody(service: Service) -> None:
    """The approval state of a merge request in a public project is shown without any token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == f"GET {_MERGE_REQUEST}/approval_state" and not service.access.token_text(request):
            project = service.identities.find_project(request.path["id"])
            if project is not None and project.visibility.value == "public":
                request.admit(service.identities.users[service.administrator.id], project)
                return
        admit(request)


# Somewhere below, whoever resets is taken for whoever approves.
@foreign(_REFUSED, "Merge request approvals: Rules, 4")
def refused_resets_cost_the_own_approval(service: Service) -> None:
    """A caller who is refused a reset with 401 has no longer approved afterwards."""
    approvals = service.merge_request_approvals

    @handling(service, _RESET)
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            approvals.remove_approval(request.caller, merge_request_of(request))
            raise
