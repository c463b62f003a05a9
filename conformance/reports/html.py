"""`index.html`: the report for people, one file that needs no network and no server."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from conformance.reports.facts import SHOWN_FAILURES, Facts, standing, weight, why
from conformance.results.text import clip, plural, visible
from conformance.results.verdicts import Verdict

_TEMPLATE = "report.html.j2"
_SHOWN_BODY = 20_000


def render(facts: Facts) -> str:
    """Return the report as one page with its style and script inside."""
    header = facts.record.header
    return _template().render(
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


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        clip=clip,
        plural=plural,
        slug=lambda words: str(words).replace(" ", "-"),
        standing=lambda row: standing(row).replace(" ", "-"),
        weight=weight,
        why=why,
    )
    return environment.get_template(_TEMPLATE)


def _shown(value: object) -> object:
    """Escape what a browser would not show; None is nothing. Markup has been through here already."""
    return value if isinstance(value, Markup) else visible(value)
