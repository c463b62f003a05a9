"""Approval rules of a group: names that two rules have, and lists of approvers that are sent alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import in_answer, in_list, must_stay, others_of, own_rule
from conformance.suite.arrange.reviews import Rule, approvals_required, fresh_name, naming, rule_in, user_id
from conformance.suite.expectations import Caller, Path, left_to_others, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture


def test_a_rule_has_the_name_of_one_in_another_group(
    admin_of_group: Caller,
    group_rule: Rule,
    group_rules: Path,
    admin_of_spare_group: Caller,
    spare_group_rules: Path,
) -> None:
    """Whether two groups may have rules of one name is open; a service that accepts it has made a separate rule."""
    sent = {"name": group_rule["name"], "approvals_required": 4, "rule_type": "regular", **naming(admin_of_spare_group)}
    answer = admin_of_spare_group.post(spare_group_rules, sent)
    if spare_group_rules == group_rules or not answer.is_served:
        left_to_others("group-approval-rules.groups-are-separate")
        return
    with verifies("group-approval-rules.groups-are-separate"):
        in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(
            name=sent["name"], approvals_required=group_rule["approvals_required"]
        )
        admin_of_group.put(
            group_rules / group_rule["id"], {"approvals_required": 1 if group_rule["approvals_required"] == 2 else 2}
        ).given_served()
        in_list(admin_of_spare_group, spare_group_rules, rule_in(answer)["id"]).must_hold(
            name=sent["name"], approvals_required=4
        )
        # Then it equals the other one; a member of the other group alone may be refused here.
        if admin_of_group.put(group_rules / group_rule["id"], sent).is_served:
            admin_of_group.put(group_rules / group_rule["id"], {"approvals_required": 5}).given_served()
            in_list(admin_of_spare_group, spare_group_rules, rule_in(answer)["id"]).must_hold(approvals_required=4)


def test_a_rule_named_like_another_one_of_its_group_leaves_that_one(
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    admin_of_spare_group: Caller,
    spare_group_rules: Path,
) -> None:
    """Whether two rules of a group may have one name is open. Created in the group set aside, as rules stay."""
    left_to_others()  # if no such name is accepted
    other = own_rule(admin_of_group, group_rules, but=group_rule["id"])
    others = others_of(admin_of_group, group_rules, group_rule["id"])
    change = {"name": other["name"], "approvals_required": 1, **naming(admin_of_group)}
    admin_of_group.put(group_rules / group_rule["id"], {**change, "name": fresh_name()})
    if admin_of_group.put(group_rules / group_rule["id"], change).is_served:
        another = approvals_required(other) + 1  # than the other one has by now
        admin_of_group.put(group_rules / group_rule["id"], {**change, "approvals_required": another})
        with verifies("group-approval-rules.update.leaves-other-rules"):
            must_stay(admin_of_group, group_rules, others)
    there = own_rule(admin_of_spare_group, spare_group_rules)
    before = others_of(admin_of_spare_group, spare_group_rules)
    sent = {"name": there["name"], "approvals_required": 1, "rule_type": "regular", **naming(admin_of_spare_group)}
    if admin_of_spare_group.post(spare_group_rules, sent).is_served:
        with verifies("group-approval-rules.create.leaves-other-rules"):
            must_stay(admin_of_spare_group, spare_group_rules, before)


@pytest.mark.parametrize(
    ("requirement", "name", "shown"),
    [
        ("group-approval-rules.update.user-ids", "user_ids", "users"),
        ("group-approval-rules.update.group-ids", "group_ids", "groups"),
    ],
    ids=["users", "groups"],
)
def test_one_list_of_approvers_is_enough_for_a_change(
    requirement: str,
    name: str,
    shown: str,
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    """What becomes of the other list, and of those who were there before, is open."""
    path = group_rules / group_rule["id"]
    before = {"user_ids": [user_id(second_approver)], "group_ids": [second_approver_group.id]}
    admin_of_group.put(path, {"approvals_required": 1, **before}).given_served()
    new = {"user_ids": user_id(approver), "group_ids": approver_group.id}[name]
    answer = admin_of_group.put(path, {"approvals_required": 1, name: [new]}).given_served()
    with verifies(requirement):
        for reading in (in_answer(answer), in_list(admin_of_group, group_rules, group_rule["id"])):
            reading.must_name(**{shown: [new]})
