"""What was shown to an actor must be shown again, unless a call takes it away."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract, Version
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.served_reads import ServedReads
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from selftest.conftest import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.target.profile import Profile

SERVED = "integrations.authorization.maintainer-is-served"
#: A list with stated pagination.
RULES, RULES_SERVED = "approval_rules", "project-approval-rules.authorization.maintainer-may-read"


@pytest.fixture(scope="module")
def profile() -> Profile:
    service = prepared_service(VERSION)
    return profile_from(profile_data(service.world, "http://127.0.0.1:1", VERSION), "test")


@pytest.fixture
def answered(profile: Profile) -> Callable[..., str | None]:
    return seen_by(profile)


def seen_by(profile: Profile) -> Callable[..., str | None]:
    """Return the requirement that a response to a read violates, given all responses before it."""
    reads = ServedReads(profile, ResponseValidator(Contract.load(), Version.parse(VERSION)))

    def see(status: int, below: str = "integrations", who: str = "maintainer", **call: Any) -> str | None:
        path = f"/projects/{profile.value('project.id')}/{below}"
        made = replace(Call(profile.actors[who], "GET", path), **call)
        found = reads.contradicted_by(Exchange(made, status, {}, b"[]", 0.0))
        return None if found is None else found[0]

    return see


def test_a_list_that_was_shown_must_not_be_missing_afterwards(answered: Callable[..., str | None]) -> None:
    assert answered(404) is None
    assert answered(200) is None
    assert answered(404) == SERVED


def test_on_a_target_with_delayed_reads_it_may_be_missing_in_between(profile: Profile) -> None:
    answered = seen_by(replace(profile, limits=replace(profile.limits, settle_seconds=60.0)))
    assert answered(200) is None
    assert answered(404) is None


@pytest.mark.parametrize("status", [200, 401, 429, 502])
def test_other_errors_are_no_contradiction(answered: Callable[..., str | None], status: int) -> None:
    answered(200)
    assert answered(status) is None


def test_a_changed_setting_may_explain_why_a_list_is_not_shown(answered: Callable[..., str | None]) -> None:
    answered(200, "job_token_scope/allowlist")
    answered(403, "job_token_scope", method="PATCH")
    assert answered(404, "job_token_scope/allowlist") is not None
    answered(204, "job_token_scope", method="PATCH")
    assert answered(404, "job_token_scope/allowlist") is None


def test_another_actor_may_be_refused(answered: Callable[..., str | None]) -> None:
    answered(200)
    assert answered(403, who="owner") is None
    answered(200, who="developer")
    assert answered(403, who="developer") is None


@pytest.mark.parametrize(
    "below", ["integrations/slack", "approval_rules/1", "merge_requests/1/approval_rules/1", "something-else"]
)
def test_what_a_call_takes_away_need_not_be_shown_again(answered: Callable[..., str | None], below: str) -> None:
    answered(200, below)
    assert answered(404, below) is None


@pytest.mark.parametrize("query", [{"page": 2}, {"page": 1, "per_page": 100}, {"per_page": "some"}, {"other": 1}])
def test_a_list_may_be_refused_with_another_query(
    answered: Callable[..., str | None], query: dict[str, object]
) -> None:
    answered(200, RULES)
    assert answered(400, RULES, query=query) is None
    assert answered(404, RULES) == RULES_SERVED


@pytest.mark.parametrize(
    ("query", "expected"),
    [({"per_page": 100}, RULES_SERVED), ({"page": 1, "per_page": 100}, None), ({"per_page": 1, "other": 1}, None)],
)
def test_a_page_without_a_number_that_was_shown_must_be_shown_again(
    answered: Callable[..., str | None], query: dict[str, object], expected: str | None
) -> None:
    answered(200, RULES, query=query)
    assert answered(404, RULES, query=query) == expected


def test_a_list_without_stated_pagination_may_refuse_page_parameters(answered: Callable[..., str | None]) -> None:
    answered(200)
    assert answered(400, query={"page": 1, "per_page": 20}) is None
    assert answered(404) == SERVED
