"""Tells the answers of a service from those that something in front of it gives in its place, such as a login page."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.http.exchange import Call, Exchange

#: Of two operations one is always another one than that of a call.
_WITNESSES = 2


@dataclass
class Front:
    """
    Remembers what was served, as a witness of whether the service is still the one that answers.

    A gateway that sends everybody to its login page, or shows a page about an upkeep, does so for every call; a service
    gives such an answer to calls of a kind. What 401 says of a caller is left to the service, which says it of many
    calls. Safe to use from several threads.
    """

    place_of: Callable[[Call], str]
    """Returns what a call has in common with others that will fare alike, such as the operation."""
    _served: dict[str, Call] = field(default_factory=dict)
    """By place, the read that was served with JSON last; of the latest places."""
    _own: set[str] = field(default_factory=set)
    """Kinds of answers that the service itself was seen to give."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, exchange: Exchange) -> None:
        """Take note of a read that was served with JSON; of no other answer."""
        call = exchange.call
        if call.method != "GET" or call.actor is None or not exchange.is_success or call.is_elsewhere:
            return
        if "json" in exchange.headers.get("content-type", "").lower():
            place = self.place_of(call)
            with self._lock:
                self._served.pop(place, None)
                self._served[place] = call
                if len(self._served) > _WITNESSES:
                    del self._served[next(iter(self._served))]

    def may_have_given(self, exchange: Exchange) -> bool:
        """Tell whether an answer may be of something in front of the service."""
        return not exchange.is_of_gateway and may_be_in_front(exchange) and _kind(exchange) not in self._own

    def witness(self, call: Call) -> Call | None:
        """Return what was served last of another operation; None when nothing was. Of its own, a service may tire."""
        place = self.place_of(call)
        with self._lock:
            return next((known for name, known in reversed(self._served.items()) if name != place), None)

    def is_of_the_service(self, exchange: Exchange) -> None:
        """Take answers of this kind for the service's own from now on."""
        with self._lock:
            self._own.add(_kind(exchange))


def may_be_in_front(exchange: Exchange) -> bool:
    """Tell whether an answer is a page for people, or leads a caller with a token elsewhere: a service rarely does."""
    call, status = exchange.call, exchange.status
    if status is None or call.is_elsewhere:
        return False
    is_led_elsewhere = HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST
    return _is_page(exchange) or (is_led_elsewhere and call.actor is not None)


def _is_page(exchange: Exchange) -> bool:
    return "text/html" in exchange.headers.get("content-type", "").lower()


def _kind(exchange: Exchange) -> str:
    """
    Return what an answer has in common with others of the same code, as far as can be told: numbers are alike.

    Pages about errors are made by the framework of a service, for all of its paths alike.
    """
    if _is_page(exchange) and (exchange.status or 0) >= HTTPStatus.BAD_REQUEST:
        return f"page with {exchange.status}"
    return f"{exchange.status} {exchange.call.method} {re.sub('[0-9]+', '0', exchange.call.path)}"
