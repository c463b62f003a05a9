"""A test that failed runs once more: what comes again is a failure, and what does not is unstable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.results.record import Check, Outcome, TestEnd, TestOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.results.recorder import Line


def has_failed(lines: Iterable[Line]) -> bool:
    """Tell whether a test saw a violation."""
    return bool(_failed(lines))


def confirmed(first: Sequence[Line], second: Sequence[Line]) -> Iterator[Line]:
    """
    Yield the lines of a test that ran twice: those of its second time, and what failed in one of both times only.

    What failed both times stays failed. What failed once is unstable, with the evidence of the time when it failed.
    """
    failed_first, failed_again = _failed(first), _failed(second)
    unstable = [
        *_unstable(first, failed_first - failed_again, "it failed at first, and not when the test ran once more"),
        *_unstable(second, failed_again - failed_first, "it held at first, and failed when the test ran once more"),
    ]
    requests = sum(line.requests for line in first if isinstance(line, TestEnd))
    seconds = sum(line.seconds for line in first if isinstance(line, TestEnd))
    for line in second:
        if isinstance(line, Check) and line.outcome is Outcome.FAILED and line.requirement not in failed_first:
            continue
        if not isinstance(line, TestEnd):
            yield line
            continue
        yield from unstable
        ended = _end(line, steady=bool(failed_first & failed_again), unstable=bool(unstable))
        yield replace(ended, requests=line.requests + requests, seconds=round(line.seconds + seconds, 3))


def _failed(lines: Iterable[Line]) -> set[str]:
    return {line.requirement for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED}


def _unstable(lines: Iterable[Line], requirements: set[str], detail: str) -> Iterator[Check]:
    for line in lines:
        if isinstance(line, Check) and line.outcome is Outcome.FAILED and line.requirement in requirements:
            yield replace(line, outcome=Outcome.UNSTABLE, detail=detail)


def _end(end: TestEnd, *, steady: bool, unstable: bool) -> TestEnd:
    if steady or not unstable or end.outcome is TestOutcome.BROKEN:
        return end
    return replace(end, outcome=TestOutcome.UNSTABLE, detail="it came to something else when it ran once more")
