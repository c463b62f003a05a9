"""A target that answers as somebody else each time is no reason to write somebody else into the profile."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from conformance.http.client import Client
from conformance.target.check import check_profile
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from conformance.target.readings import State
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


def test_users_that_change_from_read_to_read_are_not_written() -> None:
    service, numbers = prepared_service(version=VERSION), count(900001)

    def as_somebody_else(route: Route, _: Request, response: Response) -> Response:
        if route.key == "GET /user" and isinstance(response.content, dict):
            response.content = {**response.content, "id": next(numbers)}
        return response

    with serving(service) as (_, base_url):
        profile = profile_from(profile_data(service.world, base_url, VERSION), "the profile")
        service.transformers.append(as_somebody_else)
        with Client(profile.client_settings()) as client:
            found = {one.place: one for one in check_profile(profile, client)}
    owner = found["actors.owner.id"]
    assert (owner.state, owner.write) == (State.CONTRADICTED, None)
    assert owner.detail.count("and the token is of 9000") == 2
    assert "mixes up" in owner.detail
