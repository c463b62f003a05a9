"""Hostile servers: a run ends in time and within bounds, with a complete report, and fails nothing without cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from conformance.contract import Contract
from conformance.errors import ExitCode, TargetError
from conformance.http.client import Client, TargetGoneError
from conformance.reports import FORMATS
from conformance.results.record import Check, Outcome, Reason
from conformance.runner.job import Job
from conformance.runner.options import Options
from conformance.runner.session import Session
from conformance.suite.context import Run, Unmet, Violation, testing
from conformance.suite.expectations import Caller, verifies
from conformance.target.profile import Actor
from conformance.target.profile_file import profile_from
from selftest.conftest import SHORT_RETRIES
from selftest.proof.hostile import (
    BROKEN,
    GOOD,
    ODD,
    SLOW,
    WRONG,
    Answer,
    Call,
    Line,
    Relay,
    Server,
    falls_silent_after,
    only_at,
    redirects,
    says,
    serving,
    whole,
)
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.target.profile import Profile

MEGABYTE = 1024 * 1024
ON = "job-token-scope.switch.on"
SCOPE = "/projects/1/job_token_scope"
ELSEWHERE = "/projects/2/job_token_scope"
#: Timeouts: for a server that uses all of it, and for one that fails to answer in time only on a busy machine.
SHORT, LONG = 0.3, 10.0
#: How much longer it may take on a busy machine; with slow servers a faulty client would take minutes, or forever.
SLACK = 10.0

MAINTAINER = Actor("maintainer", "secret-token")

good = says(whole(GOOD), stays=True)


def profile_of(base_url: str, timeout: float = LONG) -> Profile:
    data = {
        "base_url": base_url,
        "version": "17.7",
        "actors": {MAINTAINER.name: {"token": MAINTAINER.token}},
        "fixtures": {"project": {"id": 1}},
        "limits": {"timeout_seconds": timeout},
        "retries": {"run_seconds": 1},
    }
    return profile_from(data, "test")


# -- one answer --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What a test makes of one response, and of the next one from another operation."""

    check: Check
    seconds: float
    next_body: bytes
    cookies: int


@pytest.fixture
def look() -> Callable[[Answer], Seen]:
    """Call a server once for the response under test, and then for another path that it answers well."""

    def look(answer: Answer, timeout: float = LONG) -> Seen:
        lines: list[Any] = []
        with serving(only_at(f"/api/v4{SCOPE}", answer, good)) as server:
            profile = profile_of(server.base_url, timeout)
            run = Run(Contract.load(), profile, lines.append)
            with closing(run), testing(run, "test", frozenset({ON})):
                started = time.monotonic()
                read_and_expect(Caller(run, profile.actors["maintainer"]))
                seconds = time.monotonic() - started
                found = run.client.send(profile.actors["maintainer"], "GET", ELSEWHERE)
        return Seen(checks_of(ON, lines)[0], seconds, found.body, server.cookies)

    return look


def checks_of(requirement: str, lines: list[Any]) -> list[Check]:
    return [line for line in lines if isinstance(line, Check) and line.requirement == requirement]


def read_and_expect(caller: Caller) -> None:
    try:
        with verifies(ON):
            caller.get(SCOPE).must_be(200).must_hold(inbound_enabled=True)
    except (Unmet, Violation):
        pass  # the result is in the record


@pytest.mark.parametrize("name", SLOW)
def test_a_response_that_does_not_come_in_time_proves_nothing(look: Callable[..., Seen], name: str) -> None:
    seen = look(SLOW[name], SHORT)
    assert (seen.check.outcome, seen.check.reason) == (Outcome.INCONCLUSIVE, Reason.NO_ANSWER), seen.check
    assert SHORT / 2 < seen.seconds < SHORT + SLACK


@pytest.mark.parametrize("name", BROKEN)
def test_an_incomplete_response_proves_nothing_and_does_not_affect_others(look: Callable[..., Seen], name: str) -> None:
    seen = look(BROKEN[name])
    assert (seen.check.outcome, seen.check.reason) == (Outcome.INCONCLUSIVE, Reason.NO_ANSWER), seen.check
    assert len(seen.check.detail or "") < 400, seen.check.detail
    assert seen.next_body == GOOD


@pytest.mark.parametrize("name", WRONG)
def test_a_complete_response_that_is_not_as_described_fails(look: Callable[[Answer], Seen], name: str) -> None:
    seen = look(WRONG[name])
    assert seen.check.outcome is Outcome.FAILED, seen.check
    assert len(seen.check.actual or "") < 1000
    assert seen.next_body == GOOD


@pytest.mark.parametrize("name", ODD)
def test_a_response_that_is_only_unusual_passes(look: Callable[[Answer], Seen], name: str) -> None:
    seen = look(ODD[name])
    assert seen.check.outcome is Outcome.PASSED, seen.check
    assert seen.next_body == GOOD
    assert seen.cookies == 0


@pytest.mark.parametrize(
    "name",
    [
        "a hundred megabytes",
        "a body without end",
        "chunks without end",
        "headers without end",
        "a header of a megabyte",
        "a decompression bomb",
        "a bomb in a bomb in a bomb",
    ],
)
def test_an_endless_response_is_read_in_bounded_memory(name: str) -> None:
    with serving(BROKEN[name]) as server, Client(profile_of(server.base_url).client_settings()) as client:
        tracemalloc.start()
        try:
            exchange = client.send(MAINTAINER, "GET", SCOPE)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert exchange.problem
    assert peak < 16 * MEGABYTE, f"{peak / MEGABYTE:.0f} MB"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 48\r\n\r\n" + GOOD, GOOD),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n", b"???"),
        (b"HTTP/1.1 204 No Content\r\n\r\n" + GOOD, GOOD),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 408 Request Timeout\r\n\r\n", b""),
        (b"HTTP/1.1 404 Not Found\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=[
        "none",
        "announced",
        "announced and not sent",
        "not announced",
        "no chunks",
        "another answer",
        "packed nothing",
    ],
)
def test_an_unexpected_body_is_seen_and_no_body_is_made_up(client: Any, answer: bytes, body: bytes) -> None:
    asking, _ = client(says(answer, stays=True))
    exchange = asking.send(MAINTAINER, "GET", SCOPE)
    assert exchange.status == int(answer[9:12])
    assert exchange.body == body


def test_a_violation_after_an_unanswered_write_is_not_reported() -> None:
    """The write may have been made or not, so any later read may be its result."""
    lines: list[Any] = []

    def answer(line: Line, call: Call) -> bool | None:
        said = says(whole(GOOD.replace(b"true", b"false")), stays=True)
        return (says() if call.method == "PATCH" else said)(line, call)

    with serving(answer) as server, closing(Run(Contract.load(), profile_of(server.base_url), lines.append)) as run:
        caller = Caller(run, run.profile.actors["maintainer"])
        for test, writes, outcome in (("first", False, Outcome.FAILED), ("second", True, Outcome.INCONCLUSIVE)):
            with testing(run, test, frozenset({ON})):
                if writes:
                    caller.patch(SCOPE, {"enabled": True})
                read_and_expect(caller)
            assert checks_of(ON, lines)[-1].outcome is outcome


# -- many answers ------------------------------------------------------------------------------------------------------


@pytest.fixture
def client() -> Iterator[Callable[..., tuple[Client, Server]]]:
    """Start servers, with a client for each."""
    opened: list[Client | Server] = []

    def start(answer: Answer, timeout: float = LONG) -> tuple[Client, Server]:
        server = Server(answer)
        client = Client(profile_of(server.base_url, timeout).client_settings())
        opened.extend((client, server))
        return client, server

    yield start
    for one in opened:
        one.close()


def test_a_redirect_to_itself_is_followed_a_few_times_only(client: Any) -> None:
    asking, server = client(redirects(f"/api/v4{SCOPE}"))
    last = asking.follow(asking.send(MAINTAINER, "GET", SCOPE))
    assert last.status == 302
    assert server.calls.total() < 10


def test_a_redirect_to_another_host_does_not_carry_the_token(client: Any) -> None:
    tokens: list[str | None] = []

    def elsewhere(line: Line, call: Call) -> bool:
        tokens.append(call.headers.get("private-token"))
        return bool(good(line, call))

    _, other = client(elsewhere)
    asking, _ = client(redirects(f"{other.base_url}/file"))
    assert asking.follow(asking.send(MAINTAINER, "GET", SCOPE)).body == GOOD
    assert tokens == [None]


def test_an_invalid_retry_after_is_a_short_wait(client: Any) -> None:
    busy = whole(b"", status=b"429 Too Many Requests", headers=b"Retry-After: nan\r\n")
    asking, _ = client(says(busy, stays=True))
    assert asking.send(MAINTAINER, "GET", SCOPE).status == 429


def test_calls_of_a_silent_operation_are_skipped_until_the_next_test_tries_once(client: Any) -> None:
    asking, _ = client(falls_silent_after(), SHORT)
    sent = []
    for asking.test in ("first", "second"):
        before = asking.requests
        exchanges = [asking.send(MAINTAINER, "GET", SCOPE) for _ in range(10)]
        assert all(exchange.status is None for exchange in exchanges)
        assert "not sent" in exchanges[-1].problem
        sent.append(asking.requests - before)
    assert sent == [4, 1]  # the very first call is repeated once


def test_some_unanswered_operations_do_not_make_a_target_unreachable(client: Any) -> None:
    """Not even without other calls in between: an operation that answered before is tried first."""
    asking, _ = client(only_at("/api/v4/version", good, says()))
    actor = MAINTAINER
    assert asking.send(actor, "GET", "/version").status == 200
    unanswered = [asking.send(actor, "GET", f"/projects/{number}/job_token_scope") for number in range(20)]
    assert all(exchange.status is None for exchange in unanswered)
    assert asking.send(actor, "GET", "/version").status == 200


@pytest.mark.parametrize("ends", ["silence", "a reset", "refused connections"])
def test_an_unreachable_target_is_recognized_after_a_few_calls(client: Any, ends: str) -> None:
    asking, server = client(good, SHORT * 2)
    actor = MAINTAINER
    assert asking.send(actor, "GET", "/version").status == 200
    if ends == "refused connections":
        server.close()
    else:
        server.answer = {**SLOW, **BROKEN}[ends]
    with pytest.raises(TargetGoneError):
        [asking.send(actor, "GET", f"/projects/{number}/job_token_scope") for number in range(100)]
    assert asking.requests < 10
    sent = asking.requests
    with pytest.raises(TargetGoneError):
        asking.send(actor, "GET", "/version")
    assert asking.requests == sent


# -- unreachable from the first byte on --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["silence", "headers that drip", "a bomb in a bomb in a bomb", "noise"],
)
def test_a_target_that_cannot_be_called_ends_with_one_message_and_a_report(tmp_path: Path, name: str) -> None:
    with serving({**SLOW, **BROKEN}[name]) as server:
        profile = {
            "base_url": server.base_url,
            "disposable": True,
            "actors": {"maintainer": {"token": "secret"}},
            "fixtures": {"project": {"id": 1}},
            "limits": {"timeout_seconds": SHORT},
            "retries": SHORT_RETRIES,
        }
        (tmp_path / "target.yaml").write_text(json.dumps(profile), encoding="utf-8")
        session = Session(Job.prepare(Options(target=tmp_path / "target.yaml", out=tmp_path / "out")))
        session.make_plan({})
        with pytest.raises(TargetError) as raised:
            session.open()
    assert raised.value.exit_code == ExitCode.COULD_NOT_RUN
    assert "does not answer" in str(raised.value)
    assert len(str(raised.value)) < 500
    report = whole_report(tmp_path / "out")
    assert (report["verdict"], report["exit_code"]) == ("could not run", ExitCode.COULD_NOT_RUN)
    assert [row["id"] for row in report["requirements"] if row["verdict"] == "passed"] == []


# -- halfway -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ran:
    """A run of the suite, as the user and the system see it."""

    code: int
    text: str
    seconds: float
    megabytes: float
    """The most memory that it had at a time."""
    report: dict[str, Any]

    def ids(self, *verdicts: str) -> set[str]:
        return {row["id"] for row in self.report["requirements"] if row["verdict"] in verdicts}

    def held(self) -> set[str]:
        """Return the requirements for which some check held, whether or not all of their tests ended."""
        return {row["id"] for row in self.report["requirements"] if row["checks_passed"]}


@pytest.fixture
def run_through(
    reference: Any, write_profile: Callable[..., Path], tmp_path: Path
) -> Iterator[Callable[..., tuple[Ran, Server]]]:
    """Test one area of the reference behind a server that turns hostile."""
    service, base_url = reference
    servers: list[Server] = []

    def start(make: Callable[[Server, Relay], Answer], *arguments: str, timeout: float = 1.0) -> tuple[Ran, Server]:
        server = Server(good)
        servers.append(server)
        server.answer = make(server, Relay(base_url))
        write_profile(service, server.base_url, limits={"timeout_seconds": timeout, "deadline_seconds": timeout})
        return ran("--target", "target.yaml", "--out", "out", *arguments, folder=tmp_path), server

    yield start
    for server in servers:
        server.close()


def ran(*arguments: str, folder: Path) -> Ran:
    log = folder / "log.txt"
    started = time.monotonic()
    command = [sys.executable, "-m", "conformance", "run", *arguments]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(encoding="utf-8")
    assert "Traceback" not in text, text
    seconds = time.monotonic() - started
    return Ran(process.returncode, text, seconds, usage.ru_maxrss / 1024, whole_report(folder / "out"))


def whole_report(folder: Path) -> dict[str, Any]:
    """Return the report, after checking that every format exists and can be read."""
    for name, form in FORMATS.items():
        # An attestation names what was tested, and is written only for a run with a subject.
        assert (folder / form.file).exists() or name == "attestation", form.file
    ET.parse(folder / "junit.xml")  # noqa: S314 - our own file
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in lines][-1] == "footer"
    return report_of(folder)


def after(calls: int, make: Callable[[Server], Answer]) -> Callable[[Server, Relay], Answer]:
    """Turn hostile after a number of calls."""

    def turning(server: Server, relay: Relay) -> Answer:
        turned = make(server)

        def answer(line: Line, call: Call) -> bool | None:
            return (turned if server.calls.total() > calls else relay)(line, call)

        return answer

    return turning


def dies(server: Server) -> Answer:
    return lambda _line, _call: server.close()


ONE_AREA = ("--area", "job-token-scope", "--", "-k")


@pytest.mark.parametrize(
    ("calls", "make", "tests"),
    [
        (230, dies, "scenarios"),
        (230, lambda _: falls_silent_after(), "scenarios"),
        (230, lambda _: falls_silent_after(), "model"),
    ],
    ids=["killed", "silent", "silent while moves are drawn"],
)
def test_if_the_target_dies_halfway_the_run_ends_and_keeps_its_results(
    run_through: Callable[..., tuple[Ran, Server]], calls: int, make: Callable[[Server], Answer], tests: str
) -> None:
    found, server = run_through(after(calls, make), *ONE_AREA, tests)
    assert found.code == ExitCode.INCOMPLETE, found.text
    assert found.report["verdict"] == "incomplete"
    assert found.ids("failed") == set()
    # Including the attempts to undo changes, and to reach it again: of these a slow machine makes some more.
    assert server.calls.total() <= calls + 60
    if tests == "scenarios":
        assert found.held()
        assert "the target stopped answering" in found.report["stopped"]
        assert "the target stopped answering" in found.text


def test_one_silent_operation_does_not_keep_others_from_being_judged(
    run_through: Callable[..., tuple[Ran, Server]],
) -> None:
    """It causes no failure either: an entry that nobody could remove is not a removed entry that is still there."""
    silent = falls_silent_after()
    removals = "DELETE /api/v4/projects/3/job_token_scope/groups_allowlist/"

    def make(_: Server, relay: Relay) -> Answer:
        return lambda line, call: (silent if call.where.startswith(removals) else relay)(line, call)

    found, server = run_through(make, *ONE_AREA, "test_switching or test_a_removed")
    assert found.code == ExitCode.INCOMPLETE, found.text
    assert found.ids("failed") == set()
    assert {ON, "job-token-scope.allowlist.remove.gone"} <= found.held()
    assert "job-token-scope.groups-allowlist.remove.gone" in found.ids("inconclusive")
    spent = sum(count for where, count in server.calls.items() if where.startswith(removals))
    assert spent <= 3 + found.report["run"]["tests"]["planned"]


def test_a_run_with_every_kind_of_hostile_response_does_not_break_the_suite(
    run_through: Callable[..., tuple[Ran, Server]],
) -> None:
    """Every third response is another one of all kinds, whatever call it answers."""
    every = [*SLOW.values(), *BROKEN.values(), *WRONG.values(), *ODD.values()]

    def make(server: Server, relay: Relay) -> Answer:
        def answer(line: Line, call: Call) -> bool | None:
            turn, is_honest = divmod(server.calls.total(), 3)
            return (relay if is_honest or turn < 2 else every[turn % len(every)])(line, call)

        return answer

    options = ("--force", "--seed", "1", *ONE_AREA, "test_job_token_scope_entries or pagination")
    # Where the machine stalls, so many answers in a row are late that nobody seems to be there: then with more time.
    for timeout in (0.15, 0.5, 2.0):
        found, server = run_through(make, *options, timeout=timeout)
        if found.code != ExitCode.COULD_NOT_RUN:
            break
    # How many calls are sent depends on which are answered late, and so on the machine.
    assert server.calls.total() > 3 * 2 * len(every), "each kind of response is the answer to two calls at least"
    assert found.code in (ExitCode.NON_CONFORMANT, ExitCode.INCOMPLETE), found.text
    assert [problem for problem in found.report["problems"] if problem["kind"] == "broken test"] == []
    assert found.megabytes < 800
