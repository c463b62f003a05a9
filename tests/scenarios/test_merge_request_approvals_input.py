"""Merge request approvals: updates of nothing, and values of a clearly wrong type, change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import ABSENT, UNUSED_ID
from conformance.suite.arrange.approval_rules import attempt, given_owed, is_for_anybody, must_be_dropped_or_refused
from conformance.suite.arrange.reviews import (
    approvals_required,
    approvers_named,
    approvers_of,
    created,
    created_before_another,
    essences,
    fresh_name,
    merge_request_path,
    must_be_approved_by,
    status_of,
    under_review,
    user_id,
    username,
)
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    given,
    must,
    observe,
    parsed,
    project_path,
    unchanged,
    verifies,
    whole_number,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.arrange.reviews import Rule

Body = dict[str, Any]

#: No number, no truth value, no text and no list, even after any conversion.
AN_OBJECT: Body = {"conformance": "abc"}


# -- rules -------------------------------------------------------------------------------------------------------------


def test_an_update_without_any_parameter_changes_nothing(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    rule = created_before_another(maintainer, merge_request_rules, user_ids=[user_id(approver)])

    def values() -> tuple[Any, Any]:
        found = maintainer.read(merge_request_rules / rule["id"])
        # If that removes its approvers, it may become the rule for any approver, which may have its own name.
        return rule["name"] if is_for_anybody(found) else found["name"], found["approvals_required"]

    with verifies("merge-request-approvals.rules.update.empty"), unchanged(values, "name and approvals_required"):
        answer = maintainer.put(merge_request_rules / rule["id"], {}).must_not_break()
    observe(
        "merge-request-approvals.rules.update.empty-answer",
        f"an update without any parameter answers {answer.status}",
    )


@pytest.mark.parametrize(
    ("requirement", "wrong"),
    [
        ("merge-request-approvals.rules.create.approvals-required-is-integer", {"approvals_required": "abc"}),
        ("merge-request-approvals.rules.create.approvals-required-is-integer", {"approvals_required": AN_OBJECT}),
        ("merge-request-approvals.rules.create.name-is-string", {"name": AN_OBJECT}),
        ("merge-request-approvals.rules.create.project-rule-is-integer", {"approval_project_rule_id": "abc"}),
        ("merge-request-approvals.rules.create.approvals-required-is-required", {"approvals_required": None}),
        ("merge-request-approvals.rules.create.name-is-required", {"name": None}),
    ],
)
def test_no_rule_arises_from_a_creation_that_cannot_be_read(
    requirement: str,
    wrong: Body,
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    """The same creation without the mistake is served. A value of None here is left out."""
    right: Body = {"name": fresh_name(), "approvals_required": 4, "user_ids": [user_id(approver)]}
    sent = {name: value for name, value in {**right, **wrong}.items() if value is not None}
    before = maintainer.list(merge_request_rules).ids()
    with verifies(requirement):
        refused = maintainer.post(merge_request_rules, sent)
        after = maintainer.list(merge_request_rules).ids()
        refused.must_be_refused(beside=maintainer.post(merge_request_rules, right))
        must(after == before, f"the rules as before: {as_json(before)}", as_json(after))


@pytest.mark.parametrize(
    ("requirement", "wrong"),
    [
        ("merge-request-approvals.rules.update.approvals-required-is-integer", {"approvals_required": "abc"}),
        ("merge-request-approvals.rules.update.approvals-required-is-integer", {"approvals_required": AN_OBJECT}),
        ("merge-request-approvals.rules.update.name-is-string", {"name": AN_OBJECT}),
        ("merge-request-approvals.rules.update.remove-hidden-groups-is-boolean", {"remove_hidden_groups": "maybe"}),
        ("merge-request-approvals.rules.update.remove-hidden-groups-is-boolean", {"remove_hidden_groups": AN_OBJECT}),
    ],
)
def test_a_rule_stays_when_an_update_of_it_cannot_be_read(
    requirement: str,
    wrong: Body,
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    rule = created_before_another(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    right: Body = {
        "name": fresh_name(),
        "approvals_required": 5,
        "user_ids": [user_id(second_approver)],
        "group_ids": [],
        "remove_hidden_groups": False,
    }
    before = essences(maintainer, merge_request_rules)
    with verifies(requirement):
        refused = maintainer.put(merge_request_rules / rule["id"], {**right, **wrong})
        after = essences(maintainer, merge_request_rules)
        refused.must_be_refused(beside=maintainer.put(merge_request_rules / rule["id"], right))
        must(after == before, f"the rules as before: {as_json(before)}", as_json(after))


def test_an_object_in_place_of_a_list_gives_a_new_rule_no_approver(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    """Refused or ignored: the sent value names somebody, but not in a list."""
    with verifies("merge-request-approvals.rules.create.approvers-are-lists"):
        for name, number in (("user_ids", user_id(approver)), ("group_ids", approver_group.id)):
            control = created(maintainer, merge_request_rules, **{name: [number]})
            given(any(approvers_named(control)), f"{name} as a list names nobody either")
            must_name_nobody(maintainer, merge_request_rules, **{name: {"id": number}})


def test_an_object_in_place_of_usernames_gives_a_new_rule_no_approver(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    with verifies("merge-request-approvals.rules.create.usernames-are-a-list"):
        control = created(maintainer, merge_request_rules, usernames=[username(approver)])
        given_owed(maintainer, any(approvers_named(control)), "usernames, which came with 15.8")
        given(any(approvers_named(control)), "usernames as a list name nobody either")
        must_name_nobody(maintainer, merge_request_rules, usernames={"username": username(approver)})


def must_name_nobody(caller: Caller, rules: Path, **more: object) -> None:
    """Expect a refusal that creates nothing, or a rule that names neither users nor groups."""
    answer, made = attempt(caller, rules, approvals_required=4, **more)
    must_be_dropped_or_refused(answer, made)
    for rule in made:
        named = approvers_named(caller.read(rules / rule["id"]))
        must(named == ([], []), "neither users nor groups in the new rule", as_json(named), answer.exchange)


def test_an_object_in_place_of_a_list_adds_no_approver_to_a_rule(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
) -> None:
    rule = created_before_another(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    given(approvers_named(rule) == ([user_id(approver)], []), "the rule does not name just the approver")
    with verifies("merge-request-approvals.rules.update.approvers-are-lists"):
        for body in (
            {"user_ids": {"id": user_id(second_approver)}, "group_ids": []},
            {"user_ids": [user_id(approver)], "group_ids": {"id": approver_group.id}},
        ):
            rule = must_add_nobody(maintainer, merge_request_rules, rule, body, approver)


def test_an_object_in_place_of_usernames_adds_no_approver_to_a_rule(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    rule = created_before_another(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    given(approvers_named(rule) == ([user_id(approver)], []), "the rule does not name just the approver")
    body = {"user_ids": [user_id(approver)], "usernames": {"username": username(second_approver)}, "group_ids": []}
    with verifies("merge-request-approvals.rules.update.usernames-are-a-list"):
        must_add_nobody(maintainer, merge_request_rules, rule, body, approver)


def must_add_nobody(caller: Caller, rules: Path, rule: Rule, body: Body, named: Caller) -> Rule:
    """Send an update with an object in place of a list and another number, and return the rule.

    Expect no new approver in it, and after a refusal the former number.
    """
    number = approvals_required(rule)
    answer = caller.put(rules / rule["id"], {**body, "approvals_required": number + 1}).must_not_break()
    now: Rule = caller.read(rules / rule["id"])
    users, groups = approvers_named(now)
    must(not groups and set(users) <= {user_id(named)}, "no approver added", f"users {users}, {groups}")
    shown = now.get("approvals_required")
    is_same = not answer.exchange.is_refusal or shown == number
    must(is_same, f"approvals_required = {as_json(number)} after a refusal", as_json(shown), answer.exchange)
    return now


# -- numbers in the path -----------------------------------------------------------------------------------------------


def test_a_rule_is_not_found_by_just_any_text(merge_request_rules: Path, maintainer: Caller, approver: Caller) -> None:
    """Whether a rule is also found by its name is open."""
    rule = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    with verifies("merge-request-approvals.rules.read-one.rule-id-is-integer", go_on=True):
        control = maintainer.get(merge_request_rules / rule["id"])
        maintainer.get(merge_request_rules / "abc").must_be_refused(beside=control)
    control = maintainer.put(merge_request_rules / rule["id"], {"name": rule["name"]})
    with (
        verifies("merge-request-approvals.rules.update.rule-id-is-integer"),
        unchanged(lambda: essences(maintainer, merge_request_rules), "the rules"),
    ):
        maintainer.put(merge_request_rules / "abc", {"name": fresh_name()}).must_be_refused(beside=control)


def test_a_merge_request_is_found_by_a_number_only(
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    with under_review(maintainer, merge_request_path(project, merge_request), approver) as here:
        rule = created(maintainer, here / "approval_rules", user_ids=[user_id(approver)])
        new = {"name": fresh_name(), "approvals_required": 4, "user_ids": [user_id(approver)]}
        calls = (
            (maintainer, "GET", "approvals", ABSENT),
            (maintainer, "GET", "approval_state", ABSENT),
            (maintainer, "GET", "approval_rules", ABSENT),
            (maintainer, "GET", f"approval_rules/{rule['id']}", ABSENT),
            (maintainer, "POST", "approval_rules", new),
            (maintainer, "PUT", f"approval_rules/{rule['id']}", {"approvals_required": 5}),
            (approver, "POST", "approve", ABSENT),
            (approver, "POST", "unapprove", ABSENT),
        )
        nowhere = project_path(project) / "merge_requests" / "abc"
        with verifies("merge-request-approvals.merge-request.iid-is-integer"):
            for caller, method, below, body in calls:
                control = caller.call(method, here / below, json=body)
                caller.call(method, nowhere / below, json=body).must_be_refused(beside=control)


# -- approving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requirement", "parameter"),
    [
        ("merge-request-approvals.approve.sha-is-text", "sha"),
        ("merge-request-approvals.approve.password-is-text", "approval_password"),
    ],
    ids=["sha", "password"],
)
def test_an_optional_text_that_cannot_be_read_is_refused_or_ignored(
    requirement: str,
    parameter: str,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """A service may ignore what it cannot read; then it approves as it would without it."""
    with under_review(maintainer, merge_request_path(project, merge_request), approver) as path:
        before = approvers_of(maintainer, path)
        with verifies(requirement):
            answer = approver.post(path / "approve", {parameter: AN_OBJECT}).must_not_break()
            expected = sorted([*before, user_id(approver)]) if answer.is_served else before
            must_be_approved_by(maintainer, path, *expected)
        approver.post(path / "unapprove")


# -- a merge request that does not exist -----------------------------------------------------------------------------


def test_a_merge_request_that_does_not_exist_shows_and_takes_no_rules(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    rule = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    here = merge_request_path(project, merge_request)
    nowhere = project_path(project) / "merge_requests" / UNUSED_ID
    by_id = whole_number(status_of(maintainer, here).get("id"))
    with verifies("merge-request-approvals.unknown-merge-request.reading", go_on=True):
        for below in ("approvals", "approval_state", "approval_rules", f"approval_rules/{rule['id']}"):
            maintainer.get(nowhere / below).must_be_refused(beside=maintainer.get(here / below))
        if by_id is not None:
            answer = maintainer.get(project_path(project) / "merge_requests" / by_id / "approvals").must_not_break()
            # It may also be served: another merge request may have this number as its iid.
            found = parsed(answer.exchange.body) if answer.is_served else None
            is_it = isinstance(found, dict) and found.get("id") == by_id and found.get("iid") != by_id
            must(not is_it, f"no merge request by its id, {by_id}", f"iid = {merge_request['iid']}", answer.exchange)
    values: Rule = {"approvals_required": 5, "user_ids": [user_id(approver)], "group_ids": []}
    new, change = {**values, "name": fresh_name()}, {**values, "name": fresh_name()}
    with verifies("merge-request-approvals.unknown-merge-request.changing-rules"):
        control = maintainer.post(merge_request_rules, new)
        maintainer.post(nowhere / "approval_rules", new).must_be_refused(beside=control)
        control = maintainer.put(merge_request_rules / rule["id"], change)
        maintainer.put(nowhere / "approval_rules" / rule["id"], change).must_be_refused(beside=control)
        maintainer.delete(nowhere / "approval_rules" / rule["id"]).must_not_break()
