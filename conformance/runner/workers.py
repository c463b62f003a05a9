"""Runs tests side by side: what the processes of pytest-xdist tell each other.

One process keeps the plan and the record. Each worker runs tests in a world of its own, and sends the lines that a
test wrote along with pytest's report of the test.
"""

from __future__ import annotations

import gc
import signal
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError
from conformance.results.durations import weight_of
from conformance.results.record import NetworkUse, Notice, TestEnd, TestOutcome
from conformance.results.recorder import encoded
from conformance.results.text import one_line
from conformance.runner.location import SUITE_FOLDER
from conformance.runner.precautions import ENDING
from conformance.runner.session import ProcessSummary, Session, Share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

    from conformance.runner.job import Job

_SEED = "conformance_seed"
_WORLD = "conformance_world"
_RUN = "conformance_run"
_FOLDER = "conformance_folder"
_ORDER = "conformance_order"
_KEPT = "conformance_kept"
_CASES = "conformance_cases"
#: The thresholds of Python's garbage collector: new objects, and how often it looks at older ones.
_SELDOM = (50_000, 10, 5)
_CRASHED = "the process that ran it crashed, or was killed, perhaps because the system ran out of memory"
#: The name of what a report carries, and of what a worker leaves when it ends.
_SAID = "conformance_said"
_SUMMARY = "conformance_summary"


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is a worker that another one started."""
    return hasattr(config, "workerinput")


def has_workers(config: pytest.Config) -> bool:
    """Tell whether this process starts workers that run tests of the suite."""
    is_shared_out = bool(getattr(config.option, "tx", None)) and config.option.dist != "no"
    return not is_worker(config) and is_shared_out and any(_is_of_suite(argument) for argument in config.args)


def _is_of_suite(argument: str) -> bool:
    """Tell whether an argument of pytest names tests of the suite, or a folder that contains them."""
    path = Path(argument.partition("::")[0]).resolve()
    return path.is_relative_to(SUITE_FOLDER) or SUITE_FOLDER.is_relative_to(path)


def number_of(config: pytest.Config) -> int:
    """Return how many processes run tests side by side; raise UsageError when each would run every test."""
    if not has_workers(config):
        return 1
    if config.option.dist == "each":
        raise UsageError("--dist each lets every worker run every test. Leave --dist out: workers share the tests.")
    # Each entry names a kind of process, perhaps with a number of them in front, such as `2*popen`.
    kinds = (str(entry).partition("*") for entry in config.option.tx)
    return sum(int(number) if star else 1 for number, star, _ in kinds)


def told_to_worker(session: Session, number: int) -> dict[str, Any]:
    """Return what a worker with this number needs to know about the run."""
    world = session.freed_worlds.pop() if session.freed_worlds else session.share.world + number
    order = {"beside": session.options.workers, "seconds": dict(session.durations.known())}
    return {
        _SEED: session.seed,
        _WORLD: world,
        _RUN: session.name,
        _FOLDER: str(session.job.folder.absolute()),
        _ORDER: order,
        _KEPT: sorted(session.job.kept),
        _CASES: str(session.cases.share()),
    }


def begin(config: pytest.Config) -> None:
    """Make Python's garbage collector run rarely, and in a worker not before the tests are collected.

    A run makes almost no garbage, and the collector took a tenth of the time.
    """
    gc.set_threshold(*_SELDOM)
    if is_worker(config):
        gc.disable()


def go_on(config: pytest.Config) -> None:
    """Exclude all present objects of a worker from garbage collection, now and when it ends."""
    if is_worker(config):
        gc.freeze()
        gc.enable()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """While the context lasts, hold interrupts back; a process that is started in it gets none.

    Ctrl-C reaches all processes of a terminal: a worker that has only begun would show a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def session_of_worker(job: Job, told: Mapping[str, Any]) -> Session:
    """Return the session of a worker: it has a world of its own and keeps no record."""
    # Signals to all processes of a terminal or a service are for the process with the record: it ends the workers.
    for number in (signal.SIGINT, *ENDING):
        signal.signal(number, signal.SIG_IGN)
    options = replace(job.options, out=Path(told[_FOLDER]))
    own = replace(job, options=options, seed=told[_SEED], kept=frozenset(told[_KEPT]))
    share = Share(told[_WORLD], told[_ORDER]["beside"], told[_ORDER]["seconds"])
    session = Session(own, share, keeps_record=False, name=told[_RUN])
    session.cases.take_from(Path(told[_CASES]))
    return session


def draw_for_all(session: Session) -> None:
    """Start drawing, in one process, the cases that workers will ask for, in about the order in which they ask."""
    if session.plan is not None:
        wanted = session.plan.tests.keys() - session.plan.left_out.keys() - session.job.kept
        in_turn = sorted(wanted, key=lambda name: (-weight_of(name), name))
        session.cases.share()
        session.draw_ahead(in_turn)


def hand_over(session: Session, report: pytest.TestReport) -> None:
    """Attach the lines that a test wrote to the last report of the test."""
    said = {
        "lines": [encoded(line) for line in session.writer.lines],
        "ended": sorted(session.writer.ended),
        "requests": session.writer.requests_of_ended,
        "stopped": session.ending.stopped,
    }
    report.user_properties.append((_SAID, said))
    session.writer.lines.clear()
    session.writer.ended.clear()
    session.writer.requests_of_ended = 0


def take_over(session: Session, report: pytest.TestReport) -> None:
    """Write the lines attached to a report into the record."""
    said = next((value for name, value in report.user_properties if name == _SAID), None)
    if session.writer.recorder is None or not isinstance(said, dict):
        return
    report.user_properties[:] = [entry for entry in report.user_properties if entry[0] != _SAID]
    for line in said["lines"]:
        session.writer.recorder.append(line)
    session.writer.ended.update(said["ended"])
    session.writer.requests_of_ended += said["requests"]
    session.ending.stopped = session.ending.stopped or said["stopped"]


def leave(session: Session, output: dict[str, Any]) -> None:
    """Leave a summary of all tests of this worker."""
    output[_SUMMARY] = asdict(session.summary)
    gc.freeze()  # this process ends: there is nothing in it that anybody has to look for


def note_crash(session: Session, told: Mapping[str, Any], error: object) -> None:
    """Record that a worker crashed; the worker that replaces it gets its world."""
    session.freed_worlds.append(told[_WORLD])
    session.writer.write(Notice(f"A process that ran tests crashed, and another took its place: {one_line(error)}."))


def note_crashed_test(session: Session, test: str) -> None:
    """Record a test during which its worker crashed: whatever the cause, the target is not to blame."""
    if test not in session.writer.ended:
        session.writer.write(TestEnd(test, TestOutcome.BROKEN, detail=_CRASHED, phase="call"))


def take_leave(session: Session, output: Mapping[str, Any]) -> None:
    """Read the summary that a worker left; a crashed one leaves none."""
    if _SUMMARY in output:
        told = output[_SUMMARY]
        session.of_workers.append(ProcessSummary(**{**told, "network": NetworkUse(**told["network"])}))
