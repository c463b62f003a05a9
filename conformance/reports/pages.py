"""Shared parts of the HTML reports: templates that escape everything, and pages that need no network."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from conformance.reports.facts import failure_in_words, standing, weight, why
from conformance.results.sequence import to_repeat
from conformance.results.text import clip, one_line, plural, visible


@cache
def template(name: str) -> Template:
    """Return a template of the folder `templates`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        clip=clip,
        breakable=breakable,
        failure=failure_in_words,
        one_line=one_line,
        plural=plural,
        to_repeat=to_repeat,
        slug=lambda words: str(words).replace(" ", "-"),
        standing=lambda row: standing(row).replace(" ", "-"),
        weight=weight,
        why=why,
    )
    return environment.get_template(name)


def breakable(path: object) -> Markup:
    """Return a path that breaks only before a slash, if the text between two slashes fits the line."""
    return Markup("<wbr>/").join(visible(path).split("/"))


def _shown(value: object) -> object:
    """Escape what a browser would not show; None becomes empty. Markup has been escaped before."""
    return value if isinstance(value, Markup) else visible(value)
