"""Decides when a call is sent again and how long that may take, and counts the results."""

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

#: Methods that get the same answer when they are sent twice.
_SETTING = READING | {"PUT", "PATCH"}
#: Methods that have the same effect when they are sent twice.
_SAFE_TWICE = _SETTING | {"DELETE"}
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 2.0  # seconds
_LONGEST_ASKED_FOR = 60.0
#: Seconds without an answer at an address until the target counts as gone: a name is not found, or it restarts.
_LONGEST_OUTAGE = 30.0
#: A call may wait for its whole budget when the target asks for that, although some time has passed.
_ABOUT = 1.02
#: What may be the cause of a 401 or a 403 for every call.
_WHY_THROUGHOUT = "it may have expired, or something in front of the service may bar this machine"
#: How often a call with broken connections is retried outside of tests.
_MOST_BREAKS = 3
#: After so many answers to calls of a kind that may have been cut, and none that was not, the service makes them so.
_CUTS_OF_ITS_OWN = 12


#: Troubles of a call that may have reached the target, and whose answer did not come in time.
TIMEOUTS = frozenset({Trouble.READ_TIMEOUT, Trouble.BODY_TIMEOUT})
#: The highest probability that only a gateway answers a call so often in a row: a run has about ten thousand calls.
_RARELY = 1e-6
#: So many HTML pages in a row are the service's own answer to calls of a kind.
_PAGES_OF_ITS_OWN = 3
#: A service that answers so many kinds of calls without data, or with one page, does so everywhere. Waiting for each
#: would take minutes.
_ENOUGH_KINDS = 3
_LONGEST_PAGE = 1000
#: Seconds that a call waits for a gateway which lets other calls pass: most gateways fail for a moment, or for all.
_LONG = 10.0
#: The same, once so many kinds of calls have waited in vain: each of ten operations waits, in each of the workers.
_SHORT, _ENOUGH_KINDS_IN_VAIN = 1.0, 2
#: So many 404 that are not in prose show that the service itself does not use prose.
_ENOUGH_NOT_FOUND = 10
#: The largest share of 404 in prose among all answers for which they count as those of a gateway.
_SELDOM_IN_PROSE = 0.05


class Persistence(Enum):
    """How much is done to get an answer to a call that may have reached the target."""

    ONCE = auto()
    """A write is sent once, because its effect is tested."""
    SPOILED = auto()
    """The network spoiled the test more than once: PUT and PATCH calls are retried."""
    ARRANGING = auto()
    """Nothing is tested: every idempotent call is retried."""


_SENT_AGAIN = {Persistence.ONCE: READING, Persistence.SPOILED: _SETTING, Persistence.ARRANGING: _SAFE_TWICE}


@dataclass
class Retries:
    """Decides whether a call is sent again, within a budget for the call and one for the run. Used by several threads.

    A call that was one too many, that reached nobody, or that came while the service could only be read, had no effect
    and is safe to retry. A call that a gateway answered, or whose connection broke, may have had an effect: only reads
    are retried, and idempotent calls while a test prepares or restores something. A test that the network spoils again
    and again would never end: then its PUT and PATCH calls are retried too, because setting a value twice has the same
    effect as setting it once.
    """

    call_seconds: float
    run_seconds: float
    pace: Pace = field(default_factory=lambda: Pace(None))
    """Ends all waiting, as Ctrl-C does."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often a call was retried, by reason: plain text, which workers can send to the process with the record."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """How many calls got no answer in the end, by cause."""
    waited: float = 0.0
    """Seconds spent waiting; when several threads wait at once, the time counts once."""
    _waited_until: float = 0.0
    _pages: Counter[str] = field(default_factory=Counter)
    """By kind of call, and by call, how many HTML pages or reads without data came in a row."""
    _answers: int = 0
    _accidents: int = 0
    """How many of all answers were pages after which the same call got another answer."""
    _not_found: int = 0
    """How many of all answers were 404 with JSON, or with no body."""
    _in_prose: int = 0
    """How many were 404 with a text or page instead."""
    _own_prose: set[str] = field(default_factory=set)
    """Kinds of paths for which the service itself is known to answer 404 in prose."""
    _own_blanks: set[str] = field(default_factory=set)
    """Kinds of paths for which the service itself is known to serve reads without data, such as for empty lists."""
    _own_pages: dict[tuple[int | None, bytes], set[str]] = field(default_factory=dict)
    """For each page, the kinds of paths for which the service itself is known to answer with it."""
    _cuts: Counter[str] = field(default_factory=Counter)
    """By kind of call, how many answers in a row may have been cut."""
    _in_vain: set[str] = field(default_factory=set)
    """Kinds of calls that a gateway answered for long, while it let calls of other kinds pass."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take_for(self, exchange: Exchange) -> Exchange:
        """Return an answer as it came, or as no answer when it came from something in front of the service.

        An HTML page may come from a gateway or from the service, and so may a read without data. It counts as a
        gateway's at first; when the same call gets it again, or calls of that kind get nothing else, it counts as the
        service's. The same holds for a 404 in prose if the service's other 404 are not in prose: a gateway sends it for
        every path while it has no service.
        """
        if exchange.refuses_throughout:
            problem = f"status {exchange.status} for every call with this token, taken before: {_WHY_THROUGHOUT}"
            return Exchange.unanswered(exchange.call, problem, exchange.seconds, Trouble.REFUSED_THROUGHOUT)
        if exchange.is_of_gateway or (self._may_be_of_gateway(exchange) and not self._is_its_own(exchange)):
            problem = f"{_told(exchange)}, which a gateway answers in the place of the service"
            return Exchange.unanswered(exchange.call, problem, exchange.seconds, Trouble.GATEWAY)
        return exchange

    def see(self, exchange: Exchange) -> None:
        """Record an answer, before it is decided whether to retry the call."""
        with self._lock:
            if exchange.status is not None and not exchange.is_of_gateway:
                self._in_vain.discard(exchange.call.kind)
            if exchange.may_be_cut:
                self._cuts[exchange.call.kind] += 1
            elif exchange.status is not None:
                self._cuts.pop(exchange.call.kind, None)
            self._answers += exchange.status is not None
            self._in_prose += exchange.is_not_found_in_prose
            self._not_found += exchange.status == HTTPStatus.NOT_FOUND and not exchange.is_not_found_in_prose
            if self._may_be_of_gateway(exchange):
                self._pages.update((exchange.call.kind, _same(exchange)))
                if self._is_its_own(exchange):
                    self._learn(exchange)
            elif exchange.status is not None and not exchange.may_be_of_gateway:
                self._see_other_than_page(exchange)

    def _see_other_than_page(self, exchange: Exchange) -> None:
        times = self._pages[_same(exchange)]
        self._accidents += times
        if times:  # for a while, the same call got a page: that was a gateway's after all
            for kinds in self._own_pages.values():
                kinds.discard(_kind_of_path(exchange))
        for name in (exchange.call.kind, _same(exchange), _to_the_same(exchange)):
            self._pages.pop(name, None)

    def _learn(self, exchange: Exchange) -> None:
        """Remember the kind of call for which the service itself answers so, so that nobody waits for it again."""
        if exchange.is_not_found_in_prose:
            self._own_prose.add(_kind_of_path(exchange))
        elif exchange.is_blank:
            self._own_blanks.add(_kind_of_path(exchange))
        else:
            self._own_pages.setdefault(_page(exchange), set()).add(_kind_of_path(exchange))

    def _may_be_of_gateway(self, exchange: Exchange) -> bool:
        if exchange.is_blank and self._is_blank_by_itself(exchange):
            return False
        if not exchange.is_not_found_in_prose:
            is_own = exchange.is_page and len(self._own_pages.get(_page(exchange), ())) >= _ENOUGH_KINDS
            return exchange.may_be_of_gateway and not is_own
        if _kind_of_path(exchange) in self._own_prose:
            return False
        return self._not_found >= _ENOUGH_NOT_FOUND and self._in_prose <= _SELDOM_IN_PROSE * self._answers

    def _is_blank_by_itself(self, exchange: Exchange) -> bool:
        return len(self._own_blanks) >= _ENOUGH_KINDS or _kind_of_path(exchange) in self._own_blanks

    def _is_its_own(self, exchange: Exchange) -> bool:
        # A test that starts again repeats a write; a read is also retried by itself.
        is_repeated = exchange.call.method in READING or exchange.is_not_found_in_prose
        often = _PAGES_OF_ITS_OWN if is_repeated else _PAGES_OF_ITS_OWN - 1
        by_chance = self._most_by_chance()
        of_kind, of_call = self._pages[exchange.call.kind], self._pages[_same(exchange)]
        return of_kind >= max(_PAGES_OF_ITS_OWN, by_chance) or of_call >= max(often, by_chance)

    def _most_by_chance(self) -> int:
        """Return how many pages in a row cannot be chance, given how often a gateway answered with a page.

        A gateway that sends a page for a twentieth of all calls does so twice in a row in nearly every run.
        """
        rate = self._accidents / max(self._answers, 1)
        return math.ceil(math.log(_RARELY) / math.log(rate)) if 0 < rate < 1 else 0

    def wait(self, exchange: Exchange, begun: float, tries: int, *, calm: bool, persistence: Persistence) -> bool:
        """Wait until a call should be sent again; return whether it should be.

        `begun` is when it was first answered, by the monotonic clock; `tries` is how often it was sent again. `calm`
        means that earlier calls were answered.
        """
        safe = exchange.call.method in _SENT_AGAIN[persistence] and not self._is_in_vain(exchange)
        may_break = tries < (1 if persistence is Persistence.ONCE else _MOST_BREAKS)
        pause = self._pause(exchange, tries, safe=safe, calm=calm, may_break=may_break)
        lost = exchange.seconds if exchange.trouble in TIMEOUTS else 0.0
        if pause is None or not self._may(pause, lost, begun, exchange.trouble):
            return False
        reason = "JSON without its end" if exchange.may_be_cut else exchange.trouble or _told(exchange)
        with self._lock:
            self.counts[str(reason)] += 1
        return self.pace.pause(pause)

    def _pause(self, exchange: Exchange, tries: int, *, safe: bool, calm: bool, may_break: bool) -> float | None:
        """Return how long to wait before the same call is sent again; None when that does not help."""
        growing = min(_FIRST_PAUSE * 2.0**tries, _LONGEST_PAUSE)
        if exchange.status == HTTPStatus.TOO_MANY_REQUESTS or exchange.takes_no_changes:
            return _asked_for(exchange) if exchange.call.patient else None
        if exchange.trouble is Trouble.REFUSED:
            return growing if calm else None
        if exchange.is_of_gateway and safe:
            return _asked_for(exchange) if "retry-after" in exchange.headers else growing
        is_page = self._may_be_of_gateway(exchange) and not self._is_its_own(exchange)
        is_cut = exchange.may_be_cut and tries < _MOST_BREAKS and self._cuts[exchange.call.kind] <= _CUTS_OF_ITS_OWN
        if safe and (is_page or is_cut):
            return growing
        is_late = exchange.trouble in TIMEOUTS and tries == 0
        is_broken = exchange.trouble is Trouble.BROKEN and may_break
        if safe and calm and (is_late or is_broken):
            return 0.0
        return None

    def _may(self, pause: float, lost: float, begun: float, trouble: Trouble | None) -> bool:
        """Tell whether the budget has room for a pause and the seconds without an answer; deduct them."""
        with self._lock:
            now = time.monotonic()
            most = min(self.call_seconds, _LONGEST_OUTAGE) if trouble is Trouble.REFUSED else self.call_seconds
            more = max(0.0, now + pause - max(now - lost, self._waited_until))
            if now + pause - begun > most * _ABOUT or self.waited + more > self.run_seconds:
                return False
            self.waited += more
            self._waited_until = max(self._waited_until, now + pause)
            return True

    def is_long(self, exchange: Exchange, begun: float) -> bool:
        """Tell whether a gateway has answered a call for so long that it may be asked if it lets other calls pass.

        One area of a service that is half built, or whose backend is down, may answer so always. A run that waits for
        each of its calls takes many minutes and learns nothing.
        """
        if not _is_of_some_gateway(exchange) or self._is_in_vain(exchange):
            return False
        enough = _SHORT if len(self._in_vain) >= _ENOUGH_KINDS_IN_VAIN else _LONG
        return time.monotonic() - begun >= enough

    def _is_in_vain(self, exchange: Exchange) -> bool:
        return _is_of_some_gateway(exchange) and exchange.call.kind in self._in_vain

    def give_up_on(self, exchange: Exchange) -> None:
        """Wait for no call of this kind, until one of them is answered: only these calls get a gateway's answer."""
        if _is_of_some_gateway(exchange):
            with self._lock:
                self._in_vain.add(exchange.call.kind)

    def miss(self, trouble: Trouble | None) -> None:
        """Count a call without an answer."""
        with self._lock:
            self.unanswered[str(trouble or Trouble.OTHER)] += 1


def _is_of_some_gateway(exchange: Exchange) -> bool:
    """Tell whether a gateway answered this call, which may let others pass."""
    return exchange.is_of_gateway and not exchange.is_in_place_of_service and not exchange.takes_no_changes


def _told(exchange: Exchange) -> str:
    return f"status {exchange.status}{' without data' if exchange.is_blank else ''}"


def _kind_of_path(exchange: Exchange) -> str:
    """Return the path with all numbers replaced by one."""
    return re.sub("[0-9]+", "0", exchange.call.path)


def _page(exchange: Exchange) -> tuple[int | None, bytes]:
    """Return the status and the text of a page without its numbers, such as those of a request or an hour."""
    return exchange.status, re.sub(b"[0-9]+", b"0", exchange.body[:_LONGEST_PAGE])


def _same(exchange: Exchange) -> str:
    """Return a key for identical calls; for a 404 the body does not matter."""
    if exchange.is_not_found_in_prose:
        return _to_the_same(exchange)
    return f"{_to_the_same(exchange)} {(exchange.call.body or b'').decode('latin-1')}"


def _to_the_same(exchange: Exchange) -> str:
    """Return a key for calls to the same address with any body."""
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
    """Return how many seconds an HTTP date is ahead of the target's clock, or else of ours; NaN for no date."""
    try:
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return (parsedate_to_datetime(text) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return math.nan
