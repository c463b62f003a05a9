"""What a user installs: a wheel that contains the contract and the suite and needs no checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from conformance.errors import ExitCode
from selftest.reads import report_of

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PIP_CONSTRAINT"] = str(REPOSITORY / "constraints.txt")
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_an_installed_wheel_runs_the_suite_in_an_empty_folder(tmp_path: Path) -> None:
    built = run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", REPOSITORY, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("project_automation_conformance-*.whl")
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "environment", cwd=tmp_path).returncode == 0
    commands = tmp_path / "environment" / "bin"
    pip = (sys.executable, "-m", "pip", "--python", commands / "python")
    installed = run(*pip, "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    outcome = run(
        commands / "conformance", "run", "--area", "code-completion", "--max-examples", "3", "--out", "out", cwd=empty
    )
    assert outcome.returncode == ExitCode.CONFORMANT, outcome.stdout + outcome.stderr
    report = report_of(empty / "out")
    rows = [row for row in report["requirements"] if row["area"] == "code-completion" and row["level"] == "must"]
    assert {row["verdict"] for row in rows} == {"passed", "not applicable"}, outcome.stdout
    listed = run(commands / "conformance", "coverage", cwd=empty)
    assert listed.returncode == 0, listed.stderr
    # A run also keeps the drawn cases beside its reports, to replay them.
    assert sorted(path.name for path in empty.iterdir()) == ["out", "reports"]
    assert [path.name for path in (empty / "reports").iterdir()] == [".corpus"]
