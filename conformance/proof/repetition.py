"""Order and repetition: the whole suite in random orders, and twice at the same time against one server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import yaml

from conformance import __version__
from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.errors import ExitCode
from conformance.proof.variants.running import VariantRun, added_up, run_side_by_side
from conformance.reference import EmbeddedServer
from conformance.results.reading import read_record
from conformance.target.embedded import DEFAULT_VERSION, prepared_service, profile_data

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.proof.variants.running import VariantResult

_LONGEST_RUN_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Repetition:
    """What the suite came to when it ran again and again against the reference."""

    version: str
    orders: tuple[VariantResult, ...]
    """One run for each order; each names the seed that makes its order again."""
    together: tuple[VariantResult, ...]
    """Runs at the same time against one server, each with people and projects of its own."""

    @property
    def is_clean(self) -> bool:
        """Whether every run verified everything there is to verify, and found no fault."""
        runs = (*self.orders, *self.together)
        return bool(runs) and all(run.is_clean and not run.gaps for run in runs)

    def as_data(self) -> dict[str, Any]:
        """Return what a report shows, as plain data."""
        return {
            "suite": __version__,
            "contract": Contract.load().digest,
            "version": self.version,
            "clean": self.is_clean,
            "orders": [asdict(run) for run in self.orders],
            "together": [asdict(run) for run in self.together],
        }


def in_random_orders(
    seeds: Sequence[int],
    *options: str,
    version: str = DEFAULT_VERSION,
    workers: int = 1,
    progress: Callable[[VariantResult], None] = lambda _: None,
) -> tuple[VariantResult, ...]:
    """Run the suite once for each seed, its tests in the order that the seed makes of them, each on a service anew."""
    rounds = [VariantRun(f"order {seed}", version, order=seed) for seed in seeds]
    return run_side_by_side(workers, rounds, *options, progress=progress)


def at_the_same_time(number: int, *options: str, version: str = DEFAULT_VERSION) -> tuple[VariantResult, ...]:
    """Run the suite several times at once against one server, each run with a world of its own on it."""
    service = prepared_service(version, worlds=number)
    with TemporaryDirectory() as name, EmbeddedServer(service) as server:
        folder, runs = Path(name), []
        started = time.perf_counter()
        for count, world in enumerate(service.worlds, start=1):
            profile = folder / f"{count}.yaml"
            profile.write_text(yaml.safe_dump(profile_data(world, server.base_url, version)), encoding="utf-8")
            out = folder / str(count)
            command = [
                sys.executable,
                "-m",
                "conformance",
                "run",
                f"--target={profile}",
                f"--out={out}",
                "--seed=1",
                "--",
            ]
            # The command is our own, with a profile that was just written.
            runs.append((out, subprocess.Popen([*command, *options], cwd=HOME, stdout=subprocess.DEVNULL)))  # noqa: S603
        return tuple(_finished(out, run, started, f"beside {number - 1}", version) for out, run in runs)


def _finished(out: Path, run: subprocess.Popen[bytes], started: float, name: str, version: str) -> VariantResult:
    try:
        run.wait(_LONGEST_RUN_SECONDS)
    finally:
        run.kill()
    record = read_record(out / "results.jsonl")
    requests = record.footer.requests if record.footer else 0
    return added_up(VariantRun(name, version), record, time.perf_counter() - started, requests)


@click.command()
@click.option("--runs", default=10, show_default=True, help="How many random orders.")
@click.option("--first-seed", default=1, show_default=True, help="Seed of the first order; the others follow.")
@click.option("--together", default=2, show_default=True, help="How many runs at the same time.")
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help="Version of the reference.")
@click.option("--workers", default=1, show_default=True, help="Processes for the random orders.")
@click.option("--max-examples", default=6, show_default=True, help="Drawn cases per operation.")
@click.option("--area", "areas", multiple=True, help="Only this area. May be repeated.")
@click.argument("file", type=click.Path(path_type=Path))
def main(  # noqa: PLR0913 - the options of a command
    file: Path,
    *,
    runs: int,
    first_seed: int,
    together: int,
    version: str,
    workers: int,
    max_examples: int,
    areas: tuple[str, ...],
) -> None:
    """Run the suite again and again, and write to FILE what each run came to."""

    def progress(run: VariantResult) -> None:
        click.echo(f"{run.name}: {run.verdict}, {run.verified} passed, {run.seconds} s")

    options = (f"--max-examples={max_examples}", *(f"--area={area}" for area in areas))
    seeds = range(first_seed, first_seed + runs)
    orders = in_random_orders(seeds, *options, version=version, workers=workers, progress=progress)
    beside = at_the_same_time(together, *options, version=version) if together else ()
    for run in beside:
        progress(run)
    found = Repetition(version, orders, beside)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found.as_data(), indent=1) + "\n", encoding="utf-8")
    for run in (*orders, *beside):
        for line in (*run.alarms, *run.broken, *run.gaps):
            click.echo(f"{run.name}: {line}", err=True)
    sys.exit(ExitCode.CONFORMANT if found.is_clean else ExitCode.NON_CONFORMANT)


if __name__ == "__main__":
    main()
