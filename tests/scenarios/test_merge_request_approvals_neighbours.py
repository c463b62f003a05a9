"""Merge request approvals: what a move keeps unchanged, several callers at once, and readers who have read before."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import standings
from conformance.suite.arrange.reviews import (
    approvals_left,
    approvals_put_back,
    approvers_of,
    created,
    created_named,
    essences,
    fresh_name,
    given_in_profile,
    given_open,
    given_reset,
    in_other_case,
    merge_request_path,
    must_be_approved_by,
    must_become,
    must_count_only_who_approved,
    must_not_be_approved_by,
    naming_only,
    open_rules,
    rule_in,
    state_of,
    status_of,
    under_review,
    user_id,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    given_done,
    left_to_others,
    must,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.load import at_once, over_and_over

if TYPE_CHECKING:
    from typing import Any

    from conformance.suite import Fixture
    from conformance.suite.arrange.reviews import Rule
    from conformance.suite.expectations import Answer


# -- what a move keeps -------------------------------------------------------------------------------------------------


def test_approving_and_taking_it_back_leave_the_rules(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    """Also a rule that names only a group, which contains the approver."""
    created(maintainer, review / "approval_rules", user_ids=[], group_ids=[approver_group.id])
    with (
        verifies("merge-request-approvals.approvals-leave-rules"),
        unchanged(lambda: essences(maintainer, review / "approval_rules"), "the rules of the merge request"),
    ):
        approver.post(review / "approve").given_served()
        approver.post(review / "unapprove").given_served()
    with verifies("merge-request-approvals.state.rule.approved-by-have-approved"):
        must_count_only_who_approved(maintainer, review)


def test_a_reset_of_approvals_leaves_the_rules(
    maintainer: Caller,
    approver: Caller,
    project_bot: Caller,
    project: Fixture,
    reset_merge_request: Fixture,
) -> None:
    """A reset that also removes the rules lets the merge request through without any approval."""
    path = merge_request_path(project, reset_merge_request)
    with under_review(maintainer, path, approver):
        approver.post(path / "approve").given_served()
        with (
            verifies("merge-request-approvals.approvals-leave-rules"),
            unchanged(lambda: essences(maintainer, path / "approval_rules"), "the rules of the merge request"),
        ):
            given_reset(project_bot, maintainer, path)


@pytest.mark.calls_area("project-approval-rules")
def test_a_reset_of_approvals_leaves_the_number_of_a_copied_rule(
    maintainer: Caller,
    approver: Caller,
    project_bot: Caller,
    project: Fixture,
    project_rules: Path,
    reset_merge_request: Fixture,
) -> None:
    """A copy has a number of approvals of its own, which differs from that of the project's rule."""
    path = merge_request_path(project, reset_merge_request)
    with under_review(maintainer, path, approver):
        left_to_others()  # if no rule of the project is copied
        with suppress(Unmet):
            source = created(maintainer, project_rules, approvals_required=1, user_ids=[user_id(approver)])["id"]
            copied = {"approvals_required": 5, "approval_project_rule_id": source}
            created(maintainer, path / "approval_rules", **copied)
            with (
                verifies("merge-request-approvals.approvals-leave-rules"),
                unchanged(lambda: essences(maintainer, path / "approval_rules"), "the rules of the merge request"),
            ):
                approver.post(path / "approve").given_served()
                given_reset(project_bot, maintainer, path)


@pytest.mark.calls_area("project-approval-rules")
def test_rules_of_a_merge_request_leave_those_of_its_project(
    merge_request_rules: Path,
    project_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    source = created(maintainer, project_rules, user_ids=[user_id(approver)])["id"]
    with (
        verifies("merge-request-approvals.rules.leave-project-rules"),
        unchanged(lambda: standings(maintainer, project_rules), "the rules of the project"),
    ):
        rule = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
        change = {"name": fresh_name(), "approvals_required": 5, **naming_only(second_approver)}
        if not maintainer.list(merge_request_rules).having(id=source):
            maintainer.put(merge_request_rules / source, change)  # it is no rule of the merge request
        maintainer.put(merge_request_rules / rule["id"], change).given_served()
        maintainer.delete(merge_request_rules / rule["id"]).given_served()


@pytest.mark.calls_area("merge-request-approvals")
def test_rules_of_a_project_leave_those_that_a_merge_request_has_of_its_own(
    merge_request_rules: Path,
    project_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    own = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])

    def own_rule() -> Any:
        return essences(maintainer, merge_request_rules).get(own["id"])

    given(own_rule() is not None, "the list does not show the rule")
    with (
        verifies("project-approval-rules.leave-merge-requests"),
        unchanged(own_rule, "the rule of the merge request"),
    ):
        rule = created_named(maintainer, project_rules, own["name"], user_ids=[user_id(approver)])
        change = {"name": fresh_name(), "approvals_required": 3, **naming_only(second_approver)}
        maintainer.put(project_rules / rule["id"], change).given_served()
        maintainer.delete(project_rules / rule["id"]).given_served()


def test_a_number_of_another_project_shows_no_merge_request_here(
    maintainer: Caller,
    project: Fixture,
    second_merge_request: Fixture,
    fuzz_project: Fixture,
    fuzz_merge_request: Fixture,
) -> None:
    """The project set aside has fewer merge requests; if it has one with that number, it must be its own."""
    iid = given_in_profile(second_merge_request.get("iid"), "iid", second_merge_request.name)
    control = maintainer.get(merge_request_path(fuzz_project, fuzz_merge_request) / "approvals")
    own = status_of(maintainer, merge_request_path(project, second_merge_request)).get("id", "nothing")
    with verifies("merge-request-approvals.merge-request.of-its-project"):
        answer = maintainer.get(project_path(fuzz_project) / "merge_requests" / iid / "approvals")
        if answer.is_served:
            answer.must_hold(project_id=fuzz_project.id, iid=iid)
            shown = answer.json.get("id") if isinstance(answer.json, dict) else None
            must(shown != own, "no merge request of another project", f"id = {own}", answer.exchange)
        else:
            answer.must_be_refused(beside=control)


def test_a_merge_request_of_another_project_is_left_alone(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    fuzz_project: Fixture,
    fuzz_merge_request: Fixture,
) -> None:
    """Numbers of merge requests start from one in every project, so that two may be mixed up."""
    other = merge_request_path(fuzz_project, fuzz_merge_request)

    def there() -> tuple[list[int], dict[Any, dict[str, Any]]]:
        return approvers_of(maintainer, other), essences(maintainer, other / "approval_rules")

    with (
        verifies("merge-request-approvals.approvals-are-separate", "merge-request-approvals.rules.are-separate"),
        unchanged(there, "approvals and rules of the merge request in the other project"),
    ):
        rule = created(maintainer, review / "approval_rules", user_ids=[user_id(approver)])
        approver.post(review / "approve").given_served()
        given(user_id(approver) in approvers_of(maintainer, review), "the approval does not show")
        with verifies("merge-request-approvals.state.rule.approved-by-have-approved"):
            must_count_only_who_approved(maintainer, other)
        maintainer.delete(review / "approval_rules" / rule["id"]).given_served()


def test_an_approval_that_is_taken_back_stays_in_another_project(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    fuzz_project: Fixture,
    fuzz_merge_request: Fixture,
) -> None:
    """If the same user has approved the merge request of the same number there, where that approval stays too."""
    left_to_others()  # if the approver may not approve there
    other = merge_request_path(fuzz_project, fuzz_merge_request)
    with suppress(Unmet), approvals_put_back(maintainer, other, approver):
        approver.post(other / "approve").given_served()
        there = approvers_of(maintainer, other)
        approver.post(review / "approve").given_served()
        approver.post(review / "unapprove").given_served()
        with verifies("merge-request-approvals.approvals-are-separate"):
            must_be_approved_by(maintainer, other, *there)


def test_an_approval_stays_out_of_the_next_project_with_the_same_numbers(maintainer: Caller, approver: Caller) -> None:
    """Both projects may lie in one group."""
    left_to_others()
    known = filter(None, map(current_run().profile.first, ("sibling_merge_request", "password_merge_request")))
    paths = [Path(f"/projects/{one.get('project_id')}/merge_requests") / one["iid"] for one in known]
    if len(set(paths)) < len(paths) or len(paths) < 2:
        return
    here, there = paths
    with suppress(Unmet), approvals_put_back(maintainer, here, approver):
        before = approvers_of(maintainer, there)
        approver.post(here / "approve").given_served()
        with verifies("merge-request-approvals.approvals-are-separate"):
            must_be_approved_by(maintainer, there, *before)


# -- several at once ---------------------------------------------------------------------------------------------------


def test_two_approvals_at_once_are_both_kept(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    both = [approver, second_approver]
    before = approvers_of(maintainer, joint_review)
    with verifies("merge-request-approvals.approve.at-once"):
        for _ in range(2):
            answers = at_once(*(partial(caller.post, joint_review / "approve") for caller in both))
            for answer in answers:
                answer.given_served()
            must_be_approved_by(maintainer, joint_review, *before, *map(user_id, both))
            second_approver.post(joint_review / "unapprove").given_served()
            for answer in at_once(
                partial(approver.post, joint_review / "unapprove"),
                partial(second_approver.post, joint_review / "approve"),
            ):
                answer.given_served()
            must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver))
            second_approver.post(joint_review / "unapprove").given_served()


def test_two_rules_created_or_changed_at_once_are_both_kept(
    merge_request_rules: Path,
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
) -> None:
    before = set(essences(maintainer, merge_request_rules))
    bodies = [{"name": fresh_name(), "approvals_required": number, **naming_only(approver)} for number in (4, 5)]
    with verifies("merge-request-approvals.rules.create.at-once"):
        answers = at_once(
            *(
                partial(caller.post, merge_request_rules, body)
                for caller, body in zip((maintainer, owner), bodies, strict=True)
            )
        )
        made = [rule_in(answer)["id"] for answer in answers]
        must(len(set(made) - before) == len(made), "two rules with numbers of their own", f"the ids {made}")
        must_become(
            lambda: [essences(maintainer, merge_request_rules).get(number, {}).get("name") for number in made],
            lambda found: bool(found == [body["name"] for body in bodies]),
            "both rules in the list, each with the name that it was created with",
        )
    changes = [{**body, "name": fresh_name()} for body in bodies]
    with verifies("merge-request-approvals.rules.update.name"):
        answers = at_once(
            *(
                partial(caller.put, merge_request_rules / number, body)
                for caller, number, body in zip((maintainer, owner), made, changes, strict=True)
            )
        )
        for answer in answers:
            answer.given_served()
        must_become(
            lambda: [essences(maintainer, merge_request_rules).get(number, {}).get("name") for number in made],
            lambda found: bool(found == [body["name"] for body in changes]),
            "both rules in the list, each with the name that it was changed to",
        )


def test_rules_are_deleted_while_another_one_is_changed(
    merge_request_rules: Path,
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
) -> None:
    """A service that writes all rules together restores those that were deleted at the same time.

    Or it loses what was changed: so each change sends another name.
    """
    users = [user_id(approver)]
    staying, *going = (created(maintainer, merge_request_rules, user_ids=users)["id"] for _ in range(4))
    listed = maintainer.list(merge_request_rules)
    body: Rule = {"approvals_required": 5, **naming_only(approver)}

    def change() -> Answer:
        body["name"] = fresh_name()
        return maintainer.put(merge_request_rules / staying, body)

    with verifies("merge-request-approvals.rules.delete.at-once"):
        deletions = [partial(owner.delete, merge_request_rules / number) for number in going]
        answers = over_and_over(change, during=deletions)
        # It stays even if it could no longer be changed.
        now = maintainer.list(merge_request_rules).must_contain_once(id=staying)
        for answer in answers:
            answer.given_served()
        now.must_contain_once(id=staying, name=body["name"])
        for number in going:
            now.must_not_contain(id=number, after=listed)


# -- older ones, and readers who have read before ----------------------------------------------------------------------


def test_the_older_of_two_rules_is_read_and_changed_too(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    older, newer = (created(maintainer, merge_request_rules, user_ids=[user_id(approver)]) for _ in range(2))
    with verifies("merge-request-approvals.rules.read-one", go_on=True):
        for rule in (older, newer):
            maintainer.get(merge_request_rules / rule["id"]).must_be(200).must_hold(id=rule["id"], name=rule["name"])
    name, number = in_other_case(older), 5
    change = {"name": name, "approvals_required": number, **naming_only(approver)}
    with verifies(
        "merge-request-approvals.rules.update.name", "merge-request-approvals.rules.update.approvals-required"
    ):
        maintainer.put(merge_request_rules / older["id"], change).given_served()
        must_become(
            lambda: maintainer.read(merge_request_rules / older["id"]),
            lambda found: found.get("name") == name and found.get("approvals_required") == number,
            f"the older rule with the name {name} and the number {number}",
        )


def test_whoever_has_read_before_sees_an_approval_and_its_withdrawal(
    joint_review: Path,
    approver: Caller,
    second_approver: Caller,
    owner: Caller,
) -> None:
    """A response cached for one caller must not hide the change."""
    me = user_id(approver)
    readers = [one for one in (owner, second_approver, approver) if one.get(joint_review / "approvals").is_served]
    for reader in readers:
        given(me not in approvers_of(reader, joint_review), "the approval is there already")
    approver.post(joint_review / "approve").given_served()
    with verifies("merge-request-approvals.approve.lists-caller"):
        for reader in readers:
            reader.get(joint_review / "approval_state")  # reading removes nobody from the list
            must_become(
                partial(approvers_of, reader, joint_review),
                lambda found: me in found,
                f"user {me} in approved_by, as {reader.name} reads it",
            )
    approver.post(joint_review / "unapprove").given_served()
    with verifies("merge-request-approvals.unapprove.caller-is-gone"):
        for reader in readers:
            must_not_be_approved_by(reader, joint_review, me)


# -- answers about exactly this merge request --------------------------------------------------------------------------


def test_the_answer_to_an_approval_describes_the_merge_request_of_its_path(
    review: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    answer = approver.post(review / "approve").given_served()
    with verifies("merge-request-approvals.status.describes-its-merge-request"):
        answer.must_hold(iid=merge_request["iid"], project_id=project.id)
        known = {name: merge_request[name] for name in ("title", "description") if merge_request.get(name) is not None}
        if merge_request.get("id") is not None:
            known["id"] = merge_request.id
        for shown in (answer, maintainer.get(review / "approvals").given_served()):
            shown.must_hold(**known)


def test_merge_requests_have_titles_of_their_own(
    maintainer: Caller,
    project: Fixture,
    merge_request: Fixture,
    second_merge_request: Fixture,
) -> None:
    """Also those that share a source branch with another one, as far as the profile gives their titles."""
    known = current_run().profile.fixtures
    others = [known[name][0] for name in ("reset_merge_request", "untouched_merge_request") if name in known]
    with verifies("merge-request-approvals.status.title-and-description"):
        for fixture in (merge_request, second_merge_request):
            title = given_in_profile(fixture.get("title"), "title", fixture.name)
            description = given_in_profile(fixture.get("description"), "description", fixture.name)
            answer = maintainer.get(merge_request_path(project, fixture) / "approvals").given_served()
            answer.must_hold(title=title, description=description)
        for fixture in others:
            said = {name: fixture[name] for name in ("title", "description") if fixture.get(name)}
            if said:
                maintainer.get(merge_request_path(project, fixture) / "approvals").given_served().must_hold(**said)


def naming_the_second_by_group(maintainer: Caller, rules: Path, both: list[int]) -> Rule:
    """Return a rule that requires two approvals; it names a user whom no group of the profile lets approve."""
    groups, wanted = [group.id for group in current_run().profile.fixtures.get("approver_group", ())[:1]], 2
    with suppress(Unmet):
        given(bool(groups), "the profile has no group of approvers")
        rule = created(maintainer, rules, approvals_required=wanted, user_ids=both[:1], group_ids=groups)
        if any(isinstance(user, dict) and user.get("id") == both[1] for user in rule.get("eligible_approvers") or ()):
            return rule
        maintainer.delete(rules / rule["id"]).given_served()
    return created(maintainer, rules, approvals_required=wanted, user_ids=both)


def test_approvals_are_left_as_long_as_a_rule_wants_them(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Of two required approvals one is given. How the approvals that several open rules require are counted is open.

    The second approver belongs to a group that the rule names, if the target shows that its members may approve.
    """
    path, both = merge_request_path(project, merge_request), [user_id(approver), user_id(second_approver)]
    given_open(maintainer, path)
    with approvals_put_back(maintainer, path, approver, second_approver):
        rule = naming_the_second_by_group(maintainer, merge_request_rules, both)
        still_open = [one.get("id") for one in open_rules(state_of(maintainer, path))]
        given(still_open == [rule["id"]], "not exactly one rule is open, the one that names two approvers")
        wanted = approvals_left(status_of(maintainer, path))
        given(wanted > 1, "approvals_left does not count both approvals")
        approver.post(path / "approve").given_served()
        given(user_id(approver) in approvers_of(maintainer, path), "the approval does not show")
        left = approvals_left(status_of(maintainer, path))
        with verifies("merge-request-approvals.approve.left-falls", go_on=True):
            must(left < wanted, f"approvals_left < {wanted} after the approval of a named user", str(left))
        with verifies("merge-request-approvals.approve.left-until-enough"):
            must(left > 0, "approvals_left > 0 while one of two approvals is missing", str(left))
        second_approver.post(path / "approve").given_served()
        with given_done("merge-request-approvals.approve.lists-caller"):
            wanted_too = f"user {both[1]} in approved_by"
            must_become(lambda: approvers_of(maintainer, path), lambda found: both[1] in found, wanted_too)
        with verifies("merge-request-approvals.approve.left-falls"):
            now = approvals_left(status_of(maintainer, path))
            must(now < left, f"approvals_left < {left} after the second approval", str(now))
