"""Limits the time spent on a silent target: calls without an answer cost a timeout now and then, not every time."""

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
#: How many whole timeouts are waited in vain until an operation that never answered gets less time; and how much then.
_WHOLE_TIMEOUTS = 2
_LEAST_SECONDS, _TIMES_THE_SLOWEST = 5.0, 4
#: A call that ended so little earlier than allowed has waited for all of its time.
_ABOUT = 0.99
_WITNESSES = 2
_REMEMBERED = 32


@dataclass
class _Place:
    """The state of the calls of one operation."""

    missed: int = 0
    """How many calls in a row have timed out."""
    closed_in: str | None = None
    """The test in which too many of them timed out."""
    problem: str = ""


@dataclass
class CircuitBreaker:
    """Decides which calls are worth sending.

    After some calls of one operation have timed out, the rest of that test's calls of it are not sent; the next test
    tries once more. After ten timeouts in all, an operation is no longer called once it has timed out one time, or two
    times in a row if it had answered before. After some calls of any kind without an answer, calls that worked before
    are tried to see if the target is gone.

    A service that is half built may leave a dozen operations unanswered. So once two whole timeouts were waited in vain
    for such operations, one that never answered gets less time than others: still several times as much as the slowest
    answer took.
    """

    timeout: float
    """Seconds that one call may take."""
    place_of: Callable[[Call], str]
    """Returns the group of a call, such as its operation: calls of one group go unanswered together."""
    _places: dict[str, _Place] = field(default_factory=dict)
    _unanswered: int = 0
    _silent: set[str] = field(default_factory=set)
    _answered: OrderedDict[str, Call] = field(default_factory=OrderedDict)
    _heard: set[str] = field(default_factory=set)
    """The calls that were answered at any time."""
    _slowest: float = 0.0
    """How many seconds the slowest answer took."""
    _timeouts: int = 0
    """How many calls have timed out; of those at the same time, one."""
    _waited_until: float = 0.0
    _in_vain: float = 0.0
    """Seconds of waiting for operations that never answered; those of calls at the same time count once."""
    _in_vain_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refuses(self, call: Call, test: str) -> str | None:
        """Say why a call should not be sent in a test; None when it should."""
        with self._lock:
            place = self._places.get(self.place_of(call))
            if place is None or place.closed_in is None:
                return None
            if place.closed_in != test and not self._is_spent:
                place.closed_in, place.missed = None, _TRIES - 1
                return None
            return f"not sent, because calls like it go unanswered: {place.problem}"

    @property
    def is_calm(self) -> bool:
        """Whether the latest call was answered; a call without an answer may then be a mere accident."""
        return not self._unanswered

    def seconds_for(self, call: Call) -> float:
        """Return how many seconds a call may take."""
        with self._lock:
            return self._seconds_for(self.place_of(call))

    def _seconds_for(self, name: str) -> float:
        if self._in_vain < _WHOLE_TIMEOUTS * self.timeout * _ABOUT or name in self._heard:
            return self.timeout
        return min(self.timeout, max(_LEAST_SECONDS, self._slowest * _TIMES_THE_SLOWEST))

    def heard(self, call: Call, seconds: float = 0.0) -> None:
        """Record an answer, and how long it took."""
        with self._lock:
            self._slowest = max(self._slowest, seconds)
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

    def waited_for(self, call: Call, begun: float, ended: float) -> None:
        """Record that a call was waited for in vain between these seconds of one clock; it may be sent again."""
        with self._lock:
            if self.place_of(call) not in self._heard:
                self._in_vain += max(0.0, ended - max(begun, self._in_vain_until))
                self._in_vain_until = max(self._in_vain_until, ended)

    def missed(self, call: Call, test: str, problem: str, begun: float, ended: float) -> bool:
        """Record a call without an answer, sent and given up at these seconds of one clock.

        Return whether so many calls in a row went unanswered that somebody should check if the target is still there.
        """
        with self._lock:
            name = self.place_of(call)
            self._unanswered += 1
            self._silent.add(name)
            if ended - begun >= self._seconds_for(name) / 2:
                self._timeouts += begun >= self._waited_until
                self._waited_until = max(ended, self._waited_until)
                place = self._places.setdefault(name, _Place())
                place.missed += 1
                place.problem = problem
                patience = (_TRIES_WHEN_SPENT if name in self._heard else 1) if self._is_spent else _TRIES
                if place.missed >= patience:
                    place.closed_in = test
            return self._unanswered >= _IN_A_ROW

    def witnesses(self) -> Collection[Call]:
        """Return calls that were answered before, of operations that are not silent now, latest first."""
        with self._lock:
            known = [call for name, call in reversed(self._answered.items()) if name not in self._silent]
            return known[:_WITNESSES] or list(reversed(self._answered.values()))[:1]

    @property
    def _is_spent(self) -> bool:
        return self._timeouts > _TIMEOUTS_IN_ALL
