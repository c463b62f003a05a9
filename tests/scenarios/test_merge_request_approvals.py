"""Merge request approvals: who approves, who withdraws an approval, who resets, and what the status shows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.reviews import (
    OTHER_SHA,
    approvals_left,
    approvals_put_back,
    approvals_required,
    approvers_in,
    approvers_named,
    approvers_of,
    created,
    given_open,
    given_with_list,
    merge_request_path,
    must_be_approved_by,
    must_become,
    must_not_be_approved_by,
    open_rules,
    rule_in_state,
    settled,
    state_of,
    status_of,
    under_review,
    user_id,
)
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    named_otherwise,
    observe,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once
from conformance.suite.moments import is_later

if TYPE_CHECKING:
    from conformance.suite import Fixture

#: In a small service, the ids of some merge requests are iids of others: these may have one that is not.
MORE = ("reset_merge_request", "untouched_merge_request", "code_owner_merge_request")


def shown_in(answer: Answer) -> list[int]:
    """Return the approvers that the answer to an approval shows."""
    return approvers_in(given_with_list(answer.json, "approved_by", "the answer does not say who approved"))


# -- the status --------------------------------------------------------------------------------------------------------


def test_the_status_describes_the_merge_request_of_its_path(
    maintainer: Caller, project: Fixture, merge_request: Fixture
) -> None:
    """By its number and by its path; so does that of one in a group inside others, if it may be read."""
    path = merge_request_path(project, merge_request)
    answer = maintainer.get(path / "approvals").given_served()
    by_path = maintainer.get(named_otherwise(path / "approvals", project, maintainer)).given_served()
    known = {} if merge_request.get("id") is None else {"id": merge_request.id}
    with verifies("merge-request-approvals.status.describes-its-merge-request", go_on=True):
        for shown in (answer, by_path):
            shown.must_hold(iid=merge_request["iid"], project_id=project.id, **known)
    with verifies("merge-request-approvals.status.created-before-updated", go_on=True):
        times = {name: answer.json.get(name) for name in ("created_at", "updated_at")}
        later = is_later(*times.values())
        given(later is not None, f"{times} are no two moments")
        must(not later, "created_at not after updated_at", f"{times}", answer.exchange)
    if (nested := current_run().profile.first("nested_merge_request")) is not None:
        place = {"project_id": nested.get("project_id"), "iid": nested.get("iid")}
        there = maintainer.get(Path("/projects/{project_id}/merge_requests/{iid}/approvals".format(**place)))
        if there.is_served:
            with verifies("merge-request-approvals.status.describes-its-merge-request", go_on=True):
                there.must_hold(**place)
    with verifies("merge-request-approvals.status.open-state"):
        answer.must_hold(state="opened")


def test_the_number_of_a_merge_request_counts_within_its_project(
    maintainer: Caller,
    project: Fixture,
    merge_request: Fixture,
    second_merge_request: Fixture,
) -> None:
    """If an id is read as an iid, the merge request of somebody else is shown and approved."""
    more = (each for name in MORE for each in current_run().profile.fixtures.get(name, ()))
    known = [each for each in (merge_request, second_merge_request, *more) if each.get("id") is not None]
    with verifies("merge-request-approvals.merge-request.by-iid"):
        asked = {fixture.id: maintainer.get(f"{project_path(project)}/merge_requests/{fixture.id}/approvals")
                 for fixture in known if fixture.id != fixture.get("iid")}  # fmt: skip
        # A merge request served under its own number is another one, whose iid happens to be that number.
        telling = {number: answer for number, answer in asked.items() if not is_numbered(answer, number)}
        given(bool(telling), "each id that the profile gives is the iid of a merge request as well")
        control = maintainer.get(merge_request_path(project, merge_request) / "approvals")
        for answer in telling.values():
            answer.must_be_refused(beside=control)


def is_numbered(answer: Answer, iid: int) -> bool:
    return answer.is_served and isinstance(answer.json, dict) and answer.json.get("iid") == iid


def test_maintainers_and_owners_may_read(
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    path = merge_request_path(project, merge_request)
    for what in ("approvals", "approval_state", "approval_rules"):
        with verifies("merge-request-approvals.authorization.maintainer-is-served", go_on=True):
            maintainer.get(path / what).must_be_served()
        with verifies("merge-request-approvals.authorization.owner-is-served", go_on=True):
            owner.get(path / what).must_be_served()


def test_whether_somebody_without_a_role_may_read(
    maintainer: Caller,
    outsider: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    path = merge_request_path(project, merge_request)
    for what in ("approvals", "approval_state", "approval_rules"):
        maintainer.get(path / what).given_served()
        answer = outsider.get(path / what)
        observe(
            "merge-request-approvals.authorization.outsider-reading",
            f"reading {what} without a role in a private project answers {answer.status}",
        )


# -- approving ---------------------------------------------------------------------------------------------------------


def test_an_approval_lists_its_caller_and_lowers_what_is_left(
    review: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    me, before = user_id(approver), status_of(maintainer, review)
    still_open = open_rules(state_of(maintainer, review))
    answer = approver.post(review / "approve")
    with verifies("merge-request-approvals.approve.answer", "merge-request-approvals.approve.needs-no-parameter"):
        answer.must_be(200, 201)
    with verifies("merge-request-approvals.approve.lists-caller", go_on=True):
        must(me in shown_in(answer), f"user {me} in approved_by of the answer", str(shown_in(answer)))
        must_be_approved_by(maintainer, review, *approvers_in(before), me)
        for reader in (caller_named(name) for name in ("reporter", "author", "admin") if is_known(name)):
            answer_to_others = reader.get(review / "approvals")  # who may read is open, and whoever may reads the same
            if answer_to_others.is_served:
                listed = shown_in(answer_to_others)
                must(me in listed, f"user {me} in approved_by, as {reader.name} reads it", str(listed))
    was_left, left = approvals_left(before), approvals_left(status_of(maintainer, review))
    with verifies("merge-request-approvals.approve.left-never-rises", go_on=True):
        must(left <= was_left, f"approvals_left <= {was_left}", str(left))
    with verifies("merge-request-approvals.approve.left-falls"):
        named = [[user.get("id") for user in rule.get("users", ())] for rule in still_open]
        given(named == [[me]], "not exactly one rule is open, the one that names the caller")
        must(left < was_left, f"approvals_left < {was_left}", str(left))
        left = approvals_left(answer.json)  # the answer is the status after the approval
        must(left < was_left, f"approvals_left < {was_left} in the answer", str(left), answer.exchange)


def test_an_approval_counts_in_the_rule_that_names_its_caller(
    review: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    me = user_id(approver)
    rule = created(maintainer, review / "approval_rules", approvals_required=1, user_ids=[me])
    given(me not in counted(maintainer, review, rule["id"]), "the caller counts before approving")
    approver.post(review / "approve").given_served()
    with verifies("merge-request-approvals.approve.lists-caller-in-rule", go_on=True):
        must_become(
            lambda: counted_where_named(maintainer, review, rule["id"], me),
            lambda found: me in found,
            f"user {me} in a rule that names no other",
        )
    state = state_of(maintainer, review)
    with verifies("merge-request-approvals.state.overwritten", go_on=True):
        said = state.get("approval_rules_overwritten")
        must(said is True, "approval_rules_overwritten = true, approved or not", as_json(said))
    approved = rule_in_state(state, rule["id"]).get("approved")
    observe(
        "merge-request-approvals.state.rule.approved-follows-approvals",
        f"approved is {as_json(approved)} once as many of the rule's approvers approved as it requires",
    )
    beyond = approved_beyond(maintainer, review, rule["id"], me)
    left_to_others("merge-request-approvals.approve.keeps-others", "merge-request-approvals.approve.lists-caller")
    left_to_others("merge-request-approvals.approve.left-never-rises")
    if beyond is not None:
        shown, wanted = beyond.shown, beyond.wanted
        with verifies("merge-request-approvals.approve.keeps-others", "merge-request-approvals.approve.lists-caller"):
            must(set(shown) >= set(wanted), f"users {wanted} in approved_by, needed or not", str(shown))
            must(len(set(shown)) == len(shown), "each of them once, whatever it counts for", str(shown))
        if (left_out := beyond.uncounted) is not None:
            with verifies("merge-request-approvals.approve.lists-caller-in-rule", go_on=True):
                must(not left_out, "each of them in a rule that names and needs both", f"{left_out} in none")
        with verifies("merge-request-approvals.approve.left-never-rises"):
            must(beyond.left <= beyond.was_left, f"approvals_left <= {beyond.was_left}", str(beyond.left))
    status = status_of(maintainer, review)
    within = approvals_left(status) <= approvals_required(status)
    observe(
        "merge-request-approvals.status.left-within-required",
        f"approvals_left {'stays within' if within else 'exceeds'} approvals_required",
    )


@dataclass(frozen=True)
class Beyond:
    """Who has approved, and how many approvals are left, after one that no rule needed."""

    wanted: list[int]
    shown: list[int]
    was_left: int
    left: int
    uncounted: set[int] | None
    """Who is in approved_by of no rule of the state, although one rule needs both; None if the change was refused."""


def approved_beyond(reader: Caller, review: Path, rule: int, first: int) -> Beyond | None:
    """Let one more person approve than required, and return the result.

    Whether more may approve than required is open: None if it is refused, or nobody else is known.
    """
    more = current_run().profile.actors.get("second_approver")
    if more is None or more.id is None:
        return None
    other = caller_named("second_approver")
    change = {"approvals_required": 1, "user_ids": [first, user_id(other)], "group_ids": []}
    with approvals_put_back(reader, review, other):
        asks_for_one = reader.put(review / "approval_rules" / rule, change)
        before = status_of(reader, review)
        if not asks_for_one.is_served or not other.post(review / "approve").is_served:
            return None
        wanted = sorted({*approvers_in(before), user_id(other)})
        shown = settled(lambda: approvers_of(reader, review), wanted)
        left, both = approvals_left(status_of(reader, review)), {first, user_id(other)}
        needs_both = reader.put(review / "approval_rules" / rule, {**change, "approvals_required": 2}).is_served

        def uncounted() -> set[int]:
            rules = [each for each in state_of(reader, review)["rules"] if isinstance(each, dict)]
            lacking = both - {user for each in rules for user in ids_in(each.get("approved_by"))}
            # A change of a rule may take approvals away.
            return lacking & set(approvers_of(reader, review)) if rules and lacking else set()

        return Beyond(wanted, shown, approvals_left(before), left, settled(uncounted, set()) if needs_both else None)


def counted(reader: Caller, path: Path, number: int) -> list[int]:
    """Return who counts as having approved for a rule of the approval state."""
    rule = rule_in_state(state_of(reader, path), number)
    return ids_in(given_with_list(rule, "approved_by", "the rule has no list approved_by")["approved_by"])


def counted_where_named(reader: Caller, path: Path, number: int, me: int) -> list[int]:
    """Return who counts for a rule that names a user, and who counts for others that name only this user.

    An approval may count for only one rule, and nothing says for which.
    """
    found = counted(reader, path, number)
    rules = [rule for rule in state_of(reader, path)["rules"] if isinstance(rule, dict)]
    alike = [rule for rule in rules if ids_in(rule.get("users")) == [me]]
    return sorted({*found, *(user for rule in alike for user in ids_in(rule.get("approved_by")))})


def ids_in(users: Any) -> list[int]:
    shown = users if isinstance(users, list) else []
    return [user["id"] for user in shown if isinstance(user, dict) and isinstance(user.get("id"), int)]


def test_an_approval_keeps_those_who_approved_before(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    before = approvers_of(maintainer, joint_review)
    second_approver.post(joint_review / "approve").given_served()
    with verifies("merge-request-approvals.approve.keeps-others"):
        must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver))
        answer = approver.post(joint_review / "approve").given_served()
        must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver), user_id(approver))
        # The answer is the status after the approval.
        shown = shown_in(answer)
        must(
            user_id(second_approver) in shown, "who approved before in the answer as well", str(shown), answer.exchange
        )
    with verifies("merge-request-approvals.approve.lists-caller"):
        must(user_id(approver) in shown, "whoever approves after another in the answer", str(shown), answer.exchange)


def test_approving_twice_lists_the_caller_once(review: Path, maintainer: Caller, approver: Caller) -> None:
    before = approvers_of(maintainer, review)
    approver.post(review / "approve").given_served()
    with verifies("merge-request-approvals.approve.repeated"):
        again = approver.post(review / "approve").must_not_break()
        must_be_approved_by(maintainer, review, *before, user_id(approver))
        # Nor twice through two concurrent calls.
        for _ in range(ROUNDS):
            approver.post(review / "unapprove").given_served()
            with verifies("merge-request-approvals.unapprove.caller-is-gone"):  # however often the caller approved
                must_not_be_approved_by(maintainer, review, user_id(approver))
            both = at_once(*(partial(approver.post, review / "approve") for _ in range(2)))
            given(any(answer.is_served for answer in both), "neither of two approvals at once is served")
            must_be_approved_by(maintainer, review, *before, user_id(approver))
    observe(
        "merge-request-approvals.approve.repeated-answer",
        f"a second approval by the same caller answers {again.status}",
    )


def test_how_a_developer_outside_the_rules_is_answered(
    maintainer: Caller, developer: Caller, project: Fixture, merge_request: Fixture
) -> None:
    """Who may approve is open, and so is the result: both are recorded. Whoever is listed may take it back."""
    path = merge_request_path(project, merge_request)
    given_open(maintainer, path)
    left_to_others("merge-request-approvals.unapprove.answer", "merge-request-approvals.unapprove.caller-is-gone")
    with approvals_put_back(maintainer, path, developer):
        answer, listed = developer.post(path / "approve"), ""
        if answer.is_served:
            is_listed = user_id(developer) in approvers_of(maintainer, path)
            listed = ", and is listed" if is_listed else ", and is not listed"
            undone = developer.post(path / "unapprove")  # even if it is not listed: nothing else would remove it
            if is_listed:
                with verifies("merge-request-approvals.unapprove.answer", go_on=True):
                    undone.must_be_served()
                with verifies("merge-request-approvals.unapprove.caller-is-gone", go_on=True):
                    must_not_be_approved_by(maintainer, path, user_id(developer))
        observe(
            "merge-request-approvals.approve.by-developer-outside-rules",
            f"the approval of a developer whom no rule names answers {answer.status}{listed}",
        )


# -- taking it back ----------------------------------------------------------------------------------------------------


@pytest.mark.requirements("merge-request-approvals.approve.other-sha-conflicts")
def test_an_approval_can_be_taken_back_and_given_again(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """An approval that cannot be withdrawn still counts although its giver no longer agrees."""
    before = approvers_of(maintainer, joint_review)
    for caller in (second_approver, approver):
        caller.post(joint_review / "approve").given_served()
    both = status_of(maintainer, joint_review)
    given(user_id(approver) in approvers_in(both), "the approval does not show, so it cannot be taken back")
    answer = approver.post(joint_review / "unapprove")
    with verifies("merge-request-approvals.unapprove.answer"):
        answer.must_be_served()
    with verifies("merge-request-approvals.unapprove.caller-is-gone"):
        must_not_be_approved_by(maintainer, joint_review, user_id(approver))
    with verifies("merge-request-approvals.unapprove.keeps-others", go_on=True):
        must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver))
    rises = approvals_left(status_of(maintainer, joint_review)) > approvals_left(both)
    observe(
        "merge-request-approvals.approvals-left-after-withdrawal",
        f"approvals_left {'rises' if rises else 'does not rise'} after an approval was taken back",
    )
    with verifies("merge-request-approvals.unapprove.approve-again"):
        approver.post(joint_review / "approve").must_be_served()
        must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver), user_id(approver))
    second_approver.post(joint_review / "unapprove").given_served()
    with verifies("merge-request-approvals.unapprove.caller-is-gone"):
        must_not_be_approved_by(maintainer, joint_review, user_id(second_approver))
    with verifies("merge-request-approvals.unapprove.keeps-others"):
        must_be_approved_by(maintainer, joint_review, *before, user_id(approver))
    approver.post(joint_review / "unapprove").given_served()
    with verifies("merge-request-approvals.unapprove.without-approval", go_on=True):
        approver.post(joint_review / "unapprove").must_not_break()  # nor does it approve, or withdraw anything else
    second_approver.post(joint_review / "approve").given_served()
    with verifies("merge-request-approvals.approve.keeps-others"):
        must_be_approved_by(maintainer, joint_review, *before, user_id(second_approver))
    left_to_others("merge-request-approvals.approve.other-sha-conflicts")  # unless a third person may approve
    if maintainer.actor is not None and maintainer.actor.id is not None:
        a_maintainer_withdraws_nobody_elses_approval(joint_review, maintainer, approver)


def a_maintainer_withdraws_nobody_elses_approval(joint_review: Path, maintainer: Caller, approver: Caller) -> None:
    """More rights do not let anybody withdraw others' approvals; whether a maintainer may approve at all is open."""
    left = approvers_of(maintainer, joint_review)
    with approvals_put_back(maintainer, joint_review, maintainer):
        if not maintainer.post(joint_review / "approve").is_served:
            return
        maintainer.post(joint_review / "unapprove").given_served()
        with verifies("merge-request-approvals.unapprove.keeps-others"):
            now = approvers_of(maintainer, joint_review)
            must(set(left) <= {*now, user_id(maintainer)}, f"approved_by of {left}", str(now))
        # Enough people have approved by now, so the next approval may be accepted whatever was reviewed.
        approver.post(joint_review / "approve").given_served()
        conflict = maintainer.post(joint_review / "approve", {"sha": OTHER_SHA})
        # Whether more may approve than required is open as well: if not, that is no conflict.
        if conflict.is_served or maintainer.post(joint_review / "approve").is_served:
            with verifies("merge-request-approvals.approve.other-sha-conflicts"):
                conflict.must_be(409)


def test_unapproving_without_an_approval_changes_nothing(
    joint_review: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """Approvals of one or two others, if a maintainer may approve as well."""
    second_approver.post(joint_review / "approve").given_served()
    listed = approvers_of(maintainer, joint_review)
    given(user_id(second_approver) in listed, "the other approval does not show")
    also = maintainer.post(joint_review / "approve")
    with (
        verifies("merge-request-approvals.unapprove.without-approval"),
        unchanged(lambda: approvers_of(maintainer, joint_review), "approved_by"),
    ):
        answer = approver.post(joint_review / "unapprove").must_not_break()
        author = current_run().profile.actors.get("author")
        if author is not None and author.id is not None and author.id not in listed:  # no more than anybody else
            caller_named("author").post(joint_review / "unapprove").must_not_break()
    if also.is_served and not (maintainer.actor and maintainer.actor.id in listed):  # an older approval stays
        maintainer.post(joint_review / "unapprove")
    observe(
        "merge-request-approvals.unapprove.without-approval-answer",
        f"unapproving without an approval answers {answer.status}",
    )


# -- the records -------------------------------------------------------------------------------------------------------


@pytest.mark.requirements(
    "merge-request-approvals.status.read",
    "merge-request-approvals.status.fields",
    "merge-request-approvals.status.approvals-left",
    "merge-request-approvals.status.timestamps",
    "merge-request-approvals.status.approved-by",
    "merge-request-approvals.state.read",
    "merge-request-approvals.state.fields",
    "merge-request-approvals.state.rule.fields",
    "merge-request-approvals.state.rule.rule-type",
    "merge-request-approvals.state.rule.eligible-approvers",
    "merge-request-approvals.state.rule.users",
    "merge-request-approvals.state.rule.groups",
    "merge-request-approvals.state.rule.source-rule",
    "merge-request-approvals.state.rule.overridden",
    "merge-request-approvals.state.rule.approved-by",
    "merge-request-approvals.state.rule.approved",
    "merge-request-approvals.rule.fields",
    "merge-request-approvals.rule.rule-type",
    "merge-request-approvals.rule.eligible-approvers",
    "merge-request-approvals.rule.users",
    "merge-request-approvals.rule.groups",
    "merge-request-approvals.rule.source-rule",
    "merge-request-approvals.rule.overridden",
)
def test_the_records_of_an_approved_merge_request_are_complete(
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Every list in them has an entry here; each answer is validated against the contract as it arrives."""
    path = merge_request_path(project, merge_request)
    with under_review(maintainer, path, approver):
        approvers = {"user_ids": [user_id(approver)], "group_ids": [approver_group.id]}
        rule = created(maintainer, path / "approval_rules", approvals_required=1, **approvers)
        approver.post(path / "approve").given_served()
        given(user_id(approver) in approvers_in(status_of(maintainer, path)), "the approval does not show")
        with verifies("merge-request-approvals.status.read", go_on=True):
            maintainer.get(path / "approvals").must_be(200).must_be_an(dict)
        with verifies("merge-request-approvals.state.read", go_on=True):
            maintainer.get(path / "approval_state").must_be(200).must_be_an(dict)
        in_state = rule_in_state(state_of(maintainer, path), rule["id"])
        listed = maintainer.list(path / "approval_rules").the(id=rule["id"])
        for shown in (in_state, listed):
            given(all(approvers_named(shown)) and bool(shown.get("eligible_approvers")), "a list of the rule is empty")
        given(bool(in_state.get("approved_by")), "approved_by of the rule is empty")
        with verifies("merge-request-approvals.status.description"):
            description = status_of(maintainer, path).get("description")
            has_none = description is None and merge_request.get("description") is None
            must(isinstance(description, str) or has_none, "its description as text", repr(description))
