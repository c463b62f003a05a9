"""How fast the reference implementation is, beside a bare Starlette route measured in the same run.

Run `python benchmarks/reference_speed.py`. Both servers are processes of their own on free loopback ports; the
client is raw asyncio, so that it costs little. Rounds alternate between them, and what counts is the ratio:
requests per second say more about the machine than about the reference. On a busy machine the ratio by
processor time is the steadier one. Nothing here is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from conformance.reference.identity import NewSubject
from conformance.reference.serving import serve
from conformance.target.embedded import prepared_service

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from starlette.requests import Request

    from conformance.reference import Service
    from conformance.reference.identity import Project

T = TypeVar("T")

CONNECTIONS = 8
STARTS = 5
WARM_UP_REQUESTS = 10_000
ENTRIES = 25  # of the allowlist, of which a page shows 20
READS = {
    "version": "/version",
    "current user": "/user",
    "job token scope": "/projects/{project}/job_token_scope",
    "full page of 20 allowlist entries": "/projects/{project}/job_token_scope/allowlist",
    "project by encoded path": "/projects/world-1-group%2Fproject",
    "project approval rules": "/projects/{project}/approval_rules",
    "merge request approvals": "/projects/{project}/merge_requests/1/approvals",
    "merge request approval state": "/projects/{project}/merge_requests/1/approval_state",
    "project approval settings": "/projects/{project}/merge_request_approval_setting",
    "integrations": "/projects/{project}/integrations",
    "refused: no token": "/version",
}
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


# -- the servers, each in a process of its own ----------------------------------------------------------------


def serve_bare() -> None:
    """Serve one Starlette route with a short JSON answer."""

    async def version(_: Request) -> JSONResponse:
        return JSONResponse({"version": "17.7.0", "revision": "0123456789a"})

    application = Starlette(routes=[Route("/api/v4/version", version)])
    config = uvicorn.Config(
        application, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False
    )
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(config).run([listening])


def serve_reference() -> None:
    """Serve the reference, its main project with an allowlist of more than one page."""
    service = prepared_service()
    project = service.identities.projects[service.world.one("project").id]
    for number in range(ENTRIES):
        service.job_token_scope.add_project(project, _new_project(service, f"entry-{number}"))
    token = service.world.actors["maintainer"].token
    serve(service, "127.0.0.1", 0, 0, False, lambda url: print(url, token, project.id, flush=True))


def _new_project(service: Service, path: str) -> Project:
    group = service.identities.groups[service.world.one("group").id]
    return service.identities.create_project(
        NewSubject(path=path, within=group, description="An entry of the allowlist", topics=("automation", "seeded"))
    )


@dataclass(frozen=True)
class Server:
    """A running server, its address, and for the reference a token and the id of the main project."""

    process_id: int
    url: str
    token: str
    project: str


@contextmanager
def started(kind: str) -> Iterator[Server]:
    """Start a server of a kind and stop it afterwards."""
    command = [sys.executable, __file__, "--serve", kind]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline().split() if process.stdout else []
        url, token, project, *_ = [*said, "", "", ""]
        yield Server(process.pid, url, token, project)
    finally:
        process.terminate()
        process.wait(10)


# -- the client -----------------------------------------------------------------------------------------------


class Connection(asyncio.Protocol):
    """Sends one request again and again, each when the answer to the one before has come."""

    def __init__(self, request: bytes, statuses: dict[bytes, int], left: list[int], done: asyncio.Event) -> None:
        self._request = request
        self._statuses = statuses
        self._left = left  # requests that all connections together may still send
        self._done = done
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Send the next request once the answer is complete."""
        self._buffer += data
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return
        length = _LENGTH.search(self._buffer, 0, end + 2)
        if len(self._buffer) < end + len(_HEAD_END) + (int(length[1]) if length else 0):
            return
        status = self._buffer[9:12]
        self._statuses[status] = self._statuses.get(status, 0) + 1
        self._buffer = b""
        self._send()

    def _send(self) -> None:
        if self._done.is_set() or self._left[0] <= 0:
            self._done.set()
            self._transport.close()
            return
        self._left[0] -= 1
        self._transport.write(self._request)  # type: ignore[attr-defined] # it is a stream


async def drive(
    url: str, path: str, token: str, seconds: float, most: int = sys.maxsize
) -> tuple[float, dict[bytes, int]]:
    """Send requests for some time, or so many; return how many were answered a second, and their statuses."""
    address = urlsplit(url)
    header = f"PRIVATE-TOKEN: {token}\r\n" if token else ""
    request = f"GET /api/v4{path} HTTP/1.1\r\nHost: {address.netloc}\r\n{header}\r\n".encode()
    statuses: dict[bytes, int] = {}
    left, done = [most], asyncio.Event()
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    for _ in range(CONNECTIONS):
        await loop.create_connection(
            lambda: Connection(request, statuses, left, done), address.hostname or "", address.port or 80
        )
    try:
        await asyncio.wait_for(done.wait(), seconds)
    except TimeoutError:
        done.set()
    return sum(statuses.values()) / (time.perf_counter() - begun), statuses


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run the client on the fastest event loop there is."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


@dataclass(frozen=True)
class Rate:
    """How fast a server answered: requests per second by the clock, and per second of its own processor time."""

    by_clock: float
    by_processor: float

    def over(self, other: Rate) -> Rate:
        """Return this rate as a share of another one."""
        return Rate(self.by_clock / other.by_clock, self.by_processor / other.by_processor)


def rate(server: Server, path: str, token: str, seconds: float) -> Rate:
    """Return how fast a server answers one request, sent again and again; all answers must have one status."""
    before = _processor_seconds(server.process_id)
    found, statuses = run(drive(server.url, path, token, seconds))
    spent = _processor_seconds(server.process_id) - before
    if len(statuses) != 1:
        raise SystemExit(f"{path} was answered with {statuses}")
    return Rate(found, sum(statuses.values()) / max(spent, 1e-6))


def _processor_seconds(process_id: int) -> float:
    """Return the processor time of a process whose work is done by its one first thread, to the nanosecond."""
    schedule = Path(f"/proc/{process_id}/schedstat")
    if schedule.exists():
        return int(schedule.read_text(encoding="ascii").split()[0]) / 1e9
    fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- the measurements -----------------------------------------------------------------------------------------


def measure_reads(rounds: int, seconds: float) -> None:
    """Print how fast the common reads are, as a share of the bare route."""
    ratios: dict[str, list[Rate]] = {name: [] for name in READS}
    bare_rates: list[Rate] = []
    with started("bare") as bare, started("reference") as reference:
        rate(bare, "/version", bare.token, seconds)
        for _ in range(rounds):
            for name, path in READS.items():
                bare_rates.append(rate(bare, "/version", bare.token, seconds))
                token = bare.token if name.startswith("refused") else reference.token
                found = rate(reference, path.format(project=reference.project), token, seconds)
                ratios[name].append(found.over(bare_rates[-1]))
    by_clock = statistics.median(one.by_clock for one in bare_rates)
    by_processor = statistics.median(one.by_processor for one in bare_rates)
    print(f"bare Starlette route: {by_clock:,.0f} requests/s, {by_processor:,.0f} per second of processor time")
    print("share of that, by the clock (lowest to highest) and by processor time:")
    for name, measured in ratios.items():
        clock = [one.by_clock for one in measured]
        processor = statistics.median(one.by_processor for one in measured)
        spread = f"({min(clock):.2f} to {max(clock):.2f})"
        print(f"  {name:<36} {statistics.median(clock):5.2f} {spread:<16} {processor:5.2f}")


def measure_start() -> None:
    """Print how long it takes from making a service, and from starting a process, to the first answer."""
    script = (
        "import time; begun = time.perf_counter()\n"
        "from conformance.reference import EmbeddedServer\n"
        "from conformance.target.embedded import prepared_service\n"
        "imported = time.perf_counter()\n"
        "import urllib.request, urllib.error\n"
        "making = time.perf_counter()\n"
        "with EmbeddedServer(prepared_service()) as server:\n"
        "    try: urllib.request.urlopen(server.base_url + '/api/v4/version')\n"
        "    except urllib.error.HTTPError: print(time.perf_counter() - making, imported - begun)\n"
    )
    wholes, services, imports = [], [], []
    for _ in range(STARTS):
        begun = time.perf_counter()
        command = [sys.executable, "-c", script]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        wholes.append(time.perf_counter() - begun)
        service, imported = map(float, output.split())
        services.append(service)
        imports.append(imported)
    print(f"start of a service to its first answer: {statistics.median(services) * 1000:.0f} ms")
    print(f"  importing it: {statistics.median(imports) * 1000:.0f} ms")
    print(f"  the whole process, from its start to its end: {statistics.median(wholes) * 1000:.0f} ms")


def measure_memory(requests: int) -> None:
    """Print the resident memory of the reference before and after many requests of every kind."""
    with started("reference") as server:
        paths = [path.format(project=server.project) for path in READS.values()]
        run(_spread(server, paths, WARM_UP_REQUESTS))
        before = _resident_kib(server.process_id)
        run(_spread(server, paths, requests))
        after = _resident_kib(server.process_id)
    growth = (after - before) * 1024 / requests
    print(f"memory after {WARM_UP_REQUESTS:,} requests: {before / 1024:.1f} MiB, after {requests:,} more:", end=" ")
    print(f"{after / 1024:.1f} MiB ({growth:+.2f} bytes a request)")


async def _spread(server: Server, paths: list[str], requests: int) -> None:
    for path in paths:
        await drive(server.url, path, server.token, 600, -(-requests // len(paths)))


def _resident_kib(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0])


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each read (default: 15)")
    parser.add_argument("--seconds", type=float, default=0.2, help="time of one measurement (default: 0.2)")
    parser.add_argument("--requests", type=int, default=100_000, help="of the memory run (default: 100000)")
    parser.add_argument("--serve", choices=("bare", "reference"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return {"bare": serve_bare, "reference": serve_reference}[arguments.serve]()
    measure_start()
    measure_reads(arguments.rounds, arguments.seconds)
    measure_memory(arguments.requests)
    return None


if __name__ == "__main__":
    main()
