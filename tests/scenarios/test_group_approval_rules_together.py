"""Approval rules of several groups and administrators: calls at the same moment, and groups inside others."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_rules import (
    administrator_of,
    given_declared,
    group_rules_path,
    in_list,
    other_administrators,
    own_group,
    own_rule,
    update_alone,
)
from conformance.suite.arrange.reviews import Rule, fresh_name, in_other_case, naming, rule_in
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path, given, left_to_others, verifies
from conformance.suite.load import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture


def test_a_rule_is_created_while_another_one_is_changed(
    admin_of_spare_group: Caller,
    spare_group_rules: Path,
) -> None:
    """In the group set aside, where rules stay anyhow. The changes go on while two creations run.

    The two are changed at the same moment, too. A service may refuse one of them meanwhile, but not because the caller
    made only one of them.
    """
    rules, ours = spare_group_rules, own_rule(admin_of_spare_group, spare_group_rules)
    new, other = (
        {"name": fresh_name(), "approvals_required": 1, "rule_type": "regular", **naming(admin_of_spare_group)}
        for _ in range(2)
    )
    names, somebody = [fresh_name() for _ in range(3)], naming(admin_of_spare_group)
    makers = [*other_administrators(admin_of_spare_group, rules), admin_of_spare_group]

    def change() -> list[Answer]:
        return [admin_of_spare_group.put(rules / ours["id"], {"name": name, **somebody}) for name in names]

    def create() -> list[Answer]:
        return list(answers_until_one_is_served(makers, rules, other))

    with verifies("group-approval-rules.create.at-once"):
        first, second, changes = at_once(lambda: [admin_of_spare_group.post(rules, new)], create, change)
        for answer in changes:
            answer.given_served()
        made = {rule_in(answers[-1])["id"]: sent for answers, sent in ((first, new), (second, other))}
        for number, sent in made.items():
            in_list(admin_of_spare_group, rules, number).must_hold(name=sent["name"])
        in_list(admin_of_spare_group, rules, ours["id"]).must_hold(name=names[-1])
    other_names = {number: {"name": in_other_case(sent)} for number, sent in made.items()}
    with verifies("group-approval-rules.update.name-alone", "group-approval-rules.update.name"):
        answers = at_once(*(partial(admin_of_spare_group.put, rules / one, body) for one, body in other_names.items()))
        for answer, (number, body) in zip(answers, other_names.items(), strict=True):
            done = None if answer.exchange.is_refusal else answer
            update = update_alone(admin_of_spare_group, rules / number, body, done)
            update.given_owed()
            update.alone.must_be_served()
        for number, body in other_names.items():
            in_list(admin_of_spare_group, rules, number).must_hold(**body)


def answers_until_one_is_served(makers: list[Caller], rules: Path, body: dict[str, object]) -> Iterator[Answer]:
    """Let one after the other create a rule until somebody is served, because whether each of them may is open."""
    for maker in makers:
        answer = maker.post(rules, body)
        yield answer
        if not answer.exchange.is_refusal:
            return


def test_a_rule_of_a_group_inside_another_one_is_its_own(owner: Caller, group: Fixture) -> None:
    """Whether such a group may have rules is open; if it accepts one, its list shows it.

    It is changed through the surrounding group only if that lists it, or has a rule with its number in its own list.
    """
    given_declared(owner, "group_approval_rules")
    inner, outer = current_run().profile.first("subgroup"), own_group(group)
    rule: Rule | None = None
    with suppress(Unmet):
        given(inner is not None and inner.id != group.id, "the profile names no group inside another one")
        rules = group_rules_path(own_group(inner or group))
        admin = administrator_of(owner, inner or group)
        rule = rule_of_its_own(admin, rules, administrator_of(owner, outer), group_rules_path(outer))
    if rule is None:
        left_to_others("group-approval-rules.groups-are-separate")
        return
    names = named_as_further_out(admin, rules, administrator_of(owner, outer), group_rules_path(outer))
    with verifies("group-approval-rules.groups-are-separate", go_on=True):
        listed = admin.list(rules).must_contain_once(id=rule["id"])
        for name in names:
            listed.must_contain(name=name, approvals_required=4)
    around, change = group_rules_path(group), {"name": fresh_name()}
    if administrator_of(owner, group).list(around).having(id=rule["id"]):
        left_to_others("group-approval-rules.update.rule-of-another-group")
        return
    control = admin.put(rules / rule["id"], {"name": rule["name"], **naming(admin)})
    if not control.is_served:  # the list may show a rule of the surrounding group
        left_to_others("group-approval-rules.update.rule-of-another-group")
        return
    with verifies("group-approval-rules.update.rule-of-another-group"):
        administrator_of(owner, group).put(around / rule["id"], change).must_be_refused(beside=control)
        in_list(admin, rules, rule["id"]).must_hold(name=rule["name"])


def rule_of_its_own(inside: Caller, rules: Path, around: Caller, outer_rules: Path) -> Rule:
    """Return a rule of a group that the list of the surrounding group does not show; make one if there is none."""
    with suppress(Unmet):
        rule = own_rule(inside, rules)
        if not around.list(outer_rules).having(id=rule["id"]):
            return rule
    sent = {"name": fresh_name(), "approvals_required": 2, "rule_type": "regular", **naming(inside)}
    return rule_in(inside.post(rules, sent))


def named_as_further_out(inside: Caller, rules: Path, around: Caller, outer_rules: Path) -> list[str]:
    """Give a group a rule with the name of one in the surrounding group; return that name if it was not refused."""
    name = str(own_rule(around, outer_rules)["name"])
    sent = {"name": name, "approvals_required": 4, "rule_type": "regular", **naming(inside)}
    return [name] if not inside.list(rules).having(name=name) and inside.post(rules, sent).is_served else []
