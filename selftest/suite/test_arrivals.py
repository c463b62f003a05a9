"""Whom a merge request may show as an approver: those who approved before, and those who sent an approval."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Version
from conformance.http.exchange import Call, Exchange
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.arrivals import Arrivals
from conformance.target import Actor
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from selftest.conftest import VERSION

if TYPE_CHECKING:
    from conformance.target.profile import Profile

#: An id of a merge request from which nobody can tell which one it is.
_UNTOLD = "group%2F..%2Fproject"


@pytest.fixture(scope="module")
def profile() -> Profile:
    service = prepared_service(VERSION)
    return profile_from(profile_data(service.world, "http://127.0.0.1:1", VERSION), "test")


@pytest.fixture
def arrivals(profile: Profile) -> Arrivals:
    contract = Contract.load()
    return Arrivals(profile, ResponseValidator(contract, Version.parse(VERSION)))


def _path(profile: Profile, what: str, project: str | None = None) -> str:
    number = profile.value("project") if project is None else project
    return f"/projects/{number}/merge_requests/{profile.value('merge_request.iid')}/{what}"


def _shown(arrivals: Arrivals, profile: Profile, *people: Actor) -> list[int]:
    call = Call(profile.actors["admin"], "GET", _path(profile, "approvals"))
    body = json.dumps({"approved_by": [{"user": {"id": one.id}} for one in people]}).encode()
    return arrivals.contradicted_by(Exchange(call, 200, {}, body, 0.0))


def _asks(arrivals: Arrivals, path: str, who: Actor | None, status: int) -> None:
    call = Call(who, "POST", path)
    arrivals.expect(call)
    arrivals.contradicted_by(Exchange(call, status, {}, b"{}", 0.0))


def test_an_approver_who_sent_no_approval_is_reported_once(arrivals: Arrivals, profile: Profile) -> None:
    maintainer = profile.actors["maintainer"]
    assert _shown(arrivals, profile) == []
    assert _shown(arrivals, profile, maintainer) == [maintainer.id]


def test_former_approvers_and_those_who_sent_an_approval_may_be_shown(arrivals: Arrivals, profile: Profile) -> None:
    maintainer, developer = profile.actors["maintainer"], profile.actors["developer"]
    assert _shown(arrivals, profile, maintainer) == []
    _asks(arrivals, _path(profile, "approve"), developer, 201)
    assert _shown(arrivals, profile, maintainer, developer) == []


def test_an_approver_under_an_unclear_id_may_be_shown_anywhere(arrivals: Arrivals, profile: Profile) -> None:
    developer = profile.actors["developer"]
    assert _shown(arrivals, profile) == []
    _asks(arrivals, _path(profile, "approve", _UNTOLD), developer, 201)
    assert _shown(arrivals, profile, developer) == []


def test_a_refused_approval_under_an_unclear_id_does_not_count(arrivals: Arrivals, profile: Profile) -> None:
    developer = profile.actors["developer"]
    assert _shown(arrivals, profile) == []
    _asks(arrivals, _path(profile, "approve", _UNTOLD), developer, 404)
    assert _shown(arrivals, profile, developer) == [developer.id]


@pytest.mark.parametrize("refused", ["of nobody known", "of the same person"])
def test_a_refused_call_does_not_cancel_an_earlier_approval(arrivals: Arrivals, profile: Profile, refused: str) -> None:
    developer = profile.actors["developer"]
    unknown = Actor("somebody", "a-token-of-somebody")
    assert _shown(arrivals, profile) == []
    _asks(arrivals, _path(profile, "approve", _UNTOLD), developer, 201)
    _asks(arrivals, _path(profile, "approve", _UNTOLD), unknown if refused == "of nobody known" else developer, 404)
    assert _shown(arrivals, profile, developer) == []
