"""Groups requirements by cause: those that fail by the same answer to the same call, and those open for one reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.http.bodies import json_in
from conformance.results.grouping import grouped
from conformance.results.record import Reason
from conformance.results.text import in_brief, one_line
from conformance.target.example import pasted
from conformance.target.names import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.results.record import Check
    from conformance.results.verdicts import RequirementVerdict, Verdict

_Key = tuple[str, int | None, str, str]

#: Parts that differ between calls of one operation: numbers, encoded paths, pages and generated names.
_OF_ONE_TEST = re.compile(r"\btests/[\w/]+\.py::\w+(?:\[[^\]]*\])?:? ?")
_SERVED = range(200, 300)
#: Parts that differ between equal reasons: numbers, queries and lists of them.
_OF_ONE_REASON = re.compile(r"\?[^\s,;]*|\[[^\]]*\]|\b\d+\b(?!\.)")
#: The message that no integration of the profile has certain parameters.
_NO_INTEGRATION = re.compile(r"no integration of the profile has (\w+(?: and \w+)*): ")
#: What to write into the profile where that is so of the service as well.
_DENIAL = re.compile(r"\b\w+: false\b")
#: The member in which services of this kind tell of an error.
_OF_ERRORS = ("error", "message")
_STATUS = re.compile(r"\bstatus \d{3}\b")
_OF_ONE_CALL = re.compile(r"(?<=/)(?:\d+|[^/?]*%2F[^/?]*)(?=[/?]|$)|\?.*$|\b\d{2,}\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of failures, with all requirements that it violates."""

    check: Check
    """The check that shows it most clearly."""
    rows: tuple[RequirementVerdict, ...]
    """Violations first."""

    @property
    def head(self) -> RequirementVerdict:
        """The requirement that represents it."""
        return self.rows[0]

    @property
    def further(self) -> tuple[Check, ...]:
        """The other failed checks of all its requirements, without those that say the same about the same calls."""
        seen = {(self.check.expected, self.check.actual, self.check.place, self.check.evidence)}
        found = []
        for check in (check for row in self.rows for check in row.failures):
            said = (check.expected, check.actual, check.place, check.evidence)
            if said not in seen:
                seen.add(said)
                found.append(check)
        return tuple(found)

    @property
    def same(self) -> str:
        """What all its requirements have in common, to begin a sentence with."""
        envelope = _envelope(self.check)
        return f"The same, an answer of the form {envelope}," if envelope else "The same"

    @property
    def others(self) -> tuple[RequirementVerdict, ...]:
        """The requirements listed below it."""
        return self.rows[1:]


def causes(rows: Iterable[RequirementVerdict]) -> tuple[Cause, ...]:
    """Group requirements that failed, in their order: each is listed with the others that the same answer violates.

    Answers are the same if operation, status, place and finding are equal, or if they lack what they should have
    because they are all empty objects, all wrapped in the same member, or all the text of an error. A requirement that
    failed for several reasons is listed under the reason that most others share.
    """
    failed = tuple(rows)
    # Failed and unstable, violation and warning, known and new results stay in separate groups.
    common = Counter(
        (_weight(row), key) for row in failed for key in dict.fromkeys(_key(check) for check in row.failures)
    )
    # If several reasons are equally common, `max` takes the first.
    checks = [max(row.failures, key=lambda one, row=row: common[_weight(row), _key(one)]) for row in failed]  # type: ignore[misc]
    groups = grouped(((_weight(row), _key(check)), (row, check)) for row, check in zip(failed, checks, strict=True))
    return tuple(Cause(members[0][1], tuple(row for row, _ in members)) for members in groups.values())


def guilty(check: Check) -> str:
    """Return method and path of the call that shows a failure, without the parts that differ between calls."""
    return _OF_ONE_CALL.sub("*", check.evidence[-1].request.partition("?")[0]) if check.evidence else ""


def _key(check: Check) -> _Key:
    if not check.evidence:
        return (check.test, None, check.place or "", check.actual or check.detail or "")
    envelope = _envelope(check)
    if envelope:
        return ("", None, "", envelope)
    status = check.evidence[-1].status
    # Served though it must be refused is another failure than served in a wrong way, and depends on who was served.
    is_undue = (check.expected or "").startswith("a refusal")
    call = f"{check.evidence[-1].actor} may {guilty(check)}" if is_undue else guilty(check)
    return (call, status, check.place or "", _OF_ONE_CALL.sub("*", check.actual or check.detail or ""))


def _envelope(check: Check) -> str:
    """Return the form of an answer that lacks what is expected in it: empty, wrapped whole, or an error's text."""
    name = (check.place or "").removeprefix("/")
    if check.place is None or "/" in name or not check.evidence:
        return ""
    answer = check.evidence[-1]
    body = json_in(answer.response_body)
    if not isinstance(body, dict) or name in body or len(body) > 1 or answer.status not in _SERVED:
        return ""
    wrapped = next(iter(body.items()), None)
    if wrapped is None:
        return "{}"
    is_whole = isinstance(wrapped[1], dict | list) or wrapped[0] in _OF_ERRORS
    return f'{{"{one_line(wrapped[0], 40)}": ...}}' if is_whole else ""


def _weight(row: RequirementVerdict) -> tuple[bool, Verdict, bool]:
    return row.is_violation, row.verdict, row.is_known


# -- what was not verified ---------------------------------------------------------------------------------------------


#: The messages that a profile lacks an actor or fixture, or one of its values.
_LACKING = re.compile(
    r"(?:actor|fixture) '(\w+)' (?:is not in the target profile|of the target profile does not give '(\w+)')"
    r"|the profile does not give '(\w+)' of (\w+)"
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Statements that are open for the same reason."""

    reason: str
    detail: str
    ids: tuple[str, ...]
    owed: int
    paste: str = ""
    """Lines of a profile that close it; empty if nothing in the profile does."""

    @property
    def shown(self) -> str:
        """Some of the ids, and the number of the others."""
        return in_brief(self.ids)

    @property
    def weight(self) -> str:
        """The number of musts that it keeps open, in words."""
        return f"{self.owed} must{'' if self.owed == 1 else 's'}"


def gap_groups(rows: Iterable[RequirementVerdict]) -> tuple[Gap, ...]:
    """Group open requirements by what closes them: first those that decide the verdict, largest group first."""
    found = grouped(
        ((str(row.reason or Reason.NOT_REACHED), _common(detail), paste), (detail, row))
        for row in rows
        if row.requirement.selected
        for detail, paste in [_closed_by(row)]
    )
    groups = [
        Gap(reason, _together(members), _ids(members), _owed(members), paste)
        for (reason, _, paste), members in found.items()
    ]
    return tuple(sorted(groups, key=lambda gap: (-gap.owed, -len(gap.ids))))


def _ids(members: Iterable[tuple[str, RequirementVerdict]]) -> tuple[str, ...]:
    """Return the ids of requirements, first those that decide the verdict."""
    return tuple(row.requirement.id for _, row in sorted(members, key=lambda member: not member[1].is_gap))


def _owed(members: Iterable[tuple[str, RequirementVerdict]]) -> int:
    return sum(row.is_gap for _, row in members)


def _together(members: Iterable[tuple[str, RequirementVerdict]]) -> str:
    """Return the reason of a group; if its reasons each name a parameter, name them all."""
    details = list(dict.fromkeys(detail for detail, _ in members))
    lacking = [_NO_INTEGRATION.match(detail) for detail in details]
    names = sorted({name for found in lacking if found for name in found[1].split(" and ")})
    if not names:
        return details[0]
    told = f"{', '.join(names[:-1])} or {names[-1]}" if names[1:] else names[0]
    each = "one that has each" if names[1:] else "one that has"
    denials = sorted({denial for detail in details for denial in _DENIAL.findall(detail)})
    instead = f"; if the service has none, write `{', '.join(denials)}` below features" if denials else ""
    return f"no integration of the profile has {told}: add {each}, with it among its parameters or events{instead}"


def _common(detail: str) -> str:
    """Return the common part of reasons that come from the same answer to calls about different things."""
    if _NO_INTEGRATION.match(detail):
        return "no integration of the profile has it"
    statuses = _STATUS.findall(detail)
    return f"{_OF_ONE_REASON.sub('*', detail)} {statuses}"


def _closed_by(row: RequirementVerdict) -> tuple[str, str]:
    """Return the reason why a requirement is open, and the lines for the profile that close it, if there are any."""
    detail = row.detail or ""
    lacking = _LACKING.search(detail) if row.reason is Reason.PREREQUISITE_MISSING else None
    name, value = (lacking[1] or lacking[4], lacking[2] or lacking[3]) if lacking else ("", None)
    fitting = [entry for entry in (*TABLE["fixtures"], *TABLE["actors"]) if name and name in (entry.each, entry.name)]
    known = next((entry for entry in fitting if entry.each), next(iter(fitting), None))  # most write the list
    if known is None:
        return one_line(_OF_ONE_TEST.sub("", detail), 400), ""
    what = next((entry.what for entry in known.fields if entry.name == value), None)
    if value is None or value == "id":
        return f"`{known.name}`: {known.what}", "\n".join(pasted(known))
    begins = "# in an entry of it\n    - " if known.each else "# beside what it has\n    "
    return f"`{known.name}.{value}`: {what or known.what}", f"  {known.name}:  {begins}{value}: ..."
