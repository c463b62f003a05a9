"""What else approving, withdrawing and resetting change, when they are served and when they are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_the_status, merge_requests_of_the_project
from conformance.proof.foreign.dimensions import NOTHING_DONE, REFUSED, SIDE_EFFECT
from conformance.proof.foreign.paths import MERGE_REQUEST, RESET_APPROVALS
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import ApiError, StatedError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service


# -- the approval state ------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Merge request approval state: approval_rules_overwritten")
def one_overwritten_merge_request_makes_all_so(service: Service) -> None:
    """approval_rules_overwritten is true once any merge request of the project has its own rules."""
    rules = service.merge_request_approval_rules

    @instead(rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> bool:
        all_of = service.repositories.merge_requests.values()
        return any(overwritten(one) for one in all_of if one.project_id == merge_request.project_id)


@foreign(SIDE_EFFECT, "Merge request approvals: GET state")
def reading_the_state_takes_approvals_back(service: Service) -> None:
    """Reading the state withdraws the caller's own approval."""

    @handling(service, f"GET {MERGE_REQUEST}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        found = service.merge_request_approval_rules.merge_request(
            request.project, request.path_id("merge_request_iid")
        )
        service.merge_request_approvals.remove_approval(request.caller, found)
        return answer


# -- approving ---------------------------------------------------------------------------------------------------------


# An approval is only for the merge request in the path.
@foreign(SIDE_EFFECT, "Merge request approvals: approve")
def approvals_land_on_the_next_merge_request_too(service: Service) -> None:
    """An approval is also stored for the merge request with the next iid."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        add(user, merge_request)
        known = service.repositories.merge_requests
        for (project, iid), other in list(known.items()):
            is_next = (project, iid) == (merge_request.project_id, merge_request.iid + 1)
            if is_next and not approvals.approved_by(user, other):
                add(user, other)


# Two merge requests from one branch into different branches are different things.
@foreign(SIDE_EFFECT, "Approval and integration moves: POST approve")
def approvals_go_by_the_source_branch(service: Service) -> None:
    """Approving a merge request also approves the others with the same source branch."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for one in merge_requests_of_the_project(service, merge_request):
            same = one.source_branch == merge_request.source_branch
            if same and not approvals.approved_by(user, one):
                add(user, one)


# A different sha only means that there was a push meanwhile.
@foreign(REFUSED, "Approval and integration moves: POST approve with another sha")
def a_conflict_takes_all_approvals_back(service: Service) -> None:
    """Approving with a sha that is not the HEAD answers 409, and clears all approvals as outdated."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        try:
            require(merge_request, sha)
        except ApiError:
            approvals.clear_approvals(merge_request)
            raise


# The caller looked at something else, so the approval is withdrawn before the refusal.
@foreign(REFUSED, "Approval and integration moves: POST approve with another sha")
def an_outdated_sha_takes_the_own_approval_back(service: Service) -> None:
    """An approver who calls again with a sha that is not the HEAD gets 409, and the approval is gone."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(SIDE_EFFECT, "Merge request approvals: approve")
def approvals_go_by_the_iid_alone(service: Service) -> None:
    """Approving a merge request also approves the one with the same iid in every project."""
    approvals = service.merge_request_approvals
    for name, place in (("approvals_of", 0), ("add_approval", 1), ("remove_approval", 1), ("clear_approvals", 0)):

        @instead(approvals, name)
        def _(method: Any, *given: Any, place: int = place) -> Any:
            alike = replace(given[place], id=-given[place].iid)
            return method(*given[:place], given[place] if given[place].id < 0 else alike)


@foreign(SIDE_EFFECT, "Merge request approvals: approve")
def an_approval_reaches_the_same_number_in_the_projects_beside(service: Service) -> None:
    """Approving a merge request also approves the one with the same iid in the other projects of the group."""
    approvals, identities = service.merge_request_approvals, service.identities

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        around = identities.projects[merge_request.project_id].namespace_id
        for (number, iid), one in service.repositories.merge_requests.items():
            beside = number in identities.projects and identities.projects[number].namespace_id == around
            if beside and iid == merge_request.iid and not approvals.approved_by(user, one):
                add(user, one)


@foreign(REFUSED, "Merge request approvals: approve")
def another_sha_takes_an_approval_back(service: Service) -> None:
    """An approver who then approves another commit gets 409, and the approval is gone."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, *sent: Any) -> None:
        try:
            approve(merge_request, caller, *sent)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(SIDE_EFFECT, "Merge request approvals: approve")
def approvals_reach_other_merge_requests(service: Service) -> None:
    """Approving a merge request also approves the others of the project."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            known = service.merge_request_approvals.approved_by(user, one)
            if one.project_id == merge_request.project_id and not known:
                add(user, one)


@foreign(REFUSED, "Merge request approvals: approve with a sha")
def conflicts_take_earlier_approvals_back(service: Service) -> None:
    """A conflict about the sha withdraws the approvals of others; it must change nothing."""
    from conformance.reference.errors import StatedError  # noqa: PLC0415

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        try:
            require(merge_request, sha)
        except StatedError:
            service.merge_request_approvals.clear_approvals(merge_request)
            raise


@foreign(REFUSED, "Merge request approvals: approve, 409 after an approval")
def a_wrong_sha_takes_back_the_approval_given_before(service: Service) -> None:
    """An approver who approves again with another sha is refused with 409, and the approval is gone."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        try:
            approve(merge_request, caller, sha, password)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


# A merge request is created once.
@foreign(SIDE_EFFECT, "Merge request approval status: created_at")
def a_merge_request_is_as_young_as_its_last_approval(service: Service) -> None:
    """Both timestamps are set at every write: created_at is the time of the newest approval."""

    def change(shown: Any, merge_request: Any) -> None:
        for approval in service.merge_request_approvals.approvals_of(merge_request):
            shown["created_at"] = service.present.timestamp(approval.approved_at)

    changing_the_status(service, change)


# An approval lowers what is left, and not what a rule requires.
@foreign(SIDE_EFFECT, "Merge request approvals: POST approve and the rules, approvals_required")
def an_approval_counts_down_what_the_rule_requires(service: Service) -> None:
    """What is left is counted down in the rule itself, which is stored: afterwards it requires one approval less."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        add(user, merge_request)
        for rule in service.merge_request_approval_rules.own_rules(merge_request):
            if user.id in service.approval_rules.eligible_approvers(rule) and rule.approvals_required > 1:
                less = rule.approvals_required - 1
                service.approval_rules.rules[rule.id] = replace(rule, approvals_required=less)


# The users of a rule are those that a call named.
@foreign(SIDE_EFFECT, "Merge request approvals: POST approve and the rules, users")
def who_approves_for_a_group_becomes_a_user_of_the_rule(service: Service) -> None:
    """A group member who approves is stored in the rule, and is one of its users from then on."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        add(user, merge_request)
        for rule in service.merge_request_approval_rules.own_rules(merge_request):
            if user.id in {*service.approval_rules.eligible_approvers(rule)} - {*rule.users}:
                service.approval_rules.rules[rule.id] = replace(rule, users=(*rule.users, user.id))


# A refusal changes nothing anywhere.
@foreign(REFUSED, "Merge request approval state: rules, approved_by")
def an_approval_with_a_wrong_password_stands_in_the_state(service: Service) -> None:
    """An approval that is refused because of its password is not in the status, but the rules in the state show it."""
    refused: dict[int, int] = {}
    approvals = service.merge_request_approvals

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        refused[merge_request.id] = caller.id
        require(caller, merge_request, password)
        del refused[merge_request.id]

    @instead(approvals, "approvers")
    def _(approvers: Any, rule: Any, merge_request: Any) -> Any:
        number = refused.get(merge_request.id)
        more = {number} & {*service.approval_rules.eligible_approvers(rule)}
        return tuple(dict.fromkeys((*approvers(rule, merge_request), *more)))


# -- taking an approval back -------------------------------------------------------------------------------------------


# The DELETE statement has a condition for user and project, but none for the merge request.
@foreign(SIDE_EFFECT, "Approval and integration moves: POST unapprove")
def taking_back_empties_the_project(service: Service) -> None:
    """Unapproving a merge request withdraws the caller's approvals of all merge requests of the project."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        for one in merge_requests_of_the_project(service, merge_request):
            remove(user, one)


@foreign(SIDE_EFFECT, "Merge request approvals: unapprove")
def later_approvals_are_taken_back_too(service: Service) -> None:
    """Withdrawing an approval also withdraws all later approvals."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(_: Any, user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = [one.user_id for one in given].index(user.id)
        approvals.approvals[merge_request.id] = given[:place]


@foreign(SIDE_EFFECT, "Merge request approvals: unapprove")
def unapproving_reaches_other_merge_requests(service: Service) -> None:
    """Withdrawing an approval also withdraws the caller's approvals of the project's other merge requests."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            if one.project_id == merge_request.project_id:
                remove(user, one)


# -- resetting approvals -----------------------------------------------------------------------------------------------


# Internally, the caller of the reset is treated as an approver.
@foreign(REFUSED, "Merge request approvals: Rules, 4")
def refused_resets_cost_the_own_approval(service: Service) -> None:
    """A caller whose reset is refused with 401 loses the own approval."""
    approvals = service.merge_request_approvals

    @handling(service, f"PUT {RESET_APPROVALS}")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            approvals.remove_approval(request.caller, merge_request_of(request))
            raise


# All approvals are cleared.
@foreign(SIDE_EFFECT, "Approval and integration moves: PUT reset_approvals")
def approvals_of_maintainers_outlive_a_reset(service: Service) -> None:
    """A reset clears the approvals of developers, and keeps those of maintainers and owners."""
    approvals, known = service.merge_request_approvals, service.identities

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        project, given = known.projects[merge_request.project_id], approvals.approvals_of(merge_request)
        clear(merge_request)
        kept = [one for one in given if known.role_in(known.users[one.user_id], project) >= Role.MAINTAINER]
        if kept:
            approvals.approvals[merge_request.id] = tuple(kept)


# Everybody may withdraw the own approval; the refusal comes after that.
@foreign(REFUSED, "Approval and integration moves: PUT reset_approvals by others")
def a_refused_reset_takes_the_own_approval_back(service: Service) -> None:
    """An approver whose reset is refused with 401 loses the own approval, although nothing may change."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        try:
            reset(merge_request, caller)
        except StatedError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(SIDE_EFFECT, "Merge request approvals: reset_approvals")
def resets_reach_other_merge_requests(service: Service) -> None:
    """Resetting the approvals of a merge request also resets those of the project's others."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            if one.project_id == merge_request.project_id:
                clear(one)


@foreign(SIDE_EFFECT, "Merge request approvals: reset_approvals")
def resets_delete_rules(service: Service) -> None:
    """Resetting the approvals of a merge request also deletes its own rules."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        clear(merge_request)
        for rule in service.merge_request_approval_rules.own_rules(merge_request):
            service.approval_rules.delete_rule(rule)


@foreign(NOTHING_DONE, "Merge request approvals: reset_approvals, where anybody may approve")
def resets_leave_approvals_that_no_rule_names(service: Service) -> None:
    """A reset clears the approvals of users that a rule names; other approvals stay."""
    approvals, rules = service.merge_request_approvals, service.merge_request_approval_rules

    @instead(approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        named = {number for rule in rules.own_rules(merge_request) for number in rule.users}
        kept = tuple(one for one in approvals.approvals_of(merge_request) if one.user_id not in named)
        clear(merge_request)
        approvals.approvals[merge_request.id] = kept


@foreign(REFUSED, "Merge request approvals: reset_approvals, 401")
def a_refused_reset_takes_back_the_approval_of_who_asked(service: Service) -> None:
    """An approver whose reset is refused with 401 loses the own approval."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        try:
            reset(merge_request, caller)
        except ApiError:
            approvals.remove_approval(caller, merge_request)
            raise


@foreign(NOTHING_DONE, "Merge request approvals: reset_approvals")
def a_reset_spares_maintainers(service: Service) -> None:
    """A reset keeps the approvals of users with at least the Maintainer role in the project."""
    approvals = service.merge_request_approvals

    @instead(approvals, "clear_approvals")
    def _(_clear: Any, merge_request: Any) -> None:
        project = service.identities.projects[merge_request.project_id]
        users = service.identities.users
        approvals.approvals[merge_request.id] = tuple(
            one
            for one in approvals.approvals_of(merge_request)
            if service.identities.role_in(users[one.user_id], project) >= Role.MAINTAINER
        )


# The DELETE statement has no condition for the project.
@foreign(SIDE_EFFECT, "Merge request approvals: unapprove")
def an_unapproval_goes_by_the_iid_alone(service: Service) -> None:
    """Withdrawing an approval also withdraws the caller's approval of the same iid in every project."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        for one in list(service.repositories.merge_requests.values()):
            if one.iid == merge_request.iid:
                remove(user, one)
