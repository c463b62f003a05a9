"""Faults of approving: who may approve, what it changes, withdrawing, resetting, and the password."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    around,
    does_nothing,
    handling,
)
from conformance.reference.areas.merge_request_approvals import Approval
from conformance.reference.errors import ForbiddenError, InvalidError, StatedError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
RULE = f"{RULES}/:approval_rule_id"

# -- approving ---------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.needs-no-parameter")
def approving_wants_a_sha(service: Service) -> None:
    """Approving without sha is refused."""

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if sha is None:
                raise InvalidError("sha is missing", parameter="sha")
            approve(merge_request, caller, sha, password)

        return approving

    around(service.merge_request_approvals, "approve", make)


def approves_nobody_given(service: Service, name: str) -> None:
    """Answer an approval with a value that is not text as served, but do not store it."""

    def make(handler: Any) -> Any:
        def pretending(request: Request) -> Response:
            before = service.store.snapshot()
            unreadable = not isinstance(json.loads(request.body or b"{}").get(name, ""), str)
            request.body = json.dumps({}).encode() if unreadable else request.body
            response = handler(request)
            if unreadable:
                service.store.restore(before)
            return response

        return pretending

    handling(service, f"POST {MERGE_REQUEST}/approve", make)


@fault("merge-request-approvals.approve.sha-is-text")
def bad_sha_approves_nobody(service: Service) -> None:
    """An approval with a sha that is not text is answered as served, but not stored."""
    approves_nobody_given(service, "sha")


@fault("merge-request-approvals.approve.password-is-text")
def bad_password_approves_nobody(service: Service) -> None:
    """An approval with a password that is not text is answered as served, but not stored."""
    approves_nobody_given(service, "approval_password")


@fault("merge-request-approvals.approve.sha-is-text")
def bad_sha_breaks(service: Service) -> None:
    """An approval with a sha that is not text is stored, and causes a server error."""

    def make(handler: Any) -> Any:
        def breaking(request: Request) -> Response:
            if isinstance(json.loads(request.body or b"{}").get("sha", ""), str):
                return handler(request)
            return Response(500, {"message": "500 Internal Server Error"})

        return breaking

    handling(service, f"POST {MERGE_REQUEST}/approve", make)


@fault("merge-request-approvals.approve.current-sha")
def every_sha_conflicts(service: Service) -> None:
    """Even the sha of the current HEAD is a conflict."""

    def make(_: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if sha is not None:
                raise StatedError(409, "409 Conflict")

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts")
def no_sha_conflicts(service: Service) -> None:
    """Any sha is accepted."""
    service.merge_request_approvals.require_current_head = does_nothing


@fault("merge-request-approvals.approve.other-sha-conflicts")
def only_the_beginning_of_a_sha_counts(service: Service) -> None:
    """A sha that begins like the HEAD is accepted."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            head = service.repositories.head_of(merge_request)
            require(merge_request, head if sha and sha[:8] == head[:8] else sha)

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("errors.stale-sha")
@fault("merge-request-approvals.approve.other-sha-conflicts")
def another_sha_is_invalid_input(service: Service) -> None:
    """Another sha is refused with 400."""

    def make(_: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if sha is not None and sha != service.repositories.head_of(merge_request):
                raise InvalidError("sha is invalid", parameter="sha")

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("merge-request-approvals.approve.other-sha-conflicts-without-approvals")
def first_approval_never_conflicts(service: Service) -> None:
    """Another sha is a conflict only if somebody has approved already."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            if approvals.approvals_of(merge_request):
                require(merge_request, sha)

        return requiring

    around(approvals, "require_current_head", make)


def before_conflict(service: Service, then: Callable[[Any, Any], None]) -> None:
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            try:
                approve(merge_request, caller, sha, password)
            except StatedError:
                then(merge_request, caller)
                raise

        return approving

    around(approvals, "approve", make)


@fault("merge-request-approvals.approve.other-sha-changes-nothing")
def conflict_clears_approvals(service: Service) -> None:
    """The 409 for another sha also clears all approvals."""
    before_conflict(service, lambda merge_request, _: service.merge_request_approvals.clear_approvals(merge_request))


@fault("merge-request-approvals.approve.other-sha-changes-nothing")
def conflict_approves(service: Service) -> None:
    """The 409 for another sha comes after the approval was added."""
    before_conflict(
        service, lambda merge_request, caller: service.merge_request_approvals.add_approval(caller, merge_request)
    )


@fault("merge-request-approvals.approve.lists-caller")
def approval_is_not_stored(service: Service) -> None:
    """Approving answers 201, but changes nothing."""
    service.merge_request_approvals.add_approval = does_nothing


@fault("merge-request-approvals.approve.lists-caller")
def approval_is_given_for_the_author(service: Service) -> None:
    """An approval is listed as one of the author."""
    approvals = service.merge_request_approvals

    def make(add: Any) -> Any:
        return lambda user, merge_request: add(service.identities.users[merge_request.author_id], merge_request)

    around(approvals, "add_approval", make)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def rules_count_nobody(service: Service) -> None:
    """The state shows nobody as approver of a rule."""

    def alter(_: Request, response: Response) -> None:
        response.content = {
            **response.content,
            "rules": [{**rule, "approved_by": []} for rule in response.content["rules"]],
        }

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.approve.lists-caller-in-rule")
def rules_count_one_approval(service: Service) -> None:
    """The state shows only the first approver of each rule, whatever the rule requires."""

    def alter(_: Request, response: Response) -> None:
        rules = [{**rule, "approved_by": rule["approved_by"][:1]} for rule in response.content["rules"]]
        response.content = {**response.content, "rules": rules}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


@fault("merge-request-approvals.approve.left-never-rises")
def approvals_left_rises(service: Service) -> None:
    """approvals_left also counts the given approvals."""
    approvals = service.merge_request_approvals
    approvals.approvals_left = lambda merge_request, *_: (
        approvals.approvals_required(merge_request) + len(approvals.approvals_of(merge_request))
    )


@fault("merge-request-approvals.approve.left-falls")
def approvals_left_stays(service: Service) -> None:
    """approvals_left is the required number, whoever has approved."""
    approvals = service.merge_request_approvals
    approvals.approvals_left = approvals.approvals_required


@fault("merge-request-approvals.approve.keeps-others")
def approval_replaces_others(service: Service) -> None:
    """An approval replaces all earlier ones."""
    approvals = service.merge_request_approvals

    def adding(user: Any, merge_request: Any) -> None:
        approvals.approvals[merge_request.id] = (Approval(user.id, service.clock.now()),)

    approvals.add_approval = adding


@fault("merge-request-approvals.approve.keeps-others")
def approval_adds_the_maintainer(service: Service) -> None:
    """An approval adds the maintainer as an approver as well."""
    approvals = service.merge_request_approvals
    maintainer = service.identities.users[service.world.actors["maintainer"].id]

    def make(add: Any) -> Any:
        def adding(user: Any, merge_request: Any) -> None:
            add(user, merge_request)
            add(maintainer, merge_request)

        return adding

    around(approvals, "add_approval", make)


@fault("merge-request-approvals.approve.repeated")
def second_approval_is_listed_twice(service: Service) -> None:
    """Approving a second time lists the caller twice."""
    approvals = service.merge_request_approvals

    def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approvals.require_current_head(merge_request, sha)
        approvals.add_approval(caller, merge_request)

    approvals.approve = approving


@fault("merge-request-approvals.approve.repeated")
def second_approval_takes_it_back(service: Service) -> None:
    """Approving a second time withdraws the approval."""
    approvals = service.merge_request_approvals

    def make(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if approvals.approved_by(caller, merge_request):
                approvals.remove_approval(caller, merge_request)
            else:
                approve(merge_request, caller, sha, password)

        return approving

    around(approvals, "approve", make)


# -- withdrawing and resetting -----------------------------------------------------------------------------------------


@fault("merge-request-approvals.unapprove.caller-is-gone")
def unapproval_changes_nothing(service: Service) -> None:
    """Unapproving answers 201, but changes nothing."""
    service.merge_request_approvals.remove_approval = does_nothing


@fault("merge-request-approvals.unapprove.keeps-others")
def unapproval_clears_all(service: Service) -> None:
    """Unapproving withdraws all approvals."""
    approvals = service.merge_request_approvals
    approvals.remove_approval = lambda user, merge_request: approvals.clear_approvals(merge_request)


@fault("merge-request-approvals.unapprove.approve-again")
def approval_once_only(service: Service) -> None:
    """A user who has withdrawn the approval cannot approve again."""
    approvals = service.merge_request_approvals
    seen: dict[Any, int] = {}

    def make(remove: Any) -> Any:
        def removing(user: Any, merge_request: Any) -> None:
            seen[user.id, merge_request.id] = 1
            remove(user, merge_request)

        return removing

    around(approvals, "remove_approval", make)

    def make_approve(approve: Any) -> Any:
        def approving(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            if (caller.id, merge_request.id) in seen:
                raise ForbiddenError
            approve(merge_request, caller, sha, password)

        return approving

    around(approvals, "approve", make_approve)


@fault("merge-request-approvals.unapprove.without-approval")
def unapproval_without_approval_takes_anothers(service: Service) -> None:
    """Unapproving without an approval withdraws the latest one of another user."""
    approvals = service.merge_request_approvals

    def make(unapprove: Any) -> Any:
        def unapproving(merge_request: Any, caller: Any) -> None:
            given = approvals.approvals_of(merge_request)
            if given and not approvals.approved_by(caller, merge_request):
                approvals.approvals[merge_request.id] = given[:-1]
            unapprove(merge_request, caller)

        return unapproving

    around(approvals, "unapprove", make)


@fault("merge-request-approvals.reset.clears-all")
def reset_leaves_one(service: Service) -> None:
    """A reset keeps the last approval."""
    approvals = service.merge_request_approvals

    def clearing(merge_request: Any) -> None:
        approvals.approvals[merge_request.id] = approvals.approvals_of(merge_request)[-1:]

    approvals.clear_approvals = clearing


@fault("errors.reset-by-others")
@fault("merge-request-approvals.reset.others-get-401")
def maintainers_get_403(service: Service) -> None:
    """A caller who is not a bot gets 403."""

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any) -> None:
            try:
                require(caller, merge_request)
            except StatedError:
                raise ForbiddenError from None

        return requiring

    around(service.merge_request_approvals, "require_bot", make)


@fault("merge-request-approvals.reset.by-others-changes-nothing")
def refused_reset_clears_all_the_same(service: Service) -> None:
    """A reset by a caller who is not a bot is done, and answered with 401."""
    approvals = service.merge_request_approvals

    def make(reset: Any) -> Any:
        def resetting(merge_request: Any, caller: Any) -> None:
            approvals.clear_approvals(merge_request)
            reset(merge_request, caller)

        return resetting

    around(approvals, "reset_approvals", make)


def spread_to_all(service: Service, name: str, place: int) -> None:
    """Apply what is done to the approvals of one merge request to all of them."""

    def make(act: Any) -> Any:
        def acting(*arguments: Any) -> None:
            for known in list(service.repositories.merge_requests.values()):
                act(*arguments[:place], known, *arguments[place + 1 :])

        return acting

    around(service.merge_request_approvals, name, make)


@fault("merge-request-approvals.approvals-are-separate")
def approval_spreads(service: Service) -> None:
    """An approval counts for all merge requests."""
    spread_to_all(service, "add_approval", 1)


@fault("merge-request-approvals.approvals-are-separate")
def unapproval_spreads(service: Service) -> None:
    """Unapproving withdraws the caller's approvals of all merge requests."""
    spread_to_all(service, "remove_approval", 1)


@fault("merge-request-approvals.approvals-are-separate")
def reset_spreads(service: Service) -> None:
    """A reset clears the approvals of all merge requests."""
    spread_to_all(service, "clear_approvals", 0)


# -- the password ------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.password.missing")
def no_password_is_needed(service: Service) -> None:
    """A password is checked only if it is sent."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any, password: Any) -> None:
            if password is not None:
                require(caller, merge_request, password)

        return requiring

    around(approvals, "require_password", make)


@fault("merge-request-approvals.password.wrong")
def any_password_will_do(service: Service) -> None:
    """Any password is accepted."""
    service.merge_request_approvals.password_matches = lambda caller, password: password is not None


@fault("merge-request-approvals.password.right")
def right_password_is_not_stored(service: Service) -> None:
    """If a password is required, even the right one is refused."""
    service.merge_request_approvals.password_matches = lambda caller, password: False


@fault("merge-request-approvals.password.wrong")
def wrong_password_approves_all_the_same(service: Service) -> None:
    """A wrong password is refused after the approval was added."""
    approvals = service.merge_request_approvals

    def make(require: Any) -> Any:
        def requiring(caller: Any, merge_request: Any, password: Any) -> None:
            wrong = password is not None and not approvals.password_matches(caller, password)
            if (
                wrong
                and approvals.password_required(merge_request)
                and not approvals.approved_by(caller, merge_request)
            ):
                approvals.add_approval(caller, merge_request)
            require(caller, merge_request, password)

        return requiring

    around(approvals, "require_password", make)
