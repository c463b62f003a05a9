"""Connections whose calls end in time, whatever the other side does, and that know nobody from an earlier call."""

from __future__ import annotations

import base64
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Iterator, Mapping

_PIECE = 16 * 1024
_PORTS = {b"http": 80, b"https": 443}

#: What the HTTP library raises when a call comes to nothing.
BROKEN = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    OSError,
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where calls go: a server, the beginning of each path there, and what every call has to say to it."""

    origin: httpcore.Origin
    start: bytes
    """What each path begins with, or the whole of it."""
    headers: tuple[tuple[bytes, bytes], ...]
    """Host, and whoever the address itself names."""

    @classmethod
    def of(cls, url: str) -> Address:
        """Read an address; raise httpx.InvalidURL or UnsupportedProtocol when it is none that can be called."""
        found = httpx.URL(url)
        scheme = found.raw_scheme
        if scheme not in _PORTS or not found.raw_host:
            raise httpcore.UnsupportedProtocol(f"{found.scheme or 'no scheme'} is not http or https")
        headers = [(b"Host", found.netloc)]
        if found.userinfo:
            name, _, password = found.userinfo.partition(b":")
            said = unquote_to_bytes(name) + b":" + unquote_to_bytes(password)
            headers.append((b"Authorization", b"Basic " + base64.b64encode(said)))
        origin = httpcore.Origin(scheme, found.raw_host, found.port if found.port is not None else _PORTS[scheme])
        return cls(origin, found.raw_path, tuple(headers))

    def request(self, method: str, rest: str, headers: Mapping[str, str], body: bytes | None) -> httpcore.Request:
        """Return a request of what lies below this address; `rest` is encoded already."""
        origin = self.origin
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        given = {name.lower() for name, _ in sent}
        sent = [(name, value) for name, value in self.headers if name.lower() not in given] + sent
        if (body or method in ("POST", "PUT", "PATCH")) and b"content-length" not in given:
            sent.append((b"Content-Length", str(len(body or b"")).encode()))
        url = httpcore.URL(scheme=origin.scheme, host=origin.host, port=origin.port, target=self.start + rest.encode())
        return httpcore.Request(method, url, headers=sent, content=body or b"")


class Connections:
    """
    Connections to targets, kept open between calls. Safe to use from several threads.

    A call ends within its time whatever the other side does: the timeouts of the HTTP library begin anew with every
    byte, so that a server which sends a byte now and then would hold a call for ever. Which connection is free is kept
    here, for the library's pool looks through all of them at every call: with many calls under way most of the time
    went there.
    """

    def __init__(self, certificates: ssl.SSLContext | bool, seconds: float) -> None:  # noqa: FBT001 - as httpx has it
        """Prepare connections whose calls take so many seconds at most; nothing is sent yet."""
        self._seconds = seconds
        self._due = _Due()
        self._backend = _Backend(self._due)
        self._tls = httpx.create_ssl_context(verify=certificates, trust_env=False)
        self._free: defaultdict[tuple[bytes, ...], list[httpcore.HTTPConnection]] = defaultdict(list)

    @contextmanager
    def answer(self, request: httpcore.Request) -> Iterator[httpcore.Response]:
        """Send a request and give its answer, the body still to be read by the same thread; raise one of BROKEN."""
        self._due.at = time.monotonic() + self._seconds
        connection = self._one_for(request.url.origin)
        response = connection.handle_request(request)
        try:
            yield response
        finally:
            response.close()
            if connection.is_idle():
                self._free_ones(request.url.origin).append(connection)

    def close(self) -> None:
        """Close all connections that no call uses."""
        for free in self._free.values():
            while free:
                free.pop().close()

    def _one_for(self, origin: httpcore.Origin) -> httpcore.HTTPConnection:
        """Return the connection that was free last, if the other side still has it open, and otherwise a new one."""
        free = self._free_ones(origin)
        while free:
            try:
                connection = free.pop()
            except IndexError:  # another thread took the last one
                break
            if not connection.has_expired():
                return connection
            connection.close()
        return httpcore.HTTPConnection(origin, ssl_context=self._tls, network_backend=self._backend)

    def _free_ones(self, origin: httpcore.Origin) -> list[httpcore.HTTPConnection]:
        return self._free[origin.scheme, origin.host, str(origin.port).encode()]


# -- time --------------------------------------------------------------------------------------------------------------


class _Due(threading.local):
    """When the call of this thread must have ended."""

    at: float = 0.0

    def left(self, timeout: float | None, error: type[Exception]) -> float:
        """Return how long the next step may take; raise the error when there is no time left."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise error("the time for the whole call is over")
        return left if timeout is None else min(timeout, left)


class _Backend(httpcore.NetworkBackend):
    """Opens connections whose every step ends with the call it belongs to."""

    def __init__(self, due: _Due) -> None:
        self._due = due
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._due.left(timeout, httpcore.ConnectTimeout)
        return _Line(self._plain.connect_tcp(host, port, left, local_address, socket_options), self._due)


class _Line(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, due: _Due) -> None:
        self._stream = stream
        self._due = due

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._due.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # In pieces, for within one the time begins anew with every byte that the other side takes.
        for start in range(0, len(buffer), _PIECE):
            left = self._due.left(timeout, httpcore.WriteTimeout)
            self._stream.write(buffer[start : start + _PIECE], left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left = self._due.left(timeout, httpcore.ConnectTimeout)
        return _Line(self._stream.start_tls(ssl_context, server_hostname, left), self._due)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
