"""`conformance run` with several targets, and `conformance compare`: compares runs of several targets."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import click

from conformance.cli.parameters import PLACE
from conformance.errors import ConformanceError, ExitCode, UsageError
from conformance.http.settings import without_userinfo
from conformance.reports import write_text
from conformance.reports.comparison import (
    compare_targets,
    comparison_as_html,
    comparison_as_json,
    comparison_as_markdown,
)
from conformance.reports.facts import Facts
from conformance.results.trust import trusted_record
from conformance.runner.precautions import when_terminated
from conformance.target import load_profile
from conformance.target.profile import changed_places

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

_FORMS = {"json": comparison_as_json, "markdown": comparison_as_markdown, "html": comparison_as_html}
#: The files of a comparison, in the folder of its runs.
_FILES = {"comparison.html": "html", "comparison.md": "markdown", "comparison.json": "json"}
_COARSE = 0.1  # seconds
#: The exit codes of runs, the worst first. A violation in one run counts, whatever the results of the others are.
_WORST_FIRST = (
    ExitCode.NON_CONFORMANT,
    ExitCode.SUITE_BROKE,
    ExitCode.PYTEST_BROKE,
    ExitCode.USAGE,
    ExitCode.COULD_NOT_RUN,
    ExitCode.INTERRUPTED,
    ExitCode.TERMINATED,
    ExitCode.INCOMPLETE,
    ExitCode.NOTHING_RAN,
    ExitCode.CONFORMANT,
)


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PLACE)
@click.option("--format", "form", type=click.Choice(list(_FORMS)), default="markdown", show_default=True)
def compare(runs: tuple[Path, ...], form: str) -> int:
    """Put the RUNS of several targets beside each other: their folders, or their records.

    Shows the requirements that came to different verdicts, what the targets chose where the specification is silent,
    and how fast each operation answered. Ends with 0, or with 4 when a record cannot be read.
    """
    click.echo(_FORMS[form](compare_targets(_facts({_name(run, runs): run for run in runs}))), nl=False)
    return int(ExitCode.CONFORMANT)


def run_each(targets: Sequence[Path], arguments: Sequence[str], out: Path) -> int:
    """Run the suite against each profile, side by side and each in a process of its own, and compare the results.

    All runs get `arguments`. The folder of a run is OUT/NAME, where NAME is the name of its profile or, if two profiles
    have the same name, of the profile's folder. Return the worst exit code. The runs' output is printed as it comes,
    each line after the name of its target. Raise UsageError when no name tells two profiles apart.
    """
    names = _names(targets)
    calls = {
        name: [sys.executable, "-m", "conformance", "run", f"--target={target}", f"--out={out / name}", *arguments]
        for name, target in zip(names, targets, strict=True)
    }
    for file in _FILES:  # a comparison tells of the runs beside it, and these are no longer those
        (out / file).unlink(missing_ok=True)
    begun = time.time()
    started = {name: _start(call) for name, call in calls.items()}
    end_again = when_terminated(partial(_pass_on, started))
    try:
        codes = _wait(started)
    finally:
        end_again()
    # Skip records of an earlier call, because a run that could not begin must not get their results.
    _write(out, {name: out / name for name in names if _is_new(out / name / "results.jsonl", begun)})
    return worst_of(codes.values())


def require_apart(targets: Sequence[Path], base_url: str | None) -> None:
    """Raise UsageError when two profiles name the same project or group of a service: both runs would change it.

    `base_url` replaces that of each profile. Other errors of a profile are left to its own run.
    """
    taken: dict[tuple[str, str], Path] = {}
    for target in targets:
        try:
            profile = load_profile(target)
        except ConformanceError:
            continue
        address = (base_url or profile.base_url).rstrip("/")
        for fixtures in (profile.fixtures, *(world.fixtures for world in profile.worlds)):
            for place, _ in changed_places(fixtures):
                other = taken.setdefault((address, place), target)
                if other != target:
                    raise UsageError(
                        f"{other} and {target} both name {place} of {without_userinfo(address)}, and two runs at "
                        "once would change it under each other. Run one after the other and put them beside each other "
                        "with `conformance compare`, or give each what is its own: conformance provision --worlds 2."
                    )


def _names(targets: Sequence[Path]) -> list[str]:
    """Return a name for each run: that of its profile, or of the profile's folder; raise UsageError for equal names."""
    for names in ([target.stem for target in targets], [target.absolute().parent.name for target in targets]):
        if len(set(names)) == len(names):
            return names
    raise UsageError("Two profiles have the same name, and so would their folders. Rename one of the files.")


def worst_of(codes: Collection[int]) -> int:
    """Return the worst exit code of several runs; a code that no run ends with, as after a kill, counts as broken."""
    known = {code if code in _WORST_FIRST else ExitCode.SUITE_BROKE for code in codes}
    return next(int(code) for code in _WORST_FIRST if code in known)


def _start(call: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603 - our own command


def _pass_on(started: Mapping[str, subprocess.Popen[str]], number: int, _: FrameType | None) -> None:
    for process in started.values():
        process.send_signal(number)


def _wait(started: Mapping[str, subprocess.Popen[str]]) -> Mapping[str, int]:
    """Print the output of the runs until all have ended; an interrupt reaches them too, and they end by themselves."""
    width = max(map(len, started))
    with ThreadPoolExecutor(len(started)) as readers:
        waiting = {name: readers.submit(_read, process, f"{name:{width}} | ") for name, process in started.items()}
        while True:
            try:
                return {name: future.result() for name, future in waiting.items()}
            except KeyboardInterrupt:
                click.echo("Interrupted: each run puts back what it changed, and writes its report.", err=True)


def _read(process: subprocess.Popen[str], prefix: str) -> int:
    assert process.stdout is not None, "the output of a run goes through here"
    for line in process.stdout:
        click.echo(prefix + line, nl=False)
    return process.wait()


def _is_new(record: Path, begun: float) -> bool:
    """Tell whether a record was written after a time in seconds; file timestamps are coarse."""
    try:
        return record.stat().st_mtime >= begun - _COARSE
    except OSError:
        return False


def _write(out: Path, runs: Mapping[str, Path]) -> None:
    """Write the comparison of the runs that have a record; print a message when there are too few."""
    try:
        comparison = compare_targets(_facts(runs))
    except UsageError as error:
        click.echo(f"No comparison: {error}", err=True)
        return
    for file, form in _FILES.items():
        write_text(out / file, _FORMS[form](comparison))
    click.echo(f"{comparison.summary}: {out / 'comparison.html'}")


def _facts(runs: Mapping[str, Path]) -> Mapping[str, Facts]:
    return {name: Facts.of(trusted_record(place)) for name, place in runs.items()}


def _name(run: Path, runs: Sequence[Path]) -> str:
    """Return a short name of a run: its folder's name, or the whole path if several have that name."""
    name = _folder(run).name
    return name if [_folder(other).name for other in runs].count(name) == 1 else str(run)


def _folder(run: Path) -> Path:
    return (run.parent if run.is_file() else run).resolve()
