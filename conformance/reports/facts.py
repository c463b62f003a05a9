"""The facts of a run for all formats, computed once, so that no two formats can disagree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Self

from conformance.reports.causes import Cause, Gap, causes, gap_groups
from conformance.results.baseline import reason_from
from conformance.results.grouping import grouped
from conformance.results.record import Check, Outcome, Reason, RunRecord, TestOutcome
from conformance.results.text import one_line, plural, together
from conformance.results.verdicts import LEFT_OPEN, RequirementVerdict, RunResult, RunVerdict, Verdict, add_up
from conformance.target.names import SHOWING_MORE
from conformance.versions.timeline import TimelineItem, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Failed checks of one requirement that a report shows in full; report.json has all of them.
SHOWN_FAILURES = 5

_SHOWN_CAUSES = 3
#: So many results that differ when tried again have one cause more often than many.
_MANY_UNSTEADY = 5
#: Of a failure in one line: characters of what was expected and of what came, and of all.
_SHOWN_PART, _SHOWN_FAILURE = 100, 500
#: The verdicts that owed requirements may have; other requirements have them too.
_OWED_OR_NOT = frozenset(Verdict) - {Verdict.NOT_APPLICABLE, Verdict.NOTED}
#: The sorts of drawn cases.
_DRAWN = ("coverage", "fresh", "replayed", "failed_before")
_CUT_OFF = "The record ends before the run did: it was killed, or is still running. What followed was not seen."
_NOTHING_PLANNED = "The record names no requirement, so nothing was verified."


class Standing(StrEnum):
    """The state of a requirement in a report; only `verified` may look green."""

    VERIFIED = "verified"
    VIOLATED = "violated"
    WARNING = "warning"
    """It failed, but the service does not owe it."""
    UNSTABLE = "unstable"
    """It failed once, but not in a second try."""
    BROKEN = "broken"
    """The suite itself failed while testing it."""
    OPEN = "open"
    NOTED = "noted"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of the run that belongs to no requirement."""

    name: str
    kind: str
    """`broken test`, `cut off`, `stopped early` or `nothing planned`."""
    detail: str


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of some rows: of an area, or of the whole run."""

    name: str
    counts: Mapping[Verdict, int]
    owed: int
    """Number of selected, applicable requirements of level `must`."""
    verified: int
    violated: int
    verdict: RunVerdict | None = None
    """The verdict of these rows; None for an area in which nothing is owed, or nothing was selected."""

    @classmethod
    def of(cls, name: str, rows: tuple[RequirementVerdict, ...], verdict: RunVerdict | None) -> Self:
        """Count rows."""
        found = Counter(row.verdict for row in rows)
        owed = [row for row in rows if row.is_owed]
        return cls(
            verdict=verdict,
            name=name,
            counts={verdict: found[verdict] for verdict in Verdict},
            owed=len(owed),
            verified=sum(row.verdict is Verdict.PASSED for row in owed),
            violated=sum(row.is_violation for row in owed),
        )

    @property
    def open(self) -> int:
        """Number of owed requirements that were neither verified nor violated."""
        return self.owed - self.verified - self.violated

    @property
    def score(self) -> str:
        """The main result in one line, such as `17 of 61 verified`."""
        return f"{self.verified} of {self.owed} verified"


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row of the version table."""

    version: str
    items: tuple[TimelineItem, ...]

    @property
    def ahead(self) -> bool:
        """Whether the row belongs to a later version than the target's."""
        return self.version == "future" or any(entry.reached is False for entry in self.items)


@dataclass(frozen=True)
class Facts:
    """A record with its verdicts, and what the formats derive from them."""

    record: RunRecord
    result: RunResult
    unverified_as: str = "error"
    """How JUnit shows a `must` that was not verified: `error`, `failure` or `skipped`."""

    @classmethod
    def of(cls, record: RunRecord, unverified_as: str = "error") -> Self:
        """Compute the facts of a record, also of an incomplete one."""
        return cls(record, add_up(record), unverified_as)

    @cached_property
    def total(self) -> Tally:
        """Counts of the whole run."""
        return Tally.of("all areas", self.result.rows, self.result.verdict)

    @cached_property
    def areas(self) -> tuple[Tally, ...]:
        """Counts of each area, in the contract's order."""
        verdicts = self.result.area_verdicts
        return tuple(Tally.of(area, rows, verdicts[area]) for area, rows in self.result.by_area.items())

    @cached_property
    def counts_in_words(self) -> str:
        """The number of requirements with each verdict, and how many of these are not owed."""
        found = []
        for verdict, number in self.result.counts.items():
            of_it = self.result.rows_with(verdict) if verdict in _OWED_OR_NOT else ()
            beside = [row for row in of_it if not row.is_owed]
            what = "should or note" if all(row.requirement.selected for row in beside) else "not selected or not a must"
            found += [f"{number} {verdict}{f' ({len(beside)} of them {what})' if beside else ''}"] if number else []
        return ", ".join(found) or "none was planned"

    @cached_property
    def headline(self) -> Mapping[str, str]:
        """What every format shows first: scope, features left out, what did not run and why, how to repeat."""
        header = self.record.header
        found = {"scope": ", ".join(header.scope) or "all areas"}
        found |= self._left_out_of_profile
        if header.selection:
            found["selected"] = header.selected_in_brief
        if self.only_read:
            found["read-only"] = self.only_read
        if self.merged:
            found["merged"] = self.merged
        found |= self._about_target
        for outcome in (TestOutcome.DESELECTED, TestOutcome.NOT_BEGUN):
            causes = Counter(end.detail or "" for end in self.record.tests if end.outcome is outcome)
            shown = [f"{plural(number, 'test')} ({cause})" for cause, number in causes.most_common(_SHOWN_CAUSES)]
            if shown:
                found[str(outcome)] = ", ".join(shown) + (", and others" if len(causes) > _SHOWN_CAUSES else "")
        if self.network:
            found["network"] = "; ".join(f"{words} {number}" for words, number in self.network)
        held_back = (self.record.footer.drawn or {}).get("held_back") if self.record.footer else None
        if held_back:
            calls = plural(held_back, "drawn call")
            found["not sent"] = f"{calls} that could reach what the profile does not name, or add to a list for good"
        if header.command:
            found["to repeat"] = header.command
        if self.record.tests and (self.record.footer is None or self.record.footer.detail):
            found["to go on"] = "conformance run --resume FOLDER, the folder of this report"
        return found

    @property
    def _left_out_of_profile(self) -> Mapping[str, str]:
        told = {
            "not declared": (self.record.header.undeclared, "what belongs to these was not judged"),
            "not named": (self.not_named, "without these nothing stays open, but less was checked"),
        }
        return {what: f"{', '.join(names)}: {so}" for what, (names, so) in told.items() if names}

    @property
    def not_named(self) -> tuple[str, ...]:
        """Fixtures that the profile lacks and with which the run could have checked more, in the claimed areas."""
        header = self.record.header
        named = header.profile.get("fixtures", {})
        return tuple(
            name
            for name, areas in SHOWING_MORE.items()
            if name not in named and (not header.scope or set(areas) & set(header.scope))
        )

    @property
    def only_read(self) -> str:
        """A line that says that nothing was written to the target; empty if something was."""
        told = "nothing but GET and HEAD was sent, and what needs more was not tested"
        return told if self.record.header.read_only else ""

    @property
    def merged(self) -> str:
        """A line that names the shards from which the record was merged; empty for an undivided run."""
        shards = self.record.header.merged
        return f"from {plural(len(shards), 'shard')}: {'; '.join(shards)}" if shards else ""

    @property
    def _about_target(self) -> Mapping[str, str]:
        """What the run found out about its target and the profile, and what it left changed there."""
        found, footer = {}, self.record.footer
        if footer and footer.contradicted:
            found["forced"] = f"the target contradicts the profile: {'; '.join(footer.contradicted)}"
        failed = (check for check in self.record.checks if check.outcome is Outcome.FAILED)
        absent = dict.fromkeys(check.place or "" for check in failed if check.reason is Reason.OPERATION_ABSENT)
        if absent:
            found["not there"] = f"{plural(len(absent), 'operation')} ({', '.join(absent)}): each fails one requirement"
        unsteady = len(self.result.rows_with(Verdict.UNSTABLE))
        if unsteady >= _MANY_UNSTEADY:
            advice = (
                "if reads lag behind writes (a cache, a replica), write limits: {settle_seconds: 5} into the profile"
            )
            found["unsteady"] = f"{unsteady} results were different when their tests ran once more; {advice}"
        if footer and footer.left:
            found["left on the target"] = "; ".join(together(footer.left))
        return found

    @cached_property
    def network(self) -> tuple[tuple[str, str], ...]:
        """Network problems of the run and its reactions, one per row; empty if there were none."""
        seen = self.record.footer.network if self.record.footer else None
        if seen is None or not (seen.retries or seen.unanswered):
            return ()
        allowed = self.record.header.allowed.get("run_seconds")
        rows = [(f"sent again after {what}:", f"{number}") for what, number in sorted(seen.retries.items())]
        rows += [(f"unanswered, {what}:", f"{number}") for what, number in sorted(seen.unanswered.items())]
        bound = f" of {allowed:g} s at most" if allowed is not None else ""
        rows.append(("waited:", f"{seen.waited_seconds:g} s{bound}"))
        rows.append(("tests begun anew:", f"{seen.tests_begun_anew}"))
        return tuple(rows)

    @cached_property
    def failed(self) -> tuple[RequirementVerdict, ...]:
        """Requirements that failed or were unstable: violations first, and of these the ones that nobody knew.

        Those that only state that an operation exists come behind the others, because another line names all absent
        operations. Otherwise they are in the contract's order. Many formats show only the first ones.
        """

        def order(row: RequirementVerdict) -> tuple[bool, ...]:
            is_absent = all(check.reason is Reason.OPERATION_ABSENT for check in row.failures)
            return not row.is_violation, row.is_known, row.verdict is Verdict.UNSTABLE, is_absent

        return tuple(sorted(self.result.rows_with(Verdict.FAILED, Verdict.UNSTABLE), key=order))

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The causes of failures, each with all requirements that failed because of it."""
        return causes(self.failed)

    def excuses(self, row: RequirementVerdict) -> bool:
        """Tell whether a failure does not fail the run: it is known, and only new ones do."""
        return row.is_known and self.record.header.fail_on == "new"

    def excuses_gap(self, row: RequirementVerdict) -> bool:
        """Tell whether an open requirement does not keep the run from its end: it waits only for excused failures."""
        return bool(row.waits_for) and row.waits_for <= self._excused

    @cached_property
    def _excused(self) -> frozenset[str]:
        return frozenset(row.requirement.id for row in self.result.rows if self.excuses(row))

    @property
    def failed_in_brief(self) -> str:
        """The numbers of failed and unstable requirements, for a heading."""
        unstable = len(self.result.rows_with(Verdict.UNSTABLE))
        by = f", by {plural(len(self.causes), 'cause')}" if len(self.causes) < len(self.failed) else ""
        if 0 < unstable < len(self.failed):
            return f"Failed ({len(self.failed) - unstable}) and unstable ({unstable}){by}"
        return f"{'Unstable' if unstable else 'Failed'} ({len(self.failed)}{by})"

    @property
    def has_unstable(self) -> bool:
        """Whether a requirement failed once but not in a second try."""
        return bool(self.result.rows_with(Verdict.UNSTABLE))

    @cached_property
    def unverified(self) -> Mapping[Reason, tuple[RequirementVerdict, ...]]:
        """Inconclusive and untested requirements of every level by reason, the most frequent reason first."""
        rows = self.result.rows_with(*LEFT_OPEN)
        found = grouped((row.reason or Reason.NOT_REACHED, row) for row in rows)
        return {reason: tuple(rows) for reason, rows in sorted(found.items(), key=lambda item: -len(item[1]))}

    @cached_property
    def gap_groups(self) -> tuple[Gap, ...]:
        """Selected requirements that were not verified, grouped by what prevented it."""
        return gap_groups(self.result.rows_with(*LEFT_OPEN))

    def kept_open_by(self, reason: str) -> tuple[Gap, ...]:
        """Return the reasons that keep musts open and that the profile cannot change, the most frequent first."""
        found = (gap for gap in self.gap_groups if gap.reason == reason and gap.owed)
        return tuple(gap for gap in found if gap.detail and not gap.paste)

    @cached_property
    def gaps(self) -> Mapping[Reason, int]:
        """The number of owed requirements that were left open for each reason, the most frequent first."""
        found = Counter(row.reason or Reason.NOT_REACHED for row in self.result.rows if row.is_gap)
        return dict(found.most_common())

    @cached_property
    def observed(self) -> tuple[RequirementVerdict, ...]:
        """Requirements with observations that are shown but not judged."""
        return tuple(row for row in self.result.rows if row.observations and row.requirement.selected)

    @cached_property
    def timeline(self) -> tuple[TimelineItem, ...]:
        """The version table for the target, item by item; empty when the record has none."""
        return timeline(self.record, self.result)

    @cached_property
    def rows_of_table(self) -> tuple[TableRow, ...]:
        """The rows of the version table, oldest first."""
        rows = grouped((entry.item.version, entry) for entry in self.timeline)
        return tuple(TableRow(version, tuple(items)) for version, items in rows.items())

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the run itself."""
        found = []
        if self.record.footer is None:
            found.append(Problem("the run", "cut off", _CUT_OFF))
        elif self.record.footer.detail:
            found.append(Problem("the run", "stopped early", self.record.footer.detail))
        if not self.record.plan:
            found.append(Problem("the plan", "nothing planned", _NOTHING_PLANNED))
        unsure = "; nothing shows whether the others are unchanged"
        found += [Problem("the record", "damaged", f"{sentence}{unsure}") for sentence in self.record.damage]
        found += [Problem("the suite", "contradiction", sentence) for sentence in self.result.contradictions]
        for end in self.record.tests:
            if end.outcome is TestOutcome.BROKEN:
                where = f"in its {end.phase}: " if end.phase else ""
                found.append(
                    Problem(end.test, "broken test", where + (end.detail or "the suite says no more about it"))
                )
        return tuple(found)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What the run noticed about itself, and contradictions in the record."""
        footer, planned = self.record.footer, {entry.id for entry in self.record.plan}
        strangers = {check.requirement for check in self.record.checks} - planned
        found = [*self.record.header.warnings, *self.record.warnings]
        if strangers:
            names = ", ".join(sorted(strangers))
            found.append(f"Checks of requirements that the plan does not name are left out: {names}.")
        if footer is not None and footer.verdict != self.result.verdict:
            found.append(f"The run ended as {footer.verdict}; its checks add up to {self.result.verdict}.")
        return tuple(dict.fromkeys(found))

    @cached_property
    def drawn(self) -> Mapping[str, int] | None:
        """The number of drawn cases of each sort that were sent; None if the run was cut off or has no count."""
        footer = self.record.footer
        counts = footer.drawn if footer is not None else None
        return None if counts is None else {name: counts.get(name, 0) for name in _DRAWN}

    @cached_property
    def drawn_in_words(self) -> str:
        """The number of drawn cases in one line; empty when none was sent."""
        if self.drawn is None or not any(self.drawn.values()):
            return ""
        before = f", {self.drawn['failed_before']} of which had failed before" if self.drawn["failed_before"] else ""
        return (
            f"{plural(sum(self.drawn.values()) - self.drawn['failed_before'], 'drawn case')}: "
            f"{self.drawn['coverage']} of the schemas, {self.drawn['fresh']} fresh, "
            f"{self.drawn['replayed']} of earlier runs{before}"
        )

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """Time spent per requirement: the time of each test is divided among its requirements."""
        sharing = Counter(test for entry in self.record.plan for test in entry.tests)
        spent: dict[str, float] = {}
        for end in self.record.tests:
            spent[end.test] = spent.get(end.test, 0.0) + (end.seconds or 0.0)
        return {
            entry.id: round(sum(spent.get(test, 0.0) / sharing[test] for test in entry.tests), 6)
            for entry in self.record.plan
        }


def standing(row: RequirementVerdict) -> Standing:
    """Return the state of a requirement."""
    if row.verdict is Verdict.FAILED:
        return Standing.VIOLATED if row.is_violation else Standing.WARNING
    if row.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED):
        return Standing.BROKEN if row.reason is Reason.HARNESS_ERROR else Standing.OPEN
    return _SETTLED[row.verdict]


_SETTLED: Mapping[Verdict, Standing] = {
    Verdict.UNSTABLE: Standing.UNSTABLE,
    Verdict.PASSED: Standing.VERIFIED,
    Verdict.NOTED: Standing.NOTED,
    Verdict.NOT_APPLICABLE: Standing.NOT_APPLICABLE,
}


def failure_in_words(check: Check) -> str:
    """Describe in one line what a failed check saw."""
    pair = (("expected", check.expected), ("got", check.actual))
    # Each part has its own room, so that a long one does not push the other out of the line.
    parts = [f"{word} {one_line(value, _SHOWN_PART)}" for word, value in pair if value]
    words = "; ".join(parts) or check.detail or "it does not hold"
    return one_line(f"{words} (at {check.place})" if check.place else words, _SHOWN_FAILURE)


def weight(row: RequirementVerdict) -> str:
    """Say why a failed requirement is no violation; empty if it is one."""
    known = row.requirement.known_failure
    if known is not None and row.verdict is Verdict.FAILED:
        is_said = known.reason in map(reason_from, row.failures)  # the text beside it already says that it failed
        words = known.terms if is_said else known.words
        return f"in the baseline: {words}" if words else "in the baseline"
    if row.is_violation:
        return ""
    return (
        "unstable, no violation"
        if row.verdict is Verdict.UNSTABLE
        else f"a warning, no violation: {row.requirement.level}"
    )


def why(row: RequirementVerdict) -> str:
    """Give the reason for a requirement's verdict in one line; empty if the verdict needs none."""
    if row.failures and row.verdict in (Verdict.FAILED, Verdict.UNSTABLE):
        more = f", and {plural(len(row.failures) - 1, 'more failed check')}" if len(row.failures) > 1 else ""
        return failure_in_words(row.failures[0]) + more
    return one_line(": ".join(str(part) for part in (row.reason, row.detail) if part))


def milliseconds(moment: str) -> int:
    """Return a time in milliseconds since 1970; 0 when it cannot be read."""
    try:
        parsed = datetime.fromisoformat(moment)
    except (TypeError, ValueError):
        return 0
    return int((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp() * 1000)
