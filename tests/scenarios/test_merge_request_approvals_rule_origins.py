"""Approval rules of a merge request: where they come from, which of them stay as they are, and what keeps them apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

@pytest.fixture
def other_rules(maintainer: Caller, project: Fixture, reset_merge_request: Fixture) -> Iterator[Path]:
    """The rules of another merge request of the same project."""
    path = merge_request_path(project, reset_merge_request) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


# -- copying a project rule --------------------------------------------------------------------------------------------


@pytest.fixture
def project_rule(
    maintainer: Caller,
    project: Fixture,
    approver: Caller,
    approver_group: Fixture,
) -> Iterator[Rule]:
    """A rule of the project, for all branches, with an approver and a group."""
    with project_rules(maintainer, project) as path:
        yield created(
            maintainer, path, approvals_required=1, user_ids=[user_id(approver)], group_ids=[approver_group.id]
        )


@contextmanager
def project_rules(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    path = project_path(project) / "approval_rules"
    with rules_put_back(maintainer, path):
        yield path


def test_a_copy_takes_everything_but_the_number_from_the_project_rule(
    rules: Path,
    project_rule: Rule,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
    second_approver: Caller,
    project: Fixture,
) -> None:
    def original() -> Rule:
        return essence(maintainer.read(project_path(project) / "approval_rules" / project_rule["id"]))

    with (
        verifies("merge-request-approvals.rules.copy.leaves-project-rule", go_on=True),
        unchanged(original, "the project rule"),
    ):
        sent = {"approval_project_rule_id": project_rule["id"], "name": fresh_name(), "approvals_required": 2}
        copy = rule_in(maintainer.post(rules, sent))
        copied = essence(maintainer.read(rules / copy["id"]))
        change = {"name": fresh_name(), "approvals_required": 3, "user_ids": [user_id(second_approver)]}
        maintainer.put(rules / copy["id"], {**change, "group_ids": []}).given_served()
    for name, wanted in {"name": project_rule["name"], "approvals_required": 2}.items():
        given(name in copied, f"the copy has no {name}")
        what = name.replace("_", "-")
        del what
    with verifies("merge-request-approvals.rules.copy.name", go_on=True):
        must(copied["name"] == project_rule["name"], f"name = {project_rule['name']}", str(copied["name"]))
    with verifies("merge-request-approvals.rules.copy.users", go_on=True):
        must(copied["users"] == [user_id(approver)], f"users = {[user_id(approver)]}", str(copied["users"]))
    with verifies("merge-request-approvals.rules.copy.groups", go_on=True):
        must(copied["groups"] == [approver_group.id], f"groups = {[approver_group.id]}", str(copied["groups"]))
    with verifies("merge-request-approvals.rules.copy.approvals-required"):
        must(copied["approvals_required"] == 2, "approvals_required = 2", str(copied["approvals_required"]))


def test_a_copy_needs_its_own_number(rules: Path, project_rule: Rule, maintainer: Caller) -> None:
    sent = {"approval_project_rule_id": project_rule["id"], "name": fresh_name()}
    with (
        verifies("merge-request-approvals.rules.copy.approvals-required-stays-required"),
        unchanged(lambda: maintainer.list(rules).ids(), "the rules"),
    ):
        refused = maintainer.post(rules, sent)
        still_there = maintainer.list(rules).ids()
        control = maintainer.post(rules, {**sent, "approvals_required": 2})
        maintainer.delete(rules / rule_in(control)["id"]).given_served()
        refused.must_be_refused(beside=control)
        must(rule_in(control)["id"] not in still_there, "no rule from the refused call", str(still_there))


def test_how_a_copy_without_a_name_is_answered(rules: Path, project_rule: Rule, maintainer: Caller) -> None:
    answer = maintainer.post(rules, {"approval_project_rule_id": project_rule["id"], "approvals_required": 2})
    observe(
        "merge-request-approvals.rules.copy.without-name",
        f"creating a copy of a project rule without a name answers {answer.status}",
    )


def test_copying_a_project_rule_that_does_not_exist_breaks_nothing(
    rules: Path,
    project_rule: Rule,
    maintainer: Caller,
) -> None:
    sent = {"name": fresh_name(), "approvals_required": 2}
    with verifies("merge-request-approvals.rules.copy.unknown-project-rule"):
        maintainer.post(rules, {**sent, "approval_project_rule_id": project_rule["id"]}).given_served()
        unknown = maintainer.post(rules, {**sent, "approval_project_rule_id": UNUSED_ID}).must_not_break()
        must(unknown.is_served or unknown.exchange.is_refusal, "a rule or a refusal", str(unknown.status))
    observe(
        "merge-request-approvals.rules.copy.unknown-project-rule-answer",
        f"copying a project rule that does not exist answers {unknown.status}",
    )


# -- what keeps apart --------------------------------------------------------------------------------------------------


def test_rules_of_one_merge_request_leave_those_of_another(
    rules: Path,
    other_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    created(maintainer, other_rules, user_ids=[user_id(approver)])
    with (
        verifies("merge-request-approvals.rules.are-separate"),
        unchanged(lambda: essences(maintainer, other_rules), "the rules of the other merge request"),
    ):
        rule = created(maintainer, rules, user_ids=[user_id(approver)])
        change = {"approvals_required": 3, "user_ids": [user_id(second_approver)], "group_ids": []}
        maintainer.put(rules / rule["id"], change).given_served()
        maintainer.delete(rules / rule["id"]).given_served()


def test_a_rule_works_under_its_own_merge_request_only(
    rules: Path,
    other_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    rule = created(maintainer, rules, user_ids=[user_id(approver)])
    controls = maintainer.get(rules / rule["id"]), maintainer.put(rules / rule["id"], {"approvals_required": 3})
    with (
        verifies("merge-request-approvals.rules.belong-to-their-merge-request"),
        unchanged(lambda: essence(maintainer.list(rules).the(id=rule["id"])), "the rule"),
    ):
        read = maintainer.get(other_rules / rule["id"])
        updated = maintainer.put(other_rules / rule["id"], {"approvals_required": 4})
        maintainer.delete(other_rules / rule["id"]).must_not_break()
        read.must_be_refused(beside=controls[0])
        updated.must_be_refused(beside=controls[1])
