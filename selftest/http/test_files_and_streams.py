"""Files behind redirects, responses in chunks, and a gateway that fails: what is followed, judged, or left open."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.suite.context import Run, Unmet, testing
from conformance.suite.evidence import evidence_of
from conformance.suite.expectations import Caller
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PACKED = gzip.compress(b'{"title":"bug"}\n')
DOWNLOAD = "/groups/2/export_relations/download"
COMPLETIONS = "/code_suggestions/completions"

Reply = tuple[int, dict[str, str], bytes]


@contextmanager
def server(reply: Callable[[http.server.BaseHTTPRequestHandler], Reply]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Serve replies on loopback; yield the address and the headers of each request."""
    seen: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", "0")))
            seen.append({name.lower(): value for name, value in self.headers.items()})
            status, headers, body = reply(self)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name that the library calls

        def log_message(self, *_: object) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=[0.01], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}", seen
    finally:
        httpd.shutdown()
        httpd.server_close()


@contextmanager
def run_against(base_url: str) -> Iterator[Run]:
    data = {"base_url": base_url, "version": "17.7", "actors": {"owner": {"token": "secret-token"}}}
    data = {**data, "fixtures": {}, "retries": {"call_seconds": 0}}
    run = Run(Contract.load(), profile_from(data, "test"), lambda _: None)
    with closing(run), testing(run, "test", frozenset()):
        yield run


def storage(_: object) -> Reply:
    return 200, {"Content-Type": "application/gzip"}, PACKED


def test_a_file_on_another_host_is_fetched_without_the_token() -> None:
    with server(storage) as (elsewhere, seen):
        away = {"Location": f"{elsewhere}/bucket/labels?signature=abc"}
        with server(lambda _: (302, away, b"")) as (target, _), run_against(target) as run:
            file = Caller(run, run.profile.actors["owner"]).download(DOWNLOAD, relation="labels")
            shown = evidence_of(file.exchange, run.client)
    assert file.exchange.body == PACKED
    assert not {"private-token", "authorization"} & seen[0].keys()
    assert "signature" not in shown.request + shown.curl


def test_a_file_at_the_same_address_is_fetched_with_the_token() -> None:
    def reply(handler: http.server.BaseHTTPRequestHandler) -> Reply:
        return storage(handler) if handler.path == "/files/labels" else (303, {"Location": "/files/labels"}, b"")

    with server(reply) as (target, seen), run_against(target) as run:
        file = Caller(run, run.profile.actors["owner"]).download(DOWNLOAD, relation="labels")
    assert file.exchange.status == 200
    assert seen[1]["private-token"] == "secret-token"


def test_without_a_token_a_redirect_is_not_followed() -> None:
    with server(lambda _: (302, {"Location": "/sign_in"}, b"")) as (target, seen), run_against(target) as run:
        Caller(run, None).download(DOWNLOAD, relation="labels").must_be_refused(beside=None)
    assert len(seen) == 1


def test_redirects_in_a_circle_end() -> None:
    with server(lambda _: (302, {"Location": "/again"}, b"")) as (target, seen), run_against(target) as run:
        assert Caller(run, run.profile.actors["owner"]).download(DOWNLOAD).status == 302
    assert len(seen) < 10


def test_the_bytes_of_a_file_are_those_that_were_sent() -> None:
    """A client that decodes on the way would hide whether the file was compressed."""
    with (
        server(lambda _: (200, {"Content-Encoding": "gzip"}, PACKED)) as (target, _),
        run_against(target) as run,
    ):
        owner = Caller(run, run.profile.actors["owner"])
        assert owner.download(DOWNLOAD).exchange.body == PACKED
        assert owner.get(DOWNLOAD).exchange.body == gzip.decompress(PACKED)


@pytest.mark.parametrize(
    ("stream", "is_judged"),
    [(True, False), ("true", False), (False, True), (None, True)],
)
def test_a_response_in_chunks_may_have_any_format(stream: Any, is_judged: bool) -> None:  # noqa: FBT001
    sent = {} if stream is None else {"stream": stream}
    with (
        server(lambda _: (200, {"Content-Type": "text/plain"}, b"return 1")) as (target, _),
        run_against(target) as run,
    ):
        answer = Caller(run, run.profile.actors["owner"]).post(COMPLETIONS, {"current_file": {}, **sent})
        assert bool(run.validator.findings(answer.exchange)) is is_judged


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_gateway_that_fails_says_nothing_about_the_service(status: int) -> None:
    with server(lambda _: (status, {}, json.dumps({}).encode())) as (target, _), run_against(target) as run:
        owner = Caller(run, run.profile.actors["owner"])
        for answer in (owner.post(COMPLETIONS, {}), owner.get("/projects/1/job_token_scope")):
            with pytest.raises(Unmet, match=f"status {status}, which a gateway"):
                answer.must_be(200)
