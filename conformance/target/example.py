"""The example of a profile: all actors, fixtures and features, generated from the table of names."""

from __future__ import annotations

from importlib.resources import files
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import yaml

from conformance.contract import Contract, Level
from conformance.target.names import PRESUMED, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target.names import Named

_WIDTH = 110
#: Features of the example that a service has anyway, or that follow from other keys of the profile.
_SAID_ELSEWHERE = ("enterprise_edition", "https")


def example_profile() -> str:
    """Return a commented profile to start from.

    What most of the suite needs is ready to be filled in; the rest is commented out, with what it makes testable.
    """
    frame = files("conformance.target").joinpath("example.yaml").read_text(encoding="utf-8")
    parts = {"# @actors": _actors, "# @fixtures": _fixtures, "# @features": _features}
    lines = (made for line in frame.splitlines() for made in (parts[line]() if line in parts else (line,)))
    return "\n".join(lines) + "\n"


def unlocked(name: str) -> int:
    """Return how many must requirements need an actor or fixture."""
    stated = Contract.load().requirements.values()
    return sum(entry.level is Level.MUST and name in entry.needs for entry in stated)


def as_yaml(name: str, value: Any) -> Iterator[str]:
    """Yield an entry of a profile as lines that can be pasted below `actors:` or `fixtures:`."""
    short = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
    if len(short) + len(name) < _WIDTH and not isinstance(value, list):
        yield f"  {name}: {short}"
        return
    yield f"  {name}:"
    for entry in value if isinstance(value, list) else [value]:
        text = yaml.safe_dump(entry, default_flow_style=None, sort_keys=False, width=_WIDTH - 10).splitlines()
        mark = "- " if isinstance(value, list) else ""
        yield from (f"    {(mark if not number else '  ' if mark else '')}{line}" for number, line in enumerate(text))


def pasted(row: Named) -> Iterator[str]:
    """Yield an actor or fixture of the table as lines of a profile, with values to be replaced."""
    is_actor = any(row is actor for actor in TABLE["actors"])
    token = {"token": f"${{TOKEN_{row.name.upper()}}}"} if is_actor else {}
    yield from as_yaml(row.name, {**row.example, **token} if is_actor else row.example)


def _actors() -> Iterator[str]:
    yield "actors:"
    for row in TABLE["actors"]:
        yield from _commented(row)


def _fixtures() -> Iterator[str]:
    seen: set[str] = set()
    for row in sorted(TABLE["fixtures"], key=lambda row: not row.is_core):
        if row.example is not None:
            yield from _commented(row, with_fields=row.kind not in seen)
            seen.add(row.kind)


def _commented(row: Named, *, with_fields: bool = False) -> Iterator[str]:
    number = unlocked(row.name) + (unlocked(row.each) if row.each else 0)
    unlocks = f" (unlocks {number} must{'s' if number > 1 else ''})" if number else ""
    yield from wrap(f"{row.what}{unlocks}", _WIDTH, initial_indent="  # ", subsequent_indent="  # ")
    for entry in row.fields if with_fields else ():
        needed = "must be given" if entry.is_required else "may be left out"
        yield f"  #   {entry.name} ({needed}): {entry.what}"
    for line in pasted(row):
        yield line if row.is_core else f"  # {line[2:]}"


def _features() -> Iterator[str]:
    for row in TABLE["features"]:
        value = "true" if row.name in PRESUMED else "false"
        yield from wrap(row.what, _WIDTH, initial_indent="  # ", subsequent_indent="  # ")
        yield f"  {'# ' if row.name in _SAID_ELSEWHERE else ''}{row.name}: {value}"
