"""Values that are written as something else are read as they were meant; only their types are wrong."""

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
_SCOPE, _SETTINGS = "/projects/1/job_token_scope", "/projects/1/merge_request_approval_setting"


def read(path: str, body: Any) -> tuple[Any, bool]:
    """Return what a body was meant as, and whether its types are right."""
    exchange = Exchange(Call(Actor("owner", "a"), "GET", path), 200, {}, json.dumps(body).encode(), 0)
    is_right = not any(
        finding.expected.startswith("a value of type") and not finding.holds
        for finding in _VALIDATOR.findings(exchange)
    )
    return _VALIDATOR.meant(exchange), is_right


@pytest.mark.parametrize(
    ("path", "shown", "meant"),
    [
        (_STATUS, {"approvals_left": "2", "approvals_required": "-1"}, {"approvals_left": 2, "approvals_required": -1}),
        (_STATUS, {"approvals_left": "2", "title": "2"}, {"approvals_left": 2, "title": "2"}),
        (_SETTINGS, {"allow_author_approval": {"locked": "true"}}, {"allow_author_approval": {"locked": True}}),
        (_SETTINGS, {"allow_author_approval": {"locked": 0}}, {"allow_author_approval": {"locked": False}}),
        (_STATUS, {"approved_by": [{"user": {"id": "7"}}]}, {"approved_by": [{"user": {"id": 7}}]}),
        (_ALLOWLIST, [{"star_count": "0"}, {"star_count": 3}], [{"star_count": 0}, {"star_count": 3}]),
        (
            _SCOPE,
            {"inbound_enabled": "1", "outbound_enabled": ""},
            {"inbound_enabled": True, "outbound_enabled": False},
        ),
        (_SETTINGS, {"allow_author_approval": {"value": 1}}, {"allow_author_approval": {"value": True}}),
        (_ALLOWLIST, None, []),
        (_ALLOWLIST, {}, []),
        (_ALLOWLIST, {"0": {"id": 1}, "2": {"id": "3"}}, [{"id": 1}, {"id": 3}]),
        (_STATUS, {"approved_by": None}, {"approved_by": []}),
        (_SETTINGS, {"allow_author_approval": []}, {"allow_author_approval": {}}),
    ],
)
def test_what_can_be_meant_in_one_way_alone_is_read_so(path: str, shown: Any, meant: Any) -> None:
    assert json.dumps(read(path, shown)[0]) == json.dumps(meant)
    assert not read(path, shown)[1], "its type stays wrong"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (_STATUS, {"approvals_left": "two", "iid": [1]}),
        (_SETTINGS, {"allow_author_approval": {"locked": 2, "value": "yes"}}),
        (_STATUS, {"approvals_left": True}),
        (_ALLOWLIST, {"id": 1}),
        (_STATUS, {"approvals_left": "1" * 20}),
        (_SCOPE, {"unknown": "1"}),
        ("/unknown", {"approved": "true"}),
    ],
)
def test_anything_else_stays_as_it_was_shown(path: str, shown: Any) -> None:
    assert json.dumps(read(path, shown)[0]) == json.dumps(shown)
