"""A service behind a front-end, or a login, that answers every path which the service does not have with its page."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ExitCode
from conformance.http.client import Client
from conformance.reference import EmbeddedServer
from conformance.reference.errors import NoRouteError, WrongMethodError
from conformance.reference.http import Match, Response, Route
from conformance.suite.probes import Probes
from conformance.target import load_profile
from conformance.target.embedded import prepared_service
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service

pytestmark = pytest.mark.usefixtures("inside_this_process")

PAGE = Response(200, raw=b"<!doctype html><title>Forge</title><div id=app></div>", media_type="text/html")
#: How often a page comes before it is no accident.
PAGES_UNTIL_SURE = 4
LOGIN = Response(302, headers={"Location": "/users/sign_in"})


def behind(service: Service, answer: Response, *missing: str) -> Service:
    """Let a service answer with a page for what it does not have, and for operations whose paths have these words."""
    find = service.routes.find

    def found(method: str, raw_path: bytes) -> Match:
        with suppress(NoRouteError, WrongMethodError):
            match = find(method, raw_path)
            if not any(word in match.route.path for word in missing):
                return match
        return Match(Route(method, "/", lambda _: answer, anonymous=True), {})

    service.routes.find = found  # type: ignore[method-assign]
    return service


@pytest.mark.parametrize("answer", [PAGE, LOGIN], ids=["page", "login"])
def test_operations_that_get_the_page_of_any_path_are_absent_and_fail_once(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path, answer: Response
) -> None:
    missing = ("/merge_request_approval_setting", "/groups_allowlist/", "/approvals")
    service = behind(prepared_service(version="17.7"), answer, *missing)
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url, features={"approval_configuration": False})
        areas = ("--area", "approval-settings", "--area", "job-token-scope", "--area", "authentication")
        drawn = ("--", "-k", "not model and not test_fuzz")
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--seed", "1", *areas, *drawn)
    failed = {name: row for name, row in rows_of(tmp_path / "out").items() if row["verdict"] == "failed"}
    assert failed.keys() - {"merge-request-approvals.status.read"} == {
        "approval-settings.group.read",
        "approval-settings.group.update",
        "approval-settings.project.read",
        "approval-settings.project.update",
        "job-token-scope.groups-allowlist.remove.no-content",
    }, outcome.text[-3000:]
    assert all(row["failures"][0]["actual"].startswith("none: status ") for row in failed.values())
    assert "as any other path gets it" in " ".join(outcome.text.split())
    assert "which no answer showed before" not in " ".join(outcome.text.split())
    assert "/approvals is served" not in outcome.text


def test_where_only_the_page_is_there_the_address_is_wrong(
    conformance: Callable[..., Any], write_profile: Callable[..., Path]
) -> None:
    kept = prepared_service(version="17.7")
    service = behind(kept, PAGE, "/job_token_scope", "/approv", "/integrations", "/services", "/export", "/code_sugg")
    behind(service, PAGE, "/merge_request_approval_setting")
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url)
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--area", "job-token-scope", "--force")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text[-3000:]
    assert "Nothing of this API is there" in " ".join(outcome.text.split())


@pytest.mark.parametrize("is_gone_at_once", [True, False])
def test_a_page_of_maintenance_that_has_just_begun_is_not_that_of_any_path(
    write_profile: Callable[..., Path], *, is_gone_at_once: bool
) -> None:
    """It comes for everything, or it is gone when the same path is asked again."""
    service = prepared_service(version="17.7")
    find = service.routes.find
    begun: list[str] = []

    def found(method: str, raw_path: bytes) -> Match:
        if b"no-such-path" in raw_path or (begun and not is_gone_at_once):
            begun.append(method)
            is_over = is_gone_at_once and len(begun) > PAGES_UNTIL_SURE
            if not is_over:
                return Match(Route(method, "/", lambda _: PAGE, anonymous=True), {})
        return find(method, raw_path)

    service.routes.find = found  # type: ignore[method-assign]
    with EmbeddedServer(service) as server:
        profile = load_profile(write_profile(service, server.base_url, retries={"call_seconds": 0, "run_seconds": 0}))
        with Client(profile.client_settings()) as client:
            Probes(profile, client).learn_what_any_path_gets()
            assert client.anywhere.look is None
    assert len(begun) > PAGES_UNTIL_SURE


def test_where_what_does_not_exist_gets_the_page_too_no_operation_is_absent(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    """A framework may go on to its front-end when it finds nothing: the page says nothing about a write then."""
    service = behind(prepared_service(version="17.7"), PAGE)
    service.transformers.append(lambda _, __, response: replace(PAGE) if response.status == 404 else response)
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url)
        areas = ("--area", "project-approval-rules", "--area", "job-token-scope")
        drawn = ("--", "-k", "not model and not test_fuzz")
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--seed", "1", *areas, *drawn)
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text[-3000:]
    rows = rows_of(tmp_path / "out")
    assert not [name for name, row in rows.items() if "operation absent" in json.dumps(row["failures"])]
    assert "not there:" not in outcome.text
    passed = {row["area"] for row in rows.values() if row["verdict"] == "passed"}
    assert passed >= {"project-approval-rules", "job-token-scope"}, "both areas were looked at"
