"""The HTTP client for the target: it limits its rate, reports each exchange, and never waits without end."""

from __future__ import annotations

import re
import threading
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from http import HTTPStatus
from http.cookiejar import CookieJar
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import httpx

from conformance import __version__
from conformance.http.bodies import ABSENT, written
from conformance.http.circuit_breaker import CircuitBreaker
from conformance.http.exchange import READING, Call, Exchange, Trouble
from conformance.http.front import Anywhere, Front
from conformance.http.pace import Pace
from conformance.http.redaction import Redaction
from conformance.http.retries import TIMEOUTS, Persistence, Retries
from conformance.http.settings import without_userinfo
from conformance.http.transport import (
    LARGEST_BODY,
    Address,
    BrokenOffError,
    CutShortError,
    Headers,
    IncompleteAnswerError,
    Limits,
    NotSentError,
    Transport,
    encoded,
)
from conformance.http.unpacking import BodyError, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.http.exchange import Credentials, Query
    from conformance.http.settings import ClientSettings

#: The size limit in bytes for files that are wanted as they are sent.
LARGEST_FILE = 8 * 1024 * 1024
_REFUSED_IN_A_ROW = 5
#: A read of no area: whatever the answer, somebody is there, though one area leaves every call without an answer.
_OF_NO_AREA = "/version"
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_REDIRECT = 5
_QUICK_ANSWER = 0.001  # seconds
_FORGETTING = 1.02  # with each answer, the shortest known time is raised by this factor
#: These methods send JSON in ASCII, the others in UTF-8, because clients do both.
_ESCAPED = ("PUT", "PATCH")
_NO_AUTHENTICATION = httpx.Auth()
#: The trouble for each exception of the library; the first match counts.
_TROUBLES: Mapping[type[Exception], Trouble] = {
    BrokenOffError: Trouble.BROKEN,
    CutShortError: Trouble.BODY_TIMEOUT,
    IncompleteAnswerError: Trouble.UNREADABLE,
    httpx.ConnectTimeout: Trouble.CONNECT_TIMEOUT,
    httpx.WriteTimeout: Trouble.WRITE_TIMEOUT,
    httpx.TimeoutException: Trouble.READ_TIMEOUT,
    httpx.ConnectError: Trouble.REFUSED,
    httpx.ReadError: Trouble.BROKEN,
    httpx.WriteError: Trouble.BROKEN,
    httpx.RemoteProtocolError: Trouble.BROKEN,
}
_LONGEST_AGENT = 300
_UNFIT = re.compile(r"[\x00-\x1f\x7f]")


def _user_agent(run: str, test: str) -> tuple[bytes, bytes]:
    told = [f"{name} {value}" for name, value in (("run", run), ("test", test)) if value]
    shown = f" ({'; '.join(told)})".encode("ascii", "replace").decode()[:_LONGEST_AGENT] if told else ""
    return b"User-Agent", f"project-automation-conformance/{__version__}{_UNFIT.sub('?', shown)}".encode()


class TargetGoneError(Exception):
    """The target accepts no connections, or no longer answers; nothing more can be learned from it."""


class RequestsSpentError(Exception):
    """A call may not be sent, for example because it exceeds the number of requests that the operator allows."""


class Client(AbstractContextManager["Client"]):
    """Sends calls to one target.

    Waits when the target answers 429, cannot be reached, or a gateway answers instead. Repeats a read after a broken
    connection, limits the rate and the number of calls, reads at most LARGEST_BODY bytes, follows a redirect only when
    told to, takes no cookies, ends every call within the timeout, does not wait for the same silence again and again,
    and hands every exchange to its listeners. Safe to use from several threads.
    """

    def __init__(self, settings: ClientSettings, *, beside: bool = False, paced_with: Client | None = None) -> None:
        """Prepare connections to a target; nothing is sent yet. Raise UsageError when a certificate cannot be read.

        With `beside`, the calls are not part of a test, so idempotent calls are retried more often. The calls of a
        client with `paced_with` count towards the same rate as those of the other client, and what goes unanswered
        there is not waited for again here.
        """
        self.settings = settings
        self.redaction = Redaction(settings.secrets)
        self.requests = 0
        self.most_requests: float | None = None
        """How many requests may be sent at most, not counting those that restore something."""
        self._spent_in: set[str] = set()
        self._beside, self._is_second = beside, paced_with is not None
        self._arranging: set[str] = set()
        self._spoiled: set[str] = set()
        self._under_way = threading.BoundedSemaphore(settings.at_once)
        self._speaker = _Speaker(settings.run)
        self._gates: list[Callable[[Call], None]] = []
        self._listeners: list[Callable[[Exchange], None]] = []
        self.pace: Pace = Pace(settings.requests_per_second) if paced_with is None else paced_with.pace
        self.retries = Retries(settings.call_wait_seconds, settings.run_wait_seconds, self.pace)
        self._lock = threading.Lock()
        self._refused_in_a_row = 0
        self._was_answered = False
        self._answered_elsewhere: set[tuple[str, str]] = set()
        self._settled_at = 0.0
        self._quickest_seconds = 0.0
        self._circuit_breaker: CircuitBreaker = (
            CircuitBreaker(settings.timeout_seconds, attrgetter("label"))
            if paced_with is None
            else paced_with._circuit_breaker  # noqa: SLF001 - of this class
        )
        self._front = Front(attrgetter("label"))
        self.anywhere: Anywhere = Anywhere() if paced_with is None else paced_with.anywhere
        self._gone: str | None = None
        self._asking = threading.Lock()
        self._wanting_quiet = threading.Lock()
        self._own_address = Address.of(settings.api, settings.headers)
        self._http = httpx.Client(
            transport=Transport(settings), trust_env=False, timeout=settings.timeout_seconds, cookies=_NoCookies()
        )

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    @property
    def test(self) -> str:
        """Node id of the test for which this thread calls; it goes into the User-Agent."""
        return self._speaker.test

    @test.setter
    def test(self, test: str) -> None:
        told = f"beside {test}" if self._is_second else test
        self._speaker.test, self._speaker.user_agent = test, _user_agent(self.settings.run, told)

    @contextmanager
    def ending_when_interrupted(self) -> Iterator[None]:
        """While the context lasts, an interrupt of this thread makes the others send nothing more and stop waiting."""
        try:
            yield
        except KeyboardInterrupt:
            self._gone = "the run was interrupted"
            self.pace.end()
            raise

    @contextmanager
    def arranging(self) -> Iterator[None]:
        """While the context lasts, this thread's test prepares something: idempotent calls are retried."""
        test = self.test
        self._arranging.add(test)
        try:
            yield
        finally:
            self._arranging.discard(test)

    def persevere(self) -> None:
        """From now on, retry PUT and PATCH in the test of this thread: the network spoiled it more than once."""
        self._spoiled.add(self.test)

    def _persistence(self) -> Persistence:
        if self._beside or self.test in self._arranging:
            return Persistence.ARRANGING
        return Persistence.SPOILED if self.test in self._spoiled else Persistence.ONCE

    def await_answers(self) -> None:
        """Wait until the target answers a call that it answered before, at most for the budget of one call."""
        for witness in self._circuit_breaker.witnesses():
            if self._persistently(witness).status is not None:
                break

    def on_exchange(self, listener: Callable[[Exchange], None]) -> None:
        """Pass every later exchange to a listener."""
        self._listeners.append(listener)

    def before_write(self, gate: Callable[[Call], None]) -> None:
        """Pass every call that may change something to a gate before it is sent; if the gate raises, it is not sent."""
        self._gates.append(gate)

    def tell_apart(self, place_of: Callable[[Call], str]) -> None:
        """Group the calls of tests, such as by operation: those of one group are expected to go unanswered together."""
        self._circuit_breaker.place_of = self._front.place_of = place_of
        self._front.is_of_tests = True

    def send(  # noqa: PLR0913 - the parts of a request
        self,
        actor: Credentials | None,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        json_body: Any = ABSENT,
        headers: Mapping[str, str] | None = None,
        raw: bool = False,
        patient: bool = True,
    ) -> Exchange:
        """Send one call and return the exchange, even if no answer came.

        With `raw`, the body is returned as it was sent; without `patient`, a 429 is an answer like any other. Raise
        TargetGoneError when the target has refused several connections in a row, or has left several calls unanswered
        and then also one that it answered before. Raise RequestsSpentError when the allowed number of requests is
        exceeded.
        """
        sent, body = dict(headers or {}), None
        if json_body is not ABSENT:
            body = written(json_body, escaped=method in _ESCAPED)
            sent.setdefault("Content-Type", "application/json")
        if raw:
            sent.setdefault("Accept-Encoding", "gzip")
        wanted, sent_headers = MappingProxyType(dict(query or {})), MappingProxyType(sent)
        return self.perform(Call(actor, method, path, wanted, body, sent_headers, raw, patient))

    def follow(self, exchange: Exchange) -> Exchange:
        """Follow redirects for a few steps and return the last exchange; return any other answer as it is.

        The token is only sent to the target's own address: another host, such as an object storage, never sees it.
        Without a token, a redirect is a refusal and is not followed, because it leads to a login.
        """
        for _ in range(_LONGEST_REDIRECT if exchange.call.actor else 0):
            where = exchange.headers.get("location")
            if exchange.status not in _REDIRECTS or not where:
                break
            call = exchange.call
            try:
                address = urljoin(self.address(call), where)
                # The target may redirect to itself without the user and password that base_url has.
                own = without_userinfo(self.settings.api)
                here = urlsplit(without_userinfo(address))[:2] == urlsplit(own)[:2]
            except ValueError:
                break  # the location is no address
            shown = without_userinfo(address)
            path = shown.removeprefix(own) if shown.startswith(own) else address
            try:
                exchange = self.perform(replace(call, actor=call.actor if here else None, path=path, query={}))
            except NotSentError:
                break  # a write is not sent to another host
        return exchange

    def address(self, call: Call) -> str:
        """Return the full URL of a call."""
        return call.target if call.is_elsewhere else f"{self.settings.api}{call.target}"

    def perform(self, call: Call) -> Exchange:
        """Send a prepared call; see `send`. A read waits until earlier writes should be visible."""
        if call.method in READING and (left := self._settled_at - time.monotonic()) > 0:
            time.sleep(left)
        for gate in self._gates if call.method not in READING else ():
            gate(call)
        exchange = self._repeated(call)
        if call.method not in READING:
            self._settled_at = time.monotonic() + self.settings.settle_seconds
        for listener in self._listeners:
            listener(exchange)
        return exchange

    def _repeated(self, call: Call) -> Exchange:
        """Send a call and retry it while that may help; a gateway's final answer counts as no answer."""
        if self._gone is not None:
            raise TargetGoneError(self._gone)
        refusal = self._circuit_breaker.refuses(call, self.test)
        if refusal is not None:
            self.retries.miss(Trouble.NOT_SENT)
            return Exchange.unanswered(call, refusal, 0.0, Trouble.NOT_SENT)
        begun = time.monotonic()
        exchange = self._persistently(call)
        if exchange.status is not None:
            self._circuit_breaker.heard(call, exchange.seconds)
            return exchange
        self.retries.miss(exchange.trouble)
        if exchange.trouble is Trouble.REFUSED and not call.is_elsewhere:
            self._see_whether_anybody_is_there(exchange)
        elif self._circuit_breaker.missed(call, self.test, exchange.problem or "", begun, time.monotonic()):
            self._see_who_answers(exchange)
        return exchange

    def _persistently(self, call: Call) -> Exchange:
        persistence = self._persistence()
        exchange, throttled, tries = self._seen(call), False, 0
        begun = time.monotonic()
        while self._front.is_waited_for(exchange) and self.retries.wait(
            exchange, begun, tries, calm=self._is_calm(exchange), persistence=persistence
        ):
            throttled, tries = throttled or exchange.status == HTTPStatus.TOO_MANY_REQUESTS, tries + 1
            exchange = self._seen(call)
            if self.retries.is_long(exchange, begun) and self._is_answered_elsewhere(exchange):
                exchange = self._seen(call)  # the gateway may have gone away between the two calls
                self.retries.give_up_on(exchange)
        if tries:
            self._front.came_to_nothing(exchange)
        exchange = self.retries.take_for(exchange)
        return replace(exchange, throttled=True) if throttled else exchange

    def _seen(self, call: Call) -> Exchange:
        exchange = self._front.judged(self._sent(call), self._sent)
        if self.anywhere.look is not None and exchange.look == self.anywhere.look:
            exchange = replace(exchange, is_as_anywhere=True)
        self.retries.see(exchange)
        return exchange

    def _is_answered_elsewhere(self, exchange: Exchange) -> bool:
        """Tell whether a call of another kind, which was answered before, is answered while a gateway answers this."""
        kind = exchange.call.kind
        others = (self._seen(witness) for witness in self._circuit_breaker.witnesses())
        return any(seen.call.kind != kind and seen.status is not None and not seen.is_of_gateway for seen in others)

    def _is_calm(self, exchange: Exchange) -> bool:
        """Tell whether calls were answered before, so that a call without an answer may be a passing accident."""
        if exchange.trouble is not Trouble.REFUSED:
            return self._circuit_breaker.is_calm
        call = exchange.call
        return _server(call) in self._answered_elsewhere if call.is_elsewhere else self._was_answered

    def worth_sending_at_once(self) -> int:
        """Return how many parallel calls make sense, given the target's response time.

        Threads shorten the waiting. When a target answers faster than a call is prepared, threads only hinder each
        other: with answers within half a millisecond, two threads send less than one.
        """
        return 1 + int(self._quickest_seconds / _QUICK_ANSWER)

    @contextmanager
    def for_several(self, number: int) -> Iterator[None]:
        """While the context lasts, allow as many parallel calls as that number of workers may have together.

        Only use it before the tests begin, because calls that are already running are not counted.
        """
        before, self._under_way = self._under_way, threading.BoundedSemaphore(self.settings.at_once * max(1, number))
        try:
            yield
        finally:
            self._under_way = before

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While the context lasts, block calls of other threads, so that no result is due to their load."""
        with self._wanting_quiet, ExitStack() as places:
            for _ in range(self.settings.at_once):
                places.enter_context(self._under_way)
            self._speaker.is_alone = True
            try:
                yield
            finally:
                self._speaker.is_alone = False

    def _sent(self, call: Call) -> Exchange:
        self.pace.wait()
        if self.pace.is_over and self._gone is not None:
            raise TargetGoneError(self._gone)
        if self._speaker.is_alone:
            return self._answered(call)
        with self._wanting_quiet:
            pass  # whoever wants to be alone waits only for running calls, not for new ones
        with self._under_way:
            return self._answered(call)

    def _answered(self, call: Call) -> Exchange:
        with self._lock:
            self._require_requests()
            self.requests += 1
        limits = Limits(LARGEST_FILE if call.raw else LARGEST_BODY, self._circuit_breaker.seconds_for(call))
        started = time.perf_counter()
        try:
            address, rest = self._place(call)
            request = address.request(call.method, rest, self._headers(call), call.body, limits)
            response = self._http.send(request, stream=True, auth=_NO_AUTHENTICATION)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            unanswered = _no_answer(call, error, limits.seconds, time.perf_counter() - started)
            if unanswered.trouble in TIMEOUTS:
                self._circuit_breaker.waited_for(call, started, time.perf_counter())
            return unanswered
        headers, body = _headers_of(response), b"".join(response.iter_raw())
        seconds = time.perf_counter() - started
        self._quickest_seconds = min(seconds, self._quickest_seconds * _FORGETTING or seconds)
        if call.is_elsewhere:
            self._answered_elsewhere.add(_server(call))
        self._refused_in_a_row, self._was_answered = 0, True
        try:
            body = body if call.raw else unpacked(body, headers.get("content-encoding", ""), limits.largest_body)
        except BodyError as error:
            problem = f"status {response.status_code}, but the body {error}"
            return Exchange.unanswered(call, problem, seconds, Trouble.UNREADABLE)
        return Exchange(call, response.status_code, MappingProxyType(headers), body, seconds)

    def _require_requests(self) -> None:
        """Raise RequestsSpentError when the requests are spent; a test that was told so before may still clean up."""
        most, test = self.most_requests, self.test
        if most is not None and self.requests >= most and not (test in self._spent_in and test in self._arranging):
            self._spent_in.add(test)
            raise RequestsSpentError("the requests of --max-requests were spent")

    def _place(self, call: Call) -> tuple[Address, str]:
        """Return the server and the path of a call; a server that gets no token gets none of the other headers."""
        if not call.is_elsewhere:
            return self._own_address, call.target
        return Address.of(call.target, self.settings.headers if call.actor else None), ""

    def _headers(self, call: Call) -> Headers:
        given = encoded(call.headers)
        sent = {"user-agent": self._speaker.user_agent}
        if call.actor is not None and not {"authorization", "private-token"} & given.keys():
            sent["private-token"] = (b"PRIVATE-TOKEN", call.actor.token.encode())
        return {**sent, **given}

    def _see_who_answers(self, exchange: Exchange) -> None:
        """Repeat a call that was answered before, if any was; raise TargetGoneError when nobody answers that either."""
        with self._asking:
            known = self._circuit_breaker.witnesses() or [Call(exchange.call.actor, "GET", _OF_NO_AREA)]
            for witness in known if self._gone is None else ():
                if self._persistently(witness).status is not None:
                    self._circuit_breaker.heard(witness)
                    return
            shown, also = self.settings.shown_base_url, ", also those that it answered before" * self._was_answered
            if exchange.trouble is Trouble.REFUSED_THROUGHOUT:
                problem = f"{shown} refuses every call with tokens that it took before: {exchange.problem}"
            else:
                problem = f"{shown} leaves every call without an answer{also}; the last one: {exchange.problem or ''}"
            self._gone = self._gone or problem.rstrip(".")
            raise TargetGoneError(self._gone)

    def _see_whether_anybody_is_there(self, exchange: Exchange) -> None:
        """Raise TargetGoneError when connections were refused for a long time, or from the beginning."""
        with self._lock:
            self._refused_in_a_row += 1
            if self._refused_in_a_row >= (1 if self._was_answered else _REFUSED_IN_A_ROW):
                self._gone = f"{self.settings.shown_base_url} takes no connections: {exchange.problem}"
                raise TargetGoneError(self._gone)


def _no_answer(call: Call, error: Exception, limit: float, seconds: float) -> Exchange:
    trouble = next((known for kind, known in _TROUBLES.items() if isinstance(error, kind)), Trouble.OTHER)
    problem = f"no answer within {limit:g} s" if isinstance(error, httpx.TimeoutException) else str(error)
    return Exchange.unanswered(call, problem, seconds, trouble)


class _NoCookies(CookieJar):
    """Takes no cookies, because each call is independent."""

    def extract_cookies(self, response: object, request: object) -> None:
        """Take nothing."""


class _Speaker(threading.local):
    """The test for which a thread calls, and whether the thread has blocked all others."""

    def __init__(self, run: str) -> None:
        self.test = ""
        self.user_agent = _user_agent(run, "")
        self.is_alone = False


def _headers_of(response: httpx.Response) -> dict[str, str]:
    """Return the headers of an answer, names in lower case; repeated headers are joined, as HTTP defines."""
    found: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name, value = raw_name.decode("latin-1").lower(), _text(raw_value)
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _server(call: Call) -> tuple[str, str]:
    """Return scheme and authority of a call to another server than the target."""
    parts = urlsplit(call.target)
    return parts.scheme, parts.netloc
