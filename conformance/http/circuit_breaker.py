"""How long a silent target is waited for: what does not answer costs its time now and then, and not at every call."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.http.exchange import Call

_IN_A_ROW = 5
_TRIES, _TRIES_WHEN_SPENT = 3, 2
_TIMEOUTS_IN_ALL = 10
_WITNESSES = 2
_REMEMBERED = 32


@dataclass
class _Place:
    """What is known of the calls of one operation."""

    missed: int = 0
    """How many in a row have waited for their answer in vain."""
    closed_in: str | None = None
    """The test in which it was waited for in vain too often."""
    problem: str = ""


@dataclass
class CircuitBreaker:
    """
    Decides which calls are worth sending.

    After some calls of one operation have waited in vain, the rest of that test's calls of it are not sent; the next
    test tries once more. When waiting has cost ten timeouts in all, an operation that is silent once is left alone; one
    that answered before is so after two calls in a row.
    After some calls of any kind without an answer, others that worked before show whether the target is gone.
    """

    timeout: float
    """Seconds that one call may take."""
    place_of: Callable[[Call], str]
    """Returns what a call has in common with others that will fare alike."""
    _places: dict[str, _Place] = field(default_factory=dict)
    _unanswered: int = 0
    _silent: set[str] = field(default_factory=set)
    _answered: OrderedDict[str, Call] = field(default_factory=OrderedDict)
    _heard: set[str] = field(default_factory=set)
    """What answered at any time."""
    _waited: float = 0.0
    _waited_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuses(self, call: Call, test: str) -> str | None:
        """Say why a call is not worth sending in a test; None when it is."""
        with self._lock:
            place = self._places.get(self.place_of(call))
            if place is None or place.closed_in is None:
                return None
            if place.closed_in != test and not self._is_spent:
                place.closed_in, place.missed = None, _TRIES - 1
                return None
            return f"not sent, for calls like it go unanswered: {place.problem}"

    @property
    def is_calm(self) -> bool:
        """Whether the latest call was answered, so that one without an answer may be a mere accident."""
        return not self._unanswered

    def heard(self, call: Call) -> None:
        """Take note of an answer."""
        with self._lock:
            self._unanswered = 0
            self._silent.clear()
            name = self.place_of(call)
            self._places.pop(name, None)
            self._heard.add(name)
            if call.method == "GET" and call.actor is not None:
                self._answered[name] = call
                self._answered.move_to_end(name)
                if len(self._answered) > _REMEMBERED:
                    self._answered.popitem(last=False)

    def missed(self, call: Call, test: str, problem: str, begun: float, ended: float) -> bool:
        """
        Take note of a call without answer, sent and given up at these seconds of one clock.

        Return whether so many have gone unanswered in a row that it is time to ask whether the target is there at all.
        """
        with self._lock:
            name = self.place_of(call)
            self._unanswered += 1
            self._silent.add(name)
            if ended - begun >= self.timeout / 2:
                self._waited += max(0.0, ended - max(begun, self._waited_until))
                self._waited_until = max(ended, self._waited_until)
                place = self._places.setdefault(name, _Place())
                place.missed += 1
                place.problem = problem
                patience = (_TRIES_WHEN_SPENT if name in self._heard else 1) if self._is_spent else _TRIES
                if place.missed >= patience:
                    place.closed_in = test
            return self._unanswered >= _IN_A_ROW

    def witnesses(self) -> Collection[Call]:
        """Return calls that were answered before, of other operations than those that are silent now, latest first."""
        with self._lock:
            known = [call for name, call in reversed(self._answered.items()) if name not in self._silent]
            return known[:_WITNESSES] or list(reversed(self._answered.values()))[:1]

    @property
    def _is_spent(self) -> bool:
        return self._waited > _TIMEOUTS_IN_ALL * self.timeout
