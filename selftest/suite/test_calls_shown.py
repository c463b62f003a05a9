"""The last call that a report shows for a failure is the one in which whoever repeats it sees the failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.reference import EmbeddedServer
from conformance.reference.http import ok
from conformance.target.embedded import prepared_service
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

    Shown = Callable[[Callable[[Service], None], str], str]

pytestmark = pytest.mark.usefixtures("inside_this_process")

SETTINGS = "/projects/:id/merge_request_approval_setting"


@pytest.fixture
def last_call(conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path) -> Shown:
    """Run the tests of a requirement on a service that was altered, and return the last call of its first failure."""

    def run(alter: Callable[[Service], None], requirement: str) -> str:
        service = prepared_service(version="17.7")
        alter(service)
        with EmbeddedServer(service) as server:
            write_profile(service, server.base_url)
            options = ("--target", "target.yaml", "--out", "out", "--corpus", "none", "--seed", "1")
            conformance("run", *options, "--requirement", requirement)
        shown: str = rows_of(tmp_path / "out")[requirement]["failures"][0]["evidence"][-1]["request"]
        return shown

    return run


def the_older_name_lists_nothing(service: Service) -> None:
    def emptied(route: Route, _: Request, response: Response) -> Response:
        return ok([]) if route.key == "GET /projects/:id/services" and response.status < 400 else response

    service.transformers.append(emptied)


def an_update_reaches_every_project(service: Service) -> None:
    """Show in all projects what the last update of any of them has answered."""
    last: list[Any] = []

    def shared(route: Route, _: Request, response: Response) -> Response:
        if route.key == f"PUT {SETTINGS}" and response.status < 400:
            last[:] = [response.content]
        return ok(last[0]) if last and route.key == f"GET {SETTINGS}" and response.status < 400 else response

    service.transformers.append(shared)


def test_a_list_that_differs_by_the_older_name_is_shown_by_that_name(last_call: Shown) -> None:
    shown = last_call(the_older_name_lists_nothing, "integrations.alias.lists-the-same")
    assert shown.startswith("GET /api/v4/projects/")
    assert shown.endswith("/services")


def test_the_settings_of_a_project_that_moved_are_shown(last_call: Shown) -> None:
    shown = last_call(an_update_reaches_every_project, "approval-settings.project.update.leaves-other-projects")
    assert shown.startswith("GET /api/v4/projects/")
