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
    """Counts the writes of a run, and remembers when which of them were served. Safe to use from several threads."""

    def __init__(self) -> None:
        self.sent = 0
        self.not_refused = 0
        """How many were answered with anything but a refusal, or not at all."""
        self.unanswered = 0
        """How many the service did not answer: nobody knows what they did, nor whether they undid something."""
        self.served: dict[tuple[str, str], list[float]] = {}
        """By method and path: when they were served, in seconds of the monotonic clock."""
        self._lock = threading.Lock()

    def see(self, exchange: Exchange) -> None:
        """Take note of a call, whatever it was answered."""
        call = exchange.call
        if call.method in READING:
            return
        with self._lock:
            self.sent += 1
            self.not_refused += not exchange.is_refusal
            self.unanswered += exchange.status in _NO_ANSWER
            if exchange.is_success:
                self.served.setdefault((call.method, call.path), []).append(time.monotonic())
