"""Approval rules of projects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_rules import is_listed, named_by_profile, project_rules_path, standings
from conformance.suite.arrange.request_examples import Area, Prepared, ReadBack, RequestExample, Values
from conformance.suite.arrange.reviews import created, fresh_name, own_values, rule_in

if TYPE_CHECKING:
    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Answer, Caller, Path

_SHOWS = {"name": "name", "approvals_required": "approvals_required"}


def _rules(place: Place) -> Path:
    return project_rules_path(place.fixture("project"))


def _ids(caller: Caller, place: Place) -> list[Any]:
    return caller.list(_rules(place)).ids()


def _state(caller: Caller, place: Place) -> dict[Any, Any]:
    return standings(caller, _rules(place))


def _with_rule(caller: Caller, place: Place) -> Values:
    """Let there be a rule that shows what rules may show."""
    return {
        "approval_rule_id": created(caller, _rules(place), **named_by_profile(place, "maintainer", branches=True))["id"]
    }


def _fill(caller: Caller, place: Place) -> list[Any]:
    return [created(caller, _rules(place))["id"] for _ in range(3)]


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
    """Return the rules that are there, or None where the list is refused: that is for a test to judge."""
    return _ids(caller, place) if is_listed(caller, _rules(place)) else None


def _put_back(caller: Caller, place: Place, before: list[Any] | None) -> None:
    if before is not None:
        caller.delete_each(_rules(place), set(_ids(caller, place)) - set(before))


def _made(call: Prepared, answer: Answer) -> str:
    return f"{call.path}/{rule_in(answer)['id']}"


def _same(call: Prepared, _: Answer) -> str:
    return call.path


def _read_back(requirement: str, path: Any) -> ReadBack:
    return ReadBack(lambda _: f"project-approval-rules.{requirement}", path=path, shows=_SHOWS, free=own_values)


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
            read_back=_read_back("create.readable", _made),
        ),
        "getProjectApprovalRule": RequestExample(before=_with_rule),
        "updateProjectApprovalRule": RequestExample(
            before=_with_rule,
            body=_change,
            state=_state,
            read_back=_read_back("update.stored", _same),
        ),
        "deleteProjectApprovalRule": RequestExample(before=_with_rule, state=_state),
    },
)
