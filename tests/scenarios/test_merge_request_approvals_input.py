"""Merge request approvals: values that nobody could take for the right type are refused and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.reviews import (
    approvers_named,
    approvers_of,
    created,
    essences,
    fresh_name,
    merge_request_path,
    rule_in,
    rules_put_back,
    under_review,
    user_id,
    username,
)
from conformance.suite.expectations import Answer, Caller, Path, given, must, project_path, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target import Fixture

Body = dict[str, Any]

#: No number, no truth value, no text and no list, whatever a service converts.
AN_OBJECT: Body = {"conformance": "abc"}


@pytest.fixture
def rules(maintainer: Caller, project: Fixture, merge_request: Fixture) -> Iterator[Path]:
    """The rules of a merge request; those that a story adds are deleted after it."""
    path = merge_request_path(project, merge_request) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("approvals-required-is-integer", {"approvals_required": "abc"}),
        ("approvals-required-is-integer", {"approvals_required": AN_OBJECT}),
        ("name-is-string", {"name": AN_OBJECT}),
        ("project-rule-is-integer", {"approval_project_rule_id": "abc"}),
        ("approvals-required-is-required", {"approvals_required": None}),
        ("name-is-required", {"name": None}),
    ],
)
def test_no_rule_arises_from_a_creation_that_cannot_be_read(
    kind: str,
    wrong: Body,
    rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    """The same creation without the mistake is served. What is None here is left out."""
    right: Body = {"name": fresh_name(), "approvals_required": 2, "user_ids": [user_id(approver)]}
    sent = {name: value for name, value in {**right, **wrong}.items() if value is not None}
    before = maintainer.list(rules).ids()
    with verifies(f"merge-request-approvals.rules.create.{kind}"):
        refused = maintainer.post(rules, sent)
        after = maintainer.list(rules).ids()
        refused.must_be_refused(beside=maintainer.post(rules, right))
        must(after == before, f"the rules as before: {before}", str(after))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("approvals-required-is-integer", {"approvals_required": "abc"}),
        ("approvals-required-is-integer", {"approvals_required": AN_OBJECT}),
        ("name-is-string", {"name": AN_OBJECT}),
        ("remove-hidden-groups-is-boolean", {"remove_hidden_groups": "maybe"}),
        ("remove-hidden-groups-is-boolean", {"remove_hidden_groups": AN_OBJECT}),
    ],
)
def test_a_rule_stays_when_an_update_of_it_cannot_be_read(
    kind: str,
    wrong: Body,
    rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    rule = created(maintainer, rules, user_ids=[user_id(approver)])
    right: Body = {
        "name": fresh_name(),
        "approvals_required": 3,
        "user_ids": [user_id(second_approver)],
        "group_ids": [],
        "remove_hidden_groups": False,
    }
    before = essences(maintainer, rules)
    with verifies(f"merge-request-approvals.rules.update.{kind}"):
        refused = maintainer.put(rules / rule["id"], {**right, **wrong})
        after = essences(maintainer, rules)
        refused.must_be_refused(beside=maintainer.put(rules / rule["id"], right))
        must(after == before, f"the rules as before: {before}", str(after))


def test_an_object_in_place_of_a_list_gives_a_new_rule_no_approver(
    rules: Path,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    """Refused or left out of account: what was sent names somebody, but not in a list."""
    with verifies("merge-request-approvals.rules.create.approvers-are-lists"):
        for name, number in (("user_ids", user_id(approver)), ("group_ids", approver_group.id)):
            control = created(maintainer, rules, **{name: [number]})
            given(any(approvers_named(control)), f"{name} as a list names nobody either")
            answer = send_new(maintainer, rules, {name: {"id": number}})
            must_name_nobody(maintainer, rules, answer)


def test_an_object_in_place_of_usernames_gives_a_new_rule_no_approver(
    rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    with verifies("merge-request-approvals.rules.create.usernames-are-a-list"):
        control = created(maintainer, rules, usernames=[username(approver)])
        given(any(approvers_named(control)), "usernames as a list name nobody either")
        answer = send_new(maintainer, rules, {"usernames": {"username": username(approver)}})
        must_name_nobody(maintainer, rules, answer)


def send_new(caller: Caller, rules: Path, more: Body) -> Answer:
    return caller.post(rules, {"name": fresh_name(), "approvals_required": 2, **more}).must_not_break()


def must_name_nobody(reader: Caller, rules: Path, answer: Answer) -> None:
    """Expect a refusal, or a rule that names neither users nor groups."""
    if answer.is_served:
        named = approvers_named(reader.read(rules / rule_in(answer)["id"]))
        must(named == ([], []), "neither users nor groups in the new rule", str(named), answer.exchange)
    else:
        must(answer.exchange.is_refusal, "a rule or a refusal", f"status {answer.status}", answer.exchange)


@pytest.mark.parametrize("kind", ["approvers-are-lists", "usernames-are-a-list"])
def test_an_object_in_place_of_a_list_adds_no_approver_to_a_rule(
    kind: str,
    rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
) -> None:
    rule = created(maintainer, rules, user_ids=[user_id(approver)])
    given(approvers_named(rule) == ([user_id(approver)], []), "the rule does not name just the approver")
    wrong: dict[str, tuple[Body, ...]] = {
        "approvers-are-lists": (
            {"user_ids": {"id": user_id(second_approver)}, "group_ids": []},
            {"user_ids": [user_id(approver)], "group_ids": {"id": approver_group.id}},
        ),
        "usernames-are-a-list": (
            {"user_ids": [user_id(approver)], "usernames": {"username": username(second_approver)}, "group_ids": []},
        ),
    }
    with verifies(f"merge-request-approvals.rules.update.{kind}"):
        for body in wrong[kind]:
            maintainer.put(rules / rule["id"], body).must_not_break()
            users, groups = approvers_named(maintainer.read(rules / rule["id"]))
            must(not groups and set(users) <= {user_id(approver)}, "no approver added", f"users {users}, {groups}")


# -- numbers in the path -----------------------------------------------------------------------------------------------


def test_a_rule_is_found_by_a_number_only(rules: Path, maintainer: Caller, approver: Caller) -> None:
    rule = created(maintainer, rules, user_ids=[user_id(approver)])
    with verifies("merge-request-approvals.rules.read-one.rule-id-is-integer", go_on=True):
        control = maintainer.get(rules / rule["id"])
        for text in ("abc", rule["name"]):
            maintainer.get(rules / text).must_be_refused(beside=control)
    control = maintainer.put(rules / rule["id"], {"name": rule["name"]})
    with (
        verifies("merge-request-approvals.rules.update.rule-id-is-integer"),
        unchanged(lambda: essences(maintainer, rules), "the rules"),
    ):
        for text in ("abc", rule["name"]):
            maintainer.put(rules / text, {"name": fresh_name()}).must_be_refused(beside=control)


def test_a_merge_request_is_found_by_a_number_only(
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    with under_review(maintainer, merge_request_path(project, merge_request), approver) as here:
        rule = created(maintainer, here / "approval_rules", user_ids=[user_id(approver)])
        new = {"name": fresh_name(), "approvals_required": 2, "user_ids": [user_id(approver)]}
        calls = (
            (maintainer, "GET", "approvals", None),
            (maintainer, "GET", "approval_state", None),
            (maintainer, "GET", "approval_rules", None),
            (maintainer, "GET", f"approval_rules/{rule['id']}", None),
            (maintainer, "POST", "approval_rules", new),
            (maintainer, "PUT", f"approval_rules/{rule['id']}", {"approvals_required": 3}),
            (approver, "POST", "approve", None),
            (approver, "POST", "unapprove", None),
        )
        nowhere = project_path(project) / "merge_requests" / "abc"
        with verifies("merge-request-approvals.merge-request.iid-is-integer"):
            for caller, method, below, body in calls:
                sent: Body = {} if body is None else {"json": body}
                control = caller.call(method, here / below, **sent)
                caller.call(method, nowhere / below, **sent).must_be_refused(beside=control)


# -- approving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "parameter"), [("sha-is-text", "sha"), ("password-is-text", "approval_password")])
def test_nothing_is_approved_with_what_cannot_be_read(
    kind: str,
    parameter: str,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    with under_review(maintainer, merge_request_path(project, merge_request), approver) as path:
        before = approvers_of(maintainer, path)
        answer = approver.post(path / "approve", {parameter: AN_OBJECT})
        after = approvers_of(maintainer, path)
        approver.post(path / "unapprove")
        control = approver.post(path / "approve")
        with verifies(f"merge-request-approvals.approve.{kind}"):
            answer.must_be_refused(beside=control)
            must(after == before, f"approved_by as before: {before}", str(after))
