"""`summary.md`: the main results of a run, short enough for a comment on a merge request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.reports.pages import template
from conformance.results.text import clip, one_line
from conformance.results.verdicts import Verdict

if TYPE_CHECKING:
    from conformance.reports.facts import Facts, Tally
    from conformance.results.record import Check

# Comments of common services end at 65,536 characters; with these limits, and those of the template, even a bad run
# stays below that.
_SHOWN_GAPS = 10
_SHOWN_WORDS = 400
_COLUMNS = (
    Verdict.FAILED,
    Verdict.UNSTABLE,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_TESTED,
    Verdict.NOTED,
    Verdict.NOT_APPLICABLE,
)


def render(facts: Facts) -> str:
    """Return the summary as Markdown; text from the target is written as code, so that it cannot act as markup."""
    return template("summary.md.j2").render(
        facts=facts, columns=_COLUMNS, counts=_counts, seen=_seen, pasted=_pasted(facts)
    )


def _counts(tally: Tally) -> str:
    return " | ".join(str(tally.counts[verdict]) for verdict in _COLUMNS)


def _seen(check: Check) -> str:
    """Return what a check saw, a line for each part."""
    shown = {name: clip(value, _SHOWN_WORDS) for name, value in check.said.items()} | {"test": one_line(check.test)}
    return "\n".join(f"{name + ':':10}{value}" for name, value in shown.items())


def _pasted(facts: Facts) -> str:
    """Return the lines of a profile that close gaps, what closes most first."""
    closed = [gap for gap in facts.gap_groups if gap.paste and gap.owed]
    return "\n".join(f"  # {gap.weight}: {one_line(gap.detail)}\n{gap.paste}" for gap in closed[:_SHOWN_GAPS])
