"""Commands that read the contract or a record, each with its exit code."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.cli.provision import progress
from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.errors import ExitCode
from conformance.reference.errors import NoRouteError
from conformance.reports import WRITTEN
from conformance.target.embedded import prepared_service
from conformance.target.provisioning.calls import Answer
from selftest.conftest import VERSION, lacking, serving
from selftest.reads import report_of
from selftest.reports.report_samples import CONFORMANT, NON_CONFORMANT, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_CLOSED = f"{shlex.quote(sys.executable)} -m conformance explain job-token-scope.switch.on <&- >&- 2>&-"
pytestmark = pytest.mark.usefixtures("inside_this_process")


def test_the_contract_of_a_version_is_printed_for_other_tools(conformance: Callable[..., Any]) -> None:
    as_yaml = conformance("contract", "--as-of", "15.9")
    as_json = conformance("contract", "--as-of", "15.9", "--format", "json")
    assert (as_yaml.code, as_json.code) == (0, 0)
    assert yaml.safe_load(as_yaml.out) == json.loads(as_json.out) == Contract.load().as_of("15.9")


def test_requirements_are_listed_by_area_and_kind(conformance: Callable[..., Any]) -> None:
    outcome = conformance("requirements", "--area", "job-token-scope", "--kind", "authorization")
    assert outcome.code == 0
    ids = re.findall(r"^(\S+)  \[", outcome.out, re.MULTILINE)
    wanted = [
        entry.id
        for entry in Contract.load().requirements.values()
        if (entry.area, entry.kind) == ("job-token-scope", "authorization")
    ]
    assert ids == wanted
    assert ids


def test_a_requirement_is_explained_with_its_tests(conformance: Callable[..., Any]) -> None:
    outcome = conformance("explain", "job-token-scope.allowlist.remove.gone")
    assert outcome.code == 0
    assert "no longer in the allowlist" in outcome.out
    assert "States and transitions > Approval and integration moves" in outcome.out
    assert "test_a_removed_target_is_gone[allowlist]" in outcome.out


def test_coverage_shows_job_token_scope_fully_tested(conformance: Callable[..., Any]) -> None:
    outcome = conformance("coverage", "--area", "job-token-scope")
    assert outcome.code == 0, outcome.text
    row = next(line for line in outcome.out.splitlines() if line.startswith("job-token-scope"))
    total, tested, pending, not_testable = (int(number) for number in row.split()[1:])
    assert pending == 0
    assert tested + not_testable == total


def test_two_runs_with_one_seed_have_the_same_result(conformance: Callable[..., Any], tmp_path: Path) -> None:
    rows = []
    for out in ("first", "second"):
        outcome = conformance("run", "--area", "job-token-scope", "--max-examples", "5", "--seed", "7", "--out", out)
        assert outcome.code == ExitCode.CONFORMANT, outcome.text
        report = report_of(tmp_path / out)
        rows.append([(row["id"], row["verdict"], row["observations"]) for row in report["requirements"]])
    assert rows[0] == rows[1]


def test_a_report_says_what_was_selected_and_not_where_the_suite_is_installed(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    conformance("run", "--requirement", "job-token-scope.switch.on", "--seed", "5", "--out", "out")
    text = (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    assert "--seed=5" in json.loads(text)["run"]["arguments"]
    assert str(HOME) not in text


def test_the_reports_of_a_run_can_be_made_again_from_its_record(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    conformance("run", "--requirement", "job-token-scope.switch.on", "--out", "out", formats=WRITTEN)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()}
    for name in before.keys() - {"results.jsonl"}:
        (tmp_path / "out" / name).unlink()
    outcome = conformance("report", "out")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.is_file()} == before


def test_an_attestation_of_a_run_without_a_subject_says_what_is_missing(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    conformance("run", "-q", "--requirement", "job-token-scope.switch.on", "--out", "out")
    outcome = conformance("report", "out", "--format", "attestation", "--out", "att")
    assert (outcome.code, "--subject NAME=DIGEST" in outcome.err) == (ExitCode.USAGE, True), outcome.text
    assert not (tmp_path / "att").exists()


def test_reports_of_one_record_do_not_replace_those_beside_another(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    for name, sample in (("one", CONFORMANT), ("same", CONFORMANT), ("other", NON_CONFORMANT)):
        written(sample, tmp_path / name)
    assert conformance("report", "one", "--out", "same").code == ExitCode.CONFORMANT
    outcome = conformance("report", "one", "--out", "other")
    assert (outcome.code, "--out other holds the record of another run" in outcome.err) == (ExitCode.USAGE, True)
    assert [file.name for file in (tmp_path / "other").iterdir()] == ["results.jsonl"]


@pytest.mark.parametrize("line", ["{", '{"kind": "header"}', "[]", '{"kind": "header", "form": 99}'])
def test_a_file_that_is_not_a_record_ends_with_4(conformance: Callable[..., Any], tmp_path: Path, line: str) -> None:
    (tmp_path / "results.jsonl").write_text(f"{line}\n", encoding="utf-8")
    outcome = conformance("report", "results.jsonl")
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "results.jsonl" in outcome.text


def test_the_example_profile_is_valid_once_its_tokens_are_set(conformance: Callable[..., Any], tmp_path: Path) -> None:
    import os  # noqa: PLC0415 - only here

    example = conformance("target", "--example")
    assert example.code == 0
    (tmp_path / "target.yaml").write_text(example.out.replace("staging.example.com", "localhost:1"), encoding="utf-8")
    tokens = dict.fromkeys(re.findall(r"\$\{(\w+)\}", example.out), "token")
    outcome = conformance("target", "--check", "target.yaml", environment={**os.environ, **tokens})
    assert "is a valid profile" in outcome.out, outcome.text
    assert outcome.code == ExitCode.COULD_NOT_RUN
    assert "does not answer" in outcome.err


@pytest.mark.parametrize("lists", [True, False], ids=["with lists of members", "without"])
def test_the_role_of_each_actor_is_checked(
    conformance: Callable[..., Any], write_profile: Callable[..., Path], *, lists: bool
) -> None:
    with serving(prepared_service(VERSION)) as (service, base_url):
        if not lists:
            lacking([f"GET /{kind}/:id/members/all" for kind in ("projects", "groups")], NoRouteError, service)
        file = write_profile(service, base_url)
        right = conformance("target", "--check", "target.yaml")
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
        actors = data["actors"]
        actors["maintainer"], actors["developer"] = actors["developer"], actors["maintainer"]
        file.write_text(yaml.safe_dump(data), encoding="utf-8")
        wrong = conformance("target", "--check", "target.yaml")
    assert right.code == 0, right.text
    assert "contradicted" not in right.out
    assert not re.search(r"^actors\.", right.out, re.MULTILINE)
    found = "contradicted" if lists else "note"
    for name in ("maintainer", "developer"):
        assert re.search(rf"^actors\.{name} +{found} ", wrong.out, re.MULTILINE), wrong.text


def test_an_actor_with_the_token_of_another_is_found(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
) -> None:
    file = write_profile(*reference)
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    data["actors"]["developer"]["token"] = data["actors"]["owner"]["token"]
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    outcome = conformance("target", "--check", "target.yaml")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "actors.developer.id" in outcome.out


def test_plain_pytest_gives_the_same_result_as_the_command(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    import subprocess  # noqa: PLC0415 - only here
    import sys  # noqa: PLC0415

    write_profile(*reference)
    options = (
        "--target",
        str(tmp_path / "target.yaml"),
        "--requirement",
        "job-token-scope.switch.on",
        "--seed",
        "3",
        "--out",
    )
    command = conformance("run", *options, str(tmp_path / "command"))
    plain = subprocess.run(
        [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider", *options, str(tmp_path / "plain")],
        cwd=HOME,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert plain.returncode == command.code == ExitCode.CONFORMANT, plain.stdout + plain.stderr
    reports = [report_of(tmp_path / name) for name in ("command", "plain")]
    verdicts = [[(row["id"], row["verdict"]) for row in report["requirements"]] for report in reports]
    assert verdicts[0] == verdicts[1]
    # The command to continue either run names no path of tests, and writes each option with its value as one word.
    words = [set(report["run"]["arguments"]) for report in reports]
    assert {word for word in words[1] if not word.startswith("--out=")} - words[0] == {"-p", "no:cacheprovider", "-q"}


def test_the_served_reference_can_be_tested_with_its_profile(
    conformance: Callable[..., Any],
    tmp_path: Path,
) -> None:
    import signal  # noqa: PLC0415 - only here
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    command = [sys.executable, "-m", "conformance", "serve", "--port", "0", "--version", "16.4", "--profile-out"]
    serving = subprocess.Popen([*command, "target.yaml"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    told = []
    for line in serving.stdout:
        told.append(line)
        if line.startswith("Target profile"):
            break
    token = yaml.safe_load((tmp_path / "target.yaml").read_text(encoding="utf-8"))["actors"]["maintainer"]["token"]
    assert any(line.startswith("maintainer ") and line.rstrip().endswith(token) for line in told), told
    assert any(f"curl -H 'PRIVATE-TOKEN: {token}'" in line for line in told), told
    outcome = conformance("target", "--check", "target.yaml")
    assert outcome.code == 0, outcome.text
    assert "version 16.4" in outcome.out
    serving.send_signal(signal.SIGINT)
    rest, _ = serving.communicate(timeout=20)
    assert serving.returncode == 0
    assert rest.endswith("Stopped.\n")


def test_a_command_with_closed_streams_does_its_work() -> None:
    assert subprocess.run(["/bin/sh", "-c", _CLOSED], check=False, timeout=60).returncode == ExitCode.CONFORMANT


def test_a_long_preparation_shows_its_progress_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(seconds_between_lines=0) as tell:
        tell("groups", 3, 40)
    assert capsys.readouterr().err == "groups: 3 of 40 steps\n"
    with progress() as tell:
        tell("groups", 4, 40)  # what takes no time is not reported
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "body", [{"message": "no licence"}, {"error": "no licence"}, {"fault": {"text": "no licence"}}]
)
def test_a_refusal_is_reported_in_the_words_of_the_service_in_any_form(body: Any) -> None:
    assert "no licence" in str(Answer(403, body))
    assert "secret" not in str(Answer(422, {"detail": [{"loc": ["password"], "input": "secret"}], **body}))
