"""
Tests side by side: what processes of pytest-xdist tell each other.

One process keeps the plan and the record; each worker runs tests in a world of its own and sends the lines that a test
wrote along with pytest's report of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.errors import UsageError
from conformance.results.recorder import encoded

if TYPE_CHECKING:
    import pytest

    from conformance.runner.session import Session

_LINES = "conformance_lines"
_ENDED = "conformance_ended"
_STOPPED = "conformance_stopped"
_SEED = "conformance_seed"
_WORLD = "conformance_world"


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is a worker that another one started."""
    return hasattr(config, "workerinput")


def has_workers(config: pytest.Config) -> bool:
    """Tell whether this process lets workers run its tests."""
    return not is_worker(config) and bool(getattr(config.option, "tx", None)) and config.option.dist != "no"


def require_shared_work(config: pytest.Config) -> None:
    """Raise UsageError when each worker would run every test: a test ends once."""
    if has_workers(config) and config.option.dist == "each":
        raise UsageError("--dist each lets every worker run every test. Leave --dist out: workers share the tests.")


def told_to_worker(session: Session, number: int) -> dict[str, Any]:
    """Return what a worker of a number has to know of the run."""
    return {_SEED: session.seed, _WORLD: number}


def become_worker(session: Session, told: dict[str, Any]) -> None:
    """Let a session be that of a worker: it has a world of its own and keeps no record."""
    session.seed, session.world, session.keeps_record = told[_SEED], told[_WORLD], False


def hand_over(session: Session, report: pytest.TestReport) -> None:
    """Let the last report of a test take along what the test wrote."""
    vars(report)[_LINES] = [encoded(line) for line in session.lines]
    vars(report)[_ENDED] = sorted(session.ended)
    vars(report)[_STOPPED] = session.stopped
    session.lines.clear()
    session.ended.clear()


def take_over(session: Session, report: pytest.TestReport) -> None:
    """Write into the record what came along with a report."""
    if session.recorder is None or not hasattr(report, _LINES):
        return
    for line in getattr(report, _LINES):
        session.recorder.append(line)
    session.ended.update(getattr(report, _ENDED))
    session.stopped = session.stopped or getattr(report, _STOPPED)
