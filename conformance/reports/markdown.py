"""`summary.md`: the main results of a run, short enough for a comment on a merge request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from conformance.reports.facts import Facts, Tally, weight
from conformance.results.sequence import to_repeat
from conformance.results.text import clip, one_line, plural, said, visible
from conformance.results.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.reports.causes import Cause
    from conformance.reports.facts import Facts, Tally
    from conformance.results.record import Check

# Comments of common services end at 65,536 characters; with these limits even a bad run stays below that.
_SHOWN_FAILED = 15
_SHOWN_OBSERVED = 20
_SHOWN_LINES = 10
#: For each reason, how many of the things that kept requirements open are shown.
_SHOWN_CAUSES = 3
_SHOWN_WORDS = 400
_SHOWN_CURL = 900
_COLUMNS = (
    ("failed", Verdict.FAILED),
    ("unstable", Verdict.UNSTABLE),
    ("inconclusive", Verdict.INCONCLUSIVE),
    ("not tested", Verdict.NOT_TESTED),
    ("noted", Verdict.NOTED),
    ("not applicable", Verdict.NOT_APPLICABLE),
)
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~])")


def render(facts: Facts) -> str:
    """Return the summary as Markdown; text from the target is written as code, so that it cannot act as markup."""
    parts = (_head(facts), _failed(facts), _gaps(facts), _observed(facts), _areas(facts), _run(facts))
    return "\n".join(line for part in parts for line in part)


def _head(facts: Facts) -> Iterator[str]:
    header, result = facts.record.header, facts.result
    yield f"## {words(header.target)}: {str(result.verdict).upper()}"
    yield ""
    yield f"**{facts.total.score}.** {words(result.explanation)}"
    yield ""
    for name, text in facts.headline.items():
        yield f"- {words(name)}: {code(text) if name == 'to repeat' else words(one_line(text))}"
    yield ""
    for problem in facts.problems[:_SHOWN_LINES]:
        yield f"- **{problem.kind}**: {code(problem.name)}: {code(problem.detail)}"
    for warning in facts.warnings[:_SHOWN_LINES]:
        yield f"- warning: {words(one_line(warning))}"
    yield from _more(len(facts.problems[_SHOWN_LINES:]) + len(facts.warnings[_SHOWN_LINES:]))
    if facts.problems or facts.warnings:
        yield ""


def _failed(facts: Facts) -> Iterator[str]:
    if not facts.failed:
        return
    yield f"### {facts.failed_in_brief}"
    yield ""
    for cause in facts.causes[:_SHOWN_FAILED]:
        yield from _cause(cause)
    yield from _more(len(facts.causes) - _SHOWN_FAILED)


def _cause(cause: Cause) -> Iterator[str]:
    row, stated = cause.head, cause.head.requirement
    weighed = f" ({words(weight(row))})" if weight(row) else ""
    yield f"#### {code(stated.id)}{weighed}"
    yield ""
    yield f"{words(clip(stated.statement, _SHOWN_WORDS))} *{words(stated.section)}*"
    yield ""
    yield from _block("text", _seen(cause.check))
    calls = [clip(command, _SHOWN_CURL) for command in to_repeat(cause.check).commands]
    if calls:
        yield from _block("sh", calls)
    if cause.others:
        names = ", ".join(code(other.requirement.id) for other in cause.others[:_SHOWN_LINES])
        more = f" and {len(cause.others) - _SHOWN_LINES} more" if len(cause.others) > _SHOWN_LINES else ""
        yield f"{words(cause.same)} violates {names}{more}."
        yield ""
    others = len(cause.further)
    if others:
        yield f"{plural(others, 'more check')} of it failed."
        yield ""


def _seen(check: Check) -> Iterator[str]:
    for name, value in said(check).items():
        yield f"{name + ':':10}{clip(value, _SHOWN_WORDS)}"
    yield f"{'test:':10}{one_line(check.test)}"


def _gaps(facts: Facts) -> Iterator[str]:
    if not facts.gaps:
        return
    yield f"### Not verified ({facts.total.open})"
    yield ""
    for reason, number in facts.gaps.items():
        yield f"- {number} {reason}"
        waited_for = facts.kept_open_by(reason)
        for gap in waited_for[:_SHOWN_CAUSES]:
            yield f"  - {gap.owed}: {code(one_line(gap.detail, 160))}"
        if len(waited_for) > _SHOWN_CAUSES:
            yield f"  - and {plural(len(waited_for) - _SHOWN_CAUSES, 'other reason')}, see the report"
    yield ""
    closed = [gap for gap in facts.gap_groups if gap.paste and gap.owed]
    if closed:
        yield "Add to the profile, what closes most first:"
        yield ""
        lines = (
            [f"  # {gap.weight}: {one_line(gap.detail)}", *gap.paste.splitlines()] for gap in closed[:_SHOWN_LINES]
        )
        yield from _block("yaml", [line for part in lines for line in part])


def _observed(facts: Facts) -> Iterator[str]:
    if not facts.observed:
        return
    yield "### What the target chose where the specification is silent"
    yield ""
    for row in facts.observed[:_SHOWN_OBSERVED]:
        others = len(row.observations) - 1
        more = f" and {others} more" if others else ""
        yield f"- {code(row.requirement.id)}: {code(one_line(row.observations[0], 200))}{more}"
    yield from _more(len(facts.observed) - _SHOWN_OBSERVED)
    yield ""


def _areas(facts: Facts) -> Iterator[str]:
    yield "### Areas"
    yield ""
    yield f"| area | verdict | verified | {' | '.join(name for name, _ in _COLUMNS)} |"
    yield f"|---|---|---|{'---:|' * len(_COLUMNS)}"
    for tally in facts.areas:
        yield _table_row(words(tally.name), tally)
    yield _table_row("**all**", facts.total)
    yield ""
    yield "Verified counts what is owed (level must); the other columns count every level."
    yield ""


def _table_row(name: str, tally: Tally) -> str:
    counts = " | ".join(str(tally.counts[verdict]) for _, verdict in _COLUMNS)
    return f"| {name} | {tally.verdict or '-'} | {tally.verified} of {tally.owed} | {counts} |"


def _run(facts: Facts) -> Iterator[str]:
    header, footer = facts.record.header, facts.record.footer
    drawn = facts.drawn_in_words
    ended = f"to {visible(footer.ended)}, {plural(footer.requests, 'request')}" if footer else "and cut off"
    yield (
        f"{code(header.base_url)}, version {words(header.version)}, {words(header.edition)}; "
        f"suite {words(header.suite)}, contract {code(header.contract)}, seed {code(header.seed)}; "
        f"{words(header.started)} {words(ended)}{f'; {drawn}' if drawn else ''}."
    )
    yield ""


def _more(number: int) -> Iterator[str]:
    if number > 0:
        yield f"... and {number} more; the report has them all."
        yield ""


def _block(language: str, lines: Iterable[str]) -> Iterator[str]:
    """Put lines in a fence with more backticks than any of them contains."""
    text = "\n".join(lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    yield f"{fence}{language}"
    yield text
    yield fence
    yield ""


def code(text: object) -> str:
    """Return a text as code on one line, whatever backticks it contains."""
    shown = one_line(text) or "-"
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    padding = " " if len(ticks) > 1 else ""
    return f"{ticks}{padding}{shown}{padding}{ticks}"


def words(text: object) -> str:
    """Return a text as plain words on one line, without any meaning in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(visible(text).split()))
