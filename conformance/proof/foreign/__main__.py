"""`python -m conformance.proof.foreign FILE`: run the suite against each foreign fault, as operators run it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from conformance.errors import ExitCode
from conformance.proof.figures import FILE, WORKERS, write_figures
from conformance.proof.foreign import faults

# A spawned process knows the functions of this module by another module name, so what it runs is in another module.
from conformance.proof.foreign.running import seen
from conformance.proof.processes import done_side_by_side

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.option("--only", "names", multiple=True, help="Only the fault of this name, or those of this dimension.")
@click.option("--seconds", type=float, help="Go on with FILE, and begin no run after so many seconds.")
@WORKERS
@FILE
def main(file: Path, *, names: tuple[str, ...], seconds: float | None, workers: int) -> None:
    """Show which foreign faults the suite finds, and write to FILE what failed for each."""
    found: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["results"] if seconds and file.is_file() else []
    known = {one["fault"] for one in found}
    chosen = [one for one in faults() if not names or {one.name, one.dimension} & {*names}]
    if not chosen:
        raise click.BadParameter(f"No fault and no dimension is called {' or '.join(names)}.", param_hint="--only")
    wanted = [one.name for one in chosen if one.name not in known]
    for sight in done_side_by_side(seen, wanted, workers, seconds):
        found.append({**asdict(sight), "seen": sight.is_seen})
        what = "seen  " if sight.is_seen else "UNSEEN"
        click.echo(f"{what} {sight.fault}  {', '.join(sight.requirements[:3])}  {sight.seconds} s")
    write_figures(file, _figures(found))
    click.echo(f"{sum(one['seen'] for one in found)} of {len(found)} foreign faults seen ({len(faults())} are known).")
    sys.exit(ExitCode.CONFORMANT if found else ExitCode.NOTHING_RAN)


def _figures(found: list[dict[str, Any]]) -> dict[str, Any]:
    tried = Counter(one["dimension"] for one in found)
    caught = Counter(one["dimension"] for one in found if one["seen"])
    return {
        "seen": caught.total(),
        "tried": len(found),
        "known": len(faults()),
        "by_dimension": {name: {"seen": caught[name], "tried": number} for name, number in tried.items()},
        "how": "the tests of the fault's area came first, and the run ended at the first failure that came twice; where "
        "no failure was of that area, the whole suite ran in its own order, for the limits with --include slow. Three drawn calls for each operation, seed 1.",
        "results": found,
    }


if __name__ == "__main__":
    main()
