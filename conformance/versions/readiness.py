"""What to expect from an upgrade: one target, judged by two versions.

The suite runs twice over the statements that the rows between the versions affect: once as of the older version, and
once as of the newer one. What fails only as of the newer version would become a violation with the upgrade.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from conformance.contract import ChangeKind, Version
from conformance.errors import UsageError
from conformance.results.grouping import grouped
from conformance.results.record import Reason, TableItem
from conformance.results.text import one_line, plural
from conformance.results.verdicts import RequirementVerdict, Verdict, add_up
from conformance.versions.timeline import TimelineItem, TimelineState, timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.contract import Contract
    from conformance.results.record import RunRecord


class Ready(StrEnum):
    """Whether a target fulfils the newer version."""

    READY = "ready"
    UNCHANGED = "ready, with changes not made yet"
    """Nothing that the newer version demands is missing, but documented changes are: the text does not demand each."""
    NOT_READY = "not ready"
    OPEN = "open"
    """Nothing failed, but not everything that will be owed could be verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyItem(TableItem):
    """One item of the version table, and the target's position on it today."""

    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class ComingViolation:
    """Something that the target does today and the newer version forbids."""

    requirement: str
    statement: str
    section: str
    expected: str | None
    actual: str | None
    curl: str | None
    """A command that repeats the call which shows it."""


@dataclass(frozen=True, slots=True)
class ComingGap:
    """Something that the newer version demands and the run could not verify."""

    requirement: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """The expected effects of an upgrade from one version to another."""

    start: str
    end: str
    verdict: Ready
    explanation: str
    still_served: tuple[ReadyItem, ...]
    """Deprecated by the newer version, but served today."""
    gone: tuple[ReadyItem, ...]
    """Deprecated by the newer version, and no longer served today."""
    not_made: tuple[ReadyItem, ...]
    """Documented between the two versions, but not implemented yet."""
    made: tuple[ReadyItem, ...]
    """Documented between the two versions, and implemented already."""
    unseen: tuple[ReadyItem, ...]
    """Documented between the two versions or deprecated, but not observable from outside."""
    announced: tuple[ReadyItem, ...]
    """To be removed in a release that is not named: nothing is owed yet."""
    violations: tuple[ComingViolation, ...]
    unverified: tuple[ComingGap, ...]
    standing: tuple[str, ...]
    """Requirements that are violated as of both versions: the upgrade does not change them."""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data, as in `readiness.json`."""
        return asdict(self)


def interval(start: Version | None, end: str, option: str) -> tuple[Version, Version]:
    """Return the two versions of an upgrade; `option` is the option that gave the newer one.

    Raise UsageError when there is no version step between them.
    """
    newer = Version.parse_known(end, option)
    if newer is None:
        raise UsageError(f"{option}: the version to be ready for must be known, such as 18.0.")
    if start is None:
        raise UsageError(
            "The version of the target is unknown, so nobody can tell what an upgrade would change. "
            "Name it with --from, in the profile or with --target-version."
        )
    if start >= newer:
        raise UsageError(f"{option}: {newer} is not newer than the target, {start}: there is nothing to be ready for.")
    return start, newer


def affected(contract: Contract, start: Version, end: Version) -> tuple[str, ...]:
    """Return the requirements whose verdict an upgrade can change, and those of deprecated items."""
    found = [change.requirement for change in contract.changes if _matters(change.kind, change.version, start, end)]
    found += [
        requirement.id
        for requirement in contract.requirements.values()
        if any(bound and start < bound <= end for bound in (requirement.introduced, requirement.removed))
    ]
    return tuple(name for name in dict.fromkeys(found) if not contract.requirements[name].not_testable)


def _matters(kind: ChangeKind, version: Version | None, start: Version, end: Version) -> bool:
    if version is None or version > end:
        return False
    return version > start or kind is ChangeKind.DEPRECATED


def assess(before: RunRecord | None, after: RunRecord, start: Version, end: Version) -> Readiness:
    """Compare the runs as of two versions; without a run as of the older one, nothing counts as failed there."""
    then, now = (_rows(before) if before else {}), _rows(after)
    failed = [row for row in now.values() if row.is_violation]
    failed_then = {name for name, row in then.items() if row.verdict is Verdict.FAILED}
    standing = tuple(row.requirement.id for row in failed if row.requirement.id in failed_then)
    violations = tuple(_violation(row) for row in failed if row.requirement.id not in standing)
    gaps = tuple(
        ComingGap(name, str(row.reason or ""), row.detail or "")
        for name, row in now.items()
        if row.is_gap and row.requirement.tests and row.reason not in (Reason.SWITCHED_OFF, Reason.ANOTHER_SHARD)
    )
    items = list(timeline(after, add_up(after)))
    between = [entry for entry in items if _is_between(entry, start, end) and entry.item.kind != ChangeKind.DEPRECATED]
    deprecated = [entry for entry in items if entry.item.kind == ChangeKind.DEPRECATED and entry.reached]
    not_made = _with_state(between, TimelineState.NOT_MADE)
    unseen = [entry for entry in (*deprecated, *between) if entry.state is TimelineState.OPEN]
    done = Ready.UNCHANGED if not_made else Ready.READY
    verdict = Ready.NOT_READY if violations else Ready.OPEN if gaps else done
    return Readiness(
        start=str(start),
        end=str(end),
        verdict=verdict,
        explanation=_explanation(verdict, len(violations), len(gaps), str(end))
        + _beside(len(not_made))
        + _standing(len(standing)),
        still_served=_with_state(deprecated, TimelineState.STILL_SERVED),
        gone=_with_state(deprecated, TimelineState.GONE),
        not_made=not_made,
        made=_with_state(between, TimelineState.MADE),
        unseen=tuple(_ready(entry) for entry in unseen),
        announced=_with_state(items, TimelineState.ANNOUNCED),
        violations=violations,
        unverified=gaps,
        standing=standing,
    )


def _rows(record: RunRecord) -> dict[str, RequirementVerdict]:
    return {row.requirement.id: row for row in add_up(record).rows}


def _is_between(entry: TimelineItem, start: Version, end: Version) -> bool:
    if entry.item.version == "future":
        return False
    return start < Version.parse(entry.item.version) <= end


def _with_state(entries: list[TimelineItem], state: TimelineState) -> tuple[ReadyItem, ...]:
    return tuple(_ready(entry) for entry in entries if entry.state is state)


def _ready(entry: TimelineItem) -> ReadyItem:
    return ReadyItem(**asdict(entry.item), state=str(entry.state), detail=entry.detail)


def _violation(row: RequirementVerdict) -> ComingViolation:
    check = row.failures[0]
    words = check.said
    return ComingViolation(
        requirement=row.requirement.id,
        statement=row.requirement.statement,
        section=row.requirement.section,
        expected=words.get("expected"),
        actual=words.get("actual"),
        curl=check.evidence[-1].curl if check.evidence else None,
    )


def _explanation(verdict: Ready, violations: int, gaps: int, end: str) -> str:
    none = "Nothing that was seen becomes a violation"
    nothing = f"{none} with version {end}."
    return {
        Ready.READY: nothing,
        Ready.UNCHANGED: nothing,
        Ready.NOT_READY: f"As of version {end} {plural(violations, 'requirement')} would be violated.",
        Ready.OPEN: f"{none}, but {plural(gaps, 'requirement')} of version {end} could not be verified.",
    }[verdict]


def _beside(not_made: int) -> str:
    """Explain why missing changes do not affect the verdict: the text does not demand every row."""
    changes = "1 documented change is" if not_made == 1 else f"{not_made} documented changes are"
    return f" {changes} not made yet; only what the specification demands counts." if not_made else ""


def _standing(number: int) -> str:
    """Mention requirements that are violated already: the upgrade does not change them."""
    if not number:
        return ""
    what = "1 requirement is" if number == 1 else f"{number} requirements are"
    return f" {what} violated as of both versions: a run shows how."


def in_words(readiness: Readiness) -> str:
    """Return a readiness as text for the terminal, without a newline at its end."""
    return "\n".join(_lines(readiness))


def _lines(readiness: Readiness) -> Iterator[str]:
    yield f"{readiness.verdict.upper()}  for an upgrade from {readiness.start} to {readiness.end}"
    yield readiness.explanation
    yield from _headed("Becomes a violation", len(readiness.violations))
    for entry in readiness.violations:
        yield f"  {entry.requirement}"
        yield f"    {one_line(entry.statement)}"
        yield f"    expected {one_line(entry.expected)}; got {one_line(entry.actual)}"
        if entry.curl:
            yield f"    {one_line(entry.curl, 1000)}"
    if readiness.standing:
        yield from _headed("Violated as of both versions", len(readiness.standing))
        yield from (f"  {name}" for name in readiness.standing)
    yield from _listed("Not made yet", readiness.not_made)
    yield from _listed("Deprecated and still served", readiness.still_served)
    for title, items in (
        ("Deprecated and already gone", readiness.gone),
        ("Made already", readiness.made),
        ("Not seen", readiness.unseen),
        ("Announced for a release that is not named", readiness.announced),
    ):
        if items:
            yield from _listed(title, items)
    if readiness.unverified:
        yield from ("", f"Could not be verified ({len(readiness.unverified)})")
        for cause, names in by_cause(readiness.unverified):
            yield f"  {one_line(cause)} ({plural(len(names), 'requirement')})"
            yield from (f"    {name}" for name in names)


def by_cause(gaps: tuple[ComingGap, ...]) -> list[tuple[str, list[str]]]:
    """Return the reasons why requirements were not verified, each with its requirements, the most frequent first."""
    found = grouped((gap.detail or gap.reason, gap.requirement) for gap in gaps)
    return sorted(found.items(), key=lambda entry: (-len(entry[1]), entry[0]))


def _headed(title: str, number: int) -> Iterator[str]:
    """Yield a heading, also for an empty list, because whoever asks must get an answer."""
    yield from ("", f"{title} ({number})" if number else f"{title}: nothing that was seen")


def _listed(title: str, items: tuple[ReadyItem, ...]) -> Iterator[str]:
    yield from _headed(title, len(items))
    for entry in items:
        more = f"; use {entry.replacement}" if entry.replacement else ""
        planned = f"; removal planned for {entry.removal_planned}" if entry.removal_planned else ""
        yield f"  {entry.version:<5} {entry.kind:<10} {entry.item}: {one_line(entry.detail).rstrip('.')}{more}{planned}"
