"""`conformance readiness` and `conformance lint-traffic`: what an upgrade would break, and who uses old items."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import pytest

from conformance.cli.parameters import FORM, PLACE, shared_with_pytest
from conformance.contract import Contract, Version
from conformance.errors import ConformanceError, ExitCode, StoppedError, TargetError, UsageError
from conformance.http.client import Client
from conformance.reports import READINESS, render_all, set_aside, write_text
from conformance.results.reading import read_record
from conformance.results.recorder import add_readiness
from conformance.results.text import one_line, plural
from conformance.runner.job import Job
from conformance.runner.location import suite_arguments
from conformance.runner.options import OPTIONS, Options
from conformance.runner.precautions import when_terminated
from conformance.target.check import doubted_version
from conformance.target.profile import AUTO
from conformance.versions.har import LONGEST
from conformance.versions.readiness import Readiness, Ready, affected, assess, in_words, interval
from conformance.versions.traffic import Found, TrafficLint, TrafficReport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.results.record import RunRecord
    from conformance.runner.session import Session
    from conformance.target import Profile

_CODES = {
    Ready.READY: ExitCode.CONFORMANT,
    Ready.UNCHANGED: ExitCode.CONFORMANT,
    Ready.NOT_READY: ExitCode.NON_CONFORMANT,
    Ready.OPEN: ExitCode.INCOMPLETE,
}
_STOPPED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)
#: Options that every run for a comparison inherits: how to reach the target, and what may be done to it.
_PASSED_ON = (
    *("target", "base_url", "version", "seed", "corpus", "include", "max_examples", "fuzz_seconds", "concurrency"),
    *("minutes", "max_requests", "max_rps", "read_only", "confirm", "no_restore", "force"),
)


# -- readiness -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One target, and the folder for its results as of two versions."""

    options: Options
    folder: Path

    def run_as_of(self, version: Version, requirements: tuple[str, ...]) -> RunRecord | None:
        """Run the tests of these requirements as of a version; None when that version has none of them."""
        folder = self.folder / f"as-of-{version}"
        record = folder / "results.jsonl"
        told = set_aside(folder)  # where nothing can be run, the record of an earlier command must not count
        if told is not None:
            click.echo(told, err=True)
        arguments = [
            *self._passed_on(),
            f"--as-of={version}",
            f"--out={folder}",
            "-q",
            *(f"--requirement={name}" for name in requirements),
        ]
        click.echo(f"Running what changes between the versions, as of {version} ...", err=True)
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = pytest.main(suite_arguments(*arguments))
        if code in _STOPPED:
            raise StoppedError(ExitCode(code), f"The run as of {version} was stopped: {folder} has what it saw.")
        if code == pytest.ExitCode.USAGE_ERROR:
            raise UsageError(output.getvalue().strip().removeprefix("ERROR: "))
        if code == pytest.ExitCode.INTERNAL_ERROR:
            raise StoppedError(ExitCode.PYTEST_BROKE, f"pytest broke in the run as of {version}:\n{output.getvalue()}")
        if not record.is_file():
            return None
        read = read_record(record)
        if read.footer is not None and read.footer.detail:
            raise TargetError(read.footer.detail)
        return read

    def after(self, record: RunRecord | None) -> Comparison:
        """Return the rest of the run's limits for another run; raise UsageError when nothing is left."""
        footer = record.footer if record is not None else None
        minutes, most = self.options.minutes, self.options.max_requests
        if footer is None or (minutes is None and most is None):
            return self
        minutes = minutes - footer.seconds / 60 if minutes is not None else None
        most = most - footer.requests if most is not None else None
        if (minutes is not None and minutes <= 0) or (most is not None and most < 1):
            raise UsageError("Nothing is left of --minutes or --max-requests for another run.")
        return replace(self, options=replace(self.options, minutes=minutes, max_requests=most))

    def _passed_on(self) -> Iterator[str]:
        """Yield the options of this run that the other runs inherit, as they are written on the command line."""
        for field in _PASSED_ON:
            option, value = OPTIONS[field], getattr(self.options, field)
            if option.type is bool:
                yield from [option.name] if value else []
            elif option.repeated:
                yield from (f"{option.name}={each}" for each in value)
            elif value is not None:
                yield f"{option.name}={value}"


def readiness_of(comparison: Comparison, start: Version, end: Version, before: RunRecord | None = None) -> Readiness:
    """Test what differs between two versions as of both, and compare; `before` is a run as of the older one.

    Raise UsageError when no test covers the differences, TargetError when the target cannot be tested.
    """
    requirements = affected(Contract.load(), start, end)
    older = before or comparison.run_as_of(start, requirements)
    newer = comparison.after(older).run_as_of(end, requirements)
    if newer is None:
        raise UsageError(f"The suite has no test for anything that changes between {start} and {end}.")
    return assess(older, newer, start, end)


def write_readiness(readiness: Readiness, folder: Path, record: Path) -> Path:
    """Write `readiness.json` into a folder, and its content into a record and the reports beside that.

    Raise UsageError when that is not possible.
    """
    file = folder / READINESS
    write_text(file, json.dumps(readiness.as_data(), ensure_ascii=False, indent=2) + "\n")
    add_readiness(record, readiness.as_data())
    render_all(read_record(record), record.parent)
    return file


@click.command(
    params=[
        click.Option(["--target"], type=PLACE, help="Target profile. Without one: the embedded reference."),
        *shared_with_pytest("base_url"),
        click.Option(
            ["--from", "start"], metavar="V", help="Version the service has. By default: what profile or service say."
        ),
        click.Option(["--to", "end"], metavar="V", required=True, help="Version to be ready for, such as 18.0."),
        *shared_with_pytest("out", "seed", "concurrency", "max_rps", "read_only", "confirm", "no_restore", "force"),
    ]
)
def readiness(*, start: str | None, end: str, **given: Any) -> int:
    """Tell what an upgrade of the service to a newer version of the interface would meet.

    Which deprecated items it still serves, which documented changes it has not made yet, and what it does today that
    the newer version rules out. Ends with 0 when nothing stands against the newer version, 1 when something would be
    violated, 6 when something that will be owed could not be verified.
    """
    if start is not None and start != AUTO:
        Version.parse_declared(start, "--from")
    job = Job.prepare(Options(version=start, **given))
    for warning in job.warnings:
        click.echo(f"Warning: {warning}", err=True)
    older, newer = interval(job.version, end, "--to")
    options = replace(job.options, version=str(older), seed=job.seed)
    found = readiness_of(Comparison(options, job.folder), older, newer)
    _warn_of_another_version(job.profile)
    page = job.folder / f"as-of-{newer}" / "results.jsonl"
    file = write_readiness(found, job.folder, page)
    click.echo(in_words(found))
    click.echo(f"\nReport: {page.parent / 'index.html'}, {file}")
    return _CODES[found.verdict]


def _warn_of_another_version(profile: Profile | None) -> None:
    """Warn when the target reports another version than the one to upgrade from: the rows between them may be wrong."""
    if profile is None:
        return
    with Client(profile.client_settings()) as client:
        for found in doubted_version(profile, client):
            click.echo(f"Warning: {found.place}: {found.detail}.", err=True)


def after_run(session: Session, end: str) -> None:
    """Report what an upgrade of a finished run's target would break: in the terminal, as JSON and in the run's reports.

    The verdict of the run does not change; if nothing can be reported, a message says why.
    """
    if session.record is None or session.writer.recorder is None or session.writer.recorder.moved:
        return
    end_again = when_terminated(_interrupt)
    try:
        told = f"\n{in_words(_after(session, session.record, session.writer.recorder.file, end))}"
    except (ConformanceError, KeyboardInterrupt) as error:
        click.echo(f"\nWhat an upgrade to {end} would meet cannot be told: {error or 'interrupted.'}", err=True)
    else:
        click.echo(told)
    finally:
        end_again()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _after(session: Session, record: RunRecord, file: Path, end: str) -> Readiness:
    if record.footer is None or record.footer.detail:
        raise TargetError("the run stopped early.")
    older, newer = interval(session.version, end, "--ready-for")
    options = session.options
    # A partial run says nothing about the rest, so both versions are run.
    is_whole = not (options.selection.words or options.shard or options.pytest_arguments)
    comparison = Comparison(replace(options, seed=session.seed), file.parent)
    rest, before = (comparison, record) if is_whole else (comparison.after(record), None)
    found = readiness_of(rest, older, newer, before)
    write_readiness(found, file.parent, file)
    return found


# -- traffic ---------------------------------------------------------------------------------------------------------


@click.command("lint-traffic")
@click.argument("har", type=PLACE, metavar="FILE.har")
@click.option("--as-of", metavar="V", help="Version of the service that the traffic is meant for. By default: any.")
@FORM
def lint_traffic(har: Path, as_of: str | None, form: str) -> int:
    """Name what recorded traffic uses that is deprecated or removed, and hold its answers against the contract.

    What only the service sends, and what works under an older name, is a hint. Ends with 0 when there is no finding,
    1 when there is one, 4 when the file cannot be read, 5 when no call in it is one of the API.
    """
    version = Version.parse_known(as_of, "--as-of") if as_of else None
    report = TrafficLint(Contract.load(), version).read(har)
    if form == "json":
        click.echo(json.dumps(_as_data(report), ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join(_lines(report)))
    if not report.calls:
        return ExitCode.NOTHING_RAN
    return ExitCode.NON_CONFORMANT if report.findings else ExitCode.CONFORMANT


def _as_data(report: TrafficReport) -> dict[str, object]:
    return {
        "as_of": report.as_of,
        "entries": report.entries,
        "calls": report.calls,
        "judged": report.judged,
        "unreadable": report.unreadable,
        "too_large": report.too_large,
        "found": [
            {**asdict(found), "is_hint": found.is_hint, "times": times, "entries": report.examples[found]}
            for found, times in report.found.items()
        ],
    }


def _lines(report: TrafficReport) -> Iterator[str]:
    for found, times in report.found.items():
        yield f"{'hint' if found.is_hint else 'finding'} ({found.use}): {one_line(found.what)}"
        yield f"    {one_line(found.detail)}"
        if found.replacement:
            yield f"    use instead: {found.replacement}"
        if found.requirement:
            yield f"    requirement: {found.requirement}"
        yield f"    {_times(report, found, times)}"
    if report.found:
        yield ""
    findings, hints = len(report.findings), len(report.found) - len(report.findings)
    yield (
        f"{plural(findings, 'finding')} and {plural(hints, 'hint')} in {plural(report.calls, 'call')} of the API "
        f"(as of {report.as_of}); {plural(report.judged, 'answer')} {_was(report.judged)} held against the contract."
    )
    elsewhere = report.entries - report.calls - report.unreadable
    yield (
        f"The file has {plural(report.entries, 'entry', 'entries')}: {elsewhere} of something else, and "
        f"{report.unreadable} that {_was(report.unreadable)} not whole and {_was(report.unreadable)} passed over."
    )
    if report.too_large:
        size = f"more than {LONGEST // 2**20} MiB"
        yield f"{plural(report.too_large, 'entry', 'entries')} with {size} in one piece: that piece was skipped."


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _times(report: TrafficReport, found: Found, times: int) -> str:
    places = ", ".join(str(place) for place in report.examples[found])
    more = " ..." if times > len(report.examples[found]) else ""
    return f"It happens {plural(times, 'time')}, in {'entry' if times == 1 else 'entries'} {places}{more}"
