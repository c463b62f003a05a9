"""Hostile servers: every wrong way of answering, as data, and a proxy that starts to answer like that."""

from __future__ import annotations

import gzip
import os
import socket
import struct
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """A request as the server reads it."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def where(self) -> str:
        """Method and path, without the query."""
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class Line:
    """A connection of a server; it ends with the server, or when the client closes it."""

    socket: socket.socket
    closing: threading.Event

    def say(self, *parts: bytes) -> None:
        for part in parts:
            self.socket.sendall(part)

    def goes_on(self, pause: float = 0) -> bool:
        """Wait; return False once the server is closed."""
        return not self.closing.wait(pause)

    def reset(self) -> None:
        """Close the connection with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


#: Answers one call; afterwards the connection is closed unless it returns True.
Answer = Callable[[Line, Call], bool | None]


# -- ways to answer ----------------------------------------------------------------------------------------------------


def says(*parts: bytes, stays: bool = False) -> Answer:
    """Send bytes, all at once, and close the connection or keep it open."""

    def answer(line: Line, _: Call) -> bool:
        line.say(b"".join(parts))
        return stays

    return answer


def falls_silent_after(*parts: bytes) -> Answer:
    """Send bytes and then nothing more, without closing the connection."""

    def answer(line: Line, _: Call) -> None:
        line.say(*parts)
        line.socket.settimeout(0.1)
        while line.goes_on():
            with suppress(TimeoutError):
                if not line.socket.recv(1):
                    return

    return answer


def drips(head: bytes, drop: bytes) -> Answer:
    """Send a head, then endless small pieces: each arrives in time for a client that only limits a single wait."""

    def answer(line: Line, _: Call) -> None:
        line.say(head)
        while line.goes_on(0.03):
            line.say(drop)

    return answer


def floods(head: bytes, piece: bytes) -> Answer:
    """Send a head, then the same piece endlessly, as fast as the client reads."""

    def answer(line: Line, _: Call) -> None:
        line.say(head)
        while line.goes_on():
            line.say(piece)

    return answer


def resets(line: Line, _: Call) -> None:
    """Close the connection with a TCP reset."""
    line.reset()


def bomb(megabytes: int) -> bytes:
    """Return gzip data of a list full of spaces. Each megabyte compresses to the same bytes: only one is compressed."""
    packer, spaces = zlib.compressobj(9, wbits=-zlib.MAX_WBITS), b" " * MEGABYTE
    begun = packer.compress(b"[") + packer.flush(zlib.Z_FULL_FLUSH)
    each = packer.compress(spaces) + packer.flush(zlib.Z_FULL_FLUSH)
    check = reduce(lambda found, _: zlib.crc32(spaces, found), range(megabytes), zlib.crc32(b"["))
    end = struct.pack("<LL", check, 1 + megabytes * MEGABYTE)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + begun + each * megabytes + packer.flush() + end


def redirects(to: str, status: bytes = b"302 Found") -> Answer:
    return says(whole(b"", status=status, headers=b"Location: %s\r\n" % to.encode()), stays=True)


_JSON = b"Content-Type: application/json\r\n"


def whole(body: bytes, *, status: bytes = b"200 OK", headers: bytes = _JSON) -> bytes:
    """Return a response as a correct server writes it."""
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


def _of_length(length: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%sContent-Length: %s\r\n\r\n%s" % (_JSON, length, body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# -- the table ---------------------------------------------------------------------------------------------------------

#: What a correct service answers to the only read that these servers receive.
GOOD = b'{"inbound_enabled":true,"outbound_enabled":true}'

_CHUNKED = b"HTTP/1.1 200 OK\r\n" + _JSON + b"Transfer-Encoding: chunked\r\n\r\n"
_PACKED = _JSON + b"Content-Encoding: gzip\r\n"
_LAST = b"Connection: close\r\n"
_PACKED_THRICE = _JSON + b"Content-Encoding: gzip, gzip, gzip\r\n"
_BOMB = bomb(100)
_STUFF = b" " * (64 * 1024)

#: The response never ends: it proves nothing, and takes all the time that a call may take.
SLOW: Mapping[str, Answer] = {
    "silence": falls_silent_after(),
    "silence after half a status line": falls_silent_after(b"HTTP/1.1 20"),
    "silence in the middle of the body": falls_silent_after(_of_length(b"48", GOOD[:20])),
    "headers that drip": drips(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n"),
    "a body that drips": drips(_of_length(b"100000", b""), b" "),
    "chunks that drip": drips(_CHUNKED, _chunk(b" ")),
    "interim answers without end": floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "tiny chunks without end": floods(_CHUNKED, _chunk(b" ") * 1000),
}

#: The response is incomplete or too large: it proves nothing.
BROKEN: Mapping[str, Answer] = {
    "headers without end": floods(b"HTTP/1.1 200 OK\r\n", b"X-More: 1\r\n" * 1000),
    "chunks without end": floods(_CHUNKED, _chunk(_STUFF)),
    "a hundred megabytes": floods(_of_length(b"%d" % (100 * MEGABYTE), b""), _STUFF),
    "a body without end": floods(b"HTTP/1.0 200 OK\r\n\r\n", _STUFF),
    "a decompression bomb": says(whole(_BOMB, headers=_PACKED + _LAST)),
    "a bomb in a bomb in a bomb": says(whole(gzip.compress(gzip.compress(_BOMB)), headers=_PACKED_THRICE + _LAST)),
    "hanging up at once": says(),
    "a reset": resets,
    "hanging up in the middle of the headers": says(b"HTTP/1.1 200 OK\r\nContent-"),
    "hanging up in the middle of the body": says(_of_length(b"48", GOOD[:20])),
    "hanging up between chunks": says(_CHUNKED, _chunk(GOOD)),
    "chunks without a size": says(_CHUNKED, b"zz\r\n", GOOD),
    "two lengths": says(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 48\r\n\r\n", GOOD),
    "a length below nothing": says(_of_length(b"-1", GOOD)),
    "a length of thousands of digits": says(_of_length(b"9" * 5000, GOOD)),
    "a header of a megabyte": says(whole(GOOD, headers=b"X-Long: %s\r\n" % (b"x" * MEGABYTE))),
    "another protocol": says(b"SSH-2.0-OpenSSH_9.6\r\n", b"\x00\x00\x01\x0c" * 50),
    "noise": says(os.urandom(5000)),
    "a status that is no number": says(b"HTTP/1.1 OK 200\r\n\r\n"),
    "another protocol after 101": says(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: noise\r\n\r\n", b"\x00" * 500),
    "gzip that is none": says(whole(GOOD, headers=_PACKED), stays=True),
    "gzip cut short": says(whole(gzip.compress(GOOD)[:-12], headers=_PACKED), stays=True),
    "a body and nothing else": says(GOOD),
}

#: The response is complete, but not what the specification describes.
WRONG: Mapping[str, Answer] = {
    "bytes that are no UTF-8": says(whole(GOOD[:-1] + b',"\xff\xfe":1}'), stays=True),
    "a length that is too short": says(_of_length(b"20", GOOD), stays=True),
    "nothing": says(whole(b""), stays=True),
    "HTML": says(whole(b"<!doctype html><title>Sign in</title>", headers=b"Content-Type: text/html\r\n"), stays=True),
    "JSON nested a hundred thousand deep": says(whole(b"[" * 100_000 + b"]" * 100_000), stays=True),
    "JSON nested five hundred deep": says(whole(b"[" * 500 + b"]" * 500), stays=True),
    "half a million entries": says(whole(b"[" + b"{}," * 500_000 + b"{}]"), stays=True),
    "no number": says(whole(b'{"inbound_enabled":NaN,"outbound_enabled":true}'), stays=True),
    "a number of thousands of digits": says(whole(b'{"inbound_enabled":%s}' % (b"9" * 5000)), stays=True),
    "a number beyond all numbers": says(whole(b'{"inbound_enabled":1e999}'), stays=True),
    "a redirect to itself": redirects("/api/v4/projects/1/job_token_scope"),
    "a redirect to nowhere": redirects("http://[::1"),
    "204 with a body": says(whole(GOOD, status=b"204 No Content"), stays=True),
    "204 with a body that no header announces": says(b"HTTP/1.1 204 No Content\r\n\r\n", GOOD, stays=True),
}

#: The response is unusual but says what it should: this alone is no violation.
ODD: Mapping[str, Answer] = {
    "HTTP/1.0": says(b"HTTP/1.0 200 OK\r\n" + _JSON + b"\r\n" + GOOD),
    "interim answers before the answer": says(
        b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", whole(GOOD), stays=True
    ),
    "another answer behind the answer": says(whole(GOOD), whole(b'{"inbound_enabled":false}'), stays=True),
    "noise after the answer": says(whole(GOOD), b"\x00\xff" * 100, stays=True),
    "a name twice": says(whole(GOOD.replace(b"{", b'{"inbound_enabled":false,')), stays=True),
    "half a surrogate pair": says(whole(GOOD[:-1] + rb',"name\udc00":"\ud800"}'), stays=True),
    "a thousand headers": says(whole(GOOD, headers=_JSON + b"X-More: 1\r\n" * 1000), stays=True),
    "headers beyond ASCII": says(whole(GOOD, headers=_JSON + b"X-Name: \xfcml\xe4ut \xff\r\n"), stays=True),
    "a cookie": says(whole(GOOD, headers=_JSON + b"Set-Cookie: session=of-another; Path=/\r\n"), stays=True),
    "packed JSON": says(whole(gzip.compress(GOOD), headers=_PACKED), stays=True),
    "a chunk for each byte": says(_CHUNKED, *(_chunk(GOOD[at : at + 1]) for at in range(48)), b"0\r\n\r\n", stays=True),
}


# -- servers -----------------------------------------------------------------------------------------------------------


class Server:
    """A server that answers with a given function, with one thread for each connection."""

    def __init__(
        self, answer: Answer, tls: ssl.SSLContext | None = None, other: Callable[[Line], None] | None = None
    ) -> None:
        self.answer = answer
        self._tls = tls
        self._other = other
        self.calls: Counter[str] = Counter()
        """How many calls came, by method and path."""
        self.cookies = 0
        """How many of them brought a cookie along."""
        self._closing = threading.Event()
        self._lines: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.base_url = f"http{'s' if tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse new connections and cut open ones, as when a process is killed."""
        self._closing.set()
        for opened in (self._listener, *self._lines):
            with suppress(OSError):  # this wakes up threads that wait in accept or recv, which close does not
                opened.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self._lines.add(accepted)
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), accepted:
            talking = self._tls.wrap_socket(accepted, server_side=True) if self._tls else accepted
            with talking, talking.makefile("rb") as stream:
                line = Line(talking, self._closing)
                if self._other is not None:
                    self._other(line)
                    return
                while (call := _read(stream)) is not None and not self._closing.is_set():
                    self.calls[call.where] += 1
                    self.cookies += "cookie" in call.headers
                    if not self.answer(line, call):
                        break
        self._lines.discard(accepted)


@contextmanager
def serving(
    answer: Answer, tls: ssl.SSLContext | None = None, other: Callable[[Line], None] | None = None
) -> Iterator[Server]:
    """Serve while the context lasts, with TLS on request, and with `other` protocols than HTTP/1.1."""
    server = Server(answer, tls, other)
    try:
        yield server
    finally:
        server.close()


def only_at(path: str, answer: Answer, elsewhere: Answer) -> Answer:
    """Answer calls of one path in one way, and all other calls in another."""
    return lambda line, call: (answer if call.path.partition("?")[0] == path else elsewhere)(line, call)


def _read(stream: BinaryIO) -> Call | None:
    """Read one request; None at the end of the connection."""
    first = stream.readline().decode("latin-1").split(" ")
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while (entry := stream.readline().strip()) != b"":
        name, _, value = entry.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    return Call(first[0], first[1], headers, stream.read(int(headers.get("content-length", 0))))


class Relay:
    """Forwards calls to a service, and returns its responses."""

    def __init__(self, base_url: str) -> None:
        self._address = urlsplit(base_url).netloc
        self._own = threading.local()

    def __call__(self, line: Line, call: Call) -> bool:
        """Answer as the service does."""
        try:
            line.say(self._asked(call))
        except HTTPException:
            return False
        return True

    def _asked(self, call: Call) -> bytes:
        # One connection to the service for each of the client's, because each of those has its own thread.
        if not hasattr(self._own, "upstream"):
            self._own.upstream = HTTPConnection(self._address, timeout=30)
        upstream: HTTPConnection = self._own.upstream
        upstream.request(call.method, call.path, call.body or None, dict(call.headers))
        found = upstream.getresponse()
        body = found.read()
        kept = [(name, value) for name, value in found.getheaders() if name.lower() not in _OF_THE_CONNECTION]
        if found.status not in (204, 304):
            kept.append(("Content-Length", str(len(body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in kept)
        return f"HTTP/1.1 {found.status} {found.reason}\r\n{head}\r\n".encode("latin-1") + body


_OF_THE_CONNECTION = ("connection", "content-length", "keep-alive", "transfer-encoding")
