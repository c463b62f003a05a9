"""`conformance run`."""

from __future__ import annotations

import contextlib
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.core import ParameterSource

from conformance.cli.numbers import Number
from conformance.cli.several import run_each
from conformance.cli.watch import watch as watch_runs
from conformance.contract import Version
from conformance.errors import ExitCode, UsageError
from conformance.fuzzing.corpus import FAILED_AT_MOST, FOLDER
from conformance.http.settings import AT_ONCE
from conformance.reports import json_report
from conformance.reports.facts import Facts
from conformance.results.reading import read_record
from conformance.results.trust import record_in
from conformance.runner import plugin as pytest_plugin
from conformance.runner.location import suite_arguments
from conformance.runner.progress import forgiving
from conformance.target import load_profile

if TYPE_CHECKING:
    from collections.abc import Collection

    from conformance.runner.session import Session


#: Parameters that are no options of the plugin.
_OWN = ("ready_for", "workers", "resume", "form")
#: More processes than this gain little on a service that answers at once.
_MOST_OF_REFERENCE = 4
#: Switches by their parameter, and what each is to pytest.
_FLAGS = {"quiet": "-q", "verbose": "-v", "read_only": "--read-only", "no_restore": "--no-restore", "force": "--force"}


@click.command()
@click.option(
    "--base-url",
    help="Address of the service, above /api/v4, in place of that of the profile: --target, or target.yaml here.",
)
@click.option(
    "--target",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Target profile. Without one: the embedded reference. May be repeated: targets are tested side by side then, "
    "and compared.",
)
@click.option("--target-version", metavar="V", help="Version of the service: 17.7, 'auto' or 'unknown'.")
@click.option("--area", multiple=True, help="Only this area. May be repeated.")
@click.option("--requirement", multiple=True, metavar="ID", help="Only tests of this requirement. May be repeated.")
@click.option("--ready-for", metavar="V", help="Also tell what an upgrade to this version would meet.")
@click.option("--include", multiple=True, type=click.Choice(["slow"]), help="Also what takes minutes or many calls.")
@click.option(
    "--seed",
    type=int,
    help="Repeats the random choices of an earlier run, and replays none of other runs (see --corpus).",
)
@click.option(
    "--corpus",
    metavar="DIR",
    help="Folder of the drawn cases that are kept from run to run; 'none' keeps and replays nothing. Each run stores "
    "what it draws. One without --seed also replays, of the same contract and version, every case that ever failed "
    f"(the latest {FAILED_AT_MOST} of an operation) and --max-examples others of an operation, the newest.  "
    f"[default: {FOLDER.as_posix()}]",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the reports. By default reports/TARGET/TIME.")
@click.option(
    "--max-examples", type=click.IntRange(1), default=30, show_default=True, help="Fresh drawn cases per operation."
)
@click.option(
    "--fuzz-seconds", type=Number(0), default=10.0, show_default=True, help="Time for the cases of an operation."
)
@click.option(
    "--concurrency", type=click.IntRange(1, 128), default=AT_ONCE, show_default=True, help="Calls under way at once."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes that run tests side by side, each in a world of its own. By default as many as the profile has "
    "worlds, two per core at most; on the reference one per core, or one where only some tests are selected.",
)
@click.option(
    "--shard",
    metavar="K/N",
    help="Run one of N parts of the plan, of about equal work, in the world of number K. Needs --seed, the same for "
    "all. `conformance merge` makes one run of the parts.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Go on with an interrupted run, with its options, seed and worlds: what came to a result is not run again.",
)
@click.option(
    "--minutes",
    type=Number(0, min_open=True),
    metavar="N",
    help="Begin no test after so many minutes. What was not reached then is not tested, and the run is incomplete.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    metavar="N",
    help="Send so many requests at most, beside the look at the profile and what puts things back. What was not "
    "reached then is not tested, and the run is incomplete.",
)
@click.option("--max-rps", type=Number(0, min_open=True), metavar="N", help="Send so many requests a second at most.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="List of requirements that are known to fail, each with reason, owner and expiry; `conformance baseline` "
    "writes one from a run. What has expired, and what holds again, is named.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["any", "new"]),
    default="any",
    show_default=True,
    help="Whether any failure fails the run, or only one that the baseline does not hold.",
)
@click.option(
    "--subject",
    multiple=True,
    metavar="NAME=DIGEST",
    help="What exactly is tested: a build, an image or a commit, for the compliance report. May be repeated.",
)
@click.option(
    "--read-only", is_flag=True, help="Send nothing but GET; what needs more is not tested, 'unsafe in this mode'."
)
@click.option(
    "--confirm",
    metavar="HOST",
    help="Say once that a run may change settings, lists and rules on this host, and make groups that it removes, "
    "though its profile does not call it disposable.",
)
@click.option("--no-restore", is_flag=True, help="Leave alone what an earlier run changed and did not put back.")
@click.option(
    "--failed",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Only what failed or stayed open in the run of this folder.",
)
@click.option("--watch", is_flag=True, help="Run again on Enter, or when the profile or the target's version changes.")
@click.option("--force", is_flag=True, help="Run although the target contradicts the profile; the headline says so.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, only what the run came to.")
@click.option("-v", "--verbose", is_flag=True, help="One line per test, instead of progress by area.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="json prints report.json and nothing else; what is told on the way goes to standard error.",
)
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(context: click.Context, /, *, target: tuple[Path, ...], pytest_arguments: tuple[str, ...], **_: object) -> int:
    """
    Run the suite and write its reports.

    What follows `--` goes to pytest as it is, such as `-- -k allowlist -x`.
    """
    if context.params["watch"]:
        return watch_runs(_as_given(context, without={"watch"}), target[0] if len(target) == 1 else None)
    if len(target) > 1:
        if context.params["form"] == "json":
            raise UsageError("--format json tells of one target. The folder of several has comparison.json.")
        out = context.params["out"] or Path("reports") / "several" / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        return run_each(target, _as_given(context, without={"target", "out"}), out)
    given = context.params
    _refuse_profiles_among(pytest_arguments)
    if given["resume"] is not None:
        return _resumed(context)
    workers = given["workers"] or _workers_by_default(context)
    side_by_side = [f"-n{workers}"] if workers > 1 else []
    options = ["--by-area", *side_by_side, *(flag for name, flag in _FLAGS.items() if context.params[name])]
    for parameter in context.command.params:
        name = parameter.name or ""
        if not isinstance(parameter, click.Option) or parameter.is_flag or name in _OWN:
            continue
        value = context.params[name]
        if context.get_parameter_source(name) is ParameterSource.DEFAULT:
            continue
        values = value if isinstance(value, tuple) else (value,)
        options.extend(f"--{name.replace('_', '-')}={entry}" for entry in values if entry is not None)
    arguments = suite_arguments(*options, *pytest_arguments)
    if context.params["form"] == "json":
        return _run_as_json(arguments, given["ready_for"])
    return run_suite(arguments, ready_for=given["ready_for"])


def _refuse_profiles_among(words: tuple[str, ...]) -> None:
    """Raise UsageError when a profile stands where only arguments for pytest belong."""
    for word in words:
        if not word.startswith("-") and Path(word).suffix in {".yaml", ".yml"}:
            raise UsageError(f"{word} looks like a profile. Name it with --target {word}.")


def _resumed(context: click.Context) -> int:
    """Go on with the run that --resume names."""
    if _as_given(context, without={"resume", "quiet", "verbose", *_of_the_environment(context)}):
        raise UsageError("--resume takes all options from the run that it goes on with. Leave the others out.")
    return run_suite(suite_arguments(*_of_the_run_in(context.params["resume"])))


def _run_as_json(arguments: list[str], ready_for: str | None) -> int:
    """Run the suite, print its report as JSON, and return the exit code of the run."""
    watcher = _Watcher()
    with contextlib.redirect_stdout(sys.stderr):
        code = run_suite(arguments, ready_for=ready_for, plugins=(watcher,))
    if watcher.session is not None and watcher.session.record is not None:
        for piece in json_report.render(Facts.of(watcher.session.record)):
            click.echo(piece, nl=False)
    return code


def _workers_by_default(context: click.Context) -> int:
    """Return how many processes run tests where the operator does not say it."""
    given, cores = context.params, os.cpu_count() or 1
    if given["pytest_arguments"] or given["shard"]:
        return 1
    if given["target"]:
        return min(load_profile(given["target"][0]).number_of_worlds, 2 * cores)
    is_whole = not (given["area"] or given["requirement"] or given["base_url"] or given["read_only"])
    # The reference gives every worker a service of its own, which takes about as much of a core as the suite does.
    return min(cores, _MOST_OF_REFERENCE) if is_whole else 1


def _of_the_run_in(folder: Path) -> list[str]:
    """Return the arguments with which pytest goes on with the run in a folder; raise UsageError when there is none."""
    header = read_record(record_in(folder)).header
    anew = ("--out", "--seed", "--resume")
    kept = [word for word in header.arguments if word.partition("=")[0] not in anew]
    return [*kept, f"--seed={header.seed}", f"--out={folder}", f"--resume={folder}"]


def _of_the_environment(context: click.Context) -> set[str]:
    """Return the options that nobody wrote into this call."""
    return {name for name in context.params if context.get_parameter_source(name) is ParameterSource.ENVIRONMENT}


def _as_given(context: click.Context, without: Collection[str]) -> list[str]:
    """Return the arguments with which the command was called, without some options."""
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
    """
    Let pytest run the suite, and return the exit code of the run, which is 0 only where a verdict says so.

    `ready_for` also tells what an upgrade to that version would meet; `plugins` go to pytest beside the suite's own.
    """
    if ready_for is not None:
        Version.parse_known(ready_for, "--ready-for")
    watcher = _Watcher()
    with contextlib.redirect_stdout(forgiving(sys.stdout)):  # a reader that goes away takes no verdict along
        code = int(pytest.main(arguments, plugins=[*plugins, watcher]))
    if ready_for is not None and watcher.session is not None:
        from conformance.cli.versions import after_run  # noqa: PLC0415 - only this way of running needs it

        after_run(watcher.session, ready_for)
    return _exit_code(code, watcher.session)


def _exit_code(code: int, session: Session | None) -> int:
    """Return the exit code of a run: pytest being content, or not with its tests, says nothing without a verdict."""
    if session is not None and session.exit_code is not None:
        return code or int(session.exit_code)
    if code == ExitCode.INTERRUPTED:
        click.echo("\nInterrupted before the first test.", err=True)
    if code in (ExitCode.CONFORMANT, ExitCode.NON_CONFORMANT, ExitCode.NOTHING_RAN):
        click.echo(
            "No test ran, so there is no verdict. Is what was selected outside of the scope, the version or the "
            "features of the profile?",
            err=True,
        )
        return int(ExitCode.NOTHING_RAN)
    return code


class _Watcher:
    """Keeps the session of a run for what follows it."""

    def __init__(self) -> None:
        self.session: Session | None = None

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Remember the session when the run is over."""
        self.session = pytest_plugin.session_of(config)
