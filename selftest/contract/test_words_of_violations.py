"""What an answer violates is told in words for readers who know neither JSON Schema nor regular expressions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.contract import Contract, Version
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.target import Actor

_VALIDATOR = ResponseValidator.of(Contract.load(), Version.parse("15.9"))
_MOMENT = "a possible date and time as ISO 8601 writes them, of any precision, in UTC or with an offset"
_STATUS, _RULES = "/projects/1/merge_requests/1/approvals", "/projects/1/approval_rules"
_CONFIGURATION, _EXPORT = "/projects/1/approvals", "/groups/1/export_relations"


def answered(method: str, path: str, body: Any, status: int = 200) -> Exchange:
    return Exchange(Call(Actor("owner", "a"), method, path), status, {}, json.dumps(body).encode(), 0)


@pytest.mark.parametrize(
    ("exchange", "place", "expected"),
    [
        (answered("GET", _STATUS, {"created_at": "2020-02-30T00:00:00Z"}), "/created_at", f"that is {_MOMENT}"),
        (answered("GET", _STATUS, {"approvals_left": -1}), "/approvals_left", "that is at least 0"),
        (answered("GET", _STATUS, {"description": 5}), "/description", 'of type "null" or "string"'),
        (
            answered("GET", _STATUS, {"approved_by": [{"user": {"web_url": "/a"}}]}),
            "/approved_by/0/user/web_url",
            "that is an absolute address on the web, without blanks",
        ),
        (
            answered("GET", _STATUS, {"approved_by": [{"user": {"avatar_url": 5}}]}),
            "/approved_by/0/user/avatar_url",
            'of type "string" or "null"',
        ),
        (
            answered("GET", _RULES, [{"rule_type": "any"}]),
            "/0/rule_type",
            'that is "any_approver", "regular", "report_approver" or "code_owner"',
        ),
        (answered("GET", f"{_EXPORT}/status", None), "/", 'of type "array" or "object"'),
        (answered("POST", _EXPORT, {"message": ""}, 202), "/message", "that has at least 1 character"),
        (answered("GET", _CONFIGURATION, {"approvers": [1]}), "/approvers", "that has at most 0 entries"),
        (answered("POST", _CONFIGURATION, {"approvers": []}), "/approvers", "that is left out"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("/") else "",
)
def test_what_was_expected_is_told_in_words(exchange: Exchange, place: str, expected: str) -> None:
    found = {finding.place: finding.expected for finding in _VALIDATOR.findings(exchange) if not finding.holds}
    assert found[place] == f"a value {expected}"


def test_what_violates_a_form_is_not_noted_as_an_unusual_one() -> None:
    seen = _VALIDATOR.seen(answered("GET", _STATUS, {"created_at": "2020-01-01", "description": None}))
    assert [entry.what for entry in seen.tolerated] == ["description is null"]


def test_a_form_that_is_only_unusual_is_noted() -> None:
    seen = _VALIDATOR.seen(answered("GET", f"{_EXPORT}/status", [{"updated_at": "20200101T000000Z"}]))
    assert "updated_at is in another form of ISO 8601 than the usual one" in [entry.what for entry in seen.tolerated]


@pytest.mark.parametrize(
    ("body", "actual"),
    [
        (b"", "no body"),
        (b'{"a": "\xe4"}', "10 bytes that are no UTF-8, which JSON must be"),
        (b"<br />\n", "7 bytes that are no JSON"),
        (b'{"a": 1}1', "9 bytes that are no JSON from character 8 on"),
        (b'{"a": [1, 2', "11 bytes of JSON without its end"),
        ('{"a": "Prü'.encode(), "11 bytes of JSON without its end"),
        (b'{"a": 1,', "8 bytes of JSON without its end"),
    ],
    ids=["empty", "older character set", "page", "more behind", "cut in a list", "cut in a text", "cut in an object"],
)
def test_a_body_that_is_no_json_is_told_with_the_place_where_it_stops(body: bytes, actual: str) -> None:
    call = Call(Actor("owner", "a"), "GET", _STATUS)
    found = [one for one in _VALIDATOR.findings(Exchange(call, 200, {}, body, 0)) if not one.holds]
    assert [one.actual for one in found] == [actual]
