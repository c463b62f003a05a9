"""Faults of approvals that only a later step of a story shows: beside others, at once, and in other places."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, beforehand, handling, let_in, sent
from conformance.proof.written.approvals_neighbours import AT_ONCE, MERGE_REQUEST, losing
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.areas.merge_request_approvals import ApprovalRefusedError
from conformance.reference.errors import NotFoundError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

# -- who has approved --------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.keeps-others")
def answer_to_an_approval_shows_only_its_caller(service: Service) -> None:
    """The answer to an approval shows nobody who approved before."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        own = [one for one in content["approved_by"] if one["user"]["id"] == request.caller.id]
        response.content = {**content, "approved_by": own}

    altering(service, f"POST {MERGE_REQUEST}/approve", alter)


def _kept_without(service: Service, name: str) -> None:
    """Store only approvals that do not send a parameter; answer all alike."""
    approvals = service.merge_request_approvals

    def make(handler: Callable[..., Any]) -> Any:
        def forgetful(request: Request) -> Any:
            merge_request = merge_request_of(request)
            before = approvals.approvals_of(merge_request)
            response = handler(request)
            if name in sent(request):
                approvals.approvals[merge_request.id] = before
            return response

        return forgetful

    handling(service, f"POST {MERGE_REQUEST}/approve", make)


@fault("merge-request-approvals.approve.current-sha")
def approvals_of_the_head_are_not_kept(service: Service) -> None:
    """An approval that names the current HEAD is served, and not stored."""
    _kept_without(service, "sha")


@fault("merge-request-approvals.password.right")
def approvals_with_a_password_are_not_kept(service: Service) -> None:
    """An approval that sends a password is served, and not stored."""
    _kept_without(service, "approval_password")


@fault("merge-request-approvals.approve.answer")
def a_password_that_nobody_asked_for_is_refused(service: Service) -> None:
    """Whoever sends a password where none is required may not approve."""

    def refuse(merge_request: Any, _: Any, __: Any, password: Any) -> None:
        if password is not None and not service.merge_request_approvals.password_required(merge_request):
            raise ApprovalRefusedError

    beforehand(service.merge_request_approvals, "approve", refuse)


@fault("merge-request-approvals.unapprove.keeps-others")
def maintainers_withdraw_every_approval(service: Service) -> None:
    """A maintainer who withdraws an approval withdraws those of all others as well."""
    approvals = service.merge_request_approvals

    def clear(_: None, user: Any, merge_request: Any) -> None:
        project = service.merge_request_approval_rules.project_of(merge_request)
        if service.identities.role_in(user, project) >= Role.MAINTAINER:
            approvals.clear_approvals(merge_request)

    afterwards(approvals, "remove_approval", clear)


@fault("merge-request-approvals.reset.others-get-401")
def reporters_reset_approvals(service: Service) -> None:
    """Whoever has the role of a reporter resets approvals like a bot."""
    tokens = {service.world.actors["reporter"].token.encode()}

    def is_it(request: Request) -> bool:
        is_reset = request.method == "PUT" and request.raw_path.endswith(b"/reset_approvals")
        return is_reset and request.headers.get(b"private-token") in tokens

    let_in(service, is_it, "project_bot")


@fault("merge-request-approvals.state.rule.approved-by-have-approved")
def withdrawn_approvals_count_in_rules(service: Service) -> None:
    """approved_by of a rule in the state goes on listing those who have withdrawn their approval."""
    withdrawn: set[tuple[int, int]] = set()
    approvals = service.merge_request_approvals

    def remember(user: Any, merge_request: Any) -> None:
        withdrawn.add((merge_request.id, user.id))

    def with_them(shown: Any, rule: Any, merge_request: Any, _: Any) -> Any:
        gone = [user for where, user in withdrawn if where == merge_request.id and user in rule.users]
        known = {user["id"] for user in shown["approved_by"]}
        more = service.present.users([user for user in gone if user not in known])
        return {**shown, "approved_by": [*shown["approved_by"], *more]}

    beforehand(approvals, "remove_approval", remember)
    afterwards(approvals, "present_state_rule", with_them)


# -- at once -----------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.repeated")
def two_approvals_at_once_are_two(service: Service) -> None:
    """Two concurrent approvals of one caller are both listed, because each looks before the other is stored."""
    approvals, key = service.merge_request_approvals, f"POST {MERGE_REQUEST}/approve"
    seen: dict[int, dict[Any, Any]] = {}

    async def wait(request: Request) -> None:
        if request.route.key == key:
            seen[id(request)] = dict(approvals.approvals)
            await asyncio.sleep(AT_ONCE)

    def make(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Any:
            merge_request = merge_request_of(request)
            now = approvals.approvals_of(merge_request)
            approvals.approvals[merge_request.id] = seen.pop(id(request), {}).get(merge_request.id, ())
            known = approvals.approvals_of(merge_request)
            try:
                return handler(request)
            finally:
                new = approvals.approvals_of(merge_request)[len(known) :]
                approvals.approvals[merge_request.id] = (*now, *new)

        return late

    service.interruption = wait
    handling(service, key, make)


@fault("merge-request-approvals.approve.at-once")
def a_withdrawal_undoes_approvals_beside_it(service: Service) -> None:
    """Withdrawing an approval writes all approvals as they were a moment before."""
    losing(service, f"POST {MERGE_REQUEST}/unapprove", beside=f"POST {MERGE_REQUEST}/approve")


# -- where -------------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.status.describes-its-merge-request")
def the_status_has_the_iid_as_id(service: Service) -> None:
    """The id in the approval status is the iid."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "id": content["iid"]}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.status.describes-its-merge-request")
def the_answer_to_an_approval_has_no_title(service: Service) -> None:
    """The answer to an approval has an empty title."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "title": ""}

    altering(service, f"POST {MERGE_REQUEST}/approve", alter)


@fault("merge-request-approvals.status.title-and-description")
def merge_requests_of_a_branch_have_one_title(service: Service) -> None:
    """The status shows the title of the first merge request from the same source branch."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        known = service.repositories.merge_requests
        own = known[request.project.id, content["iid"]]
        alike = [one for one in known.values() if one.project_id == own.project_id]
        first = next(one for one in alike if one.source_branch == own.source_branch)
        response.content = {**content, "title": first.title}

    altering(service, f"GET {MERGE_REQUEST}/approvals", alter)


@fault("merge-request-approvals.merge-request.of-its-project")
def numbers_of_other_projects_pass_for_own_ones(service: Service) -> None:
    """A number that only another project has shows that project's merge request, as if it belonged here."""

    def make(find: Callable[..., Any]) -> Any:
        def found(project: Any, iid: int) -> Any:
            try:
                return find(project, iid)
            except NotFoundError:
                known = service.repositories.merge_requests.values()
                other = next((one for one in known if one.iid == iid), None)
                if other is None:
                    raise
                return replace(other, project_id=project.id)

        return found

    around(service.merge_request_approval_rules, "merge_request", make)


@fault("merge-request-approvals.unknown-merge-request.reading")
def ids_stand_for_numbers(service: Service) -> None:
    """A merge request of the project is also found by its id."""

    def make(find: Callable[..., Any]) -> Any:
        def found(project: Any, iid: int) -> Any:
            try:
                return find(project, iid)
            except NotFoundError:
                own = [one for one in service.repositories.merge_requests.values() if one.project_id == project.id]
                other = next((one for one in own if one.id == iid), None)
                if other is None:
                    raise
                return other

        return found

    around(service.merge_request_approval_rules, "merge_request", make)
