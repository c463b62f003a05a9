"""`compliance.html`: the report for an auditor or a customer; it prints to at most six A4 pages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.reports.pages import template
from conformance.results.grouping import grouped
from conformance.results.record import Outcome, Reason, TestOutcome
from conformance.results.subject import Subject
from conformance.results.text import in_brief, one_line, plural
from conformance.results.verdicts import LEFT_OPEN, RequirementVerdict, Verdict, anything_seen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from conformance.reports.causes import Gap
    from conformance.reports.facts import Facts
    from conformance.results.record import AccessRule, Check, RunRecord

# These limits keep even a run in which everything failed within six pages.
_SHOWN_FAILURES = 14
_SHOWN_GAPS = 40
#: Maximum total length of reasons and statements; after that, only some statements of the largest groups are named.
_ROOM_OF_GAPS = 13_000
_SHOWN_LEFT_OUT = 30
_COMMON_ACTORS = 4
_SIGNS: Mapping[str, str] = {"verified": "", "violated": " ✗", "open": " ?", "not applicable": " -"}
#: Why nobody tried a statement that the target may owe all the same.
_UNTRIED: Mapping[Reason, str] = {
    Reason.NOT_OBSERVABLE: "that cannot be observed from outside",
    Reason.FEATURE_NOT_DECLARED: "of features that the profile does not declare",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """Whether one operation must serve one actor, and the result."""

    demand: str
    """`served` or `refused`."""
    state: str
    """`verified`, `violated`, `open` or `not applicable`."""

    @property
    def sign(self) -> str:
        """The sign in the grid, which can be read without colour."""
        return self.demand[0].upper() + _SIGNS[self.state]


@dataclass(frozen=True, slots=True)
class GridRow:
    """One operation of the grid."""

    area: str
    label: str
    cells: Mapping[str, Cell]
    """By actor: the cells of the common actors that the contract names."""
    others: tuple[tuple[str, Cell], ...]
    """Cells of actors that only few operations name."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The table of who may call what."""

    actors: tuple[str, ...]
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Statements of level must that are left out for the same reason."""

    reason: str
    detail: str
    """The reason in words, if it is the same for all of them."""
    count: int
    areas: Mapping[str, str]
    """The named statements of each area."""


def render(facts: Facts) -> str:
    """Return the report as one page, with its style inside."""
    record, total, gaps = facts.record, facts.total, open_rows(facts.gap_groups)
    return template("compliance.html.j2").render(
        facts=facts,
        header=record.header,
        footer=record.footer,
        result=facts.result,
        total=total,
        began=sum(end.outcome not in (TestOutcome.DESELECTED, TestOutcome.NOT_BEGUN) for end in record.tests),
        sentence=sentence(facts),
        subjects=[Subject.parse(text) for text in record.header.subjects],
        levels=levels(facts.result.rows),
        uncounted=_uncounted(facts.result.rows),
        beside=len(facts.result.rows) - len(_looked_at(facts.result.rows)),
        areas=[(tally, levels(facts.result.by_area[tally.name])) for tally in facts.areas],
        causes=facts.causes[:_SHOWN_FAILURES],
        hidden_causes=facts.causes[_SHOWN_FAILURES:],
        gaps=gaps,
        hidden_gaps=facts.gap_groups[len(gaps) :],
        known=[row for row in facts.result.rows if row.requirement.known_failure],
        left_out=_by_reason(_left_out(facts.result.rows), record.header.scope),
        grid=grid(record, facts.result.rows),
    )


def sentence(facts: Facts) -> str:
    """Return the verdict in words for a reader who does not know this suite."""
    violations = [row for row in facts.result.rows if row.is_violation]
    words = template("sentence.txt.j2").render(
        facts=facts,
        known=sum(row.is_known for row in violations),
        beside=sum(not row.requirement.selected for row in violations),
        untried=_untried(facts.result.rows),
        looked=anything_seen(facts.result.rows),
        once=any(row.requirement.level == "must" for row in facts.result.rows_with(Verdict.UNSTABLE)),
    )
    ended = facts.record.footer
    stopped = "The run was cut off before its end; what would have followed was not seen."
    if ended is not None:
        stopped = f"The run stopped early: {ended.detail}" if ended.detail else ""
    stopped += "." if stopped and not stopped.endswith((".", "?", "!")) else ""
    return f"{' '.join(words.split())} {stopped}".rstrip()


def _untried(rows: Iterable[RequirementVerdict]) -> str:
    """Say in words how many musts nobody tried although the target may owe them; empty if there are none."""
    number = Counter(row.reason for row in _left_out(rows))
    told = [f"{number[reason]} {words}" for reason, words in _UNTRIED.items() if number[reason]]
    return f"Not tried: {', and '.join(told)}." if told else ""


def open_rows(groups: Sequence[Gap]) -> tuple[tuple[Gap, str], ...]:
    """Return the groups of what stayed open, each with its statements, as many as fit the pages.

    Readers of this report have no other one, so all statements are named if possible, and otherwise those of small
    groups.
    """
    shown: list[Gap] = []
    room = _ROOM_OF_GAPS
    for gap in groups[:_SHOWN_GAPS]:
        room -= len(gap.detail) + len(gap.shown)
        if room < 0:
            break
        shown.append(gap)
    names = {gap.ids: gap.shown for gap in shown}
    for gap in sorted(shown, key=lambda one: len(one.ids)):
        whole = _named(gap.ids)
        room -= len(whole) - len(gap.shown)
        if room < 0:
            break
        names[gap.ids] = whole
    return tuple((gap, names[gap.ids]) for gap in shown)


def _named(ids: Iterable[str]) -> str:
    """Return ids in one line, grouped by area."""
    areas = grouped(_area_and_rest(name) for name in ids)
    return "; ".join(
        f"{area}.{rests[0]}" if len(rests) == 1 else f"{area}: {', '.join(rests)}" for area, rests in areas.items()
    )


def _left_out(rows: Iterable[RequirementVerdict]) -> tuple[RequirementVerdict, ...]:
    """Return the selected musts that are not to be verified."""
    musts = (row for row in _looked_at(rows) if row.requirement.level == "must")
    return tuple(row for row in musts if row.verdict is Verdict.NOT_APPLICABLE)


def _by_reason(rows: Iterable[RequirementVerdict], scope: Collection[str]) -> tuple[LeftOut, ...]:
    """Group musts that are left out by reason, largest group first; outside the scope, count those of other areas."""
    # The reason why a statement cannot be observed has other words for each statement.
    vague = (Reason.NOT_OBSERVABLE, Reason.OUT_OF_SCOPE)
    groups = grouped(
        ((row.reason, "" if row.reason in vague else one_line(row.detail or "", 160)), row) for row in rows
    )
    found = [
        LeftOut(str(reason), detail, len(members), _by_area(members, scope if reason is Reason.OUT_OF_SCOPE else None))
        for (reason, detail), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.count))


def _by_area(rows: Sequence[RequirementVerdict], named: Collection[str] | None) -> Mapping[str, str]:
    """Return the statements by area: their names in the areas of `named`, or in all, and their number in others."""
    areas = grouped(_area_and_rest(row.requirement.id) for row in rows)
    return {
        area: in_brief(names, _SHOWN_LEFT_OUT) if named is None or area in named else plural(len(names), "statement")
        for area, names in areas.items()
    }


def _area_and_rest(name: str) -> tuple[str, str]:
    area, _, rest = name.partition(".")
    return area, rest


def _looked_at(rows: Iterable[RequirementVerdict]) -> tuple[RequirementVerdict, ...]:
    """Return the rows that this run is about: what was selected, and what failed beside it."""
    return tuple(row for row in rows if row.requirement.selected or row.verdict is Verdict.FAILED)


def levels(rows: Iterable[RequirementVerdict]) -> Mapping[str, int]:
    """Count rows by level and result, such as `must passed`; unstable counts as open."""
    return Counter(
        f"{row.requirement.level} {'open' if row.verdict in LEFT_OPEN else row.verdict}" for row in _looked_at(rows)
    )


def _uncounted(rows: Iterable[RequirementVerdict]) -> int:
    """Return the number of statements that are in no column of the counts."""
    found = levels(rows)
    shown = ("passed", "failed", "open")
    columns = {f"{level} {name}" for level in ("must", "should") for name in shown} | {
        "must not applicable",
        "note noted",
    }
    return sum(number for name, number in found.items() if name not in columns)


# -- who may call what -------------------------------------------------------------------------------------------------


def grid(record: RunRecord, rows: Iterable[RequirementVerdict]) -> Grid:
    """Return who may call what, and whether that was seen; without rows if the record does not have the table."""
    named = Counter(actor for rule in record.access for actor in (*rule.served, *rule.refused))
    common = tuple(actor for actor in named if named[actor] >= min(_COMMON_ACTORS, len(record.access)))
    state = _cell_states(record, {row.requirement.id: row for row in rows})
    found = []
    for rule in record.access:
        cells = {
            actor: Cell(demand, state(rule, actor, requirement))
            for demand, table in (("served", rule.served), ("refused", rule.refused))
            for actor, requirement in table.items()
        }
        others = tuple((actor, cell) for actor, cell in cells.items() if actor not in common)
        found.append(GridRow(rule.area, rule.label, cells, others))
    return Grid(common, tuple(found))


def _cell_states(record: RunRecord, rows: Mapping[str, RequirementVerdict]) -> Callable[[AccessRule, str, str], str]:
    """Return the results of a cell: only of the tests that call this operation."""
    held = {end.test for end in record.tests if end.outcome is TestOutcome.PASSED}
    ended = held | {end.test for end in record.tests if end.outcome is TestOutcome.NOT_TESTED}
    seen = grouped(((check.requirement, check.test), check) for check in record.checks)

    def state(rule: AccessRule, actor: str, requirement: str) -> str:
        row = rows.get(requirement)
        if row is None or row.verdict is Verdict.NOT_APPLICABLE or not row.requirement.selected:
            return "not applicable"
        tests = [test for test in row.requirement.tests if f"[{rule.operation}]" in test]
        if not tests:
            return "not applicable" if record.header.scope and rule.area not in record.header.scope else "open"
        checks = [check for test in tests for check in seen.get((requirement, test), ())]
        failed = [check for check in checks if check.outcome is Outcome.FAILED]
        callers = {check.evidence[-1].actor.replace("_", "-") for check in failed if check.evidence}
        if actor.replace("_", "-") in callers:
            return "violated"
        if failed:
            return "open"
        # An actor who is not in the profile keeps no other actor's cell open.
        others = [check for check in checks if _is_of_another(check, actor)]
        if any(check.outcome is not Outcome.PASSED for check in checks if check not in others):
            return "open"
        is_seen = len(others) < len(checks) or (others and ended.issuperset(tests)) or held.issuperset(tests)
        return "verified" if is_seen else "open"

    return state


def _is_of_another(check: Check, actor: str) -> bool:
    """Tell whether a check was left out because another actor than this one is missing."""
    detail = check.detail or ""
    lacks_actor = check.reason is Reason.PREREQUISITE_MISSING and detail.startswith("actor '")
    return lacks_actor and not detail.startswith(f"actor '{actor}' ")
