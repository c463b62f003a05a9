"""Tests of drawn calls that go on side by side, each on things of its own, where a target takes its time to answer."""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import sets_aside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.contract import Operation
    from conformance.runner.session import Session
    from conformance.suite.context import Run, TestContext


@dataclass(frozen=True)
class DrawnCalls:
    """A test that sends the drawn calls of one operation."""

    item: pytest.Function
    operation: Operation
    phase: str

    @property
    def wanted(self) -> tuple[Operation, str]:
        """What it asks the corpus for."""
        return self.operation, self.phase

    @property
    def haste(self) -> tuple[bool, bool]:
        """What sorts first those that take long: what changes something, with the many cases that a schema gives."""
        return (self.operation.is_read, self.phase == "fuzz")


def drawn_calls(items: Iterable[pytest.Item]) -> list[DrawnCalls]:
    """Return those of the tests that send drawn calls: whose `every_operation` says what it `draws`."""
    found = []
    for item in items:
        marker = item.get_closest_marker("every_operation")
        if isinstance(item, pytest.Function) and marker is not None and "draws" in marker.kwargs:
            operation: Any = item.callspec.params["operation"]
            found.append(DrawnCalls(item, operation, marker.kwargs["draws"]))
    return found


class Lanes:
    """
    Tests that run in threads of their own, ahead of pytest, which comes to each in its turn and takes what came of it.

    Every lane has a number, and the set of things set aside that has the same number: no two tests that are under way
    at once change the same thing. Of those that go to what is not set aside, such as a group that is exported, each
    area has one under way at a time.
    """

    def __init__(self, run: Run, session: Session, jobs: Sequence[Sequence[DrawnCalls]], number: int) -> None:
        """Prepare lanes for jobs, each one test or several that must follow each other; nothing runs yet."""
        self._run = run
        self._session = session
        self._jobs = jobs
        self._number = number
        self._books: dict[pytest.Item, TestContext] = {}
        self._ended: dict[pytest.Item, Future[None]] = {call.item: Future() for job in jobs for call in job}
        self._free: SimpleQueue[int] = SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None

    @property
    def wanted(self) -> Iterator[tuple[Operation, str]]:
        """What the tests in lanes ask the corpus for, in the order in which they begin."""
        return (call.wanted for job in self._jobs for call in job)

    def has(self, item: pytest.Item) -> bool:
        """Tell whether a test runs in a lane; such tests come last, when no other test is under way."""
        return item in self._ended

    def context(self, item: pytest.Item, begun: Callable[[pytest.Item], TestContext]) -> TestContext:
        """Return the context of a test that runs in a lane; the first that is asked for lets all begin."""
        if self._threads is None:
            self._books = {item: begun(item) for item in self._ended}
            self._threads = ThreadPoolExecutor(self._number)
            for lane in range(self._number):
                self._free.put(lane)
            for job in self._jobs:
                self._threads.submit(self._do, job)
        return self._books[item]

    def wait_for(self, item: pytest.Item) -> None:
        """Wait until a test that runs in a lane has ended, and raise what it raised."""
        self._ended[item].result()

    def close(self) -> None:
        """Begin nothing more, and let what is under way put back what it changed."""
        if self._threads is not None:
            self._run.shutting_down.set()
            self._threads.shutdown(cancel_futures=True)

    def _do(self, job: Sequence[DrawnCalls]) -> None:
        lane = self._free.get()
        try:
            for call in job:
                self._test(call, lane)
        finally:
            self._free.put(lane)

    def _test(self, call: DrawnCalls, lane: int) -> None:
        context, ended = self._books[call.item], self._ended[call.item]
        self._run.join(context, lane)
        context.started = time.monotonic()
        try:
            self._run.require_declared(context.declared)
            call.item.obj(operation=call.operation, suite=self._session)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where the test is waited for
            context.seconds = time.monotonic() - context.started
            ended.set_exception(error)
        else:
            context.seconds = time.monotonic() - context.started
            ended.set_result(None)


@contextmanager
def lanes(run: Run, session: Session, drawn: Iterable[DrawnCalls]) -> Iterator[Lanes]:
    """
    Let tests of drawn calls run side by side while the context lasts.

    None do where the profile sets one thing aside only, or the target answers faster than it is called.
    """
    apart: defaultdict[str, list[DrawnCalls]] = defaultdict(list)
    free: list[list[DrawnCalls]] = []
    sets = [run.client.worth_sending_at_once(), session.options.concurrency]
    for call in sorted(drawn, key=lambda call: call.haste):
        number = sets_aside(run, call.operation)
        if number is None:
            apart[call.operation.area].append(call)
        else:
            free.append([call])
            sets.append(number)
    jobs = [*apart.values(), *free] if min(sets) > 1 else []
    found = Lanes(run, session, jobs, min(sets))
    try:
        yield found
    finally:
        found.close()
