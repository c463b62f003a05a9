"""A missing property violates what is said of the record that lacks it, unless its own record has a requirement."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.target import Actor

_VALIDATOR = ResponseValidator.of(Contract.load(), None)
_STATUS, _ALLOWLIST = "/projects/1/merge_requests/1/approvals", "/projects/1/job_token_scope/allowlist"


@pytest.mark.parametrize(
    ("path", "body", "place", "requirement"),
    [
        (_STATUS, {"approved_by": [{"id": 1}]}, "/approved_by/0/user", "merge-request-approvals.status.approved-by"),
        (_STATUS, {"approved_by": [{"user": {}}]}, "/approved_by/0/user/id", "records.user-reference.fields"),
        (_ALLOWLIST, [{"id": 1}], "/0/namespace", "job-token-scope.project-entry.namespace"),
    ],
)
@pytest.mark.parametrize("status", [200, 202], ids=["the stated status", "another success"])
def test_what_is_missing_is_reported_as_what_it_violates(
    path: str, body: Any, place: str, requirement: str, status: int
) -> None:
    exchange = Exchange(Call(Actor("owner", "a"), "GET", path), status, {}, json.dumps(body).encode(), 0)
    found = {finding.place: finding.requirement for finding in _VALIDATOR.findings(exchange) if not finding.holds}
    assert found[place] == requirement


def test_an_error_that_is_answered_as_a_success_is_one_violation() -> None:
    call = Call(Actor("owner", "a"), "GET", "/projects/1/approval_rules/2")
    body = json.dumps({"message": "404 Not Found"}).encode()
    found = [finding for finding in _VALIDATOR.findings(Exchange(call, 200, {}, body, 0)) if not finding.holds]
    assert [finding.requirement for finding in found] == ["project-approval-rules.read"]
    assert found[0].actual.endswith(': {"message": "404 Not Found"}')


def test_what_a_record_lacks_is_told_one_by_one_if_it_has_anything_described() -> None:
    call = Call(Actor("owner", "a"), "GET", "/projects/1/approval_rules/2")
    body = json.dumps({"id": 2, "message": "Something else"}).encode()
    found = {one.requirement for one in _VALIDATOR.findings(Exchange(call, 200, {}, body, 0)) if not one.holds}
    assert {"project-approval-rules.rule.fields", "project-approval-rules.rule.users"} <= found
