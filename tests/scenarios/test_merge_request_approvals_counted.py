"""Merge request approvals: in which rules one counts, however these name its caller, and what takes none back."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.reviews import (
    approvals_left,
    approvals_put_back,
    approvers_of,
    created,
    fresh_name,
    given_counted,
    given_open,
    given_withdrawn,
    merge_request_path,
    must_be_approved_by,
    must_become,
    must_count_only_who_approved,
    naming_only,
    open_rules,
    state_of,
    status_of,
    under_review,
    user_id,
    username,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import Caller, Path, given, left_to_others, must, verifies

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.suite import Fixture
    from conformance.suite.arrange.reviews import Rule


# -- in which rules an approval counts ---------------------------------------------------------------------------------


@pytest.mark.requirements("merge-request-approvals.approve.lists-caller-in-rule")
@pytest.mark.parametrize("named_by", ["username", "group"])
def test_an_approval_counts_in_a_rule_however_that_names_its_caller(
    named_by: str, maintainer: Caller, approver: Caller, project: Fixture, merge_request: Fixture
) -> None:
    """Another test names the caller by number."""
    path = merge_request_path(project, merge_request)
    rules = path / "approval_rules"

    def make() -> Rule:
        created(maintainer, rules)  # what spoils only later rules shows as well
        groups = [group.id for group in current_run().profile.fixtures.get("approver_group", ())[:1]]
        given(bool(groups) or named_by != "group", "the profile has no group of approvers")
        lists = {"usernames": [username(approver)]} if named_by == "username" else {"user_ids": [], "group_ids": groups}
        return created(maintainer, rules, approvals_required=1, **lists)

    must_count(maintainer, approver, path, make)


@pytest.mark.calls_area("project-approval-rules")
@pytest.mark.requirements("merge-request-approvals.approve.lists-caller-in-rule")
@pytest.mark.parametrize("is_copied", [False, True], ids=["of-the-project", "copied"])
def test_an_approval_counts_in_a_rule_that_comes_from_the_project(
    is_copied: bool,  # noqa: FBT001 - a parameter of a test
    project_rules: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """If the state of the merge request shows it."""
    path, named = merge_request_path(project, merge_request), {"user_ids": [user_id(approver)]}

    def make() -> Rule:
        source = created(maintainer, project_rules, approvals_required=1, **named)
        copied = {"approvals_required": 1, "approval_project_rule_id": source["id"], **named}
        return created(maintainer, path / "approval_rules", **copied) if is_copied else source

    must_count(maintainer, approver, path, make)


def test_an_approval_that_is_given_again_counts_again(review: Path, maintainer: Caller, approver: Caller) -> None:
    """However often it was taken back."""
    me = user_id(approver)
    still_open = [ids_in(rule, "users") for rule in open_rules(state_of(maintainer, review))]
    was_left = approvals_left(status_of(maintainer, review))
    for _ in range(2):
        approver.post(review / "approve").given_served()
        given_withdrawn(maintainer, review, approver)
    approver.post(review / "approve").given_served()
    with verifies("merge-request-approvals.approve.lists-caller-in-rule", go_on=True):
        must_become(lambda: counted(maintainer, review), lambda found: me in found, f"user {me} in a rule once more")
    with verifies("merge-request-approvals.approve.left-falls"):
        given(still_open == [[me]], "not exactly one rule is open, the one that names the caller")
        left = approvals_left(status_of(maintainer, review))
        must(left < was_left, f"approvals_left < {was_left}", str(left))


def must_count(maintainer: Caller, approver: Caller, path: Path, make: Callable[[], Rule]) -> None:
    """Make a rule, and expect an approval in it if the state shows that its approver is eligible."""
    left_to_others()  # unless there is such a rule, and the approver may approve
    given_open(maintainer, path)
    me = user_id(approver)
    with (
        suppress(Unmet, NotTested),
        rules_put_back(maintainer, path / "approval_rules"),
        approvals_put_back(maintainer, path, approver),
    ):
        name = make().get("name")
        shown = [rule for rule in regular_in(maintainer, path) if rule.get("name") == name]
        given(bool(shown) and all(me in ids_in(rule, "eligible_approvers") for rule in shown), "nobody is eligible")
        given(me not in counted(maintainer, path), "the caller counts before approving")
        approver.post(path / "approve").given_served()
        given(me in approvers_of(maintainer, path), "the approval does not show")
        with verifies("merge-request-approvals.approve.lists-caller-in-rule"):
            # An approval may count for only one rule, and nothing says for which.
            must_become(
                lambda: counted(maintainer, path), lambda found: me in found, f"user {me} in a rule, such as {name}"
            )


def regular_in(reader: Caller, path: Path) -> list[Rule]:
    """Return the rules of a state without those that anybody satisfies."""
    rules = [rule for rule in state_of(reader, path)["rules"] if isinstance(rule, dict)]
    return [rule for rule in rules if rule.get("rule_type") != "any_approver"]


def counted(reader: Caller, path: Path) -> list[Any]:
    """Return who counts as having approved for a regular rule of the state."""
    return [number for rule in regular_in(reader, path) for number in ids_in(rule, "approved_by")]


def ids_in(rule: Rule, name: str) -> list[Any]:
    return [user.get("id") for user in rule.get(name) or () if isinstance(user, dict)]


# -- what takes none back ----------------------------------------------------------------------------------------------


def test_rules_of_one_merge_request_leave_the_approvals_of_another(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
    second_merge_request: Fixture,
) -> None:
    """A change of rules may take approvals back, but only where those rules apply."""
    left_to_others()  # if the other merge request takes no approval
    other = merge_request_path(project, second_merge_request)
    with suppress(Unmet), under_review(maintainer, other, approver):
        there = approved_by_with(maintainer, other, approver)
        change_a_rule(maintainer, merge_request_rules, approver, second_approver)
        with verifies("merge-request-approvals.leaves-the-rest"):
            must_be_approved_by(maintainer, other, *there)


@pytest.mark.calls_area("merge-request-approvals")
def test_rules_of_one_project_leave_the_approvals_in_another(
    project_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    fuzz_project: Fixture,
    fuzz_merge_request: Fixture,
) -> None:
    left_to_others()  # if the approver may not approve there
    other = merge_request_path(fuzz_project, fuzz_merge_request)
    with suppress(Unmet), approvals_put_back(maintainer, other, approver):
        given_open(maintainer, other)
        there = approved_by_with(maintainer, other, approver)
        change_a_rule(maintainer, project_rules, approver, second_approver)
        with verifies("project-approval-rules.leaves-the-rest"):
            must_be_approved_by(maintainer, other, *there)


def approved_by_with(reader: Caller, merge_request: Path, approver: Caller) -> list[int]:
    """Let somebody approve, and return who has approved then; inconclusive when that person is not among them."""
    approver.post(merge_request / "approve").given_served()
    found = approvers_of(reader, merge_request)
    given(user_id(approver) in found, "the approval does not show")
    return found


def change_a_rule(maintainer: Caller, rules: Path, approver: Caller, other: Caller) -> None:
    """Create a rule, give it other approvers, and delete it; all of it twice."""
    for _ in range(2):
        rule = rules / created(maintainer, rules, user_ids=[user_id(approver)])["id"]
        maintainer.put(rule, {"name": fresh_name(), "approvals_required": 5, **naming_only(other)})
        maintainer.delete(rule).given_served()


def test_no_rule_of_the_state_counts_somebody_who_has_not_approved(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """Neither before an approval, nor beside one of somebody else, nor after it was withdrawn."""
    with verifies("merge-request-approvals.state.rule.approved-by-have-approved"):
        must_count_only_who_approved(maintainer, joint_review)
        second_approver.post(joint_review / "approve").given_served()
        must_count_only_who_approved(maintainer, joint_review)
        approver.post(joint_review / "approve").given_served()
        must_count_only_who_approved(maintainer, joint_review)  # read before the withdrawal: it may be remembered
        given_counted(maintainer, joint_review)
        second_approver.post(joint_review / "unapprove").given_served()
        must_count_only_who_approved(maintainer, joint_review)
