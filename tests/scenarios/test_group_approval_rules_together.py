"""Approval rules of a group: several calls at the same moment, and several administrators of one group."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.suite.arrange.approval_rules import (
    in_list,
    other_administrators,
    own_rule,
    update_alone,
)
from conformance.suite.arrange.reviews import fresh_name, in_other_case, naming, rule_in
from conformance.suite.expectations import Answer, Caller, Path, verifies
from conformance.suite.load import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator


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
