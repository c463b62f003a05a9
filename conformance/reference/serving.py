"""Serving in the foreground: for people who build a client against the service, with a log they can read."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import time
from typing import TYPE_CHECKING

import uvicorn

from conformance.reference.app import create_app
from conformance.reference.world import NO_ID

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from conformance.reference.service import LogEntry, Service
    from conformance.reference.world import Fixture

_BACKLOG = 2048
_SECONDS_TO_FINISH = 2
_LONGEST_PATH = 200
_LARGEST_PORT = 65535
_TOKEN = re.compile(r"((?:^|[?&])(?:private|access)_token=)[^&]*")


class _ForegroundServer(uvicorn.Server):
    """A uvicorn server that says when it accepts requests, and returns instead of raising a signal again."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn calls it
        """Finish on SIGINT and SIGTERM, at once on the second; being told to end is no error to pass on."""
        self.force_exit = self.should_exit
        self.should_exit = True


def serve(  # noqa: PLR0913, PLR0917 - what the command line asks for, one by one
    service: Service,
    host: str,
    port: int,
    latency_ms: float,
    log: bool,  # noqa: FBT001 - see above
    on_ready: Callable[[str], None],
) -> None:
    """Serve until SIGINT or SIGTERM, then finish the requests under way and return.

    `on_ready` is called with the base URL once requests are accepted; port 0 takes a free port. `latency_ms`
    delays every response. With `log`, one line per request goes to standard error. Raise OSError,
    with a message for people, when the address cannot be used.
    """
    listening = _listen(host, port)
    with contextlib.closing(listening):
        base_url = _url(host, listening.getsockname()[1])
        if log:
            service.request_log = _print_line
        config = uvicorn.Config(
            create_app(service, latency_ms),
            backlog=_BACKLOG,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_keep_alive=300,
            timeout_graceful_shutdown=_SECONDS_TO_FINISH,
        )
        server = _ForegroundServer(config, lambda: on_ready(base_url))
        try:
            server.run([listening])
        finally:
            service.request_log = None


def log_line(entry: LogEntry, moment: float) -> str:
    """Return the line that tells of one request: time, method, path, status, milliseconds and actor.

    Tokens in the query are left out, and what cannot be printed is escaped.
    """
    path = _TOKEN.sub(r"\1***", entry.path).encode("ascii", "backslashreplace").decode("ascii")
    path = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in path)
    if len(path) > _LONGEST_PATH:
        path = f"{path[: _LONGEST_PATH - 3]}..."
    at = time.strftime("%H:%M:%S", time.localtime(moment))
    actor = entry.caller or "-"
    return f"{at}  {entry.method:<6} {path}  {entry.status}  {entry.seconds * 1000:.1f} ms  {actor}"


def who_is_who(service: Service, base_url: str) -> str:
    """Return a table of everybody and everything in the seeded world of a service.

    Actors come with their role in the main project, username and token; fixtures with id, path and what
    else tells them apart.
    """
    world = service.world
    actors = [(name, actor.role, actor.username, actor.token) for name, actor in world.actors.items()]
    fixtures = [
        _row(name, fixture, number if isinstance(found, tuple) else None)
        for name, found in sorted(world.fixtures.items())
        for number, fixture in enumerate(found if isinstance(found, tuple) else (found,), start=1)
    ]
    first = world.actors["maintainer"].token
    return "\n".join(
        [
            f"Version {service.version.full} at {base_url}/api/v4",
            "",
            *_table(("ACTOR", "ROLE", "USERNAME", "TOKEN"), actors),
            "",
            *_table(("FIXTURE", "ID", "PATH", "MORE"), fixtures),
            "",
            "Try:",
            f"  curl -H 'PRIVATE-TOKEN: {first}' {base_url}/api/v4/projects/{world.one('project').id}",
        ]
    )


def _row(name: str, fixture: Fixture, number: int | None) -> tuple[str, str, str, str]:
    shown = name if number is None else f"{name} {number}"
    wanted = ("iid", "name", "slug", "sha", "token")
    more = ", ".join(f"{key} {fixture.extra[key]}" for key in wanted if key in fixture.extra)
    return shown, "" if fixture.id == NO_ID else str(fixture.id), fixture.path or "", more


def _table(heading: tuple[str, ...], rows: list[tuple[str, str, str, str]]) -> list[str]:
    lines = [heading, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heading))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address. Raise OSError with a message for people."""
    if not 0 <= port <= _LARGEST_PORT:  # a larger one would be taken modulo 65536
        raise OSError(f"cannot listen on {host}:{port}: a port is a number from 0 to {_LARGEST_PORT}")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            # Linux lets two sockets bind one port until one listens: listening here finds the other.
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise OSError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return bound


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _print_line(entry: LogEntry) -> None:
    sys.stderr.write(f"{log_line(entry, time.time())}\n")
    sys.stderr.flush()
