"""Order and repetition: no test of the suite depends on another test, or on being the only run."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import yaml

from conformance.contract.folders import HOME
from conformance.proof.variants.running import WITHOUT_DRAWN, VariantRun, added_up, run_each
from conformance.reference import EmbeddedServer
from conformance.results.reading import read_record
from conformance.target.embedded import prepared_service, profile_data
from selftest.conftest import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.proof.variants.running import VariantResult

pytestmark = pytest.mark.usefixtures("inside_this_process")

#: Tests that depend on each other most easily: they share a project's lists and settings.
FEW = (*WITHOUT_DRAWN, "--area=job-token-scope", "--area=approval-settings")
_LONGEST_RUN_SECONDS = 600


def test_the_suite_passes_in_random_orders() -> None:
    runs = run_each([VariantRun(f"order {seed}", VERSION, order=seed) for seed in (1, 2)], *FEW)
    assert [(run.name, run.order) for run in runs] == [("order 1", 1), ("order 2", 2)]
    assert_clean(runs)


def test_the_suite_passes_twice_at_the_same_time_against_one_server(tmp_path: Path) -> None:
    """Each run has its own people and projects there."""
    service = prepared_service(VERSION, worlds=2)
    started = time.perf_counter()
    with EmbeddedServer(service) as server:
        running = []
        for count, world in enumerate(service.worlds):
            profile, out = tmp_path / f"{count}.yaml", tmp_path / str(count)
            profile.write_text(yaml.safe_dump(profile_data(world, server.base_url, VERSION)), encoding="utf-8")
            command = [sys.executable, "-m", "conformance", "run", f"--target={profile}", f"--out={out}", "--seed=1"]
            running.append(subprocess.Popen([*command, "--", *FEW], cwd=HOME, stdout=subprocess.DEVNULL))
        try:
            for process in running:
                process.wait(_LONGEST_RUN_SECONDS)
        finally:
            for process in running:
                process.kill()
    records = [read_record(tmp_path / str(count) / "results.jsonl") for count in range(len(running))]
    assert len(records) == 2
    assert_clean([added_up(VariantRun("beside", VERSION), one, time.perf_counter() - started, 0) for one in records])


def assert_clean(runs: Sequence[VariantResult]) -> None:
    """Assert that each run verified everything that can be verified, and found no fault."""
    assert [(run.name, run.alarms, run.broken, run.gaps) for run in runs] == [(run.name, (), (), ()) for run in runs]
    assert min(run.verified for run in runs) > 100
