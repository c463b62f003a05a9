"""The record of a run: `results.jsonl`, written as the run goes, and everything that is read back from it."""

from __future__ import annotations

import json
import tempfile
import threading
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Raised whenever a line changes its form, so that an old record is never misread.
RECORD_FORM = 1


class Outcome(StrEnum):
    """What one check came to."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not tested"
    OBSERVED = "observed"
    NOT_APPLICABLE = "not applicable"
    """Only the run could tell: the text names the item without describing it, and the target does not offer it."""


class Reason(StrEnum):
    """Why something is not tested, inconclusive or not applicable: a closed set, so that reports can count it."""

    FEATURE_NOT_DECLARED = "feature not declared"
    PREREQUISITE_MISSING = "prerequisite missing"
    VERSION = "version"
    SWITCHED_OFF = "switched off by the operator"
    UNSAFE = "unsafe in this mode"
    KNOWN_FAILURE = "known failure"
    HARNESS_ERROR = "harness error"
    NO_TEST_YET = "no test yet"
    NOT_OBSERVABLE = "cannot be observed from outside"
    NOT_REACHED = "not reached"
    PRECONDITION = "precondition not met"
    NO_ANSWER = "no answer"
    VACUOUS = "nothing to look at"
    INTERRUPTED = "interrupted"
    NOT_OFFERED = "not offered by the target"


class ItemState(StrEnum):
    """How a target stands to one item of the version table."""

    MADE = "made"
    """It behaves as the row says."""
    NOT_MADE = "not made"
    """It behaves as before the row."""
    STILL_SERVED = "still served"
    """Deprecated, and still there."""
    GONE = "gone"
    """Deprecated, and no longer there."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One exchange with the target, redacted, as a report shows it."""

    actor: str
    request: str
    """Method and path with query, as sent."""
    request_body: str | None
    status: int | None
    """None when no answer came."""
    response_body: str | None
    milliseconds: float
    curl: str
    """Repeats the call; tokens are `$TOKEN_<ACTOR>`."""


@dataclass(frozen=True, slots=True)
class Check:
    """One observation held against one requirement."""

    requirement: str
    outcome: Outcome
    test: str
    """Node id of the test."""
    reason: Reason | None = None
    detail: str | None = None
    """In words: what kept it from being seen, or what was observed."""
    expected: str | None = None
    actual: str | None = None
    place: str | None = None
    """Where in a body, as a JSON pointer."""
    evidence: tuple[Evidence, ...] = ()
    claimed: bool = True
    """Whether the test is there to verify this requirement, or saw it in passing."""


@dataclass(frozen=True, slots=True)
class TestEnd:
    """How one test went."""

    test: str
    outcome: str
    """`passed`, `failed`, `inconclusive`, `not tested` or `broken`."""
    seconds: float
    requests: int
    detail: str | None = None

    __test__ = False  # not a test, whatever pytest thinks of the name


@dataclass(frozen=True, slots=True)
class PlannedRequirement:
    """What the contract said of a requirement when the run began."""

    id: str
    area: str
    statement: str
    section: str
    level: str
    kind: str
    when: str
    """Versions for which it holds, in words."""
    status: str
    """`applicable`, `not applicable`, `not testable` or `pending`."""
    reason: Reason | None = None
    detail: str | None = None
    tests: tuple[str, ...] = ()
    """Node ids of the tests that claim to verify it."""
    known_failure: str | None = None
    """Why the operator knows that it fails."""


@dataclass(frozen=True, slots=True)
class TableItem:
    """One item of the version table, as the contract had it when the run began."""

    id: str
    version: str
    """`future` for an announcement without a version."""
    kind: str
    item: str
    summary: str
    requirement: str
    replacement: str | None = None
    removal_planned: str | None = None


@dataclass(frozen=True, slots=True)
class ItemSeen:
    """What a test saw of one item of the version table."""

    item: str
    """Id of the item."""
    state: ItemState
    detail: str
    """In words, without numbers or times of this one run."""
    test: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the run noticed about itself after it had begun."""

    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """Who tested what, with which text."""

    form: int
    suite: str
    contract: str
    """Digest of the contract's files."""
    target: str
    """A short name for file names and titles."""
    base_url: str
    version: str
    edition: str
    profile: Mapping[str, Any]
    """The profile without secrets."""
    seed: int
    started: str
    """UTC, ISO 8601."""
    python: str
    arguments: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    version_source: str | None = None
    """Where the version is from, such as `GET /version: 17.7.1-pre`."""


@dataclass(frozen=True, slots=True)
class Footer:
    """Written last; a record without one was cut off."""

    verdict: str
    exit_code: int
    ended: str
    requests: int
    seconds: float
    detail: str | None = None
    """Why the run stopped early, if it did."""
    drawn: Mapping[str, int] | None = None
    """How many cases were `coverage` of the schemas, drawn `fresh`, or `replayed`, and of these `failed_before`."""


@dataclass(frozen=True)
class RunRecord:
    """A whole record, read back."""

    header: Header
    plan: tuple[PlannedRequirement, ...]
    checks: tuple[Check, ...]
    tests: tuple[TestEnd, ...]
    footer: Footer | None
    """None when the run was cut off."""
    warnings: tuple[str, ...] = field(default=())
    table: tuple[TableItem, ...] = ()
    items: tuple[ItemSeen, ...] = ()
    readiness: Mapping[str, Any] | None = None
    """What an upgrade would meet, if that was asked; see `conformance.versions.readiness`."""

    @property
    def truncated(self) -> bool:
        """Whether the run was cut off before its end."""
        return self.footer is None


class Recorder:
    """
    Appends lines to `results.jsonl` and flushes each, so that a killed run leaves what it saw.

    When the disk refuses a line, the record moves to the temporary folder with all lines so far; `moved` says why.
    """

    def __init__(self, file: Path) -> None:
        """Open the file for writing, its folder made; raise UsageError when that is not possible."""
        self.file = file
        self.moved: str | None = None
        self.checks: list[Check] = []
        """What was checked so far, for those who cannot wait for the end."""
        self._lines: list[str] = []
        self._lock = threading.Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._stream: TextIO | None = file.open("w", encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(
                f"Cannot write reports to {file.parent}: {error.strerror or error}. "
                "Name a folder you may write to with --out.",
            ) from error

    def write(self, line: Header | Check | TestEnd | ItemSeen | Notice | Footer) -> None:
        """Append one line."""
        if isinstance(line, Check):
            self.checks.append(line)
        self._append(_LINE_KINDS[type(line)], _compact(asdict(line)))

    def write_plan(self, plan: Iterable[PlannedRequirement]) -> None:
        """Append what the contract says of every requirement."""
        self._append("plan", {"requirements": [_compact(asdict(entry)) for entry in plan]})

    def write_table(self, table: Iterable[TableItem]) -> None:
        """Append the version table."""
        self._append("table", {"items": [_compact(asdict(item)) for item in table]})

    def close(self) -> None:
        """Close the file; a disk that is full now has already been dealt with."""
        if self._stream is not None:
            try:
                self._stream.close()
            except OSError as error:
                self._move(error)
            self._stream = None

    def _append(self, kind: str, data: Mapping[str, Any]) -> None:
        text = json.dumps({"kind": kind, **data}, ensure_ascii=False, default=str) + "\n"
        with self._lock:
            self._lines.append(text)
            if self._stream is None:
                return
            try:
                self._stream.write(text)
                self._stream.flush()
            except OSError as error:
                self._move(error)

    def _move(self, error: OSError) -> None:
        """Go on in the temporary folder; without one, the lines stay in memory and reach the terminal's summary."""
        old, self._stream = self.file, None
        try:
            folder = Path(tempfile.mkdtemp(prefix="conformance-"))
            stream = (folder / "results.jsonl").open("w", encoding="utf-8", errors="backslashreplace")
            stream.writelines(self._lines)
            stream.flush()
        except OSError:
            self.moved = f"{old} could not be written ({error.strerror or error}), and the temporary folder neither"
        else:
            self._stream, self.file = stream, folder / "results.jsonl"
            self.moved = f"{old} could not be written ({error.strerror or error}); the record is in {self.file}"

    def read_back(self) -> RunRecord:
        """Return the record as written so far, from memory."""
        return _parse(self._lines, str(self.file))


_LINE_KINDS: Mapping[type, str] = {
    Header: "header",
    Check: "check",
    TestEnd: "test",
    ItemSeen: "item",
    Notice: "notice",
    Footer: "footer",
}


def _compact(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, (), [])}


def add_readiness(file: Path, readiness: Mapping[str, Any]) -> RunRecord:
    """Append to a finished record what an upgrade would meet, and return the record; raise UsageError if it cannot."""
    try:
        with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(json.dumps({"kind": "readiness", **readiness}, ensure_ascii=False, default=str) + "\n")
    except OSError as error:
        raise UsageError(f"Cannot write to {file}: {error.strerror or error}.") from error
    return read_record(file)


def read_record(file: Path) -> RunRecord:
    """
    Read a `results.jsonl`, also one that was cut off in the middle of a line.

    Raise UsageError when the file cannot be read, is no record, or has a form this version does not know.
    """
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            lines = stream.readlines()
    except OSError as error:
        raise UsageError(f"Cannot read {file}: {error.strerror or error}.") from error
    return _parse(lines, str(file))


def _parse(lines: list[str], name: str) -> RunRecord:
    rows = list(_rows(lines, name))
    if not rows or rows[0].get("kind") != "header":
        raise UsageError(f"{name} is not the record of a run: its first line is no header.")
    if rows[0].get("form") != RECORD_FORM:
        raise UsageError(f"{name} has form {rows[0].get('form')}; this version reads form {RECORD_FORM}.")
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row.pop("kind"), []).append(row)
    try:
        return RunRecord(
            header=_header(by_kind["header"][0]),
            plan=tuple(_planned(entry) for row in by_kind.get("plan", ()) for entry in row["requirements"]),
            checks=tuple(_check(row) for row in by_kind.get("check", ())),
            tests=tuple(TestEnd(**row) for row in by_kind.get("test", ())),
            footer=next((Footer(**row) for row in by_kind.get("footer", ())), None),
            warnings=tuple(row["text"] for row in by_kind.get("notice", ())),
            table=tuple(TableItem(**entry) for row in by_kind.get("table", ()) for entry in row["items"]),
            items=tuple(ItemSeen(**{**row, "state": ItemState(row["state"])}) for row in by_kind.get("item", ())),
            readiness=next(reversed(by_kind.get("readiness", [])), None),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name} is damaged: {error}.") from error


def _rows(lines: list[str], name: str) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == len(lines):
                return  # the line that was being written when the run was killed
            raise UsageError(f"{name} is damaged in line {number}.") from None
        if not isinstance(row, dict):
            raise UsageError(f"{name} is damaged in line {number}.")
        yield row


def _header(row: dict[str, Any]) -> Header:
    return Header(
        **{
            **row,
            "profile": row.get("profile", {}),
            "arguments": tuple(row.get("arguments", ())),
            "warnings": tuple(row.get("warnings", ())),
        },
    )


def _planned(row: dict[str, Any]) -> PlannedRequirement:
    return PlannedRequirement(**{**row, "reason": _reason(row), "tests": tuple(row.get("tests", ()))})


def _check(row: dict[str, Any]) -> Check:
    evidence = tuple(Evidence(**_with_absent(entry)) for entry in row.get("evidence", ()))
    return Check(**{**row, "outcome": Outcome(row["outcome"]), "reason": _reason(row), "evidence": evidence})


def _with_absent(row: dict[str, Any]) -> dict[str, Any]:
    return {"request_body": None, "status": None, "response_body": None, **row}


def _reason(row: dict[str, Any]) -> Reason | None:
    return Reason(row["reason"]) if row.get("reason") else None
