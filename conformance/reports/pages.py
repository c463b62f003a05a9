"""Shared parts of the reports made from templates: pages that need no network and escape everything, and Markdown."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from textwrap import wrap

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, select_autoescape
from markupsafe import Markup

from conformance.reports.facts import failure_in_words, standing, weight, why
from conformance.results.sequence import to_repeat
from conformance.results.text import clip, one_line, plural, visible

_WIDTH = 110
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~])")


@cache
def template(name: str) -> Template:
    """Return a template of the folder `templates`."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(["html.j2", "svg.j2"]),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        clip=clip,
        breakable=breakable,
        code=code,
        fenced=fenced,
        visible=visible,
        words=words,
        wrapped=wrapped,
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


def wrapped(text: object, first: str = "", later: str = "", *, hyphens: bool = False) -> str:
    """Return a text in lines for the terminal, each with an indent, and broken at spaces or also at `hyphens`."""
    return "\n".join(
        wrap(visible(text), _WIDTH, initial_indent=first, subsequent_indent=later, break_on_hyphens=hyphens)
    )


def _shown(value: object) -> object:
    """Escape what a browser would not show; None becomes empty. Markup has been escaped before."""
    return value if isinstance(value, Markup) else visible(value)


# -- Markdown ----------------------------------------------------------------------------------------------------------


def words(text: object) -> str:
    """Return a text as plain words on one line, without any meaning in Markdown."""
    return _MARKUP.sub(r"\\\1", " ".join(visible(text).split()))


def code(text: object) -> str:
    """Return a text as code on one line, whatever backticks it contains."""
    shown = one_line(text) or "-"
    ticks = _ticks(shown, 1)
    padding = " " if len(ticks) > 1 else ""
    return f"{ticks}{padding}{shown}{padding}{ticks}"


def fenced(text: str, language: str) -> str:
    """Return a text as a block of code."""
    return f"{_ticks(text, 3)}{language}\n{text}\n{_ticks(text, 3)}"


def _ticks(text: str, least: int) -> str:
    """Return more backticks than a text contains in a row."""
    return "`" * max(least, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
