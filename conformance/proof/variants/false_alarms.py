"""The proof that there are no false alarms: all variants, at many versions, known or unknown, with several seeds."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from conformance.errors import ExitCode
from conformance.proof.figures import FILE, SAMPLE, SECONDS, WORKERS, sampled, write_figures
from conformance.proof.variants import RELATED, VARIANTS, runs_of
from conformance.proof.variants.bundles import bundles, members
from conformance.proof.variants.combinations import drawn
from conformance.proof.variants.running import UNKNOWN, VariantRun, run_side_by_side

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.proof.variants.running import VariantResult

#: Versions at which every variant is tried: the oldest, those around each large step of the table, and the newest.
VERSIONS = ("12.3", "15.0", "15.9", "16.0", "17.7", "19.0")
SEEDS = (1, 2, 3)
_DRAWN_CASES = "--max-examples=3"
_AT_A_TIME = 2


def every_run(versions: Sequence[str] = VERSIONS) -> list[VariantRun]:
    """Return every variant at every version, known and unknown to the suite, with every seed.

    Several variants are on one service, in other combinations with each seed and version; see `bundles`. With the first
    seed they are mixed, with the others they are related: two that concern the same calls raise an alarm most often.
    """
    return [
        replace(one, is_told=is_told, seed=seed)
        for seed in SEEDS
        for version in versions
        for group in ((VARIANTS,) if seed == SEEDS[0] else RELATED)
        for one in runs_of(bundles(group, f"{seed} at {version}"), version)
        for is_told in (True, False)
    ]


def alone(run: VariantResult) -> list[VariantRun]:
    """Return a run for each variant of a service, to find out which of them raises an alarm."""
    names = members(run.name)
    own = runs_of((variant for variant in VARIANTS if variant.name in names), run.version)
    return [replace(one, is_told=run.is_told, seed=run.seed) for one in own] if len(names) > 1 else []


def combined(number: int, seed: int) -> list[VariantRun]:
    """Return runs of combinations of choices drawn from a seed, each at one of the versions in turn."""
    versions = (*VERSIONS, UNKNOWN)
    return [each.at(versions[count % len(versions)]) for count, each in enumerate(drawn(number, seed))]


def until_time_is_up(runs: Sequence[VariantRun], seconds: float | None, workers: int) -> list[VariantResult]:
    """Run the suite for one run after the other, and start none when the seconds are over; None means all."""
    found: list[VariantResult] = []
    started = time.monotonic()

    def progress(run: VariantResult) -> None:
        left = f"{len(found)}/{len(runs)}" if seconds is None else f"{time.monotonic() - started:.0f} s"
        judged = "told" if run.is_told else "untold"
        verdict = "clean" if run.is_clean else "ALARM"
        click.echo(f"{verdict}  {run.version} {judged} seed {run.seed}  {run.name[:90]}  {run.seconds} s  ({left})")

    step = len(runs) if seconds is None else workers * _AT_A_TIME
    for start in range(0, len(runs), max(step, 1)):
        if seconds is not None and time.monotonic() - started > seconds:
            break
        found += run_side_by_side(workers, runs[start : start + step], _DRAWN_CASES, progress=progress)
    return found


def published(found: Sequence[VariantResult], possible: int, left_out: str) -> dict[str, Any]:
    """Return the figure with its denominator, and with what was left out."""
    named = {variant.name for variant in VARIANTS}
    places = {(name, run.version, run.is_told, run.seed) for run in found for name in members(run.name)}
    return {
        "alarms": sum(not run.is_clean for run in found),
        "runs": len(found),
        "possible_runs": possible,
        "variants": len(named & {place[0] for place in places}),
        "possible_variants": len(VARIANTS),
        "variants_at_versions_told_and_untold_with_seeds": sum(place[0] in named for place in places),
        "possible_of_these": len(VARIANTS) * len(VERSIONS) * 2 * len(SEEDS),
        "combinations": len({run.name for run in found} - {run.name for run in found if members(run.name)[0] in named}),
        "left_out": left_out,
        "versions": sorted({run.version for run in found}),
        "seeds": sorted({run.seed for run in found}),
        "incomplete": sorted({run.name for run in found if run.gaps}),
        "results": [asdict(run) for run in found],
    }


@click.command()
@click.option("--version", "versions", multiple=True, default=VERSIONS, show_default=True, help="For every variant.")
@click.option("--combinations", default=15, show_default=True, help="How many combinations of choices to draw.")
@SECONDS
@SAMPLE
@WORKERS
@FILE
def main(  # noqa: PLR0913 - the options of a command
    file: Path,
    *,
    versions: tuple[str, ...],
    combinations: int,
    seconds: float | None,
    sample: str | None,
    workers: int,
) -> None:
    """Run the suite, with every test, against the variants of the reference, and write the alarms to FILE."""
    possible = [*every_run(versions), *combined(combinations, SEEDS[0])]
    left_out = "drawn calls beyond three of an operation"
    runs = possible
    if seconds is not None:
        runs = sampled(possible, sample)
        left_out += f", and all but a sample of {seconds:g} seconds"
    found = until_time_is_up(runs, seconds, workers)
    write_figures(file, published(found, len(possible), left_out))
    alarms = [run for run in found if not run.is_clean]
    for run in alarms:
        for line in (*run.alarms, *run.broken):
            click.echo(
                f"{run.version} {'told' if run.is_told else 'untold'} seed {run.seed} {run.name}: {line}", err=True
            )
    for single in until_time_is_up([one for run in alarms for one in alone(run)], None, workers):
        click.echo(f"{single.name} {'is clean alone' if single.is_clean else 'raises an alarm alone'}.", err=True)
    click.echo(f"{len(alarms)} of {len(found)} runs against variants raise an alarm.")
    sys.exit(ExitCode.NON_CONFORMANT if alarms or not found else ExitCode.CONFORMANT)
