"""The false-alarm proof as a whole: every variant at several versions, and random combinations of choices."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance import __version__
from conformance.contract import Contract
from conformance.errors import ExitCode
from conformance.proof.combinations import VERSIONS as COMBINED_AT
from conformance.proof.combinations import drawn
from conformance.proof.rounds import WITHOUT_DRAWN, Round, told_by
from conformance.proof.variants import VARIANTS, rounds_of

if TYPE_CHECKING:
    from conformance.proof.rounds import Told

#: Versions at which every variant is tried: the oldest with all areas but one, today's, and the newest.
VERSIONS = ("15.9", "17.7", "19.0")


def combined(number: int, seed: int) -> list[Round]:
    """Return rounds of combinations drawn from a seed, each at one of the versions in turn."""
    return [each.at(COMBINED_AT[count % len(COMBINED_AT)]) for count, each in enumerate(drawn(number, seed))]


@click.command()
@click.option("--version", "versions", multiple=True, default=VERSIONS, show_default=True, help="For every variant.")
@click.option("--combinations", default=15, show_default=True, help="How many combinations to draw.")
@click.option("--seed", default=1, show_default=True, help="The seed they are drawn from.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.option("--whole", is_flag=True, help="With random calls, which take most of the time.")
@click.argument("file", type=click.Path(path_type=Path))
def main(  # noqa: PLR0913 - the options of a command
    file: Path, *, versions: tuple[str, ...], combinations: int, seed: int, workers: int, whole: bool
) -> None:
    """Hold the suite against every legal personality of the reference, and write to FILE what it says."""

    def progress(run: Told) -> None:
        click.echo(f"{'clean' if run.is_clean else 'ALARM'}  {run.version}  {run.name[:100]}  {run.seconds} s")

    options = ("--max-examples=3",) if whole else WITHOUT_DRAWN
    rounds = [one for version in versions for one in rounds_of(VARIANTS, version)]
    of_variants = told_by(workers, rounds, *options, progress=progress)
    of_combinations = (
        told_by(workers, combined(combinations, seed), *options, progress=progress) if combinations else ()
    )
    data = {
        "suite": __version__,
        "contract": Contract.load().digest,
        "variants": [asdict(run) for run in of_variants],
        "combinations": [asdict(run) for run in of_combinations],
        "seed": seed,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    alarms = [run for run in (*of_variants, *of_combinations) if not run.is_clean]
    for run in alarms:
        for line in (*run.alarms, *run.broken):
            click.echo(f"{run.version} {run.name}: {line}", err=True)
    click.echo(f"{len(alarms)} of {len(of_variants) + len(of_combinations)} legal services raise an alarm.")
    sys.exit(ExitCode.NON_CONFORMANT if alarms else ExitCode.CONFORMANT)


if __name__ == "__main__":
    main()
