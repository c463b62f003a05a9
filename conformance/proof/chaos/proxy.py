"""A proxy that disturbs calls to a service as networks and gateways do: seeded, so that a run can be repeated."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_HOST = "127.0.0.1"
_WITHOUT_BODY = (b"204", b"304")
_SECONDS_OF_AN_ANSWER = 60
#: How long to wait for the end of a connection while a response may still arrive.
_SECONDS_OF_AN_ENDING = 2


@dataclass(frozen=True, slots=True)
class Message:
    """A request or a response, byte for byte."""

    head: bytes
    """Up to and with the empty line."""
    body: bytes

    @property
    def whole(self) -> bytes:
        """All bytes of the message."""
        return self.head + self.body


@dataclass(frozen=True, slots=True)
class Passage:
    """One call on its way through the proxy."""

    request: Message
    chance: random.Random
    """The random numbers of this call alone."""
    client: socket.socket
    service: Service

    def answer(self) -> Message:
        """Let the service handle the call, and return its response; raise OSError if there is none."""
        return self.service.ask(self.request)

    def say(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.client.sendall(data)

    def reset(self) -> None:
        """Close the client's connection with a TCP reset."""
        _reset(self.client)


class Network(Protocol):
    """The network between a client and a service."""

    def passes(self, call: Passage) -> str | None:
        """Forward a call to the service and return its response, or not; return the kind of disturbance, if any."""


class Service:
    """A connection to the service behind the proxy."""

    def __init__(self, port: int) -> None:
        """Connect to the service at a port of this machine; nothing is sent yet."""
        self._port = port
        self._opened: tuple[socket.socket, BinaryIO] | None = None

    def ask(self, request: Message) -> Message:
        """Send a request and return the response; raise OSError if none comes."""
        if self._opened is None:
            connection = socket.create_connection((_HOST, self._port), timeout=_SECONDS_OF_AN_ANSWER)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._opened = connection, connection.makefile("rb")
        connection, stream = self._opened
        connection.sendall(request.whole)
        answer = read_message(stream, is_answer_to_head=request.head.startswith(b"HEAD "))
        if answer is None:
            raise ConnectionError("the service hung up")
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._opened is not None:
            for part in reversed(self._opened):
                part.close()
            self._opened = None


@dataclass
class Proxy:
    """Forwards calls to the service at a port of this machine, through a network; use it with `with`."""

    port_behind: int
    network: Network
    seed: int = 1
    done: Counter[str] = field(default_factory=Counter)
    """How many calls were disturbed, by the kind of disturbance, and how many passed as they were."""
    _listener: socket.socket | None = None
    _port: int = 0
    _open: dict[socket.socket, threading.Thread] = field(default_factory=dict)
    """Connections, each with the thread that reads from it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Seed the random numbers."""
        self._chance = random.Random(self.seed)  # noqa: S311 - no secret

    @property
    def base_url(self) -> str:
        """The address for clients."""
        return f"http://{_HOST}:{self._port}"

    def __enter__(self) -> Self:
        """Accept connections from now on, at a free port."""
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Accept no more connections, and break those that are open."""
        self.down()

    def up(self) -> None:
        """Accept connections, at the same port as before."""
        self._listener = socket.create_server((_HOST, self._port), backlog=256)
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def down(self) -> None:
        """Refuse new connections with a reset, and break those that are open."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):  # this wakes up a thread that waits in accept, which close does not
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            opened, self._open = self._open, {}
        for each in opened:
            _reset(each)
        for reader in opened.values():  # a connection ends when nobody reads from it any more
            if reader is not threading.current_thread():
                reader.join(_SECONDS_OF_AN_ENDING)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader = threading.Thread(target=self._serve, args=(accepted,), daemon=True)
            with self._lock:
                self._open[accepted] = reader
                reader.start()

    def _serve(self, client: socket.socket) -> None:
        service = Service(self.port_behind)
        with suppress(OSError), ExitStack() as stack:
            stack.callback(self._forget, client)
            stack.callback(service.close)
            stream = stack.enter_context(client.makefile("rb"))
            while (request := read_message(stream)) is not None:
                with self._lock:
                    if client not in self._open:  # the connection broke while the response was on its way
                        return
                    chance = random.Random(self._chance.random())  # noqa: S311 - no secret
                self._pass(Passage(request, chance, client, service))

    def _pass(self, call: Passage) -> None:
        what = self.network.passes(call)
        with self._lock:
            self.done[what or "passed"] += 1

    def _forget(self, client: socket.socket) -> None:
        with self._lock:
            self._open.pop(client, None)
        client.close()


def read_message(stream: BinaryIO, *, is_answer_to_head: bool = False) -> Message | None:
    """Return the next request or response on a connection; None at its end. Raise OSError if the connection breaks."""
    lines = [stream.readline()]
    while lines[-1] not in (b"\r\n", b"\n", b""):
        lines.append(stream.readline())
    if lines[-1] == b"":
        return None
    head = b"".join(lines)
    fields = dict(_fields(lines[1:-1]))
    if is_answer_to_head or lines[0].split(b" ")[1:2] in ([status] for status in _WITHOUT_BODY):
        return Message(head, b"")
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        return Message(head, b"".join(_chunks(stream)))
    return Message(head, stream.read(int(fields.get(b"content-length", 0))))


def _fields(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    parts = (line.partition(b":") for line in lines)
    return [(name.strip().lower(), value.strip()) for name, _, value in parts]


def _chunks(stream: BinaryIO) -> list[bytes]:
    """Return the chunks of a body as they were sent, the last one and its trailer included."""
    found: list[bytes] = []
    size = -1
    while size != 0:
        found.append(stream.readline())
        size = int(found[-1].partition(b";")[0] or b"0", 16)
        if size:
            found.append(stream.read(size) + stream.readline())
    while found[-1] not in (b"\r\n", b"\n", b""):
        found.append(stream.readline())
    return found


def _reset(connection: socket.socket) -> None:
    """Close a connection with a TCP reset, and wake up a thread that reads from it."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
    connection.close()


class Outages(threading.Thread):
    """Takes a proxy down for some seconds, again and again, while a context lasts."""

    def __init__(self, proxy: Proxy, every: float, lasting: float, at_return: Callable[[], None]) -> None:
        """Start the first outage after half an interval; `at_return` is called before each outage ends."""
        super().__init__(daemon=True)
        self._proxy, self._every, self._lasting = proxy, every, lasting
        self._at_return = at_return
        self._over = threading.Event()

    def run(self) -> None:
        """Make outages until the context ends."""
        pause = self._every / 2
        while not self._over.wait(pause):
            self._proxy.down()
            self._over.wait(self._lasting)
            self._at_return()
            self._proxy.up()
            self._proxy.done["outage"] += 1
            pause = self._every - self._lasting

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make no further outage, and return when the proxy is up."""
        self._over.set()
        self.join()
