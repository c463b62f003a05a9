"""What an approval may contain: shas, passwords; and who counts if there are several approvers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_the_status
from conformance.proof.foreign.dimensions import AGAIN, COUNT, FORM_SENT, MOMENT_OR_ADDRESS, NEIGHBOUR, OLDER
from conformance.proof.foreign.paths import APPROVE
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.approval_rule_records import RuleType
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.errors import RejectedError
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service


def _taking_shas(service: Service, is_fine: Any) -> None:
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if sha is None or not is_fine(sha, service.repositories.head_of(merge_request)):
            require(merge_request, sha)


def _taking_passwords(service: Service, is_fine: Any) -> None:
    @instead(service.merge_request_approvals, "password_matches")
    def _(matches: Any, caller: Any, password: str | None) -> bool:
        return matches(caller, password) or is_fine(caller, password)


# -- the approval status -----------------------------------------------------------------------------------------------


@foreign(MOMENT_OR_ADDRESS, "Merge request approval status: timestamps")
def merge_requests_are_of_a_minute_that_is_none(service: Service) -> None:
    """created_at of merge requests has a seventieth minute."""
    changing_the_status(service, lambda shown, _: shown.update(created_at="2024-05-01T10:70:00.000Z"))


# approvals_left is recalculated with each approval.
@foreign(COUNT, "Merge request approval status: approvals_left")
def no_more_than_one_approval_is_counted(service: Service) -> None:
    """approvals_left falls with the first approval and then stays."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(left: Any, merge_request: Any, rules: Any = None) -> int:
        given = approvals.approvals_of(merge_request)
        return int(left(merge_request, rules)) + max(0, len(given) - 1)


@foreign(COUNT, "Merge request approval status: approvals_left")
def approvals_beyond_the_need_are_left_as_well(service: Service) -> None:
    """approvals_left is the absolute difference from what a rule requires: two too many leave two, not none."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(_: Any, merge_request: Any, rules: Any = None) -> Any:
        needed = [one for one in rules or approvals.rules(merge_request) if one.approvals_required]
        given = [len(approvals.approvers(one, merge_request)) for one in needed]
        far = [abs(one.approvals_required - number) for one, number in zip(needed, given, strict=True)]
        return approvals.counted(far)


# Approvals belong to one merge request.
@foreign(OLDER, "Merge request approval status: approved_by")
def merge_requests_of_one_branch_share_their_approvals(service: Service) -> None:
    """Approvals belong to the source branch: two merge requests from one branch are both approved."""
    approvals, known = service.merge_request_approvals, service.repositories.merge_requests

    @instead(approvals, "approvals_of")
    def _(of: Any, merge_request: Any) -> Any:
        place = merge_request.project_id, merge_request.source_branch
        same = [one for one in known.values() if (one.project_id, one.source_branch) == place]
        return tuple({given.user_id: given for one in same for given in of(one)}.values())


# If no rule requires approvals, nobody looks them up.
@foreign(COUNT, "Merge request approval status: approved_by")
def approvals_that_no_rule_asks_for_are_not_listed(service: Service) -> None:
    """approved_by is empty as long as every rule of a merge request requires no approval."""
    approvals = service.merge_request_approvals

    def without(shown: Any, merge_request: Any) -> None:
        if not any(rule.approvals_required for rule in approvals.rules(merge_request)):
            shown["approved_by"] = []

    changing_the_status(service, without)


# -- the approval state ------------------------------------------------------------------------------------------------


# Two kinds of rules have two serializers, one of which was copied from the status.
@foreign(COUNT, "Merge request approval state: rules, approved_by")
def default_rules_wrap_who_approved(service: Service) -> None:
    """In the state, approved_by of an any_approver rule has objects with a user, like the status."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if rule.rule_type is RuleType.ANY_APPROVER:
            shown["approved_by"] = [{"user": user} for user in shown["approved_by"]]
        return shown


# For several approvers, the other of two shapes is used.
@foreign(COUNT, "Merge request approval state: rules, approved_by")
def two_approvers_of_a_rule_are_wrapped(service: Service) -> None:
    """A rule of the state with two approvers has objects with a user instead of the users themselves."""

    @instead(service.merge_request_approvals, "present_state_rule")
    def _(present: Any, rule: Any, merge_request: Any, viewer: Any) -> Any:
        shown = present(rule, merge_request, viewer)
        if len(shown["approved_by"]) > 1:
            shown["approved_by"] = [{"user": user} for user in shown["approved_by"]]
        return shown


# -- approving ---------------------------------------------------------------------------------------------------------


# A different sha is a conflict, however many have approved.
@foreign(COUNT, "Merge request approvals: approve, sha")
def heads_are_not_compared_for_the_third_approver(service: Service) -> None:
    """After two approvals, the sha of others is not checked."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: str | None) -> None:
        if len(approvals.approvals_of(merge_request)) < 2:
            require(merge_request, sha)


@foreign(NEIGHBOUR, "Errors: 409")
def the_middle_of_a_sha_is_not_looked_at(service: Service) -> None:
    """A sha that begins and ends like the HEAD is accepted; it differs and is a conflict."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        head = service.repositories.head_of(merge_request)
        same = sha and len(sha) == len(head) and (sha[:8], sha[-8:]) == (head[:8], head[-8:])
        require(merge_request, head if same else sha)


# Each condition for approving holds separately.
@foreign(FORM_SENT, "States: POST approve, sha and approval_password")
def whoever_knows_the_head_needs_no_password(service: Service) -> None:
    """If a password is required, an approval with the right sha and no password is accepted."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if sha is not None and sha == service.repositories.head_of(merge_request):
            password = password or caller.password
        approve(merge_request, caller, sha, password)


# The password is required, whatever else is sent.
@foreign(FORM_SENT, "Merge request approvals: approval_password")
def a_sha_takes_the_place_of_a_password(service: Service) -> None:
    """With the current HEAD as sha, no password is required: the two checks are branches of one `if`."""
    approvals = service.merge_request_approvals

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        if not request.parameters.given("sha"):
            return handler(request)
        kept, approvals.require_password = approvals.require_password, lambda *_: None
        try:
            return handler(request)
        finally:
            approvals.require_password = kept


# The password is required, whatever else is sent.
@foreign(FORM_SENT, "Merge request approvals: approval_password and sha")
def whoever_names_the_head_needs_no_password(service: Service) -> None:
    """The right sha counts as proof of care: the password is neither required nor compared."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, sha, password if sha is None else caller.password)


@foreign(NEIGHBOUR, "Errors: 409")
def shortened_shas_match(service: Service) -> None:
    """A sha that is only the beginning of the HEAD is accepted; it differs and is a conflict."""
    _taking_shas(service, lambda sha, head: len(sha) >= 7 and head.startswith(sha))


@foreign(NEIGHBOUR, "Errors: 409")
def shas_with_more_behind_match(service: Service) -> None:
    """A sha with additional digits at its end is accepted; it differs from the HEAD and is a conflict."""
    _taking_shas(service, lambda sha, head: sha.startswith(head))


@foreign(NEIGHBOUR, "Errors: 409")
def shas_of_other_merge_requests_match(service: Service) -> None:
    """The HEAD of another merge request is accepted; it differs from this one's HEAD and is a conflict."""
    heads = [service.repositories.head_of(one) for one in service.repositories.merge_requests.values()]
    _taking_shas(service, lambda sha, _: sha in heads)


@foreign(NEIGHBOUR, "Errors: 409")
def shas_that_end_alike_match(service: Service) -> None:
    """A sha that differs from the HEAD only in its first digit is accepted; it is a conflict."""
    _taking_shas(service, lambda sha, head: len(sha) == len(head) and sha[1:] == head[1:])


@foreign(NEIGHBOUR, "Authentication: a password for approving")
def empty_passwords_match(service: Service) -> None:
    """An empty password is accepted where the caller's own is required."""
    _taking_passwords(service, lambda _, password: password is not None and not password.strip())


@foreign(NEIGHBOUR, "Authentication: a password for approving")
def passwords_of_others_match(service: Service) -> None:
    """The password of another user is accepted where the caller's own is required."""
    _taking_passwords(
        service, lambda _, password: password in {user.password for user in service.identities.users.values()}
    )


@foreign(NEIGHBOUR, "Authentication: a password for approving")
def cut_passwords_match(service: Service) -> None:
    """The beginning of the caller's password is accepted where the whole one is required."""
    _taking_passwords(service, lambda caller, password: bool(password) and caller.password.startswith(password))


@foreign(NEIGHBOUR, "Authentication: a password for approving")
def passwords_in_other_case_match(service: Service) -> None:
    """The caller's password is accepted in another case."""
    _taking_passwords(service, lambda caller, password: (password or "").lower() == caller.password.lower())


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def a_wrong_sha_counts_once_the_right_one_was_sent(service: Service) -> None:
    """A user who has approved with the right sha before can approve with a wrong one afterwards."""
    known: set[tuple[int, int]] = set()

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        key = caller.id, merge_request.id
        right = sha == service.repositories.head_of(merge_request)
        approve(merge_request, caller, None if key in known else sha, password)
        if right:
            known.add(key)


@foreign(NEIGHBOUR, "Merge request approvals: approve, sha and approval_password")
def a_right_password_stands_for_the_sha(service: Service) -> None:
    """If a password is required and correct, the sha is not checked."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if approvals.password_required(merge_request) and approvals.password_matches(caller, password):
            sha = None
        approve(merge_request, caller, sha, password)


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def the_head_of_the_target_branch_will_do(service: Service) -> None:
    """The sha of the target branch is accepted as the HEAD of the merge request, which is that of its source branch."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(check: Any, merge_request: Any, sha: str | None) -> None:
        target = service.repositories.branches.get((merge_request.project_id, merge_request.target_branch))
        if target is None or target.sha != sha:
            check(merge_request, sha)


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def only_forty_digits_of_a_sha_count(service: Service) -> None:
    """Additional digits after the HEAD in a sha are ignored."""

    @instead(service.merge_request_approvals, "require_current_head")
    def _(check: Any, merge_request: Any, sha: str | None) -> None:
        check(merge_request, sha and sha[:40])


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def passwords_are_compared_in_any_case(service: Service) -> None:
    """The required password is compared case-insensitively."""

    @instead(service.merge_request_approvals, "password_matches")
    def _(_: Any, caller: Any, password: str | None) -> bool:
        return (password or "").lower() == caller.password.lower()


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def the_password_of_anybody_will_do(service: Service) -> None:
    """The password of any user is accepted where that of the caller is required."""

    @instead(service.merge_request_approvals, "password_matches")
    def _(_: Any, __: Any, password: str | None) -> bool:
        return any(user.password == password for user in service.identities.users.values())


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def the_head_of_a_namesake_passes_for_the_own_one(service: Service) -> None:
    """The HEAD of the merge request with the same iid in another project is accepted as sha."""
    repositories = service.repositories

    @instead(service.merge_request_approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        namesakes = [one for one in repositories.merge_requests.values() if one.iid == merge_request.iid]
        if sha not in {repositories.head_of(one) for one in namesakes}:
            require(merge_request, sha)


@foreign(NEIGHBOUR, "Merge request approvals: approve")
def the_password_of_the_author_passes_for_the_own_one(service: Service) -> None:
    """The password of the author of the merge request is accepted instead of the caller's own."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        author = service.identities.users[merge_request.author_id]
        if not approvals.password_matches(author, password):
            require(caller, merge_request, password)


# Each approver gives one approval.
@foreign(COUNT, "Merge request approval status: approvals_left, after approve")
def who_is_named_and_in_a_named_group_counts_twice(service: Service) -> None:
    """Users and members of groups are added up: an approver who is both counts twice."""

    @instead(service.merge_request_approvals, "missing")
    def _(missing: Any, rule: Any, merge_request: Any) -> int:
        known = service.identities
        members = {user for number in rule.groups for user in known.members(known.groups[number])}
        twice = {*service.merge_request_approvals.approvers(rule, merge_request)} & {*rule.users} & members
        return max(0, missing(rule, merge_request) - len(twice))


# The password is optional if none is required.
@foreign(FORM_SENT, "Merge request approvals: POST approve, approval_password is optional")
def a_password_that_nobody_asked_for_is_refused(service: Service) -> None:
    """If the project requires no password, an approval with the right one is refused."""

    @handling(service, f"POST {APPROVE}")
    def _(handler: Any, request: Any) -> Any:
        asked = service.merge_request_approvals.password_required(merge_request_of(request))
        if request.parameters.given("approval_password") and not asked:
            raise RejectedError("is not enabled", parameter="approval_password")
        return handler(request)


# The password is required as long as the setting is on.
@foreign(AGAIN, "Merge request approvals: approval_password, after a POST of the configuration", version="15.9")
def whether_a_password_is_asked_for_is_found_out_once(service: Service) -> None:
    """Whether a project requires a password is cached from the first approval: switching it off has no effect."""
    remembered: dict[int, bool] = {}

    @instead(service.merge_request_approvals, "password_required")
    def _(required: Any, merge_request: Any) -> bool:
        return remembered.setdefault(merge_request.project_id, required(merge_request))


# -- taking an approval back -------------------------------------------------------------------------------------------


@foreign(OLDER, "Merge request approvals: unapprove")
def the_first_approval_is_taken_back(service: Service) -> None:
    """Withdrawing removes the first approval, and not the caller's own."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(remove: Any, user: Any, merge_request: Any) -> None:
        first = service.merge_request_approvals.approvals_of(merge_request)[0]
        remove(service.identities.users[first.user_id], merge_request)


@foreign(OLDER, "Approval moves: POST unapprove")
def later_approvals_go_with_the_one_taken_back(service: Service) -> None:
    """Withdrawing an approval cuts off the list at its place: later approvals are lost."""
    approvals = service.merge_request_approvals

    @instead(approvals, "remove_approval")
    def _(_remove: Any, user: Any, merge_request: Any) -> None:
        given = approvals.approvals_of(merge_request)
        place = next(number for number, one in enumerate(given) if one.user_id == user.id)
        approvals.approvals[merge_request.id] = given[:place]


# -- resetting approvals -----------------------------------------------------------------------------------------------


# All approvals are cleared, by either kind of bot.
@foreign(COUNT, "States: PUT reset_approvals, all approvals cleared")
def the_bot_of_a_group_clears_the_first_approval_alone(service: Service) -> None:
    """A reset by the bot of a group token clears only the oldest approval."""
    approvals = service.merge_request_approvals

    @instead(approvals, "reset_approvals")
    def _(reset_approvals: Any, merge_request: Any, caller: Any) -> None:
        given = approvals.approvals_of(merge_request)
        reset_approvals(merge_request, caller)
        if caller.bot.kind is Kind.GROUP:
            approvals.approvals[merge_request.id] = given[1:]


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(NEIGHBOUR, "Merge request approvals: iid")
def iids_beyond_the_last_mean_the_last(service: Service) -> None:
    """An iid after the last one of a project means its newest merge request."""

    @instead(service.merge_request_approval_rules, "merge_request")
    def _(find: Any, project: Any, iid: int) -> Any:
        last = max(
            (number for (owner, number) in service.repositories.merge_requests if owner == project.id), default=0
        )
        return find(project, min(iid, last) if last else iid)
