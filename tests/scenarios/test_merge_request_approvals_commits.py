"""Merge request approvals: approving the current HEAD, and conflicts about other commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import ZERO
from conformance.suite.arrange.reviews import (
    OTHER_SHA,
    approvals_left,
    approvals_put_back,
    approvers_in,
    approvers_of,
    given_in_profile,
    merge_request_path,
    must_be_approved_by,
    must_not_be_approved_by,
    status_of,
    under_review,
    user_id,
)
from conformance.suite.context import current_run
from conformance.suite.derived import administrators
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    named_otherwise,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture


def test_approving_with_the_current_head_is_accepted(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    merge_request: Fixture,
) -> None:
    sha = given_in_profile(merge_request.get("sha"), "sha", "merge_request")
    others = approvers_of(maintainer, review)
    approver.post(review / "approve").given_served()
    approver.post(review / "unapprove").given_served()
    given(approvers_of(maintainer, review) == others, "the approval without sha cannot be taken back")
    with verifies("merge-request-approvals.approve.current-sha"):
        approver.post(review / "approve", {"sha": sha}).must_be_served()
        must_be_approved_by(maintainer, review, *others, user_id(approver))
    approver.post(review / "unapprove").given_served()
    with verifies("merge-request-approvals.unapprove.caller-is-gone"):
        must_not_be_approved_by(maintainer, review, user_id(approver))


def test_the_current_head_is_accepted_beside_another_approval(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    merge_request: Fixture,
) -> None:
    sha = given_in_profile(merge_request.get("sha"), "sha", "merge_request")
    others = [*approvers_of(maintainer, joint_review), user_id(second_approver)]
    second_approver.post(joint_review / "approve").given_served()
    approver.post(joint_review / "approve").given_served()
    approver.post(joint_review / "unapprove").given_served()
    given(approvers_of(maintainer, joint_review) == sorted(others), "the approval without sha cannot be taken back")
    with verifies("merge-request-approvals.approve.current-sha"):
        approver.post(joint_review / "approve", {"sha": sha}).must_be_served()
        must_be_approved_by(maintainer, joint_review, *others, user_id(approver))


def test_another_merge_request_has_a_head_of_its_own(
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
    second_merge_request: Fixture,
) -> None:
    """If the profile gives two commits that differ: a sha must not be compared with the HEAD beside it."""
    first, sha = merge_request.get("sha"), second_merge_request.get("sha")
    if not first or not sha or first == sha:
        left_to_others()
        return
    with under_review(maintainer, merge_request_path(project, second_merge_request), approver) as path:
        others = approvers_of(maintainer, path)
        approver.post(path / "approve").given_served()
        approver.post(path / "unapprove").given_served()
        given(approvers_of(maintainer, path) == others, "the approval without sha cannot be taken back")
        conflict = approver.post(path / "approve", {"sha": OTHER_SHA})
        with verifies("merge-request-approvals.approve.other-sha-conflicts", go_on=True):
            conflict.must_be(409)
        if user_id(approver) in approvers_of(maintainer, path):  # one that approves all the same is looked at elsewhere
            approver.post(path / "unapprove")
        with verifies("merge-request-approvals.approve.current-sha"):
            approver.post(path / "approve", {"sha": sha}).must_be_served()
            must_be_approved_by(maintainer, path, *others, user_id(approver))


def test_another_commit_conflicts_where_a_merge_request_has_no_rules(
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Whether somebody may approve whom no rule names is open: without a sha the same caller shows it."""
    path = merge_request_path(project, merge_request)
    with under_review(maintainer, path), approvals_put_back(maintainer, path, approver):
        may = approver.post(path / "approve").is_served and approver.post(path / "unapprove").is_served
        conflict = approver.post(path / "approve", {"sha": OTHER_SHA})
        if not may or not (conflict.is_served or approver.post(path / "approve").is_served):
            left_to_others()
            return
        with verifies("merge-request-approvals.approve.other-sha-conflicts"):
            conflict.must_be(409)


def test_approving_another_commit_conflicts(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """The reviewed commit is not the one that would be merged; every second one is sent by the project's path."""
    named = named_otherwise(review, project, maintainer, read_at="approvals")
    approver.post(review / "approve").given_served()
    conflicts = []
    for place, sha in enumerate(other_shas(merge_request)):
        approver.post(review / "unapprove").given_served()
        if not place:
            given(not approvers_of(maintainer, review), "the merge request cannot be brought to have no approval")
        conflicts.append(approver.post((named if place % 2 else review) / "approve", {"sha": sha}))
        approver.post(review / "approve")
    conflicts += of_administrators(maintainer, review)
    with verifies(
        "merge-request-approvals.approve.other-sha-conflicts",
        "merge-request-approvals.approve.other-sha-conflicts-without-approvals",
    ):
        for conflict in conflicts:
            conflict.must_be(409)


def other_shas(merge_request: Fixture) -> list[str]:
    """Return commits that are not the HEAD: three as similar as possible, a former one, and that of a neighbour."""
    head = str(merge_request.get("sha") or "")
    if not head:
        return [OTHER_SHA]
    fixtures = current_run().profile.fixtures
    beside = [*fixtures.get("second_merge_request", ()), *namesakes(merge_request)]
    known = {merge_request.get("former_sha"), merge_request.get("target_sha"), *(one.get("sha") for one in beside)}
    heads = sorted(known - {None, head})
    like = [
        f"{head[:place]}{other_digit(head[place])}{head[place + 1 :]}" for place in (0, len(head) // 2, len(head) - 1)
    ]
    return [OTHER_SHA, *like, *heads]


def namesakes(merge_request: Fixture) -> list[Fixture]:
    """Return merge requests of other projects that have this one's number."""
    known = current_run().profile.fixtures
    names = ("fuzz_merge_request", "sibling_merge_request", "password_merge_request")
    found = [one for name in names for one in known.get(name, ())[:1]]
    return [one for one in found if one.get("iid") == merge_request.get("iid")]


def other_digit(digit: str) -> str:
    return "1" if digit == "0" else "0"


def of_administrators(reader: Caller, path: Path) -> list[Answer]:
    """Return the answers to administrators who may approve and send another commit."""
    conflicts = []
    for admin in administrators():
        if admin.actor is None or admin.actor.id is None:
            continue
        with approvals_put_back(reader, path, admin):
            if admin.post(path / "approve").is_served and admin.post(path / "unapprove").is_served:
                conflicts.append(admin.post(path / "approve", {"sha": OTHER_SHA}))
    return conflicts


@pytest.mark.parametrize("near", ["shortened", "lengthened"])
def test_what_is_nearly_the_head_approves_nothing(
    near: str,
    review: Path,
    maintainer: Caller,
    approver: Caller,
    merge_request: Fixture,
) -> None:
    """Which refusal is open: a text that is no complete sha may also be treated as malformed.

    Some languages take the text 0 for nothing, as if no sha was sent.
    """
    head = str(given_in_profile(merge_request.get("sha"), "sha", "merge_request"))
    before = approvers_of(maintainer, review)
    attempts = []
    for sha in [head[:-1], ZERO] if near == "shortened" else [f"{head}0"]:
        answer = approver.post(review / "approve", {"sha": sha})
        attempts.append((answer, approvers_of(maintainer, review)))
        approver.post(review / "unapprove")
    control = approver.post(review / "approve", {"sha": head})
    with verifies("merge-request-approvals.approve.near-sha-is-refused"):
        for answer, after in attempts:
            answer.must_be_refused(beside=control)
            must(after == before, f"approved_by as before: {as_json(before)}", as_json(after))


def test_a_conflict_about_the_commit_changes_nothing(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    second_approver.post(joint_review / "approve").given_served()
    # First make sure that the approver may approve beside the other one: a conflict is not a refused actor.
    approver.post(joint_review / "approve").given_served()
    approver.post(joint_review / "unapprove").given_served()
    shown = approvers_of(maintainer, joint_review)
    given(
        user_id(second_approver) in shown and user_id(approver) not in shown, "the first approval does not show alone"
    )
    conflicts = []

    def approvals() -> tuple[list[int], int]:
        status = status_of(maintainer, joint_review)
        return approvers_in(status), approvals_left(status)

    with (
        verifies("merge-request-approvals.approve.other-sha-changes-nothing", go_on=True),
        unchanged(approvals, "approved_by and approvals_left"),
    ):
        # Somebody who approved before keeps that too, whatever the answer to a second approval is.
        second_approver.post(joint_review / "approve", {"sha": OTHER_SHA})
        conflicts.append(approver.post(joint_review / "approve", {"sha": OTHER_SHA}))
        given(conflicts[0].status == 409, "the other commit is no conflict")
    with verifies("merge-request-approvals.approve.other-sha-conflicts"):
        for conflict in conflicts:
            conflict.must_be(409)
