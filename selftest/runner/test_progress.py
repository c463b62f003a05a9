"""Progress by area: the remaining time is always shown, a log has whole lines, one option gives pytest's output."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.runner import display
from conformance.runner.display import SILENCE_SECONDS, Live, Log, State, screen_on
from conformance.runner.progress import Progress
from conformance.runner.time_left import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

TESTS = {"one[scope]": "scope", "two[scope]": "scope", "one[rules]": "rules", "two[rules]": "rules"}
ONE_TEST = ("--requirement", "authentication.private-token-spelling", "--out", "out")


class Clock:
    """A clock that stands still until a test advances it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """What would be on the screen."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.state = ""

    def say(self, line: str, result: str = "", more: str = "") -> None:
        self.lines.append(" ".join(f"{line}{result}{more}".split()))

    def status(self, state: State) -> None:
        self.state = f"{state.area}  {state.done}/{state.total} in all  {state.rest}"


def run_through(progress: Progress, clock: Clock, tests: Sequence[str], *, failed: bool = False) -> None:
    for test in tests:
        progress.began(test)
        clock.now += 2
        progress.ended(test, 2, failed=failed, skipped=False)


def test_an_area_gets_a_line_when_its_last_test_has_ended() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock=clock)
    progress.opened("the embedded reference, seed 7")
    run_through(progress, clock, list(TESTS))
    progress.closed()
    assert screen.lines == [
        "4 tests, the embedded reference, seed 7",
        "scope 2 tests ok 4.0 s 2/4 in all",
        "rules 2 tests ok 4.0 s 4/4 in all",
    ]


def test_a_test_that_runs_twice_is_counted_once() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock=clock)
    run_through(progress, clock, ["one[scope]", "one[scope]", *list(TESTS)[1:]])
    assert screen.lines == ["scope 2 tests ok 6.0 s 2/4 in all", "rules 2 tests ok 4.0 s 4/4 in all"]


def test_areas_are_counted_even_if_their_tests_alternate() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock=clock)
    run_through(progress, clock, ["one[rules]", "one[scope]", "two[rules]"])
    assert screen.lines == ["rules 2 tests ok 4.0 s 3/4 in all"]
    progress.began("two[scope]")
    assert screen.state.startswith("scope 1/2  3/4 in all  none failed  0:06")


def test_tests_of_several_workers_may_overlap() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, workers=2, clock=clock)
    for test in TESTS:
        progress.began(test)
    for test in TESTS:
        progress.ended(test, 1, failed=False, skipped=False)
    assert [line.split()[0] for line in screen.lines] == ["scope", "rules"]


def test_failures_and_skipped_tests_are_counted_in_their_area() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock=clock)
    run_through(progress, clock, ["one[scope]"], failed=True)
    progress.ended("two[scope]", 0, failed=False, skipped=True)
    progress.began("one[rules]")
    assert screen.lines == ["scope 2 tests 1 failed, 1 skipped 2.0 s 2/4 in all"]
    assert "rules 0/2  2/4 in all  1 failed" in screen.state


@pytest.mark.parametrize(("workers", "left"), [(1, "0:08"), (2, "0:04")])
def test_the_remaining_time_is_estimated_from_tests_of_the_same_kind(workers: int, left: str) -> None:
    tests = {f"slow[{number}]": "scope" for number in range(9)} | {"new": "rules"}
    screen, clock = Screen(), Clock()
    progress = Progress(tests, screen, workers=workers, clock=clock)
    progress.began("slow[0]")
    assert "left" not in screen.state
    run_through(progress, clock, list(tests)[:6])
    progress.began("slow[6]")
    assert screen.state.endswith(f"0:12, about {left} left")


def test_a_test_that_takes_long_is_named_as_the_target_may_hang_there() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, workers=2, clock=clock)
    progress.began("one[scope]")
    run_through(progress, clock, list(TESTS)[1:])
    assert "running" not in screen.state
    clock.now = 45
    progress.tick()
    assert screen.state.endswith("; one[scope] has been running for 0:45")


def test_a_test_whose_last_attempt_does_not_count_is_not_said_to_be_running() -> None:
    """An attempt with other fixtures that saw less is dropped, and none follows it."""
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, workers=2, clock=clock)
    progress.began("one[scope]")
    progress.stopped("one[scope]")
    clock.now = 45
    progress.tick()
    assert "running" not in screen.state


def test_a_run_that_ends_early_says_how_many_tests_were_not_run() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock=clock)
    run_through(progress, clock, ["one[scope]"])
    progress.closed()
    assert screen.lines == ["scope 1 test ok 2.0 s stopped after 1 of 2", "3 tests not run"]


def test_a_log_gets_a_line_after_a_time_without_output_and_not_before() -> None:
    stream, clock = io.StringIO(), Clock()
    log = screen_on(stream, colour=True, may_move=True)
    assert isinstance(log, Log)
    log.clock = clock
    log.say("begun")
    for seconds in (SILENCE_SECONDS - 1, SILENCE_SECONDS, SILENCE_SECONDS + 1, 2 * SILENCE_SECONDS):
        clock.now = seconds
        log.status(State("scope 1/2", 1, 4, f"after {seconds:g}"))
    assert stream.getvalue().splitlines() == [
        "begun",
        f"scope 1/2  1/4 in all  after {SILENCE_SECONDS:g}",
        f"scope 1/2  1/4 in all  after {2 * SILENCE_SECONDS:g}",
    ]


def test_a_line_of_a_log_is_never_broken_or_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    screen_on(stream, colour=True, may_move=True).say("x" * 200, " [ok]", " :smile:")
    assert stream.getvalue() == "x" * 200 + " [ok] :smile:\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colour", [True, False])
def test_only_the_result_is_coloured_and_only_on_request(monkeypatch: pytest.MonkeyPatch, *, colour: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    screen = screen_on(stream, colour=colour, may_move=True)
    assert isinstance(screen, Live)
    screen.say("job-token-scope ", "ok", " 1 s")
    shown = "\x1b[32mok\x1b[0m" if colour else "ok"
    assert stream.getvalue() == f"job-token-scope {shown} 1 s\n"


def test_a_reader_that_closed_the_pipe_is_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    screen_on(stream, colour=True, may_move=True).say("nobody reads this")


# -- the command -------------------------------------------------------------------------------------------------------

FEW = tuple(f"--requirement=authentication.{name}" for name in ("private-token-spelling", "empty-token-is-refused"))
RUN = ("run", *FEW, "--corpus", "none", "--seed", "7", "--out", "out")


@pytest.fixture
def shown(tmp_path: Path) -> Callable[..., str]:
    """Run a few tests on a terminal or into a file; return the output."""
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "FORCE_COLOR")}

    def run(*more: str, terminal: bool, **environment: str) -> str:
        arguments: dict[str, Any] = {"cwd": tmp_path, "env": {**kept, "TERM": "xterm", **environment}}
        command = [sys.executable, "-m", "conformance", *RUN, *more]
        if not terminal:
            return str(subprocess.run(command, capture_output=True, text=True, check=False, **arguments).stdout)
        return on_terminal(command, arguments)

    return run


def on_terminal(command: Sequence[str], arguments: Mapping[str, Any]) -> str:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, **arguments):
        os.close(theirs)
        shown = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                read = b""
            if not read:
                break
            shown += read
    os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_log_has_a_line_for_each_area_and_no_control_character(shown: Callable[..., str], workers: str) -> None:
    output = shown("--workers", workers, terminal=False)
    lines = [" ".join(line.split()) for line in output.splitlines()]
    opening = next(line for line in lines if "the embedded reference" in line)
    assert opening.endswith("seed 7" if workers == "1" else "seed 7, 2 workers")
    assert any(line.startswith("authentication ") and line.endswith("in all") for line in lines)
    assert not any(said in output for said in ("%]", "bringing up"))
    assert all(character.isprintable() or character == "\n" for character in output)


def test_a_terminal_shows_the_current_area_and_the_remaining_time(shown: Callable[..., str]) -> None:
    output = shown(terminal=True)
    assert "in all  none failed" in output
    assert "\x1b[32mok" in output


def test_a_terminal_without_colours_gets_none(shown: Callable[..., str]) -> None:
    output = shown(terminal=True, NO_COLOR="1")
    assert "in all  none failed" in output
    assert "\x1b[3" not in output


@pytest.mark.parametrize("setting", [{"CI": "true"}, {"TERM": "dumb"}])
def test_a_dumb_terminal_and_one_of_ci_get_a_log(shown: Callable[..., str], setting: dict[str, str]) -> None:
    output = shown(terminal=True, **setting)
    assert "\r" not in output.replace("\r\n", "\n")
    assert "authentication" in output


def test_a_quiet_run_shows_only_its_result(conformance: Callable[..., Any]) -> None:
    outcome = conformance("run", "-q", *ONE_TEST)
    assert "SELECTION HOLDS" in outcome.out, outcome.text
    assert not any(said in outcome.out for said in ("1 test, ", "in all", "[100%]"))


@pytest.mark.parametrize("quiet", [(), ("-q",)], ids=["as usual", "quiet"])
def test_a_run_with_a_low_request_rate_shows_that_it_checks_the_profile_and_puts_back(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    quiet: tuple[str, ...],
) -> None:
    write_profile(*reference)
    monkeypatch.setattr(display, "SILENCE_SECONDS", 0.3)
    options = ("--target", "target.yaml", "--requirement", "job-token-scope.settings.read", "--max-rps", "80")
    outcome = conformance("run", *quiet, *options, "--workers", "1", "--out", "out")
    lines = [line for line in outcome.out.splitlines() if line.startswith("before the first test: target and profile")]
    assert (len(lines) > 0) is not bool(quiet), outcome.text
    assert all("at most 80 a second" in line for line in lines)
    assert ("after the last test: putting back what was changed" in outcome.out) is not bool(quiet), outcome.text


def test_with_v_for_pytest_the_output_is_that_of_pytest(conformance: Callable[..., Any]) -> None:
    outcome = conformance("run", *ONE_TEST, "--", "-v")
    assert "PASSED" in outcome.out, outcome.text
    assert "1 test, " not in outcome.out


def test_the_remaining_time_is_at_least_that_of_the_longest_test() -> None:
    tests = {f"small[{number}]": "scope" for number in range(6)} | {"large": "rules"}
    screen, clock = Screen(), Clock()
    weights = {**dict.fromkeys(tests, 1.0), "large": 20.0}
    progress = Progress(tests, screen, workers=4, work=Work(weights), clock=clock)
    progress.began("large")
    run_through(progress, clock, list(tests)[:6])
    progress.tick()
    assert screen.state.endswith("0:12, about 0:28 left")


def test_an_untypical_first_test_hardly_changes_the_remaining_time() -> None:
    # The first two take a tenth of the estimate; the time of their requests gives the estimate for the others.
    tests = {f"short_{number}": "scope" for number in range(2)} | {f"long_{number}": "rules" for number in range(9)}
    screen, clock = Screen(), Clock()
    weights = dict.fromkeys(tests, 20.0)
    progress = Progress(tests, screen, work=Work(weights, pace=lambda: 1.0), clock=clock)
    run_through(progress, clock, list(tests)[:2])
    progress.tick()
    # 4 s for the 40 estimated requests, and 22 s for a tenth of all 220: 0.42 s for each of the other 180.
    assert screen.state.endswith("0:04, about 1:15 left")


def test_before_the_first_test_ends_the_pace_of_responses_gives_the_remaining_time() -> None:
    tests = {f"test_{number}": "scope" for number in range(4)}
    screen, clock = Screen(), Clock()
    work = Work(dict.fromkeys(tests, 30.0), pace=lambda: 0.5)
    progress = Progress(tests, screen, workers=2, work=work, clock=clock)
    progress.began("test_0")
    assert screen.state.endswith("0:00, about 0:30 left")
