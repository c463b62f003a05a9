"""`earl.jsonld`: W3C EARL 1.0, the exchange format of standards bodies for results of conformance tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.reports.facts import why
from conformance.results.text import one_line, visible
from conformance.results.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reports.facts import Facts
    from conformance.results.verdicts import RequirementVerdict

_CONTEXT = {
    "earl": "http://www.w3.org/ns/earl#",
    "dct": "http://purl.org/dc/terms/",
    "assertedBy": {"@id": "earl:assertedBy", "@type": "@id"},
    "subject": {"@id": "earl:subject", "@type": "@id"},
    "mode": {"@id": "earl:mode", "@type": "@id"},
    "outcome": {"@id": "earl:outcome", "@type": "@id"},
    "test": "earl:test",
    "result": "earl:result",
    "info": "earl:info",
    "title": "dct:title",
    "description": "dct:description",
    "date": "dct:date",
    "version": "dct:hasVersion",
}
_OUTCOMES: Mapping[Verdict, str] = {
    Verdict.PASSED: "earl:passed",
    Verdict.FAILED: "earl:failed",
    Verdict.UNSTABLE: "earl:cantTell",
    Verdict.INCONCLUSIVE: "earl:cantTell",
    Verdict.NOT_TESTED: "earl:untested",
    Verdict.NOTED: "earl:inapplicable",
    Verdict.NOT_APPLICABLE: "earl:inapplicable",
}


def render(facts: Facts) -> str:
    """Return the report as a graph: who asserts, about what, and one assertion for each requirement."""
    header = facts.record.header
    graph: list[dict[str, Any]] = [
        {"@id": "#suite", "@type": ["earl:Software", "earl:Assertor"], "title": "conformance", "version": header.suite},
        {
            "@id": "#target",
            "@type": "earl:TestSubject",
            "title": visible(header.target),
            "description": visible(f"{header.base_url}, version {header.version}, {header.edition}"),
            "version": [visible(text) for text in header.subjects],
        },
        {
            "@id": "#run",
            "@type": "earl:TestResult",
            "title": str(facts.result.verdict),
            "info": visible(facts.result.explanation),
            "date": visible(header.started),
            **({"description": visible(f"Merged {facts.merged}.")} if facts.merged else {}),
        },
    ]
    graph += [_assertion(row, header.contract) for row in facts.result.rows]
    return json.dumps({"@context": _CONTEXT, "@graph": graph}, ensure_ascii=False, indent=1) + "\n"


def _assertion(row: RequirementVerdict, contract: str) -> dict[str, Any]:
    stated = row.requirement
    words = why(row) or "; ".join(one_line(what) for what in row.observations)
    return {
        "@type": "earl:Assertion",
        "assertedBy": "#suite",
        "subject": "#target",
        "mode": "earl:automatic",
        "test": {
            "@id": f"urn:conformance:{quote(visible(contract))}:{quote(visible(stated.id))}",
            "@type": "earl:TestRequirement",
            "title": visible(stated.id),
            "description": visible(f"{stated.statement} ({stated.level}; {stated.section})"),
        },
        "result": {"@type": "earl:TestResult", "outcome": _OUTCOMES[row.verdict], **({"info": words} if words else {})},
    }
