"""`report.json`: the whole report for programs, valid against `conformance/contract/schemas/report.schema.json`."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import with_values
from conformance.results.record import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.reports.facts import Facts, Tally
    from conformance.results.record import Header
    from conformance.results.verdicts import RequirementVerdict

#: Raised by every change of the document that its readers must follow.
REPORT_FORM = 2


def render(facts: Facts) -> Iterator[str]:
    """Yield the report as JSON text, piece by piece, because that of a large record would not fit into memory."""
    head, _, end = _text({**_about(facts), "requirements": []}).rpartition("[]")
    yield head
    mark = "[\n"
    for row in facts.result.rows:
        yield f"{mark}{indent(_text(_requirement(row)), '    ')}"
        mark = ",\n"
    yield ("\n  ]" if facts.result.rows else "[]") + end + "\n"


def _text(data: Any) -> str:
    return json.dumps(with_values(data, _writable), ensure_ascii=False, indent=2, allow_nan=False)


def _about(facts: Facts) -> dict[str, Any]:
    """Return everything except the requirements as plain JSON data."""
    result, footer = facts.result, facts.record.footer
    return {
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
        "timeline": [
            {**asdict(entry.item), **_of(entry, "reached", "state", "detail", "verdict")} for entry in facts.timeline
        ],
        "readiness": facts.record.readiness,
        "warnings": facts.warnings,
        "problems": [asdict(problem) for problem in facts.problems],
    }


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


def _requirement(row: RequirementVerdict) -> dict[str, Any]:
    stated = row.requirement
    return {
        **_of(stated, "id", "area", "level", "kind", "section", "statement", "when", "selected"),
        **_of(row, "verdict", "reason", "detail"),
        "tests": stated.tests,
        "known_failure": asdict(stated.known_failure) if stated.known_failure else None,
        "checks_passed": row.passed,
        "failures": [
            {
                **_of(check, "test", "claimed", "detail", "expected", "actual", "place"),
                "evidence": [asdict(exchange) for exchange in check.evidence],
            }
            for check in row.failures
        ],
        "observations": row.observations,
    }


def _of(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def _writable(value: Any) -> Any:
    """Return a value that JSON has; another one, such as infinity, becomes text."""
    is_number = isinstance(value, float) and math.isfinite(value)
    return value if value is None or is_number or isinstance(value, str | int) else str(value)
