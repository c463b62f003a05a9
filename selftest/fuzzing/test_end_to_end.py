"""The derived tests against the reference: it passes, and each of these faults is found and shown by a small call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpcore
import pytest

from conformance.errors import ExitCode
from conformance.reference.errors import InvalidError
from conformance.reference.parameters import Parameters
from selftest.altering import altering
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

pytestmark = pytest.mark.usefixtures("inside_this_process")

SCOPE = "/projects/:id/job_token_scope"
ONE_GROUP = f"DELETE {SCOPE}/groups_allowlist/:target_group_id"
AREA = ("--area", "job-token-scope", "--max-examples", "10")
DERIVED = ("--", "-k", "contract")

Rows = dict[str, dict[str, Any]]


@pytest.fixture
def run(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> Callable[..., tuple[Any, Rows]]:
    """Run the derived tests of one area; return the outcome and the report's rows by requirement."""
    service, base_url = reference

    def go(*options: str) -> tuple[Any, Rows]:
        write_profile(service, base_url)
        outcome = conformance("run", "--target", "target.yaml", "--out", "out", *AREA, *options)
        return outcome, rows_of(tmp_path / "out")

    return go


def failed(rows: Rows) -> set[str]:
    return {name for name, row in rows.items() if row["verdict"] == "failed"}


def test_the_reference_passes_and_is_restored(
    run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str]
) -> None:
    service, _ = reference
    before = left_behind(service)
    outcome, rows = run(*DERIVED)
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert failed(rows) == set()
    assert not [name for name, row in rows.items() if row["verdict"] == "inconclusive"]
    own = {name for name, row in rows.items() if name.startswith("job-token-scope.") and row["verdict"] == "passed"}
    assert len(own) > 25
    assert left_behind(service) == before


def left_behind(service: Service) -> dict[str, Any]:
    """The limit and the lists of every project that the run may change."""
    projects = [
        service.identities.find_project(str(service.world.one(name).id)) for name in ("project", "fuzz_project")
    ]
    scopes = service.job_token_scope
    return {
        project.full_path: (
            scopes.of(project),
            [entry.id for entry in scopes.projects(project)],
            [entry.id for entry in scopes.groups(project)],
        )
        for project in projects
        if project is not None
    }


def test_a_server_error_to_a_wrong_type_fails_the_requirement_of_that_parameter(
    run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def strict(self: Parameters, name: str) -> bool:
        value = self._values.get(name)
        if isinstance(value, str | dict):
            raise ZeroDivisionError
        return self._boolean(name, self._required(name))

    del reference
    monkeypatch.setattr(Parameters, "boolean", strict)
    outcome, rows = run(*DERIVED)
    assert outcome.code == ExitCode.NON_CONFORMANT
    assert "job-token-scope.switch.enabled-is-boolean" in failed(rows)


def test_an_accepted_wrong_type_is_shown_by_the_smallest_call(
    run: Callable[..., tuple[Any, Rows]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Parameters, "boolean", lambda self, name: bool(self._required(name)))
    outcome, rows = run("--", "-k", "test_fuzz")
    assert outcome.code == ExitCode.NON_CONFORMANT
    row = rows["job-token-scope.switch.enabled-is-boolean"]
    assert row["verdict"] == "failed"
    bodies = [json.loads(entry["request_body"]) for entry in evidence(row) if entry.get("request_body")]
    assert all(list(body) == ["enabled"] for body in bodies), bodies


@pytest.mark.parametrize("how_often", ["each time", "once"])
def test_a_call_that_breaks_the_connection_each_time_is_left_open(
    how_often: str, run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str]
) -> None:
    """As a service ends that crashes: nothing fails, because a gateway may cut a call off as well."""
    service, _ = reference
    broken: list[str] = []
    is_always = how_often == "each time"

    def crash(route: Route, request: Request, response: Response) -> Response:
        if route.key == ONE_GROUP and not request.path["target_group_id"].isdecimal() and (is_always or not broken):
            broken.append(request.path["target_group_id"])
            raise httpcore.RemoteProtocolError
        return response

    service.transformers.append(crash)
    outcome, rows = run("--", "-k", "test_fuzz")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert broken
    row = rows["errors.refusal.is-client-error"]
    assert (row["verdict"] == "inconclusive" and row["reason"] == "no answer") is is_always, row
    said = {f"/{each} broke the connection 4 times" for each in broken}
    assert not is_always or any(each in row["detail"] for each in said), row["detail"]


def evidence(row: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for failure in row.get("failures", [row]):
        found += failure.get("evidence", [])
    assert found
    return found


def test_a_lenient_service_that_converts_values_passes(
    run: Callable[..., tuple[Any, Rows]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers as truth values, text as numbers, null as false: no reading of the text forbids it."""

    def lenient(self: Parameters, name: str) -> bool:
        value = self._required(name) if name not in self._values else self._values[name]
        if value in (None, "", 0, [], {}) or isinstance(value, float):
            return False
        if isinstance(value, list) and len(value) == 1:
            return bool(value[0])
        if isinstance(value, str) and value.lower() not in ("true", "false", "1", "0", "t", "f"):
            raise InvalidError(f"{name} is invalid")
        return self._boolean(name, value)

    monkeypatch.setattr(Parameters, "boolean", lenient)
    outcome, rows = run(*DERIVED)
    assert failed(rows) == set(), outcome.text


def test_a_response_without_a_field_fails_once_at_the_place_of_the_field(
    run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str]
) -> None:
    service, _ = reference

    def without_name(_: Request, response: Response) -> None:
        if response.status < 300:
            for entry in response.content:  # type: ignore[attr-defined] # a list of entries
                entry.pop("name")

    altering(service, f"GET {SCOPE}/groups_allowlist", without_name)
    outcome, rows = run("--", "-k", "test_fuzz")
    assert outcome.code == ExitCode.NON_CONFORMANT
    assert failed(rows) == {"job-token-scope.group-entry.fields"}


def test_an_undocumented_code_fails_the_success_of_the_operation(
    run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str]
) -> None:
    service, _ = reference

    def partial(request: Request, response: Response) -> None:
        if response.status == 200 and b"page=2" in request.query:
            response.status = 206

    altering(service, f"GET {SCOPE}/allowlist", partial)
    _, rows = run("--", "-k", "test_fuzz")
    assert failed(rows) == {"job-token-scope.allowlist.list"}


def test_a_write_that_is_answered_but_not_stored_is_found_by_reading_back(
    run: Callable[..., tuple[Any, Rows]], reference: tuple[Service, str]
) -> None:
    service, _ = reference
    service.job_token_scope.limit_inbound = lambda *_, **__: None  # type: ignore[method-assign]
    _, rows = run("--", "-k", "test_fuzz")
    assert failed(rows) & {"job-token-scope.switch.on", "job-token-scope.switch.off"}
