"""The embedded server: a service on a loopback port, in a thread of this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

import uvicorn

from conformance.reference.app import Application

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence
    from types import TracebackType

    from conformance.reference.service import Service

_HOST = "127.0.0.1"
_BACKLOG = 2048
_SECONDS_TO_START = 10.0
_SECONDS_TO_STOP = 5.0
#: How long calls that are under way may take when the server ends.
_SECONDS_TO_ANSWER = 1.0
_TICK_SECONDS = 0.1


def ask(  # noqa: PLR0913, PLR0917 - the parts of a request
    service: Service | Application, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, dict[str, str], bytes]:
    """
    Answer one request without a connection: status, headers with names in lower case, and body.

    An application is given in the place of a service where calls are counted from one to the next. Raise RuntimeError
    when the service waits for something that only a running server brings.
    """
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode("ascii"),
        "query_string": query.encode("ascii"),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
    }
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    application = service if isinstance(service, Application) else Application(service, 0)
    answering = application(scope, receive, send)
    if application.service.interruption is not None:
        asyncio.run(answering)
        return _as_sent(sent)
    with suppress(StopIteration):
        # Nothing in it waits for anything but these two functions, so it runs to its end at once.
        answering.send(None)
        answering.close()
        raise RuntimeError(f"{method} {path} waits for what does not come without a server")
    return _as_sent(sent)


def _as_sent(messages: Sequence[Mapping[str, Any]]) -> tuple[int, dict[str, str], bytes]:
    start, *rest = messages
    found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
    return start["status"], found, b"".join(message["body"] for message in rest)


class _Server(uvicorn.Server):
    """A uvicorn server that tells another thread when it accepts requests, and ends at once when it is told to."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.ready.set()

    def end(self) -> None:
        """End soon; it may be another thread that says so."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._ended.set)

    # uvicorn's own loop and shutdown take two tenths of a second to notice anything, which hundreds of servers add up.

    async def main_loop(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), _TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=_SECONDS_TO_ANSWER)
        await asyncio.sleep(0)


class EmbeddedServer:
    """Serves one service on 127.0.0.1 until it is stopped; use it with `with`, or `start` and `stop` it.

    `port` 0 takes a free one; `latency_ms` delays each response. Raise OSError when the port is taken.
    """

    def __init__(self, service: Service, port: int = 0, latency_ms: float = 0) -> None:
        self.service = service
        self._port = port
        self.latency_ms = latency_ms
        self._app: Application | None = None
        self._server: _Server | None = None
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port in use; the wanted one before the start."""
        return self._port

    @property
    def base_url(self) -> str:
        """The address without a path; all paths of the service begin with /api/v4 below it."""
        return f"http://{_HOST}:{self._port}"

    def start(self) -> Self:
        """Start serving, and return when the first request can be sent. Raise RuntimeError when it cannot."""
        if self._thread is not None:
            raise RuntimeError("the server is already running")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((_HOST, self._port))
        except OSError:
            self._socket.close()
            raise
        self._port = self._socket.getsockname()[1]
        self._app = Application(self.service, self.latency_ms / 1000)
        config = uvicorn.Config(
            self._app,
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_keep_alive=300,
        )
        self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="reference-server", daemon=True
        )
        self._thread.start()
        if not self._server.ready.wait(_SECONDS_TO_START):
            self.stop()
            raise RuntimeError("the embedded server did not start in time")
        return self

    def serve(self, service: Service) -> None:
        """Serve another service from the next request on, at the same address."""
        self.service = service
        if self._app is not None:
            self._app.service = service

    def stop(self) -> None:
        """Stop serving and free the port. Calls on a stopped server do nothing."""
        if self._server is not None:
            self._server.end()
        if self._thread is not None:
            self._thread.join(_SECONDS_TO_STOP)
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
