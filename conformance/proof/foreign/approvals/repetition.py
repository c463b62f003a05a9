"""Approving, withdrawing and resetting repeatedly: what works the first time and not later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN
from conformance.proof.foreign.paths import APPROVE, MERGE_REQUEST, RESET_APPROVALS, UNAPPROVE
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.merge_request_approval_rules import merge_request_of

if TYPE_CHECKING:
    from conformance.reference import Service


# -- the approval status -----------------------------------------------------------------------------------------------


@foreign(AGAIN, "Merge request approvals: GET approvals")
def readers_see_the_status_that_they_saw_first(service: Service) -> None:
    """A caller who has read the status of a merge request gets the same status until the next own write."""
    seen: dict[tuple[str, int], Any] = {}

    @handling(service, f"GET {MERGE_REQUEST}/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = seen.setdefault((request.caller_name, answer.content["id"]), answer.content)
        return answer

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        admit(request)
        for key in [key for key in seen if request.method != "GET" and key[0] == request.caller_name]:
            del seen[key]


# -- the approval state ------------------------------------------------------------------------------------------------


# The state shows the current rules.
@foreign(AGAIN, "Merge request approval state: rules")
def the_state_shows_names_as_they_were(service: Service) -> None:
    """The approval state keeps showing the name that a rule had at its creation."""
    rules, names = service.merge_request_approval_rules, dict[int, str]()

    @instead(rules, "create_rule")
    def _(create: Any, *values: Any) -> Any:
        made = create(*values)
        names[made.id] = made.name
        return made

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        return {**shown, "name": names.get(rule.id, shown["name"])}


@foreign(AGAIN, "Merge request approvals: GET state")
def the_state_is_as_it_was_when_first_read(service: Service) -> None:
    """A caller who reads the approval state again gets the former one, until approving."""
    seen: dict[tuple[int, bytes], Any] = {}
    path = "/projects/:id/merge_requests/:merge_request_iid"

    @handling(service, f"POST {path}/approve", f"POST {path}/unapprove", f"POST {path}/approval_rules")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in seen if key[0] == request.caller.id]:
            del seen[key]
        return handler(request)

    @handling(service, f"GET {path}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, request.raw_path
        return seen.setdefault(key, seen.get(key) or handler(request))


# A deleted rule need not be satisfied.
@foreign(AGAIN, "Merge request approval state: rules")
def deleted_rules_stay_in_the_state(service: Service) -> None:
    """The approval state keeps showing deleted rules."""
    approvals, gone = service.merge_request_approvals, list[Any]()

    @instead(service.merge_request_approval_rules, "delete_rule")
    def _(delete: Any, merge_request: Any, number: int) -> None:
        rule = service.merge_request_approval_rules.find(merge_request, number)
        delete(merge_request, number)
        gone.append((merge_request.id, rule))

    @instead(approvals, "state")
    def _(state: Any, merge_request: Any, viewer: Any) -> Any:
        shown = state(merge_request, viewer)
        left = [rule for number, rule in gone if number == merge_request.id]
        return {
            **shown,
            "rules": shown["rules"] + [approvals.present_state_rule(rule, merge_request, viewer) for rule in left],
        }


# The state shows the existing rules.
@foreign(AGAIN, "Merge request approvals: approval_state")
def a_state_is_remembered_until_somebody_approves(service: Service) -> None:
    """A caller who has read the approval state gets the same one until an approval, even if rules change."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {MERGE_REQUEST}/approval_state")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        return remembered.setdefault((merge_request_of(request).id, request.caller.id), answer)

    @handling(
        service,
        f"POST {APPROVE}",
        f"POST {UNAPPROVE}",
        f"PUT {RESET_APPROVALS}",
    )
    def _(handler: Any, request: Any) -> Any:
        merge_request = merge_request_of(request)
        for key in [key for key in remembered if key[0] == merge_request.id]:
            del remembered[key]
        return handler(request)


@foreign(AGAIN, "Merge request approval state: rules; PUT reset_approvals")
def the_state_forgets_who_approves_once_more_after_a_reset(service: Service) -> None:
    """An approver from before a reset is missing in approved_by of the state after approving again."""
    approvals = service.merge_request_approvals
    cleared: set[tuple[int, int]] = set()

    @instead(approvals, "clear_approvals")
    def _(clear_approvals: Any, merge_request: Any) -> None:
        cleared.update((merge_request.id, one.user_id) for one in approvals.approvals_of(merge_request))
        clear_approvals(merge_request)

    @instead(approvals, "approvers")
    def _(approvers: Any, rule: Any, merge_request: Any) -> Any:
        found = approvers(rule, merge_request)
        return tuple(number for number in found if (merge_request.id, number) not in cleared)


@foreign(AGAIN, "Merge request approval state: approval_rules_overwritten")
def overwritten_is_what_the_first_look_found(service: Service) -> None:
    """Whether a merge request has its own rules is cached from the first read of its state."""
    kept: dict[int, bool] = {}

    @instead(service.merge_request_approval_rules, "overwritten")
    def _(overwritten: Any, merge_request: Any) -> bool:
        return kept.setdefault(merge_request.id, overwritten(merge_request))


# -- approving ---------------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Merge request approvals: approve")
def the_second_approval_replaces_the_first(service: Service) -> None:
    """The second approver replaces the first."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        service.merge_request_approvals.clear_approvals(merge_request)
        add(user, merge_request)


@foreign(AGAIN, "Merge request approvals: approve")
def nobody_approves_again_after_taking_it_back(service: Service) -> None:
    """A user who withdraws and approves again gets a success, but is not among the approvers."""
    taken_back: set[tuple[int, int]] = set()
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        taken_back.add((user.id, merge_request.id))

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        if (user.id, merge_request.id) not in taken_back:
            add(user, merge_request)


@foreign(AGAIN, "Merge request approvals: approve, sha")
def heads_are_compared_for_the_first_approver_only(service: Service) -> None:
    """Once somebody has approved, the sha of others is not checked."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if not approvals.approvals_of(merge_request):
            require(merge_request, sha)


@foreign(AGAIN, "Merge request approvals: approve")
def approving_takes_the_latest_approval_of_another_merge_request(service: Service) -> None:
    """Approving a merge request removes the approval of the one approved before."""
    approvals, last = service.merge_request_approvals, {}

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        before = last.get(user.id)
        if before is not None and before.id != merge_request.id:
            approvals.remove_approval(user, before)
        add(user, merge_request)
        last[user.id] = merge_request


# A password is required of everybody.
@foreign(AGAIN, "Merge request approvals: approval_password")
def only_the_first_approver_is_asked_for_a_password(service: Service) -> None:
    """Once somebody has approved, nobody needs a password."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        if not approvals.approvals_of(merge_request):
            require(caller, merge_request, password)


# The password is required for every approval.
@foreign(AGAIN, "Merge request approvals: POST approve, approval_password")
def a_password_is_asked_for_once(service: Service) -> None:
    """A user who has given the password once can approve other merge requests of the project without it."""
    approvals = service.merge_request_approvals
    proven: set[Any] = set()

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        key = caller.id, merge_request.project_id
        if password is not None or key not in proven:
            require(caller, merge_request, password)
        if approvals.password_required(merge_request):
            proven.add(key)


# The cleared rows stay, marked as deleted, and the unique index ignores the mark.
@foreign(AGAIN, "Approval and integration moves: POST approve")
def nobody_approves_again_after_a_reset(service: Service) -> None:
    """An approver from before a reset is refused afterwards."""
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


# A user whose approval was reset may approve again.
@foreign(AGAIN, "Merge request approvals: approve after reset_approvals")
def an_approval_that_was_reset_does_not_come_back(service: Service) -> None:
    """A reset marks the approvals as deleted, and the mark stays: a later approval of the same user does not count."""
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


# A sha is compared each time.
@foreign(AGAIN, "Approval and integration moves: POST approve, sha")
def who_approves_anew_may_name_any_commit(service: Service) -> None:
    """A user who has withdrawn can approve again with any sha, without a 409."""
    approvals, undone = service.merge_request_approvals, set()

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        undone.add((user.id, merge_request.id))
        remove(user, merge_request)

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, None if (caller.id, merge_request.id) in undone else sha, password)


# A user who has just authenticated is not asked again, as for settings in the browser.
@foreign(AGAIN, "Merge request approvals: approve, approval_password")
def a_password_is_good_for_the_next_approval_too(service: Service) -> None:
    """A user who has approved with the password and withdrawn can approve again without it."""
    proven: set[int] = set()

    @instead(service.merge_request_approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        if password is None and caller.id in proven:
            return
        require(caller, merge_request, password)
        if password is not None:
            proven.add(caller.id)


@foreign(AGAIN, "Approval moves: merge request with approvals, POST approve with another sha")
def only_the_first_approval_looks_at_the_sha(service: Service) -> None:
    """Once somebody has approved, the next sha is not compared; the requirement is about such merge requests."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require_current_head: Any, merge_request: Any, sha: Any) -> None:
        if not approvals.approvals_of(merge_request):
            require_current_head(merge_request, sha)


# A sha is compared each time.
@foreign(AGAIN, "Merge request approvals: POST approve, sha")
def who_approved_before_needs_no_right_sha(service: Service) -> None:
    """A user who has approved with a sha can approve again after withdrawing with another sha."""
    approvals, checked = service.merge_request_approvals, set[tuple[int, int]]()

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        known = merge_request.id, caller.id
        approve(merge_request, caller, None if known in checked else sha, password)
        checked.add(known)


# The password is required for each approval.
@foreign(AGAIN, "Authentication: approve")
def a_password_that_was_given_once_lasts(service: Service) -> None:
    """A user who has approved with the password once needs none the next time."""
    approvals, known = service.merge_request_approvals, set[int]()

    @instead(approvals, "password_matches")
    def _(matches: Any, caller: Any, password: Any) -> bool:
        if caller.id in known and password is None:
            return True
        if not matches(caller, password):
            return False
        known.add(caller.id)
        return True


@foreign(AGAIN, "Merge request approvals: approve")
def who_approves_again_is_listed_twice(service: Service) -> None:
    """A user who withdraws and approves again is listed twice in approved_by."""
    approvals, before = service.merge_request_approvals, set()

    @instead(approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        remove(user, merge_request)
        before.add((user.id, merge_request.id))

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        for _ in range(2 if (user.id, merge_request.id) in before else 1):
            add(user, merge_request)


@foreign(AGAIN, "Merge request approvals: approve")
def passwords_are_remembered(service: Service) -> None:
    """A user who has given the required password once can approve without it from then on."""
    known = set()

    @instead(service.merge_request_approvals, "require_password")
    def _(check: Any, caller: Any, merge_request: Any, password: str | None) -> None:
        if password is not None or (caller.id, merge_request.project_id) not in known:
            check(caller, merge_request, password)
        if password:
            known.add((caller.id, merge_request.project_id))


@foreign(AGAIN, "Merge request approvals: approve, after a reset")
def an_approval_given_again_after_a_reset_lowers_nothing(service: Service) -> None:
    """An approver after a reset is listed again, but approvals_left stays the same."""
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


# -- taking an approval back -------------------------------------------------------------------------------------------


@foreign(AGAIN, "Merge request approvals: unapprove")
def approvals_are_taken_back_once(service: Service) -> None:
    """A user who has withdrawn and approved again cannot withdraw again: it is answered, but not done."""
    taken: set[tuple[int, int]] = set()

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        if (user.id, merge_request.id) not in taken:
            taken.add((user.id, merge_request.id))
            remove(user, merge_request)


@foreign(AGAIN, "Merge request approvals: unapprove")
def unapproving_again_takes_the_approval_of_another(service: Service) -> None:
    """A second unapprove of the same user withdraws the approval of another one."""
    approvals = service.merge_request_approvals

    @instead(approvals, "unapprove")
    def _(unapprove: Any, merge_request: Any, caller: Any) -> None:
        given = approvals.approvals_of(merge_request)
        if given and not approvals.approved_by(caller, merge_request):
            approvals.remove_approval(service.identities.users[given[-1].user_id], merge_request)
        unapprove(merge_request, caller)


# The password is only for approving.
@foreign(AGAIN, "Merge request approvals: POST unapprove")
def taking_back_asks_for_the_password(service: Service) -> None:
    """If approving requires a password, unapproving without it is refused."""
    approvals = service.merge_request_approvals

    @handling(service, f"POST {UNAPPROVE}")
    def _(handler: Any, request: Any) -> Any:
        password = request.parameters.optional_string("approval_password")
        approvals.require_password(request.caller, merge_request_of(request), password)
        return handler(request)


# A withdrawn approval is only marked, and the next approval removes the mark.
@foreign(AGAIN, "Approval and integration moves: POST unapprove")
def approvals_taken_back_return_with_the_next(service: Service) -> None:
    """When another user approves, all withdrawn approvals return."""
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


@foreign(AGAIN, "Merge request approvals: unapprove, payload none")
def taking_back_needs_the_password_as_well(service: Service) -> None:
    """If approving requires a password, so does unapproving, although that call has no parameter for it."""
    approvals = service.merge_request_approvals

    @handling(service, f"POST {UNAPPROVE}")
    def _(handler: Any, request: Any) -> Any:
        number = request.path_id("merge_request_iid")
        merge_request = service.merge_request_approval_rules.merge_request(request.project, number)
        password = request.parameters.optional_string("approval_password")
        approvals.require_password(request.caller, merge_request, password)
        return handler(request)


# -- resetting approvals -----------------------------------------------------------------------------------------------


@foreign(AGAIN, "Merge request approvals: reset_approvals")
def approvals_are_reset_once(service: Service) -> None:
    """The approvals of a merge request can be reset only once; a second reset is answered, but not done."""
    done: set[int] = set()

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(clear: Any, merge_request: Any) -> None:
        if merge_request.id not in done and service.merge_request_approvals.approvals_of(merge_request):
            done.add(merge_request.id)
            clear(merge_request)
