"""What the commands that write figures of the proof share: the file, and what determines a sample."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from conformance import __version__
from conformance.contract import Contract
from conformance.proof.chaos import matrix
from conformance.proof.figures import sampled, write_figures

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_figures_name_the_suite_and_the_contract_that_they_hold_for(tmp_path: Path) -> None:
    file = tmp_path / "new" / "figures.json"
    write_figures(file, {"alarms": 0})
    digest = Contract.load().digest
    assert json.loads(file.read_text(encoding="utf-8")) == {"suite": __version__, "contract": digest, "alarms": 0}


def test_a_sample_depends_on_the_given_text_or_else_on_the_commit() -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S607
    assert sampled(range(50), "a") == sampled(range(50), "a") != sampled(range(50), "b")
    assert sampled(range(50), None) == sampled(range(50), asked.stdout.strip() or __version__)


def test_each_commit_tries_other_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[Any]] = []

    def only_noted(_: object, keys: list[Any], *__: object) -> list[Any]:
        tried.append(keys)
        return []

    monkeypatch.setattr(matrix, "done_side_by_side", only_noted)
    monkeypatch.setattr(matrix, "sampled", lambda keys, sample: sampled(keys, sample or f"commit {len(tried)}"))
    for _ in range(2):
        CliRunner().invoke(matrix.main, ["--seconds=1", "--faults=2", str(tmp_path / "chaos.json")])
    first, second = tried
    assert first[0] == second[0]
    assert first != second
    assert sorted(first) == sorted(second)
