"""The kill matrix itself: faults are found by the requirement that they violate, and survivors are reported."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cli.prove import said
from conformance.contract import TABLE, Contract, Version
from conformance.errors import ContractError, ExitCode
from conformance.proof import all_faults, faults_named
from conformance.proof.coverage import EXCUSED, coverage
from conformance.proof.reasons import is_one_of, reasons_table
from conformance.proof.report import Proof, write_proof
from conformance.proof.running import try_all
from conformance.proof.tampering import breaking

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("inside_this_process")


def test_every_fault_of_an_area_is_killed_by_two_processes(conformance: Callable[..., Any], tmp_path: Path) -> None:
    outcome = conformance("prove", "--area", "code-completion", "--jobs", "2", "--out", "proof")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text[-3000:]
    proof = json.loads((tmp_path / "proof" / "proof.json").read_text(encoding="utf-8"))
    assert proof["faults"] == proof["killed"] > 100
    assert (tmp_path / "proof" / "proof.html").is_file()


def test_a_single_fault_can_be_tried(conformance: Callable[..., Any]) -> None:
    outcome = conformance("prove", "--fault", "job-token-scope: removed-project-stays", "--out", "proof")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert "1 of 1 faults killed" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fault", "nothing"], "There is no fault 'nothing'. `conformance prove` without options names all"),
        (
            ["--fault", "job-token-scope: removed_project_stays"],
            "Did you mean 'job-token-scope: removed-project-stays'?",
        ),
        (
            ["--fault", "job-token-scope: removed-project-stays", "--area", "integrations"],
            "No fault violates what was selected",
        ),
    ],
    ids=["another word", "almost the name", "of another area"],
)
def test_a_fault_that_cannot_be_tried_is_named(
    conformance: Callable[..., Any], arguments: list[str], message: str
) -> None:
    outcome = conformance("prove", *arguments, "--out", "proof")
    assert outcome.code == ExitCode.USAGE
    assert message in outcome.text


def test_an_interrupted_proof_continues_where_it_stopped(conformance: Callable[..., Any], tmp_path: Path) -> None:
    requirement = ("--requirement", "job-token-scope.settings.outbound-enabled", "--out", "proof")
    conformance("prove", *requirement)
    journal = tmp_path / "proof" / "proof.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines()
    journal.write_text("\n".join([*lines[:2], '{"fault": "cut o']), encoding="utf-8")
    outcome = conformance("prove", *requirement, "--resume")
    assert outcome.code == ExitCode.CONFORMANT, outcome.text
    assert f"{len(lines) - 1} of {len(lines) - 1} faults killed" in outcome.out


def test_an_interrupted_proof_says_how_to_continue(
    conformance: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.proof.running.try_all", interrupted)
    outcome = conformance("prove", "--requirement", "job-token-scope.settings.outbound-enabled", "--out", "proof")
    assert outcome.code == ExitCode.INTERRUPTED, outcome.text
    assert "faults were tried. The same command with --resume" in outcome.text


def test_a_fault_that_is_found_for_another_reason_than_stated_survives() -> None:
    (fault,) = faults_named(Contract.load(), ["updateJobTokenScope: keeps maintainer out"])
    crash = replace(
        fault, apply=lambda service: breaking(service, "PATCH /projects/:id/job_token_scope", lambda _: True)
    )
    found: dict[str, Any] = {}
    for each in (fault, crash):
        try_all([each], lambda row: found.setdefault(str(len(found)), row), version=None, jobs=1)
    assert [row["killed"] for row in found.values()] == [True, False]
    assert "seen for another reason than 'refused', which is 'breaks'" in found["1"]["detail"]


def test_every_entry_of_the_table_of_reasons_fits_a_fault() -> None:
    names = {fault.name for fault in all_faults(Contract.load())}
    patterns = [pattern for several in reasons_table()["faults"].values() for pattern in several]
    assert [pattern for pattern in patterns if not any(is_one_of(name, (pattern,)) for name in names)] == []


@pytest.mark.parametrize("version", [None, *TABLE])
def test_every_fault_has_a_description_and_a_requirement_of_its_version(version: str | None) -> None:
    contract = Contract.load()
    faults = all_faults(contract, version)
    assert len({fault.name for fault in faults}) == len(faults)
    assert [fault.name for fault in faults if not fault.says.endswith(".")] == []
    tried = {fault.name: (contract.requirements[fault.requirement], Version.parse(fault.version)) for fault in faults}
    assert [name for name, (requirement, place) in tried.items() if not requirement.applies_to(place)] == []


def test_every_requirement_with_tests_has_a_fault_at_some_version_or_an_excuse() -> None:
    contract = Contract.load()
    violated = {fault.requirement for fault in all_faults(contract)}
    reach = coverage(contract, violated)
    assert reach.without == ()
    assert set(reach.excused) == set(EXCUSED)
    assert [name for name in reach.observed if contract.requirements[name].level != "note"] == []


def test_an_excuse_for_a_requirement_that_has_a_fault_is_an_error() -> None:
    with pytest.raises(ContractError, match=r"limits\.tls\.version"):
        coverage(Contract.load(), {"limits.tls.version"})


def proof_of(row: dict[str, Any], violated: set[str], unhealthy: tuple[str, ...] = ()) -> Proof:
    """A proof of one area, whose requirements have only the given faults."""
    contract = Contract.load()
    wanted = {"limits.completions.window", "limits.tls.version", "limits.rates-elsewhere"}
    reach = coverage(contract, violated, wanted=lambda entry: entry.id in wanted)
    return Proof(contract.digest, None, [row], reach, unhealthy, 1.0)


ROW = {
    "fault": "limits: rate-is-never-restored",
    "version": "17.7",
    "requirement": "limits.completions.window",
    "says": "Who had 60 completions gets no more.",
    "killed": True,
    "by": "tests/limits/test_completion_rate.py::test_it",
    "reason": "expected a completion; got status 429",
    "collateral": [],
    "seconds": 0.1,
    "detail": None,
}
WINDOW = {"limits.completions.window"}


def test_a_proof_without_gaps_holds_and_lists_its_excuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proof = proof_of(ROW, WINDOW)
    write_proof(tmp_path, proof)
    assert said(proof, tmp_path) == ExitCode.CONFORMANT
    assert "1 of 1 faults killed" in capsys.readouterr().out
    written = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))
    assert (written["holds"], written["without_fault"]) == (True, [])
    assert written["observed"] == ["limits.rates-elsewhere"]
    assert list(written["excused"]) == ["limits.tls.version"]
    assert "test_tls.py" in (tmp_path / "proof.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("proof", "named"),
    [
        (proof_of({**ROW, "killed": False, "by": None, "reason": None}, WINDOW), "limits: rate-is-never-restored"),
        (proof_of(ROW, set()), "limits.completions.window"),
        (proof_of(ROW, WINDOW, ("limits.completions.per-user",)), "limits.completions.per-user"),
    ],
    ids=["a survivor", "a requirement without a fault", "a failure without any fault"],
)
def test_a_gap_fails_the_proof_and_is_named_in_every_output(
    proof: Proof,
    named: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_proof(tmp_path, proof)
    assert said(proof, tmp_path) == ExitCode.NON_CONFORMANT
    assert named in capsys.readouterr().out
    written = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))
    lists = (written["without_fault"], written["unhealthy"], [row["fault"] for row in proof.survivors])
    assert not written["holds"]
    assert sum(map(len, lists)) == 1
    assert named in next(filter(None, lists))
    assert named in (tmp_path / "proof.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "detail", "step"),
    [
        ("limits: rate-is-never-restored", None, "conformance explain limits.completions.window"),
        ("limits: rate-is-never-restored", "seen for another reason than 'shows', which is", "proof/reasons.yaml"),
        ("limits: rate-is-never-restored, breaking", None, "below 'breaking' in conformance/proof/crossings.yaml"),
    ],
    ids=["not seen", "seen for another reason", "crossed"],
)
def test_a_survivor_is_told_with_what_to_do_next(
    name: str, detail: str | None, step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**ROW, "fault": name, "detail": detail, "killed": False, "by": None, "reason": None}
    said(proof_of(row, WINDOW), tmp_path)
    assert step in capsys.readouterr().out.partition("    next: ")[2]
