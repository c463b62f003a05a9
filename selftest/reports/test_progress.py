"""Progress by area: what is left is always said, a log gets whole lines, and pytest's own output is one option away."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance.runner.progress import SILENCE_SECONDS, Live, Log, Planned, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TESTS = [Planned("scope", "one"), Planned("scope", "two"), Planned("rules", "one"), Planned("rules", "two")]
ONE_TEST = ("--requirement", "authentication.private-token-spelling", "--out", "out")


class Clock:
    """A clock that stands still until it is put forward."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Screen:
    """What would be shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.state = ""

    def say(self, line: str, result: str = "", more: str = "") -> None:
        self.lines.append(" ".join(f"{line}{result}{more}".split()))

    def status(self, line: str, *, at_once: bool) -> None:
        del at_once
        self.state = line

    def clear(self) -> None:
        self.state = ""


def run_through(progress: Progress, clock: Clock, tests: list[Planned], *, failed: bool = False) -> None:
    for test in tests:
        progress.began(test)
        clock.now += 2
        progress.ended(failed=failed, skipped=False)


def test_an_area_gets_a_line_when_its_last_test_has_ended() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock)
    progress.opened("seed 7")
    run_through(progress, clock, TESTS)
    progress.closed()
    assert screen.lines == [
        "4 tests of 2 areas, seed 7",
        "scope 2 tests ok 4.0 s 2/4 in all",
        "rules 2 tests ok 4.0 s 4/4 in all",
    ]


def test_areas_are_counted_also_when_their_tests_take_turns() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock)
    run_through(progress, clock, [TESTS[2], TESTS[0], TESTS[3]])
    assert screen.lines == ["rules 2 tests ok 4.0 s 3/4 in all"]
    progress.began(TESTS[1])
    assert screen.state.startswith("scope 1/2  3/4 in all  none failed  0:06")


def test_failures_and_skipped_tests_are_counted_where_they_are() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock)
    run_through(progress, clock, TESTS[:1], failed=True)
    progress.began(TESTS[1])
    progress.ended(failed=False, skipped=True)
    progress.began(TESTS[2])
    assert screen.lines == ["scope 2 tests 1 failed, 1 skipped 2.0 s 2/4 in all"]
    assert "rules 0/2  2/4 in all  1 failed" in screen.state


def test_what_is_left_is_guessed_from_tests_of_the_same_kind() -> None:
    tests = [Planned("scope", "slow")] * 6 + [Planned("rules", "slow")] * 3 + [Planned("rules", "new")]
    screen, clock = Screen(), Clock()
    progress = Progress(tests, screen, clock)
    progress.began(tests[0])
    assert "left" not in screen.state
    run_through(progress, clock, tests[:6])
    progress.began(tests[6])
    assert screen.state.endswith("0:12, about 0:08 left")


def test_a_run_that_ends_early_says_what_was_not_run() -> None:
    screen, clock = Screen(), Clock()
    progress = Progress(TESTS, screen, clock)
    run_through(progress, clock, TESTS[:1])
    progress.closed()
    assert screen.lines == ["scope 1 test ok 2.0 s stopped after 1 of 2", "3 tests not run"]


def test_a_log_gets_a_sign_of_life_after_a_silence_and_not_before() -> None:
    stream, clock = io.StringIO(), Clock()
    log = Log(stream, clock)
    log.say("begun")
    for seconds in (SILENCE_SECONDS - 1, SILENCE_SECONDS, SILENCE_SECONDS + 1, 2 * SILENCE_SECONDS):
        clock.now = seconds
        log.status(f"after {seconds:g}", at_once=True)
    assert stream.getvalue().splitlines() == [
        "begun",
        f"after {SILENCE_SECONDS:g}",
        f"after {2 * SILENCE_SECONDS:g}",
    ]


def test_a_terminal_line_is_never_wider_than_the_terminal_and_leaves_nothing_behind() -> None:
    stream = io.StringIO()
    live = Live(stream, colour=False, width=lambda: 20)
    live.status("x" * 50, at_once=True)
    live.status("y" * 5, at_once=True)
    live.say("an area", " ok", " 1 s")
    live.clear()
    assert stream.getvalue() == "\r" + "x" * 19 + "\r" + "y" * 5 + " " * 14 + "\r     \ran area ok 1 s\n"


def test_only_the_result_has_a_colour_and_only_where_colours_are_wanted() -> None:
    shown = {}
    for colour in (True, False):
        stream = io.StringIO()
        Live(stream, colour).say("job-token-scope ", "ok", " 1 s")
        shown[colour] = stream.getvalue()
    assert shown[True] == "job-token-scope \x1b[32mok\x1b[0m 1 s\n"
    assert shown[False] == "job-token-scope ok 1 s\n"


def test_a_reader_that_has_gone_away_is_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    Log(stream).say("nobody reads this")
    Live(stream, colour=True).status("nor this", at_once=True)


# -- inside pytest -----------------------------------------------------------------------------------------------------

MODULE = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_scope(number):
    print("a test may print")

def test_rules_fail():
    assert False

def test_rules_skip():
    pytest.skip("not for this target")
"""
PROGRAM = """
import sys, pytest
from conformance.runner.progress import ByArea
by_area = ByArea(lambda item: item.name.split("_")[1].split("[")[0], "seed 7", is_shown=True)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "test_sample.py"], plugins=[by_area]))
"""


@pytest.fixture
def sample(tmp_path: Path) -> Callable[..., str]:
    """Run a few tests under the plugin, on a terminal or into a file; return what was shown."""
    (tmp_path / "test_sample.py").write_text(MODULE, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "FORCE_COLOR")}

    def run(*, terminal: bool, **environment: str) -> str:
        arguments: dict[str, Any] = {"cwd": tmp_path, "env": {**kept, "TERM": "xterm", **environment}}
        if not terminal:
            command = [sys.executable, "-c", PROGRAM]
            return str(subprocess.run(command, capture_output=True, text=True, check=False, **arguments).stdout)
        return on_terminal(arguments)

    return run


def on_terminal(arguments: Mapping[str, Any]) -> str:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=theirs, stdout=theirs, stderr=theirs, **arguments):
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


def test_a_log_holds_a_line_for_each_area_and_no_control_character(sample: Callable[..., str]) -> None:
    shown = sample(terminal=False)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == "5 tests of 2 areas, seed 7"
    assert lines[1].startswith("scope 3 tests ok")
    assert lines[2].startswith("rules 2 tests 1 failed, 1 skipped")
    assert lines[2].endswith("5/5 in all")
    assert "FAILED test_sample.py::test_rules_fail" in shown
    assert "1 failed, 3 passed, 1 skipped" in shown
    assert "%]" not in shown
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_terminal_shows_the_area_that_runs_and_what_is_left(sample: Callable[..., str]) -> None:
    shown = sample(terminal=True)
    assert "\rscope 0/3  0/5 in all  none failed" in shown
    assert "\x1b[32mok" in shown
    assert "a test may print" not in shown.split("FAILURES", maxsplit=1)[0]


def test_a_terminal_without_colours_gets_none(sample: Callable[..., str]) -> None:
    shown = sample(terminal=True, NO_COLOR="1")
    assert "\rscope 0/3" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("setting", [{"CI": "true"}, {"TERM": "dumb"}])
def test_a_terminal_that_nobody_watches_is_a_log(sample: Callable[..., str], setting: dict[str, str]) -> None:
    shown = sample(terminal=True, **setting)
    assert "\r" not in shown.replace("\r\n", "\n")
    assert "scope" in shown


# -- the command -------------------------------------------------------------------------------------------------------


def test_a_quiet_run_says_only_what_it_came_to(conformance: Callable[..., Any]) -> None:
    outcome = conformance("run", "-q", *ONE_TEST)
    assert "SELECTION HOLDS" in outcome.out, outcome.text
    assert not any(said in outcome.out for said in ("1 area", "in all", "[100%]", "\nauthentication"))


def test_more_words_from_pytest_are_its_own(conformance: Callable[..., Any]) -> None:
    outcome = conformance("run", *ONE_TEST, "--", "-v")
    assert "PASSED" in outcome.out, outcome.text
    assert "[100%]" in outcome.out
    assert "1 area" not in outcome.out
