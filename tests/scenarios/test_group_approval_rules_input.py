"""Approval rules of a group: special types, and input that is refused or ignored.

Calls that may leave a strange rule are tried in the group that is set aside, because no operation deletes a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import INHERITED
from conformance.suite.arrange.approval_rules import (
    KNOWN_TYPES,
    UNHEARD_OF,
    attempt,
    in_answer,
    in_list,
    must_be_dropped_or_refused,
    must_name_the_same,
    must_stay,
    own_group,
    standing,
    standings,
)
from conformance.suite.arrange.reviews import Rule, approvals_required, fresh_name, numbers, rule_in, user_id
from conformance.suite.context import current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    left_to_others,
    must,
    named_otherwise,
    observe,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture

OBJECT = {UNHEARD_OF: 1}


def test_types_that_come_from_elsewhere_are_created_or_refused_without_breaking(
    admin_of_spare_group: Caller,
    spare_group_rules: Path,
) -> None:
    """Whether callers can make such rules is open, but they must not break the service."""
    answer, made = attempt(admin_of_spare_group, spare_group_rules, rule_type="any_approver")
    with verifies("group-approval-rules.create.any-approver", go_on=True):
        answer.must_not_break()
        types = [rule.get("rule_type") for rule in made]
        must(all(shown in KNOWN_TYPES for shown in types), f"one of {KNOWN_TYPES}", f"rule_type = {as_json(types)}")
    observe("group-approval-rules.create.any-approver-answer", f"creating such a rule is answered {answer.status}")
    answer, _ = attempt(admin_of_spare_group, spare_group_rules, rule_type="report_approver")
    with verifies("group-approval-rules.create.report-approver", go_on=True):
        answer.must_not_break()
    observe("group-approval-rules.create.report-approver-answer", f"creating such a rule is answered {answer.status}")
    answer, made = attempt(admin_of_spare_group, spare_group_rules, rule_type="code_owner")
    with verifies("group-approval-rules.create.code-owner", go_on=True):
        answer.must_not_break()
        types = [rule.get("rule_type") for rule in made]
        must("code_owner" not in types, "no rule of type code_owner", f"rule_type = {as_json(types)}")
    with verifies("group-approval-rules.create.rule-type-is-known"):
        for unknown in (UNHEARD_OF, INHERITED):
            answer, made = attempt(admin_of_spare_group, spare_group_rules, rule_type=unknown)
            must_be_dropped_or_refused(answer, made)
            types = [rule.get("rule_type") for rule in made]
            must(unknown not in types, f"no rule of type {unknown}", f"rule_type = {as_json(types)}")


def test_a_rule_may_name_a_group_alone(
    admin_of_group: Caller,
    group: Fixture,
    group_rules: Path,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
) -> None:
    """Whether a service refuses a rule that names no user is open; one that it serves has the group.

    Whom else it names is open, too; but the call before it is no reason. Half of them are made by the path.
    """
    left_to_others()
    by_path = named_otherwise(group_rules, own_group(group), admin_of_group)
    body = {"approvals_required": 1, "rule_type": "regular"}
    other = current_run().profile.first("second_approver_group") or approver_group
    answers = [
        admin_of_group.post(rules, {**body, "name": fresh_name(), **named})
        for rules, named in (
            (group_rules, {"group_ids": [approver_group.id]}),
            (group_rules, {"user_ids": [user_id(second_approver)]}),
            (by_path, {"group_ids": [other.id]}),
            (by_path, {"user_ids": [user_id(approver)]}),
        )
    ]
    made = [rule_in(answer)["id"] if answer.is_served else None for answer in answers]
    if made[0] is not None:
        with verifies("group-approval-rules.create.group-ids", go_on=True):
            for reading in (in_answer(answers[0]), in_list(admin_of_group, group_rules, made[0])):
                reading.must_name_only(groups=[approver_group.id])
    if made[2] is not None:
        with verifies("group-approval-rules.create.group-ids", go_on=True):
            in_list(admin_of_group, group_rules, made[2]).must_name(groups=[other.id])
    if made[3] is not None:
        with verifies("group-approval-rules.create.user-ids", go_on=True):
            in_list(admin_of_group, group_rules, made[3]).must_name(users=[user_id(approver)])
    if made[0] is not None and made[2] is not None:
        with verifies("group-approval-rules.create.user-ids", go_on=True):
            must_name_the_same(admin_of_group, group_rules, made[0], made[2], "users")
    if made[1] is not None and made[3] is not None:
        with verifies("group-approval-rules.create.group-ids"):
            must_name_the_same(admin_of_group, group_rules, made[1], made[3], "groups")


def test_an_object_in_place_of_a_list_gives_nobody_a_say(
    owner: Caller,
    admin_of_spare_group: Caller,
    spare_group_rules: Path,
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
) -> None:
    """The object contains the owner, whom a list could name."""
    empty = admin_of_group.put(group_rules / group_rule["id"], {"user_ids": [], "group_ids": []}).given_served()
    sent: dict[str, Any] = {"user_ids": {UNHEARD_OF: user_id(owner)}, "group_ids": OBJECT}
    with verifies("group-approval-rules.create.approvers-are-lists", go_on=True):
        for parameter, value in sent.items():
            answer, made = attempt(admin_of_spare_group, spare_group_rules, **{parameter: value})
            must_be_dropped_or_refused(answer, made)
            for shown in made:
                named = {name: numbers(shown, name) for name in ("users", "groups")}
                must(not any(named.values()), "nobody named", as_json(named))
    before = standing(rule_in(empty))
    with verifies("group-approval-rules.update.approvers-are-lists"):
        more = {"approvals_required": approvals_required(before) + 1}
        answers = [
            admin_of_group.put(group_rules / group_rule["id"], {**more, parameter: value})
            for parameter, value in sent.items()
        ]
        for answer in answers:
            must_be_dropped_or_refused(answer, [])
        now = standing(in_list(admin_of_group, group_rules, group_rule["id"]).rule)
        for name in ("users", "groups"):
            must(
                set(now[name]) <= set(before[name]),
                f"{name} = {as_json(before[name])}",
                f"{name} = {as_json(now[name])}",
            )
        if all(answer.exchange.is_refusal for answer in answers):  # as a whole: no part is stored either
            number = before["approvals_required"]
            must(
                now["approvals_required"] == number,
                f"approvals_required = {as_json(number)}",
                as_json(now["approvals_required"]),
            )


@pytest.mark.parametrize(
    ("requirement", "parameter", "values"),
    [
        ("group-approval-rules.update.name-is-string", "name", (OBJECT,)),
        ("group-approval-rules.update.approvals-required-is-integer", "approvals_required", ("abc", OBJECT)),
    ],
    ids=["name", "approvals-required"],
)
def test_a_rule_stays_after_a_change_that_cannot_be_right(
    requirement: str,
    parameter: str,
    values: tuple[object, ...],
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
) -> None:
    path = group_rules / group_rule["id"]
    control = admin_of_group.put(path, {parameter: group_rule.get(parameter)})
    before = standings(admin_of_group, group_rules)
    with verifies(requirement):
        for value in values:
            admin_of_group.put(path, {parameter: value}).must_be_refused(beside=control)
            must_stay(admin_of_group, group_rules, before)


def test_an_unknown_type_does_not_show_after_a_change(
    admin_of_group: Caller, group_rules: Path, group_rule: Rule
) -> None:
    admin_of_group.put(group_rules / group_rule["id"], {"rule_type": "regular"}).given_served()
    with verifies("group-approval-rules.update.rule-type-is-known"):
        must_be_dropped_or_refused(admin_of_group.put(group_rules / group_rule["id"], {"rule_type": UNHEARD_OF}), [])
        shown = in_list(admin_of_group, group_rules, group_rule["id"]).rule.get("rule_type")
        must(shown in KNOWN_TYPES, f"one of {KNOWN_TYPES}", f"rule_type = {as_json(shown)}")
