from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.reference.app import LogEntry
from conformance.reference.serving import log_line, serve, who_is_who
from conformance.target.embedded import prepared_service

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = """
import sys
from conformance.reference.serving import serve
from conformance.target.embedded import prepared_service
serve(prepared_service({version!r}), "127.0.0.1", 0, {latency}, True, lambda url: print(url, flush=True))
print("stopped")
"""


@contextmanager
def serving(version: str = "17.7", latency: float = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    code = SCRIPT.format(version=version, latency=latency)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_serving_logs_every_request_and_ends_cleanly_on_a_signal(kind: signal.Signals) -> None:
    token = prepared_service().world.actors["maintainer"].token
    with serving() as (process, url):
        assert httpx.get(f"{url}/api/v4/version", headers={"PRIVATE-TOKEN": token}).status_code == 200
        assert httpx.get(f"{url}/api/v4/user?private_token=wrong&x=1").status_code == 401
        process.send_signal(kind)
        output, log = process.communicate(timeout=10)
    assert (process.returncode, output) == (0, "stopped\n")
    first, second = [line.split() for line in log.splitlines()]
    assert (first[1:4], first[-1]) == (["GET", "/api/v4/version", "200"], "world-1-maintainer")
    assert (second[1:4], second[-1]) == (["GET", "/api/v4/user?private_token=***&x=1", "401"], "-")


def test_a_request_in_progress_is_finished_before_the_end() -> None:
    with serving(latency=500) as (process, url), httpx.Client() as client:
        client.get(f"{url}/api/v4/version")
        with client.stream("GET", f"{url}/api/v4/version") as answer:
            process.send_signal(signal.SIGTERM)
            assert answer.status_code == 401
        assert process.wait(timeout=10) == 0


def test_a_server_of_an_older_version_says_its_version() -> None:
    token = prepared_service("16.1").world.actors["guest"].token
    with serving("16.1") as (_, url):
        assert httpx.get(f"{url}/api/v4/version", headers={"PRIVATE-TOKEN": token}).json()["version"] == "16.1.0"


@pytest.mark.parametrize("listens", [True, False])
def test_a_port_in_use_is_named_in_the_error(*, listens: bool) -> None:
    ready: list[str] = []
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}: .*in use"):
            serve(prepared_service(), "127.0.0.1", port, 0, False, ready.append)
    for host, bad in (("127.0.0.1", 70_000), ("no-such-host.invalid", 0)):
        with pytest.raises(OSError, match="cannot listen"):
            serve(prepared_service(), host, bad, 0, False, ready.append)
    assert ready == []


def test_a_line_of_the_log_is_readable_whatever_was_requested() -> None:
    moment = time.mktime((2024, 5, 1, 10, 20, 30, 0, 0, -1))
    entry = LogEntry("GET", "/api/v4/\x1b[31m\xff?access_token=abc&page=2", 404, 0.0123, "")
    assert log_line(entry, moment) == "10:20:30  GET    /api/v4/\\x1b[31m\\xff?access_token=***&page=2  404  12.3 ms  -"
    assert len(log_line(LogEntry("GET", "/x" * 10_000, 200, 0, "guest"), moment)) < 300


def test_the_printed_list_names_actors_with_tokens_and_fixtures_with_ids() -> None:
    service = prepared_service("18.0")
    text = who_is_who(service, "http://127.0.0.1:1234")
    rows = {tuple(line.split()[:1]): line for line in text.splitlines() if line}
    assert "Version 18.0.0 at http://127.0.0.1:1234/api/v4" in text
    for name, actor in service.world.actors.items():
        assert rows[name,].split()[1:] == [actor.role, actor.username, actor.token]
    project = service.world.one("project")
    assert rows["project",].split()[1:3] == [str(project.id), project.path]
    assert str(service.world.one("merge_request").extra["sha"]) in rows["merge_request",]
    assert text.count("allowlist_projects") == len(service.world.many("allowlist_projects"))
