"""Approval rules of groups.

No operation deletes one: a created rule stays as long as its group, and only rules that the suite itself made are
changed. If permitted, a run makes its own groups for that and uses them instead of those of the profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.approval_rules import (
    administrator_of,
    group_rules_path,
    is_listed,
    named_by_profile,
    own_rule,
    standings,
)
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.arrange.reviews import created_for_two, fresh_name

if TYPE_CHECKING:
    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Caller, Path

_FEWEST = 3


def _rules(place: Place) -> Path:
    return group_rules_path(place.fixture("group"))


def _state(caller: Caller, place: Place) -> dict[Any, Any]:
    return standings(caller, _rules(place))


def _with_rule(caller: Caller, place: Place) -> Values:
    return {"approval_rule_id": own_rule(caller, _rules(place))["id"]}


def _with_entry(caller: Caller, place: Place) -> Values:
    """Make sure that the list has an entry that names somebody; if that is refused, the test judges it."""
    if is_listed(caller, _rules(place)):
        caller.put(
            _rules(place) / own_rule(caller, _rules(place))["id"],
            {"approvals_required": 2, **named_by_profile(place, "owner")},
        )
    return {}


def _fill(caller: Caller, place: Place) -> list[Any]:
    missing = _FEWEST - len(caller.list(_rules(place)).entries)
    for _ in range(missing):
        created_for_two(caller, _rules(place), place)
    return caller.list(_rules(place)).ids()


def _new(place: Place) -> dict[str, Any]:
    return {"name": fresh_name(), "approvals_required": 2, "rule_type": "regular", **named_by_profile(place, "owner")}


def _change(place: Place) -> dict[str, Any]:
    return {"name": fresh_name(), "approvals_required": 3, **named_by_profile(place, "owner")}


AREA = Area(
    keeper="owner",
    stand_in=lambda owner, place: administrator_of(owner, place.fixture("group")),
    unknown={
        "id": "group-approval-rules.unknown-group",
        "updateGroupApprovalRule.approval_rule_id": "group-approval-rules.update.unknown-rule",
    },
    request_examples={
        "listGroupApprovalRules": RequestExample(before=_with_entry, fill=_fill),
        "createGroupApprovalRule": RequestExample(body=_new, state=_state, stays=True),
        "updateGroupApprovalRule": RequestExample(before=_with_rule, body=_change, state=_state),
    },
)
