"""Where the specification is silent or contradicts itself, as `openapi/open-places.yaml` lists it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING

from conformance.contract.folders import HOME
from conformance.contract.yaml_files import read_checked, row_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PAGE = HOME / "docs" / "open-places.md"
"""The page generated from the data, in a checkout."""

_HEAD = """\
# Where the specification is silent

The specification leaves some things open, and contradicts itself in others. This page lists these places and says how
the suite treats each of them: what a service may choose without failing, and what is always a failure. What a service
chooses is *recorded* in the report of a run, and can be compared between two runs.

Danger says how likely a test that ignores the place is to fail a correct service, or to pass a faulty one.
`conformance explain ID` describes a requirement; requirements marked with \\* are recorded and never judged.

*Varied by* names the legal variants of the reference that choose otherwise at a place (`conformance/proof/variants/`
describes each). The suite must find no fault in any of them: `python -m conformance.proof.variants FILE` tests all.

Made from `openapi/open-places.yaml` by `python -m conformance.contract.open_places`; change it there.
"""
_MARK = "\\*"


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
    ordered = tuple(places)
    counts = ", ".join(f"{sum(place.danger is danger for place in ordered)} {danger}" for danger in Danger)
    varied = sum(bool(place.varied_by) for place in ordered)
    lines = [f"{len(ordered)} places, by danger: {counts}. {varied} of them are varied."]
    for where, group in groupby(ordered, key=lambda place: place.where):
        lines += ["", f"## {where}", "", *_table(group, notes)]
    return "\n".join((_HEAD, *lines, ""))


def _table(places: Iterable[OpenPlace], notes: frozenset[str]) -> Iterator[str]:
    yield "| place | what is open | what the suite does | danger | varied by | requirements |"
    yield "|---|---|---|---|---|---|"
    for place in places:
        named = "<br>".join(f"`{name}`{_MARK if name in notes else ''}" for name in place.requirements)
        anchor = f'<a id="{place.id}"></a>{place.id}'
        varied = "<br>".join(f"`{name}`" for name in place.varied_by) or f"none: {_cell(place.not_varied)}"
        cells = (anchor, _cell(place.silent_on), _cell(place.treatment), place.danger, varied, named)
        yield f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Prevent Markdown from reading field names and vertical bars in a sentence as markup."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
