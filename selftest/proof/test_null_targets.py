"""Servers that implement nothing: whatever they answer to every call, no requirement passes."""

from __future__ import annotations

import contextlib
import io
import json
import socket
from typing import TYPE_CHECKING, Any

import httpcore
import pytest

from conformance.cli.run import run_suite
from conformance.errors import ExitCode, TargetError
from conformance.http import client
from conformance.http.transport import Transport
from conformance.reference.versions import SUPPORTED_VERSIONS
from conformance.results.reading import read_record
from conformance.results.record import Outcome
from conformance.results.verdicts import Verdict, add_up
from conformance.runner.job import Job
from conformance.runner.location import suite_arguments
from conformance.runner.options import Options
from conformance.runner.session import SESSION, Mode, Session
from conformance.target.embedded import prepared_service
from selftest.conftest import VERSION
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Hasty:
    """A plugin that makes a run repeat nothing and write no reports: its record says what passed."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        config.stash[SESSION].mode = Mode(confirms=False, renders=False)


@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (200, b"[]"), (204, b""), (500, b"{}")], ids=str)
def test_a_server_that_answers_every_call_alike_passes_nothing(
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    body: bytes,
) -> None:
    class Alike(Transport):
        """Answers instead of a server, which would take most of the time for so many calls."""

        def _answer(self, request: httpcore.Request, largest: int) -> tuple[httpcore.Response, bytes]:
            del request, largest
            return httpcore.Response(status, headers={"Content-Type": "application/json"} if body else {}), body

    monkeypatch.setattr(client, "Transport", Alike)
    limits = {"timeout_seconds": 5, "deadline_seconds": 0.2}
    file = write_profile(prepared_service(VERSION), "http://127.0.0.1:1", limits=limits)
    options = (f"--target={file}", f"--out={tmp_path / 'out'}", "--corpus=none", "-q")
    # Generated calls only add time here: they are judged like those of the derived tests.
    selected = ("--force", "--max-examples=3", "-k", "not test_fuzz")
    with contextlib.redirect_stdout(io.StringIO()):
        code = run_suite(suite_arguments(*options, *selected), plugins=(Hasty(),))
    assert code in (ExitCode.NON_CONFORMANT, ExitCode.INCOMPLETE)
    result = add_up(read_record(tmp_path / "out" / "results.jsonl"))
    assert result.rows
    assert result.rows_with(Verdict.PASSED) == ()


def test_a_server_without_any_operation_is_a_wrong_address_and_no_failure(
    conformance: Callable[..., Any],
    answering: Callable[..., str],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    write_profile(reference[0], answering(404, b'{"message":"404 Not Found"}'))
    outcome = conformance("run", "-q", "--target", "target.yaml", "--out", "out", "--area", "approval-settings")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text[-3000:]
    assert "Nothing of this API is there" in outcome.text
    report = report_of(tmp_path / "out")
    assert not [row for row in report["requirements"] if row["verdict"] in ("passed", "failed")]


#: A requirement whose operations may be missing, one without operations, and one whose operations the contract lacks.
OF_NO_OPERATION = (
    "project-approval-configuration.read",
    "authentication.private-token-spelling",
    "versions.repository-tree.missing-path",
)


@pytest.mark.parametrize("selected", OF_NO_OPERATION)
def test_a_wrong_path_is_reported_whatever_was_selected(
    conformance: Callable[..., Any], reference: Any, write_profile: Callable[..., Path], selected: str
) -> None:
    service, base_url = reference
    write_profile(service, f"{base_url}/elsewhere")
    options = ("--target", "target.yaml", "--workers", "1", "--requirement", selected)
    outcome = conformance("run", "-q", *options, "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text[-3000:]
    assert "Nothing of this API is there" in outcome.text


@pytest.mark.parametrize("selected", OF_NO_OPERATION)
def test_a_selected_requirement_is_tested_even_if_most_operations_are_absent(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
    selected: str,
) -> None:
    """The path is right, but areas are absent: a few operations answer, so the run does not end at once."""
    service, _ = reference
    kept = ("/user", "/version", "/projects/:id", "/projects/:id/approvals", "/projects/:id/repository/tree")
    for route in service.routes:
        if route.path not in kept:
            service.routes.change(route.key, removed=SUPPORTED_VERSIONS.first)
    write_profile(*reference)
    options = ("--target", "target.yaml", "--workers", "1", "--requirement", selected)
    outcome = conformance("run", "-q", *options, "--out", "out")
    # Incomplete if one of the tests also needs another operation, which is absent.
    assert outcome.code in (ExitCode.CONFORMANT, ExitCode.INCOMPLETE), outcome.text[-3000:]
    record = read_record(tmp_path / "out" / "results.jsonl")
    assert Outcome.PASSED in [check.outcome for check in record.checks if check.requirement == selected]


def test_a_server_that_never_answers_passes_nothing_and_the_run_ends(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    service, _ = reference
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        write_profile(service, base_url, limits={"timeout_seconds": 0.3})
        outcome = conformance("run", "--target", "target.yaml", "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "no answer within 0.3 s" in outcome.text
    assert passed(tmp_path) == []


@pytest.mark.parametrize("what", ["a web page", "a closed port"])
def test_without_a_service_nothing_passes_and_one_message_says_what_is_there(
    answering: Callable[..., str], tmp_path: Path, what: str
) -> None:
    page = b"<!doctype html><title>Sign in</title>"
    base_url = answering(200, page, "text/html") if what == "a web page" else f"http://127.0.0.1:{closed_port()}"
    actors = {"maintainer": {"token": "secret"}}
    profile = {"base_url": base_url, "disposable": True, "actors": actors, "fixtures": {"project": {"id": 1}}}
    (tmp_path / "target.yaml").write_text(json.dumps(profile), encoding="utf-8")
    session = Session(Job.prepare(Options(target=tmp_path / "target.yaml", out=tmp_path / "out")))
    session.make_plan({})
    with pytest.raises(TargetError) as raised:
        session.open()
    assert raised.value.exit_code == session.exit_code == ExitCode.COULD_NOT_RUN
    assert ("answers HTML" if what == "a web page" else "does not answer") in str(raised.value)
    assert passed(tmp_path) == []


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def passed(folder: Path) -> list[str]:
    report = report_of(folder / "out")
    return [row["id"] for row in report["requirements"] if row["verdict"] == "passed"]
