"""Merge request approvals: who resets, and what separates merge requests."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from conformance.suite.arrange import ABSENT, UNUSED_ID
from conformance.suite.arrange.reviews import (
    RESET_SECONDS,
    approvals_put_back,
    approvers_named,
    approvers_of,
    created,
    fresh_name,
    given_reset,
    merge_request_path,
    must_be_approved_by,
    must_become,
    must_count_only_who_approved,
    must_not_be_approved_by,
    settled,
    under_review,
    user_id,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    left_to_others,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture
    from conformance.suite.expectations import Answer

    Attempt = tuple[Answer, list[int]]


@pytest.fixture
def approved(maintainer: Caller, approver: Caller, project: Fixture, reset_merge_request: Fixture) -> Iterator[Path]:
    """A merge request whose approvals may be reset, with an approval of the approver."""
    with under_review(maintainer, merge_request_path(project, reset_merge_request), approver) as path:
        approver.post(path / "approve").given_served()
        given(user_id(approver) in approvers_of(maintainer, path), "the approval does not show, so none can be reset")
        yield path


# -- resetting ---------------------------------------------------------------------------------------------------------


def test_a_project_bot_clears_all_approvals(
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project_bot: Caller,
    project: Fixture,
    reset_merge_request: Fixture,
) -> None:
    path = merge_request_path(project, reset_merge_request)
    known, others = current_run().profile.actors, ("developer", "maintainer", "owner")
    more = [caller_named(name) for name in others if name in known and known[name].id is not None]
    with under_review(maintainer, path, approver, second_approver), approvals_put_back(maintainer, path, *more):
        named = named_in_a_rule(maintainer, path, more)  # before the approvals
        approver.post(path / "approve").given_served()
        approved_as_reviewed(second_approver, path, reset_merge_request.get("sha"))
        by_path = [*by_its_path(path, project), path][0] / "approve"  # refused if a gateway in between fails on paths
        counted = [caller for caller in more if caller.post(by_path).is_served and caller in named]
        approver.post(path / "approve")  # once more, which may be refused: all of it is cleared
        given(len(approvers_of(maintainer, path)) >= 2, "the approvals do not show, so none can be reset")
        everybody = {user_id(caller) for caller in (approver, second_approver, *counted)}
        with verifies("merge-request-approvals.approve.keeps-others", go_on=True):
            must_become(partial(approvers_of, maintainer, path), everybody.issubset, f"{everybody} in approved_by")
        answer = project_bot.put(path / "reset_approvals")
        with verifies("merge-request-approvals.reset.answer"):
            answer.must_be_served()
        with verifies("merge-request-approvals.reset.clears-all"):
            must_be_approved_by(maintainer, path, within=RESET_SECONDS)
        with verifies("merge-request-approvals.state.rule.approved-by-have-approved", go_on=True):
            must_count_only_who_approved(maintainer, path, within=RESET_SECONDS)
        with verifies("merge-request-approvals.unapprove.without-approval", go_on=True):
            second_approver.post(path / "unapprove").must_not_break()  # and brings no approval back, see below
        with verifies("merge-request-approvals.approve.answer"):
            approver.post(path / "approve").must_be(200, 201)
        with verifies("merge-request-approvals.approve.keeps-others", go_on=True):
            must_be_approved_by(maintainer, path, user_id(approver))
        second_approver.post(path / "approve")  # so that there is more than one, unless it is refused
        if not project_bot.put([*by_its_path(path, project), path][0] / "reset_approvals").is_served:
            given_reset(project_bot, maintainer, path)
        with verifies("merge-request-approvals.reset.clears-all"):
            must_be_approved_by(maintainer, path, within=RESET_SECONDS)
        with verifies("merge-request-approvals.reset.others-get-401"):
            approver.put(path / "reset_approvals").must_be(401)  # it makes no difference that there is nothing to reset


def approved_as_reviewed(caller: Caller, merge_request: Path, head: str | None) -> None:
    """Approve with the sha of the HEAD; without one if the profile does not give it, or another test reports it."""
    if head is None or not caller.post(merge_request / "approve", {"sha": head}).is_served:
        caller.post(merge_request / "approve").given_served()


def named_in_a_rule(maintainer: Caller, merge_request: Path, callers: list[Caller]) -> list[Caller]:
    """Make a rule of a merge request name these people, and return whom it names: a service may refuse it.

    It asks for less approvals than are given, all of which are listed.
    """
    if not callers:
        return []
    with suppress(Unmet):
        rules, users = merge_request / "approval_rules", [user_id(caller) for caller in callers]
        named = approvers_named(created(maintainer, rules, approvals_required=1, user_ids=users))[0]
        return [caller for caller in callers if user_id(caller) in named]
    return []


def test_a_bot_clears_approvals_where_no_rule_names_who_approves(
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project_bot: Caller,
    project: Fixture,
    reset_merge_request: Fixture,
) -> None:
    """A merge request without rules of its own may count everybody's approval, or refuse it."""
    path = merge_request_path(project, reset_merge_request)
    with under_review(maintainer, path), approvals_put_back(maintainer, path, approver, second_approver):
        for caller in (approver, second_approver):
            caller.post(path / "approve")
        if not approvers_of(maintainer, path):
            left_to_others()
            return
        with verifies("merge-request-approvals.reset.others-get-401", go_on=True):
            maintainer.put(path / "reset_approvals").must_be(401)
        project_bot.put(path / "reset_approvals").given_served()
        with verifies("merge-request-approvals.reset.clears-all"):
            must_be_approved_by(maintainer, path, within=RESET_SECONDS)


def test_nobody_else_resets_approvals(
    approved: Path,
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
    developer: Caller,
    project: Fixture,
) -> None:
    """Not even an actor who may do everything else: only bots of tokens reset.

    An actor who cannot see the merge request, or whose role permits no writes there, may get another status.
    """
    before = approvers_of(maintainer, approved)
    low = [caller_named(name) for name in ("reporter", "guest") if is_known(name)]
    more = [caller_named(name) for name in ("admin", "author") if is_known(name)]
    others = [owner, approver, developer, *more]
    seeing = [maintainer, *(caller for caller in others if caller.get(approved / "approvals").is_served)]
    by_path = by_its_path(approved, project)
    # A gateway may fail on paths: then no call by path is served.
    forms = [approved, *(form for form in by_path if maintainer.get(form / "approvals").is_served)]
    answers = [caller.put(form / "reset_approvals") for form in forms for caller in seeing]
    answers_to_low = [caller.put(form / "reset_approvals") for form in forms for caller in low]
    with verifies("merge-request-approvals.reset.others-get-401", go_on=True):
        for answer in answers:
            answer.must_be(401)
        for answer in answers_to_low:
            answer.must_be_refused(beside=None)
    with verifies("merge-request-approvals.reset.by-others-changes-nothing"):
        must_be_approved_by(maintainer, approved, *before)


def by_its_path(merge_request: Path, project: Fixture) -> list[Path]:
    """Return the path of a merge request with its project's full path; None if the profile does not give that."""
    number, name = project_path(project), project.get("path")
    return [Path(merge_request.replace(number, f"/projects/{quote(name, safe='')}", 1))] if name else []


def test_the_bot_of_a_group_clears_approvals_too(approved: Path, maintainer: Caller, group_bot: Caller) -> None:
    """All approvals, if the profile has a second approver."""
    more = [caller_named(name) for name in ("second_approver",) if is_known(name)]
    with approvals_put_back(maintainer, approved, *more):
        for caller in more:
            caller.post(approved / "approve")  # that may be refused
        answer = group_bot.put(approved / "reset_approvals")
        with verifies("merge-request-approvals.reset.by-group-bot"):
            answer.must_be_served()
            must_be_approved_by(maintainer, approved, within=RESET_SECONDS)


# -- separate merge requests -------------------------------------------------------------------------------------------


def test_approvals_of_one_merge_request_leave_those_of_another(
    review: Path,
    approved: Path,
    maintainer: Caller,
    approver: Caller,
    project_bot: Caller,
    project: Fixture,
    second_merge_request: Fixture,
) -> None:
    """The same approver in several merge requests, perhaps of one commit: a change here must not show there."""
    untouched = merge_request_path(project, second_merge_request)
    with verifies("merge-request-approvals.approvals-are-separate"):
        # Whatever an earlier test left here, approvals of the other merge request must neither appear nor disappear.
        with unchanged(lambda: approvers_of(maintainer, review), "the approvals of the merge request"):
            approver.post(approved / "unapprove").given_served()
        approver.post(approved / "approve").given_served()

    def others() -> list[list[int]]:
        return [approvers_of(maintainer, path) for path in (approved, untouched)]

    given(user_id(approver) not in others()[1], "the approver has approved the second merge request already")
    with (
        verifies("merge-request-approvals.approvals-are-separate"),
        unchanged(others, "the approvals of other merge requests"),
    ):
        approver.post(review / "approve").given_served()
        approver.post(review / "unapprove").given_served()
    with verifies("merge-request-approvals.state.rule.approved-by-have-approved"):
        must_count_only_who_approved(maintainer, review)
    with verifies("merge-request-approvals.approvals-are-separate"):
        approver.post(review / "approve").given_served()
        with unchanged(lambda: approvers_of(maintainer, review), "the approvals of the other merge request"):
            given_reset(project_bot, maintainer, approved)


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


def test_every_operation_refuses_a_project_that_does_not_exist(
    approved: Path,
    maintainer: Caller,
    approver: Caller,
    project_bot: Caller,
    reset_merge_request: Fixture,
) -> None:
    """Deleting a rule may succeed although the project does not exist, because afterwards there is none.

    Approvals come first, because a change of rules may remove them.
    """
    nowhere = Path(f"/projects/{UNUSED_ID}/merge_requests") / reset_merge_request["iid"]

    def refuse_nowhere(*calls: tuple[Caller, str, str, Any]) -> None:
        for caller, method, below, body in calls:
            control = caller.call(method, approved / below, json=body)
            caller.call(method, nowhere / below, json=body).must_be_refused(beside=control)

    with verifies("merge-request-approvals.unknown-project"):
        refuse_nowhere(
            (approver, "POST", "unapprove", ABSENT),
            (approver, "POST", "approve", ABSENT),
            (project_bot, "PUT", "reset_approvals", ABSENT),
        )
        settled(lambda: approvers_of(maintainer, approved), [], within=RESET_SECONDS)
        rule = created(maintainer, approved / "approval_rules", user_ids=[user_id(approver)])
        new = {"name": fresh_name(), "approvals_required": 4, "user_ids": [user_id(approver)]}
        refuse_nowhere(
            (maintainer, "GET", "approvals", ABSENT),
            (maintainer, "GET", "approval_state", ABSENT),
            (maintainer, "GET", "approval_rules", ABSENT),
            (maintainer, "GET", f"approval_rules/{rule['id']}", ABSENT),
            (maintainer, "POST", "approval_rules", new),
            (maintainer, "PUT", f"approval_rules/{rule['id']}", {"approvals_required": 5}),
        )
        maintainer.delete(nowhere / "approval_rules" / rule["id"]).must_not_break()


# -- resetting while somebody approves ---------------------------------------------------------------------------------


def test_who_approves_while_approvals_are_reset_brings_none_of_them_back(
    approved: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project_bot: Caller,
) -> None:
    """Approvals may be one list, which a concurrent approval writes back with its old content."""
    for _ in range(ROUNDS):
        reset, _ = at_once(
            partial(project_bot.put, approved / "reset_approvals"), partial(second_approver.post, approved / "approve")
        )
        reset.given_served()
        with verifies("merge-request-approvals.reset.clears-all"):
            must_not_be_approved_by(maintainer, approved, user_id(approver), within=RESET_SECONDS)
        second_approver.post(approved / "unapprove")
        approver.post(approved / "approve").given_served()
