"""`conformance prove`: run the suite over its faults and show that each is seen."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections import Counter
from pathlib import Path

import click
import pytest

from conformance import __version__, pytest_plugin
from conformance.cli.run import suite_arguments
from conformance.contract import Contract
from conformance.embedded import DEFAULT_VERSION
from conformance.errors import ContractError, ExitCode, UsageError
from conformance.proof import Fault, all_faults
from conformance.proof.matrix import Kill, Matrix
from conformance.proof.report import write_proof


@click.command()
@click.option("--fault", "names", multiple=True, help="Only this fault. May be repeated.")
@click.option("--area", help="Only faults of this area.")
@click.option("--requirement", help="Only faults of this requirement.")
@click.option("--version", "version", default=DEFAULT_VERSION, show_default=True, help="Version of the reference.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("reports/proof"), show_default=True)
@click.option("--resume", is_flag=True, help="Go on where an interrupted proof of the same contract stopped.")
def prove(  # noqa: PLR0913 - the options of a command
    names: tuple[str, ...],
    area: str | None,
    requirement: str | None,
    version: str,
    out: Path,
    *,
    resume: bool,
) -> int:
    """
    Put fault after fault on the reference and show that the requirement each violates fails.

    Ends with 0 when every fault is killed by the requirement it violates, and with 1 when one survives.
    """
    contract = Contract.load()
    faults = _selected(all_faults(contract, version), contract, names, area, requirement)
    journal = _Journal(out / "proof.jsonl", f"{contract.digest} {version}", resume=resume)
    left = [fault for fault in faults if fault.name not in journal.known]
    started = time.monotonic()
    unhealthy = _run(left, version, journal)
    write_proof(out, contract, version, journal.rows([fault.name for fault in faults]), time.monotonic() - started)
    return _say(contract, journal, faults, unhealthy, out)


def _selected(
    faults: tuple[Fault, ...],
    contract: Contract,
    names: tuple[str, ...],
    area: str | None,
    requirement: str | None,
) -> list[Fault]:
    chosen = [
        fault
        for fault in faults
        if (not names or fault.name in names)
        and (area is None or contract.requirements[fault.requirement].area == area)
        and (requirement is None or fault.requirement == requirement)
    ]
    if not chosen:
        raise UsageError("No fault is selected. `conformance prove` without options tries all, and names them.")
    return chosen


class _Journal:
    """One line per fault as it is tried, so that an interrupted proof can go on."""

    def __init__(self, file: Path, key: str, *, resume: bool) -> None:
        self.known: dict[str, dict[str, object]] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = file.read_text(encoding="utf-8").splitlines() if resume and file.is_file() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        if rows and rows[0].get("key") == key:
            self.known = {row["fault"]: row for row in rows[1:]}
        self._stream = file.open("w", encoding="utf-8")
        self._write({"key": key})
        for row in self.known.values():
            self._write(row)

    def add(self, kill: Kill) -> None:
        row = {
            "fault": kill.fault.name,
            "requirement": kill.fault.requirement,
            "says": kill.fault.says,
            "killed": kill.killed,
            "by": kill.by,
            "reason": kill.reason,
            "collateral": list(kill.collateral),
            "seconds": kill.seconds,
            "detail": kill.detail,
        }
        self.known[kill.fault.name] = row
        self._write(row)

    def rows(self, names: list[str]) -> list[dict[str, object]]:
        return [self.known[name] for name in names if name in self.known]

    def _write(self, row: dict[str, object]) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


def _run(faults: list[Fault], version: str, journal: _Journal) -> list[str]:
    """Try the faults, each group at the version where it shows; return what fails without any fault."""
    groups: dict[str, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.versions[0] if fault.versions else version, []).append(fault)
    unhealthy: list[str] = []
    for shown_at, group in groups.items():
        label = f"{len(group)} faults at {shown_at}"
        with click.progressbar(length=len(group), label=label, show_pos=True) as bar:

            def progress(kill: Kill, number: int, total: int) -> None:
                del number, total
                journal.add(kill)
                bar.update(1)

            matrix = Matrix(shown_at, group, progress)
            _collected(matrix, shown_at)
        unhealthy += matrix.unhealthy
    return unhealthy


def _collected(matrix: Matrix, version: str) -> None:
    output = io.StringIO()
    options = ("-q", f"--target-version={version}", "--max-examples=6", "--seed=1")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(suite_arguments(*options), plugins=[pytest_plugin, matrix])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ContractError(f"The suite cannot be proved:\n{output.getvalue().strip()[-2000:]}")


def _say(contract: Contract, journal: _Journal, faults: list[Fault], unhealthy: list[str], out: Path) -> int:
    rows = journal.rows([fault.name for fault in faults])
    survivors = [row for row in rows if not row["killed"]]
    for name in sorted(set(unhealthy)):
        click.echo(f"{name} fails on the reference without any fault.", err=True)
    for row in survivors:
        click.echo(f"SURVIVED  {row['fault']}\n    violates {row['requirement']}\n    {row['detail'] or row['says']}")
    without = _without_fault(contract, faults)
    for area, number in sorted(Counter(contract.requirements[name].area for name in without).items()):
        click.echo(f"{number} tested requirements of {area} have no fault.")
    click.echo(
        f"{len(rows) - len(survivors)} of {len(rows)} faults killed (conformance {__version__}). {out / 'proof.html'}"
    )
    return ExitCode.NON_CONFORMANT if survivors or unhealthy else ExitCode.CONFORMANT


def _without_fault(contract: Contract, faults: list[Fault]) -> list[str]:
    violated = {fault.requirement for fault in faults}
    areas = {contract.requirements[name].area for name in violated}
    return [
        entry.id
        for entry in contract.requirements.values()
        if entry.tested and entry.level == "must" and entry.area in areas and entry.id not in violated
    ]
