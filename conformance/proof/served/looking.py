"""Each fault on a reference that is served, as operators meet it.

`prove` puts faults on the embedded reference, where everything can be read and restored. On a served one a run makes
groups and projects of its own, knows only what a profile says, and has to undo what it did by calls.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from conformance.contract import Contract, Level
from conformance.errors import ConformanceError, ExitCode
from conformance.proof import all_faults
from conformance.proof.chaos.matrix import run_fault
from conformance.proof.figures import FILE, SAMPLE, SECONDS, WORKERS, sampled, write_figures
from conformance.proof.processes import done_side_by_side
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.proof.faults import Fault

#: How long one fault takes on one core, on average.
_USUAL_SECONDS = 2.2
#: Rates are counted over real minutes on a served reference.
_TAKE_MINUTES = "limits."
#: How many characters of the reason are told.
_WORDS = 160


@dataclass(frozen=True, slots=True)
class Served:
    """What a run found of one fault on a served reference."""

    fault: str
    verdict: str
    detail: str
    """Why it was not seen; empty if it was."""
    is_late: bool
    """Whether the whole suite saw it, and the tests of its requirement alone did not."""
    seconds: float

    @property
    def is_seen(self) -> bool:
        """Whether a requirement failed. What is open or unstable is not seen."""
        return self.verdict == RunVerdict.NON_CONFORMANT


def looked_for(name: str) -> Served:
    """Serve the reference with a fault, and return what the tests of its requirement find, or else the whole suite."""
    try:
        result = run_fault(name)
        whole = result if result.verdict == RunVerdict.NON_CONFORMANT else run_fault(name, whole=True)
    except ConformanceError as error:
        return Served(name, "not run", str(error), is_late=False, seconds=0.0)
    seen = whole.verdict == RunVerdict.NON_CONFORMANT
    reasons = (*whole.unstable, *whole.open, whole.explanation)
    seconds = result.seconds + (0.0 if whole is result else whole.seconds)
    return Served(
        name, whole.verdict, "" if seen else reasons[0], is_late=seen and whole is not result, seconds=seconds
    )


def figures(found: Sequence[Served], possible: int) -> dict[str, Any]:
    """Return how many faults were seen, with the denominator, those that were not, and what was left out."""
    verdicts = Counter(one.verdict for one in found)
    return {
        "seen": sum(one.is_seen for one in found),
        "tried": len(found),
        "verdicts": dict(verdicts),
        "seen_by_other_tests": sorted(one.fault for one in found if one.is_late),
        "unseen": {one.fault: f"{one.verdict}: {one.detail[:_WORDS]}" for one in found if not one.is_seen},
        "left_out": f"{possible - len(found)} of {possible} faults; those of rates; drawn calls beyond three of an "
        "operation; every seed but one",
    }


def _choice(sort: str, part: str, only: tuple[str, ...]) -> list[str]:
    """Return the names of the faults of a sort that violate a `must`, sorted."""
    contract = Contract.load()

    def is_meant(fault: Fault) -> bool:
        # A violation of a recommendation fails no run.
        if contract.requirements[fault.requirement].level is not Level.MUST or fault.sort != sort:
            return False
        if fault.requirement.startswith(_TAKE_MINUTES):
            return False
        return fault.requirement.startswith(part) and (not only or fault.name in only)

    return sorted(fault.name for fault in all_faults(contract, None) if is_meant(fault))


@click.command()
@click.option("--sort", default="written", show_default=True, help="Which faults: written, rule or crossed.")
@click.option("--area", default="", help="Only faults of requirements that begin so.")
@click.option("--fault", "only", multiple=True, help="Only the fault of this name. May be repeated.")
@SECONDS
@SAMPLE
@WORKERS
@FILE
def main(  # noqa: PLR0913 - the options of a command
    file: Path,
    *,
    sort: str,
    area: str,
    only: tuple[str, ...],
    seconds: float | None,
    sample: str | None,
    workers: int,
) -> None:
    """Look for each fault on a served reference, and write to FILE which were seen."""
    names = _choice(sort, area, only)
    if not names:
        raise click.UsageError("No fault of a must is meant by that. `conformance prove` names all faults.")
    if seconds is not None or sample:
        names = sampled(names, sample)
    click.echo(f"{len(names)} faults: about {_USUAL_SECONDS * len(names) / workers / 60:.0f} minutes on two cores.")
    told: list[Served] = []

    for one in done_side_by_side(looked_for, names, workers, seconds):
        told.append(one)
        write_figures(file, figures(told, len(names)))
        if not one.is_seen:
            click.echo(f"UNSEEN {one.fault}  {one.verdict}: {one.detail[:_WORDS]}")
        elif len(told) % 50 == 0:
            click.echo(f"{len(told)} of {len(names)}")
    click.echo(f"{sum(one.is_seen for one in told)} of {len(told)} faults seen on a served reference.")
    sys.exit(ExitCode.CONFORMANT if all(one.is_seen for one in told) else ExitCode.NON_CONFORMANT)
