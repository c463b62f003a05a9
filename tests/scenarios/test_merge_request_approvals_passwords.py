"""Approvals that need a password: whose, of whom, and where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_settings import Settings, asks_for_password
from conformance.suite.arrange.reviews import (
    OTHER_SHA,
    approvals_put_back,
    approvers_of,
    created,
    given_in_profile,
    given_open,
    must_be_approved_by,
    must_count_only_who_approved,
    must_not_be_approved_by,
    password_of,
    user_id,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named
from conformance.suite.expectations import (
    Caller,
    Path,
    left_to_others,
    must_be_as_before,
    verifies,
)
from conformance.suite.expectations.words import given_done

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.suite import Fixture
    from conformance.suite.expectations import Answer

    Attempt = tuple[Answer, list[int]]


@pytest.fixture
def guarded(maintainer: Caller, approver: Caller, password_merge_request: Fixture) -> Iterator[Path]:
    """A merge request that requires a password for approving, not approved yet."""
    number = given_in_profile(password_merge_request.get("project_id"), "project_id", "password_merge_request")
    password_of(approver)
    path = Path(f"/projects/{number}/merge_requests") / password_merge_request["iid"]
    given_open(maintainer, path, by_password=True)
    if user_id(approver) in approvers_of(maintainer, path):
        taken_back(path, approver)
    with rules_put_back(maintainer, path / "approval_rules"):
        created(maintainer, path / "approval_rules", approvals_required=1, user_ids=[user_id(approver)])
        yield path
        if user_id(approver) in approvers_of(maintainer, path):
            taken_back(path, approver)


def taken_back(path: Path, approver: Caller) -> Answer:
    """Withdraw an approval and return the answer; if a service wrongly requires a password for that, send it."""
    answer = approver.post(path / "unapprove")
    if not answer.is_served:
        approver.post(path / "unapprove", {"approval_password": password_of(approver)})
    return answer


@pytest.mark.needs_feature("password_approval")
def test_where_a_password_is_required_only_the_right_one_approves(
    guarded: Path,
    maintainer: Caller,
    approver: Caller,
    password_merge_request: Fixture,
) -> None:
    password = password_of(approver)
    before = approvers_of(maintainer, guarded)
    missing: list[Attempt] = []
    wrong: list[Attempt] = []
    head = password_merge_request.get("sha")
    for body in ({}, *([{"sha": head}] if head else [])):
        answer = approver.post(guarded / "approve", body)
        missing.append((answer, approvers_of(maintainer, guarded)))
        approver.post(guarded / "unapprove")
    for body in without_the_right_one(approver, head):
        answer = approver.post(guarded / "approve", body)
        wrong.append((answer, approvers_of(maintainer, guarded)))
        left_to_others("merge-request-approvals.state.rule.approved-by-have-approved")  # if no state can be read
        if maintainer.get(guarded / "approval_state").is_served:
            with verifies("merge-request-approvals.state.rule.approved-by-have-approved", go_on=True):
                must_count_only_who_approved(maintainer, guarded)
        # Several wrong passwords in a row may lock somebody out, so each is followed by the right one.
        right = approver.post(guarded / "approve", {"approval_password": password})
        undone = taken_back(guarded, approver)
        left_to_others("merge-request-approvals.unapprove.answer")  # unless there is something to withdraw
        if right.is_served:
            with verifies("merge-request-approvals.unapprove.answer", go_on=True):
                undone.must_be_served()  # a password belongs only to approving
    # The password is required again even if it was sent before.
    answer = approver.post(guarded / "approve")
    missing.append((answer, approvers_of(maintainer, guarded)))
    if answer.is_served:
        approver.post(guarded / "unapprove")
    if undone.is_served:  # who is still listed may be refused because of that, and not for the password
        with given_done("merge-request-approvals.unapprove.caller-is-gone"):
            must_not_be_approved_by(maintainer, guarded, user_id(approver))
    conflict = approver.post(guarded / "approve", {"approval_password": password, "sha": OTHER_SHA})
    if conflict.is_served or user_id(approver) in approvers_of(maintainer, guarded):  # also behind a refusal
        taken_back(guarded, approver)
    right = approver.post(guarded / "approve", {"approval_password": password})
    left_to_others("merge-request-approvals.approve.other-sha-conflicts")  # unless only the password is accepted
    if right.is_served:
        with verifies("merge-request-approvals.approve.other-sha-conflicts", go_on=True):
            conflict.must_be(409)  # the caller may approve, so only the commit is refused
    with verifies("merge-request-approvals.password.right", go_on=True):
        right.must_be_served()
        must_be_approved_by(maintainer, guarded, *before, user_id(approver))
    left_to_others("merge-request-approvals.approve.current-sha")  # unless the profile gives the sha
    if head and right.is_served and taken_back(guarded, approver).is_served:
        with verifies("merge-request-approvals.approve.current-sha", go_on=True):
            approver.post(guarded / "approve", {"approval_password": password, "sha": head}).must_be_served()
            must_be_approved_by(maintainer, guarded, *before, user_id(approver))
    with verifies("merge-request-approvals.password.missing", go_on=True):
        must_not_have_approved(missing, before, right)
    with verifies("merge-request-approvals.password.wrong"):
        must_not_have_approved(wrong, before, right)


def must_not_have_approved(attempts: Iterable[Attempt], before: list[int], right: Answer) -> None:
    """Expect that each attempt was refused, as the right password is not, and left approved_by as it was."""
    for answer, after in attempts:
        answer.must_be_refused(beside=right)
        must_be_as_before("approved_by", before, after)


def test_whoever_approves_after_another_needs_a_password_too(
    guarded: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    """If the profile gives another approver's password; the approver's own is enough to verify the requirement."""
    first, password = current_run().profile.actors.get("second_approver"), password_of(approver)
    if first is None or first.id is None or first.password is None:
        left_to_others()
        return
    second_approver = caller_named("second_approver")
    created(maintainer, guarded / "approval_rules", approvals_required=1, user_ids=[first.id])
    with approvals_put_back(maintainer, guarded, second_approver):
        if not second_approver.post(guarded / "approve", {"approval_password": first.password}).is_served:
            left_to_others()  # the first one who is asked shows it as well
            return
        before = approvers_of(maintainer, guarded)
        missing = approver.post(guarded / "approve")
        after = approvers_of(maintainer, guarded)
        approver.post(guarded / "unapprove")
        right = approver.post(guarded / "approve", {"approval_password": password})
        with verifies("merge-request-approvals.password.missing"):
            missing.must_be_refused(beside=right)
            must_be_as_before("approved_by", before, after)


@pytest.mark.needs_feature("password_approval")
@pytest.mark.calls_area("approval-settings")
def test_a_project_beside_the_guarded_one_asks_for_no_password(
    maintainer: Caller,
    approver: Caller,
    password_merge_request: Fixture,
) -> None:
    """The setting belongs to one project. Whoever may approve with an unnecessary password may do so without one."""
    beside = current_run().profile.first("sibling_merge_request")
    number = beside.get("project_id") if beside is not None else None
    settings = Settings(maintainer, Path(f"/projects/{number}/merge_request_approval_setting"))
    is_beside = beside is not None and number != password_merge_request.get("project_id")
    if beside is None or not is_beside or asks_for_password(settings):
        left_to_others()
        return
    path = Path(f"/projects/{number}/merge_requests") / beside["iid"]
    given_open(maintainer, path)
    with rules_put_back(maintainer, path / "approval_rules"), approvals_put_back(maintainer, path, approver):
        created(maintainer, path / "approval_rules", approvals_required=1, user_ids=[user_id(approver)])
        without = approver.post(path / "approve")
        approver.post(path / "unapprove")
        right = approver.post(path / "approve", {"approval_password": password_of(approver)})
        if not right.is_served and not without.is_served:
            left_to_others()  # who may approve there is open
            return
        with verifies("merge-request-approvals.approve.needs-no-parameter", go_on=True):
            without.must_be_served()
        with verifies("merge-request-approvals.approve.answer"):
            right.must_be_served()  # a password is optional there


def test_an_owner_needs_a_password_like_everybody(guarded: Path, maintainer: Caller, owner: Caller) -> None:
    """Whether an owner may approve at all is open; the right password shows it first."""
    password = owner.actor.password if owner.actor is not None and owner.actor.id is not None else None
    if password is None:
        return  # the approver's password is enough to verify it
    created(maintainer, guarded / "approval_rules", approvals_required=1, user_ids=[user_id(owner)])
    with approvals_put_back(maintainer, guarded, owner):
        right = owner.post(guarded / "approve", {"approval_password": password})
        owner.post(guarded / "unapprove")
        before = approvers_of(maintainer, guarded)
        missing = owner.post(guarded / "approve")
        after = approvers_of(maintainer, guarded)
        if right.is_served:
            with verifies("merge-request-approvals.password.missing"):
                missing.must_be_refused(beside=right)
                must_be_as_before("approved_by", before, after)


def without_the_right_one(caller: Caller, head: object) -> list[dict[str, object]]:
    """Return what a caller sends with a wrong password, once beside the HEAD if it is known."""
    password = password_of(caller)
    texts = (f"not {password}", *nearly(password), *other_passwords(caller))
    alone: list[dict[str, object]] = [{"approval_password": text} for text in texts]
    return [*alone, *([{**alone[0], "sha": head}] if head else [])]


def nearly(password: str) -> list[str]:
    """Return no password, a shortened one, an extended one, and one in other case if it has letters."""
    return ["", password[:-1], f"{password}0", *({password.swapcase()} - {password})]


def other_passwords(caller: Caller) -> list[str]:
    """Return passwords of others, as far as the profile gives any: of the author, or of other approvers."""
    known = [current_run().profile.actors.get(name) for name in ("author", "second_approver", "owner")]
    passwords = {actor.password for actor in known if actor is not None and actor.password}
    return sorted(passwords - {password_of(caller)})
