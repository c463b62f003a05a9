"""`index.html`: the report for people, one file that needs no network and no server."""

from __future__ import annotations

import json

from conformance.reports.facts import SHOWN_FAILURES, Facts
from conformance.reports.pages import template
from conformance.results.grouping import grouped
from conformance.results.verdicts import Verdict

_SHOWN_BODY = 20_000
_LEAST_BODY = 200
#: Total characters of bodies: so a page with many failures can still be mailed, and filtered without delay.
_BODIES = 1_500_000


def render(facts: Facts) -> str:
    """Return the report as one page with its style and script inside."""
    header = facts.record.header
    return template("report.html.j2").render(
        facts=facts,
        header=header,
        footer=facts.record.footer,
        result=facts.result,
        total=facts.total,
        upgrade=facts.record.readiness,
        profile=json.dumps(header.profile, indent=2, ensure_ascii=False, default=str),
        verdicts=tuple(verdict for verdict in Verdict if facts.result.counts[verdict]),
        shown_failures=SHOWN_FAILURES,
        shown_body=_shown_body(facts),
        causes_by_area=grouped((cause.head.requirement.area, cause) for cause in facts.causes).items(),
    )


def _shown_body(facts: Facts) -> int:
    """Return how many characters of a body, or of a command, are shown: fewer if there are many."""
    shown = sum(
        len(check.evidence) for cause in facts.causes for check in (cause.check, *cause.further[:SHOWN_FAILURES])
    )
    return max(_LEAST_BODY, min(_SHOWN_BODY, _BODIES // (3 * shown + 1)))
