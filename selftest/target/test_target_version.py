"""Where the version of a target comes from, and the message if it contradicts the target."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Version
from conformance.errors import ExitCode
from conformance.http.client import Client
from conformance.runner.job import Job
from conformance.runner.options import Options
from conformance.runner.session import Session
from conformance.target import version
from conformance.target.check import check_profile
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.profile_file import profile_from
from conformance.target.readings import State
from conformance.target.version import resolved
from selftest.conftest import serving
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route
    from conformance.target import Profile

pytestmark = pytest.mark.usefixtures("inside_this_process")

ONE_TEST = ("--requirement", "job-token-scope.available", "--out", "out")


def answering_with(service: Service, body: Any, *keys: str, status: int = 200) -> None:
    """Make some routes of a service answer something else."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        del request
        if route.key in keys:
            response.status, response.content = status, body
        return response

    service.transformers.append(transform)


def run_of(folder: Path) -> dict[str, Any]:
    return report_of(folder / "out")


def profile(service: Service, base_url: str, *, version: str = "auto") -> Profile:
    return profile_from(profile_data(service.world, base_url, version), "test")


def test_auto_asks_the_target_and_the_report_names_the_source_of_the_version(
    conformance: Callable[..., Any],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    with serving(prepared_service(version="17.7.1-pre")) as (service, base_url):
        write_profile(service, base_url, version="16.4")
        outcome = conformance("run", "--target", "target.yaml", "--target-version", "auto", *ONE_TEST)
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    report = run_of(tmp_path)
    assert (report["run"]["version"], report["run"]["version_source"]) == ("17.7", "GET /version: 17.7.1-pre")
    assert report["warnings"] == []
    assert "GET /version: 17.7.1-pre" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("played", "version"), [("12.3", "12.3"), ("18.0", "18.0"), ("16.11.3-ee", "16.11")])
def test_patch_levels_and_prereleases_count_as_their_minor_version(played: str, version: str) -> None:
    with serving(prepared_service(version=played)) as (service, base_url):
        found, warnings = resolved(profile(service, base_url))
        assert (str(found.version), found.version_source) == (version, f"GET /version: {service.version.full}")
    assert warnings == ()


@pytest.mark.parametrize(("then", "warned"), [("17.7.1", True), ("17.7.0", False)])
def test_a_target_that_is_upgraded_during_a_run_is_warned_of(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path, then: str, *, warned: bool
) -> None:
    told = iter(["17.7.0"])

    def upgrading(route: Route, request: Request, response: Response) -> Response:
        del request
        if route.key == "GET /version":
            response.content = {"version": next(told, then)}
        return response

    with serving(prepared_service()) as (service, base_url):
        service.transformers.append(upgrading)
        write_profile(service, base_url, version="auto")
        outcome = conformance("run", "--target", "target.yaml", *ONE_TEST)
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    found = [warning for warning in run_of(tmp_path)["warnings"] if "upgraded meanwhile" in warning]
    assert bool(found) is warned
    assert all("GET /version: 17.7.0" in warning and then in warning for warning in found)


def test_if_version_is_not_served_metadata_is_read(reference: Any) -> None:
    answering_with(reference[0], {"message": "404"}, "GET /version", status=404)
    found, _ = resolved(profile(*reference))
    assert found.version_source == "GET /metadata: 17.7.0"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        *(
            ({}, 200),
            ([], 200),
            ({"version": 17.7}, 200),
            ({"version": "new"}, 200),
            ("17.7", 200),
            ({}, 403),
            ({}, 500),
        ),
        ({"version": f"17.{'7' * 5000}"}, 200),
    ],
)
def test_a_target_without_a_version_has_an_unknown_one_with_a_warning(
    reference: Any,
    body: Any,
    status: int,
) -> None:
    answering_with(reference[0], body, "GET /version", "GET /metadata", status=status)
    found, warnings = resolved(profile(*reference))
    assert found.version is None
    assert "does not say which version" in warnings[0]
    assert "--target-version" in warnings[0]


@pytest.mark.parametrize(
    ("text", "judged_by"),
    [("20.1.0", "19.0"), ("19.5.0-pre", "19.0"), ("19.0.3", "19.0"), ("11.9", None), ("2026.1", None)],
)
def test_a_newer_version_is_judged_by_the_last_row_and_an_older_one_is_unknown(
    reference: Any,
    text: str,
    judged_by: str | None,
) -> None:
    answering_with(reference[0], {"version": text}, "GET /version")
    found, warnings = resolved(profile(*reference))
    wanted = Version.parse(judged_by) if judged_by else None
    assert (found.version, found.version_source) == (wanted, f"GET /version: {text}")
    assert [text in warning for warning in warnings] == ([] if text.startswith("19.0") else [True])


@pytest.mark.parametrize("declared", ["19.5", "20.0.1-pre"])
def test_a_declared_version_beyond_the_last_row_is_judged_by_that_with_a_warning(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path, declared: str
) -> None:
    with serving(prepared_service(version="19.0")) as (service, base_url):
        write_profile(service, base_url, version=declared)
        outcome = conformance("run", "--target", "target.yaml", *ONE_TEST)
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    report = run_of(tmp_path)
    assert report["run"]["version"] == "19.0"
    assert [declared in warning for warning in report["warnings"]] == [True]


@pytest.mark.parametrize("declared", ["17.7", "17.7.9", "unknown"])
def test_a_declared_version_that_fits_is_no_warning(reference: Any, declared: str) -> None:
    service, base_url = reference
    target = profile(service, base_url, version=declared)
    with Client(target.client_settings()) as client:
        assert not [one for one in check_profile(target, client) if one.place == "version"]


@pytest.mark.parametrize(("told", "state"), [("18.0", State.CONTRADICTED), ("0.9", State.NOTE), ("2026.1", State.NOTE)])
def test_a_version_that_is_counted_in_another_way_contradicts_nothing(reference: Any, told: str, state: State) -> None:
    answering_with(reference[0], {"version": told}, "GET /version")
    target = profile(*reference, version="17.7")
    with Client(target.client_settings()) as client:
        assert [one.state for one in check_profile(target, client) if one.place == "version"] == [state]


def test_a_target_without_a_version_contradicts_nothing(reference: Any) -> None:
    answering_with(reference[0], {}, "GET /version", "GET /metadata")
    service, base_url = reference
    target = profile(service, base_url, version="16.0")
    with Client(target.client_settings()) as client:
        assert not [one for one in check_profile(target, client) if one.place == "version"]


def test_a_declared_version_that_the_target_contradicts_is_a_forced_runs_warning(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    write_profile(*reference, version="17.1")
    assert conformance("run", "--target", "target.yaml", *ONE_TEST).code == ExitCode.COULD_NOT_RUN
    outcome = conformance("run", "--target", "target.yaml", "--force", *ONE_TEST)
    report = run_of(tmp_path)
    assert report["run"]["version"] == "17.1"
    (warning,) = report["warnings"]
    assert "17.1 (declared in the profile)" in warning
    assert "17.7.0 (GET /version)" in warning
    assert "the target says 17.7.0" in outcome.out


def test_auto_at_a_dead_host_ends_like_any_run_at_a_dead_host(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        write_profile(reference[0], f"http://127.0.0.1:{probe.getsockname()[1]}", version="auto")
        outcome = conformance("run", "--target", "target.yaml", *ONE_TEST)
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "does not answer" in outcome.err
    assert run_of(tmp_path)["verdict"] == "could not run"


def test_the_embedded_reference_always_knows_its_version(tmp_path: Path) -> None:
    session = Session(Job.prepare(Options(version="auto", out=tmp_path)))
    session.make_plan({})
    session.open()
    session.close()
    assert session.record is not None
    header = session.record.header
    assert (header.version, header.version_source) == ("17.7", "the embedded reference")


def test_checking_a_profile_shows_the_version_of_the_target(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
) -> None:
    write_profile(*reference, version="auto")
    outcome = conformance("target", "--check", "target.yaml")
    assert "version 17.7 (GET /version: 17.7.0)" in outcome.out


def test_a_contradicted_newer_version_is_reported_as_judged_by_the_last_row(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
) -> None:
    write_profile(*reference, version="25.1")
    outcome = conformance("target", "--check", "target.yaml")
    assert "a newer one, judged as 19.0 (declared in the profile), and the target says 17.7.0" in " ".join(
        outcome.text.split()
    )


def test_a_long_wait_for_the_version_is_reported(
    slow_reference: tuple[Service, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(version, "_LONG", 0.0)
    service, base_url = slow_reference
    resolved(profile(service, base_url))
    assert capsys.readouterr().err == f"Waiting for {base_url} to say its version ...\n"
    resolved(profile(service, base_url, version="17.7"))
    assert capsys.readouterr().err == ""
