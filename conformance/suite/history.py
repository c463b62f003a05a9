"""The calls of one test, as far as evidence and later checks need them."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from conformance.http.exchange import READING
from conformance.results.sequence import are_of_one_thing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.http.exchange import Exchange

_REMEMBERED = 20
_SHOWN_BEFORE = 2
_WRITES_BEFORE = 3
_LONGEST_SEQUENCE = 25


@dataclass
class CallHistory:
    """The last calls of a test, or all calls of the current example while a state machine is explored."""

    requests: int = 0
    unanswered: str | None = None
    """The first call without an answer, whatever it was: nothing after it is certain."""
    unanswered_write: str | None = None
    """The first call without an answer that may have changed something."""
    _recent: list[Exchange] = field(default_factory=list)
    _last_write: Exchange | None = None
    _example: list[Exchange] | None = None

    def add(self, exchange: Exchange, *, keep: bool) -> None:
        """Count an exchange, and keep it as one that may lead to the next failure."""
        self.requests += 1
        is_refused = exchange.status == HTTPStatus.TOO_MANY_REQUESTS and exchange.call.patient
        if (is_refused or exchange.status is None) and self.unanswered is None:
            self.unanswered = exchange.call.label
        if not keep:
            return
        if exchange.call.method != "GET":
            self._last_write = exchange
        self._recent.append(exchange)
        del self._recent[:-_REMEMBERED]
        if exchange.status is None and exchange.call.method != "GET" and self.unanswered_write is None:
            self.unanswered_write = exchange.call.label
        if self._example is not None:
            self._example.append(exchange)

    def evidence_for(self, shown: Sequence[Exchange]) -> tuple[Exchange, ...]:
        """Return the exchanges that show a failure, or the suspects if none is named, and those that led to them.

        Later calls, for example those that restore things, are not included.
        """
        found = tuple(shown) or self.suspects
        if self._example is None:
            before = self._before(found)
        else:  # all that changed something, and the last read of the result
            writes = [exchange for exchange in self._example if exchange.call.method != "GET"]
            before = [*writes[-_LONGEST_SEQUENCE:], *self._example[-1:]]
        return (*(exchange for exchange in before if exchange not in found), *found)

    def _before(self, found: Sequence[Exchange]) -> list[Exchange]:
        first = next((place for place, entry in enumerate(self._recent) if found and entry is found[0]), 0)
        start = max(0, first - _SHOWN_BEFORE)
        # They may show the effect of a write that was followed by reads, or undone.
        writes = [
            entry
            for entry in self._recent[:start]
            if entry.call.method not in READING
            and entry.is_success
            and are_of_one_thing(entry.call.path, found[-1].call.path)
        ]
        return [*writes[-_WRITES_BEFORE:], *self._recent[start:first]]

    @property
    def suspects(self) -> tuple[Exchange, ...]:
        """The last call that may have changed something, and the last call: violations without calls mean these."""
        last = self._recent[-1:]
        write = self._last_write
        return tuple(last) if write is None or any(write is exchange for exchange in last) else (write, *last)

    def begin_example(self) -> None:
        """Forget the calls of the last example of a state machine, and keep all calls of the next one."""
        self._example = []

    def end_examples(self) -> None:
        """Keep only the last calls again."""
        self._example = None

    def forget(self) -> None:
        """Use none of the calls so far as one that led to the next failure."""
        self._recent.clear()
        self._last_write = None
