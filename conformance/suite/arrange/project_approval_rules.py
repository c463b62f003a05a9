"""Approval rules of projects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_rules import is_listed, named_by_profile, project_rules_path, standings
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.arrange.reviews import created, created_for_two, fresh_name, rule_read_back
from conformance.suite.context import Unmet

if TYPE_CHECKING:
    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Caller, Path


_FEWEST = 3
_TWO_DIGITS = 11


def _rules(place: Place) -> Path:
    return project_rules_path(place.fixture("project"))


def _ids(caller: Caller, place: Place) -> list[Any]:
    return caller.list(_rules(place)).ids()


def _state(caller: Caller, place: Place) -> dict[Any, Any]:
    return standings(caller, _rules(place))


def _with_rule(caller: Caller, place: Place) -> Values:
    """Create a rule that shows everything that rules may show."""
    return {
        "approval_rule_id": created(caller, _rules(place), **named_by_profile(place, "maintainer", branches=True))["id"]
    }


def _fill(caller: Caller, place: Place) -> list[Any]:
    """Create so many rules that page numbers may have two digits; a service need not take more than a few."""
    made = [created_for_two(caller, _rules(place), place)["id"] for _ in range(_FEWEST)]
    with suppress(Unmet):
        while len(made) < _TWO_DIGITS:
            made.append(created_for_two(caller, _rules(place), place)["id"])
    return made


def _new(place: Place) -> dict[str, Any]:
    return {
        "name": fresh_name(),
        "approvals_required": 2,
        "rule_type": "regular",
        **named_by_profile(place, "maintainer", branches=True),
    }


def _change(place: Place) -> dict[str, Any]:
    return {"name": fresh_name(), "approvals_required": 3, **named_by_profile(place, "maintainer", branches=True)}


def _remember(caller: Caller, place: Place) -> list[Any] | None:
    """Return the existing rules, or None when the list is refused, which a test judges."""
    return _ids(caller, place) if is_listed(caller, _rules(place)) else None


def _put_back(caller: Caller, place: Place, before: list[Any] | None) -> None:
    if before is not None:
        caller.delete_each(_rules(place), set(_ids(caller, place)) - set(before))


AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    unknown={
        "listProjectApprovalRules.id": "project-approval-rules.unknown-project",
        "createProjectApprovalRule.id": "project-approval-rules.unknown-project",
        "getProjectApprovalRule.id": "project-approval-rules.unknown-project",
        "updateProjectApprovalRule.id": "project-approval-rules.unknown-project",
        "getProjectApprovalRule.approval_rule_id": "project-approval-rules.read.unknown-rule",
        "updateProjectApprovalRule.approval_rule_id": "project-approval-rules.update.unknown-rule",
    },
    request_examples={
        "listProjectApprovalRules": RequestExample(before=_with_rule, fill=_fill),
        "createProjectApprovalRule": RequestExample(
            body=_new,
            state=_state,
            read_back=rule_read_back(lambda _: "project-approval-rules.create.readable", is_new=True),
        ),
        "getProjectApprovalRule": RequestExample(before=_with_rule),
        "updateProjectApprovalRule": RequestExample(
            before=_with_rule,
            body=_change,
            state=_state,
            read_back=rule_read_back(lambda _: "project-approval-rules.update.stored"),
        ),
        "deleteProjectApprovalRule": RequestExample(before=_with_rule, state=_state),
    },
)
