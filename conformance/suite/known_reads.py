"""What a test has read and nobody can have changed since, so that it need not be read again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.exchange import Exchange

_READING = ("GET", "HEAD")


class KnownReads:
    """
    The served reads of the running test since its last write and its last pause.

    Nothing is kept of a target that takes time to show what was written. Safe to use from several threads.
    """

    def __init__(self, *, keeps: bool) -> None:
        """Begin with nothing; without `keeps` it stays so."""
        self._keeps = keeps
        self._known: dict[tuple[object, ...], Exchange] = {}
        self._age = 0
        self.writes = 0
        """How many calls that may have changed something were sent."""
        self._lock = threading.Lock()

    @property
    def age(self) -> int:
        """How often everything was forgotten; a read that began at another age than it ended is not kept."""
        return self._age

    def forget(self) -> None:
        """Forget all, for something may be another by now."""
        with self._lock:
            self._age += 1
            self._known.clear()

    def see(self, exchange: Exchange) -> None:
        """Forget all when a call may have changed something, whatever it was answered."""
        if exchange.call.method not in _READING:
            self.writes += 1
            self.forget()

    def keep(self, exchange: Exchange, age: int) -> None:
        """Keep a served read that began at an age."""
        call = exchange.call
        if not self._keeps or call.method != "GET" or not exchange.is_success or call.headers or call.raw:
            return
        with self._lock:
            if age == self._age:
                self._known[_key(call.actor, call.path, call.query)] = exchange

    def of(self, actor: object, path: str, query: Mapping[str, object]) -> Exchange | None:
        """Return what an actor was answered; None where it has to be asked for."""
        with self._lock:
            return self._known.get(_key(actor, path, query))


def _key(actor: object, path: str, query: Mapping[str, object]) -> tuple[object, ...]:
    return (getattr(actor, "name", None), path, *sorted(query.items()))
