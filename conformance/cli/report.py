"""`conformance report`, `diff` and `history`: show what the records of runs contain."""

from __future__ import annotations

import filecmp
from typing import TYPE_CHECKING

import click

from conformance.cli.parameters import PLACE
from conformance.contract.yaml_files import schema_text
from conformance.errors import ExitCode, UsageError
from conformance.reports import FORMATS, WRITTEN, printed, render, set_aside, write_text
from conformance.reports import diff as differences
from conformance.reports.facts import Facts
from conformance.reports.history import as_html as history_page
from conformance.reports.history import read_history
from conformance.reports.terminal import summary
from conformance.results.parts import Part, merge_into, require_shards
from conformance.results.recorder import Recorder
from conformance.results.trust import record_in, require_unread, trusted_record
from conformance.results.verdicts import add_up

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    class _Form(Protocol):
        def __call__(self, difference: differences.Difference, regressions: tuple[differences.Change, ...]) -> str: ...

    _FormsOfDiff = Mapping[str, _Form]

#: The formats that have a JSON Schema, with its file.
_SCHEMAS = {
    "attestation": "attestation.schema.json",
    "ctrf": "ctrf.schema.json",
    "diff": "diff.schema.json",
    "earl": "earl.schema.json",
    "json": "report.schema.json",
    "record": "results.schema.json",
    "totals": "totals.schema.json",
}
_DIFF_FORMS: _FormsOfDiff = {
    "text": differences.as_text,
    "markdown": differences.as_markdown,
    "json": differences.as_json,
    "html": differences.as_html,
}


def _print_schema(context: click.Context, _: click.Parameter, name: str | None) -> None:
    if name is not None:
        click.echo(schema_text(_SCHEMAS[name]), nl=False)
        context.exit()


@click.command()
@click.argument("shards", nargs=-1, required=True, type=PLACE)
@click.option("--out", required=True, type=PLACE, help="Folder for the record and its reports.")
def merge(shards: tuple[Path, ...], out: Path) -> int:
    """Make one run of its SHARDS: the folders that `conformance run --shard` wrote, or their records.

    Ends with the exit code that one machine would have given. A shard that is missing leaves its tests deselected.
    """
    parts = [Part.of(place) for place in shards]
    require_shards(parts)
    require_unread(out, shards)
    told = set_aside(out)
    if told is not None:
        click.echo(told, err=True)
    recorder = Recorder(out / "results.jsonl")
    record, result = merge_into(recorder, parts)
    try:
        render(record, WRITTEN, out)
    finally:
        click.echo(summary(record, result, out))
        if recorder.moved:
            click.echo(f"Warning: {recorder.moved}.", err=True)
    is_hidden = recorder.moved and result.exit_code in (ExitCode.CONFORMANT, ExitCode.INCOMPLETE)
    return int(ExitCode.SUITE_BROKE if is_hidden else result.exit_code)


@click.command()
@click.argument("record", type=PLACE)
@click.option("--out", type=PLACE, help="Folder for the reports. By default beside the record.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(sorted(FORMATS)),
    help="Only this format. May be repeated; all that are files by default. github prints annotations for its actions.",
)
@click.option(
    "--unverified-as",
    type=click.Choice(["error", "failure", "skipped"]),
    default="error",
    show_default=True,
    help="How junit.xml shows a must that was not verified: test views hide what is skipped.",
)
@click.option(
    "--schema",
    type=click.Choice(sorted(_SCHEMAS)),
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of a format, and do nothing else.",
)
def report(record: Path, out: Path | None, formats: tuple[str, ...], unverified_as: str) -> int:
    """Render the reports of a run again from its RECORD, a results.jsonl or the folder that holds it.

    Also for a run that was cut off. Ends with the exit code of the run's verdict.
    """
    file = record_in(record)
    read = trusted_record(file)
    if "attestation" in formats and not read.header.subjects:
        raise UsageError(
            "An attestation names what exactly was tested, and this run was not told. Run it with "
            "--subject NAME=DIGEST, such as --subject registry.example/service=sha256:..."
        )
    _require_no_other(out, file)
    shown = [name for name in formats if not FORMATS[name].file]
    for name in shown:
        click.echo(printed(read, name), nl=False)
    files = [name for name in formats or WRITTEN if name not in shown]
    for written in render(read, files, out or file.parent, unverified_as=unverified_as) if files else ():
        click.echo(str(written))
    result = add_up(read)
    click.echo(f"{result.verdict}: {result.explanation}", err=bool(shown))
    for sentence in read.damage:
        click.echo(f"Warning: {sentence.rstrip('.')}; what it said is in no report.", err=True)
    return int(result.exit_code)


def _require_no_other(out: Path | None, record: Path) -> None:
    """Raise UsageError when a folder has another record than this one: reports of both would stand there as one run."""
    other = out / "results.jsonl" if out is not None else record
    if other.is_file() and not filecmp.cmp(other, record, shallow=False):
        raise UsageError(
            f"--out {out} holds the record of another run, and its reports would be replaced. Name another folder."
        )


@click.command()
@click.argument("old", type=PLACE)
@click.argument("new", type=PLACE)
@click.option("--format", "form", type=click.Choice(list(_DIFF_FORMS)), default="text", show_default=True)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice([*differences.REGRESSIONS, "nothing"]),
    default=("failing", "lost"),
    show_default=True,
    help="What counts as a regression: newly failing, lost coverage, newly unstable, slower operations, changed "
    "observations. May be repeated.",
)
def diff(old: Path, new: Path, form: str, fail_on: tuple[str, ...]) -> int:
    """Tell what changed between two runs: their folders, or their records. They may be of different suites.

    Ends with 0 when there is no regression, 1 when there is one, 4 when a record cannot be read.
    """
    runs = [Facts.of(trusted_record(place)) for place in (old, new)]
    found = differences.compare(*runs)
    regressions = found.regressions(tuple(name for name in fail_on if name != "nothing"))
    click.echo(_DIFF_FORMS[form](found, regressions), nl=False)
    return int(ExitCode.NON_CONFORMANT if regressions else ExitCode.CONFORMANT)


@click.command()
@click.argument("folder", type=PLACE)
@click.option("--out", type=PLACE, help="File of the page. By default history.html in the folder.")
@click.option(
    "--last", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="Runs of each target, at most."
)
def history(folder: Path, out: Path | None, last: int) -> int:
    """Draw the runs below a FOLDER on one page: verdicts, areas, unstable requirements, duration and calls over time.

    Ends with 0, or with 4 when there is no run that can be read; one that cannot be read is named on the page.
    """
    found = read_history(folder, last)
    file = out or folder / "history.html"
    write_text(file, history_page(found, file.parent))
    click.echo(found.summary)
    click.echo(str(file))
    return int(ExitCode.CONFORMANT)
