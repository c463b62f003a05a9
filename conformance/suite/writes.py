"""The calls of a run that may have changed something, and the exports that they began."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from conformance.http.bodies import object_in
from conformance.http.exchange import READING

if TYPE_CHECKING:
    from conformance.http.exchange import Call, Exchange

#: How the parameters begin that name what is added to a list.
_TARGET = "target_"


class Writes:
    """Counts the writes of a run, and remembers which were served and when. Safe to use from several threads."""

    def __init__(self) -> None:
        self.sent = 0
        self.not_refused = 0
        """Number of writes with any answer except a refusal, or with no answer."""
        self.unanswered = 0
        """Number of writes without an answer: nobody knows their effect, nor whether they undid something."""
        self.served: dict[tuple[str, str], list[float]] = {}
        """By method and path: when they were served, in seconds of the monotonic clock."""
        self.first_by: dict[tuple[str, str, str], float] = {}
        """By method, path and actor: when the first of them was served."""
        self.added: dict[str, set[int]] = {}
        """By the path of a list: the numbers of what was added to it and not removed again, whatever it shows."""
        self._lock = threading.Lock()

    def see(self, exchange: Exchange) -> None:
        """Record a call, whatever its answer was."""
        call = exchange.call
        if call.method in READING:
            return
        with self._lock:
            self.sent += 1
            self.not_refused += not exchange.is_refusal
            self.unanswered += exchange.is_withheld
            if exchange.is_success:
                now = time.monotonic()
                self.served.setdefault((call.method, call.path), []).append(now)
                self.first_by.setdefault((call.method, call.path, call.caller), now)
                self._see_list(call)

    def _see_list(self, call: Call) -> None:
        owner, _, last = call.path.rpartition("/")
        if call.method == "DELETE" and last.isdecimal():
            # The same list may have been named otherwise: by the number of its project, or by the path.
            for path in [path for path in self.added if path.rpartition("/")[2] == owner.rpartition("/")[2]]:
                self.added[path].discard(int(last))
        sent = object_in(call.body) if call.method == "POST" else {}
        named = [value for name, value in sent.items() if name.startswith(_TARGET) and type(value) is int]
        if named:
            self.added.setdefault(call.path, set()).update(named)


class FirstExports:
    """The groups whose first export by an actor may not have begun yet.

    An accepted export may begin later, and whoever has not scheduled one may see none. Until then the status may list
    relations without a state. Once it has shown a state to an actor, or after the longest time that the target may need
    for the export that this actor scheduled, each relation has a state.
    """

    def __init__(self, writes: Writes, deadline_seconds: float) -> None:
        self._writes = writes
        self._deadline_seconds = deadline_seconds
        self._begun: set[tuple[str, str]] = set()
        """The paths of the exports whose status has shown a state, each with the actor who saw it."""

    def may_be_yet_to_begin(self, exchange: Exchange) -> bool:
        """Tell whether an answer is the status of an export that may not have begun yet."""
        owner, _, last = exchange.call.path.rpartition("/")
        seen = owner, exchange.call.caller
        first = self._writes.first_by.get(("POST", *seen))
        is_due = first is not None and time.monotonic() > first + self._deadline_seconds
        if last != "status" or not exchange.is_success or is_due:
            return False
        entries = exchange.served_json
        if not isinstance(entries, list) or not entries:
            return False
        if all(isinstance(entry, dict) and entry.get("status") is None for entry in entries):
            return seen not in self._begun
        self._begun.add(seen)
        return False
