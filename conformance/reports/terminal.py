"""The last part of the terminal's output: the verdict, failures, open requirements, and the path of the report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click
from markupsafe import Markup

from conformance.reports import reports_in
from conformance.reports.facts import Facts, weight
from conformance.reports.pages import template
from conformance.results.text import one_line, visible
from conformance.results.verdicts import RequirementVerdict, RunResult, RunVerdict, Verdict
from conformance.target.names import ACTORS

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.results.record import RunRecord

#: Parts of the headline that make a run incomplete; the verdict itself names the selection.
_SAID_IN_BRIEF = ("forced", "not there", "deselected", "not begun", "unsteady", "left on the target")
_COLOURS = {
    RunVerdict.CONFORMANT: "green",
    RunVerdict.SELECTION_HOLDS: "green",
    RunVerdict.NON_CONFORMANT: "red",
    RunVerdict.INCOMPLETE: "yellow",
    RunVerdict.BROKEN: "yellow",
    RunVerdict.COULD_NOT_RUN: "yellow",
}


def summary(  # noqa: PLR0913 - the content, and how to print it
    record: RunRecord,
    result: RunResult,
    folder: Path,
    *,
    colour: bool = False,
    brief: bool = False,
    is_explained: bool = False,
) -> str:
    """Return the summary of a run for the end of the terminal's output, without a newline at its end.

    `folder` contains the reports; `colour` adds escape sequences for verdict and headings and changes no word; `brief`
    prints the verdict, problems of the run, and the first line of each failure. If `is_explained`, the reason why a run
    could not begin is not repeated.
    """
    facts, page = Facts(record, result), folder / "index.html"
    open_rows = result.rows_with(Verdict.INCONCLUSIVE, Verdict.UNSTABLE)
    about = [f"{problem.kind}: {one_line(problem.name)}: {one_line(problem.detail)}" for problem in facts.problems]
    told = (
        template("terminal.txt.j2")
        .render(
            facts=facts,
            brief=brief,
            is_explained=is_explained,
            verdict=_verdict(facts),
            weightless=[row.requirement.id for row in open_rows if not row.is_gap and row.requirement.selected],
            waiting=sum(bool(row.waits_for) and row.is_gap for row in result.rows),
            about=[*about, *(f"warning: {one_line(warning)}" for warning in facts.warnings)],
            closed=[gap for gap in facts.gap_groups if gap.paste and gap.owed],
            resumed=shlex.quote(str(folder)),
            # Without any report none could be written, which was already told.
            report=page if page.is_file() else folder if reports_in(folder) else None,
            said_in_brief=_SAID_IN_BRIEF,
            colours=_COLOURS,
            actors=ACTORS,
            styled=_styled,
            named=_named,
        )
        .removesuffix("\n")
    )
    return told if colour else click.unstyle(told)


def _styled(words: str, fg: str | None = None, *, bold: bool | None = None, more: str = "") -> Markup:
    """Return words in a colour or bold, and more behind them."""
    return Markup(f"{click.style(visible(words), fg=fg, bold=bold)}{visible(more)}")  # noqa: S704 - it is no HTML


def _verdict(facts: Facts) -> Markup:
    result, header = facts.result, facts.record.header
    told = f"  {facts.total.score}  ({one_line(header.target)}, version {one_line(header.version)})"
    return _styled(str(result.verdict).upper(), _COLOURS[result.verdict], bold=True, more=told)


def _named(row: RequirementVerdict) -> Markup:
    """Return the id of a requirement that failed, and why it is no violation, if it is none."""
    more = f"  ({weight(row)})" if weight(row) else ""
    return _styled(row.requirement.id, "red" if row.is_violation else "yellow", more=more)
