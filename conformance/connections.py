"""Connections whose calls end in time, whatever the other side does, and that know nobody from an earlier call."""

from __future__ import annotations

import threading
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import httpcore
import httpx

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

_AT_ONCE = 128
_PIECE = 16 * 1024


class Connections(httpx.HTTPTransport):
    """
    Connections to targets, kept open between calls.

    A call ends within its time whatever the other side does: the timeouts of the HTTP library begin anew with every
    byte, so that a server which sends a byte now and then would hold a call for ever.
    """

    def __init__(self, certificates: ssl.SSLContext | bool, seconds: float) -> None:  # noqa: FBT001 - as httpx has it
        """Prepare connections whose calls take so many seconds at most; nothing is sent yet."""
        super().__init__(trust_env=False, verify=False)
        self._seconds = seconds
        self._due = _Due()
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(verify=certificates, trust_env=False),
            max_connections=_AT_ONCE,
            max_keepalive_connections=_AT_ONCE,
            network_backend=_Backend(self._due),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its answer, the body still to be read by the same thread."""
        self._due.at = time.monotonic() + self._seconds
        return super().handle_request(request)


def no_cookies() -> CookieJar:
    """Return a jar that takes no cookie: what one actor is given must not speak for another."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


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
