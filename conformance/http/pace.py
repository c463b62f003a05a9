"""Limits the number of requests per second."""

from __future__ import annotations

import threading
import time


class Pace:
    """Spaces calls evenly at a rate. Used by several threads."""

    def __init__(self, per_second: float | None) -> None:
        """Allow so many calls per second; without a number, any."""
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether waiting has ended for good."""
        return self._over.is_set()

    def end(self) -> None:
        """End all waiting, now and from now on."""
        self._over.set()

    def pause(self, seconds: float) -> bool:
        """Wait so many seconds; return False if somebody ended the waiting before."""
        return not self._over.wait(seconds)

    def wait(self) -> None:
        """Wait until the next call may be sent."""
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        if start > now:
            self._over.wait(start - now)
