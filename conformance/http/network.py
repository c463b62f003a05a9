"""The network layer below the HTTP library: each step ends within its call's deadline; excess bytes are detected."""

from __future__ import annotations

import re
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

#: The length of a body that ends when the connection closes.
WITHOUT_END = sys.maxsize
_SHOWN = 60  # characters of a name
_PIECE = 16 * 1024
_EMPTY_LINE = re.compile(rb"\n\r?\n")


class Deadline(threading.local):
    """When the call of this thread must end, by the monotonic clock."""

    at: float = 0.0

    def left(self, timeout: float | None, error: type[Exception]) -> float:
        """Return how long the next step may take; raise the error when there is no time left."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise error("the time for the whole call is over")
        return left if timeout is None else min(timeout, left)


class Network(httpcore.NetworkBackend):
    """Opens connections; every step ends by the deadline of the thread that takes it."""

    def __init__(self, deadline: Deadline) -> None:
        """Open connections that use this deadline."""
        self._deadline = deadline
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect; raise ConnectError or ConnectTimeout."""
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        try:
            stream = self._plain.connect_tcp(host, port, left, local_address, socket_options)
        except (UnicodeError, OverflowError) as error:  # a name with an empty label, or a port that cannot be
            raise httpcore.ConnectError(f"{host[:_SHOWN]}:{port} is no address: {error}") from error
        return Stream(stream, self._deadline)


class Stream(httpcore.NetworkStream):
    """A connection that returns no more than one answer.

    It returns the received bytes in parts. Each part ends where the answer may end: after an empty line, as heads and
    chunks do, or after the announced length. So all bytes that remain here came after the end of the answer.
    """

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline, *, in_parts: bool = True) -> None:
        """Wrap a connection; not `in_parts` for HTTP/2, which itself says which bytes belong to which answer."""
        self._stream = stream
        self._deadline = deadline
        self._in_parts = in_parts
        self._held = b""
        self._at = 0
        """How many of the received bytes have been returned."""
        self._to_come: int | None = None
        """How many bytes of the body are still missing; None for heads and chunks."""

    def expect(self, length: int | None) -> None:
        """Set the length of the body after its head was read; None for chunks."""
        self._to_come = length

    @property
    def excess(self) -> bytes:
        """The bytes that came after the end of the answer."""
        return self._held[self._at :]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return the next part of the answer; raise ReadError or ReadTimeout."""
        if self._at >= len(self._held):
            received = self._stream.read(max_bytes, self._deadline.left(timeout, httpcore.ReadTimeout))
            if not self._in_parts:
                return received
            # An empty line may begin in one part and end in the next one.
            begun = self._held[-2:]
            self._held, self._at = begun + received, len(begun)
        start, self._at = self._at, self._end_of_part()
        if self._to_come:
            self._to_come -= self._at - start
        return self._held[start : self._at]

    def _end_of_part(self) -> int:
        if self._to_come:
            return min(self._at + self._to_come, len(self._held))
        found = _EMPTY_LINE.search(self._held, max(self._at - 2, 0))
        while found and found.end() <= self._at:
            found = _EMPTY_LINE.search(self._held, found.start() + 1)
        return found.end() if found else len(self._held)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes and expect a new answer; raise WriteError or WriteTimeout."""
        self._to_come = None
        # In pieces, because within a piece the timeout restarts with every byte that the other side accepts.
        for start in range(0, len(buffer), _PIECE):
            left = self._deadline.left(timeout, httpcore.WriteTimeout)
            self._stream.write(buffer[start : start + _PIECE], left)

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Go on with TLS; raise ConnectError or ConnectTimeout."""
        left = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, left)
        secured: ssl.SSLObject = stream.get_extra_info("ssl_object")
        return Stream(stream, self._deadline, in_parts=secured.selected_alpn_protocol() != "h2")

    def get_extra_info(self, info: str) -> Any:
        """Return information about the connection, such as whether there is something to read."""
        has_more = info == "is_readable" and bool(self.excess)
        return has_more or self._stream.get_extra_info(info)
