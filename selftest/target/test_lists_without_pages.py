"""A list without stated pages may refuse a request for one; everything that reads it still reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.http.client import Client
from conformance.proof.variants.requests import refuses_what_is_not_documented
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from conformance.target.spots import Spot
from conformance.target.states import States
from conformance.target.trials import try_writes
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target.profile import Profile


@pytest.fixture
def profile() -> Iterator[Profile]:
    """The profile of a service that refuses parameters which an operation is not described with."""
    service = prepared_service(version=VERSION)
    refuses_what_is_not_documented(service)
    with serving(service) as (_, base_url):
        yield profile_from(profile_data(service.world, base_url, VERSION), "the profile")


def test_integrations_are_kept_as_they_were(profile: Profile) -> None:
    spot, entry = Spot("project", profile.value("project")), profile.fixtures["chat_integration"][0]
    with Client(profile.client_settings()) as client:
        path = f"/projects/{spot.number}/integrations/{entry['slug']}"
        assert client.send(profile.actors["maintainer"], "PUT", path, json_body=dict(entry["settings"])).is_success
        states = States(profile, client)
        (thing,) = (one for one in states.things(spot) if one.part.name == "integrations" and one.spot == spot)
        kept = states.read(thing)
    assert kept is not None
    assert kept[1].keys() == {entry["slug"]}


def test_integrations_are_tried(profile: Profile) -> None:
    with Client(profile.client_settings()) as client:
        details = [finding.detail for finding in try_writes(profile, client)]
    assert [detail for detail in details if "none was tried" in detail] == []
