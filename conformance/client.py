"""The only thing that talks HTTP to the target: polite, recorded, redacted."""

from __future__ import annotations

import json
import shlex
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from conformance import __version__
from conformance.record import Evidence

if TYPE_CHECKING:
    from conformance.target import Actor, Profile

#: Answers are read up to this size; what is longer is cut off, and said to be.
LARGEST_BODY = 8 * 1024 * 1024
_SHOWN_BODY = 4000
_ABSENT: Any = object()
_TOO_MANY_REQUESTS = 429
_NO_CONTENT = 204
_REFUSED_IN_A_ROW = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_REDIRECT = 5

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
    """None when no answer came."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    seconds: float
    problem: str | None = None
    """Why no answer came, or why the body is not whole."""
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
    """The target has stopped taking connections; nothing more can be learned from it."""


class Client:
    """
    Sends calls to one target.

    Waits when the target answers 429, keeps to the profile's rate, reads at most LARGEST_BODY bytes, follows no
    redirect unless told so, and hands every exchange to its listeners. Safe to use from several threads.
    """

    def __init__(self, profile: Profile) -> None:
        """Prepare connections to the profile's target; nothing is sent yet."""
        self.profile = profile
        self.requests = 0
        self.test = ""
        """Node id of the test on whose behalf is called; goes into the User-Agent."""
        self._listeners: list[Callable[[Exchange], None]] = []
        self._pace = _Pace(profile.limits.requests_per_second)
        self._lock = threading.Lock()
        self._refused_in_a_row = 0
        self._waited = 0.0
        self._http = self._connect()
        self._retired: list[httpx.Client] = []

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for http in (self._http, *self._retired):
            http.close()

    def on_exchange(self, listener: Callable[[Exchange], None]) -> None:
        """Hand every exchange from now on to a listener."""
        self._listeners.append(listener)

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
        Raise TargetGoneError when the target has refused several connections in a row.
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
            address = urljoin(self._address(call), where)
            here = urlsplit(address)[:2] == urlsplit(self.profile.base_url)[:2]
            path = address.removeprefix(f"{self.profile.base_url}/api/v4")
            exchange = self.perform(replace(call, actor=call.actor if here else None, path=path, query={}))
        return exchange

    def perform(self, call: Call) -> Exchange:
        """Send a prepared call; see `send`."""
        exchange = self._once(call)
        while exchange.status == _TOO_MANY_REQUESTS and call.patient:
            pause = _retry_after(exchange)
            if not self._may_wait(pause):
                break
            time.sleep(pause)
            exchange = replace(self._once(call), throttled=True)
        for listener in self._listeners:
            listener(exchange)
        return exchange

    def _may_wait(self, pause: float) -> bool:
        with self._lock:
            if self._waited + pause > self.profile.limits.back_pressure_seconds:
                return False
            self._waited += pause
            return True

    def _once(self, call: Call) -> Exchange:
        self._pace.wait()
        headers = {"User-Agent": self._user_agent(), "Accept": "*/*", **call.headers}
        if call.actor is not None and not {"authorization", "private-token"} & {name.lower() for name in headers}:
            headers["PRIVATE-TOKEN"] = call.actor.token
        request = self._http.build_request(
            call.method,
            call.target,
            content=call.body,
            headers=headers,
        )
        with self._lock:
            self.requests += 1
        started = time.perf_counter()
        try:
            response = self._http.send(request, stream=True)
            try:
                body, problem = _read(response, started + self.profile.limits.timeout_seconds, raw=call.raw)
            finally:
                response.close()
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return self._no_answer(call, error, time.perf_counter() - started)
        self._refused_in_a_row = 0
        if response.status_code == _NO_CONTENT and not body:
            body = self._undue_body(response)
        return Exchange(
            call=call,
            status=response.status_code,
            headers=MappingProxyType({name.lower(): value for name, value in response.headers.items()}),
            body=body,
            seconds=time.perf_counter() - started,
            problem=problem,
        )

    def _undue_body(self, response: httpx.Response) -> bytes:
        """
        Return a stand-in for the body of a 204 that announces one.

        HTTP libraries take a 204 for finished after its headers, whatever follows; the bytes that do follow would be
        taken for the next answer, so the connections are given up as well.
        """
        length = response.headers.get("content-length", "0")
        if length == "0" and "transfer-encoding" not in response.headers:
            return b""
        with self._lock:
            self._retired.append(self._http)
            self._http = self._connect()
        return b"?" * min(int(length), 1000) if length.isdigit() and length != "0" else b"?"

    def _connect(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"{self.profile.base_url}/api/v4",
            timeout=httpx.Timeout(self.profile.limits.timeout_seconds),
            limits=httpx.Limits(max_connections=128, max_keepalive_connections=128),
            trust_env=False,
            follow_redirects=False,
            verify=self._certificates(),
        )

    def _certificates(self) -> ssl.SSLContext | bool:
        if not self.profile.base_url.startswith("https://"):
            return False  # reading the authorities takes longer than many a test
        known = self.profile.certificates
        return ssl.create_default_context(cafile=known) if isinstance(known, str) else known

    def _no_answer(self, call: Call, error: Exception, seconds: float) -> Exchange:
        if isinstance(error, httpx.ConnectError):
            with self._lock:
                self._refused_in_a_row += 1
            if self._refused_in_a_row >= _REFUSED_IN_A_ROW:
                raise TargetGoneError(
                    f"{self.profile.base_url} refused {self._refused_in_a_row} connections in a row: {error}",
                ) from error
        text = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            text = f"no answer within {self.profile.limits.timeout_seconds:g} s"
        return Exchange(call, None, MappingProxyType({}), b"", seconds, text)

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


def _read(response: httpx.Response, deadline: float, *, raw: bool) -> tuple[bytes, str | None]:
    """Read the body, decoded or as it was sent, up to its limits of size and time."""
    chunks: list[bytes] = []
    size = 0
    for chunk in response.iter_raw() if raw else response.iter_bytes():
        chunks.append(chunk)
        size += len(chunk)
        if size > LARGEST_BODY:
            return b"".join(chunks)[:LARGEST_BODY], f"the body is longer than {LARGEST_BODY} bytes"
        if time.perf_counter() > deadline:
            return b"".join(chunks), "the body did not end in time"
    return b"".join(chunks), None


def _retry_after(exchange: Exchange) -> float:
    """Return how many seconds the target asks to wait; one second when it does not say."""
    try:
        return min(max(float(exchange.headers.get("retry-after", "1")), 0.1), 60.0)
    except ValueError:
        return 1.0


def _query_text(value: str | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(body: bytes) -> str:
    text = body[: _SHOWN_BODY * 4].decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_BODY else f"{text[:_SHOWN_BODY]} ... ({len(body)} bytes)"
