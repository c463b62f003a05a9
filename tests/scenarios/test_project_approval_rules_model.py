"""Approval rules of a project, explored: they follow a model, in any order of creations and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite.arrange.approval_rules import standings, standings_when
from conformance.suite.arrange.reviews import fresh_name, rule_in, user_id
from conformance.suite.expectations import Caller, Path, must, named_otherwise, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture, SuiteSession


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
    explore(suite, machine(project_rules, shown, users, groups, (maintainer, owner)))


def machine(rules: Path, shown: Path, users: list[int], groups: list[int], callers: tuple[Caller, ...]) -> type[Model]:
    """Make a state machine for the rules of one project, which several callers change in turns; read by its path."""
    people = st.sampled_from(callers)
    numbers = st.integers(1, 4)
    # What an empty or absent list does in a change is open. A new rule has no former groups.
    some_users = st.lists(st.sampled_from(users), min_size=1, unique=True)
    some_groups = st.lists(st.sampled_from(groups), min_size=1, unique=True)
    groups_or_none = st.none() | some_groups
    places = st.integers(0, 9)

    class ProjectApprovalRules(Model):
        @initialize()
        def start(self) -> None:
            self.made: list[int] = []
            self.known = standings(callers[0], shown)

        @precondition(lambda self: len(self.made) < 4)
        @rule(number=numbers, users=some_users, groups=groups_or_none, caller=people)
        def create(self, number: int, users: list[int], groups: list[int] | None, caller: Caller) -> None:
            body = sent(number, users, groups)
            made = rule_in(caller.post(rules, body))["id"]
            self.made.append(made)
            now = standings_when(callers[0], shown, lambda rules: made in rules)
            with verifies("project-approval-rules.create.listed"):
                must(made in now, f"rule {made} in the list", f"the rules {sorted(now, key=str)}")
                must_show(now[made], body)
            must_name("project-approval-rules.create.user-ids", now[made]["users"], users)
            must_name("project-approval-rules.create.group-ids", now[made]["groups"], groups or [])
            must_not_name_others("project-approval-rules.create.user-ids", now[made]["users"], users)
            must_not_name_others("project-approval-rules.create.group-ids", now[made]["groups"], groups or [])
            self.compare("project-approval-rules.create.leaves-other-rules", now, made)

        @precondition(lambda self: self.made)
        @rule(place=places, number=numbers, users=some_users, groups=some_groups, caller=people)
        def change(self, place: int, number: int, users: list[int], groups: list[int], caller: Caller) -> None:
            changed = self.made[place % len(self.made)]
            body = sent(number, users, groups)
            caller.put(rules / changed, body).given_served()
            now = standings_when(callers[0], shown, lambda rules: rules.get(changed, {}).get("name") == body["name"])
            with verifies("project-approval-rules.update.stored"):
                must(changed in now, f"rule {changed} in the list", f"the rules {sorted(now, key=str)}")
                must_show(now[changed], body)
            must_name("project-approval-rules.update.user-ids", now[changed]["users"], users)
            must_name("project-approval-rules.update.group-ids", now[changed]["groups"], groups)
            must_not_name_others("project-approval-rules.update.user-ids.removes-others", now[changed]["users"], users)
            must_not_name_others(
                "project-approval-rules.update.group-ids.removes-others", now[changed]["groups"], groups
            )
            self.compare("project-approval-rules.update.leaves-other-rules", now, changed)

        @precondition(lambda self: self.made)
        @rule(place=places, caller=people)
        def delete(self, place: int, caller: Caller) -> None:
            deleted = self.made.pop(place % len(self.made))
            caller.delete(rules / deleted).given_served()
            now = standings_when(callers[0], shown, lambda rules: deleted not in rules)
            with verifies("project-approval-rules.delete.unlisted"):
                must(deleted not in now, f"no rule {deleted} in the list", f"the rules {sorted(now, key=str)}")
            self.compare("project-approval-rules.delete.leaves-other-rules", now, deleted)

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
                must(left == others, f"the other rules as before: {others}", f"{left}")
            self.known = now

        def teardown(self) -> None:
            for number in self.made:
                callers[0].delete(rules / number)

    return ProjectApprovalRules


def sent(number: int, users: list[int], groups: list[int] | None) -> dict[str, Any]:
    """Return the body of a rule; None stands for a list that is not sent."""
    named = {"user_ids": users} if groups is None else {"user_ids": users, "group_ids": groups}
    return {"name": fresh_name(), "approvals_required": number, **named}


def must_show(said: dict[str, Any], body: dict[str, Any]) -> None:
    """Expect the name and number that were sent for a rule."""
    wanted = {name: body[name] for name in ("name", "approvals_required")}
    shown = {name: said[name] for name in wanted}
    must(shown == wanted, str(wanted), str(shown))


def must_name(requirement: str, shown: list[int], wanted: list[int]) -> None:
    with verifies(requirement):
        must(set(wanted) <= set(shown), f"{sorted(wanted)} named", f"{shown} named")


def must_not_name_others(requirement: str, shown: list[int], wanted: list[int]) -> None:
    with verifies(requirement):
        must(set(shown) <= set(wanted), f"nobody but {sorted(wanted)} named", f"{shown} named")
