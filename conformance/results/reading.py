"""Reads the record of a run back: whole, cut off, damaged in the middle, or of the earlier form."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError
from conformance.results.record import (
    RECORD_FORM,
    AccessRule,
    Check,
    Evidence,
    Footer,
    Header,
    ItemSeen,
    ItemState,
    NetworkUse,
    Notice,
    Outcome,
    PlannedRequirement,
    Reason,
    RunRecord,
    TableItem,
    TestEnd,
    TestOutcome,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

#: The first form had no line for a test that was planned and did not run, and no digest.
FIRST_FORM = 1

LINE_KINDS: Mapping[type, str] = {
    Header: "header",
    Check: "check",
    TestEnd: "test",
    ItemSeen: "item",
    Notice: "notice",
    Footer: "footer",
}

#: Lines of which a record has one at most.
_ONCE = ("header", "plan", "table", "access", "footer")

Row = dict[str, Any]
#: What a line leaves out of an exchange where there is none.
_ABSENT: Row = {"request_body": None, "status": None, "response_body": None, "request": "", "curl": ""}


def read_record(file: Path) -> RunRecord:
    """
    Read a `results.jsonl`, also one that was cut off, or has damaged lines, which `damage` then names.

    Raise UsageError when the file cannot be read, is no record, has a form this version does not know, or contradicts
    itself: lines were changed, added or taken out after it had been closed.
    """
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as stream:
            lines = stream.readlines()
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror or error}.") from error
    return parse(lines, str(file))


def parse(lines: Sequence[str], name: str) -> RunRecord:
    """Return the record that some lines hold; `name` says in messages where they are from. See `read_record`."""
    rows, damage = _rows(lines)
    if not rows or rows[0].get("kind") != "header" or not isinstance(rows[0].get("form"), int):
        raise UsageError(f"{name} is not the record of a run: its first line is no header.")
    form = rows[0]["form"]
    if form not in (FIRST_FORM, RECORD_FORM):
        raise UsageError(f"{name} has form {form}; this version reads forms {FIRST_FORM} and {RECORD_FORM}.")
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(str(row.pop("kind")), []).append(row)
    try:
        record = _record(by_kind, damage)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{name} is damaged: {type(error).__name__}: {error}.") from error
    problem = _contradiction(record, by_kind, lines)
    if problem and not damage:
        raise UsageError(f"{name} contradicts itself: {problem}. It was changed after the run, and shows nothing.")
    return record


def _rows(lines: Sequence[str]) -> tuple[list[Row], tuple[str, ...]]:
    """Return the lines that can be read, and a sentence for each that cannot; a last one that is cut off is passed."""
    rows: list[Row] = []
    damage: list[str] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict) and "kind" in row:
            rows.append(row)
        elif number < len(lines) or line.endswith("\n"):
            damage.append(f"line {number} of the record cannot be read")
    return rows, tuple(damage)


def _record(by_kind: Mapping[str, list[Row]], damage: tuple[str, ...]) -> RunRecord:
    return RunRecord(
        header=_header(by_kind["header"][0]),
        plan=tuple(_planned(entry) for row in by_kind.get("plan", ()) for entry in row["requirements"]),
        checks=tuple(_check(row) for row in by_kind.get("check", ())),
        tests=tuple(TestEnd(**{**row, "outcome": TestOutcome(row["outcome"])}) for row in by_kind.get("test", ())),
        footer=next(map(_footer, by_kind.get("footer", ())), None),
        warnings=tuple(row["text"] for row in by_kind.get("notice", ())),
        table=tuple(TableItem(**entry) for row in by_kind.get("table", ()) for entry in row["items"]),
        access=tuple(AccessRule(**entry) for row in by_kind.get("access", ()) for entry in row["operations"]),
        items=tuple(ItemSeen(**{**row, "state": ItemState(row["state"])}) for row in by_kind.get("item", ())),
        readiness=next(reversed(by_kind.get("readiness", [])), None),
        damage=damage,
    )


def _contradiction(record: RunRecord, by_kind: Mapping[str, list[Row]], lines: Sequence[str]) -> str | None:
    """Say in a few words how a record contradicts itself; None when it does not."""
    several = next((kind for kind in _ONCE if len(by_kind.get(kind, ())) > 1), None)
    if several is not None:
        return f"it has more than one {several}"
    ends = [end.test for end in record.tests]
    if len(set(ends)) < len(ends):
        return "a test ended twice"
    footer = record.footer
    if footer is None or record.header.form == FIRST_FORM:
        return None
    before = lines[: footer.lines]
    behind = [json.loads(line).get("kind") for line in lines[footer.lines :]]
    if behind[:1] != ["footer"] or set(behind[1:]) - {"readiness"}:
        return f"its footer counts {footer.lines} lines, and other lines stand before it"
    if digest_of(before) != footer.digest:
        return "its lines do not have the digest that its footer names"
    return None


def digest_of(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines as they stand in the file."""
    content = hashlib.sha256()
    for line in lines:
        content.update(line.encode("utf-8", "backslashreplace"))
    return content.hexdigest()


def _header(row: Row) -> Header:
    several = ("arguments", "warnings", "scope", "undeclared", "selection", "subjects")
    return Header(**{**row, "profile": row.get("profile", {}), **{name: tuple(row.get(name, ())) for name in several}})


def _footer(row: Row) -> Footer:
    network = NetworkUse(**row["network"]) if "network" in row else None
    return Footer(**{"verdict": "", **row, "network": network})


def _planned(row: Row) -> PlannedRequirement:
    return PlannedRequirement(**{**row, "reason": _reason(row), "tests": tuple(row.get("tests", ()))})


def _check(row: Row) -> Check:
    evidence = tuple(_evidence(row.get("evidence", ())))
    return Check(**{**row, "outcome": Outcome(row["outcome"]), "reason": _reason(row), "evidence": evidence})


def _evidence(entries: Iterable[Row]) -> Iterator[Evidence]:
    for entry in entries:
        yield Evidence(**{**_ABSENT, **entry})


def _reason(row: Row) -> Reason | None:
    return Reason(row["reason"]) if row.get("reason") else None
