"""Open requirements are reported with what would close them, and can be run alone; a run can be repeated on request."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
import yaml

from conformance.cli.watch import Watched
from conformance.errors import ExitCode
from conformance.results.reading import read_record
from conformance.runner.location import SUITE_FOLDER
from conformance.target.embedded import profile_data
from selftest.conftest import VERSION
from selftest.processes import unused_port
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("inside_this_process")

AREA = "approval-settings"


def test_an_open_requirement_says_what_to_add_and_can_be_run_alone(
    conformance: Callable[..., Any], reference: Any, tmp_path: Path
) -> None:
    service, base_url = reference
    whole = profile_data(service.world, base_url, VERSION)
    lacking = {**whole, "fixtures": {name: value for name, value in whole["fixtures"].items() if name != "group"}}
    file, options = tmp_path / "target.yaml", ("--target", "target.yaml", "--corpus", "none", "--max-examples", "3")
    file.write_text(yaml.safe_dump(lacking), encoding="utf-8")
    first = conformance("run", *options, "--area", AREA, "--out", "first")
    assert first.code == ExitCode.INCOMPLETE, first.text[-2000:]
    assert "Add to the profile, what closes most first" in first.out
    assert "`group`: private top-level group" in first.out
    assert "  group: {id: 10, path: conformance}" in first.out
    for name in ("summary.md", "index.html"):
        assert "group: {id: 10, path: conformance}" in (tmp_path / "first" / name).read_text(encoding="utf-8")
    file.write_text(yaml.safe_dump(whole), encoding="utf-8")
    again = conformance("run", "-q", *options, "--failed", "first", "--out", "again")
    assert again.code == 0, again.text[-2000:]
    before, after = (rows_of(tmp_path / name) for name in ("first", "again"))
    left = {name for name, row in before.items() if row["area"] == AREA and row["verdict"] == "not tested"}
    held = {name for name, row in after.items() if row["verdict"] in ("passed", "noted")}
    assert left <= held
    assert {before[name]["verdict"] for name in held - left} <= {"passed"}  # what the same tests verify besides
    nothing = conformance("run", "--target", "target.yaml", "--failed", "again", "--out", "third")
    assert nothing.code == ExitCode.USAGE
    assert "there is nothing to repeat" in nothing.text


def test_a_run_first_removes_the_reports_of_the_run_before(conformance: Callable[..., Any], tmp_path: Path) -> None:
    """Otherwise, after a killed run, the verdict of last night would be beside the new record."""
    few = ("run", "-q", "--requirement", "job-token-scope.settings.read", "--out", "out")
    assert conformance(*few).code == 0
    reports = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"report.json", "summary.md", "index.html"} <= reports
    (tmp_path / "out" / "mine.txt").write_text("kept", encoding="utf-8")
    command = [sys.executable, "-m", "conformance", *few, "--", "-p", "selftest.runner.crashing"]
    environment = {**os.environ, "CRASH_AFTER": "0", "PYTHONPATH": str(Path.cwd())}
    assert subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode == -signal.SIGKILL
    left = {file.name for file in (tmp_path / "out").iterdir()}
    assert left <= {"results.jsonl", "mine.txt", "ledger.jsonl"}
    assert {"results.jsonl", "mine.txt"} <= left


def test_a_run_keeps_the_record_of_an_earlier_one_elsewhere(conformance: Callable[..., Any], tmp_path: Path) -> None:
    few = ("run", "-q", "--requirement", "job-token-scope.settings.read", "--corpus", "none", "--out", "out")
    kept = []
    for number in range(3):
        outcome = conformance(*few, "--seed", str(number))
        assert (outcome.code, outcome.err.count("held the record of an earlier run")) == (0, min(number, 1))
        assert number == 0 or f"are in out.{number} now" in outcome.err
        kept.append({file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()})
        (tmp_path / "out" / "mine.txt").write_text("stays", encoding="utf-8")
    for number in (1, 2):
        aside = {file.name: file.read_bytes() for file in (tmp_path / f"out.{number}").iterdir()}
        assert aside == {name: text for name, text in kept[number - 1].items() if name != "mine.txt"}
    assert {"results.jsonl", "index.html", "report.json", "summary.md"} <= kept[0].keys()
    assert not (tmp_path / "out.3").exists()


def test_a_run_does_not_start_if_an_earlier_record_cannot_be_moved(
    conformance: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ("run", "-q", "--requirement", "job-token-scope.settings.read", "--corpus", "none", "--out", "out")
    assert conformance(*few).code == 0
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    monkeypatch.setattr(Path, "rename", Mock(side_effect=OSError(errno.EXDEV, "Invalid cross-device link")))
    outcome = conformance(*few)
    assert (outcome.code, "Name another folder with --out" in outcome.err) == (ExitCode.USAGE, True), outcome.text
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before
    assert not (tmp_path / "out.1").exists()


def test_the_command_that_repeats_a_run_names_no_output_folder(conformance: Callable[..., Any], tmp_path: Path) -> None:
    few = ("--requirement", "job-token-scope.settings.read", "--seed", "5")
    outcome = conformance("run", "-v", *few, "--out", "out")
    command = "conformance run --requirement=job-token-scope.settings.read --seed=5"
    assert f"\nto repeat: {command}\n" in outcome.out
    conformance("run", "-q", *few, "--out", "quiet")
    for name in ("out", "quiet"):
        assert read_record(tmp_path / name / "results.jsonl").header.command == command
        assert f"`{command}`" in (tmp_path / name / "summary.md").read_text(encoding="utf-8")


def test_a_resumed_run_uses_the_new_options_for_output_and_limits(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    few = ("--area", "code-completion", "--max-requests", "60", "--corpus", "none", "--max-examples", "2")
    assert conformance("run", "-q", *few, "--out", "out").code == ExitCode.INCOMPLETE
    first = read_record(tmp_path / "out" / "results.jsonl")
    again = conformance("run", "--resume", "out", "-q", "--format", "json", "--max-requests", "90")
    assert again.out == (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    both = read_record(tmp_path / "out" / "results.jsonl")
    assert both.header.started == first.header.started
    assert any("its first part ran from" in text for text in both.warnings)
    assert first.footer
    assert both.footer
    assert both.footer.seconds > first.footer.seconds
    drawn = both.footer.drawn or {}
    assert all(drawn[name] >= number for name, number in (first.footer.drawn or {}).items())
    calls = {latency.operation: latency.calls for latency in both.latencies}
    assert all(calls[latency.operation] >= latency.calls for latency in first.latencies)


def test_a_watched_run_is_repeated_on_enter_and_ends_with_its_input(reference: Any, tmp_path: Path) -> None:
    service, base_url = reference
    data = profile_data(service.world, base_url, VERSION)
    (tmp_path / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    command = [sys.executable, "-m", "conformance", "run", "-q", "--target", "target.yaml", "--out", "out"]
    ended = subprocess.run(
        [*command, "--requirement", "job-token-scope.settings.read"],
        input="no-such-area\n\n",
        cwd=tmp_path,
        env={
            **os.environ,
            "CONFORMANCE_RUN_WATCH": "1",
        },  # like `--watch`, for this run but not for runs that it starts
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("SELECTION HOLDS") == 2
    assert "There is no area 'no-such-area'" in ended.stdout


def test_watching_asks_for_the_version_at_the_given_base_url(reference: Any, tmp_path: Path) -> None:
    service, base_url = reference
    file = tmp_path / "target.yaml"
    data = profile_data(service.world, f"http://127.0.0.1:{unused_port()}", VERSION)
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert Watched(file).told_version() is None
    assert Watched(file, base_url).told_version() == "17.7.0"


def test_a_pytest_argument_that_is_also_the_path_of_the_suite_is_kept(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "test_served").symlink_to(SUITE_FOLDER)  # like `tests` in a checkout
    few = ("--requirement", "job-token-scope.settings.read", "--corpus", "none", "--out", "out")
    outcome = conformance("run", "-q", *few, "--", "-k", "test_served")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert read_record(tmp_path / "out" / "results.jsonl").header.command.endswith("-- -k test_served")
