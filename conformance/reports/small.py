"""The small formats: a badge, the totals for a history, and annotations for a build server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.reports.facts import failure_in_words
from conformance.reports.pages import template
from conformance.results.grouping import grouped
from conformance.results.sequence import to_repeat
from conformance.results.text import in_brief, one_line, plural, visible
from conformance.results.verdicts import RunVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reports.causes import Cause
    from conformance.reports.facts import Facts, Tally

#: Raised by every change of the totals that their readers must follow.
TOTALS_FORM = 1

# A build server shows ten of a kind for a step; the last one names the number of the others.
_SHOWN = 9
#: So many names fit a line.
_FIT_A_LINE = 5
_COLOURS = {
    RunVerdict.CONFORMANT: "#1a7f43",
    RunVerdict.SELECTION_HOLDS: "#1a7f43",
    RunVerdict.NON_CONFORMANT: "#c02626",
}
_OTHER_COLOUR = "#9a5b00"
_LETTER = 6.6
"""Average width of a letter of the badge, in pixels."""


def badge(facts: Facts) -> str:
    """Return an image for a README: the verdict, and how many of the owed requirements were verified."""
    texts = ("conformance", f"{facts.result.verdict}, {facts.total.verified} of {facts.total.owed}")
    widths = [round(len(text) * _LETTER) + 14 for text in texts]
    colour = _COLOURS.get(facts.result.verdict, _OTHER_COLOUR)
    drawn = template("badge.svg.j2").render(texts=texts, widths=widths, colour=colour)
    return "".join(line.strip() for line in drawn.splitlines()) + "\n"


def totals(facts: Facts) -> str:
    """Return the data of a run that a history of many runs needs, valid against `totals.schema.json`."""
    header, footer = facts.record.header, facts.record.footer
    data: dict[str, Any] = {
        "form": TOTALS_FORM,
        "target": visible(header.target),
        "started": visible(header.started),
        "version": visible(header.version),
        "suite": visible(header.suite),
        "contract": visible(header.contract),
        "subjects": list(header.subjects),
        "merged": [visible(shard) for shard in header.merged],
        "selection": [visible(option) for option in header.selection],
        "verdict": str(facts.result.verdict),
        "seconds": footer.seconds if footer else None,
        "requests": footer.requests if footer else None,
        "total": _tally(facts.total),
        "areas": {visible(tally.name): _tally(tally) for tally in facts.areas},
        "failed": [visible(row.requirement.id) for row in facts.result.rows if row.is_violation],
        "unstable": [visible(row.requirement.id) for row in facts.result.rows_with(Verdict.UNSTABLE)],
    }
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "verdict": tally.verdict,
        "owed": tally.owed,
        "verified": tally.verified,
        "violated": tally.violated,
        "open": tally.open,
        "counts": tally.counts,
    }


def workflow_commands(facts: Facts) -> str:
    """Return workflow commands of GitHub: an error for each cause, and a warning for each reason for open requirements.

    A cause in the baseline is a warning as well.
    """
    return "".join(f"{line}\n" for line in _commands(facts))


def _commands(facts: Facts) -> Iterator[str]:
    violated = [cause for cause in facts.causes if cause.head.is_violation]
    for cause in violated[:_SHOWN]:
        also = f" Also violates: {', '.join(row.requirement.id for row in cause.others)}." if cause.others else ""
        text = f"{cause.head.requirement.statement}\n{failure_in_words(cause.check)}{also}"
        calls = to_repeat(cause.check).commands
        yield _command(_kind(cause), cause.head.requirement.id, "\n".join((text, *calls)))
    for kind, hidden in grouped((_kind(cause), cause) for cause in violated[_SHOWN:]).items():
        yield _command(kind, "more failures", f"{plural(len(hidden), 'more failure')}, see the report")
    for problem in facts.problems[:_SHOWN]:
        yield _command("warning", f"{problem.kind}: {problem.name}", problem.detail)
    for reason, number in list(facts.gaps.items())[: max(1, _SHOWN - len(facts.problems))]:
        names = [row.requirement.id for row in facts.unverified[reason] if row.is_gap]
        yield _command("warning", f"{number} not verified: {reason}", in_brief(names, _FIT_A_LINE))
    told = f"{facts.total.score}. {facts.result.explanation} Requirements: {facts.counts_in_words}."
    yield _command("notice", f"{facts.record.header.target}: {facts.result.verdict}", told)


def _kind(cause: Cause) -> str:
    return "warning" if cause.head.is_known else "error"


def _command(kind: str, title: str, text: str) -> str:
    """Return one workflow command; characters that would end it early are escaped."""
    escaped = visible(text).replace("%", "%25").replace("\n", "%0A")
    name = one_line(title, 120).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{escaped}"
