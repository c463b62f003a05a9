"""Approval rules of one project and of another: each rule belongs to its own project."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_rules import by_id, must_stay, others_of, project_rules_path, standings
from conformance.suite.arrange.places import projects_side_by_side
from conformance.suite.arrange.reviews import created, created_apart, fresh_name, naming_only, rule_in
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Answer, Caller, Path, given, must, named_otherwise, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture


def other_values(named: Caller) -> dict[str, object]:
    return {"name": fresh_name(), "approvals_required": 3, **naming_only(named)}


def rules_apart(maintainer: Caller, rules: Path, sibling: Fixture, kept: ExitStack) -> Iterator[tuple[Path, Any, Path]]:
    """
    Create a rule in each of two pairs of projects whose number the other project has not, and pass each on before the
    next is made: a rule of the second pair may have the number that is looked for in the first.
    """
    others = project_rules_path(sibling)
    yield rules, created_apart(maintainer, rules, others)["id"], others
    by_path = named_otherwise(others, sibling, maintainer)
    if by_path != others:
        with suppress(Unmet):
            yield rules, created_apart(maintainer, rules, by_path)["id"], by_path
    # A check that only compares the namespace of a rule treats two projects beside each other as one.
    for one, other in islice(projects_side_by_side(current_run().profile), 1):
        with suppress(Unmet):  # if the maintainer has both projects, and each rule has its own number
            kept.enter_context(rules_put_back(maintainer, project_rules_path(one)))
            own, theirs = project_rules_path(one), project_rules_path(other)
            yield own, created_apart(maintainer, own, theirs)["id"], theirs


def test_a_rule_is_reached_only_by_way_of_its_own_project(
    maintainer: Caller,
    project_rules: Path,
    sibling_project: Fixture,
) -> None:
    """If ids are unique across projects, a service may forget to check the project of a rule.

    If each project has its own numbers, the other one may have a rule of that number, which must not change.
    """
    with ExitStack() as kept:
        for rules, number, others in rules_apart(maintainer, project_rules, sibling_project, kept):
            own, foreign = rules / number, others / number
            with verifies("project-approval-rules.read.rule-of-another-project", go_on=True):
                maintainer.get(foreign).must_be_refused(beside=maintainer.get(own))
            with verifies("project-approval-rules.update.rule-of-another-project", go_on=True):
                control = maintainer.put(own, other_values(maintainer))
                before = standings(maintainer, rules)
                maintainer.put(foreign, other_values(maintainer)).must_be_refused(beside=control)
                must_stay(maintainer, rules, before)
            with verifies("project-approval-rules.delete.rule-of-another-project"):
                before = others_of(maintainer, rules)
                given(number in before, "the rule is not there to be deleted")
                maintainer.delete(foreign)
                must_stay(maintainer, rules, before)


def test_a_change_in_one_project_leaves_the_other_projects(
    maintainer: Caller,
    project_rules: Path,
    spare_project_rules: Path,
    sibling_project: Fixture,
) -> None:
    """Whether rules of two projects may have one name is open; if so, each is a separate rule."""
    neighbour = project_rules_path(sibling_project)
    with (
        verifies("project-approval-rules.projects-are-separate"),
        unchanged(lambda: standings(maintainer, neighbour), "the rules of the sibling project"),
    ):
        first, rule = created(maintainer, project_rules), created(maintainer, project_rules)
        number, said = rule["id"], {"name": rule["name"], "approvals_required": 4}
        namesake = maintainer.post(spare_project_rules, {**said, **naming_only(maintainer)})
        mine = maintainer.list(project_rules).the(id=number).get("approvals_required")
        must(mine == rule.get("approvals_required"), "the rule as it was created", f"approvals_required = {mine}")
        # With 4 it equals its namesake, which must follow neither the next change nor the deletion.
        for required in (3, 4, 3, 4):
            sent = {"name": rule["name"], "approvals_required": required, **naming_only(maintainer)}
            maintainer.put(project_rules / number, sent).given_served()
            must_still_be_there(maintainer, spare_project_rules, namesake, said)
        for each in (first["id"], number):
            maintainer.delete(project_rules / each).given_served()
        must_still_be_there(maintainer, spare_project_rules, namesake, said)


def must_still_be_there(caller: Caller, rules: Path, created_before: Answer, said: dict[str, Any]) -> None:
    """Look at a rule if it could be created."""
    if created_before.is_served:
        by_id(caller, rules, rule_in(created_before)["id"]).must_hold(**said)
