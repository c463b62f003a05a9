"""`conformance baseline`: a list of known failures, from a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from conformance.cli.parameters import PLACE
from conformance.contract.yaml_files import schema_text
from conformance.errors import UsageError
from conformance.results.baseline import SCHEMA, baseline_of
from conformance.results.trust import trusted_record
from conformance.results.verdicts import add_up

if TYPE_CHECKING:
    from pathlib import Path

_DAYS = 30


class _Day(click.DateTime):
    """A day; who writes it otherwise is told how."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a text to a moment; fail when it is no day."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"'{value}' is no day. Write YEAR-MONTH-DAY, such as 2026-12-31.", param, ctx)


@click.command()
@click.argument("record", type=PLACE, required=False)
@click.option("--owner", default="nobody yet", show_default=True, help="Owner of the entries that are new in the list.")
@click.option(
    "--expires",
    type=_Day(["%Y-%m-%d"]),
    metavar="DAY",
    help=f"Last day on which what is new counts as known, as YEAR-MONTH-DAY.  [default: in {_DAYS} days]",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the file instead.")
def baseline(record: Path | None, *, owner: str, expires: datetime | None, schema: bool) -> None:
    """Write a baseline of what failed in a run to standard output: `conformance baseline FOLDER > baseline.yaml`.

    RECORD is a results.jsonl, or the folder that holds it. What the baseline of that run had stays as it was, unless
    the run saw that it holds.
    """
    if schema:
        click.echo(schema_text(SCHEMA), nl=False)
        return
    if record is None:
        raise UsageError("Name the folder of a run, or its results.jsonl.")
    if not owner.strip():
        raise UsageError("--owner must name somebody: a person or a team.")
    today = datetime.now(UTC).date()
    until = expires.date() if expires else today + timedelta(days=_DAYS)
    if until < today:
        raise UsageError(f"--expires {until} is over, so that no entry would have an effect. Name a day to come.")
    read = trusted_record(record)
    if not read.is_complete or read.damage:
        click.echo(
            f"Warning: the record of {record} is not whole: what else failed in that run is not in the list.", err=True
        )
    found = add_up(read)
    click.echo(baseline_of(found, owner, until), nl=False)
