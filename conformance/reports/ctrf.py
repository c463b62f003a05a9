"""`ctrf.json`: the Common Test Report Format, which dashboards and bots of many build servers read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.reports.facts import Facts, Standing, milliseconds, standing, why
from conformance.results.text import visible
from conformance.results.verdicts import RequirementVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The version of the format's schema that the document follows.
SPECIFICATION = "0.0.0"

_STATUSES: Mapping[Standing, str] = {
    Standing.VERIFIED: "passed",
    Standing.VIOLATED: "failed",
    Standing.WARNING: "other",
    Standing.UNSTABLE: "other",
    Standing.BROKEN: "other",
    Standing.OPEN: "pending",
    Standing.NOTED: "skipped",
    Standing.NOT_APPLICABLE: "skipped",
}


def render(facts: Facts) -> str:
    """Return the report as CTRF: a test for each requirement.

    Passed and failed are verified and violated requirements. Pending are those of level must and hints that were not
    verified. Other are hints that were not followed, unstable results, errors of the suite and, with --fail-on new,
    known failures. The rest is skipped.
    """
    header, footer = facts.record.header, facts.record.footer
    start = milliseconds(header.started)
    stop = max(start, milliseconds(footer.ended)) if footer else start
    tests = [_test(facts, row) for row in facts.result.rows]
    statuses = [test["status"] for test in tests]
    data = {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "generatedBy": "conformance",
        "results": {
            "tool": {"name": "conformance", "version": visible(header.suite)},
            "summary": {
                "tests": len(tests),
                **{name: statuses.count(name) for name in ("passed", "failed", "skipped", "pending", "other")},
                "suites": len(facts.areas),
                "start": start,
                "stop": stop,
                "extra": {"verdict": str(facts.result.verdict), "explanation": visible(facts.result.explanation)},
            },
            "tests": tests,
            "environment": {
                "reportName": visible(f"Conformance of {header.target}"),
                "appName": visible(header.target),
                "appVersion": visible(header.version),
                "testEnvironment": visible(header.base_url),
                "healthy": not facts.problems,
                "extra": {
                    "seed": header.seed,
                    "contract": visible(header.contract),
                    "subjects": list(header.subjects),
                    **({"merged": visible(facts.merged)} if facts.merged else {}),
                    "problems": [visible(f"{entry.kind}: {entry.name}: {entry.detail}") for entry in facts.problems],
                },
            },
        },
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _test(facts: Facts, row: RequirementVerdict) -> dict[str, Any]:
    stated = row.requirement
    test: dict[str, Any] = {
        "testId": visible(stated.id) or "-",
        "name": visible(stated.id) or "-",
        "status": "other" if facts.excuses(row) else _STATUSES[standing(row)],
        "rawStatus": str(row.verdict),
        "duration": round(facts.seconds.get(stated.id, 0.0) * 1000),
        "suite": [visible(stated.area) or "-"],
        "tags": [stated.level, stated.kind],
        "extra": {"statement": visible(stated.statement), "section": visible(stated.section), "reason": row.reason},
    }
    if why(row):
        test["message"] = why(row)
    if row.failures:
        test["trace"] = "\n".join(visible(entry.curl) for entry in row.failures[0].evidence)
    if row.verdict is Verdict.UNSTABLE:
        test["flaky"] = True
    return test
