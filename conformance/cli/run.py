"""`conformance run`."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.core import ParameterSource

from conformance.cli.parameters import shared_with_pytest
from conformance.cli.several import require_apart, run_each
from conformance.cli.watch import watch as watch_runs
from conformance.contract import Version
from conformance.errors import ExitCode, UsageError
from conformance.reports import json_report
from conformance.reports.facts import Facts
from conformance.results.trust import record_in, trusted_record
from conformance.runner import plugin as pytest_plugin
from conformance.runner.display import forgiving
from conformance.runner.location import suite_arguments
from conformance.runner.options import OPTIONS
from conformance.runner.profiles import DEFAULT_PROFILE
from conformance.target import load_profile

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from conformance.results.record import Header, RunRecord
    from conformance.runner.session import Session


_SHOWN_OF_ERRORS = 5  # lines
#: With more processes than this, a service that answers at once is hardly tested faster.
_MOST_OF_REFERENCE = 4


_PARAMETERS = [
    *shared_with_pytest("base_url", "target", "version", "areas", "requirements"),
    click.Option(["--ready-for"], metavar="V", help="Also report the effects of an upgrade to this version."),
    *shared_with_pytest("include", "seed", "corpus", "out", "max_examples", "fuzz_seconds", "concurrency"),
    click.Option(
        ["--workers"],
        type=click.IntRange(1, 64),
        metavar="N",
        help="Processes that run tests side by side, each in a world of its own. By default as many as the profile has "
        "worlds, two per core at most; on the reference one per core, or one where only some tests are selected.",
    ),
    *shared_with_pytest("shard", "resume", "minutes", "max_requests", "max_rps", "baseline", "fail_on", "subjects"),
    *shared_with_pytest("read_only", "confirm", "no_restore", "failed"),
    click.Option(
        ["--watch"], is_flag=True, help="Run again on Enter, or when the profile or the target's version changes."
    ),
    *shared_with_pytest("force"),
    click.Option(["-q", "--quiet"], is_flag=True, help="No progress, only the result of the run."),
    click.Option(["-v", "--verbose"], is_flag=True, help="One line per test, instead of progress by area."),
    click.Option(
        ["--format", "form"],
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="json prints report.json and nothing else; other messages go to standard error.",
    ),
    click.Argument(["pytest_arguments"], nargs=-1, type=click.UNPROCESSED),
]


@click.command(params=_PARAMETERS)
@click.pass_context
def run(context: click.Context, /, **given: Any) -> int:
    """Run the suite and write its reports.

    What follows `--` goes to pytest as it is, such as `-- -k allowlist -x`.
    """
    targets: tuple[Path, ...] = given["target"]
    inherited = _of_the_environment(context)  # passed on in the environment: a process list then shows no password
    if given["quiet"] and given["verbose"]:
        raise UsageError("--quiet and --verbose exclude each other. Leave one of them out.")
    if given["watch"]:
        profile = DEFAULT_PROFILE if given["base_url"] and not targets else None
        watched = targets[0] if len(targets) == 1 else profile
        return watch_runs(_as_given(context, without={"watch", *inherited}), watched, given["base_url"])
    if len(targets) > 1:
        if given["form"] == "json":
            raise UsageError("--format json tells of one target. The folder of several has comparison.json.")
        if not given["read_only"]:
            require_apart(targets, given["base_url"])
        out = given["out"] or Path("reports") / "several" / datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        return run_each(targets, _as_given(context, without={"target", "out", *inherited}), out)
    _refuse_profiles_among(given["pytest_arguments"])
    if given["resume"] is not None:
        return _resumed(context)
    workers = given["workers"] or _workers_by_default(given)
    arguments = suite_arguments(
        "--by-area",
        *([f"-n{workers}"] if workers > 1 else []),
        *_loudness(given),
        *_as_given(context, without={*given} - {*OPTIONS}),
        *given["pytest_arguments"],
    )
    return _run(arguments, given)


def _run(arguments: list[str], given: Mapping[str, Any]) -> int:
    if given["form"] == "json":
        return _run_as_json(arguments, given["ready_for"])
    return run_suite(arguments, ready_for=given["ready_for"])


def _loudness(given: Mapping[str, Any]) -> list[str]:
    """Return pytest's options for how much is printed."""
    return [*(["-q"] if given["quiet"] else []), *(["-v"] if given["verbose"] else [])]


def _refuse_profiles_among(words: tuple[str, ...]) -> None:
    """Raise UsageError when a profile stands where only arguments for pytest belong."""
    for word in words:
        if not word.startswith("-") and Path(word).suffix in {".yaml", ".yml"}:
            raise UsageError(f"{word} looks like a profile. Name it with --target {word}.")


def _resumed(context: click.Context) -> int:
    """Resume the run that --resume names."""
    given = context.params
    bounds = {OPTIONS[name].name: given[name] for name in ("minutes", "max_requests") if given[name] is not None}
    own = {"resume", "quiet", "verbose", "ready_for", "form", "minutes", "max_requests"}
    if _as_given(context, without={*own, *_of_the_environment(context)}):
        raise UsageError(
            "--resume takes all options from the run that it resumes, except --minutes, --max-requests, "
            "--ready-for, --format, -q and -v. Leave the others out."
        )
    file = record_in(given["resume"])
    record = trusted_record(file)
    if record.is_complete:
        return _told_again(record, given["resume"], as_json=given["form"] == "json")
    anew = {"-q", "-v", *bounds}
    started_in = _started_in(file, record.header)
    kept = [word for word in _of_the_run_in(file, record.header, started_in) if word.partition("=")[0] not in anew]
    with contextlib.chdir(started_in or Path()):
        return _run(
            suite_arguments(*_loudness(given), *kept, *(f"{name}={value}" for name, value in bounds.items())), given
        )


def _told_again(record: RunRecord, place: Path, *, as_json: bool) -> int:
    """Print the result of a complete run without changing it; return its exit code."""
    click.echo(f"The run in {place} is complete: there is nothing to go on with.", err=True)
    facts = Facts.of(record)
    if as_json:
        _echo_json(facts)
    else:
        click.echo(f"{facts.result.verdict}: {facts.result.explanation}")
    return int(facts.result.exit_code)


def _started_in(file: Path, header: Header) -> Path | None:
    """Return the folder to which a run's relative paths belong; None for the current working folder.

    Raise UsageError when its profile exists in neither.
    """
    targets = [Path(word.partition("=")[2]) for word in header.arguments if word.startswith("--target=")]
    there = (file.resolve().parent / header.started_in).resolve() if header.started_in else None
    if there is not None and there.is_dir() and all((there / target).is_file() for target in targets):
        return None if there == Path.cwd() else there
    missing = [target for target in targets if not target.is_file()]
    if missing:
        raise UsageError(
            f"The run in {file.parent} was begun with --target={missing[0]}, and neither the folder in which it was "
            f"begun nor this one has that file. Call it in the folder that has: conformance run --resume "
            f"{shlex.quote(str(file.parent.resolve()))}"
        )
    return None


def _run_as_json(arguments: list[str], ready_for: str | None) -> int:
    """Run the suite, print its report as JSON, and return the exit code of the run."""
    watcher = _Watcher()
    with contextlib.redirect_stdout(sys.stderr):
        code = run_suite(arguments, ready_for=ready_for, plugins=(watcher,))
    if watcher.session is not None and watcher.session.record is not None:
        _echo_json(Facts.of(watcher.session.record))
    return code


def _echo_json(facts: Facts) -> None:
    for piece in json_report.render(facts):
        click.echo(piece, nl=False)


def _workers_by_default(given: Mapping[str, Any]) -> int:
    """Return how many processes run tests when the operator does not say."""
    cores = os.cpu_count() or 1
    if given["pytest_arguments"] or given["shard"]:
        return 1
    if given["target"]:
        return min(load_profile(given["target"][0]).number_of_worlds, 2 * cores)
    parts = ("areas", "requirements", "base_url", "read_only", "failed")
    is_whole = not any(given[part] for part in parts)
    # The reference gives every worker its own service, which uses about as much of a core as the suite does.
    return min(cores, _MOST_OF_REFERENCE) if is_whole else 1


def _of_the_run_in(file: Path, header: Header, started_in: Path | None) -> list[str]:
    """Return pytest's arguments for resuming a run with its record, in the folder in which it was started."""
    folder = file.parent if started_in is None else file.parent.resolve()
    anew = ("--out", "--seed", "--resume")
    kept = [word for word in header.arguments if word.partition("=")[0] not in anew]
    return [*kept, f"--seed={header.seed}", f"--out={folder}", f"--resume={folder}"]


def _of_the_environment(context: click.Context) -> set[str]:
    """Return the options that come from the environment and not from this call."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.ENVIRONMENT}


def _as_given(context: click.Context, without: Collection[str]) -> list[str]:
    """Return the arguments of this call, without some options."""
    arguments: list[str] = []
    for parameter in context.command.params:
        name, value = parameter.name or "", context.params.get(parameter.name or "")
        if name in without or context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            arguments += ["--", *map(str, values)]
        elif isinstance(parameter, click.Option) and parameter.is_flag:
            arguments += [parameter.opts[-1]] if value else []
        else:
            arguments += [f"{parameter.opts[-1]}={entry}" for entry in values]
    return arguments


def run_suite(arguments: list[str], *, ready_for: str | None = None, plugins: tuple[object, ...] = ()) -> int:
    """Run the suite with pytest and return the exit code of the run; it is 0 only if a verdict says so.

    `ready_for` also reports the effects of an upgrade to that version; `plugins` go to pytest with the suite's own.
    """
    if ready_for is not None:
        Version.parse_known(ready_for, "--ready-for")
    watcher = _Watcher(ready_for)
    with contextlib.redirect_stdout(forgiving(sys.stdout)):  # a reader that goes away changes no verdict
        code = int(pytest.main(arguments, plugins=[*plugins, watcher]))
    if ready_for is not None and watcher.session is not None:
        from conformance.cli.versions import after_run  # noqa: PLC0415 - only this way of running needs it

        after_run(watcher.session, ready_for)
    return _exit_code(code, watcher)


def _exit_code(code: int, watcher: _Watcher) -> int:
    """Return the exit code of a run; pytest's own code means nothing without a verdict."""
    session = watcher.session
    if session is not None and session.exit_code is not None:
        return code or int(session.exit_code)
    if watcher.unread:
        for place, why in watcher.unread.items():
            click.echo(f"\n{place} cannot be read:\n{why}", err=True)
        return int(ExitCode.SUITE_BROKE)
    if code == ExitCode.INTERRUPTED:
        click.echo("\nInterrupted before the first test.", err=True)
    if code in (ExitCode.CONFORMANT, ExitCode.NON_CONFORMANT, ExitCode.NOTHING_RAN):
        click.echo(f"No test ran, so there is no verdict. {_why_nothing_ran(session)}", err=True)
        return int(ExitCode.NOTHING_RAN)
    return code


def _why_nothing_ran(session: Session | None) -> str:
    """Name the selected areas outside the profile's scope, or suggest other causes."""
    profile = session.job.profile if session is not None else None
    if session is not None and profile is not None and profile.scope:
        options, stated = session.options, session.contract.requirements
        selected = dict.fromkeys((*options.areas, *(stated[name].area for name in options.requirements)))
        if selected and not any(map(profile.claims, selected)):
            return (
                f"Outside the scope of the profile: {', '.join(selected)}. Its `scope:` has "
                f"{', '.join(profile.scope)}: select one of these, or add to it what the service implements."
            )
    return (
        "Does anything have the name that was selected, by -k or in another way, and is it inside the scope, the "
        "version and the features of the profile?"
    )


class _Watcher:
    """Keeps the session of a run for later steps, and checks before the first test whether those are possible."""

    def __init__(self, ready_for: str | None = None) -> None:
        self.session: Session | None = None
        self.unread: dict[str, str] = {}
        """The files that could not be collected, and why."""
        self._ready_for = ready_for

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep pytest's error about a file that cannot be read, because pytest's own output is off."""
        if report.failed:
            self.unread[report.nodeid or "A file of tests"] = "\n".join(
                report.longreprtext.splitlines()[-_SHOWN_OF_ERRORS:]
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Reject an upgrade to a version that is not newer than the target's."""
        ours = pytest_plugin.session_of(session.config)
        if self._ready_for is None or ours is None:
            return
        from conformance.versions.readiness import interval  # noqa: PLC0415 - only this way of running needs it

        try:
            interval(ours.version, self._ready_for, "--ready-for")
        except UsageError as error:
            raise pytest.UsageError(str(error)) from error

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Store the session when the run is over."""
        self.session = pytest_plugin.session_of(config)
