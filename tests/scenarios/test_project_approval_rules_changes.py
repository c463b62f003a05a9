"""Approval rules of a project: what a change or a deletion does, to the rule and to nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.arrange.approval_rules import (
    Reading,
    by_id,
    in_answer,
    in_list,
    numbers,
    others_stay,
    project_rules,
    standings,
)
from conformance.arrange.reviews import Rule, created, fresh_name, rule_in, rules_put_back, user_id
from conformance.expectations import Caller, Path, given, must, observe, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target import Fixture


@pytest.fixture
def rules(maintainer: Caller, project: Fixture) -> Iterator[Path]:
    """The rules of the project; whichever comes to them in a story is gone after it."""
    path = project_rules(project)
    with rules_put_back(maintainer, path):
        yield path


def changed(**more: object) -> dict[str, object]:
    """Return a change that sends both lists of approvers: what becomes of a list that is left out is open."""
    return {"name": fresh_name(), "approvals_required": 3, "user_ids": [], "group_ids": [], **more}


# -- change ------------------------------------------------------------------------------------------------------------


def test_a_changed_rule_shows_its_new_name_and_number_everywhere(maintainer: Caller, rules: Path) -> None:
    number, _ = created(maintainer, rules)["id"], created(maintainer, rules)
    body = changed()
    values = {name: body[name] for name in ("name", "approvals_required")}
    with others_stay_as(maintainer, rules, number, "project-approval-rules.update.leaves-other-rules"):
        with verifies("project-approval-rules.update.answers-with-rule", go_on=True):
            answer = maintainer.put(rules / number, body)
            answer.must_be(200, 201).must_hold(id=number)
        with verifies("project-approval-rules.update.values", go_on=True):
            answer.given_served().must_hold(**values)
        with verifies("project-approval-rules.update.stored"):
            answer.given_served()
            by_id(maintainer, rules, number).must_hold(**values)
            in_list(maintainer, rules, number).must_hold(**values)
