"""No secret of the profile gets into a file, the terminal or the process list, whatever the server and pytest do."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.reference import EmbeddedServer
from conformance.target import load_profile
from conformance.target.embedded import prepared_service, profile_of
from selftest.conftest import VERSION
from selftest.runner.leaky import echo, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PROCESSES = Path("/proc")
#: Options for pytest beside the suite: show values, write its own report, break in a test.
AND_PYTEST = ("-v", "--showlocals", "--junitxml=own.xml", "-p", "selftest.runner.leaky", "-k", "switching or odd")
WRITTEN = ("index.html", "junit.xml", "results.jsonl", "report.json")
LOGS = ("--log-cli-level=DEBUG", "--log-file=own.log", "--log-file-level=DEBUG")


def traces(secret: str) -> set[bytes]:
    """Return the parts that reveal a secret in bytes without spaces, in any surrounding text."""
    whole = {re.sub(r"\s|\\n", "", way) for way in ways(secret)}
    # The first and last digits of base64 depend on the text around the secret; those between must not occur either.
    return {text.encode() for text in whole} | {text[4:-8].encode() for text in whole if len(text) >= 30}


def command_lines() -> Iterator[bytes]:
    for file in PROCESSES.glob("[0-9]*/cmdline"):
        try:
            yield file.read_bytes()
        except OSError:  # the process has just ended
            continue


def run(folder: Path, secret: str, *options: str) -> tuple[bytes, list[bytes]]:
    """Run the suite; return its output, and the command lines of all processes during the run."""
    command = [sys.executable, "-m", "conformance", "run", "--target", "target.yaml", "--out", "out", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LEAKED": secret}
    said, seen = folder / "said", set[bytes]()
    with said.open("wb") as stream:
        running = subprocess.Popen(command, cwd=folder, env=environment, stdout=stream, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 300
        while running.poll() is None and time.monotonic() < deadline:
            seen |= set(command_lines())
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(0.5)
        running.kill()
    return said.read_bytes(), sorted(seen)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[set[str]]:
    """Serve a reference that repeats tokens, write its profile, and yield its secrets."""
    service = prepared_service(version=VERSION, worlds=2)
    service.transformers.append(echo)
    with EmbeddedServer(service) as server:
        data = profile_of(service, server.base_url, VERSION)
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        yield {secret for secret in load_profile(tmp_path / "target.yaml").secrets() if len(secret) >= 6}


@pytest.mark.parametrize(("workers", "more"), [("1", (*LOGS, "-s")), ("2", LOGS)])
def test_no_secret_is_in_anything_that_a_run_writes(
    target: set[str], workers: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    secret = max(target, key=len)
    area = ("--area", "job-token-scope", "--max-examples", "3", "--workers", workers)
    said, lines = run(tmp_path, secret, *area, "--", *AND_PYTEST, *more)
    (tmp_path / "target.yaml").unlink()
    written = {str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert b"of the suite itself broke" in said, said.decode()[-3000:]
    assert {"own.xml", "own.log", *(f"out/{name}" for name in WRITTEN)} <= written.keys()
    assert b"[redacted" in written["out/results.jsonl"]
    assert b"[redacted" in written["own.log"]
    gave_away = _given_away({**written, "the process list": b"\n".join(lines)}, target)
    assert not {name for name, _ in gave_away}


def _given_away(contents: dict[str, bytes], secrets: set[str]) -> Iterator[tuple[str, str]]:
    for name, content in contents.items():
        squeezed = re.sub(rb"\s|\\+n", b"", content)
        yield from ((name, trace.decode()) for secret in secrets for trace in traces(secret) if trace in squeezed)


def test_a_wrong_profile_is_reported_without_its_secrets(
    conformance: Callable[..., Any], target: set[str], tmp_path: Path
) -> None:
    file = tmp_path / "target.yaml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    data["actors"]["maintainer"] = [data["actors"]["maintainer"]]
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    outcome = conformance("run", "--target", "target.yaml")
    assert "is not valid at actors.maintainer" in outcome.text
    assert not any(secret in outcome.text for secret in target)
