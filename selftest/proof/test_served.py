"""Faults on a served reference: one is seen by its requirement, and what is not seen is told with the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from conformance.errors import ExitCode
from conformance.proof.served.looking import Served, figures, main

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_name_what_was_not_seen_and_count_only_failures() -> None:
    seen = Served("a: one", "non-conformant", "", is_late=False, seconds=2.0)
    late = Served("a: two", "non-conformant", "", is_late=True, seconds=9.0)
    unseen = Served("a: three", "incomplete", "it was unstable", is_late=False, seconds=9.0)
    told = figures([seen, late, unseen], 5)
    assert (told["seen"], told["tried"], told["seen_by_other_tests"]) == (2, 3, ["a: two"])
    assert told["unseen"] == {"a: three": "incomplete: it was unstable"}
    assert told["left_out"].startswith("2 of 5 faults;")


def test_a_name_that_no_fault_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "served.json"
    result = CliRunner().invoke(main, ["--fault", "job-token-scope: nothing", str(file)])
    assert result.exit_code != ExitCode.CONFORMANT
    assert "`conformance prove` names all faults" in result.output
    assert not file.exists()


def test_a_run_that_sees_its_fault_ends_with_success_and_writes_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "served.json"
    name = "job-token-scope: removed-project-stays"
    result = CliRunner().invoke(main, ["--fault", name, "--workers", "1", str(file)])
    assert result.exit_code == ExitCode.CONFORMANT, result.output
    told = json.loads(file.read_text(encoding="utf-8"))
    assert (told["seen"], told["tried"], told["seen_by_other_tests"]) == (1, 1, [])
