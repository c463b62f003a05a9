"""From checks to verdicts: of each requirement, and of the run. Every report format reads them from here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.errors import ExitCode
from conformance.results.record import Check, Evidence, Outcome, PlannedRequirement, Reason, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Verdict(StrEnum):
    """What the checks of one requirement add up to."""

    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    PASSED = "passed"
    NOTED = "noted"
    NOT_APPLICABLE = "not applicable"


class RunVerdict(StrEnum):
    """What all requirements add up to."""

    CONFORMANT = "conformant"
    NON_CONFORMANT = "non-conformant"
    INCOMPLETE = "incomplete"
    BROKEN = "suite broken"


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

    @property
    def is_violation(self) -> bool:
        """Whether it makes the run non-conformant."""
        return self.verdict is Verdict.FAILED and self.requirement.level == "must"

    @property
    def is_gap(self) -> bool:
        """Whether it keeps the run from being conformant although nothing failed."""
        return self.requirement.level == "must" and self.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_TESTED)

    @property
    def is_stale(self) -> bool:
        """Whether it holds although the operator has it on the list of known failures."""
        return self.requirement.known_failure is not None and self.verdict is Verdict.PASSED

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The exchanges that show the failures."""
        return tuple(entry for check in self.failures for entry in check.evidence)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The verdict of a run with one row per requirement, in the contract's order."""

    verdict: RunVerdict
    rows: tuple[RequirementVerdict, ...]
    explanation: str
    """Why the verdict is what it is, in one sentence."""
    exit_code: ExitCode

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """How many requirements have which verdict; every verdict is a key."""
        found = Counter(row.verdict for row in self.rows)
        return {verdict: found[verdict] for verdict in Verdict}

    def rows_with(self, *verdicts: Verdict) -> tuple[RequirementVerdict, ...]:
        """Return the rows with one of these verdicts."""
        return tuple(row for row in self.rows if row.verdict in verdicts)

    def by_area(self) -> Mapping[str, tuple[RequirementVerdict, ...]]:
        """Return the rows of each area, areas in the contract's order."""
        areas: dict[str, list[RequirementVerdict]] = {}
        for row in self.rows:
            areas.setdefault(row.requirement.area, []).append(row)
        return {area: tuple(rows) for area, rows in areas.items()}


def add_up(record: RunRecord) -> RunResult:
    """Turn a record, also one that was cut off, into verdicts."""
    checks: dict[str, list[Check]] = {}
    for check in record.checks:
        checks.setdefault(check.requirement, []).append(check)
    rows = tuple(_row(entry, checks.get(entry.id, [])) for entry in record.plan)
    broken = [end.test for end in record.tests if end.outcome == "broken"]
    # A violation of something that was never planned would otherwise be in no row at all.
    broken += sorted(checks.keys() - {entry.id for entry in record.plan})
    stopped = record.footer.detail if record.footer else "the run was cut off before its end"
    verdict, explanation = _run_verdict(rows, broken=len(broken), stopped=stopped)
    return RunResult(verdict, rows, explanation, _EXIT_CODES[verdict])


_EXIT_CODES: Mapping[RunVerdict, ExitCode] = {
    RunVerdict.CONFORMANT: ExitCode.CONFORMANT,
    RunVerdict.NON_CONFORMANT: ExitCode.NON_CONFORMANT,
    RunVerdict.INCOMPLETE: ExitCode.INCOMPLETE,
    RunVerdict.BROKEN: ExitCode.SUITE_BROKE,
}


def _run_verdict(
    rows: Iterable[RequirementVerdict],
    *,
    broken: int,
    stopped: str | None,
) -> tuple[RunVerdict, str]:
    rows = tuple(rows)
    violations = sum(row.is_violation for row in rows)
    gaps = [row for row in rows if row.is_gap]
    verified = sum(row.verdict is Verdict.PASSED and row.requirement.level == "must" for row in rows)
    # Whoever keeps a list must keep it short: what holds again and stays on it would fail unnoticed the next time.
    held = [row.requirement.id for row in rows if row.is_stale]
    stale = f" Take off the list of known failures what holds: {', '.join(held)}." if held else ""
    if violations:
        return RunVerdict.NON_CONFORMANT, f"{_count(violations, 'requirement')} violated.{stale}"
    if broken:
        return RunVerdict.BROKEN, f"{_count(broken, 'test')} of the suite itself broke; the target is not to blame."
    if stopped:
        return RunVerdict.INCOMPLETE, f"Nothing failed, but {stopped.rstrip('.')}."
    if gaps or not verified:
        reasons = Counter(row.reason or Reason.NOT_REACHED for row in gaps)
        listed = ", ".join(f"{number} {reason}" for reason, number in reasons.most_common())
        failed = "else failed" if Reason.KNOWN_FAILURE in reasons else "failed"
        open_ = f"{_count(len(gaps), 'requirement')} not verified ({listed or 'nothing ran'})"
        return RunVerdict.INCOMPLETE, f"Nothing {failed}, but {open_}.{stale}"
    if stale:
        return RunVerdict.INCOMPLETE, f"All {verified} applicable requirements were verified.{stale}"
    return RunVerdict.CONFORMANT, f"All {verified} applicable requirements were verified."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _row(entry: PlannedRequirement, checks: list[Check]) -> RequirementVerdict:
    failures = tuple(check for check in checks if check.outcome is Outcome.FAILED)
    observations = tuple(
        dict.fromkeys(check.detail for check in checks if check.outcome is Outcome.OBSERVED and check.detail),
    )
    passed = sum(check.outcome is Outcome.PASSED for check in checks)
    verdict, reason, detail = _verdict(entry, checks, failures, observations)
    return RequirementVerdict(entry, verdict, reason, detail, passed, failures, observations)


def _verdict(
    entry: PlannedRequirement,
    checks: list[Check],
    failures: tuple[Check, ...],
    observations: tuple[str, ...],
) -> tuple[Verdict, Reason | None, str | None]:
    """
    Add up: a failure outweighs everything, an open question outweighs what held.

    One that the operator knows of is no violation any more, and nothing that was verified either.
    A requirement whose place was only seen in passing is not verified: the test that is there for it did not run.
    """
    if entry.status in ("not applicable", "not testable"):
        return Verdict.NOT_APPLICABLE, entry.reason, entry.detail
    if failures and entry.known_failure is not None:
        return Verdict.NOT_TESTED, Reason.KNOWN_FAILURE, entry.known_failure
    if failures:
        return Verdict.FAILED, None, failures[0].detail
    unsettled = next((check for check in checks if check.outcome in _OPEN), None)
    if unsettled is not None:
        return _OPEN[unsettled.outcome], unsettled.reason, unsettled.detail
    if any(check.outcome is Outcome.PASSED and check.claimed for check in checks):
        stale = f"on the list of known failures, and holds: {entry.known_failure}" if entry.known_failure else None
        return Verdict.PASSED, None, stale
    return _unverified(entry, checks, observations)


def _unverified(
    entry: PlannedRequirement,
    checks: list[Check],
    observations: tuple[str, ...],
) -> tuple[Verdict, Reason | None, str | None]:
    if entry.level == "note" and observations:
        return Verdict.NOTED, None, None
    lacking = next((check for check in checks if check.outcome is Outcome.NOT_APPLICABLE), None)
    if lacking is not None:
        return Verdict.NOT_APPLICABLE, lacking.reason, lacking.detail
    return Verdict.NOT_TESTED, entry.reason or Reason.NOT_REACHED, entry.detail or "its tests did not run"


_OPEN: Mapping[Outcome, Verdict] = {
    Outcome.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    Outcome.NOT_TESTED: Verdict.NOT_TESTED,
}
