"""When a call is sent again, how long that may take, and what came of it in numbers."""

from __future__ import annotations

import math
import re
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from http import HTTPStatus

from conformance.http.exchange import READING, Exchange, Trouble
from conformance.http.pace import Pace

#: What answers the same when it is made twice.
_SETTING = READING | {"PUT", "PATCH"}
#: What brings the same about when it is made twice.
_SAFE_TWICE = _SETTING | {"DELETE"}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 2.0  # seconds
_LONGEST_ASKED_FOR = 60.0
#: How long nobody answers at an address before the target is taken for gone: a name that is not found, a restart.
_LONGEST_OUTAGE = 30.0
#: A call that is asked to wait for its whole budget may, though time has gone by since.
_ABOUT = 1.02
#: How often a call is sent again whose connections break, where it is not held against the target.
_MOST_BREAKS = 3


#: A call that was heard, perhaps, and whose answer did not come in time.
_TIMEOUTS = frozenset({Trouble.READ_TIMEOUT, Trouble.BODY_TIMEOUT})
#: How probable it may be that a gateway alone answers a call so often in a row: a run has some ten thousand of them.
_RARELY = 1e-6
#: So many pages for people in a row are the answer of the service to calls of a kind.
_PAGES_OF_ITS_OWN = 3
#: How many 404 without prose show that the service itself says so without.
_ENOUGH_NOT_FOUND = 10
#: The largest share of all answers that are 404 in prose, for these to be taken for something in front of the service.
_SELDOM_IN_PROSE = 0.05


class Persistence(Enum):
    """How much is done for an answer to a call that may have been made."""

    ONCE = auto()
    """A write is sent once: what came of it shall be seen."""
    SPOILED = auto()
    """The test was spoiled more than once: what sets something is sent again."""
    ARRANGING = auto()
    """Nothing is held against the target: whatever may be done twice is sent again."""


_SENT_AGAIN = {Persistence.ONCE: READING, Persistence.SPOILED: _SETTING, Persistence.ARRANGING: _SAFE_TWICE}


@dataclass
class Retries:
    """
    Decides whether a call is sent again, within a budget for the call and one for the run. Used by several threads.

    A call that was one too many, or that reached nobody, was not made, and is safe to send again. One that a gateway
    answered, or whose connection broke, may have been made: only reads are sent again, and while something is arranged
    or put back also what may be done twice. A test that the network spoils again and again would come to no end:
    then what sets something is sent again in it as well, for set twice is set once.
    """

    call_seconds: float
    run_seconds: float
    pace: Pace = field(default_factory=lambda: Pace(None))
    """Who ends it, as at Ctrl-C, ends every waiting."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often a call was sent again, by the reason: plain text, which workers can send to who keeps the record."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """How many calls came to nothing in the end, by what kept them from being answered."""
    waited: float = 0.0
    """Seconds that were spent in waiting; what several threads wait at once counts once."""
    _waited_until: float = 0.0
    _pages: Counter[str] = field(default_factory=Counter)
    """By kind of call, and by call, how many pages for people came one after the other."""
    _answers: int = 0
    _accidents: int = 0
    """How many of all answers were pages where the same call was then answered with something else."""
    _not_found: int = 0
    """How many of all answers were 404 with JSON, or with no body."""
    _in_prose: int = 0
    """How many were 404 with a text or page instead."""
    _own_prose: set[str] = field(default_factory=set)
    """Kinds of paths for which the service itself was seen to answer 404 in prose."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_for(self, exchange: Exchange) -> Exchange:
        """
        Return an answer as it came, or as none where something in front of the service gave it.

        A page for people may be a gateway's or the service's own. It is a gateway's at first; the same call that is
        answered so again, or calls of that kind which are answered with nothing else, show that it is the service's.
        The same holds for a 404 in prose where the service answers 404 otherwise: a gateway gives it for every path
        while it knows of no service.
        """
        if exchange.is_of_an_ended_token:
            problem = "status 401 for every call with this token, which was taken before: it may have expired"
            return Exchange.unanswered(exchange.call, problem, exchange.seconds, Trouble.REFUSED_THROUGHOUT)
        if exchange.is_of_gateway or (self._may_be_of_gateway(exchange) and not self._is_its_own(exchange)):
            problem = f"status {exchange.status}, which a gateway answers in the place of the service"
            return Exchange.unanswered(exchange.call, problem, exchange.seconds, Trouble.GATEWAY)
        return exchange

    def see(self, exchange: Exchange) -> None:
        """Take note of what came, before it is decided whether to send the call again."""
        with self._lock:
            self._answers += exchange.status is not None
            self._in_prose += exchange.is_not_found_in_prose
            self._not_found += exchange.status == HTTPStatus.NOT_FOUND and not exchange.is_not_found_in_prose
            is_page = self._may_be_of_gateway(exchange)
            if not is_page and exchange.status is not None:
                self._accidents += self._pages[_same(exchange)]
            if is_page:
                self._pages.update((_kind(exchange), _same(exchange)))
            elif exchange.status is not None:
                for name in (_kind(exchange), _same(exchange), _to_the_same(exchange)):
                    self._pages.pop(name, None)
            if is_page and exchange.is_not_found_in_prose and self._is_its_own(exchange):
                self._own_prose.add(_kind_of_path(exchange))

    def _may_be_of_gateway(self, exchange: Exchange) -> bool:
        if not exchange.is_not_found_in_prose:
            return exchange.may_be_of_gateway
        if _kind_of_path(exchange) in self._own_prose:
            return False
        return self._not_found >= _ENOUGH_NOT_FOUND and self._in_prose <= _SELDOM_IN_PROSE * self._answers

    def _is_its_own(self, exchange: Exchange) -> bool:
        # A write is sent again by a test that begins anew, a read also by itself.
        is_repeated = exchange.call.method in READING or exchange.is_not_found_in_prose
        often = _PAGES_OF_ITS_OWN if is_repeated else _PAGES_OF_ITS_OWN - 1
        by_chance = self._most_by_chance()
        of_kind, of_call = self._pages[_kind(exchange)], self._pages[_same(exchange)]
        return of_kind >= max(_PAGES_OF_ITS_OWN, by_chance) or of_call >= max(often, by_chance)

    def _most_by_chance(self) -> int:
        """
        Return how many pages in a row no run would meet by chance, as often as a gateway was seen to answer with one.

        One that answers a twentieth of all calls so does it twice in a row for some call of nearly every run.
        """
        rate = self._accidents / max(self._answers, 1)
        return math.ceil(math.log(_RARELY) / math.log(rate)) if 0 < rate < 1 else 0

    def wait(self, exchange: Exchange, begun: float, tries: int, *, calm: bool, persistence: Persistence) -> bool:
        """
        Wait until a call is to be sent again, and return whether it is.

        `begun` is when it was first answered, by the monotonic clock, and `tries` how often it was sent again. `calm`
        says that calls before it were answered.
        """
        safe = exchange.call.method in _SENT_AGAIN[persistence]
        may_break = tries < (1 if persistence is Persistence.ONCE else _MOST_BREAKS)
        pause = self._pause(exchange, tries, safe=safe, calm=calm, may_break=may_break)
        lost = exchange.seconds if exchange.trouble in _TIMEOUTS else 0.0
        if pause is None or not self._may(pause, lost, begun, exchange.trouble):
            return False
        reason = "JSON without its end" if exchange.may_be_cut else exchange.trouble or f"status {exchange.status}"
        with self._lock:
            self.counts[str(reason)] += 1
        return self.pace.pause(pause)

    def _pause(self, exchange: Exchange, tries: int, *, safe: bool, calm: bool, may_break: bool) -> float | None:
        """Return how long to wait before the same call is sent again; None where that is of no use."""
        growing = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        if exchange.status == HTTPStatus.TOO_MANY_REQUESTS:
            return _asked_for(exchange) if exchange.call.patient else None
        if exchange.trouble is Trouble.REFUSED:
            return growing if calm else None
        if exchange.is_of_gateway and safe:
            return _asked_for(exchange) if "retry-after" in exchange.headers else growing
        is_page = self._may_be_of_gateway(exchange) and not self._is_its_own(exchange)
        if safe and (is_page or (exchange.may_be_cut and tries < _MOST_BREAKS)):
            return growing
        is_late = exchange.trouble in _TIMEOUTS and tries == 0
        is_broken = exchange.trouble is Trouble.BROKEN and may_break
        if safe and calm and (is_late or is_broken):
            return 0.0
        return None

    def _may(self, pause: float, lost: float, begun: float, trouble: Trouble | None) -> bool:
        """Tell whether the budget has a pause, and the seconds in which nothing came; take them from it."""
        with self._lock:
            now = time.monotonic()
            most = min(self.call_seconds, _LONGEST_OUTAGE) if trouble is Trouble.REFUSED else self.call_seconds
            more = max(0.0, now + pause - max(now - lost, self._waited_until))
            if now + pause - begun > most * _ABOUT or self.waited + more > self.run_seconds:
                return False
            self.waited += more
            self._waited_until = max(self._waited_until, now + pause)
            return True

    def miss(self, trouble: Trouble | None) -> None:
        """Count a call without an answer."""
        with self._lock:
            self.unanswered[str(trouble or Trouble.OTHER)] += 1


def _kind(exchange: Exchange) -> str:
    """Return what a call has in common with those that the same code of the service answers, as far as can be told."""
    return f"{exchange.call.method} {_kind_of_path(exchange)}"


def _kind_of_path(exchange: Exchange) -> str:
    """Return the path with every number alike."""
    return re.sub("[0-9]+", "0", exchange.call.path)


def _same(exchange: Exchange) -> str:
    """Return what only the same call has in common with one; a 404 does not depend on the body that was sent."""
    if exchange.is_not_found_in_prose:
        return _to_the_same(exchange)
    return f"{_to_the_same(exchange)} {(exchange.call.body or b'').decode('latin-1')}"


def _to_the_same(exchange: Exchange) -> str:
    """Return what calls with any body to the same address have in common."""
    return f"{exchange.call.method} {exchange.call.target}"


def _asked_for(exchange: Exchange) -> float:
    """Return how many seconds the target asks to wait; one second when it does not say."""
    text = exchange.headers.get("retry-after", "1")
    try:
        asked = float(text)
    except ValueError:
        asked = _seconds_until(text, exchange.headers.get("date"))
    return 1.0 if math.isnan(asked) else min(max(asked, 0.1), _LONGEST_ASKED_FOR)


def _seconds_until(text: str, date: str | None) -> float:
    """Return how far a date of HTTP lies ahead, by the clock of the target where it tells the time; NaN for no date."""
    try:
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError):
        return math.nan
