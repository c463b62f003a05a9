"""Approval rules of groups and of projects.

No operation deletes a rule of a group: a created one stays as long as its group, and only rules that the suite itself
made are changed. If permitted, a run makes its own groups for that and uses them instead of those of the profile.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_rules import (
    administrator_of,
    group_rules_path,
    is_listed,
    named_by_profile,
    own_rule,
    project_rules_path,
    standings,
)
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.arrange.reviews import created, created_for_two, fresh_name, rule_read_back
from conformance.suite.arrange.rule_lists import delete_added, names_of_rules
from conformance.suite.context import Unmet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Caller, Path
    from conformance.target import Fixture

_FEWEST = 3
_TWO_DIGITS = 10


@dataclass(frozen=True)
class _Rules:
    """The rules of one level: of a group or of a project."""

    level: str
    keeper: str
    path: Callable[[Fixture], Path]
    has_branches: bool = False
    """Whether a rule may be sent with protected branches."""

    def of(self, place: Place) -> Path:
        return self.path(place.fixture(self.level))

    def state(self, caller: Caller, place: Place) -> dict[Any, Any]:
        return standings(caller, self.of(place))

    def lists(self, place: Place) -> dict[str, Any]:
        return named_by_profile(place, self.keeper, branches=self.has_branches)

    def new(self, place: Place) -> dict[str, Any]:
        return {"name": fresh_name(), "approvals_required": 2, "rule_type": "regular", **self.lists(place)}

    def change(self, place: Place) -> dict[str, Any]:
        return {"name": fresh_name(), "approvals_required": 3, **self.lists(place)}


_OF_GROUP = _Rules("group", "owner", group_rules_path)
_OF_PROJECT = _Rules("project", "maintainer", project_rules_path, has_branches=True)

# -- groups ------------------------------------------------------------------------------------------------------------


def _with_entry(caller: Caller, place: Place) -> Values:
    """Make sure that the list has an entry that names somebody; if that is refused, the test judges it."""
    rules = _OF_GROUP.of(place)
    if is_listed(caller, rules):
        caller.put(rules / own_rule(caller, rules)["id"], {"approvals_required": 2, **_OF_GROUP.lists(place)})
    return {}


def _fill_group(caller: Caller, place: Place) -> list[Any]:
    rules = _OF_GROUP.of(place)
    for _ in range(_FEWEST - len(caller.list(rules).entries)):
        created_for_two(caller, rules, place)
    return caller.list(rules).ids()


GROUP_RULES = Area(
    keeper=_OF_GROUP.keeper,
    stand_in=lambda owner, place: administrator_of(owner, place.fixture("group")),
    request_examples={
        "listGroupApprovalRules": RequestExample(before=_with_entry, fill=_fill_group),
        "createGroupApprovalRule": RequestExample(body=_OF_GROUP.new, state=_OF_GROUP.state, stays=True),
        "updateGroupApprovalRule": RequestExample(
            before=lambda caller, place: {"approval_rule_id": own_rule(caller, _OF_GROUP.of(place))["id"]},
            body=_OF_GROUP.change,
            state=_OF_GROUP.state,
        ),
    },
)

# -- projects ----------------------------------------------------------------------------------------------------------


def _with_rule(caller: Caller, place: Place) -> Values:
    """Create a rule that shows everything that rules may show."""
    return {"approval_rule_id": created(caller, _OF_PROJECT.of(place), **_OF_PROJECT.lists(place))["id"]}


def _fill_project(caller: Caller, place: Place) -> list[Any]:
    """Create so many rules that page numbers may have two digits; a service need not take more than a few."""
    rules = _OF_PROJECT.of(place)
    made = [created_for_two(caller, rules, place)["id"] for _ in range(_FEWEST)]
    with suppress(Unmet):
        while len(made) < _TWO_DIGITS:
            made.append(created_for_two(caller, rules, place)["id"])
    return made


def _remember(caller: Caller, place: Place) -> Mapping[Any, str | None] | None:
    """Return the names of the existing rules, or None when the list is refused, which a test judges."""
    rules = _OF_PROJECT.of(place)
    return names_of_rules(caller, rules) if is_listed(caller, rules) else None


def _put_back(caller: Caller, place: Place, before: Mapping[Any, str | None] | None) -> None:
    if before is not None:
        delete_added(caller, _OF_PROJECT.of(place), before)


PROJECT_RULES = Area(
    keeper=_OF_PROJECT.keeper,
    remember=_remember,
    put_back=_put_back,
    request_examples={
        "listProjectApprovalRules": RequestExample(before=_with_rule, fill=_fill_project),
        "createProjectApprovalRule": RequestExample(
            body=_OF_PROJECT.new,
            state=_OF_PROJECT.state,
            read_back=rule_read_back(lambda _: "project-approval-rules.create.readable", is_new=True),
        ),
        "getProjectApprovalRule": RequestExample(before=_with_rule),
        "updateProjectApprovalRule": RequestExample(
            before=_with_rule,
            body=_OF_PROJECT.change,
            state=_OF_PROJECT.state,
            read_back=rule_read_back(lambda _: "project-approval-rules.update.stored"),
        ),
        "deleteProjectApprovalRule": RequestExample(before=_with_rule, state=_OF_PROJECT.state),
    },
)
