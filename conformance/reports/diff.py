"""What changed between two runs, also of different suites, contracts and record formats."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.reports.facts import Facts, why
from conformance.reports.pages import template
from conformance.results.grouping import grouped
from conformance.results.record import Reason
from conformance.results.text import one_line, plural
from conformance.results.verdicts import LEFT_OPEN, RequirementVerdict, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Raised whenever the JSON document changes so that its readers must change too.
DIFF_FORM = 1

_DIGEST = re.compile(r"[0-9a-f]{40,}")
#: An operation counts as slower from this factor and this many milliseconds on; smaller differences are chance.
_SLOWER_FACTOR, _SLOWER_MILLISECONDS = 1.5, 20.0
#: The verdicts of requirements of which every test came to its end.
_SAW_ALL = frozenset({Verdict.PASSED, Verdict.NOTED})


class Sort(StrEnum):
    """The sort of a change, the worst first."""

    FAILING = "newly failing"
    LOST = "lost coverage"
    UNSTABLE = "newly unstable"
    SLOWER = "slower"
    OBSERVED = "changed observation"
    PASSING = "newly passing"
    GAINED = "gained coverage"
    ADDED = "new statement"
    GONE = "gone statement"


#: Values of `--fail-on`, and the sorts that each includes.
REGRESSIONS: Mapping[str, Sort] = {
    "failing": Sort.FAILING,
    "lost": Sort.LOST,
    "unstable": Sort.UNSTABLE,
    "slower": Sort.SLOWER,
    "observed": Sort.OBSERVED,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the runs."""

    sort: Sort
    name: str
    """Id of the requirement, or method and path of the operation."""
    level: str
    """Level of the requirement; empty for an operation."""
    before: str
    after: str
    detail: str
    """The reason for the new state, in words."""

    @property
    def counts(self) -> bool:
        """Whether it may be a regression: hints and notes never are."""
        return self.level in ("must", "") or self.sort is Sort.OBSERVED


@dataclass(frozen=True, slots=True)
class Side:
    """The main facts of one of the two runs."""

    target: str
    started: str
    suite: str
    contract: str
    version: str
    verdict: str
    score: str
    seed: int

    @classmethod
    def of(cls, facts: Facts) -> Side:
        """Return the facts of a run."""
        header = facts.record.header
        texts = {
            name: one_line(getattr(header, name)) for name in ("target", "started", "suite", "contract", "version")
        }
        return cls(**texts, verdict=str(facts.result.verdict), score=facts.total.score, seed=header.seed)


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences between the runs."""

    old: Side
    new: Side
    caveats: tuple[str, ...]
    """Why the comparison needs care."""
    changes: tuple[Change, ...]
    still_failing: tuple[str, ...]

    def of(self, sort: Sort) -> tuple[Change, ...]:
        """Return the changes of a sort, first those that count."""
        return tuple(sorted((change for change in self.changes if change.sort is sort), key=lambda one: not one.counts))

    def regressions(self, fail_on: tuple[str, ...]) -> tuple[Change, ...]:
        """Return the changes that count as regressions for these names in REGRESSIONS."""
        wanted = {REGRESSIONS[name] for name in fail_on}
        return tuple(change for change in self.changes if change.sort in wanted and change.counts)


def compare(old: Facts, new: Facts) -> Difference:
    """Compare two runs by statements, observations and operations."""
    before = {row.requirement.id: row for row in old.result.rows}
    after = {row.requirement.id: row for row in new.result.rows}
    changes: list[Change] = []
    for name in dict.fromkeys((*after, *before)):
        changes.extend(_changes(name, before.get(name), after.get(name), is_whole=not new.problems))
    changes.extend(_slower(old, new))
    failed_before = {name for name, row in before.items() if row.verdict is Verdict.FAILED}
    still = [name for name, row in after.items() if row.is_violation and name in failed_before]
    return Difference(
        Side.of(old),
        Side.of(new),
        tuple(_caveats(old, new)),
        tuple(changes),
        tuple(still),
    )


def _changes(
    name: str, old: RequirementVerdict | None, new: RequirementVerdict | None, *, is_whole: bool
) -> Iterator[Change]:
    if new is None or old is None:
        yield from _added_or_gone(name, old, new, is_whole=is_whole)
        return
    if not (old.requirement.selected and new.requirement.selected):
        # A violation that was seen in passing makes a run non-conformant, whatever was selected.
        if (
            new.is_violation
            and old.verdict is not new.verdict
            and (old.requirement.selected or old.verdict is Verdict.PASSED)
        ):
            yield _change(Sort.FAILING, old, new, why(new))
        return
    sort = _sort(old, new)
    if sort is not None:
        yield _change(sort, old, new, why(new))
    if chose_otherwise(old, new):
        was, now = set(old.observations), set(new.observations)
        before, after = ("; ".join(sorted(seen)) or "nothing else" for seen in (was - now, now - was))
        stated = new.requirement
        yield Change(Sort.OBSERVED, name, stated.level, one_line(before), one_line(after), one_line(stated.statement))


def chose_otherwise(one: RequirementVerdict, other: RequirementVerdict) -> bool:
    """Tell whether two runs saw other choices; where one failed or left something open, it need not have seen all."""
    seen, seen_there = set(one.observations), set(other.observations)
    missing = seen_there - seen if one.verdict in _SAW_ALL else set()
    missing_there = seen - seen_there if other.verdict in _SAW_ALL else set()
    return bool(seen and seen_there and (missing or missing_there))


def _sort(old: RequirementVerdict, new: RequirementVerdict) -> Sort | None:
    if new.verdict is old.verdict:
        return None
    if new.verdict is Verdict.FAILED:
        return Sort.FAILING
    if new.verdict is Verdict.UNSTABLE:
        return Sort.UNSTABLE
    if new.verdict is Verdict.PASSED:
        return Sort.PASSING if old.verdict is Verdict.FAILED else Sort.GAINED
    # A statement that a newer version of the target no longer owes is no loss; the caveats name the version.
    lost = new.verdict in LEFT_OPEN or (new.verdict is Verdict.NOT_APPLICABLE and new.reason is not Reason.VERSION)
    return Sort.LOST if lost and old.verdict in (Verdict.PASSED, Verdict.FAILED, Verdict.NOTED) else None


def _change(sort: Sort, old: RequirementVerdict, new: RequirementVerdict, detail: str) -> Change:
    stated = new.requirement
    return Change(sort, stated.id, stated.level, str(old.verdict), str(new.verdict), one_line(detail))


def _added_or_gone(
    name: str, old: RequirementVerdict | None, new: RequirementVerdict | None, *, is_whole: bool
) -> Iterator[Change]:
    if new is not None:
        failing = new.verdict is Verdict.FAILED
        sort = Sort.FAILING if failing else Sort.ADDED
        yield Change(sort, name, new.requirement.level, "not stated", str(new.verdict), why(new))
    elif old is not None:
        # An incomplete record makes no statements any more; that differs from a text without the statement.
        is_lost = not is_whole and old.verdict in (Verdict.PASSED, Verdict.FAILED, Verdict.NOTED)
        sort, why_gone = (Sort.LOST, "the newer run is not whole") if is_lost else (Sort.GONE, "")
        yield Change(sort, name, old.requirement.level, str(old.verdict), "not stated", why_gone)


def _slower(old: Facts, new: Facts) -> Iterator[Change]:
    before = {entry.operation: entry for entry in old.record.latencies}
    for entry in new.record.latencies:
        was = before.get(entry.operation)
        if was is None:
            continue
        if entry.median > was.median * _SLOWER_FACTOR and entry.median > was.median + _SLOWER_MILLISECONDS:
            told = f"half of {plural(entry.calls, 'call')} took longer; 95 of 100 took less than {entry.most:g} ms"
            yield Change(Sort.SLOWER, entry.operation, "", f"{was.median:g} ms", f"{entry.median:g} ms", told)


def _caveats(old: Facts, new: Facts) -> Iterator[str]:
    """Yield the differences of the runs that are not caused by the target."""
    names = {
        "target": "target",
        "version": "version of the target",
        "edition": "edition",
        "suite": "version of the suite",
        "contract": "contract",
        "scope": "claimed scope",
        "undeclared": "features that are not declared",
        "selection": "selection",
        "form": "form of the record",
    }
    for name, called in names.items():
        was, now = getattr(old.record.header, name), getattr(new.record.header, name)
        if was != now:
            yield f"the {called} differs: {_short(was)} before, {_short(now)} now"
    for side, facts in (("older", old), ("newer", new)):
        if facts.problems:
            yield f"the {side} run is not whole: {facts.problems[0].kind}: {one_line(facts.problems[0].detail, 160)}"


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return f"{value[:12]}..." if isinstance(value, str) and _DIGEST.fullmatch(value) else one_line(value)


# -- output formats ----------------------------------------------------------------------------------------------------


def as_json(difference: Difference, regressions: tuple[Change, ...]) -> str:
    """Return the difference as JSON data, valid against `diff.schema.json`."""
    data: dict[str, Any] = {
        "form": DIFF_FORM,
        "old": asdict(difference.old),
        "new": asdict(difference.new),
        "caveats": difference.caveats,
        "counts": {sort: len(difference.of(sort)) for sort in Sort},
        "regressions": len(regressions),
        "still_failing": difference.still_failing,
        "changes": [asdict(change) for sort in Sort for change in difference.of(sort)],
    }
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def as_text(difference: Difference, regressions: tuple[Change, ...]) -> str:
    """Return the difference for a terminal."""
    return _rendered("diff.txt.j2", difference, regressions)


def as_markdown(difference: Difference, regressions: tuple[Change, ...]) -> str:
    """Return the difference for a comment on a merge request."""
    return _rendered("diff.md.j2", difference, regressions)


def as_html(difference: Difference, regressions: tuple[Change, ...]) -> str:
    """Return the difference as a page."""
    return _rendered("diff.html.j2", difference, regressions)


def _rendered(name: str, difference: Difference, regressions: tuple[Change, ...]) -> str:
    stated = Contract.load().requirements
    return template(name).render(
        statements={
            change.name: stated[change.name].statement for change in difference.changes if change.name in stated
        },
        difference=difference,
        summary=_sum(difference, regressions),
        sorts=[(sort, difference.of(sort)) for sort in Sort],
        regressions=regressions,
        with_reasons=lambda changes: grouped((change.detail, change) for change in changes).items(),
    )


def _sum(difference: Difference, regressions: tuple[Change, ...]) -> str:
    counts = {sort: len(found) for sort in Sort if (found := difference.of(sort))}
    worse = Counter(change.sort for change in regressions)
    bad = [f"{worse[sort]} {sort}" for sort in counts if worse[sort]]
    # Some hints and notes may have the same sort as a regression; they are counted separately.
    rest = {sort: number - worse[sort] for sort, number in counts.items() if number > worse[sort]}
    others = [f"{number} {sort}{' (no must)' if worse[sort] else ''}" for sort, number in rest.items()]
    others += [f"{len(difference.still_failing)} still failing"] if difference.still_failing else []
    if bad:
        besides = f"; besides: {', '.join(others)}" if others else ""
        return f"{plural(len(regressions), 'regression')}: {', '.join(bad)}{besides}"
    nothing = "nothing changed" + (" of what both runs looked at" if difference.caveats else "")
    return f"no regression: {', '.join(others) or nothing}"
