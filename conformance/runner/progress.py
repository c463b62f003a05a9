"""Progress of a run by area, with what is left: one line that moves on a terminal, a few that stay in a log."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

import pytest

from conformance.results.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

#: A log that says nothing for so long gets a line that says how far the run is.
SILENCE_SECONDS = 15.0

_TICK_SECONDS = 0.5
_REDRAW_SECONDS = 0.1
_ENOUGH_TO_GUESS = 5
_RED, _GREEN, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Planned:
    """A test that will run."""

    area: str
    kind: str
    """Tests of a kind, such as one for each operation, are taken to last equally long."""


@dataclass
class _Area:
    name: str
    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    """Tests that came to nothing: inconclusive, or not for this target."""
    seconds: float = 0.0

    @property
    def result(self) -> str:
        found = [f"{self.failed} failed"] if self.failed else []
        found += [f"{self.skipped} skipped"] if self.skipped else []
        return ", ".join(found) or "ok"


class Screen(Protocol):
    """Where progress is shown."""

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Show a line that stays; `result` is the part in its middle that may have a colour."""

    def status(self, line: str, *, at_once: bool) -> None:
        """Show how far the run is, in a line that need not stay."""

    def clear(self) -> None:
        """Leave room for what others write."""


@dataclass
class Live:
    """A terminal: the last line is drawn again and again."""

    stream: TextIO
    colour: bool
    width: Callable[[], int] = lambda: shutil.get_terminal_size().columns
    clock: Callable[[], float] = time.monotonic
    _drawn: str = ""
    _at: float = float("-inf")

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Write a line above the one that moves."""
        self.clear()
        shade = _GREEN if result.strip() == "ok" else _RED if "failed" in result else _YELLOW
        shown = f"{shade}{result}{_PLAIN}" if result and self.colour else result
        _write(self.stream, f"{line}{shown}{more}\n")

    def status(self, line: str, *, at_once: bool) -> None:
        """Draw the line that moves, not more often than somebody can read."""
        if not at_once and self.clock() - self._at < _REDRAW_SECONDS:
            return
        shown = line[: max(self.width() - 1, 0)]
        _write(self.stream, "\r" + shown + " " * (len(self._drawn) - len(shown)))
        self._drawn, self._at = shown, self.clock()

    def clear(self) -> None:
        """Wipe the line that moves."""
        if self._drawn:
            _write(self.stream, "\r" + " " * len(self._drawn) + "\r")
            self._drawn = ""


@dataclass
class Log:
    """A file or pipe: whole lines without control characters, and a sign of life after a silence."""

    stream: TextIO
    clock: Callable[[], float] = time.monotonic
    _at: float = field(default_factory=time.monotonic)

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Write a line."""
        _write(self.stream, f"{line}{result}{more}\n")
        self._at = self.clock()

    def status(self, line: str, *, at_once: bool) -> None:
        """Write a line when nothing was written for a while."""
        del at_once
        if self.clock() - self._at >= SILENCE_SECONDS:
            self.say(line)

    def clear(self) -> None:
        """Do nothing: no line is unfinished."""


class Progress:
    """Counts tests by area and shows how far the run is; `seconds` everywhere are those of `clock`."""

    def __init__(self, tests: Sequence[Planned], screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        """Take all tests that will run."""
        self._screen = screen
        self._clock = clock
        self._areas = {name: _Area(name, total) for name, total in Counter(test.area for test in tests).items()}
        self._left = Counter(test.kind for test in tests)
        self._spent: dict[str, tuple[int, float]] = {}
        self._now: Planned | None = None
        self._started = self._began = clock()
        self._lock = threading.Lock()

    def opened(self, note: str) -> None:
        """Say what is going to be run."""
        total = plural(self._total, "test")
        with self._lock:
            self._screen.say(f"{total} of {plural(len(self._areas), 'area')}, {note}")

    def began(self, test: Planned) -> None:
        """Note that a test runs from now on."""
        with self._lock:
            self._now, self._began = test, self._clock()
            self._screen.status(self._line(), at_once=False)

    def ended(self, *, failed: bool, skipped: bool) -> None:
        """Note that the running test has ended, and how; say so when it was the last one of its area."""
        if self._now is None:
            return
        with self._lock:
            test, area = self._now, self._areas[self._now.area]
            seconds = self._clock() - self._began
            number, spent = self._spent.get(test.kind, (0, 0.0))
            self._spent[test.kind] = (number + 1, spent + seconds)
            self._left[test.kind] -= 1
            area.done += 1
            area.failed += failed
            area.skipped += skipped and not failed
            area.seconds += seconds
            if area.done == area.total:
                self._say_how_it_went(area, f"{self._done}/{self._total} in all")

    def tick(self) -> None:
        """Show that time goes by."""
        with self._lock:
            if self._now is not None:
                self._screen.status(self._line(), at_once=True)

    def closed(self) -> None:
        """Say which areas were begun and not finished, and make room for the reports."""
        with self._lock:
            self._now = None
            for area in self._areas.values():
                if 0 < area.done < area.total:
                    self._say_how_it_went(area, f"stopped after {area.done} of {area.total}")
            if self._done < self._total:
                self._screen.say(f"{plural(self._total - self._done, 'test')} not run")
            self._screen.clear()

    @property
    def _total(self) -> int:
        return sum(area.total for area in self._areas.values())

    @property
    def _done(self) -> int:
        return sum(area.done for area in self._areas.values())

    def _say_how_it_went(self, area: _Area, place: str) -> None:
        tests = plural(area.done, "test")
        self._screen.say(f"{area.name:32} {tests:>9}  ", f"{area.result:21}", f"{area.seconds:8.1f} s  {place}")

    def _line(self) -> str:
        """Say where the run is, as short as a terminal is narrow."""
        area = self._areas[self._now.area] if self._now else None
        failed = sum(each.failed for each in self._areas.values())
        parts = [f"{area.name} {area.done}/{area.total}"] if area else []
        parts += [f"{self._done}/{self._total} in all", f"{failed} failed" if failed else "none failed"]
        parts.append(f"{_minutes(self._clock() - self._started)}{self._rest()}")
        return "  ".join(parts)

    def _rest(self) -> str:
        seconds = self._estimate()
        return "" if seconds is None else f", about {_minutes(seconds)} left"

    def _estimate(self) -> float | None:
        """Guess the seconds that are left; None as long as there is nothing to guess by."""
        number = sum(number for number, _ in self._spent.values())
        if number < _ENOUGH_TO_GUESS:
            return None
        mean = sum(spent for _, spent in self._spent.values()) / number
        return sum(left * _mean(self._spent.get(kind), mean) for kind, left in self._left.items())


class ByArea:
    """A pytest plugin: progress by area in the place of a sign for each test."""

    def __init__(self, area_of: Callable[[pytest.Item], str], note: str, *, is_shown: bool) -> None:
        """Take what tells a test's area, and what the first line says of the run; or show nothing at all."""
        self._area_of = area_of
        self._note = note
        self._is_shown = is_shown
        self._progress: Progress | None = None
        self._seen: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, ...], tuple[str, ...]]:
        """Let pytest count a test and write nothing about it."""
        category, _, word = yield
        return category, "", word

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Show progress while the tests run."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter._show_progress_info = False  # noqa: SLF001 - percentages, which pytest has no switch for at run time
        if not self._is_shown or not session.items or session.config.option.collectonly:
            return (yield)
        with _screen(session.config) as screen:
            self._progress = Progress([self._planned(item) for item in session.items], screen)
            self._progress.opened(self._note)
            with _ticking(self._progress):
                return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Follow one test."""
        if self._progress is None:
            return (yield)
        self._seen.clear()
        self._progress.began(self._planned(item))
        result = yield
        self._progress.ended(failed="failed" in self._seen, skipped="skipped" in self._seen)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what the phases of the running test came to."""
        self._seen.add(report.outcome)

    def _planned(self, item: pytest.Item) -> Planned:
        return Planned(self._area_of(item), item.nodeid.split("[", maxsplit=1)[0])


@contextmanager
def _ticking(progress: Progress) -> Iterator[None]:
    """Let time be seen to go by as long as the context lasts, also while one test takes long."""
    is_over = threading.Event()

    def tick() -> None:
        while not is_over.wait(_TICK_SECONDS):
            progress.tick()

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        progress.closed()


@contextmanager
def _screen(config: pytest.Config) -> Iterator[Screen]:
    """Open the terminal or log behind standard output, past pytest's capturing of what tests print."""
    sys.stdout.flush()
    stream: TextIO = sys.stdout
    with suppress(OSError, ValueError):  # with no file behind it, as in a test, it is written to directly
        stream = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8", errors="replace")
    try:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        colour = bool(reporter is not None and reporter.hasmarkup)
        yield Live(stream, colour) if _is_live(stream, config, os.environ) else Log(stream)
    finally:
        if stream is not sys.stdout:
            with suppress(OSError):
                stream.close()


def _is_live(stream: TextIO, config: pytest.Config, environment: Mapping[str, str]) -> bool:
    """Tell whether a line may be drawn again: somebody sits before it, and no test writes into it."""
    if environment.get("CI") or environment.get("TERM") == "dumb" or config.option.capture == "no":
        return False
    return stream.isatty()


def _write(stream: TextIO, text: str) -> None:
    """Write at once; a reader that has gone away is for those to notice who write results."""
    with suppress(OSError, ValueError):
        stream.write(text)
        stream.flush()


def _mean(spent: tuple[int, float] | None, otherwise: float) -> float:
    return spent[1] / spent[0] if spent else otherwise


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
