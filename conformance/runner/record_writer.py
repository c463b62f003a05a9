"""Collects the lines of a run and passes them on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.results.record import TestEnd

if TYPE_CHECKING:
    from conformance.results.recorder import Line, Recorder


class RecordWriter:
    """Takes the lines of a run and writes them to its record, or keeps them for the process that has the record.

    The lines of a running test are held until it has ended, because it may run again before any of them counts.
    """

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        """The record; None before it is begun, and in a process that keeps no record."""
        self.lines: list[Line] = []
        """The lines of a process that keeps no record, until another process fetches them."""
        self.ended: set[str] = set()
        """The tests that ended."""
        self.requests_of_ended = 0
        """How many requests these tests sent."""
        self._held: list[Line] | None = None

    def hold(self) -> None:
        """Hold the lines that are written from now on, until `release`."""
        self._held = []

    def release(self) -> list[Line]:
        """Return the held lines, and stop holding."""
        held, self._held = self._held or [], None
        return held

    def write(self, line: Line) -> None:
        """Write a line, or hold it."""
        if self._held is not None:
            self._held.append(line)
        else:
            self.write_at_once(line)

    def write_at_once(self, line: Line) -> None:
        """Write a line at once, although the lines of the running test are held."""
        if isinstance(line, TestEnd):
            self.ended.add(line.test)
            self.requests_of_ended += line.requests
        if self.recorder is not None:
            self.recorder.write(line)
        else:
            self.lines.append(line)
