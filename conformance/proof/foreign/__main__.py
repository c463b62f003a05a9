"""`python -m conformance.proof.foreign FILE`: the whole suite against each foreign fault, as operators run it."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import click

from conformance import __version__
from conformance.contract import Contract
from conformance.errors import ExitCode
from conformance.proof.foreign import faults
from conformance.proof.variant_runs import VariantRun, run_each
from conformance.reference import Choices
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from conformance.proof.foreign import ForeignFault
    from conformance.proof.variant_runs import VariantResult

_DRAWN_CASES = "--max-examples=3"


@dataclass(frozen=True, slots=True)
class Sight:
    """What the suite made of one foreign fault."""

    fault: str
    dimension: str
    says: str
    verdict: str
    requirements: tuple[str, ...]
    """The requirements that failed: whoever reads the figure judges whether they fit what the fault says."""
    open: tuple[str, ...]
    """What was left open instead; open is no kill."""
    seconds: float

    @property
    def is_seen(self) -> bool:
        """Whether the run was non-conformant."""
        return self.verdict == RunVerdict.NON_CONFORMANT


def seen(name: str) -> Sight:
    """Run the whole suite against one fault, by its name."""
    fault = next(one for one in faults() if one.name == name)
    service = VariantRun(fault.name, fault.version, fault.choices or Choices(), alterations=(fault.apply,))
    (run,) = run_each((service,), _DRAWN_CASES)
    return _sight(fault, run)


def _sight(fault: ForeignFault, run: VariantResult) -> Sight:
    return Sight(
        fault.name,
        fault.dimension,
        fault.says,
        str(run.verdict),
        tuple(dict.fromkeys(alarm.partition(" in ")[0] for alarm in run.alarms)),
        tuple(gap.partition(":")[0] for gap in run.gaps),
        run.seconds,
    )


@click.command()
@click.option("--dimension", "dimensions", multiple=True, help="Only faults of this dimension. May be repeated.")
@click.option("--seconds", type=float, help="Begin no run after so many seconds.")
@click.option("--workers", default=2, show_default=True, help="Processes.")
@click.argument("file", type=click.Path(path_type=Path))
def main(file: Path, *, dimensions: tuple[str, ...], seconds: float | None, workers: int) -> None:
    """Show which foreign faults the suite sees, and write to FILE what failed for each."""
    wanted = [fault for fault in faults() if not dimensions or fault.dimension in dimensions]
    found: list[Sight] = []
    started = time.monotonic()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for first in range(0, len(wanted), workers):
            if seconds is not None and time.monotonic() - started > seconds:
                break
            waiting = [pool.submit(seen, fault.name) for fault in wanted[first : first + workers]]
            for done in as_completed(waiting):
                found.append(done.result())
                what = "seen  " if found[-1].is_seen else "UNSEEN"
                click.echo(f"{what} {found[-1].fault}  {', '.join(found[-1].requirements[:3])}  {found[-1].seconds} s")
    by_dimension = Counter(one.dimension for one in found)
    data = {
        "suite": __version__,
        "contract": Contract.load().digest,
        "seen": sum(one.is_seen for one in found),
        "tried": len(found),
        "known": len(faults()),
        "by_dimension": {
            name: {"seen": sum(one.is_seen for one in found if one.dimension == name), "tried": number}
            for name, number in by_dimension.items()
        },
        "results": [asdict(one) for one in found],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    click.echo(f"{data['seen']} of {data['tried']} foreign faults seen ({data['known']} are known).")
    sys.exit(ExitCode.CONFORMANT if found else ExitCode.NOTHING_RAN)


if __name__ == "__main__":
    main()
