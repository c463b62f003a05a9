"""Two responses that differ about one record are a violation, unless something may have changed in between."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.shown_records import ShownRecords, values_under
from conformance.target import Actor, Fixture, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

CONTRACT = Contract.load()
VALIDATOR = ResponseValidator.of(CONTRACT, None)
RULES, BY_PATH = "/projects/1/approval_rules", "/projects/a%2Fb/approval_rules"
OWNER, DEVELOPER = Actor("owner", "a"), Actor("developer", "b")
RULE = {"id": 7, "name": "Two", "users": [{"id": 1}, {"id": 2}], "groups": [{"id": 3}]}


@pytest.fixture
def send() -> Callable[..., list[str]]:
    """Pass responses on, and return what each says differently from an earlier one."""
    project = Fixture("project", {"id": 1, "path": "a/b"})
    known = ShownRecords(
        Profile("http://127.0.0.1:1", None, "", {}, {"project": (project,)}), VALIDATOR, CONTRACT.records
    )

    def sent(method: str, path: str, shown: Any, *, actor: Actor = OWNER, age: int = 0, status: int = 200) -> list[str]:
        exchange = Exchange(Call(actor, method, path), status, {}, json.dumps(shown).encode(), 0)
        return [f"{found.requirement}: {found.actual}" for found in known.contradicted_by(exchange, age)]

    return sent


def test_a_list_that_leaves_something_out_contradicts_the_single_record(send: Callable[..., list[str]]) -> None:
    assert send("GET", f"{RULES}/7", RULE) == []
    told = send("GET", RULES, [{**RULE, "users": [{"id": 2}]}])
    assert told == ["project-approval-rules.same-everywhere: owner is shown users[].id = [2]"]


def test_the_path_names_the_same_record_as_the_number(send: Callable[..., list[str]]) -> None:
    assert send("PUT", f"{RULES}/7", RULE) == []
    assert send("GET", f"{BY_PATH}/7", {**RULE, "name": "Three"})


def test_order_repetition_and_fields_that_are_not_shown_contradict_nothing(send: Callable[..., list[str]]) -> None:
    assert send("GET", RULES, [RULE]) == []
    assert send("GET", RULES, [{**RULE, "users": [{"id": 2}, {"id": 1}, {"id": 2}]}]) == []
    assert send("GET", RULES, [{"id": 7, "name": "Two"}]) == []


def test_groups_may_be_hidden_from_one_caller_and_not_from_another(send: Callable[..., list[str]]) -> None:
    hidden = {**RULE, "groups": [], "contains_hidden_groups": True}
    assert send("GET", RULES, [RULE]) == []
    assert send("GET", RULES, [hidden], actor=DEVELOPER) == []
    assert send("GET", RULES, [{**hidden, "name": "Three"}], actor=DEVELOPER)


def test_a_difference_that_a_change_may_explain_is_no_violation(send: Callable[..., list[str]]) -> None:
    assert send("GET", RULES, [RULE]) == []
    assert send("GET", RULES, [{**RULE, "name": "Three"}], age=1) == []
    assert send("GET", "/projects/2/approval_rules", [RULE], age=1) == []
    assert send("GET", f"{RULES}/7", {"message": "not found"}, age=1, status=404) == []


def test_a_count_is_compared_only_if_the_counted_entries_are_the_same(send: Callable[..., list[str]]) -> None:
    path = "/projects/1/merge_requests/2/approvals"
    status = {"id": 5, "approvals_left": 2, "approved_by": [{"user": {"id": 1}}]}
    assert send("GET", path, status) == []
    assert send("GET", path, {**status, "approvals_left": 3, "approved_by": []}) == []
    assert send("GET", path, {"id": 5, "approvals_left": 4}) == []
    assert send("GET", path, {**status, "approvals_left": 1}) == [
        "merge-request-approvals.same-everywhere: owner is shown approvals_left = 1"
    ]


def test_branches_have_no_meaning_in_a_rule_for_all_of_them(send: Callable[..., list[str]]) -> None:
    rule = {**RULE, "applies_to_all_protected_branches": True, "protected_branches": [{"id": 5}]}
    assert send("GET", f"{RULES}/7", rule) == []
    assert send("GET", RULES, [{**rule, "protected_branches": []}]) == []
    one = {**rule, "applies_to_all_protected_branches": False}
    assert send("GET", f"{RULES}/7", one, age=1) == []
    assert send("GET", RULES, [{**one, "protected_branches": []}], age=1)


def test_a_list_in_place_of_a_single_record_is_not_compared(send: Callable[..., list[str]]) -> None:
    scope = [{"inbound_enabled": True}, {"inbound_enabled": False}]
    assert send("GET", "/projects/1/job_token_scope", scope) == []
    assert send("GET", "/projects/1/job_token_scope", scope[0]) == []
    assert send("GET", "/projects/1/job_token_scope", scope[1])


@pytest.mark.parametrize(
    ("shown", "values"),
    [
        ({"name": "a"}, ["a"]),
        ({"properties": {"name": None}}, [None]),
        ([{"name": "name", "value": "a"}], ["name", "a"]),
        ({"settings": [{"key": "name", "value": "a"}, {"key": "other", "value": "b"}]}, ["a"]),
        ({"name": {"value": "true", "locked": False}}, [True]),
        ({"name": {"type": "text"}}, [{"type": "text"}]),
        ({"other": "name"}, []),
    ],
)
def test_a_setting_is_found_in_every_format(shown: Any, values: list[Any]) -> None:
    assert values_under("name", shown) == values
