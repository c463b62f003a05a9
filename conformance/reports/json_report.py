"""`report.json`: the whole report for programs, valid against `conformance/contract/schemas/report.schema.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Any

from conformance.results.record import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reports.facts import Facts, Tally
    from conformance.results.record import Check, Header
    from conformance.results.verdicts import RequirementVerdict
    from conformance.versions.timeline import TimelineItem

#: Raised by every change of the document that its readers must follow.
REPORT_FORM = 2


def render(facts: Facts) -> Iterator[str]:
    """Yield the report as JSON text, piece by piece, because that of a large record would not fit into memory."""
    head, _, end = _text({**_about(facts), "requirements": []}).rpartition("[]")
    yield head
    mark = "[\n"
    for row in facts.result.rows:
        yield f"{mark}{indent(_text(_plain(_requirement(row))), '    ')}"
        mark = ",\n"
    yield ("\n  ]" if facts.result.rows else "[]") + end + "\n"


def _text(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False)


def _about(facts: Facts) -> dict[str, Any]:
    """Return everything except the requirements as plain JSON data."""
    result, footer = facts.result, facts.record.footer
    data = {
        "form": REPORT_FORM,
        "verdict": result.verdict,
        "explanation": result.explanation,
        "headline": facts.headline,
        "exit_code": int(result.exit_code),
        "truncated": facts.record.truncated,
        "stopped": footer.detail if footer else None,
        **_counts(facts.total),
        "gaps": facts.gaps,
        "areas": [{"area": tally.name, "verdict": tally.verdict, **_counts(tally)} for tally in facts.areas],
        "run": _run(facts.record.header, facts),
        "timeline": [_item(entry) for entry in facts.timeline],
        "readiness": facts.record.readiness,
        "warnings": facts.warnings,
        "problems": [asdict(problem) for problem in facts.problems],
    }
    plain: dict[str, Any] = _plain(data)
    return plain


def _counts(tally: Tally) -> dict[str, Any]:
    return {
        "owed": {
            "requirements": tally.owed,
            "verified": tally.verified,
            "violated": tally.violated,
            "open": tally.open,
        },
        "counts": tally.counts,
    }


def _run(header: Header, facts: Facts) -> dict[str, Any]:
    footer = facts.record.footer
    about = asdict(header)
    for elsewhere in ("form", "warnings", "started_in"):
        del about[elsewhere]
    return {
        **about,
        "ended": footer.ended if footer else None,
        "seconds": footer.seconds if footer else None,
        "requests": footer.requests if footer else sum(end.requests or 0 for end in facts.record.tests),
        "tests": _tests(facts),
        "network": asdict(footer.network) if footer and footer.network else None,
        "drawn": facts.drawn,
    }


def _tests(facts: Facts) -> dict[str, Any]:
    """Return the number of planned tests by result, and each test that was removed from the run or not started."""
    ends = facts.record.tests
    missing = [end for end in ends if end.outcome in (TestOutcome.DESELECTED, TestOutcome.NOT_BEGUN)]
    return {
        "planned": len(ends),
        "outcomes": {outcome: sum(end.outcome is outcome for end in ends) for outcome in TestOutcome},
        "missing": [{"test": end.test, "outcome": end.outcome, "cause": end.detail} for end in missing],
    }


def _item(entry: TimelineItem) -> dict[str, Any]:
    return {
        **asdict(entry.item),
        "reached": entry.reached,
        "state": entry.state,
        "detail": entry.detail,
        "verdict": entry.verdict,
    }


def _requirement(row: RequirementVerdict) -> dict[str, Any]:
    stated = row.requirement
    return {
        "id": stated.id,
        "area": stated.area,
        "level": stated.level,
        "kind": stated.kind,
        "section": stated.section,
        "statement": stated.statement,
        "when": stated.when,
        "selected": stated.selected,
        "verdict": row.verdict,
        "reason": row.reason,
        "detail": row.detail,
        "tests": stated.tests,
        "known_failure": asdict(stated.known_failure) if stated.known_failure else None,
        "checks_passed": row.passed,
        "failures": [_failure(check) for check in row.failures],
        "observations": row.observations,
    }


def _failure(check: Check) -> dict[str, Any]:
    kept = ("test", "claimed", "detail", "expected", "actual", "place")
    return {
        **{name: getattr(check, name) for name in kept},
        "evidence": [asdict(exchange) for exchange in check.evidence],
    }


def _plain(value: Any) -> Any:
    """Convert a value to plain JSON data; values that JSON does not have, such as infinity, become text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value)
