"""Progress of a run by area, with the time left: pytest plugins that count tests and show how far the run is."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

import pytest

from conformance.results.durations import weights_of
from conformance.results.text import plural
from conformance.runner.collection import id_in
from conformance.runner.display import SILENCE_SECONDS, Live, State, minutes_of, screen_on
from conformance.runner.time_left import TimeLeft, Work, alike

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from xdist.workermanage import WorkerController

    from conformance.runner.display import Screen
    from conformance.runner.session import Session

#: The outcome of a test that failed and runs once more: a category of our own, as plugins may have.
TRIED_AGAIN = "tried again"
#: Marks the report of a test that pytest began after the run was over, so that it did not run.
NOT_RUN = ("conformance", "not run")
_TICK_SECONDS = 0.5
#: The plugins that distribute tests and show the state of workers, by the names that pytest-xdist gives them.
_SHARES_OUT, _SHOWS_WORKERS = "dsession", "terminaldistreporter"


@dataclass
class _Area:
    name: str
    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Tests without a verdict: inconclusive, or not for this target."""
    seconds: float = 0.0

    @property
    def result(self) -> str:
        found = [f"{self.failed} failed"] if self.failed else []
        found += [f"{self.skipped} skipped"] if self.skipped else []
        return ", ".join(found) or "ok"


class Progress:
    """Counts tests by area and shows how far the run is."""

    def __init__(
        self,
        tests: Mapping[str, str],
        screen: Screen,
        *,
        workers: int = 1,
        work: Work | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take all tests that will run, each with its area.

        `workers` is how many tests run side by side, `work` is each test's amount of work; by default all are equal.
        """
        self._tests = tests
        self._screen = screen
        self._clock = clock
        self._areas = {name: _Area(name, total) for name, total in Counter(tests.values()).items()}
        self._ended: set[str] = set()
        self._time_left = TimeLeft(work or alike(tests), workers, clock)
        self._now: str | None = None
        self._started = clock()
        self._lock = threading.Lock()

    def opened(self, note: str) -> None:
        """Show how many tests will run, and a note on what they run against."""
        with self._lock:
            self._screen.say(f"{plural(len(self._tests), 'test')}, {note}")

    def began(self, test: str) -> None:
        """Note that a test has started."""
        with self._lock:
            self._now = self._tests.get(test, self._now)
            if test in self._tests:
                self._time_left.began(test)
        self.tick()

    def stopped(self, test: str) -> None:
        """Note that an attempt of a test has ended that does not count: the next one, if any, begins anew."""
        with self._lock:
            self._time_left.stopped(test)

    def ended(self, test: str, seconds: float, *, failed: bool, skipped: bool) -> None:
        """Note that a test has ended, and how; print its area's line when it was the last test of the area."""
        if test not in self._tests:
            return
        with self._lock:
            area = self._areas[self._tests[test]]
            self._time_left.ended(test, seconds)
            area.seconds += seconds
            if test in self._ended:  # it ran once more
                return
            self._ended.add(test)
            area.done += 1
            area.failed += failed
            area.skipped += skipped and not failed
            if area.done == area.total:
                self._say_how_it_went(area, f"{self._done}/{len(self._tests)} in all")

    def tick(self) -> None:
        """Update the elapsed time."""
        with self._lock:
            if self._now is not None:
                self._screen.status(self._state(self._areas[self._now]))

    def closed(self) -> None:
        """Print the areas that were begun and not finished."""
        with self._lock:
            self._now = None
            for area in self._areas.values():
                if 0 < area.done < area.total:
                    self._say_how_it_went(area, f"stopped after {area.done} of {area.total}")
            if self._done < len(self._tests):
                self._screen.say(f"{plural(len(self._tests) - self._done, 'test')} not run")

    @property
    def _done(self) -> int:
        return sum(area.done for area in self._areas.values())

    def _say_how_it_went(self, area: _Area, place: str) -> None:
        tests = plural(area.done, "test")
        self._screen.say(f"{area.name:32} {tests:>9}  ", f"{area.result:21}", f"{area.seconds:8.1f} s  {place}")

    def _state(self, area: _Area) -> State:
        failed = sum(each.failed for each in self._areas.values())
        words = f"{failed} failed" if failed else "none failed"
        rest = f"{words}  {minutes_of(self._clock() - self._started)}{self._rest()}{self._slow()}"
        return State(f"{area.name} {area.done}/{area.total}", self._done, len(self._tests), rest)

    def _rest(self) -> str:
        """Estimate the time left; empty while there is nothing to estimate from."""
        seconds = self._time_left.seconds()
        return "" if seconds is None else f", about {minutes_of(seconds)} left"

    def _slow(self) -> str:
        """Name the test that takes long, because the target may hang there; empty if none does."""
        test, seconds = self._time_left.longest()
        is_slow = seconds >= SILENCE_SECONDS
        return f"; {test.rpartition('::')[2]} has been running for {minutes_of(seconds)}" if is_slow else ""


class ByArea:
    """A pytest plugin that shows progress by area instead of a sign for each test."""

    def __init__(self, session: Session, *, is_shown: bool) -> None:
        """Take the running session; show nothing unless `is_shown`."""
        self._session = session
        self._is_shown = is_shown
        self._open = ExitStack()
        self._screen: Screen | None = None
        self._progress: Progress | None = None
        self._seen: dict[str, set[str]] = {}
        self._seconds: dict[str, float] = {}
        self._seconds_of_ended = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, ...], tuple[str, ...]]:
        """Let pytest count a test and write nothing about it."""
        category, _, word = yield
        return category, "", word

    # Neither first nor last: the session has begun and made its plan, and no test runs yet.
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Start to show progress."""
        self._show(session.config)
        self._begin(item.nodeid for item in session.items)

    def _show(self, config: pytest.Config) -> None:
        if not self._is_shown or not self._session.is_open or self._screen is not None:
            return
        self._screen = self._open.enter_context(_screen(config))
        self._open.callback(self._close)
        self._open.enter_context(_ticking(self._tick))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Close the display to make room for the summary."""
        self._open.close()

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: list[str]) -> None:
        """Learn from the first worker which tests will run, because with workers pytest-xdist has the loop."""
        self._show(node.config)
        self._begin(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test begins, here or in a worker."""
        if self._progress is not None:
            self._progress.began(id_in(nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test's phase, and the end of the test after its last phase."""
        name = id_in(report.nodeid)
        self._seen.setdefault(name, set()).add(report.outcome)
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if report.when == "teardown" and self._progress is not None:
            seen = self._seen.pop(name)
            self._progress.stopped(name)
            if TRIED_AGAIN in seen:
                return
            seconds = self._seconds.pop(name)
            self._seconds_of_ended += seconds
            if NOT_RUN in map(tuple, report.user_properties):  # a worker sends lists
                return
            self._progress.ended(name, seconds, failed="failed" in seen, skipped="skipped" in seen)

    def _begin(self, ids: Iterable[str]) -> None:
        plan = self._session.plan
        planned = plan.tests if plan is not None else {}
        tests = {name: planned[name].area for name in map(id_in, ids) if name in planned}
        if not tests or self._screen is None or self._progress is not None:
            return
        workers = self._session.options.workers
        known = self._session.durations.known()
        # Weights are seconds if an earlier run measured some of them, and requests otherwise.
        pace = (lambda: 1.0) if known.keys() & tests.keys() else self._seconds_per_request
        work = Work(weights_of(list(tests), known), pace)
        self._progress = Progress(tests, self._screen, workers=workers, work=work)
        side_by_side = f", {workers} workers" if workers > 1 else ""
        self._progress.opened(f"{self._session.subject}, seed {self._session.seed}{side_by_side}")

    def _seconds_per_request(self) -> float | None:
        """Return the seconds per request in the tests so far; before the first test has ended, the time per answer."""
        requests, run = self._session.writer.requests_of_ended, self._session.run
        if requests:
            return self._seconds_of_ended / requests
        return run.latencies.usual() if run is not None else None

    def _close(self) -> None:
        if self._progress is not None:
            self._progress.closed()

    def _tick(self) -> None:
        if self._progress is not None:
            self._progress.tick()


class FewWords:
    """A pytest plugin that hides pytest's own messages when workers start, and when a run is interrupted or stops."""

    def __init__(self, session: Session) -> None:
        """Record interrupts in the session, and read from it whether the run is over."""
        self._session = session

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Hide pytest-xdist's messages about starting workers."""
        manager = session.config.pluginmanager
        shares_out = manager.get_plugin(_SHARES_OUT)
        if shares_out is not None and manager.has_plugin(_SHOWS_WORKERS):
            manager.unregister(name=_SHOWS_WORKERS)
            shares_out.terminal = None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Finish normally when somebody interrupts."""
        return (yield from self._to_the_end())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Finish normally when somebody interrupts."""
        return (yield from self._to_the_end())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        """Skip the remaining tests when the target is gone or the time is over."""
        return True if self._session.is_over else None

    def _to_the_end(self) -> Generator[None, object, object]:
        try:
            return (yield)
        except KeyboardInterrupt:
            self._session.ending.interrupted = True
            return True


def before_tests(session: Session, config: pytest.Config) -> AbstractContextManager[None]:
    """Show that a run is checking its target while the context lasts; at a low rate that takes minutes."""

    def calls() -> str | None:
        if session.run is None:
            return None
        seldom = session.run.profile.limits.requests_per_second
        pace = f", at most {seldom:g} a second" if seldom is not None else ""
        return f"{plural(session.run.client.requests, 'call')}{pace}  "

    return _beside_tests(config, "before the first test: target and profile", calls)


def after_tests(config: pytest.Config) -> AbstractContextManager[None]:
    """Show that a run is putting back what it changed while the context lasts; on a slow target that takes minutes."""
    return _beside_tests(config, "after the last test: putting back what was changed, and reports", lambda: "")


@contextmanager
def _beside_tests(config: pytest.Config, what: str, more: Callable[[], str | None]) -> Iterator[None]:
    """Show what a run is doing while no test runs, `more` about it, and for how long; nothing while `more` is None."""
    started = time.monotonic()

    def tick() -> None:
        words = more()
        if words is not None:
            screen.status(State(what, 0, 0, f"{words}{minutes_of(time.monotonic() - started)}"))

    with _screen(config) as screen, _ticking(tick):
        yield


@contextmanager
def _ticking(tick: Callable[[], None]) -> Iterator[None]:
    """Update the elapsed time while the context lasts, also during one long test."""
    is_over = threading.Event()

    def go() -> None:
        while not is_over.wait(_TICK_SECONDS):
            tick()

    thread = threading.Thread(target=go, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _screen(config: pytest.Config) -> Iterator[Screen]:
    """Open the terminal or log behind standard output, bypassing pytest's capture."""
    sys.stdout.flush()
    stream: TextIO = sys.stdout
    with suppress(OSError, ValueError):  # without a file behind it, as in a test, write to it directly
        stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    colour = bool(reporter is not None and reporter.hasmarkup)
    # Where tests write to the terminal themselves (-s), or nobody watches it, nothing moves.
    screen = screen_on(stream, colour=colour, may_move=config.option.capture != "no" and not os.environ.get("CI"))
    try:
        if isinstance(screen, Live):
            with screen.display:
                yield screen
        else:
            yield screen
    finally:
        if stream is not sys.stdout:
            with suppress(OSError):
                stream.close()
