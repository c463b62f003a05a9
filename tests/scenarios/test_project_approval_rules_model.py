"""Approval rules of a project, explored: they follow a model, in any order of creations and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite.arrange.approval_rules import standings, standings_when
from conformance.suite.arrange.reviews import as_owed, fresh_name, rule_in, user_id
from conformance.suite.expectations import Caller, Path, as_json, must, must_be_as_before, named_otherwise, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture, SuiteSession

NUMBERS = st.integers(1, 4)
#: One of two callers, and some of two approvers, by their places; what a change does with an empty list is open.
PAIR = st.integers(0, 1)
SOME_OF_PAIR = st.lists(PAIR, min_size=1, unique=True)


@pytest.mark.requirements(
    "project-approval-rules.create.listed",
    "project-approval-rules.create.user-ids",
    "project-approval-rules.create.group-ids",
    "project-approval-rules.create.leaves-other-rules",
    "project-approval-rules.update.stored",
    "project-approval-rules.update.user-ids",
    "project-approval-rules.update.user-ids.removes-others",
    "project-approval-rules.update.group-ids",
    "project-approval-rules.update.group-ids.removes-others",
    "project-approval-rules.update.leaves-other-rules",
    "project-approval-rules.delete.unlisted",
    "project-approval-rules.delete.leaves-other-rules",
)
def test_rules_of_a_project_follow_the_model(
    suite: SuiteSession,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    project_rules: Path,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    users = [user_id(approver), user_id(second_approver)]
    groups = [approver_group.id, second_approver_group.id]
    shown = named_otherwise(project_rules, project, maintainer)
    explore(suite, lambda: ProjectApprovalRules(project_rules, shown, (maintainer, owner), users, groups))


class ProjectApprovalRules(Model):
    """A state machine for the rules of one project, which several callers change in turns; read by its path."""

    def __init__(
        self, path: Path, shown: Path, callers: tuple[Caller, Caller], users: list[int], groups: list[int]
    ) -> None:
        """Begin an example."""
        super().__init__()
        self.path, self.shown, self.callers, self.users, self.groups = path, shown, callers, users, groups
        self.made: list[int] = []
        self.known: dict[Any, dict[str, Any]] = {}

    @initialize()
    def start(self) -> None:
        self.known = standings(self.callers[0], self.shown)

    @precondition(lambda self: len(self.made) < 4)
    @rule(number=NUMBERS, users=SOME_OF_PAIR, groups=st.none() | SOME_OF_PAIR, who=PAIR)
    def create(self, number: int, users: list[int], groups: list[int] | None, who: int) -> None:
        body = self.body(number, users, groups)
        answer = self.callers[who].post(self.path, body)
        made, body = rule_in(answer)["id"], as_owed(body, answer)
        self.made.append(made)
        now = standings_when(self.callers[0], self.shown, lambda rules: made in rules)
        with verifies("project-approval-rules.create.listed"):
            must(made in now, f"rule {made} in the list", f"the rules {sorted(now, key=str)}")
            must_show(now[made], body)
        must_name("project-approval-rules.create.user-ids", now[made]["users"], body["user_ids"])
        must_name("project-approval-rules.create.group-ids", now[made]["groups"], body.get("group_ids", []))
        must_not_name_others("project-approval-rules.create.user-ids", now[made]["users"], body["user_ids"])
        must_not_name_others("project-approval-rules.create.group-ids", now[made]["groups"], body.get("group_ids", []))
        self.compare("project-approval-rules.create.leaves-other-rules", now, made)

    @precondition(lambda self: self.made)
    @rule(place=st.integers(0, 9), number=NUMBERS, users=SOME_OF_PAIR, groups=SOME_OF_PAIR, who=PAIR)
    def change(self, place: int, number: int, users: list[int], groups: list[int], who: int) -> None:
        changed = self.made[place % len(self.made)]
        body = self.body(number, users, groups)
        body = as_owed(body, self.callers[who].put(self.path / changed, body))
        now = standings_when(
            self.callers[0], self.shown, lambda rules: rules.get(changed, {}).get("name") == body["name"]
        )
        with verifies("project-approval-rules.update.stored"):
            must(changed in now, f"rule {changed} in the list", f"the rules {sorted(now, key=str)}")
            must_show(now[changed], body)
        said = now[changed]
        must_name("project-approval-rules.update.user-ids", said["users"], body["user_ids"])
        must_name("project-approval-rules.update.group-ids", said["groups"], body["group_ids"])
        must_not_name_others("project-approval-rules.update.user-ids.removes-others", said["users"], body["user_ids"])
        must_not_name_others(
            "project-approval-rules.update.group-ids.removes-others", said["groups"], body["group_ids"]
        )
        self.compare("project-approval-rules.update.leaves-other-rules", now, changed)

    @precondition(lambda self: self.made)
    @rule(place=st.integers(0, 9), who=PAIR)
    def delete(self, place: int, who: int) -> None:
        deleted = self.made.pop(place % len(self.made))
        self.callers[who].delete(self.path / deleted).given_served()
        now = standings_when(self.callers[0], self.shown, lambda rules: deleted not in rules)
        with verifies("project-approval-rules.delete.unlisted"):
            must(deleted not in now, f"no rule {deleted} in the list", f"the rules {sorted(now, key=str)}")
        self.compare("project-approval-rules.delete.leaves-other-rules", now, deleted)

    def body(self, number: int, users: list[int], groups: list[int] | None) -> dict[str, Any]:
        """Return the body of a rule; None stands for a list that is not sent."""
        named = {"user_ids": [self.users[one] for one in users]}
        if groups is not None:
            named["group_ids"] = [self.groups[one] for one in groups]
        return {"name": fresh_name(), "approvals_required": number, **named}

    def compare(self, requirement: str, now: dict[Any, dict[str, Any]], touched: int) -> None:
        """Compare every rule except the changed one with its former content.

        A default rule, by which anybody may approve, may appear with the first rule and disappear with the last.
        """
        others, left = (
            {
                number: said
                for number, said in rules.items()
                if number != touched and (number in self.made or said["rule_type"] != "any_approver")
            }
            for rules in (self.known, now)
        )
        with verifies(requirement):
            must_be_as_before("the other rules", others, left)
        self.known = now

    def teardown(self) -> None:
        for number in self.made:
            self.callers[0].delete(self.path / number)


def must_show(said: dict[str, Any], body: dict[str, Any]) -> None:
    """Expect the name and number that were sent for a rule."""
    wanted = {name: body[name] for name in ("name", "approvals_required")}
    shown = {name: said[name] for name in wanted}
    must(shown == wanted, as_json(wanted), as_json(shown))


def must_name(requirement: str, shown: list[int], wanted: list[int]) -> None:
    with verifies(requirement):
        must(set(wanted) <= set(shown), f"{sorted(wanted)} named", f"{shown} named")


def must_not_name_others(requirement: str, shown: list[int], wanted: list[int]) -> None:
    with verifies(requirement):
        must(set(shown) <= set(wanted), f"nobody but {sorted(wanted)} named", f"{shown} named")
