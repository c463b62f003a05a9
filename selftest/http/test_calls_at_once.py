"""Calls of several threads: a call that must be alone is alone, however many other threads keep calling."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance.http.client import Client, TargetGoneError
from conformance.target.profile import Actor
from conformance.target.profile_file import profile_from
from selftest.proof.hostile import GOOD, Call, Line, says, serving, whole

MAINTAINER = Actor("maintainer", "secret-token")
PLACES, THREADS = 3, 6
DEADLINE, A_MOMENT = 20, 0.002  # seconds

good = says(whole(GOOD), stays=True)


class Counting:
    """Answers each call after a moment, and records how many calls were in progress at that time."""

    def __init__(self) -> None:
        self.under_way = 0
        self.most_beside: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, line: Line, call: Call) -> bool | None:
        with self._lock:
            self.under_way += 1
            self.most_beside[call.path] = max(self.under_way, self.most_beside.get(call.path, 0))
        line.goes_on(A_MOMENT)
        with self._lock:
            self.under_way -= 1  # before the response, after which the next call may come at once
        return good(line, call)


def test_one_call_is_alone_while_others_keep_calling() -> None:
    target, is_over = Counting(), threading.Event()
    with serving(target) as server, ThreadPoolExecutor(THREADS) as pool:
        data = {"base_url": server.base_url, "actors": {}, "fixtures": {}, "limits": {"timeout_seconds": 10}}
        with Client(profile_from(data, "target.yaml").client_settings(PLACES)) as client:

            def keep_calling() -> None:
                while not is_over.is_set():
                    client.send(MAINTAINER, "GET", "/beside")

            busy = [pool.submit(keep_calling) for _ in range(THREADS)]
            started = time.monotonic()
            try:
                with client.alone():
                    client.send(MAINTAINER, "GET", "/alone")
                waited = time.monotonic() - started
            finally:
                is_over.set()
            for one in busy:
                one.result(DEADLINE)
    assert waited < DEADLINE
    assert target.most_beside[next(path for path in target.most_beside if path.endswith("/alone"))] == 1


def test_an_interrupt_does_not_wait_for_calls_that_are_delayed_by_a_rate() -> None:
    """The other calls would be sent hours later."""
    with serving(Counting()) as server, ThreadPoolExecutor(THREADS) as pool:
        limits = {"requests_per_second": 0.0001}
        data = {"base_url": server.base_url, "actors": {}, "fixtures": {}, "limits": limits}
        with Client(profile_from(data, "target.yaml").client_settings(PLACES)) as client:
            client.send(MAINTAINER, "GET", "/first")
            waiting = [pool.submit(client.send, MAINTAINER, "GET", "/later") for _ in range(THREADS)]
            with pytest.raises(KeyboardInterrupt), client.ending_when_interrupted():
                raise KeyboardInterrupt
            for one in waiting:
                with pytest.raises(TargetGoneError, match="the run was interrupted"):
                    one.result(DEADLINE)


def test_an_interrupt_does_not_wait_for_a_call_that_was_throttled() -> None:
    """The target asks to send it again in a minute."""
    too_many = says(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 50\r\nContent-Length: 0\r\n\r\n", stays=True)
    is_said = threading.Event()

    def answer(line: Line, call: Call) -> bool | None:
        stays = too_many(line, call)
        is_said.set()
        return stays

    with serving(answer) as server, ThreadPoolExecutor(1) as pool:
        data = {"base_url": server.base_url, "actors": {}, "fixtures": {}}
        with Client(profile_from(data, "target.yaml").client_settings(PLACES)) as client:
            waiting = pool.submit(client.send, MAINTAINER, "GET", "/later")
            assert is_said.wait(DEADLINE)
            with pytest.raises(KeyboardInterrupt), client.ending_when_interrupted():
                raise KeyboardInterrupt
            assert waiting.result(DEADLINE).status == 429
