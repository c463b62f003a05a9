"""The version table of a run, item by item: whether it is in effect at the target's version, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.contract import ChangeKind, Version
from conformance.errors import UsageError
from conformance.results.record import ItemSeen, ItemState, RunRecord, TableItem
from conformance.results.verdicts import RequirementVerdict, RunResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


class TimelineState(StrEnum):
    """The state of a version table item on the target of a run."""

    MADE = "made"
    NOT_MADE = "not made"
    STILL_SERVED = "still served"
    GONE = "gone"
    OPEN = "not seen"
    """In effect, but the run could not see it."""
    AHEAD = "ahead"
    """From a version later than the target's."""
    ANNOUNCED = "announced"
    """From a version that is not named: nothing is owed yet."""


@dataclass(frozen=True, slots=True)
class TimelineItem:
    """One item of the table, with the result for the target of a run."""

    item: TableItem
    reached: bool | None
    """Whether the row is in effect at the target's version; None when one of the two is unknown."""
    state: TimelineState
    detail: str
    """What was seen, or why nothing was seen."""
    verdict: Verdict | None
    """Verdict of the item's requirement; None when the plan does not have it."""


#: Kinds whose requirement holds exactly when the target behaves as the row says.
_TOLD_BY_VERDICT = (ChangeKind.INTRODUCED, ChangeKind.RENAMED, ChangeKind.REMOVED, ChangeKind.CHANGED)
#: For these items, a test that saw a missing part outweighs others: only a complete item counts as made.
_UNDONE = (ItemState.NOT_MADE, ItemState.STILL_SERVED)
_BY_VERDICT: Mapping[Verdict, TimelineState] = {
    Verdict.PASSED: TimelineState.MADE,
    Verdict.FAILED: TimelineState.NOT_MADE,
}


def timeline(record: RunRecord, result: RunResult) -> tuple[TimelineItem, ...]:
    """Return the version table of a record in its order, oldest row first; empty for a record without one."""
    rows = {row.requirement.id: row for row in result.rows}
    seen = {entry.item: entry for entry in sorted(record.items, key=lambda entry: entry.state in _UNDONE)}
    target = _version(record.header.version)
    return tuple(_beside(item, target, rows.get(item.requirement), seen.get(item.id)) for item in record.table)


def _beside(
    item: TableItem, target: Version | None, row: RequirementVerdict | None, seen: ItemSeen | None
) -> TimelineItem:
    version = _version(item.version)
    reached = None if target is None or version is None else version <= target
    state, detail = _state(item, row, seen, reached=reached)
    return TimelineItem(item, reached, state, detail, row.verdict if row else None)


def _state(
    item: TableItem, row: RequirementVerdict | None, seen: ItemSeen | None, *, reached: bool | None
) -> tuple[TimelineState, str]:
    if item.kind == ChangeKind.ANNOUNCED:
        return TimelineState.ANNOUNCED, "nothing is owed yet"
    if reached is False:
        return TimelineState.AHEAD, "not owed yet"
    if seen is not None:
        return TimelineState(ItemState(seen.state).value), seen.detail
    if row is None:
        return TimelineState.OPEN, "its requirement was not planned"
    if item.kind in _TOLD_BY_VERDICT and row.verdict in _BY_VERDICT and reached is not None:
        return _BY_VERDICT[row.verdict], "as its requirement shows"
    return TimelineState.OPEN, row.detail or str(row.reason or row.verdict)


def _version(text: str) -> Version | None:
    try:
        return Version.parse(text)
    except UsageError:
        return None
