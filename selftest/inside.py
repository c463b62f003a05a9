"""Run the suite against a reference in the same process: calls need no connection, which saves half of the time."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

import httpcore

from conformance.http import client
from conformance.http.transport import Transport
from conformance.reference.app import Application
from conformance.reference.server import EmbeddedServer, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

_SERVED: dict[int, tuple[EmbeddedServer, Application]] = {}
#: As in a server, one request is answered after the other.
_ONE_AT_A_TIME = threading.Lock()


class _Inside(Transport):
    """Passes requests to services of this process; whatever depends on a real connection still uses one."""

    def _answer(self, request: httpcore.Request, largest: int) -> tuple[httpcore.Response, bytes]:
        server, application = _SERVED.get(request.url.port or 0, (None, None))
        path, _, query = request.url.target.partition(b"?")
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        is_plain = path.isascii() and query.isascii() and all(map(str.isprintable, headers.values()))
        if (
            server is None
            or application is None
            or not is_plain
            or server.latency_ms
            or server.service.interruption is not None
            or request.method == b"HEAD"
            or len(headers) < len(request.headers)
        ):
            return super()._answer(request, largest)
        body = b"".join(request.stream)  # type: ignore[arg-type]  # a stream of this client is never asynchronous
        with _ONE_AT_A_TIME:
            application.service = server.service
            status, told, content = ask(
                application, request.method.decode(), path.decode(), query.decode(), headers, body
            )
        return httpcore.Response(status, headers=list(told.items())), content


@contextmanager
def inside() -> Iterator[None]:
    """While the context lasts, let clients of this process call services of this process without a connection."""
    start, stop = EmbeddedServer.start, EmbeddedServer.stop

    def started(server: EmbeddedServer) -> EmbeddedServer:
        start(server)
        _SERVED[server.port] = server, Application(server.service, 0)
        return server

    def stopped(server: EmbeddedServer) -> None:
        _SERVED.pop(server.port, None)
        stop(server)

    with (
        patch.object(EmbeddedServer, "start", started),
        patch.object(EmbeddedServer, "stop", stopped),
        patch.object(client, "Transport", _Inside),
    ):
        yield
