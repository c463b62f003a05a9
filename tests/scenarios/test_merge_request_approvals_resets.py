"""Merge request approvals: who resets, what keeps merge requests apart, and where a password is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

@pytest.fixture
def resettable(maintainer: Caller, approver: Caller, project: Fixture, reset_merge_request: Fixture) -> Iterator[Path]:
    """A merge request whose approvals may be reset, with a rule that names the approver, who has approved."""
    path = merge_request_path(project, reset_merge_request)
    given_open(maintainer, path)
    with rules_put_back(maintainer, path / "approval_rules"), approvals_put_back(maintainer, path, approver):
        created(maintainer, path / "approval_rules", approvals_required=1, user_ids=[user_id(approver)])
        approver.post(path / "approve").given_served()
        given(user_id(approver) in approvers_of(maintainer, path), "the approval does not show, so none can be reset")
        yield path


# -- resetting ---------------------------------------------------------------------------------------------------------


def test_a_project_bot_clears_all_approvals(
    resettable: Path,
    maintainer: Caller,
    second_approver: Caller,
    project_bot: Caller,
) -> None:
    with approvals_put_back(maintainer, resettable, second_approver):
        created(maintainer, resettable / "approval_rules", approvals_required=1, user_ids=[user_id(second_approver)])
        second_approver.post(resettable / "approve").given_served()
        given(len(approvers_of(maintainer, resettable)) >= 2, "the approvals do not show, so none can be reset")
        with verifies("merge-request-approvals.reset.answer"):
            project_bot.put(resettable / "reset_approvals").must_be_served()
        with verifies("merge-request-approvals.reset.clears-all"):
            must_be_approved_by(maintainer, resettable, within=RESET_SECONDS)


def test_nobody_else_resets_approvals(resettable: Path, maintainer: Caller, developer: Caller) -> None:
    """Not even who may do everything else: only bots of tokens reset."""
    for caller in (developer, maintainer):
        caller.get(resettable / "approvals").given_served()
    before = approvers_of(maintainer, resettable)
    answers = [caller.put(resettable / "reset_approvals") for caller in (developer, maintainer)]
    with verifies("merge-request-approvals.reset.others-get-401", go_on=True):
        for answer in answers:
            answer.must_be(401)
    with verifies("merge-request-approvals.reset.by-others-changes-nothing"):
        must_be_approved_by(maintainer, resettable, *before)


# -- what keeps apart --------------------------------------------------------------------------------------------------


def test_approvals_of_one_merge_request_leave_those_of_another(
    review: Path,
    resettable: Path,
    maintainer: Caller,
    approver: Caller,
    project_bot: Caller,
) -> None:
    """The same approver in two merge requests: what is taken back here stays there."""
    with (
        verifies("merge-request-approvals.approvals-are-separate"),
        unchanged(lambda: approvers_of(maintainer, resettable), "the approvals of the other merge request"),
    ):
        approver.post(review / "approve").given_served()
        approver.post(review / "unapprove").given_served()
    approver.post(review / "approve").given_served()
    with (
        verifies("merge-request-approvals.approvals-are-separate"),
        unchanged(lambda: approvers_of(maintainer, review), "the approvals of the other merge request"),
    ):
        project_bot.put(resettable / "reset_approvals").given_served()


def test_a_merge_request_that_does_not_exist_can_be_neither_approved_nor_unapproved(
    review: Path,
    approver: Caller,
    project: Fixture,
) -> None:
    nowhere = project_path(project) / "merge_requests" / UNUSED_ID
    with verifies("merge-request-approvals.unknown-merge-request.approving"):
        for move in ("approve", "unapprove"):
            control = approver.post(review / move)
            approver.post(nowhere / move).must_be_refused(beside=control)


# -- the password ------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(maintainer: Caller, approver: Caller, password_merge_request: Fixture) -> Iterator[Path]:
    """A merge request that asks for the password of who approves it, not approved yet."""
    number = password_merge_request.get("project_id")
    given(number is not None, "the profile does not give the project_id of password_merge_request")
    given(bool(approver.actor and approver.actor.password), "the profile does not give the password of approver")
    path = Path(f"/projects/{number}/merge_requests/{password_merge_request['iid']}")
    given_open(maintainer, path)
    before = approvers_of(maintainer, path)
    if user_id(approver) in before:
        approver.post(path / "unapprove").given_served()
    yield path
    if user_id(approver) in approvers_of(maintainer, path):
        approver.post(path / "unapprove")


def test_where_a_password_is_required_only_the_right_one_approves(
    guarded: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    password = approver.actor.password if approver.actor else None
    before = approvers_of(maintainer, guarded)
    missing = approver.post(guarded / "approve")
    after_missing = approvers_of(maintainer, guarded)
    approver.post(guarded / "unapprove")
    wrong = approver.post(guarded / "approve", {"approval_password": f"not {password}"})
    after_wrong = approvers_of(maintainer, guarded)
    approver.post(guarded / "unapprove")
    right = approver.post(guarded / "approve", {"approval_password": password})
    with verifies("merge-request-approvals.password.right", go_on=True):
        right.must_be_served()
        must_be_approved_by(maintainer, guarded, *before, user_id(approver))
    with verifies("merge-request-approvals.password.missing", go_on=True):
        missing.must_be_refused(beside=right)
        must(after_missing == before, f"approved_by as before: {before}", str(after_missing))
    with verifies("merge-request-approvals.password.wrong"):
        wrong.must_be_refused(beside=right)
        must(after_wrong == before, f"approved_by as before: {before}", str(after_wrong))
