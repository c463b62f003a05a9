"""Tells the answers of a service from those that something in front of it gives in its place, such as a login page."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.http.exchange import Call, Exchange


@dataclass
class Front:
    """
    Remembers what was served, as a witness of whether the service is still the one that answers.

    A gateway that sends everybody to its login page, or shows a page about an upkeep, does so for every call; a service
    gives such an answer to calls of a kind. What 401 says of a caller is left to the service, which says it of many
    calls. Safe to use from several threads.
    """

    _served: dict[str, Call] = field(default_factory=dict)
    """By token, the read that was served with JSON last."""
    _last: Call | None = None
    _own: set[str] = field(default_factory=set)
    """Kinds of calls that the service itself was seen to answer so."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, exchange: Exchange) -> None:
        """Take note of an answer that is beyond doubt."""
        call = exchange.call
        if call.method != "GET" or call.actor is None or not exchange.is_success or call.is_elsewhere:
            return
        if "json" in exchange.headers.get("content-type", "").lower():
            with self._lock:
                self._served[call.actor.token] = self._last = call

    def may_have_given(self, exchange: Exchange) -> bool:
        """Tell whether an answer may be of something in front of the service."""
        call, status = exchange.call, exchange.status
        if status is None or call.is_elsewhere or exchange.is_of_gateway or _kind(exchange) in self._own:
            return False
        if _is_page(exchange):
            return True
        return call.actor is not None and HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST

    def witness(self, call: Call) -> Call | None:
        """Return a read that the caller was served with before, or another one; None when nothing ever was."""
        token = call.actor.token if call.actor is not None else ""
        return self._served.get(token, self._last)

    def is_of_the_service(self, exchange: Exchange) -> None:
        """Take answers of this kind for the service's own from now on."""
        with self._lock:
            self._own.add(_kind(exchange))


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
