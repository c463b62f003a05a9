"""`conformance prove`: run the suite over its faults and show that each is seen."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.parameters import PLACE
from conformance.cli.stopping import told_when_stopped
from conformance.contract import Contract, Version
from conformance.errors import ExitCode, UsageError
from conformance.proof import Fault, all_faults, faults_named
from conformance.proof.coverage import coverage
from conformance.proof.crossings import CROSSINGS
from conformance.proof.reasons import ANOTHER_REASON
from conformance.proof.report import Proof, write_proof
from conformance.results.plan import Selection

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.proof.running import Row


@click.command()
@click.option("--fault", "names", multiple=True, help="Only this fault. May be repeated.")
@click.option("--area", "areas", multiple=True, help="Only faults of this area. May be repeated.")
@click.option("--requirement", "requirements", multiple=True, help="Only faults of this requirement. May be repeated.")
@click.option(
    "--version",
    metavar="V",
    help="All that is owed at V. By default all at 17.7, and the rest at the nearest version that owes it.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=(os.cpu_count() or 1) + 1,  # some faults are waited for in vain, and a core would stand idle
    help="Processes. By default one more than there are cores.",
)
@click.option("--out", type=PLACE, default=Path("reports/proof"), show_default=True)
@click.option("--resume", is_flag=True, help="Go on where an interrupted proof of the same code stopped.")
def prove(  # noqa: PLR0913 - the options of a command
    *,
    names: tuple[str, ...],
    areas: tuple[str, ...],
    requirements: tuple[str, ...],
    version: str | None,
    jobs: int,
    out: Path,
    resume: bool,
) -> int:
    """Put fault after fault on the reference and show that the requirement each violates fails.

    Ends with 1 when a fault survives, when a requirement that tests verify has no fault (and no stated reason why it
    cannot have one), or when the reference fails without any fault; else with 0.
    """
    # Imported here: it brings pytest and the reference's server, which no other command needs at its start.
    from conformance.proof.running import Journal, try_all  # noqa: PLC0415

    contract = Contract.load()
    if version is not None:
        version = str(Version.parse_known(version, "--version") or version)
    for area in areas:
        contract.require_area(area)
    for requirement in requirements:
        contract.requirement(requirement)
    known = faults_named(contract, names, version) if names else all_faults(contract, version)
    selection = Selection(areas, requirements)
    faults = _selected(known, contract, selection)
    reach = coverage(contract, {one.requirement for one in known}, version, selection.has) if not names else None
    journal = Journal(out / "proof.jsonl", contract, resume=resume)
    left = [fault for fault in faults if not journal.has(fault)]
    started, tried = time.monotonic(), 0

    def how_far() -> str:
        return f"{tried} of {len(left)} faults were tried. The same command with --resume tries the others."

    with (
        told_when_stopped(how_far),
        click.progressbar(length=len(left), label=f"{len(left)} faults", show_pos=True) as bar,
    ):

        def tell(row: Row) -> None:
            nonlocal tried
            journal.add(row)
            tried += 1
            bar.update(1)

        unhealthy = try_all(left, tell, version=version, jobs=jobs)
    proof = Proof(
        contract=contract.digest,
        version=version,
        rows=journal.rows(faults),
        coverage=reach,
        unhealthy=tuple(sorted(unhealthy)),
        seconds=time.monotonic() - started,
    )
    write_proof(out, proof)
    return said(proof, out)


def _selected(faults: Sequence[Fault], contract: Contract, selection: Selection) -> list[Fault]:
    chosen = [fault for fault in faults if selection.has(contract.requirements[fault.requirement])]
    if not chosen:
        raise UsageError(
            "No fault violates what was selected. Write one in conformance/proof/written; `conformance prove` without "
            "options tries all that there are, and names them."
        )
    return chosen


def said(proof: Proof, out: Path) -> ExitCode:
    """Print the result of a proof, with every gap by its name, and say where its files are; return the exit code."""
    for name in proof.unhealthy:
        click.echo(f"UNHEALTHY  {name} fails on the reference without any fault.")
    for row in proof.survivors:
        click.echo(f"SURVIVED  {row['fault']}\n    violates {row['requirement']}\n    {row['detail'] or row['says']}")
        click.echo(f"    next: {_next_step(row)}")
    for name in proof.coverage.without if proof.coverage else ():
        click.echo(f"NO FAULT  {name}\n    is verified by tests that nobody has seen failing")
    for line in proof.summary():
        click.echo(line)
    click.echo(str(out / "proof.html"))
    return ExitCode.CONFORMANT if proof.holds else ExitCode.NON_CONFORMANT


def _next_step(row: Mapping[str, Any]) -> str:
    """Return what to do about a survivor."""
    look = f"see which tests look for it (conformance explain {row['requirement']}), and let one of them notice it"
    crossing = next((each.name for each in CROSSINGS if row["fault"].endswith(f", {each.name}")), None)
    if crossing is not None:
        return f"{look}; if none can, say so below '{crossing}' in conformance/proof/crossings.yaml."
    if str(row["detail"]).startswith(ANOTHER_REASON):
        return f"if that is how the fault shows, name it there in conformance/proof/reasons.yaml; else {look}."
    return f"{look}."
