"""The only thing that talks HTTP to the target: polite, recorded, redacted."""

from __future__ import annotations

import json
import math
import shlex
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode, urljoin, urlsplit

import httpcore
import httpx

from conformance import __version__
from conformance.http.circuit_breaker import CircuitBreaker
from conformance.http.connections import BROKEN, Address, Connections
from conformance.http.receiving import headers_of, in_short, received
from conformance.results.record import Evidence

if TYPE_CHECKING:
    from conformance.target import Actor, Profile

#: Answers are read up to this size in bytes, files that are wanted as they are sent up to another; what is longer shows
#: nothing. Many answers are kept at a time, so the sum is what matters.
LARGEST_BODY = 2 * 1024 * 1024
LARGEST_FILE = 8 * 1024 * 1024
#: How many calls may be under way at once, unless the operator says otherwise.
AT_ONCE = 16
_SHOWN_BODY = 4000
_ABSENT: Any = object()
_TOO_MANY_REQUESTS = 429
_REFUSED_IN_A_ROW = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_REDIRECT = 5
_READING = frozenset({"GET", "HEAD"})
_ALWAYS_SENT = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
_QUICK_ANSWER = 0.001  # seconds
_FORGETTING = 1.02  # how much longer, with each answer, the quickest one is taken to have been

#: A parameter with a tuple of values is sent once for each.
Query = Mapping[str, str | int | bool | tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Call:
    """A request before it is sent."""

    actor: Actor | None
    method: str
    path: str
    """Below /api/v4, with a leading slash, already encoded; or the whole address that a redirect gave."""
    query: Query = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bool = False
    """Whether the body is wanted as it was sent, with no content encoding undone."""
    patient: bool = True
    """Whether to wait and try again when the target answers 429."""

    @property
    def target(self) -> str:
        """Path and query as sent."""
        wanted = [
            (key, _query_text(entry))
            for key, value in self.query.items()
            for entry in (value if isinstance(value, tuple) else (value,))
            if entry is not None
        ]
        return f"{self.path}?{urlencode(wanted)}" if wanted else self.path


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and what came back."""

    call: Call
    status: int | None
    """None when no answer came, or none that is whole."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    seconds: float
    problem: str | None = None
    """Why no answer came, or why it is not whole."""
    throttled: bool = False
    """Whether the target answered 429 before it answered this."""

    @property
    def is_success(self) -> bool:
        """Whether the call was served."""
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's own numbers

    @property
    def is_refusal(self) -> bool:
        """Whether the call was refused with some 4xx; too many requests is no refusal."""
        return self.status is not None and 400 <= self.status < 500 and self.status != _TOO_MANY_REQUESTS  # noqa: PLR2004


class TargetGoneError(Exception):
    """The target takes no connections, or answers nothing any more; nothing more can be learned from it."""


class Client:
    """
    Sends calls to one target.

    Waits when the target answers 429, keeps to the profile's rate, reads at most LARGEST_BODY bytes, follows no
    redirect unless told so, takes no cookies, ends every call within the profile's timeout, does not wait for the same
    silence again and again, and hands every exchange to its listeners. Safe to use from several threads.
    """

    def __init__(self, profile: Profile, at_once: int = AT_ONCE) -> None:
        """Prepare connections to the profile's target, for so many calls at once at most; nothing is sent yet."""
        self.profile = profile
        self.at_once = at_once
        self._under_way = threading.BoundedSemaphore(at_once)
        self.requests = 0
        self._speaker = _Speaker()
        self._listeners: list[Callable[[Exchange], None]] = []
        self._pace = _Pace(profile.limits.requests_per_second)
        self._lock = threading.Lock()
        self._refused_in_a_row = 0
        self._waited = 0.0
        self._settled_at = 0.0
        self._quickest_seconds = 0.0
        self._circuit_breaker = CircuitBreaker(profile.limits.timeout_seconds, _method_and_path)
        self._gone: str | None = None
        self._asking = threading.Lock()
        self._wanting_quiet = threading.Lock()
        self._own_address = Address.of(f"{profile.base_url}/api/v4")
        self._connections = Connections(self._certificates(), profile.limits.timeout_seconds)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @property
    def test(self) -> str:
        """Node id of the test on whose behalf this thread calls; goes into the User-Agent."""
        return self._speaker.test

    @test.setter
    def test(self, test: str) -> None:
        self._speaker.test = test

    def on_exchange(self, listener: Callable[[Exchange], None]) -> None:
        """Hand every exchange from now on to a listener."""
        self._listeners.append(listener)

    def tell_apart(self, place_of: Callable[[Call], str]) -> None:
        """Take calls of one place, such as those of one operation, for alike: they will go unanswered together."""
        self._circuit_breaker.place_of = place_of

    def send(  # noqa: PLR0913 - the parts of a request
        self,
        actor: Actor | None,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json_body: Any = _ABSENT,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bool = False,
        patient: bool = True,
    ) -> Exchange:
        """
        Send one call and return the exchange, also when no answer came.

        `raw` wants the bytes of the body as they were sent; without `patient` a 429 is an answer like any other.
        Raise TargetGoneError when the target has refused several connections in a row, or has left several calls
        without an answer and then also one that it answered before.
        """
        sent = dict(headers or {})
        body = content
        if json_body is not _ABSENT:
            body = json.dumps(json_body).encode()
            sent.setdefault("Content-Type", "application/json")
        if raw:
            sent.setdefault("Accept-Encoding", "gzip")
        wanted, sent_headers = MappingProxyType(dict(query or {})), MappingProxyType(sent)
        return self.perform(Call(actor, method, path, wanted, body, sent_headers, raw, patient))

    def follow(self, exchange: Exchange) -> Exchange:
        """
        Return what a redirect leads to after a few steps at most; what is no redirect is returned as it is.

        The token stays at the target's own address: another host, such as an object storage, never sees it. Without a
        token a redirect is a refusal and is not followed: it leads to where somebody is asked for one.
        """
        for _ in range(_LONGEST_REDIRECT if exchange.call.actor else 0):
            where = exchange.headers.get("location")
            if exchange.status not in _REDIRECTS or not where:
                break
            call = exchange.call
            try:
                address = urljoin(self._address(call), where)
                here = urlsplit(address)[:2] == urlsplit(self.profile.base_url)[:2]
            except ValueError:
                break  # no address, so it leads nowhere
            path = address.removeprefix(f"{self.profile.base_url}/api/v4")
            exchange = self.perform(replace(call, actor=call.actor if here else None, path=path, query={}))
        return exchange

    def perform(self, call: Call) -> Exchange:
        """Send a prepared call; see `send`. A read waits until what was written before it may be expected to show."""
        if call.method in _READING:
            time.sleep(max(0.0, self._settled_at - time.monotonic()))
        exchange = self._once(call)
        while exchange.status == _TOO_MANY_REQUESTS and call.patient:
            pause = _retry_after(exchange)
            if not self._may_wait(pause):
                break
            time.sleep(pause)
            exchange = replace(self._once(call), throttled=True)
        if call.method not in _READING:
            self._settled_at = time.monotonic() + self.profile.limits.settle_seconds
        for listener in self._listeners:
            listener(exchange)
        return exchange

    def worth_sending_at_once(self) -> int:
        """
        Return how many calls at once make sense with what the target takes for an answer.

        Threads shorten the waiting. Where a target answers faster than a call is made, they only stand in each other's
        way: measured with answers within half a millisecond, two threads send less than one.
        """
        return 1 + int(self._quickest_seconds / _QUICK_ANSWER)

    def _may_wait(self, pause: float) -> bool:
        with self._lock:
            if self._waited + pause > self.profile.limits.back_pressure_seconds:
                return False
            self._waited += pause
            return True

    def _once(self, call: Call) -> Exchange:
        if self._gone is not None:
            raise TargetGoneError(self._gone)
        refusal = self._circuit_breaker.refuses(call, self.test)
        if refusal is not None:
            return _unanswered(call, refusal, 0.0)
        begun = time.monotonic()
        exchange = self._sent(call)
        if exchange.status is not None:
            self._circuit_breaker.heard(call)
        elif self._circuit_breaker.missed(call, self.test, exchange.problem or "", begun, time.monotonic()):
            self._see_who_answers(exchange)
        return exchange

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While the context lasts, let no other thread have a call under way: what happens is not for want of power."""
        with self._wanting_quiet, ExitStack() as places:
            for _ in range(self.at_once):
                places.enter_context(self._under_way)
            self._speaker.is_alone = True
            try:
                yield
            finally:
                self._speaker.is_alone = False

    def _sent(self, call: Call) -> Exchange:
        self._pace.wait()
        if self._speaker.is_alone:
            return self._answered(call)
        with self._under_way:
            return self._answered(call)

    def _answered(self, call: Call) -> Exchange:
        sent = {"User-Agent": self._user_agent(), **_ALWAYS_SENT, **call.headers}
        if call.actor is not None and not {"authorization", "private-token"} & {name.lower() for name in call.headers}:
            sent["PRIVATE-TOKEN"] = call.actor.token
        with self._lock:
            self.requests += 1
        started = time.perf_counter()
        try:
            address, rest = (Address.of(call.target), "") if _is_whole(call) else (self._own_address, call.target)
            with self._connections.answer(address.request(call.method, rest, sent, call.body)) as response:
                headers = headers_of(response)
                found = received(response, headers, most=LARGEST_FILE if call.raw else LARGEST_BODY, raw=call.raw)
        except (*BROKEN, httpx.InvalidURL) as error:
            return self._no_answer(call, error, time.perf_counter() - started)
        seconds = time.perf_counter() - started
        self._quickest_seconds = min(seconds, self._quickest_seconds * _FORGETTING or seconds)
        self._refused_in_a_row = 0
        if found.problem is not None:
            return _unanswered(call, found.problem, seconds)
        return Exchange(
            call=call,
            status=response.status,
            headers=MappingProxyType(headers),
            body=found.body,
            seconds=seconds,
        )

    def _see_who_answers(self, exchange: Exchange) -> None:
        """Ask for what was answered before; raise TargetGoneError when that is not answered any more either."""
        with self._asking:
            for witness in self._circuit_breaker.witnesses() if self._gone is None else ():
                if self._sent(witness).status is not None:
                    self._circuit_breaker.heard(witness)
                    return
            self._gone = self._gone or (
                f"{self.profile.redacted()['base_url']} leaves every call without an answer, also those that it "
                f"answered before; the last one: {exchange.problem}"
            )
            raise TargetGoneError(self._gone)

    def _certificates(self) -> ssl.SSLContext | bool:
        if not self.profile.base_url.startswith("https://"):
            return False  # reading the authorities takes longer than many a test
        known = self.profile.certificates
        return ssl.create_default_context(cafile=known) if isinstance(known, str) else known

    def _no_answer(self, call: Call, error: Exception, seconds: float) -> Exchange:
        if isinstance(error, httpcore.ConnectError) and not _is_whole(call):
            with self._lock:
                self._refused_in_a_row += 1
                if self._refused_in_a_row >= _REFUSED_IN_A_ROW:
                    self._gone = (
                        f"{self.profile.redacted()['base_url']} refused {self._refused_in_a_row} connections in a row: "
                        f"{in_short(error)}"
                    )
                    raise TargetGoneError(self._gone) from error
        if isinstance(error, httpcore.TimeoutException):
            return _unanswered(call, f"no answer within {self.profile.limits.timeout_seconds:g} s", seconds)
        return _unanswered(call, in_short(error), seconds)

    def _user_agent(self) -> str:
        test = self.test.encode("ascii", "replace").decode()
        return f"project-automation-conformance/{__version__}" + (f" ({test})" if test else "")

    def evidence(self, exchange: Exchange) -> Evidence:
        """Return an exchange as a report may show it: no token, no password, bodies cut to a readable length."""
        call = exchange.call
        return Evidence(
            actor=call.actor.name if call.actor else "anonymous",
            request=self._redacted(f"{call.method} {self._shown_target(call)}"),
            request_body=self._redacted(_shown(call.body)) if call.body else None,
            status=exchange.status,
            response_body=self._redacted(_shown(exchange.body) if exchange.body else exchange.problem or ""),
            milliseconds=round(exchange.seconds * 1000, 1),
            curl=self._redacted(self._curl(call)),
        )

    def _curl(self, call: Call) -> str:
        parts = ["curl", "-i", "-X", call.method]
        if call.actor is not None and not any(name.lower() == "authorization" for name in call.headers):
            parts += ["-H", f'"PRIVATE-TOKEN: {call.actor.variable}"']
        for name, value in call.headers.items():
            parts += ["-H", shlex.quote(f"{name}: {value}")]
        if call.body is not None:
            parts += ["--data-binary", shlex.quote(call.body.decode("utf-8", "replace"))]
        parts.append(shlex.quote(_without_query(call.target) if _is_whole(call) else self._address(call)))
        return " ".join(parts)

    def _address(self, call: Call) -> str:
        return call.target if _is_whole(call) else f"{self.profile.base_url}/api/v4{call.target}"

    def _shown_target(self, call: Call) -> str:
        return _without_query(call.target) if _is_whole(call) else f"/api/v4{call.target}"

    def _redacted(self, text: str) -> str:
        for secret in self.profile.secrets():
            text = text.replace(secret, "[redacted]")
        return text


class _Speaker(threading.local):
    """On whose behalf a thread calls, and whether no other thread does."""

    test: str = ""
    is_alone: bool = False


class _Pace:
    """Keeps to a number of requests per second."""

    def __init__(self, per_second: float | None) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._gap
        if start > now:
            time.sleep(start - now)


def _is_whole(call: Call) -> bool:
    """Tell whether the path is an address of its own, as redirects give them."""
    return "://" in call.path.partition("?")[0]


def _without_query(address: str) -> str:
    """Leave out the query of an address that a redirect gave: what is signed there is as good as a password."""
    path, mark, _ = address.partition("?")
    return f"{path}{mark}{'...' if mark else ''}"


def _unanswered(call: Call, problem: str, seconds: float) -> Exchange:
    return Exchange(call, None, MappingProxyType({}), b"", seconds, problem)


def _method_and_path(call: Call) -> str:
    return f"{call.method} {call.path}"


def _retry_after(exchange: Exchange) -> float:
    """Return how many seconds the target asks to wait; one second when it does not say."""
    try:
        asked = float(exchange.headers.get("retry-after", "1"))
    except ValueError:
        return 1.0
    return 1.0 if math.isnan(asked) else min(max(asked, 0.1), 60.0)


def _query_text(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(body: bytes) -> str:
    text = body[: _SHOWN_BODY * 4].decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_BODY else f"{text[:_SHOWN_BODY]} ... ({len(body)} bytes)"
