"""The CI files fit the schemas of their systems, and their steps do in a shell what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.contract.folders import HOME
from selftest.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GITHUB = HOME / "examples" / "github-actions.yml"
GITLAB = HOME / "examples" / "gitlab-ci.yml"
AREA = "code-completion"


@pytest.mark.parametrize(
    ("schema", "file"), [("vendor.github-workflows", GITHUB), ("vendor.gitlab-ci", GITLAB)], ids=["github", "gitlab"]
)
def test_a_ci_file_fits_the_schema_of_its_system(schema: str, file: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """An empty folder with the examples, and the environment of a job that tests one area of a served reference."""
    (tmp_path / "examples").symlink_to(HOME / "examples")
    with serving() as (service, base_url):
        token = next(token for token, actor in _tokens(service) if actor == "admin")
        (tmp_path / "token").write_text(token, encoding="utf-8")
        yield (
            tmp_path,
            {
                "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
                "PYTHONPATH": str(HOME),
                "HOME": str(tmp_path),
                "STAGING_URL": base_url,
                "ADMIN_TOKEN": token,
                "STAGING_ADMIN_TOKEN": str(tmp_path / "token"),
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                "CONFORMANCE_RUN_AREA": AREA,
                "CONFORMANCE_RUN_MAX_EXAMPLES": "2",
                "CONFORMANCE_RUN_WORKERS": "1",
            },
        )


def _tokens(service: Any) -> list[tuple[str, str]]:
    return [(actor.token, name) for name, actor in service.world.actors.items()]


def _shell(script: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-e", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_the_steps_of_github_provision_run_compare_and_gate(place: tuple[Path, Mapping[str, str]]) -> None:
    folder, environment = place
    steps = yaml.safe_load(GITHUB.read_text(encoding="utf-8"))["jobs"]["nightly"]["steps"]
    scripts = {step["name"]: step["run"] for step in steps if "run" in step}
    assert scripts.pop("Install").startswith("python -m pip install")
    told = ""
    for night in (1, 2):
        for name, script in scripts.items():
            done = _shell(script, folder, environment)
            told += f"night {night}, {name}: {done.stdout}{done.stderr}"
            assert done.returncode == 0, told
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert summary.count("SELECTION HOLDS") == 2
    assert "no regression" in summary
    (folder / "exit-code").write_text("8", encoding="utf-8")
    (folder / "nightly" / "before" / "kept").touch()
    assert _shell(scripts["Summary, and what changed since last night"], folder, environment).returncode == 0
    assert (folder / "nightly" / "before" / "kept").exists()  # here nothing could be tested
    (folder / "exit-code").write_text("7", encoding="utf-8")
    assert _shell(scripts["Gate"], folder, environment).returncode == 7


def test_the_script_of_gitlab_has_the_exit_code_of_the_run(place: tuple[Path, Mapping[str, str]]) -> None:
    folder, environment = place
    script = yaml.safe_load(GITLAB.read_text(encoding="utf-8"))["conformance"]["script"]
    assert "pip install" in script[0]
    done = _shell("\n".join(script[1:]), folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "nightly" / "report" / "junit.xml").is_file()
    record = (folder / "nightly" / "report" / "results.jsonl").read_bytes()
    lacking = {**environment, "CONFORMANCE_RUN_TARGET_VERSION": "no version"}
    assert _shell("\n".join(script[1:]), folder, lacking).returncode == 4
    # After a night without a run, the next run is compared with the one before it.
    assert (folder / "nightly" / "before" / "results.jsonl").read_bytes() == record
