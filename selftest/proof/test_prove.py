"""The kill matrix itself: faults are seen by the requirement they violate, and a survivor is not passed over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.errors import ExitCode
from conformance.proof import all_faults

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_every_fault_of_job_token_scope_is_killed(conformance: Callable[..., Any], tmp_path: Path) -> None:
    outcome = conformance("prove", "--area", "job-token-scope", "--out", "proof")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text[-3000:]
    proof = json.loads((tmp_path / "proof" / "proof.json").read_text(encoding="utf-8"))
    assert proof["faults"] == proof["killed"] > 150
    assert (tmp_path / "proof" / "proof.html").is_file()


def test_one_fault_can_be_tried_alone(conformance: Callable[..., Any]) -> None:
    outcome = conformance("prove", "--fault", "job-token-scope: removed-project-stays", "--out", "proof")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert "1 of 1 faults killed" in outcome.out


def test_a_fault_that_does_not_exist_is_said_not_to(conformance: Callable[..., Any]) -> None:
    outcome = conformance("prove", "--fault", "nothing", "--out", "proof")
    assert outcome.code == ExitCode.USAGE
    assert "No fault is selected" in outcome.text


def test_an_interrupted_proof_goes_on_where_it_stopped(conformance: Callable[..., Any], tmp_path: Path) -> None:
    requirement = ("--requirement", "job-token-scope.settings.outbound-enabled", "--out", "proof")
    conformance("prove", *requirement)
    journal = tmp_path / "proof" / "proof.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines()
    journal.write_text("\n".join([*lines[:2], '{"fault": "cut o']), encoding="utf-8")
    outcome = conformance("prove", *requirement, "--resume")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert f"{len(lines) - 1} of {len(lines) - 1} faults killed" in outcome.out


def test_every_fault_names_a_requirement_and_says_what_it_does() -> None:
    contract = Contract.load()
    faults = all_faults(contract, "17.7")
    assert len({fault.name for fault in faults}) == len(faults)
    assert [fault.name for fault in faults if fault.requirement not in contract.requirements] == []
    assert [fault.name for fault in faults if not fault.says.endswith(".")] == []
