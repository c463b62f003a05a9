"""One cause, one place: which requirements were violated by the same answer to the same sort of call."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.results.record import Check
    from conformance.results.verdicts import RequirementVerdict, Verdict

_Key = tuple[str, int | None, str, str]

#: What differs from call to call of one operation: numbers, encoded paths, pages and generated names.
_OF_ONE_CALL = re.compile(r"(?<=/)(?:\d+|[^/?]*%2F[^/?]*)(?=[/?]|$)|\?.*$|\b\d{2,}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that went wrong, with all requirements that it violates."""

    check: Check
    """The check that shows it best."""
    rows: tuple[RequirementVerdict, ...]
    """Violations first."""

    @property
    def head(self) -> RequirementVerdict:
        """The requirement under whose name it is shown."""
        return self.rows[0]

    @property
    def others(self) -> tuple[RequirementVerdict, ...]:
        """The requirements below it."""
        return self.rows[1:]


def causes(rows: Iterable[RequirementVerdict]) -> tuple[Cause, ...]:
    """
    Group requirements that failed, in their order: each stands with the others that the same answer violates.

    The same is the same operation, status, place and finding. A requirement that failed for several reasons stands
    where most others do.
    """
    failed = tuple(rows)
    # What failed and what is unstable, what is a violation and what a warning, stays apart.
    common = Counter(
        (_weight(row), key) for row in failed for key in dict.fromkeys(_key(check) for check in row.failures)
    )
    groups: dict[tuple[object, _Key], list[tuple[RequirementVerdict, Check]]] = {}
    for row in failed:
        # Of reasons that are as common as each other, `max` takes the first.
        check = max(row.failures, key=lambda entry, row=row: common[_weight(row), _key(entry)])  # type: ignore[misc]
        groups.setdefault((_weight(row), _key(check)), []).append((row, check))
    return tuple(Cause(members[0][1], tuple(row for row, _ in members)) for members in groups.values())


def guilty(check: Check) -> str:
    """Return method and path of the call that shows a failure, without what differs from call to call."""
    return _OF_ONE_CALL.sub("*", check.evidence[-1].request.partition("?")[0]) if check.evidence else ""


def _key(check: Check) -> _Key:
    if not check.evidence:
        return (check.test, None, check.place or "", check.actual or check.detail or "")
    status = check.evidence[-1].status
    return (guilty(check), status, check.place or "", _OF_ONE_CALL.sub("*", check.actual or check.detail or ""))


def _weight(row: RequirementVerdict) -> tuple[bool, Verdict]:
    return row.is_violation, row.verdict
