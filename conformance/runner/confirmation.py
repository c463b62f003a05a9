"""
A test that failed runs once more: what comes again is a failure, and what does not is unstable.

One that the network spoiled begins anew, for it shows nothing: a call was not answered, and what it did is not known.
One that could not be brought to what it verifies is tried with other fixtures of the world.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.record import Check, Outcome, TestEnd, TestOutcome
from conformance.target.stand_ins import Elsewhere, StandIn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.results.recorder import Line
    from conformance.suite.context import Run, TestContext

#: How often the same call may be the first without an answer, until that is no accident.
_ACCIDENTS = 3
_SPOILED = frozenset({TestOutcome.FAILED, TestOutcome.INCONCLUSIVE, TestOutcome.BROKEN})


@dataclass
class Attempts:
    """How often a test ran, and what of that counts."""

    most: int
    """How often at most it begins anew because the network spoiled it."""
    confirms: bool
    """Whether it runs once more when it failed."""
    area: str = ""
    elsewhere: Elsewhere = field(default_factory=Elsewhere)
    """What it may be tried with."""
    stand_in: StandIn | None = None
    """What it is tried with now, in the place of what the profile names; None for that itself."""
    is_wanted: bool = False
    """Whether it is to run again."""
    anew: int = 0
    """How often it began anew."""
    _first: Sequence[Line] | None = None
    """What it wrote when it failed for the first time."""
    _spoiled_by: Counter[str] = field(default_factory=Counter)
    """How often which call was the first one without an answer."""
    _requests: int = 0
    _seconds: float = 0.0
    _best: Sequence[Line] | None = None
    """What it wrote where it saw most, of the places where it was tried."""
    _left: list[StandIn] | None = None

    @classmethod
    def of(cls, run: Run, area: str, *, confirms: bool) -> Attempts:
        """Return those of a test of an area; where nothing is confirmed, it runs once."""
        most, elsewhere = (run.profile.retries.tests, run.elsewhere) if confirms else (0, Elsewhere())
        return cls(most, confirms, area, elsewhere)

    def hand_out(self, run: Run) -> None:
        """Let the test have what takes the place of what; of a target that is gone by now it has what there is."""
        profile = None
        if self.stand_in is not None:
            with suppress(TargetGoneError, RequestsSpentError):
                profile = self.stand_in.profile(run.client)
        run.take(profile)

    def counts(self, test: TestContext, outcome: TestOutcome) -> bool:
        """Tell whether what a test came to in this attempt is its last word, as far as that is known by now."""
        if outcome in _SPOILED and self._is_spoiled(test):
            return False
        if self._goes_on(test):
            return False
        is_last = self._first is not None or self.stand_in is not None or not self.confirms
        return is_last or outcome is not TestOutcome.FAILED

    def lines_of(self, lines: Sequence[Line], test: TestContext) -> Sequence[Line] | None:
        """Return the lines that count when an attempt has ended; None where the test is to run again."""
        if test.spoiled_by is not None and self._is_spoiled(test) and any(map(_is_open, lines)):
            self._spoiled_by[test.spoiled_by] += 1
            self.is_wanted, self.anew = True, self.anew + 1
            self._requests += sum(line.requests for line in lines if isinstance(line, TestEnd))
            self._seconds += sum(line.seconds for line in lines if isinstance(line, TestEnd))
            return None
        if self.stand_in is None and self._first is None and self.confirms and has_failed(lines):
            self._first, self.is_wanted = lines, True
            return None
        found = self.all_of(lines)
        if self.stand_in is not None and self._best is not None and not _is_untested(lines):
            self.elsewhere.learn(self.area, self.stand_in, is_better=_unseen(found) < _unseen(self._best))
        if not self._goes_on(test):
            return found
        self._best, self.stand_in, self.is_wanted = found, self._places.pop(0), True
        self._requests, self._seconds = 0, 0.0
        return None

    @property
    def _places(self) -> list[StandIn]:
        """What is left to try it with."""
        if self._left is None:
            self._left = self.elsewhere.of(self.area)
        return self._left

    def _goes_on(self, test: TestContext) -> bool:
        """Tell whether the test is to be tried with other fixtures: what it saw violated needs no others."""
        if self._first is not None or not self._places:
            return False
        if self.stand_in is None:
            return test.results.is_unmet and not test.results.failures
        return test.results.is_unmet or bool(test.results.failures)

    def all_of(self, lines: Sequence[Line]) -> list[Line]:
        """Return what counts when these are the lines of the last attempt."""
        if self._best is not None and self.stand_in is not None:
            found = _better(self._best, lines, self.stand_in.what)
        else:
            found = list(lines) if self._first is None else list(confirmed(self._first, lines))
        return [_with(line, self._requests, self._seconds) if isinstance(line, TestEnd) else line for line in found]

    def _is_spoiled(self, test: TestContext) -> bool:
        """Tell whether the test is to begin anew; what one call never answers is no accident of the network."""
        cause = test.spoiled_by
        return cause is not None and self._spoiled_by[cause] < _ACCIDENTS and self.anew < self.most


def _with(end: TestEnd, requests: int, seconds: float) -> TestEnd:
    return replace(end, requests=end.requests + requests, seconds=round(end.seconds + seconds, 3))


def _better(known: Sequence[Line], lines: Sequence[Line], what: str) -> list[Line]:
    """
    Return what counts of a test that was tried with other fixtures as well: that time by which more was seen.

    What these show as violated is told, and fails nothing: nobody said that all which is owed is owed there.
    """
    failed = {line.requirement: line for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED}
    is_whole = not failed and all(line.outcome is not TestOutcome.BROKEN for line in lines if isinstance(line, TestEnd))
    found, others = (lines, known) if is_whole and _unseen(lines) < _unseen(known) else (known, lines)
    spent = [line for line in others if isinstance(line, TestEnd)]
    requests, seconds = sum(line.requests for line in spent), sum(line.seconds for line in spent)
    told: list[Line] = []
    for line in found:
        if isinstance(line, TestEnd):
            detail = f"tried with {what}, for: {spent[0].detail}" if found is lines and spent else line.detail
            told.append(_with(replace(line, detail=detail), requests, seconds))
        elif isinstance(line, Check) and line.requirement in failed and found is known:
            there = failed[line.requirement]
            said = f"{line.detail}; tried with {what}: expected {there.expected}, got {there.actual}"
            told.append(replace(line, detail=said))
        else:
            told.append(line)
    return told


def _is_untested(lines: Iterable[Line]) -> bool:
    """Tell whether a test did not begin, for want of something in the profile."""
    return any(isinstance(line, TestEnd) and line.outcome is TestOutcome.NOT_TESTED for line in lines)


def _unseen(lines: Iterable[Line]) -> int:
    """Return how much of what a test is there to verify it did not see."""
    open_ = (Outcome.INCONCLUSIVE, Outcome.NOT_TESTED)
    return sum(isinstance(line, Check) and line.claimed and line.outcome in open_ for line in lines)


def _is_open(line: Line) -> bool:
    """Tell whether a line says that something failed or could not be seen."""
    if isinstance(line, TestEnd):
        return line.outcome in _SPOILED
    return isinstance(line, Check) and line.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)


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
        yield _with(ended, requests, seconds)


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
