"""Several runs side by side, each of another target: differences in requirements, observations and speed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from itertools import combinations, compress
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.reports.diff import Side, chose_otherwise
from conformance.reports.pages import template
from conformance.results.text import one_line, plural
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.reports.facts import Facts
    from conformance.results.verdicts import RequirementVerdict

#: Raised whenever the JSON document changes so that its readers must change too.
COMPARISON_FORM = 1
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One thing, with the result of each target, in the order of the targets; empty if it is not in a run."""

    name: str
    level: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between several targets."""

    targets: tuple[str, ...]
    """A unique name for each."""
    sides: tuple[Side, ...]
    areas: tuple[Row, ...]
    """The verdict of each area, equal or not."""
    requirements: tuple[Row, ...]
    """Requirements whose verdicts differ."""
    observations: tuple[Row, ...]
    """Choices of the targets where the specification is silent, as far as they differ."""
    speed: tuple[Row, ...]
    """Milliseconds in which half of the calls of an operation were answered, and 95 of 100."""
    alike: int
    """Number of requirements with the same verdict for all targets."""
    not_run: tuple[str, ...]
    """The targets that could not be tested, so that their missing results do not count as differences."""

    @property
    def summary(self) -> str:
        """The comparison in one sentence."""
        if len(self.sides) - len(self.not_run) < _FEWEST:
            return f"nothing to compare: {', '.join(self.not_run)} could not be tested"
        differ = plural(len(self.requirements), "requirement")
        chosen = plural(len(self.observations), "observation")
        targets = plural(len(self.sides), "target")
        left_out = "".join(f"; {name} could not be tested, and is left out of this" for name in self.not_run)
        return f"{targets}: {differ} and {chosen} differ, {self.alike} requirements are alike{left_out}"


def compare_targets(runs: Mapping[str, Facts]) -> Comparison:
    """Compare runs by the name of their target; raise UsageError when there are fewer than two."""
    if len(runs) < _FEWEST:
        raise UsageError("A comparison needs the runs of at least two targets.")
    every = [{row.requirement.id: row for row in facts.result.rows} for facts in runs.values()]
    levels = {name: row.requirement.level for rows in every for name, row in rows.items()}
    told: tuple[Callable[[RequirementVerdict], str], ...] = (
        lambda row: str(row.verdict),
        lambda row: one_line("; ".join(sorted(set(row.observations)))),
    )
    verdicts, chosen = (
        [
            Row(name, level, tuple(show(rows[name]) if name in rows else "" for rows in every))
            for name, level in levels.items()
        ]
        for show in told
    )
    ran = [facts.result.verdict is not RunVerdict.COULD_NOT_RUN for facts in runs.values()]
    differing = tuple(row for row in verdicts if len(set(compress(row.cells, ran))) > 1)
    return Comparison(
        targets=tuple(runs),
        sides=tuple(Side.of(facts) for facts in runs.values()),
        areas=_areas(list(runs.values())),
        requirements=differing,
        observations=tuple(row for row in chosen if _differ([rows.get(row.name) for rows in compress(every, ran)])),
        speed=_speed(list(runs.values())),
        alike=len(verdicts) - len(differing),
        not_run=tuple(name for name, has_run in zip(runs, ran, strict=True) if not has_run),
    )


def _differ(rows: Sequence[RequirementVerdict | None]) -> bool:
    """Tell whether targets chose otherwise, as far as each was seen to choose anything."""
    seen = [row for row in rows if row is not None and row.observations]
    return len(seen) == len(rows) and any(chose_otherwise(*pair) for pair in combinations(seen, 2))


def _areas(runs: Sequence[Facts]) -> tuple[Row, ...]:
    every = [
        {
            tally.name: f"{tally.verdict}, {tally.score}" if tally.verdict else "not selected"
            for tally in facts.areas
            if tally.verdict or not any(row.requirement.selected for row in facts.result.by_area[tally.name])
        }
        for facts in runs
    ]
    names = dict.fromkeys(
        tally.name
        for facts in runs
        for tally in facts.areas
        if any(of.get(tally.name, "not selected") != "not selected" for of in every)
    )
    return tuple(Row(name, "", tuple(areas.get(name, "nothing owed") for areas in every)) for name in names)


def _speed(runs: Sequence[Facts]) -> tuple[Row, ...]:
    every = [
        {entry.operation: f"{entry.median:g} / {entry.most:g}" for entry in facts.record.latencies} for facts in runs
    ]
    names = dict.fromkeys(name for operations in every for name in operations)
    return tuple(Row(name, "", tuple(operations.get(name, "") for operations in every)) for name in names)


# -- output formats ----------------------------------------------------------------------------------------------------


def comparison_as_json(comparison: Comparison) -> str:
    """Return the comparison as JSON."""
    return json.dumps({"form": COMPARISON_FORM, **asdict(comparison)}, ensure_ascii=False, indent=2) + "\n"


def comparison_as_markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown."""
    return _rendered("comparison.md.j2", comparison)


def comparison_as_html(comparison: Comparison) -> str:
    """Return the comparison as an HTML page."""
    return _rendered("comparison.html.j2", comparison)


def _rendered(name: str, comparison: Comparison) -> str:
    return template(name).render(
        comparison=comparison,
        facts={label: [show(side) for side in comparison.sides] for label, show in _SHOWN_OF_SIDES.items()},
        parts=[
            ("Areas", comparison.areas),
            ("Requirements that differ", comparison.requirements),
            ("Choices that differ, where the specification is silent", comparison.observations),
            ("Speed by operation: milliseconds for half of the calls / for 95 of 100", comparison.speed),
        ],
    )


_SHOWN_OF_SIDES: Mapping[str, Callable[[Side], str]] = {
    "verdict": lambda side: side.verdict,
    "verified": lambda side: side.score,
    "version": lambda side: side.version,
    "suite": lambda side: side.suite,
    "begun": lambda side: side.started,
}
