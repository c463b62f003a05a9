"""Lists whose pages can be reached only by cursor are read to their end by everything that reads a target."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest

from conformance.http.client import Client
from conformance.reference.http import Response
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from conformance.target.readings import Readings
from conformance.target.spots import Spot
from conformance.target.states import States
from selftest.conftest import VERSION, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reference.http import Request
    from conformance.reference.routing import Route
    from conformance.target.profile import Profile

LIST = "GET /projects/:id/job_token_scope/allowlist"


def by_cursor(route: Route, request: Request, response: Response) -> Response:
    """Show one entry per page, name the next page in Link, and refuse page numbers."""
    asked = parse_qs(request.query.decode())
    if route.key != LIST or not isinstance(response.content, list):
        return response
    if "page" in asked:
        return Response(405)
    here = int(asked.get("cursor", ["0"])[0])
    following = f'<http://127.0.0.1:1{request.raw_path.decode()}?cursor={here + 1}>; rel="next"'
    is_last = here + 1 >= len(response.content)
    return Response(
        content=response.content[here : here + 1], has_content=True, headers={} if is_last else {"link": following}
    )


@pytest.fixture
def profile() -> Iterator[Profile]:
    """The profile of a service with an allowlist of several entries, shown one by one."""
    service = prepared_service(version=VERSION)
    with serving(service) as (_, base_url):
        profile = profile_from(profile_data(service.world, base_url, VERSION), "the profile")
        with Client(profile.client_settings()) as client:
            for target in service.world.many("allowlist_projects"):
                path = f"/projects/{profile.value('project')}/job_token_scope/allowlist"
                client.send(profile.actors["maintainer"], "POST", path, json_body={"target_project_id": target.id})
        service.transformers.append(by_cursor)
        yield profile


def test_a_list_by_cursor_is_read_completely(profile: Profile) -> None:
    number = profile.value("project")
    with Client(profile.client_settings()) as client:
        listed = Readings(profile, client).entries(f"/projects/{number}/job_token_scope/allowlist", "maintainer")
        states, spot = States(profile, client), Spot("project", number)
        (thing,) = (one for one in states.things(spot) if one.part.name == "project-allowlist" and one.spot == spot)
        kept = states.read(thing)
    assert listed is not None
    assert len(listed) >= 3
    assert kept is not None
    assert kept[1].keys() == {entry["id"] for entry in listed}
