"""At an unknown version, an item without any trace on the target is open, and an item with a trace is required."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.version_traces import VersionTraces
from conformance.target.embedded import profile_data
from conformance.target.profile_file import profile_from
from selftest.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target import Profile

CONTRACT = Contract.load()
LIST = "/projects/1/job_token_scope/allowlist"
RULES = "/projects/1/merge_requests/1/approval_rules"
SETTINGS = "/projects/1/merge_request_approval_setting"


@pytest.fixture(scope="module")
def profile() -> Iterator[Profile]:
    with serving() as (service, base_url):
        yield replace(profile_from(profile_data(service.world, base_url, "17.7"), "the reference"), version=None)


class Target:
    """What was seen of a target, and which calls were made to look for traces."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.asked: list[str] = []
        validator = ResponseValidator.of(CONTRACT, None)
        self.traces = VersionTraces(CONTRACT, profile, validator, lambda _, path: self.asked.append(path))

    def exchange(self, method: str, path: str, status: int, sent: Any = None, shown: Any = None) -> Exchange:
        content = None if sent is None else json.dumps(sent).encode()
        call = Call(self.profile.actors["maintainer"], method, path, body=content)
        return Exchange(call, status, {}, json.dumps(shown).encode(), 0.0)

    def sees(self, method: str, path: str, status: int, sent: Any = None, shown: Any = None) -> Exchange:
        found = self.exchange(method, path, status, sent, shown)
        self.traces.see(found)
        return found

    def excuse(self, requirement: str, *exchanges: Exchange) -> str | None:
        return self.traces.excuse(CONTRACT.requirements[requirement], exchanges)


@pytest.fixture
def target(profile: Profile) -> Target:
    return Target(profile)


def test_an_operation_without_a_trace_excuses_all_violations_that_it_causes(target: Target) -> None:
    refused = target.sees("GET", LIST, 404)
    assert "16.1" in str(target.excuse("job-token-scope.allowlist.list", refused))
    assert target.excuse("authentication.private-token", refused)
    assert target.asked.count("/projects/3/job_token_scope") == 1


def test_if_one_operation_of_a_row_is_served_the_whole_row_is_required(target: Target) -> None:
    target.sees("GET", "/projects/1/job_token_scope", 200, shown={"inbound_enabled": True})
    refused = target.sees("GET", LIST, 404)
    assert target.excuse("job-token-scope.allowlist.list", refused) is None
    assert target.excuse("authentication.private-token", refused) is None


def test_a_server_error_is_never_excused(target: Target) -> None:
    assert target.excuse("job-token-scope.allowlist.list", target.sees("GET", LIST, 500)) is None


def test_a_parameter_without_a_trace_excuses_only_the_calls_that_send_it(target: Target) -> None:
    name = "require_reauthentication_to_approve"
    assert target.excuse("errors.refusal.is-client-error", target.exchange("PUT", SETTINGS, 200, {name: "maybe"}))
    other = target.exchange("PUT", SETTINGS, 200, {"allow_author_approval": "maybe"})
    assert target.excuse("errors.refusal.is-client-error", other) is None
    target.sees("GET", SETTINGS, 200, shown={name: {"value": False}})
    assert (
        target.excuse("errors.refusal.is-client-error", target.exchange("PUT", SETTINGS, 200, {name: "maybe"})) is None
    )


def test_user_names_leave_a_trace_if_they_alone_make_somebody_an_approver(target: Target) -> None:
    sent = {"name": "a", "approvals_required": 1, "usernames": ["ada"], "user_ids": []}
    ignored = target.sees("POST", RULES, 201, sent, {"users": []})
    assert target.excuse("merge-request-approvals.rules.create.usernames", ignored)
    target.sees("POST", RULES, 201, {**sent, "user_ids": [7]}, {"users": [{"id": 7, "username": "ada"}]})
    assert target.excuse("merge-request-approvals.rules.create.usernames", ignored)
    target.sees("POST", RULES, 201, sent, {"users": [{"id": 7, "username": "ada"}]})
    assert target.excuse("merge-request-approvals.rules.create.usernames", ignored) is None


def test_a_removed_operation_is_gone_if_it_is_refused_and_never_served(target: Target) -> None:
    stored = CONTRACT.requirements["project-approval-configuration.change.stored"]
    assert target.traces.removed(stored) is None
    target.sees("POST", "/projects/1/approvals", 404, {})
    assert "16.0" in str(target.traces.removed(stored))
    target.sees("POST", "/projects/1/approvals", 201, {})
    assert target.traces.removed(stored) is None


def test_what_was_always_required_is_never_excused(target: Target) -> None:
    refused = target.sees("GET", "/projects/1/approval_rules", 404)
    assert target.excuse("project-approval-rules.read", refused) is None
