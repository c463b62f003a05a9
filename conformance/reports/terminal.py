"""The last part of the terminal's output: the verdict, failures, open requirements, and the path of the report."""

from __future__ import annotations

import shlex
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from conformance.reports import reports_in
from conformance.reports.facts import Facts, failure_in_words, weight
from conformance.results.sequence import to_repeat
from conformance.results.text import clip, one_line, plural, said, visible
from conformance.results.verdicts import RequirementVerdict, RunResult, RunVerdict, Verdict
from conformance.target.names import ACTORS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.reports.causes import Cause
    from conformance.results.record import RunRecord

_SHOWN = 10
_SHOWN_GAPS = 5
#: For each reason, how many of the things that kept requirements open are shown, and how many characters of each.
_SHOWN_CAUSES, _SHOWN_DETAIL = 3, 160
_SHOWN_WORDS = 500
#: Parts of the headline that make a run incomplete; the verdict itself names the selection.
_SAID_IN_BRIEF = ("forced", "not there", "deselected", "not begun", "unsteady", "left on the target")
_WIDTH = 110
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
    told = "\n".join(_lines(Facts(record, result), folder, brief=brief, is_explained=is_explained))
    return told if colour else click.unstyle(told)


def _lines(facts: Facts, folder: Path, *, brief: bool, is_explained: bool) -> Iterator[str]:
    result = facts.result
    if result.verdict is RunVerdict.COULD_NOT_RUN:  # the reason is all there is to print, in separate lines
        yield _verdict(facts)
        for told in [] if is_explained else result.explanation.splitlines():
            yield from wrap(visible(told), _WIDTH)
    elif brief:
        yield from _in_brief(facts)
    else:
        yield from _head(facts, folder)
        for part in (_areas, _problems, _failed, _gaps):
            yield from part(facts)
    yield from _place(folder)


def _bold(words: str) -> str:
    return click.style(words, bold=True)


def _head(facts: Facts, folder: Path) -> Iterator[str]:
    result, header = facts.result, facts.record.header
    yield _verdict(facts)
    yield from wrap(visible(result.explanation), _WIDTH)
    yield from _wrapped(f"{plural(len(result.rows), 'requirement')}: {facts.counts_in_words}", "    ")
    yield from _without_weight(facts)
    if result.beside_known is not None:
        waiting = sum(bool(row.waits_for) and row.is_gap for row in result.rows)
        these = f", and {plural(waiting, 'requirement')} waiting for them," if waiting else ""
        told = f"All failures are in the baseline. Without them{these} the verdict is: {result.beside_known}"
        yield from _wrapped(f"{told} (exit code {int(result.exit_code)}).", "")
    for name, words in facts.headline.items():
        yield from _said(name, words, folder)
    if facts.drawn_in_words:
        yield f"{facts.drawn_in_words}; --seed {header.seed} draws the fresh ones again"


def _without_weight(facts: Facts) -> Iterator[str]:
    """Mention what was tested without a result but affects no verdict, so that nobody has to search for it."""
    rows = facts.result.rows_with(Verdict.INCONCLUSIVE, Verdict.UNSTABLE)
    names = [visible(row.requirement.id) for row in rows if not row.is_gap and row.requirement.selected]
    if names:
        more = f" and {len(names) - _SHOWN_GAPS} more" if len(names) > _SHOWN_GAPS else ""
        yield from _wrapped(f"without weight for the verdict: {', '.join(names[:_SHOWN_GAPS])}{more}", "    ")


def _said(name: str, words: str, folder: Path) -> Iterator[str]:
    """Yield a line of the headline; a command stays on one line, so that it can be copied."""
    if name == "to go on":
        yield f"{name}: conformance run --resume {shlex.quote(str(folder))}"
    elif name == "to repeat":
        yield f"{name}: {visible(words)}"
    else:
        yield from _wrapped(f"{name}: {one_line(words, _SHOWN_WORDS)}", "    ")


def _wrapped(text: str, *indents: str) -> list[str]:
    """Yield the lines of a text that is only broken at spaces; one indent is for all but the first, two for each."""
    first, later = indents if len(indents) > 1 else ("", *indents)
    return wrap(text, _WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=False)


def _verdict(facts: Facts) -> str:
    result, header = facts.result, facts.record.header
    verdict = click.style(str(result.verdict).upper(), fg=_COLOURS[result.verdict], bold=True)
    return f"{verdict}  {facts.total.score}  ({one_line(header.target)}, version {one_line(header.version)})"


def _in_brief(facts: Facts) -> Iterator[str]:
    yield _verdict(facts)
    yield from wrap(visible(facts.result.explanation), _WIDTH)
    for name, words in facts.headline.items():
        if name in _SAID_IN_BRIEF:
            yield from _wrapped(f"{name}: {one_line(words, _SHOWN_WORDS)}", "  ", "    ")
    for problem in facts.problems[:_SHOWN]:
        yield f"  {problem.kind}: {one_line(problem.name)}: {one_line(problem.detail)}"
    yield from _more(len(facts.problems) - _SHOWN)
    if facts.warnings:
        yield f"  warning: {one_line(facts.warnings[0], _SHOWN_WORDS)}"
        yield from _more(len(facts.warnings) - 1)
    for cause in facts.causes[:_SHOWN]:
        also = f" (and {plural(len(cause.others), 'more requirement')})" if cause.others else ""
        yield f"{_first_line(cause.head)}: {failure_in_words(cause.check)}{also}"
    yield from _more(len(facts.causes) - _SHOWN)


def _areas(facts: Facts) -> Iterator[str]:
    """Yield the verdict of each area, unless the verdict of the run applies to all."""
    if facts.result.verdict in (RunVerdict.CONFORMANT, RunVerdict.COULD_NOT_RUN):
        return
    yield ""
    yield _bold("Requirements by area") + " (not tests: a test can fail a requirement of another area)"
    for tally in facts.areas:
        if tally.verdict is not None:
            verdict = click.style(f"{tally.verdict:15}", fg=_COLOURS[tally.verdict])
            yield f"  {visible(tally.name):32} {verdict} {tally.score}"


def _problems(facts: Facts) -> Iterator[str]:
    lines = [f"{problem.kind}: {one_line(problem.name)}: {one_line(problem.detail)}" for problem in facts.problems]
    lines += [f"warning: {one_line(warning)}" for warning in facts.warnings]
    if not lines:
        return
    yield ""
    yield _bold(f"About the run ({len(lines)})")
    yield from (f"  {line}" for line in lines[:_SHOWN])
    yield from _more(len(lines) - _SHOWN)


def _failed(facts: Facts) -> Iterator[str]:
    if not facts.failed:
        return
    yield ""
    yield _bold(facts.failed_in_brief)
    for cause in facts.causes[:_SHOWN]:
        yield from _cause(cause)
    yield from _more(len(facts.causes) - _SHOWN)


def _cause(cause: Cause) -> Iterator[str]:
    stated = cause.head.requirement
    yield _first_line(cause.head)
    yield from (f"    {line}" for line in wrap(visible(stated.statement), _WIDTH - 4))
    yield f"    {visible(stated.section)}"
    for name, value in said(cause.check).items():
        yield f"      {name:9} {one_line(value, _SHOWN_WORDS)}"
    yield from (f"      {clip(command, _SHOWN_WORDS * 2)}" for command in to_repeat(cause.check).commands)
    if cause.others:
        yield f"      {cause.same} violates {plural(len(cause.others), 'more requirement')}:"
        yield from (f"    {_first_line(row)}" for row in cause.others[:_SHOWN])
        yield from _more(len(cause.others) - _SHOWN)
    others = len(cause.further)
    if others:
        yield f"      {plural(others, 'more check')} of it failed"


def _first_line(row: RequirementVerdict) -> str:
    weighed = f"  ({visible(weight(row))})" if weight(row) else ""
    name = click.style(visible(row.requirement.id), fg="red" if row.is_violation else "yellow")
    return f"  {name}{weighed}"


def _gaps(facts: Facts) -> Iterator[str]:
    if not facts.gaps:
        return
    yield ""
    yield _bold(f"Not verified ({facts.total.open})")
    for reason, number in facts.gaps.items():
        yield f"  {number:5} {reason}"
        waited_for = facts.kept_open_by(reason)
        for gap in waited_for[:_SHOWN_CAUSES]:
            words = f"{gap.owed}: {one_line(gap.detail, _SHOWN_DETAIL)}"
            yield from _wrapped(words, " " * 10, " " * 14)
        if len(waited_for) > _SHOWN_CAUSES:
            yield f"{'':10}and {plural(len(waited_for) - _SHOWN_CAUSES, 'other reason')}, see the report"
    closed = [gap for gap in facts.gap_groups if gap.paste and gap.owed]
    if closed:
        yield ""
        yield _bold("Add to the profile, what closes most first")
    for gap in closed[:_SHOWN_GAPS]:
        where = "actors" if gap.paste.strip().partition(":")[0] in ACTORS else "fixtures"
        yield from _wrapped(f"{gap.weight}, below `{where}:`: {one_line(gap.detail, _SHOWN_WORDS)}", "  # ", "  # ")
        yield from gap.paste.splitlines()
    yield from _more(len(closed) - _SHOWN_GAPS)


def _more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"  ... and {number} more, see the report"


def _place(folder: Path) -> Iterator[str]:
    page = folder / "index.html"
    if page.is_file() or reports_in(folder):  # otherwise none could be written, which was already reported
        yield ""
        yield f"Report: {page if page.is_file() else folder}"
