"""A run of several workers that was interrupted, or killed with all of them, can be resumed to a full result."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.reference import EmbeddedServer
from conformance.results.reading import read_record
from conformance.results.record import TestOutcome
from conformance.results.verdicts import add_up
from conformance.runner.precautions import ledgers_in
from conformance.target import load_profile
from conformance.target.embedded import prepared_service, profile_of
from conformance.target.ledger import Content
from conformance.target.machine import open_ledgers
from selftest.conftest import VERSION, run_conformance
from selftest.processes import started, wait_for_checks
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.target import Profile

#: About two dozen tests that change switches and lists.
NAMES = ("leaves-the-rest", "allowlists.are-separate", "allowlist.change.leaves-others", "switch.on", "switch.off")
SOME = tuple(f"--requirement=job-token-scope.{name}" for name in NAMES)
FEW = ("-q", *SOME, "--max-examples", "2", "--seed", "1", "--corpus", "none", "--target", "target.yaml")


@contextmanager
def served(folder: Path, latency_ms: float = 0) -> Iterator[Profile]:
    """A reference with two worlds while the context lasts, and its profile in a folder."""
    service = prepared_service(version=VERSION, worlds=2)
    with EmbeddedServer(service, latency_ms=latency_ms) as server:
        data = profile_of(service, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        yield load_profile(folder / "target.yaml")


def come_to(folder: Path) -> tuple[dict[str, Any], dict[str, TestOutcome]]:
    """Return the verdict of each requirement, and the outcome of each planned test; each test ends once."""
    record = read_record(folder / "results.jsonl")
    assert not record.damage
    ends = Counter(end.test for end in record.tests)
    assert ends == Counter({test for entry in record.plan for test in entry.tests})
    verdicts = {row.requirement.id: (row.verdict, row.reason) for row in add_up(record).rows}
    return verdicts, {end.test: end.outcome for end in record.tests}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    with served(folder):
        outcome = run_conformance("run", *FEW, "--workers", "2", "--out", "out", cwd=folder)
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    return folder / "out"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_two_workers_finish_what_two_workers_started(whole: Path, tmp_path: Path, sent: signal.Signals) -> None:
    with served(tmp_path, latency_ms=15) as profile:
        before = [everything_read(profile.in_world(number)) for number in range(2)]
        process = started("run", *FEW, "--workers", "2", "--out", "out", cwd=tmp_path)
        wait_for_checks(tmp_path / "out" / "results.jsonl", process, 8)
        os.killpg(process.pid, sent)  # the workers as well
        process.communicate(timeout=120)
        began = read_record(tmp_path / "out" / "results.jsonl")
        assert (began.footer is None) is (sent is signal.SIGKILL)
        settled = {end.test: end for end in began.tests if end.outcome is TestOutcome.PASSED}
        outcome = run_conformance("run", "--resume", "out", cwd=tmp_path)
        assert [everything_read(profile.in_world(number)) for number in range(2)] == before
        assert open_ledgers(profile.base_url) == {}
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert come_to(tmp_path / "out") == come_to(whole)
    resumed = {end.test: end for end in read_record(tmp_path / "out" / "results.jsonl").tests}
    assert 0 < len(settled) < len(resumed)
    assert {name: resumed[name] for name in settled} == settled  # tests with a result did not run again
    ledgers = ledgers_in(tmp_path / "out")
    assert len(ledgers) == 2
    assert all(Content.read(file).is_settled for file in ledgers)
