"""Ways to run on a service that is in use: read-only, and for a limited time."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cli.run import run_suite
from conformance.reference import EmbeddedServer
from conformance.runner.location import suite_arguments
from conformance.target.embedded import prepared_service
from selftest.reads import report_of, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

pytestmark = pytest.mark.usefixtures("inside_this_process")

AREA = "approval-settings"
KNOWN = ("approval-settings.group.setting.locked", "approval-settings.project.setting.locked")


def _without_locks(_: Route, __: Request, response: Response) -> Response:
    if isinstance(response.content, dict):
        for setting in response.content.values():
            if isinstance(setting, dict):
                setting.pop("locked", None)
    return response


def test_a_read_only_run_sends_only_reads_and_says_what_it_could_not_verify(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], tmp_path: Path
) -> None:
    service, methods = prepared_service(version="17.7"), set[str]()
    service.transformers.append(_without_locks)
    service.request_log = lambda entry: methods.add(entry.method)
    known = tmp_path / "baseline.yaml"
    more = "reason: Ticket 12., owner: team A, expires: 2999-12-31"
    entries = "".join(f"  - {{requirement: {name}, {more}}}\n" for name in KNOWN)
    known.write_text(f"baseline:\n{entries}", encoding="utf-8")
    with EmbeddedServer(service) as server:
        write_profile(service, server.base_url)
        few = ("--area", AREA, "--max-examples", "3", "--corpus", "none")
        options = ("--target", "target.yaml", "--out", "out", "--baseline", "baseline.yaml", "--fail-on", "new")
        outcome = conformance("run", "--read-only", *few, *options)
    assert methods == {"GET"}
    assert outcome.code == 6, outcome.text[-2000:]
    rows = rows_of(tmp_path / "out")
    assert {rows[name]["verdict"] for name in KNOWN} == {"failed"}
    assert {rows[name]["known_failure"]["owner"] for name in KNOWN} == {"team A"}
    assert rows["approval-settings.group.read"]["verdict"] == "passed"
    assert rows["approval-settings.group.update"]["reason"] == "unsafe in this mode"


def test_a_run_starts_no_test_when_its_minutes_are_over(conformance: Callable[..., Any], tmp_path: Path) -> None:
    outcome = conformance("run", "--minutes", "0.0001", "--area", AREA, "--out", "out")
    assert outcome.code == 6, outcome.text[-2000:]
    report = report_of(tmp_path / "out")
    reasons = {
        row["reason"] for row in report["requirements"] if row["area"] == AREA and row["verdict"] == "not tested"
    }
    assert reasons == {"not reached"}
    assert "0.0001 minutes of --minutes were over" in outcome.text
    (not_run,) = re.findall(r"^(\d+) tests not run$", outcome.text, re.MULTILINE)
    assert f"not begun: {not_run} tests" in outcome.text
    assert "stopped after" not in outcome.text


def test_a_run_of_one_requirement_imports_only_the_files_that_verify_it(tmp_path: Path) -> None:
    collected: list[str] = []

    class Watching:
        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            collected.extend([report.nodeid.rpartition("/")[2]] if report.nodeid.endswith(".py") else [])

    options = ("-q", "--requirement=job-token-scope.settings.read", "--corpus=none", f"--out={tmp_path / 'out'}")
    with contextlib.redirect_stdout(io.StringIO()):
        code = run_suite(suite_arguments(*options), plugins=(Watching(),))
    assert code == 0
    verifying = rows_of(tmp_path / "out")["job-token-scope.settings.read"]["tests"]
    assert set(collected) == {test.partition("::")[0].rpartition("/")[2] for test in verifying}
    assert "tests (not selected by" in report_of(tmp_path / "out")["headline"]["deselected"]
