"""Order and repetition: no test of the suite leans on another, nor on being alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from conformance.proof.repetition import Repetition, at_the_same_time, in_random_orders, main
from conformance.proof.variants.running import WITHOUT_DRAWN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("inside_this_process")

#: What leans on others most: tests that share a project's lists and settings.
FEW = (*WITHOUT_DRAWN, "--area=job-token-scope", "--area=approval-settings")


def test_the_suite_passes_in_random_orders_and_twice_at_the_same_time() -> None:
    found = Repetition("17.7", in_random_orders((1, 2), *FEW), at_the_same_time(2, *FEW))
    runs = (*found.orders, *found.together)
    assert [(run.name, run.alarms, run.broken, run.gaps) for run in runs] == [
        (name, (), (), ()) for name in ("order 1", "order 2", "beside 1", "beside 1")
    ]
    assert found.is_clean
    assert min(run.verified for run in runs) > 100


def test_what_was_repeated_is_written_down(tmp_path: Path) -> None:
    file = tmp_path / "repetition.json"
    options = ["--runs=1", "--together=0", "--max-examples=1", "--area=job-token-scope"]
    outcome = CliRunner().invoke(main, [*options, str(file)])
    assert outcome.exit_code == 0, outcome.output
    (run,) = json.loads(file.read_text(encoding="utf-8"))["orders"]
    assert (run["name"], run["order"], run["alarms"]) == ("order 1", 1, [])
