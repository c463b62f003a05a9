"""Reads the record of a run: whole, cut off, damaged in the middle, or in the first form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from conformance.errors import UsageError, or_usage_error
from conformance.results.record import (
    RECORD_FORM,
    AccessRule,
    Check,
    Evidence,
    Footer,
    Header,
    ItemSeen,
    ItemState,
    KnownFailure,
    Latency,
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
from conformance.results.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

#: The first form had no digest, and no line for a planned test that did not run.
FIRST_FORM = 1

LINE_KINDS: Mapping[type, str] = {
    Header: "header",
    Check: "check",
    TestEnd: "test",
    ItemSeen: "item",
    Notice: "notice",
    Footer: "footer",
}

#: Kinds of lines that a record has at most once.
_ONCE = ("header", "plan", "table", "access", "latencies", "footer")
#: Without these lines a record cannot be read.
_NEEDED = ("header", "plan")
#: How files begin that gzip and zip made.
_PACKED = ("\x1f", "PK\x03")
#: So many characters of bodies are kept in full: nobody reads a report with more, and it has to fit into memory.
_BODIES = 20_000_000
_SHORT_BODY = 200
#: No valid line is as long as this; the longest one is the plan.
_LONGEST_LINE = 50_000_000

Row = dict[str, Any]
#: The values of those fields of an exchange that a line leaves out.
_ABSENT: Row = {"request_body": None, "status": None, "response_body": None, "request": "", "curl": ""}


def read_record(file: Path) -> RunRecord:
    """Read a `results.jsonl`, also one that was cut off or has damaged lines; `damage` then names these.

    Raise UsageError when the file cannot be read, is no record, has a form unknown to this version, or contradicts
    itself because lines were changed, added or removed after it had been closed.
    """
    with or_usage_error(f"Cannot read {file}"), file.open(encoding="utf-8", errors="replace", newline="") as stream:
        return parse(_lines(stream, str(file)), str(file))


def _lines(stream: TextIO, name: str) -> Iterator[str]:
    """Yield the lines one by one, because a record of a whole night, or a wrong file, may not fit into memory."""
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise UsageError(f"{name} is not the record of a run: it has a line of {_LONGEST_LINE} characters.")
        yield line


def parse(lines: Iterable[str], name: str) -> RunRecord:
    """Return the record in these lines; messages call their source `name`. See `read_record`."""
    reading = Reading(name)
    for line in lines:
        reading.take(line)
    return reading.record()


class Reading:
    """A record while it is read: each line is converted at once, and equal bodies are kept once."""

    def __init__(self, name: str) -> None:
        """Begin with no lines; messages call their source `name`."""
        self._name = name
        self._number = 0
        self._by_kind: dict[str, list[Any]] = {}
        self._damage: list[str] = []
        self._texts: dict[str, str] = {}
        self._space = _BODIES
        self._shortened = 0
        self._digest = hashlib.sha256()
        self._before_footer: tuple[int, str] | None = None
        self._behind: set[str] = set()

    def take(self, line: str) -> None:
        """Read the next line; raise UsageError when the first line is no header, or cannot be understood."""
        self._number = number = self._number + 1
        row = _row(line)
        if number == 1:
            if line.startswith(_PACKED):
                raise UsageError(f"{self._name} is packed. Unpack it first, as with gunzip or unzip.")
            self._require_header(row)
        kind = str(row.pop("kind")) if row is not None else ""
        if self._before_footer is not None:
            self._behind.add(kind)
        elif kind == "footer":
            self._before_footer = (number - 1, self._digest.hexdigest())
        self._digest.update(line.encode("utf-8", "backslashreplace"))
        if row is not None:
            self._keep(kind, row)
        elif line.endswith("\n"):  # without one the run was cut off in the middle of it
            self._damage.append(f"line {number} of the record cannot be read")

    def _require_header(self, row: Row | None) -> None:
        if row is None or row["kind"] != "header" or not isinstance(row.get("form"), int):
            raise UsageError(f"{self._name} is not the record of a run: its first line is no header.")
        form = row["form"]
        if form not in (FIRST_FORM, RECORD_FORM):
            raise UsageError(
                f"{self._name} has form {form}; this version reads forms {FIRST_FORM} and {RECORD_FORM}. "
                f"It was written by suite {one_line(row.get('suite'), 40) or 'unknown'}: read it with that one."
            )

    def _keep(self, kind: str, row: Row) -> None:
        make = self._makers().get(kind)
        try:
            self._by_kind.setdefault(kind, []).append(row if make is None else make(row))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if kind in _NEEDED:
                raise UsageError(f"{self._name} is damaged: {type(error).__name__}: {error}.") from error
            self._damage.append(f"line {self._number} of the record, a {kind}, cannot be understood")

    def _makers(self) -> Mapping[str, Callable[[Row], Any]]:
        return {
            "header": _header,
            "plan": lambda row: [_planned(entry) for entry in row["requirements"]],
            "table": lambda row: [TableItem(**_known(TableItem, entry)) for entry in row["items"]],
            "access": lambda row: [AccessRule(**_known(AccessRule, entry)) for entry in row["operations"]],
            "latencies": lambda row: [Latency(**_known(Latency, entry)) for entry in row["operations"]],
            "check": self._check,
            "test": lambda row: TestEnd(
                **{**_known(TestEnd, row), "outcome": TestOutcome(row["outcome"]), "reason": _reason(row)}
            ),
            "item": lambda row: ItemSeen(**{**_known(ItemSeen, row), "state": ItemState(row["state"])}),
            "notice": lambda row: str(row["text"]),
            "footer": _footer,
        }

    def _check(self, row: Row) -> Check:
        evidence = tuple(self._evidence(entry) for entry in row.get("evidence", ()))
        kept = {key: self._once(value) if isinstance(value, str) else value for key, value in row.items()}
        found = {**kept, "outcome": Outcome(row["outcome"]), "reason": _reason(row), "evidence": evidence}
        return Check(**_known(Check, found))

    def _evidence(self, row: Row) -> Evidence:
        bodies = {name: self._body(row.get(name)) for name in ("request_body", "response_body")}
        texts = {name: self._once(str(row.get(name, ""))) for name in ("actor", "request", "curl")}
        return Evidence(**{**_ABSENT, **_known(Evidence, row), **texts, **bodies})

    def _body(self, text: str | None) -> str | None:
        if text is None or text in self._texts:
            return None if text is None else self._texts[text]
        if len(text) > _SHORT_BODY and len(text) > self._space:
            self._shortened += 1
            text = f"{text[:_SHORT_BODY]} ... ({len(text)} characters, see results.jsonl)"
        self._space -= len(text)
        return self._once(text)

    def _once(self, text: str) -> str:
        return self._texts.setdefault(text, text)

    def record(self) -> RunRecord:
        """Return the record; raise UsageError when there was none, or when it contradicts itself."""
        kinds = self._by_kind
        if "header" not in kinds:
            raise UsageError(f"{self._name} is empty: the run ended before it wrote anything. Run again.")
        shortened = (
            f"The record is so large that {self._shortened} bodies are shortened in the reports; it has them whole."
        )
        record = RunRecord(
            header=kinds["header"][0],
            plan=tuple(chain.from_iterable(kinds.get("plan", ()))),
            checks=tuple(kinds.get("check", ())),
            tests=tuple(kinds.get("test", ())),
            footer=next(iter(kinds.get("footer", ())), None),
            warnings=(*kinds.get("notice", ()), *([shortened] if self._shortened else [])),
            table=tuple(chain.from_iterable(kinds.get("table", ()))),
            access=tuple(chain.from_iterable(kinds.get("access", ()))),
            items=tuple(kinds.get("item", ())),
            latencies=tuple(chain.from_iterable(kinds.get("latencies", ()))),
            readiness=next(reversed(kinds.get("readiness", [])), None),
            damage=tuple(self._damage),
        )
        problem = self._contradiction(record)
        if problem and not self._damage:
            raise UsageError(
                f"{self._name} contradicts itself: {problem}. It was changed after the run, and shows nothing."
            )
        return record

    def _contradiction(self, record: RunRecord) -> str | None:
        """Say in a few words how the record contradicts itself; None when it does not."""
        several = next((kind for kind in _ONCE if len(self._by_kind.get(kind, ())) > 1), None)
        if several is not None:
            return f"it has more than one {several}"
        ends = [end.test for end in record.tests]
        if len(set(ends)) < len(ends):
            return "a test ended twice"
        footer = record.footer
        if footer is None or self._before_footer is None or record.header.form == FIRST_FORM:
            return None
        lines, digest = self._before_footer
        if lines != footer.lines or self._behind - {"readiness"}:
            return f"its footer counts {footer.lines} lines, and other lines stand before it"
        return "its lines do not have the digest that its footer names" if digest != footer.digest else None


def _row(line: str) -> Row | None:
    """Parse a line; None when it cannot be read."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and "kind" in row else None


@cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind))


def _known(kind: type, row: Row) -> Row:
    """Drop the fields that only a newer suite knows."""
    return {name: value for name, value in row.items() if name in _names(kind)}


def digest_of(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines as they stand in the file."""
    content = hashlib.sha256()
    for line in lines:
        content.update(line.encode("utf-8", "backslashreplace"))
    return content.hexdigest()


def _header(row: Row) -> Header:
    several = ("arguments", "warnings", "scope", "undeclared", "selection", "subjects")
    return Header(
        **{
            **_known(Header, row),
            "profile": row.get("profile", {}),
            **{name: tuple(row.get(name, ())) for name in several},
        }
    )


def _footer(row: Row) -> Footer:
    network = NetworkUse(**_known(NetworkUse, row["network"])) if "network" in row else None
    return Footer(**{"verdict": "", **_known(Footer, row), "network": network})


def _planned(row: Row) -> PlannedRequirement:
    known = row.get("known_failure")
    if isinstance(known, str):  # as older records have it
        known = {"reason": known}
    told = {
        "reason": _reason(row),
        "tests": tuple(row.get("tests", ())),
        "known_failure": KnownFailure(**_known(KnownFailure, known)) if known else None,
    }
    return PlannedRequirement(**{**_known(PlannedRequirement, row), **told})


def _reason(row: Row) -> Reason | None:
    return Reason(row["reason"]) if row.get("reason") else None
