"""Numbers of approvals that a service lowers to the possible approvers of a rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.http.exchange import Call, Exchange
from conformance.suite.lowered_numbers import LoweredNumbers


def rule(number: int, people: int, **more: Any) -> dict[str, Any]:
    approvers = [{"id": each} for each in range(people)]
    return {"rule_type": "regular", "approvals_required": number, "eligible_approvers": approvers, **more}


def seen(numbers: LoweredNumbers, sent: float, shown: dict[str, Any], method: str = "POST") -> bool:
    body = json.dumps({"approvals_required": sent}).encode()
    call = Call(None, method, "/projects/1/approval_rules", body=body)
    return numbers.see(Exchange(call, 201, {}, json.dumps({"users": [{"id": 0}], **shown}).encode(), 0.0))


def test_a_number_is_expected_lower_where_all_are_lowered_as_far_as_necessary() -> None:
    numbers = LoweredNumbers()
    named = rule(1, 1, users=[{"id": 0}])
    assert numbers.owed("approvals_required", 3, named) == 3
    assert seen(numbers, 3, rule(1, 1)) is True
    assert seen(numbers, 2, rule(2, 2)) is False
    assert numbers.are_usual
    assert numbers.owed("approvals_required", 3, named) == 1
    assert numbers.owed("approvals_required", 3.0, named) == 1
    assert numbers.owed("name", "three", named) == "three"
    assert numbers.owed("approvals_required", 3, rule(2, 0)) == 3


@pytest.mark.parametrize("shown", [rule(2, 1), rule(1, 2), rule(1, 3)], ids=["kept", "too-low", "far-too-low"])
def test_one_other_number_shows_that_lower_ones_are_mistakes(shown: dict[str, Any]) -> None:
    numbers = LoweredNumbers()
    seen(numbers, 3, rule(1, 1))
    seen(numbers, 2, shown)
    assert not numbers.are_usual
    assert numbers.owed("approvals_required", 3, rule(1, 1, users=[{"id": 0}])) == 3


@pytest.mark.parametrize(
    "shown",
    [rule(5, 2, rule_type="any_approver"), rule(5, 2, users=[]), rule(5, 2, contains_hidden_groups=True)],
    ids=["for-anybody", "names-nobody", "hides-a-group"],
)
def test_a_rule_that_does_not_show_all_its_approvers_tells_nothing_and_may_keep_its_number(
    shown: dict[str, Any],
) -> None:
    numbers = LoweredNumbers()
    seen(numbers, 3, rule(1, 1))
    seen(numbers, 5, shown)
    assert numbers.are_usual
    assert numbers.owed("approvals_required", 5, shown) == 5
    assert numbers.owed("approvals_required", 5, {**shown, "approvals_required": 2}) == 2
    assert numbers.owed("approvals_required", 5, {**shown, "approvals_required": 1}) == 5


def test_reads_and_other_calls_tell_nothing() -> None:
    numbers = LoweredNumbers()
    assert seen(numbers, 3, rule(1, 1), method="GET") is False
    assert not numbers.are_usual
