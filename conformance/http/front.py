"""Distinguishes the answers of a service from those of something in front of it, such as a login page."""

from __future__ import annotations

import re
import secrets
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from conformance.http.exchange import READING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.http.exchange import Call, Exchange, Look

#: How many reads to keep for each token; with two operations, one is always different from that of a call.
_WITNESSES = 2
#: Ids that no service has assigned yet, and that fit into 32 bits.
_FIRST_UNKNOWN, _UNKNOWN = 2_000_000_000, 147_000_000
_BEARER = "Bearer "
#: A service with more wordings of 404 than this has any number of them, and so they are not checked any more.
_MOST_WORDINGS = 30
_LONGEST_WORDING = 300
#: The paths of a project or group, and of its lists and settings.
_LASTING = re.compile("/[a-z_]+(/[^/]+(/[a-z_]+)?)?")
#: The path at which services of this kind show whose token it is.
_CALLER = "/user"
_NUMBER = re.compile(rb"[0-9a-f-]*[0-9][0-9a-f-]*")
#: A group of calls with more shapes of answers than this has any number of them, so a new one says nothing.
_MOST_SHAPES = 8


@dataclass
class Anywhere:
    """What a path gets that no service has, as far as it was asked."""

    look: Look | None = None
    """The look of a page, or of a redirect; None if such paths are refused."""


@dataclass
class Front:
    """Remembers served reads, to check later whether the service is still the one that answers.

    A gateway that sends everybody to its login page, or shows a maintenance page, does so for every call; a service
    gives such an answer only to calls of a kind. In the same way, when a token has expired, or a gateway asks for a
    login, every call with the token gets a 401, even one that was never made before. A 401 for some calls only, or for
    a repeated call, comes from the service, so each 401 is checked, except one that repeats the last answer to the
    token. The same holds for a 403, of whatever call, because a gateway has other words for it. A service may give both
    for what does not exist: then a read of something that no test deletes, or of the caller, is not refused.
    A gateway may also serve JSON of its own to every call: then a read that never had an answer of that shape has one,
    and so has a call that was never made before. A gateway that knows no way to the service answers 404: then a read of
    something that no test deletes gets 404 too. A wording of 404 is checked until it is known as the service's.
    Safe to use from several threads.
    """

    place_of: Callable[[Call], str]
    """Returns the group of a call, such as its operation: calls of one group are answered alike."""
    _served: dict[tuple[str, str], Call] = field(default_factory=dict)
    """By token and group, the last read that was served with JSON; only the latest groups of each token are kept."""
    _shapes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By group, the shapes of the JSON that its calls were served with."""
    _latest_shape: str | None = None
    _foreign: set[str] = field(default_factory=set)
    """The shapes of JSON that a gateway served to every call before."""
    is_of_tests: bool = False
    """Whether the calls are those of tests, which delete no project and no group."""
    _lasting: dict[str, Call] = field(default_factory=dict)
    """By token, the first read of something that no test deletes."""
    _own_wordings: set[bytes] = field(default_factory=set)
    """The bodies, without numbers, with which the service itself answers 404."""
    _own: set[str] = field(default_factory=set)
    """Kinds of answers that are known to come from the service itself."""
    _refused: dict[str, tuple[str, int | None, bytes]] = field(default_factory=dict)
    """By token that was not served since, the group, status and words of the last refusal by the service itself."""
    _ended: set[str] = field(default_factory=set)
    """Tokens that were refused for everything, by 401 or 403, until the waiting time was over."""
    _has_ended_for_all: bool = False
    """Whether a token was waited for in vain and nothing was served since: then others need not be waited for."""
    _stands: bool = False
    """Whether a gateway was detected and nothing was served since."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def judged(self, exchange: Exchange, send: Callable[[Call], Exchange]) -> Exchange:
        """Return an answer marked with who gave it; when that may be a gateway, `send` repeats an earlier read."""
        if self._may_have_given(exchange):
            exchange = self._as_witnessed(exchange, send)
        self._hear(exchange)
        return exchange

    def is_waited_for(self, exchange: Exchange) -> bool:
        """Tell whether waiting may help: not for a token, or after one, for which waiting did not help once."""
        is_known = self._has_ended_for_all or token_of(exchange.call) in self._ended
        return not (exchange.refuses_throughout and is_known)

    def came_to_nothing(self, exchange: Exchange) -> None:
        """Record an answer that did not change after waiting."""
        if exchange.refuses_throughout:
            with self._lock:
                self._ended.add(token_of(exchange.call))
                self._has_ended_for_all = True

    def _hear(self, exchange: Exchange) -> None:
        """Remember a read that was served with JSON; ignore all other answers."""
        call, shape = exchange.call, _shape(exchange)
        if exchange.is_in_place_of_service or not exchange.is_success or call.is_elsewhere:
            return
        with self._lock:
            self._has_ended_for_all = False
            self._refused.pop(token_of(call), None)
        if shape is not None:
            with self._lock:
                self._shapes[self.place_of(call)].add(shape)
                self._latest_shape = shape
        if call.method != "GET" or call.actor is None:
            return
        if "json" in exchange.headers.get("content-type", "").lower():
            token, place = token_of(call), self.place_of(call)
            with self._lock:
                self._stands = False
                if self.is_of_tests and _LASTING.fullmatch(call.path):
                    self._lasting.setdefault(token, call)
                self._ended.discard(token)
                self._served.pop((token, place), None)
                self._served[token, place] = call
                known = [key for key in self._served if key[0] == token]
                if len(known) > _WITNESSES:
                    del self._served[known[0]]

    def _may_have_given(self, exchange: Exchange) -> bool:
        if exchange.is_of_gateway:
            return False
        if _is_plain_not_found(exchange):
            return self._is_in_new_words(exchange)
        return self._is_odd(exchange) or self._refuses_whom_it_knew(exchange) or self._is_of_a_new_shape(exchange)

    def _is_odd(self, exchange: Exchange) -> bool:
        return may_be_in_front(exchange) and _kind(exchange) not in self._own

    def _is_in_new_words(self, exchange: Exchange) -> bool:
        if exchange.call.is_elsewhere:
            return False
        with self._lock:
            return len(self._own_wordings) < _MOST_WORDINGS and _wording(exchange) not in self._own_wordings

    def _is_of_a_new_shape(self, exchange: Exchange) -> bool:
        """Tell whether calls of this group had other answers before; if there were none, whether the last call had it.

        The last call may have been of any group.
        """
        shape = _shape(exchange)
        with self._lock:
            known = self._shapes.get(self.place_of(exchange.call), set())
            is_new = bool(shape) and shape not in known and len(known) < _MOST_SHAPES
            return shape in self._foreign or (is_new and bool(known or shape == self._latest_shape))

    def _refuses_whom_it_knew(self, exchange: Exchange) -> bool:
        call = exchange.call
        if not exchange.refuses_caller or call.is_elsewhere:
            return False
        token = token_of(call)
        with self._lock:
            is_again = self._refused.get(token) == self._refusal(exchange)
            return not is_again and any(known == token for known, _ in self._served)

    def _refusal(self, exchange: Exchange) -> tuple[str, int | None, bytes]:
        """Return what a refusal repeats: if a token may have expired, of the same group only, else of any."""
        is_of_token = exchange.status == HTTPStatus.UNAUTHORIZED
        return (self.place_of(exchange.call) if is_of_token else "", exchange.status, _wording(exchange))

    def _as_witnessed(self, exchange: Exchange, send: Callable[[Call], Exchange]) -> Exchange:
        """Repeat a read that was served before, to see who gave an answer; return the answer with that decision."""
        call, shape = exchange.call, _shape(exchange)
        witness = self._witness_without(shape, self.place_of(call)) if shape else self._witness(exchange)
        if witness is None:
            return exchange
        stood, self._stands = self._stands, self._hides(witness, exchange, send)
        if self._stands:
            self._foreign.update({shape} if shape else ())
            return replace(exchange, is_in_place_of_service=True)
        if exchange.refuses_caller and not stood:
            with self._lock:
                self._refused[token_of(call)] = self._refusal(exchange)
        # The gateway may have gone away between the two calls.
        if call.method not in READING:
            return replace(exchange, is_in_place_of_service=stood)
        if stood or shape or _is_plain_not_found(exchange) or may_be_in_front(exchange):
            again = send(call)
            # The first answer counts if it was the service's: a fault may show in it alone.
            exchange = exchange if shape and not stood and _shape(again) == shape else again
        if _is_plain_not_found(exchange):
            with self._lock:
                self._own_wordings.add(_wording(exchange))
        if may_be_in_front(exchange):
            with self._lock:
                self._own.add(_kind(exchange))
        return exchange

    def _witness(self, exchange: Exchange) -> Call | None:
        """Return the last served call of another operation, or None, because a service may refuse repeated calls.

        For a 401, only a call with the same token counts.
        """
        place = self.place_of(exchange.call)
        if _is_plain_not_found(exchange):
            lasting = next(iter(self._lasting.values()), None)
            return lasting if lasting is not None and self.place_of(lasting) != place else None
        token = None if may_be_in_front(exchange) else token_of(exchange.call)
        with self._lock:
            known = reversed(self._served.items())
            return next((call for key, call in known if key[1] != place and token in {None, key[0]}), None)

    def _witness_without(self, shape: str, place: str) -> Call | None:
        """Return the last served call of another operation that never had an answer of this shape."""
        with self._lock:
            known = reversed(self._served.items())
            return next((call for (_, at), call in known if at != place and shape not in self._shapes[at]), None)

    def _hides(self, witness: Call, exchange: Exchange, send: Callable[[Call], Exchange]) -> bool:
        """Tell whether a read that was served before is hidden now by something in front of the service.

        If the answer in question is JSON, that has its shape as well; if it is a 404, that has its words.
        """
        seen, shape = send(witness), _shape(exchange)
        if _is_plain_not_found(exchange):
            return seen.status == HTTPStatus.NOT_FOUND and _wording(seen) == _wording(exchange)
        if shape:
            return _shape(seen) == shape == _shape(send(_never_asked(witness)))
        if seen.refuses_caller:
            # A service may refuse what is unknown to it, and what was read before may have been deleted since.
            # Who calls is known while the token is good, also where no read was kept that no test deletes.
            lasting = self._lasting.get(token_of(witness), replace(witness, path=_CALLER, query={}))
            others = [_never_asked(witness), lasting]
            return all(send(other).status == seen.status for other in others)
        return not seen.is_of_gateway and self._is_odd(seen)


def may_be_in_front(exchange: Exchange) -> bool:
    """Tell whether an answer is an HTML page, or redirects a caller with a token: a service rarely does that."""
    call = exchange.call
    if exchange.status is None or call.is_elsewhere:
        return False
    return exchange.is_page or (exchange.is_redirect and call.actor is not None)


def _is_plain_not_found(exchange: Exchange) -> bool:
    return exchange.status == HTTPStatus.NOT_FOUND and not exchange.is_page


def _wording(exchange: Exchange) -> bytes:
    return _NUMBER.sub(b"0", exchange.body[:_LONGEST_WORDING])


def _shape(exchange: Exchange) -> str | None:
    """Return what the JSON of a served answer looks like: the names in an object, or the type of anything else.

    Empty for an answer without a body; None for one that is not JSON.
    """
    if not exchange.is_success or exchange.call.is_elsewhere or exchange.call.raw:
        return None
    found = exchange.served_json
    if found is None:
        return None if exchange.body else ""
    return " ".join(sorted(found)) if isinstance(found, dict) else type(found).__name__


def token_of(call: Call) -> str:
    """Return the token of a call, from either header; empty when it has none."""
    shown = {name.lower(): value for name, value in call.headers.items()}
    given = shown.get("private-token") or shown.get("authorization", "").removeprefix(_BEARER)
    return given or (call.actor.token if call.actor is not None else "")


def _never_asked(call: Call) -> Call:
    """Return a call near another one, for something that does not exist and was never asked for."""
    _, first, *rest = call.path.split("/")
    unknown = str(_FIRST_UNKNOWN + secrets.randbelow(_UNKNOWN))
    beside = ["", first, unknown, *rest[1:]] if rest else ["", "projects", unknown]
    return replace(call, path="/".join(beside), query={})


def _kind(exchange: Exchange) -> str:
    """Return a key for answers that the same code of the service probably gives.

    Error pages come from the framework of a service, and are alike for all of its paths.
    """
    if exchange.is_page and (exchange.status or 0) >= HTTPStatus.BAD_REQUEST:
        return f"page with {exchange.status}"
    return f"{exchange.status} {exchange.call.kind}"
