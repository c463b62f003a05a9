"""Writes the record of a run, `results.jsonl`, line by line during the run."""

from __future__ import annotations

import fcntl
import json
import shutil
import tempfile
import threading
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from conformance.errors import UsageError, or_usage_error
from conformance.http.redaction import REDACTION
from conformance.results.reading import LINE_KINDS, Reading, digest_of
from conformance.results.record import (
    AccessRule,
    Check,
    Footer,
    Header,
    ItemSeen,
    Latency,
    Notice,
    PlannedRequirement,
    RunRecord,
    TableItem,
    TestEnd,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The kinds of lines that the run itself writes.
Line = Header | Check | TestEnd | ItemSeen | Notice | Footer


#: The free bytes that a run needs at its start; with less, it would find out later that its record has no room.
_LEAST_ROOM = 1 << 16


class Recorder:
    """Appends lines to `results.jsonl` and flushes each, so that the record of a killed run has all it saw.

    When a line cannot be written, the record moves to the temporary folder with all its lines; `moved` says why.
    Safe to use from several threads.
    """

    def __init__(self, file: Path, *, waits: bool = False) -> None:
        """Create the folder and open the file for writing; raise UsageError when that is not possible.

        If it `waits`, an earlier record in the file stays there until `take_its_place`.
        """
        self.file = file
        self._waits = waits
        self.moved: str | None = None
        self.is_lost = False
        """Whether no file has all lines."""
        self._lines: list[str] = []
        self._reading, self._read = Reading(str(file)), 0
        self._lock = threading.Lock()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._stream: TextIO | None = file.open("a", encoding="utf-8", errors="backslashreplace")
            require_alone(self._stream, file)
            if not waits:
                with suppress(OSError):  # of what is no file
                    self._stream.truncate(0)
        except OSError as error:
            raise unwritable(file.parent, error) from error

    def take_its_place(self) -> None:
        """Put all lines so far in the place of the earlier record, at once: an interrupt leaves one of the two."""
        with self._lock:
            earlier, new = self._stream, self.file.resolve().with_suffix(".new")
            try:
                self._stream = new.open("w", encoding="utf-8", errors="backslashreplace")
                require_alone(self._stream, new)
                self._stream.writelines(self._lines)
                self._stream.flush()
                new.replace(self.file.resolve())
            except OSError as error:
                new.unlink(missing_ok=True)
                self._move(error)
            self._waits = False
            if earlier is not None:
                earlier.close()

    def write(self, line: Line) -> None:
        """Append one line."""
        self.append(encoded(line))

    def append(self, text: str) -> None:
        """Append a line that `encoded` made, perhaps in another process."""
        with self._lock:
            self._append(text)

    def write_plan(self, plan: Iterable[PlannedRequirement]) -> None:
        """Append what the contract says of every requirement."""
        self.append(_text("plan", {"requirements": [_compact(entry) for entry in plan]}))

    def write_table(self, table: Iterable[TableItem]) -> None:
        """Append the version table."""
        self.append(_text("table", {"items": [_compact(item) for item in table]}))

    def write_access(self, rules: Iterable[AccessRule]) -> None:
        """Append who may call what."""
        self.append(_text("access", {"operations": [asdict(rule) for rule in rules]}))

    def write_latencies(self, latencies: Iterable[Latency]) -> None:
        """Append how long the target took to answer."""
        self.append(_text("latencies", {"operations": [asdict(entry) for entry in latencies]}))

    def close_with(self, footer: Footer) -> None:
        """Append the footer with number and digest of all lines before it, and close the file."""
        with self._lock:
            self._append(encoded(replace(footer, lines=len(self._lines), digest=digest_of(self._lines))))
        self.close()

    def close(self) -> None:
        """Close the file; an error because the disk is full was handled before."""
        if self._stream is not None:
            try:
                self._stream.close()
            except OSError as error:
                self._move(error)
            self._stream = None

    def read_back(self) -> RunRecord:
        """Return the record as written so far, from memory."""
        with self._lock:
            new, self._read = self._lines[self._read :], len(self._lines)
        for line in new:
            self._reading.take(line)
        return self._reading.record()

    def _append(self, text: str) -> None:
        self._lines.append(text)
        if self._stream is None or self._waits:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError as error:
            self._move(error)

    def _move(self, error: OSError) -> None:
        """Continue in the temporary folder; if that fails too, keep the lines in memory for the terminal's summary."""
        old, self._stream = self.file, None
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix="conformance-"))
            stream = (folder / "results.jsonl").open("w", encoding="utf-8", errors="backslashreplace")
            stream.writelines(self._lines)
            stream.flush()
        except OSError:
            self.is_lost = True
            self.moved = f"{old} could not be written ({error.strerror or error}), and the temporary folder neither"
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)  # a part of a record, in a place that nobody was told
        else:
            self._stream, self.file = stream, folder / "results.jsonl"
            self.moved = f"{old} could not be written ({error.strerror or error}); the record is in {self.file}"


def unwritable(folder: Path, error: OSError) -> UsageError:
    """Return the error for a folder in which nothing can be written."""
    why = error.strerror or error
    return UsageError(f"Cannot write reports to {folder}: {why}. Name a folder you may write to with --out.")


def require_writable(folder: Path) -> None:
    """Raise UsageError when no record can be written to a folder; the folder need not exist, and is not created."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as probe:
            probe.write(bytes(_LEAST_ROOM))
        if (folder / "results.jsonl").exists():
            (folder / "results.jsonl").open("ab").close()
    except OSError as error:
        raise unwritable(folder, error) from error


def encoded(line: Line) -> str:
    """Return a line as it is written to the file, with its newline."""
    return _text(LINE_KINDS[type(line)], _compact(line))


def add_readiness(file: Path, readiness: Mapping[str, Any]) -> None:
    """Append the effects of an upgrade to a finished record; raise UsageError when it cannot be written."""
    text = _text("readiness", readiness)
    with (
        or_usage_error(f"Cannot write to {file}"),
        file.open("a", encoding="utf-8", errors="backslashreplace") as lines,
    ):
        lines.write(text)


def _text(kind: str, data: Mapping[str, Any]) -> str:
    text = json.dumps({"kind": kind, **data}, ensure_ascii=False, default=_as_data)
    if REDACTION.is_in(text):
        text = json.dumps(REDACTION.data(json.loads(text)), ensure_ascii=False)
    return text + "\n"


def _as_data(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def _compact(line: Any) -> dict[str, Any]:
    """Return the fields of a line that are not empty."""
    data = {field.name: getattr(line, field.name) for field in fields(line)}
    return {key: value for key, value in data.items() if value not in (None, (), [], "")}


def is_being_written(folder: Path) -> bool:
    """Tell whether another run still writes its record in a folder, as far as its file system knows locks."""
    file = folder / "results.jsonl"
    try:
        with file.open("r+", encoding="utf-8") as stream:
            require_alone(stream, file)
    except UsageError:
        return True
    except OSError:  # there is none, or it may not be written
        return False
    return False


def require_alone(stream: TextIO, file: Path) -> None:
    """Raise UsageError while another process writes its record to the same file."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        stream.close()
        told = f"Another run is writing to {file.parent}. Wait for it, or name another folder with --out."
        raise UsageError(told) from None
    except OSError:  # a file system that knows no locks
        return
