"""Remembers reads whose result nobody can have changed since, so that they need not be repeated."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.contract import Contract
from conformance.http.exchange import READING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.http.exchange import Exchange
    from conformance.suite.writes import Writes

_Key = tuple[object, ...]
"""Who reads what: the name of the actor, the path and the query."""


@dataclass(eq=False)
class _Look:
    """The reads of a test before it changes things and restores them."""

    unanswered: int
    """Number of writes that had no answer when it began."""
    reads: dict[_Key, Exchange] = field(default_factory=dict)
    is_open: bool = True
    """Whether nothing was written since."""


class KnownReads:
    """The served reads of the running test since its last write and its last pause.

    It also keeps the first reads of earlier tests of the run, if these tests restored everything and no later write can
    have changed the result. These count only when a test looks before it changes things: what it judges, it reads
    itself. Nothing is kept for a target that takes time to show what was written. Safe to use from several threads.
    """

    def __init__(self, operation_of: Callable[[str, str], Operation | None], writes: Writes, *, keeps: bool) -> None:
        """Begin with nothing; without `keeps` it stays empty. `operation_of` finds an operation by method and path."""
        self._keeps = keeps
        self._operation_of = operation_of
        self._writes = writes
        self._of_test: dict[_Key, Exchange] = {}
        """What the running test has read."""
        self._put_back: dict[_Key, tuple[Exchange, frozenset[str]]] = {}
        """What was read before something was changed that has been put back, each with the parts of the world in it."""
        self._looks: list[_Look] = []
        """Those under way, the innermost last."""
        self.age = 0
        """How often everything was forgotten; a read is not kept if this number changed while it ran."""
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Forget what the running test has read, because it may have changed."""
        with self._lock:
            self.age += 1
            self._of_test.clear()

    def forget_everything(self) -> None:
        """Forget also what earlier tests have read, because a write may have changed more than it should."""
        self.forget()
        with self._lock:
            self._put_back.clear()

    def see(self, exchange: Exchange) -> None:
        """Forget everything that a call may have changed, whatever the answer was."""
        call = exchange.call
        if call.method in READING:
            return
        self.forget()
        operation = self._operation_of(call.method, call.path)
        moves = Contract.load().side_effects.moves
        with self._lock:
            for look in self._looks:
                look.is_open = False
            if operation is None:
                self._put_back.clear()
                return
            moved = {name for move in moves if operation.id in move.scope.operations for name in move.scope.parts}
            self._put_back = {key: read for key, read in self._put_back.items() if not moved & read[1]}

    def keep(self, exchange: Exchange, age: int) -> None:
        """Keep a served read that began at an age."""
        call = exchange.call
        if not self._keeps or call.method != "GET" or not exchange.is_success or call.headers or call.raw:
            return
        with self._lock:
            if age == self.age:
                self._of_test[_key(call.actor, call.path, call.query)] = exchange

    def of(self, actor: object, path: str, query: Mapping[str, object]) -> Exchange | None:
        """Return the answer to an actor; None when it must be requested."""
        key = _key(actor, path, query)
        with self._lock:
            if key not in self._of_test and key in self._put_back and any(look.is_open for look in self._looks):
                return self._put_back[key][0]
            return self._of_test.get(key)

    def looked(self, exchange: Exchange) -> None:
        """Record a read by a test that looks before it changes things."""
        call = exchange.call
        with self._lock:
            for look in self._looks:
                if look.is_open and exchange.is_success:
                    look.reads[_key(call.actor, call.path, call.query)] = exchange

    @contextmanager
    def before_changes(self) -> Iterator[Callable[[], None]]:
        """Within the context, and until its first write, the test looks before it changes things.

        Yields a function to call when everything is restored, because then the earlier reads hold again.
        """
        look = _Look(self._writes.unanswered)
        self._looks.append(look)
        try:
            yield lambda: self._holds_again(look)
        finally:
            self._looks.remove(look)

    def _holds_again(self, look: _Look) -> None:
        """Keep the reads of a look for later tests, unless an unanswered call may have prevented the restoring."""
        if not self._keeps or look.unanswered != self._writes.unanswered:
            return
        table = Contract.load().side_effects.parts.values()
        for key, exchange in look.reads.items():
            operation = self._operation_of("GET", exchange.call.path)
            parts = frozenset(part.name for part in table if operation is not None and part.operation == operation.id)
            with self._lock:
                if parts:
                    self._put_back[key] = exchange, parts


def _key(actor: object, path: str, query: Mapping[str, object]) -> _Key:
    return (getattr(actor, "name", None), path, *sorted(query.items()))
