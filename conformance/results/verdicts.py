"""Adds plan and record up to a verdict for each requirement, each area and the run. All reports use it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from conformance.errors import ExitCode
from conformance.results.grouping import grouped
from conformance.results.record import (
    ENDED,
    Check,
    Evidence,
    Outcome,
    PlannedRequirement,
    Reason,
    RunRecord,
    TestEnd,
    TestOutcome,
)
from conformance.results.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Verdict(StrEnum):
    """What the planned tests and the checks of one requirement add up to."""

    FAILED = "failed"
    UNSTABLE = "unstable"
    """It failed once, and did not when it ran again: neither a violation nor verified."""
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    PASSED = "passed"
    NOTED = "noted"
    NOT_APPLICABLE = "not applicable"


class RunVerdict(StrEnum):
    """The verdict on all requirements of the claimed scope, or on those of an area."""

    CONFORMANT = "conformant"
    SELECTION_HOLDS = "selection holds"
    """Everything that the operator selected was verified; the rest was not tested."""
    NON_CONFORMANT = "non-conformant"
    INCOMPLETE = "incomplete"
    BROKEN = "suite broken"
    COULD_NOT_RUN = "could not run"


EXIT_CODES: Mapping[RunVerdict, ExitCode] = {
    RunVerdict.CONFORMANT: ExitCode.CONFORMANT,
    RunVerdict.SELECTION_HOLDS: ExitCode.CONFORMANT,
    RunVerdict.NON_CONFORMANT: ExitCode.NON_CONFORMANT,
    RunVerdict.INCOMPLETE: ExitCode.INCOMPLETE,
    RunVerdict.BROKEN: ExitCode.SUITE_BROKE,
    RunVerdict.COULD_NOT_RUN: ExitCode.COULD_NOT_RUN,
}


_COUNTED = frozenset(Verdict) - {Verdict.NOT_APPLICABLE}
#: The verdicts of requirements that were neither verified nor seen to be violated, though they apply.
LEFT_OPEN = (Verdict.UNSTABLE, Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)


@dataclass(frozen=True, slots=True)
class RequirementVerdict:
    """One row of every report."""

    requirement: PlannedRequirement
    verdict: Verdict
    reason: Reason | None
    detail: str | None
    passed: int
    """How many checks held."""
    failures: tuple[Check, ...]
    observations: tuple[str, ...]
    waits_for: frozenset[str] = frozenset()
    """The requirements whose failures alone keep this one open; empty if anything else does."""

    @property
    def is_owed(self) -> bool:
        """Whether it counts for the run's verdict: it was selected, or a violation was seen in passing."""
        stated = self.requirement
        return stated.level == "must" and (stated.selected or self.is_violation) and self.verdict in _COUNTED

    @property
    def is_violation(self) -> bool:
        """Whether it makes the run non-conformant."""
        return self.verdict is Verdict.FAILED and self.requirement.level == "must"

    @property
    def is_gap(self) -> bool:
        """Whether it keeps the run from being conformant without a failure."""
        return self.requirement.level == "must" and self.requirement.selected and self.verdict in LEFT_OPEN

    @property
    def is_known(self) -> bool:
        """Whether it failed, and the baseline has an entry for it that has not expired."""
        known = self.requirement.known_failure
        return self.verdict is Verdict.FAILED and known is not None and not known.expired

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that show the failures."""
        return tuple(entry for check in self.failures for entry in check.evidence)


@dataclass(frozen=True)
class RunResult:
    """The verdict of a run with one row per requirement, in the contract's order."""

    verdict: RunVerdict
    rows: tuple[RequirementVerdict, ...]
    explanation: str
    """Why the verdict is what it is, in a sentence or two."""
    beside_known: RunVerdict | None = None
    """The verdict without the known failures, if all failures are known and only new ones fail the run."""
    contradictions: tuple[str, ...] = ()
    """Contradictions in the record that only the suite can have caused, besides broken tests; a sentence each."""

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command."""
        return EXIT_CODES[self.beside_known or self.verdict]

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many requirements have each verdict; every verdict is a key."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in Verdict}

    def rows_with(self, *verdicts: Verdict) -> tuple[RequirementVerdict, ...]:
        """Return the rows with one of these verdicts."""
        return tuple(row for row in self.rows if row.verdict in verdicts)

    @cached_property
    def by_area(self) -> Mapping[str, tuple[RequirementVerdict, ...]]:
        """The rows of each area, areas in the contract's order."""
        areas = grouped((row.requirement.area, row) for row in self.rows)
        return {area: tuple(rows) for area, rows in areas.items()}

    @cached_property
    def area_verdicts(self) -> Mapping[str, RunVerdict | None]:
        """The verdict of each area by itself; None for an area in which nothing is owed, or nothing was selected."""
        return {area: _of_area(rows) for area, rows in self.by_area.items()}


def add_up(record: RunRecord) -> RunResult:
    """Turn a record, also one that was cut off or damaged, into verdicts."""
    checks = grouped((check.requirement, check) for check in record.checks)
    ends = {end.test: end for end in record.tests}
    rows = tuple(_row(entry, checks.get(entry.id, []), ends) for entry in record.plan)
    contradictions = _contradictions(record, checks)
    broken = [f"{end.test}{_in_phase(end)}: {end.detail}" for end in record.tests if end.outcome is TestOutcome.BROKEN]
    broken += contradictions
    verdict, explanation = _run_verdict(record, rows, broken)
    beside = None
    violated = [row for row in rows if row.is_violation]
    if record.header.fail_on == "new" and violated and all(row.is_known for row in violated):
        known = {row.requirement.id for row in rows if row.is_known}
        as_if_none = [
            replace(row, verdict=Verdict.PASSED) if row.is_known or (row.waits_for and row.waits_for <= known) else row
            for row in rows
        ]
        beside = _run_verdict(record, as_if_none, broken)[0]
    return RunResult(verdict, rows, explanation, beside, tuple(contradictions))


# -- the run -----------------------------------------------------------------------------------------------------------


def _run_verdict(
    record: RunRecord, rows: Sequence[RequirementVerdict], broken: Sequence[str]
) -> tuple[RunVerdict, str]:
    violations = sum(row.is_violation for row in rows)
    stale = _about_baseline(rows)
    if violations:
        known = sum(row.is_violation and row.is_known for row in rows)
        of_these = f", of which {known} in the baseline" if known else ""
        also = f" Besides, {plural(len(broken), 'test')} of the suite itself broke." if broken else ""
        return RunVerdict.NON_CONFORMANT, f"{plural(violations, 'requirement')} violated{of_these}.{also}{stale}"
    if broken:
        return RunVerdict.BROKEN, f"{plural(len(broken), 'test')} of the suite itself broke: {broken[0]}"
    footer = record.footer
    if footer is not None and footer.could_not_run:
        return RunVerdict.COULD_NOT_RUN, footer.detail or "The target could not be tested."
    stopped = footer.detail if footer else "the run was cut off before its end, or is still running"
    if record.damage:
        ended_so = footer is not None and footer.verdict == RunVerdict.NON_CONFORMANT
        verdict = RunVerdict.NON_CONFORMANT if ended_so else RunVerdict.INCOMPLETE
        also = ", and the run ended as non-conformant" if ended_so else ""
        return verdict, f"What can be read of the record shows no violation, but {record.damage[0]}{also}."
    if stopped:
        return RunVerdict.INCOMPLETE, f"Nothing failed, but {stopped.rstrip('.')}."
    return _nothing_failed(record, rows, stale)


def _nothing_failed(record: RunRecord, rows: Sequence[RequirementVerdict], stale: str) -> tuple[RunVerdict, str]:
    gaps = [row for row in rows if row.is_gap]
    verified = sum(
        row.verdict is Verdict.PASSED and row.requirement.level == "must" and row.requirement.selected for row in rows
    )
    if not gaps and not verified:
        what = "What was tried are recommendations and observations" if anything_seen(rows) else "Nothing was tested"
        return RunVerdict.INCOMPLETE, f"{what}: no requirement that decides the verdict was tried.{stale}"
    if gaps:
        reasons = Counter(row.reason or Reason.NOT_REACHED for row in gaps)
        listed = ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
        open_ = f"{plural(len(gaps), 'requirement')} not verified ({listed})"
        return RunVerdict.INCOMPLETE, f"Nothing failed, but {open_}.{stale}"
    if record.header.selection:
        chosen = record.header.selected_in_brief
        return RunVerdict.SELECTION_HOLDS, (
            f"What was selected ({chosen}) was verified: {plural(verified, 'requirement')}; the others were "
            "not looked at." + stale
        )
    scope = f" of the claimed scope ({', '.join(record.header.scope)})" if record.header.scope else ""
    return RunVerdict.CONFORMANT, f"All {verified} applicable requirements{scope} were verified.{stale}"


def anything_seen(rows: Iterable[RequirementVerdict]) -> bool:
    """Tell whether a run tried anything at all, also what does not decide its verdict."""
    return any(row.verdict not in (Verdict.NOT_TESTED, Verdict.NOT_APPLICABLE) for row in rows)


def _about_baseline(rows: Sequence[RequirementVerdict]) -> str:
    """Say which entries of the baseline need attention, because the list must be kept short."""
    known = [(row, row.requirement.known_failure) for row in rows]
    expired = [row.requirement.id for row, entry in known if row.verdict is Verdict.FAILED and entry and entry.expired]
    held = [row.requirement.id for row, entry in known if row.verdict is Verdict.PASSED and entry]
    said = f" Expired in the baseline: {', '.join(expired)}." if expired else ""
    return f"{said} Take out of the baseline what holds: {', '.join(held)}." if held else said


def _of_area(rows: Iterable[RequirementVerdict]) -> RunVerdict | None:
    owed = [row for row in rows if row.is_owed]
    if not owed:
        return None
    if any(row.is_violation for row in owed):
        return RunVerdict.NON_CONFORMANT
    return RunVerdict.INCOMPLETE if any(row.is_gap for row in owed) else RunVerdict.CONFORMANT


def _contradictions(record: RunRecord, checks: Mapping[str, Sequence[Check]]) -> list[str]:
    """Return each contradiction in what the suite wrote, as a sentence."""
    status = {entry.id: entry.status for entry in record.plan}
    found = [f"{name} was judged, and the plan does not name it" for name in sorted(checks.keys() - status.keys())]
    found += [
        f"{name} was judged as failed, and the plan says that it is {status[name]}"
        for name, seen in checks.items()
        if status.get(name, "applicable") != "applicable" and any(check.outcome is Outcome.FAILED for check in seen)
    ]
    if record.damage:
        return found  # what seems to be missing may be in the unreadable lines
    told = {check.test for check in record.checks if check.outcome is Outcome.FAILED}
    found += [
        f"{end.test} failed, and names no requirement that did"
        for end in record.tests
        if end.outcome is TestOutcome.FAILED and end.test not in told
    ]
    return found


def _in_phase(end: TestEnd) -> str:
    return f" in its {end.phase}" if end.phase else ""


# -- a requirement -----------------------------------------------------------------------------------------------------


def _row(entry: PlannedRequirement, checks: list[Check], ends: Mapping[str, TestEnd]) -> RequirementVerdict:
    failed = tuple(check for check in checks if check.outcome is Outcome.FAILED)
    failures = failed or tuple(check for check in checks if check.outcome is Outcome.UNSTABLE)
    observations = tuple(
        dict.fromkeys(check.detail for check in checks if check.outcome is Outcome.OBSERVED and check.detail)
    )
    passed = sum(check.outcome is Outcome.PASSED for check in checks)
    verdict, reason, detail = _verdict(entry, checks, ends)
    is_open = verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)
    is_whole = is_open and not any(_unfinished(ends.get(test), test) for test in entry.tests)
    waits_for = _waits_for(checks) if is_whole else frozenset()
    return RequirementVerdict(entry, verdict, reason, detail, passed, failures, observations, waits_for)


def _waits_for(checks: Sequence[Check]) -> frozenset[str]:
    told = [check.waits_for for check in checks if check.outcome in _OPEN]
    return frozenset(filter(None, told)) if all(told) else frozenset()


_Told = tuple[Verdict, Reason | None, str | None]


def _verdict(entry: PlannedRequirement, checks: Sequence[Check], ends: Mapping[str, TestEnd]) -> _Told:
    """Add up the checks: a failure outweighs everything; what was not tested or observed outweighs what held.

    A requirement that was only seen in passing is not verified, because none of its own tests looked.
    """
    if entry.status in ("not applicable", "not testable"):
        return Verdict.NOT_APPLICABLE, entry.reason, entry.detail
    failed = next((check for check in checks if check.outcome is Outcome.FAILED), None)
    if failed is not None:
        return Verdict.FAILED, None, failed.detail
    unstable = next((check for check in checks if check.outcome is Outcome.UNSTABLE), None)
    if unstable is not None:
        return Verdict.UNSTABLE, Reason.UNSTABLE, unstable.detail
    return _open(entry, checks, ends) or _settled(entry, checks, ends)


def _open(entry: PlannedRequirement, checks: Sequence[Check], ends: Mapping[str, TestEnd]) -> _Told | None:
    """Return why a requirement without violations is open; None when all planned tests ran and observed it."""
    unsettled = next((check for check in checks if check.outcome in _OPEN), None)
    unfinished = next((told for test in entry.tests if (told := _unfinished(ends.get(test), test))), None)
    if unfinished is not None and (unsettled is None or unfinished[1] is Reason.HARNESS_ERROR):
        return unfinished
    return None if unsettled is None else (_OPEN[unsettled.outcome], unsettled.reason, unsettled.detail)


def _settled(entry: PlannedRequirement, checks: Sequence[Check], ends: Mapping[str, TestEnd]) -> _Told:
    """Return the verdict for checks of which none failed and none is open."""
    if any(check.outcome is Outcome.PASSED and check.claimed for check in checks):
        known = entry.known_failure
        return Verdict.PASSED, None, f"in the baseline, and holds: {known.words}" if known else None
    if entry.level == "note" and any(check.outcome is Outcome.OBSERVED for check in checks):
        return Verdict.NOTED, None, None
    lacking = next((check for check in checks if check.outcome is Outcome.NOT_APPLICABLE), None)
    if lacking is not None:
        return Verdict.NOT_APPLICABLE, lacking.reason, lacking.detail
    end = next((ends[test] for test in entry.tests if test in ends and ends[test].detail), None)
    detail = entry.detail or f"its tests did not look at it{f': {end.detail}' if end else ''}"
    return Verdict.NOT_TESTED, entry.reason or (end and end.reason) or Reason.NOT_REACHED, detail


def _unfinished(end: TestEnd | None, test: str) -> _Told | None:
    """Return why a planned test leaves its requirements open, whatever other tests saw; None when it ran to its end."""
    if end is None:
        return Verdict.NOT_TESTED, Reason.NOT_REACHED, f"the run ended before {test}"
    if end.outcome in ENDED:
        detail = f"the run ended within a test: {test}: {end.detail}"
        return (Verdict.INCONCLUSIVE, end.reason, detail) if end.reason is Reason.INTERRUPTED else None
    if end.outcome is TestOutcome.BROKEN:
        detail = f"the suite itself broke{_in_phase(end)}: {end.detail}"
        return Verdict.INCONCLUSIVE, Reason.HARNESS_ERROR, detail
    reason = Reason.SWITCHED_OFF if end.outcome is TestOutcome.DESELECTED else Reason.NOT_REACHED
    if (end.detail or "").startswith(Reason.ANOTHER_SHARD):
        reason = Reason.ANOTHER_SHARD
    return Verdict.NOT_TESTED, reason, f"{end.outcome}: {test}: {end.detail}"


_OPEN: Mapping[Outcome, Verdict] = {Outcome.INCONCLUSIVE: Verdict.INCONCLUSIVE, Outcome.NOT_TESTED: Verdict.NOT_TESTED}
