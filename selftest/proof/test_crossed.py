"""Crossed faults: each does what its crossing says, for the call that it is about and for no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract
from conformance.proof import all_faults, faults_named
from conformance.proof.crossings import CROSSINGS, left_out
from conformance.proof.reasons import is_one_of
from conformance.reference.server import ask
from conformance.target.embedded import prepared_service

if TYPE_CHECKING:
    from conformance.reference import Service

SCOPE = "/job_token_scope"


def broken(name: str) -> Service:
    """Return a service with the fault of this name."""
    (fault,) = faults_named(Contract.load(), [name])
    service = prepared_service()
    fault.apply(service)
    return service


def switched(service: Service, actor: str, *, on: bool) -> int:
    """Return the status for somebody who switches the limit of the project."""
    path, token = f"/api/v4/projects/{service.world.one('project').id}{SCOPE}", service.world.actors[actor].token
    headers = {"private-token": token, "content-type": "application/json"}
    return ask(service, "PATCH", path, "", headers, b'{"enabled": %b}' % str(on).lower().encode())[0]


def limit(service: Service) -> bool:
    """Return the stored limit of the project."""
    return service.job_token_scope.scopes[service.world.one("project").id].inbound_enabled


def test_a_fault_from_the_second_call_on_answers_the_first_one_correctly() -> None:
    service = broken("updateJobTokenScope: status 206, from the second call")
    assert [switched(service, "maintainer", on=False), limit(service)] == [204, False]
    assert [switched(service, "maintainer", on=True), limit(service)] == [206, True]


@pytest.mark.parametrize(("crossing", "status", "is_on"), [("behind a refusal", 403, False), ("breaking", 500, True)])
def test_a_wrong_caller_is_answered_as_the_crossing_says(crossing: str, status: int, is_on: bool) -> None:  # noqa: FBT001 - a case
    service = broken(f"updateJobTokenScope: lets guest in, {crossing}")
    assert [switched(service, "maintainer", on=True), limit(service)] == [204, True]
    assert [switched(service, "guest", on=False), limit(service)] == [status, is_on]
    assert [switched(service, "developer", on=False), limit(service)] == [403, is_on]


def test_every_entry_of_the_table_of_crossings_leaves_something_out() -> None:
    known = all_faults(Contract.load())
    for crossing in CROSSINGS:
        fitting = [fault for fault in known if crossing.fits(fault)]
        faults, requirements = left_out(crossing.name)
        named, owed = {fault.name for fault in fitting}, {fault.requirement for fault in fitting}
        idle = [one for one in faults if not any(is_one_of(name, (one,)) for name in named)]
        idle += [one for one in requirements if not any(is_one_of(name, (one,)) for name in owed)]
        assert idle == [], crossing.name
