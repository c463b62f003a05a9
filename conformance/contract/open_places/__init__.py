"""Where the specification is silent or contradicts itself, as `openapi/open-places.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.contract.folders import HOME
from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = HOME / "docs" / "open-places.md"
"""The page generated from the data, in a checkout."""


class Danger(StrEnum):
    """How likely a test that overlooks an open place is to fail a correct service, or to pass a faulty one."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """A place where the text leaves a choice, and how the suite treats it."""

    id: str
    where: str
    """Headings of the specification, outermost first."""
    silent_on: str
    treatment: str
    danger: Danger
    requirements: tuple[str, ...]
    """The results that show the treatment: judged requirements and notes."""
    varied_by: tuple[str, ...] = ()
    """The legal variants of the reference that choose differently here; the suite must pass on each."""
    not_varied: str = ""
    """Why there is no such variant, if there is none."""


def load_open_places(file: Path) -> tuple[OpenPlace, ...]:
    """Read the open places in the order of the file; raise ContractError or UsageError when it is broken."""
    rows = read_checked(file, "open-places.schema.json")["open_places"]
    return tuple(row_of(OpenPlace, row, danger=Danger(row["danger"])) for row in rows)


def page(places: Iterable[OpenPlace], notes: frozenset[str]) -> str:
    """Return the page as Markdown: a table for each section; `notes` are the requirements that are never judged."""
    from jinja2 import Environment  # noqa: PLC0415 - slow to load, and only this page needs it

    ordered = tuple(places)
    environment = Environment(autoescape=False, trim_blocks=True, keep_trailing_newline=True)  # noqa: S701 - no HTML
    environment.filters.update(cell=_cell, named=lambda name: f"`{name}`{_cell('*') if name in notes else ''}")
    text = Path(__file__).with_name("page.md.j2").read_text(encoding="utf-8")
    sections = [(where, list(group)) for where, group in groupby(ordered, key=lambda place: place.where)]
    return environment.from_string(text).render(places=ordered, dangers=Danger, sections=sections)


def _cell(text: str) -> str:
    """Prevent Markdown from reading field names and vertical bars in a sentence as markup."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
