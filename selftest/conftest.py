"""What the selftests share: the command line as a user runs it, and servers to test."""

from __future__ import annotations

import contextlib
import gc
import http.server
import io
import json
import logging
import os
import ssl
import sys
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from conformance import reports
from conformance.cli import main
from conformance.contract import Contract
from conformance.http.redaction import REDACTION
from conformance.reference import EmbeddedServer, Service
from conformance.suite.context import Run, TestContext, testing
from conformance.target.embedded import prepared_service, profile_data
from selftest.inside import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from conformance.reference.routing import Match
    from conformance.results.recorder import Line
    from conformance.target import Profile

VERSION = "17.7"
#: For httpx clients that speak plain HTTP: otherwise each of them reads all certificate authorities, which takes 30 ms.
NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
#: For targets that never answer: one retry shows as much as retries for a minute.
SHORT_RETRIES = {"call_seconds": 1, "run_seconds": 20}
#: The formats that runs in this process write by default: the others take as long as a short run and have own tests.
FEW_REPORTS = ("json", "html", "markdown")

#: Folders and files whose tests depend on no other test and share nothing costly.
_INDEPENDENT = frozenset({"cli", "http", "proof", "runner", "suite", "target", "test_ci_files", "test_foreign_faults"})
#: Files whose tests share runs.
_SHARING = frozenset({"test_attempts_on_records", "test_parts", "test_private_names", "test_resumed_workers"})
#: The slowest files start first, so that no worker is still busy long after the others.
_LONGEST_FIRST = (
    *("test_every_version", "test_combinations", "test_variants", "test_null_targets", "test_legal_targets"),
    "test_second_server",
    *("test_prove", "test_order", "test_wheel", "test_hostile_targets", "test_precautions"),
    "test_resumed_workers",
    *("test_what_a_run_may_change", "test_ci_files"),
    *("test_against_the_contract", "test_end_to_end", "test_pages_in_browser", "test_parts", "test_modes"),
    *("test_again", "test_progress", "test_bad_input", "test_command_line", "test_attempts", "test_foreign_faults"),
)


@pytest.hookimpl(tryfirst=True)  # before the workers read the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell pytest-xdist what to distribute: single tests if they are independent, otherwise whole files.

    The tests of a file often share a costly start, which each worker would have to repeat.
    """
    items.sort(key=lambda item: [*_LONGEST_FIRST, item.path.stem].index(item.path.stem))
    for item in items:
        is_shared = item.path.stem in _SHARING or not _INDEPENDENT & {item.path.stem, item.path.parent.name}
        if is_shared and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never look through what exists before the first test, because that takes long."""
    gc.set_threshold(50_000, 10, 5)
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _state_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give each selftest its own state folder, so that runs find nothing of other runs on this machine."""
    with patch.dict(os.environ, {"CONFORMANCE_STATE": str(tmp_path_factory.mktemp("state"))}):
        yield


@dataclass(frozen=True)
class Outcome:
    """The result of a command: exit code and output."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def run_conformance(
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    formats: Collection[str] = FEW_REPORTS,
) -> Outcome:
    """Run the command in this process: a new process for each of some hundred runs would take most of the time."""
    out, err = io.StringIO(), io.StringIO()
    state = {"CONFORMANCE_STATE": os.environ["CONFORMANCE_STATE"]}
    variables = {"COLUMNS": "80", **state, **(os.environ if environment is None else environment)}
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.dict(os.environ, variables, clear=True),
        patch.object(sys, "argv", ["conformance", *arguments]),
        patch.object(reports, "render_all", lambda record, folder: reports.render(record, formats, folder)),
        # If a test breaks the reference, the log of the reference says so: that is not output of the command.
        patch.object(logging.getLogger("conformance.reference"), "disabled", new=True),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Outcome(int(ended.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture
def conformance(tmp_path: Path) -> Callable[..., Outcome]:
    """The command line in an empty folder; it never shows a traceback to a user."""

    def command(*arguments: str, **more: Any) -> Outcome:
        outcome = run_conformance(*arguments, cwd=tmp_path, **more)
        assert "Traceback" not in outcome.text, outcome.text
        return outcome

    return command


@pytest.fixture(autouse=True)
def _no_secrets_of_others() -> Iterator[None]:
    """Forget the secrets of other tests, so that they are not removed from the files of this one."""
    yield
    REDACTION.forget()


@pytest.fixture(scope="module")
def inside_this_process() -> Iterator[None]:
    """For modules that are not about connections: let runs call references of this process without a connection."""
    with inside():
        yield


@pytest.fixture
def write_profile(tmp_path: Path) -> Callable[..., Path]:
    """Write a profile of a served reference, changed as the test wishes, and return its file."""

    def write(service: Service, base_url: str, name: str = "target.yaml", **changes: Any) -> Path:
        data = {**profile_data(service.world, base_url, VERSION), "retries": SHORT_RETRIES, **changes}
        file = tmp_path / name
        file.write_text(json.dumps(data), encoding="utf-8")
        return file

    return write


@contextmanager
def serving(service: Service | None = None, latency_ms: float = 0) -> Iterator[tuple[Service, str]]:
    served = service or prepared_service(version=VERSION)
    with EmbeddedServer(served, latency_ms=latency_ms) as server:
        yield served, server.base_url


def lacking(keys: Collection[str], error: Callable[[], Exception], service: Service) -> Service:
    """Let a service lack some operations."""
    find = service.routes.find

    def found(method: str, raw_path: bytes) -> Match:
        match = find(method, raw_path)
        if match.route.key in keys:
            raise error()
        return match

    service.routes.find = found  # type: ignore[method-assign]
    return service


@contextmanager
def in_a_test(profile: Profile, *declared: str, lines: list[Line] | None = None) -> Iterator[TestContext]:
    """Let this thread act as a test that declares some requirements; `lines` receives what it writes."""
    written: list[Line] = [] if lines is None else lines
    with (
        closing(Run(Contract.load(), profile, written.append)) as run,
        testing(run, "test", frozenset(declared)) as test,
    ):
        yield test


@pytest.fixture
def reference() -> Iterator[tuple[Service, str]]:
    """A separate reference for each test: the service, and its address."""
    with serving() as pair:
        yield pair


@pytest.fixture
def slow_reference() -> Iterator[tuple[Service, str]]:
    """The same with a delay of 30 ms before every response, so that a test can interrupt a run."""
    with serving(latency_ms=30) as pair:
        yield pair


@pytest.fixture
def answering() -> Iterator[Callable[..., str]]:
    """Start servers that answer every call in the same way; return the address of each."""
    servers: list[http.server.ThreadingHTTPServer] = []

    def start(status: int, body: bytes, content_type: str = "application/json", location: str | None = None) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Send head and body together, at once: otherwise each response waits 40 ms for an acknowledgement.
            wbufsize = -1
            disable_nagle_algorithm = True

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                if location is not None:
                    self.send_header("Location", location)
                if status != 204:
                    self.send_header("Content-Type", content_type)
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the base class calls these

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is inherited
                del format, args

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
