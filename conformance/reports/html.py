"""`index.html`: the report for people, one file that needs no network and no server."""

from __future__ import annotations

import json

from conformance.reports.facts import SHOWN_FAILURES, Facts
from conformance.reports.pages import template
from conformance.results.verdicts import Verdict

_TEMPLATE = "report.html.j2"
_SHOWN_BODY = 20_000


def render(facts: Facts) -> str:
    """Return the report as one page with its style and script inside."""
    header = facts.record.header
    return template(_TEMPLATE).render(
        facts=facts,
        header=header,
        footer=facts.record.footer,
        result=facts.result,
        total=facts.total,
        upgrade=facts.record.readiness,
        profile=json.dumps(header.profile, indent=2, ensure_ascii=False, default=str),
        verdicts=tuple(verdict for verdict in Verdict if facts.result.counts[verdict]),
        shown_failures=SHOWN_FAILURES,
        shown_body=_SHOWN_BODY,
    )
