"""The whole suite through networks that fail, one kind after the other, and faults that it must find nevertheless."""

from __future__ import annotations

import random
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from conformance.contract import Contract
from conformance.errors import ExitCode
from conformance.proof import all_faults
from conformance.proof.chaos.cells import Cell, CellResult, Subject, run_cell
from conformance.proof.chaos.kinds import MIXED, OF_A_CALL, OF_A_TIME
from conformance.proof.figures import FILE, SAMPLE, SECONDS, WORKERS, sampled, write_figures
from conformance.proof.processes import done_side_by_side
from conformance.proof.variants import VARIANTS
from conformance.reference import Choices
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CALM = "calm"
_OFTEN, _RARELY, _THROUGH_FAULTS = 1 / 50, 1 / 1000, 1 / 100
#: The minimum share of requirements that must be verified if one call in fifty is disturbed.
_SHARE = 0.95
#: Every cell ends after this number of minutes, so the maximum time for all of them is known.
_MOST_MINUTES = 12
#: How long cells take on two cores, on average.
_USUAL_SECONDS = 60
_DRAWN = ("--max-examples=3", f"--minutes={_MOST_MINUTES}")
#: For late responses the whole suite would take hours. One area that only reads, and one that writes.
_LATE_AREAS = ("--area=code-completion", "--area=project-approval-configuration")
_VARIANTS = ("hides-what-it-refuses", "always-200", "unprocessable-problems")
_FAULTS = 30

#: A cell as kind, rate and name of its subject, which can be passed to another process.
Key = tuple[str, float, str]


def every_cell(faults: int) -> list[Key]:
    """Return the matrix: calm networks, each kind at each rate, some on variants of the reference, and some faults."""
    calm = [(CALM, 0.0, name) for name in ("reference", *_VARIANTS)]
    kinds = [(kind, rate, "reference") for kind in OF_A_CALL for rate in (_OFTEN, _RARELY)]
    kinds += [(kind, 0.0, "reference") for kind in OF_A_TIME]
    kinds += [("late", 1.0, "reference")]
    variants = [(kind, _OFTEN, name) for name in _VARIANTS for kind in ("reset-after", "gateway")]
    contract = Contract.load()
    written = (fault for fault in all_faults(contract, None) if fault.sort == "written")
    # A violation of a recommendation fails no run.
    names = sorted(fault.name for fault in written if contract.requirements[fault.requirement].level == "must")
    chosen = random.Random(1).sample(names, min(faults, len(names)))  # noqa: S311 - a sample is no secret
    return [*calm, *kinds, *variants, *((MIXED, _THROUGH_FAULTS, name) for name in chosen)]


def run_key(key: Key) -> CellResult:
    """Run the cell of a key."""
    kind, rate, name = key
    variant = next((each for each in VARIANTS if each.name == name), None)
    if variant is not None:
        return run_cell(Cell(kind, rate, Subject(name, variant.choices, variant.limits, variant.alterations), _DRAWN))
    if name == "reference":
        return run_cell(Cell(kind, rate, options=(*_DRAWN, *(_LATE_AREAS if rate == 1 else ()))))
    found = run_fault(name, kind, rate)
    # An operation that is absent fails what is stated about it, and that is not always the requirement of the fault.
    return found if found.verdict == RunVerdict.NON_CONFORMANT else run_fault(name, kind, rate, whole=True)


def run_fault(name: str, kind: str = CALM, rate: float = 0.0, *, whole: bool = False) -> CellResult:
    """Run the tests of a fault's requirement, or the whole suite, on a reference with that fault."""
    fault = next(each for each in all_faults(Contract.load(), None) if each.name == name)
    subject = Subject(
        name, fault.ground.choices or Choices(), {}, (fault.apply,), fault.version, dict(fault.ground.features)
    )
    options = () if whole else ("--include=slow", f"--requirement={fault.requirement}")
    return run_cell(Cell(kind, rate, subject, (*_DRAWN, "--force", *options)))


def is_fault(result: CellResult) -> bool:
    """Tell whether the service of a cell has a fault, which must be found."""
    return result.kind == MIXED and result.rate == _THROUGH_FAULTS


def is_as_promised(result: CellResult, found: Sequence[CellResult] = ()) -> bool:
    """Tell whether a cell has the result that the suite promises; `found` are the results for comparison."""
    if is_fault(result):
        return result.verdict == RunVerdict.NON_CONFORMANT
    if result.failures or left_beyond_calm(result, found):
        return False
    if result.rate in (0.0, _OFTEN) and result.kind != CALM:
        return result.share >= _SHARE
    return result.verdict in (RunVerdict.CONFORMANT, RunVerdict.SELECTION_HOLDS)


def left_beyond_calm(result: CellResult, found: Sequence[CellResult]) -> set[str]:
    """Return what a run left changed that the same service on a calm network did not; nothing if that was not run."""
    calm = on_a_calm_network(result, found)
    return set(result.leftovers) - set(calm.leftovers) if calm is not None and not is_fault(result) else set()


def on_a_calm_network(result: CellResult, found: Sequence[CellResult]) -> CellResult | None:
    """Return the result for the same service on a calm network; None if that was not run."""
    return next((one for one in found if one.kind == CALM and one.subject == result.subject), None)


def published(found: Sequence[CellResult], possible: int) -> dict[str, Any]:
    """Return the matrix with its denominators; changes that also stay on a calm network do not count."""
    calm = next((one.leftovers for one in found if one.kind == CALM), ())
    cells, faults = [one for one in found if not is_fault(one)], [one for one in found if is_fault(one)]
    often = [one.share for one in cells if one.rate != _RARELY]
    return {
        "cells": len(cells),
        "false_failures": sum(len(one.failures) for one in cells),
        "least_verified_share": min(often, default=None),
        "rare_cells": sum(one.rate == _RARELY for one in cells),
        "rare_cells_conformant": sum(one.rate == _RARELY and one.verdict == RunVerdict.CONFORMANT for one in cells),
        "leftovers": sum(len(left_beyond_calm(one, found)) for one in cells),
        "left_by_a_calm_run": len(calm),
        "without_a_calm_run_of_the_same_service": sum(on_a_calm_network(one, found) is None for one in cells),
        "faults": {
            "killed": sum(is_as_promised(one) for one in faults),
            "tried": len(faults),
            "unseen": [one.subject for one in faults if not is_as_promised(one)],
        },
        "left_out": f"{possible - len(found)} of {possible} cells; drawn calls beyond three of an operation; every "
        "seed but one; 500 ms on every call beyond two small areas; what faults leave behind",
        "results": [
            {**asdict(one), "share": one.share, "beyond_calm": sorted(left_beyond_calm(one, found))} for one in found
        ],
    }


@click.command()
@click.option("--kind", "kinds", multiple=True, help="Only this kind of network. May be repeated.")
@click.option("--faults", default=_FAULTS, show_default=True, help="How many written faults to look for.")
@SECONDS
@SAMPLE
@WORKERS
@FILE
def main(  # noqa: PLR0913 - the options of a command
    file: Path, *, kinds: tuple[str, ...], faults: int, seconds: float | None, sample: str | None, workers: int
) -> None:
    """Run the suite through networks that fail, and write the results to FILE."""
    calm, *keys = [key for key in every_cell(faults) if not kinds or key[0] in {CALM, *kinds}]
    if seconds is not None:
        keys = sampled(keys, sample)
    possible = [calm, *keys]
    ended: list[CellResult] = []
    most = -(-len(possible) // workers) * _MOST_MINUTES
    click.echo(
        f"{len(possible)} cells in {workers} processes: {_USUAL_SECONDS * len(possible) / workers / 60:.0f} minutes "
        f"on two cores, and {most} at most."
    )

    for one in done_side_by_side(run_key, possible, workers, seconds):
        ended.append(one)
        write_figures(file, published(ended, len(possible)))
        state = "fine " if is_as_promised(one, ended) else "ALARM"
        words = f"{one.kind} {one.rate:g} {one.subject}"
        click.echo(
            f"{len(ended):3} of {len(possible)}  {state}  {words:60}  {one.verdict}  {one.share:.1%} verified, "
            f"{len(one.failures)} failed, {len(one.unstable)} unstable, {len(one.leftovers)} left  {one.seconds} s"
        )
    alarms = [one for one in ended if not is_as_promised(one, ended)]
    for one in alarms:
        for line in (*one.failures, *left_beyond_calm(one, ended)) or one.open:
            click.echo(f"{one.kind} {one.rate:g} {one.subject}: {line}", err=True)
    click.echo(f"{len(alarms)} of {len(ended)} cells are not as promised.")
    sys.exit(ExitCode.NON_CONFORMANT if alarms or not ended else ExitCode.CONFORMANT)
