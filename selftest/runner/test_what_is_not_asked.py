"""What a profile does not ask for is not judged, however wrong it is: another area, a feature, a later version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.http.bodies import records_of
from conformance.reference import EmbeddedServer
from conformance.reference.http import Response
from conformance.suite.arrange.approval_rules import FLAG
from conformance.target.embedded import prepared_service, profile_data
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference.http import Request
    from conformance.reference.routing import Route
    from conformance.reference.service import Service

    Answering = Callable[[Route, Request, Response], Response]

pytestmark = pytest.mark.usefixtures("inside_this_process")


@pytest.fixture
def run(conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path) -> Callable[..., Any]:
    """Run the suite on a service with a few words of its profile, and return the outcome and the report."""

    def on(service: Service, *options: str, **profile: Any) -> tuple[Any, Any]:
        with EmbeddedServer(service) as server:
            write_profile(service, server.base_url, **profile)
            usual = (
                "--target",
                "target.yaml",
                "--out",
                "out",
                "--max-examples",
                "1",
                "--seed",
                "1",
                "--corpus",
                "none",
            )
            outcome = conformance("run", *usual, *options)
        return outcome, report_of(tmp_path / "out")

    return on


def altered(keys: str, change: Callable[[str, Any], Any]) -> Answering:
    """Return what changes each property, by its name, in the served answers of routes whose key holds a text."""

    def odd(node: Any) -> Any:
        if isinstance(node, dict):
            return {name: change(name, odd(value)) for name, value in node.items()}
        return [odd(entry) for entry in node] if isinstance(node, list) else node

    def answered(route: Route, _: Request, response: Response) -> Response:
        if keys in route.key and response.status < 300 and response.content is not None:
            response.content = odd(json.loads(json.dumps(response.content, default=str)))
        return response

    return answered


@pytest.mark.parametrize(
    ("area", "keys", "name", "value"),
    [
        ("job-token-scope", "approval_rules", "username", None),
        ("merge-request-approvals", " /projects/:id/approval_rules", "parent_id", "none"),
        ("project-approval-rules", "job_token_scope", "id", {"$oid": "65f0"}),
    ],
)
def test_an_area_that_is_not_claimed_may_be_half_built(
    area: str, keys: str, name: str, value: Any, run: Callable[..., Any]
) -> None:
    service = prepared_service(version="17.7")
    service.transformers.append(altered(keys, lambda known, shown: value if known == name else shown))
    outcome, report = run(service, scope=[area])
    assert (outcome.code, report["verdict"]) == (0, "conformant"), outcome.text


def test_stubs_of_areas_that_are_not_claimed_keep_nothing_open(run: Callable[..., Any]) -> None:
    service = prepared_service(version="17.7")

    def stub(route: Route, _: Request, response: Response) -> Response:
        is_stub = "approval" in route.key and response.status < 300 and response.status != 204
        return Response(response.status, content={}, has_content=True) if is_stub else response

    service.transformers.append(stub)
    outcome, report = run(service, scope=["job-token-scope"])
    assert (outcome.code, report["verdict"]) == (0, "conformant"), outcome.text


def test_a_feature_that_is_not_declared_is_neither_judged_nor_written_to(run: Callable[..., Any]) -> None:
    """Rules of groups are shown to everybody, and stay for ever."""
    service = prepared_service(version="17.7")

    def shown(route: Route, _: Request, response: Response) -> Response:
        is_refused = route.key == "GET /groups/:id/approval_rules" and response.status >= 400
        return Response(200, content=[], has_content=True) if is_refused else response

    service.transformers.append(shown)
    features = profile_data(service.world, "http://localhost", "17.7")["features"]
    outcome, report = run(service, features={**features, "group_approval_rules": False})
    assert (outcome.code, report["verdict"]) == (0, "conformant"), outcome.text
    assert "group-rules of group" not in outcome.text, "no operation takes such a rule away"


def test_what_came_with_a_later_version_is_not_judged(run: Callable[..., Any]) -> None:
    service = prepared_service(version="15.0")

    def on_by_default(route: Route, _: Request, response: Response) -> Response:
        for rule in records_of(response.content) if " /projects/:id/approval_rules" in route.key else ():
            rule[FLAG] = True
        return response

    service.transformers.append(on_by_default)
    outcome, _ = run(service, "--area", "project-approval-rules", version="15.0")
    assert outcome.code == 0, outcome.text
