"""The calls of a run that may have changed something."""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange

READING = ("GET", "HEAD")
_NO_ANSWER = (None, HTTPStatus.TOO_MANY_REQUESTS)


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
        self._lock = threading.Lock()

    def see(self, exchange: Exchange) -> None:
        """Record a call, whatever its answer was."""
        call = exchange.call
        if call.method in READING:
            return
        with self._lock:
            self.sent += 1
            self.not_refused += not exchange.is_refusal
            self.unanswered += exchange.status in _NO_ANSWER
            if exchange.is_success:
                self.served.setdefault((call.method, call.path), []).append(time.monotonic())
