"""A deleted entry that is listed again is a violation, unless something may have brought it back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.deletions import Deletions
from conformance.target import Actor

if TYPE_CHECKING:
    from collections.abc import Callable

CONTRACT = Contract.load()
RULES = "/projects/1/approval_rules"
BELOW = "/projects/1/merge_requests/1/approval_rules"
OWNER, DEVELOPER = Actor("owner", "a"), Actor("developer", "b")


@pytest.fixture
def send() -> Callable[..., list[str]]:
    """Send calls, and return the requirements that each call shows as violated; rules 7 and 8 are made before."""
    deletions = Deletions(ResponseValidator.of(CONTRACT, None), settle_seconds=0)
    for rules in (RULES, BELOW):
        for number in (7, 8):
            body = json.dumps({"id": number}).encode()
            deletions.contradicted_by(Exchange(Call(OWNER, "POST", rules), 201, {}, body, 0))

    def sent(
        method: str, path: str, status: int | None = 200, *, shown: Any = None, actor: Actor = OWNER, seconds: float = 0
    ) -> list[str]:
        exchange = Exchange(Call(actor, method, path), status, {}, json.dumps(shown).encode(), seconds)
        return [f"{deletion.requirement} {name}" for deletion, name in deletions.contradicted_by(exchange)]

    return sent


def test_a_deleted_entry_that_is_listed_violates_the_requirement_of_deletion(send: Callable[..., list[str]]) -> None:
    assert send("DELETE", f"{RULES}/7", 204) == []
    assert send("GET", RULES, shown=[{"id": 6}]) == []
    assert send("GET", RULES, shown=[{"id": 6}, {"id": 7}]) == ["project-approval-rules.delete.gone 7"]
    assert send("GET", RULES, shown=[{"id": 7}]) == []


def test_a_deleted_entry_that_is_listed_twice_is_reported_once(send: Callable[..., list[str]]) -> None:
    send("DELETE", f"{RULES}/7", 204)
    assert send("GET", RULES, shown=[{"id": 7}, {"id": 7}]) == ["project-approval-rules.delete.gone 7"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", RULES, 201),
        ("PUT", f"{RULES}/8", 400),
        ("POST", "/projects/a%2Fb/approval_rules", 201),
        ("PUT", "/projects/5/integrations/slack", None),
        ("POST", "/somewhere/else", 200),
    ],
)
def test_a_write_that_may_have_brought_an_entry_back_excuses_it(
    send: Callable[..., list[str]], method: str, path: str, status: int | None
) -> None:
    send("DELETE", f"{RULES}/7", 204)
    send(method, path, status)
    assert send("GET", RULES, shown=[{"id": 7}]) == []


def test_a_refused_deletion_or_one_of_another_actor_proves_nothing(send: Callable[..., list[str]]) -> None:
    send("DELETE", f"{RULES}/7", 404)
    send("DELETE", f"{RULES}/8", 204, actor=DEVELOPER)
    assert send("GET", RULES, shown=[{"id": 7}, {"id": 8}]) == []


def test_a_list_that_was_requested_before_may_still_show_the_entry(send: Callable[..., list[str]]) -> None:
    send("DELETE", f"{RULES}/7", 204)
    assert send("GET", RULES, shown=[{"id": 7}], seconds=5) == []


def test_the_rule_for_any_approver_may_come_back_by_itself(send: Callable[..., list[str]]) -> None:
    send("DELETE", f"{RULES}/7", 204)
    assert send("GET", RULES, shown=[{"id": 7, "rule_type": "any_approver"}]) == []


def test_an_integration_comes_back_only_if_it_is_set_up_itself(send: Callable[..., list[str]]) -> None:
    path = "/projects/1/integrations"
    send("DELETE", f"{path}/slack", 204)
    send("PUT", f"{path}/jira")
    assert send("GET", path, shown=[{"slug": "slack"}]) == ["integrations.disable.unlisted slack"]
    send("DELETE", f"{path}/slack", 204)
    send("PUT", f"{path}/slack")
    assert send("GET", path, shown=[{"slug": "slack"}]) == []


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("/groups/1/approval_rules", RULES),
        ("/groups/1/approval_rules", BELOW),
        (RULES, BELOW),
    ],
)
def test_a_rule_of_a_level_above_may_get_the_number_of_a_deleted_one(
    send: Callable[..., list[str]], above: str, below: str
) -> None:
    """The list below may show the rules of its surroundings."""
    send("DELETE", f"{below}/7", 204)
    send("DELETE", f"{below}/8", 204)
    send("POST", above, 201, shown={"id": 7})
    assert [shown.split()[1] for shown in send("GET", below, shown=[{"id": 7}, {"id": 8}])] == ["8"]


def test_the_deletion_of_a_rule_that_was_made_elsewhere_proves_nothing(send: Callable[..., list[str]]) -> None:
    """A merge request may list the rules of its project, and leave one that is deleted there alone."""
    send("POST", RULES, 201, shown={"id": 9})
    send("DELETE", f"{BELOW}/9", 204)
    assert send("GET", BELOW, shown=[{"id": 9}]) == []


def test_the_number_of_a_deleted_rule_may_be_that_of_one_elsewhere(send: Callable[..., list[str]]) -> None:
    send("DELETE", f"{BELOW}/7", 204)
    send("POST", RULES, 201, shown={"id": 7})
    send("DELETE", f"{BELOW}/7", 204)
    assert send("GET", BELOW, shown=[{"id": 7}]) == []


def test_a_deletion_of_what_belongs_elsewhere_is_disregarded() -> None:
    deletions = Deletions(ResponseValidator.of(CONTRACT, None), settle_seconds=0)
    made = Exchange(Call(OWNER, "POST", RULES), 201, {}, b'{"id": 7}', 0)
    deletions.contradicted_by(made)
    deletions.contradicted_by(Exchange(Call(OWNER, "DELETE", f"{RULES}/7"), 204, {}, b"", 0))
    deletions.disregard(f"{RULES}/7")
    listing = Exchange(Call(OWNER, "GET", RULES), 200, {}, json.dumps([{"id": 7}]).encode(), 0)
    assert deletions.contradicted_by(listing) == []
