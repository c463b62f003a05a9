"""A test runs again for one of three reasons; what all its attempts wrote is combined into one result.

- A network error spoiled it: nobody knows what an unanswered call did. It starts again, and the attempt does not count.
- It failed: it runs once more. If it fails again it is a failure, otherwise it is unstable. If a step before the one
  that failed is refused now, it runs a third time: what keeps it from being checked twice is no accident.
- It could not reach the state that it verifies: it runs with other fixtures of the world.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.record import Check, Outcome, Reason, TestEnd, TestOutcome
from conformance.suite.collector import is_unmet
from conformance.target.stand_ins import StandIn, StandIns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.results.recorder import Line
    from conformance.suite.context import Run, TestContext

#: How often the same call may be the first one without an answer before this is no longer an accident.
_ACCIDENTS = 3
#: After so many spoiled attempts, a test will probably be spoiled each time, because it sends so many calls.
_OFTEN = 2
#: How often a test that makes calls at the same moment runs after the second time, to see a failure once more.
_MOMENTS = 3
#: The first digit of the status of a call that was served.
_SERVED = 2
#: The outcomes of a test that the network spoiled.
_SPOILED = frozenset({TestOutcome.FAILED, TestOutcome.INCONCLUSIVE, TestOutcome.BROKEN})


class _Again(Enum):
    """Why a test runs again."""

    SPOILED = auto()
    FAILED = auto()
    KEPT_FROM_IT = auto()
    MOMENT = auto()
    UNMET = auto()


class _Attempt:
    """The lines of the record that a test wrote in one of its attempts."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        self.checks = [line for line in self.lines if isinstance(line, Check)]
        self.ends = [line for line in self.lines if isinstance(line, TestEnd)]

    @property
    def failed(self) -> dict[str, Check]:
        """The checks that failed, by requirement."""
        return {check.requirement: check for check in self.checks if check.outcome is Outcome.FAILED}

    @property
    def looked_at(self) -> set[str]:
        """The requirements that it observed; not those that a failed earlier step kept it from observing."""
        return {check.requirement for check in self.checks if check.reason is not Reason.PRECONDITION}

    @property
    def kept_from(self) -> set[str]:
        """The requirements that a refused earlier step kept it from observing."""
        return {check.requirement for check in self.checks if is_unmet(check.outcome, check.reason)}

    @property
    def unseen(self) -> int:
        """How many of the requirements that the test verifies it did not observe."""
        open_ = (Outcome.INCONCLUSIVE, Outcome.NOT_TESTED)
        return sum(check.claimed and check.outcome in open_ for check in self.checks)

    @property
    def is_open(self) -> bool:
        """Whether a check failed or could not be made."""
        open_ = (Outcome.FAILED, Outcome.INCONCLUSIVE)
        return any(end.outcome in _SPOILED for end in self.ends) or any(one.outcome in open_ for one in self.checks)

    def has(self, outcome: TestOutcome) -> bool:
        """Tell whether the test ended with this outcome."""
        return any(end.outcome is outcome for end in self.ends)

    def with_cost_of(self, others: Iterable[_Attempt]) -> _Attempt:
        """Return this attempt with the requests and the time of other attempts added to its last line."""
        spent = [end for other in others for end in other.ends]
        requests, seconds = sum(end.requests for end in spent), sum(end.seconds for end in spent)
        return _Attempt(
            replace(line, requests=line.requests + requests, seconds=round(line.seconds + seconds, 3))
            if isinstance(line, TestEnd)
            else line
            for line in self.lines
        )


@dataclass
class Reruns:
    """How often one test ran and why, and which attempts count."""

    confirms: bool
    """Whether it runs once more after a failure."""
    most: int
    """How many times at most it starts again because the network spoiled it."""
    area: str
    stand_ins: StandIns
    """The other fixtures that it may run with."""
    is_wanted: bool = False
    """Whether it will run again."""
    begun_anew: int = 0
    """How often the network spoiled it."""
    _stand_in: StandIn | None = None
    """The fixtures that it runs with now; None for those that the profile names."""
    _spoiled_by: Counter[str] = field(default_factory=Counter)
    """For each call, how often it was the first one without an answer."""
    _uncounted: list[_Attempt] = field(default_factory=list)
    """The attempts that do not count, except for their requests and time."""
    _first: _Attempt | None = None
    """The attempt that failed, while the test runs once more."""
    _second: _Attempt | None = None
    """The attempt after that one, if a step before the one that failed was refused in it."""
    _moments: int = 0
    """How often it ran once more because the calls that it makes at the same moment may have met otherwise."""
    _best: _Attempt | None = None
    """The attempt that observed most, while the test runs with other fixtures."""
    _of_area: list[StandIn] | None = None
    """The fixtures that it has not tried yet; None before they were looked up."""

    @classmethod
    def of(cls, run: Run, area: str, *, confirms: bool) -> Reruns:
        """Return the reruns for a test of an area; unless failures are confirmed, it runs once."""
        most, stand_ins = (run.profile.retries.tests, run.stand_ins) if confirms else (0, StandIns())
        return cls(confirms, most, area, stand_ins)

    def hand_out_fixtures(self, run: Run) -> None:
        """Set the fixtures for the next attempt; those of the profile if the target is gone by now."""
        profile = None
        if self._stand_in is not None:
            with suppress(TargetGoneError, RequestsSpentError):
                profile = self._stand_in.profile(run.client)
        run.take(profile)

    @property
    def is_plagued(self) -> bool:
        """Whether the network spoiled the test more than once."""
        return self.begun_anew >= _OFTEN

    def is_last(self, test: TestContext, outcome: TestOutcome) -> bool:
        """Tell whether this attempt is the last one, as far as is known now."""
        is_open, has_failed = outcome in _SPOILED, outcome is TestOutcome.FAILED
        return self._why_again(test, is_open=is_open, has_failed=has_failed) is None

    def lines_after(self, lines: Sequence[Line], test: TestContext) -> Sequence[Line] | None:
        """Given the lines of an ended attempt, return the lines that count; None when the test will run again."""
        attempt = _Attempt(lines)
        why = self._why_again(test, is_open=attempt.is_open, has_failed=bool(attempt.failed))
        self.is_wanted = why is not None
        if why is not None and why is not _Again.UNMET:
            self._keep(attempt, why, test)
            return None
        result = self._result(attempt)
        if self._stand_in is not None and self._best is not None and not attempt.has(TestOutcome.NOT_TESTED):
            self.stand_ins.learn(self.area, self._stand_in, is_better=result.unseen < self._best.unseen)
        if why is None:
            return result.lines
        self._best, self._stand_in = result, self._left.pop(0)
        self._uncounted.clear()  # what they cost is in the result
        return None

    def _keep(self, attempt: _Attempt, why: _Again, test: TestContext) -> None:
        """Keep an attempt after which the test runs again for a reason other than its fixtures."""
        if why is _Again.FAILED:
            self._first = attempt
            return
        self._uncounted.append(attempt)
        if why is _Again.SPOILED:
            self._spoiled_by[str(test.spoiled_by)] += 1
            self.begun_anew += 1
        elif why is _Again.KEPT_FROM_IT:
            self._second = attempt
        else:
            self._moments += 1

    def lines_at_last(self, lines: Sequence[Line]) -> Sequence[Line]:
        """Given the lines of an ended attempt after which none can follow, return the lines that count.

        What failed only in it is unstable, because the test could not run once more.
        """
        is_confirmed = not self.confirms or self._first is not None or self._stand_in is not None
        return self._result(_Attempt(lines if is_confirmed else map(_not_confirmed, lines))).lines

    def lines_so_far(self) -> Sequence[Line]:
        """Return the lines that count if no more attempt can begin; none if the network spoiled each of them."""
        if self._best is not None:
            return self._best.lines
        first, self._first = self._first, None
        return self.lines_at_last(first.lines) if first is not None else ()

    def _result(self, last: _Attempt) -> _Attempt:
        if self._best is not None and self._stand_in is not None:
            found = _better(self._best, last, self._stand_in.what)
        else:
            found = last if self._first is None else _confirmed(self._first, last, self._second)
        return found.with_cost_of(self._uncounted)

    def _why_again(self, test: TestContext, *, is_open: bool, has_failed: bool) -> _Again | None:
        if is_open and self._is_spoiled(test):
            return _Again.SPOILED
        if has_failed and self.confirms and self._first is None and self._stand_in is None:
            return _Again.FAILED
        if self._first is not None and self._second is None and test.results.is_unmet and not has_failed:
            return _Again.KEPT_FROM_IT
        if self._first is not None and test.calls_at_once and not has_failed and self._moments < _MOMENTS:
            return _Again.MOMENT
        return _Again.UNMET if self._is_unmet(test) else None

    def _is_spoiled(self, test: TestContext) -> bool:
        """Tell whether a test has to start again; a call that is never answered is no accident of the network."""
        cause = test.spoiled_by
        return cause is not None and self._spoiled_by[cause] < _ACCIDENTS and self.begun_anew < self.most

    def _is_unmet(self, test: TestContext) -> bool:
        """Tell whether a test needs other fixtures; if it saw a violation, it does not."""
        if self._first is not None or not self._left:
            return False
        if self._stand_in is None:
            return test.results.is_unmet and not test.results.failures
        return test.results.is_unmet or bool(test.results.failures)

    @property
    def _left(self) -> list[StandIn]:
        if self._of_area is None:
            self._of_area = self.stand_ins.of(self.area)
        return self._of_area


def _not_confirmed(line: Line) -> Line:
    """Return a line as unstable if it says that something failed."""
    detail = "it failed, and the run ended before the test ran once more"
    if isinstance(line, Check) and line.outcome is Outcome.FAILED:
        return replace(line, outcome=Outcome.UNSTABLE, detail=detail)
    if isinstance(line, TestEnd) and line.outcome is TestOutcome.FAILED:
        return replace(line, outcome=TestOutcome.UNSTABLE, detail=detail)
    return line


def _better(known: _Attempt, last: _Attempt, what: str) -> _Attempt:
    """Return the result of a test that also ran with other fixtures: the attempt that observed more.

    Violations seen with other fixtures are reported but fail nothing, because the profile does not vouch for these.
    An attempt that lacked something observed nothing, however few of its requirements it names.
    """
    is_whole = not last.failed and not last.has(TestOutcome.BROKEN) and not last.has(TestOutcome.NOT_TESTED)
    if is_whole and last.unseen < known.unseen:
        told = (*(end.detail for end in known.ends), *(check.detail for check in known.checks))
        cause = next(filter(None, told), None)
        why = f"tried with {what}, because: {cause}" if cause else f"tried with {what}"
        lines = [replace(line, detail=why) if isinstance(line, TestEnd) else line for line in last.lines]
        return _Attempt(lines).with_cost_of([known])
    beside = [
        replace(line, detail=f"{line.detail}; tried with {what}: expected {there.expected}, got {there.actual}")
        if isinstance(line, Check) and (there := last.failed.get(line.requirement))
        else line
        for line in known.lines
    ]
    return _Attempt(beside).with_cost_of([last])


def _confirmed(first: _Attempt, second: _Attempt, between: _Attempt | None = None) -> _Attempt:
    """Return the result of a test that ran again: the last attempt, except for checks that failed in only one.

    What failed both times stays failed. What failed once is unstable, with the evidence of that failure. But if
    something failed at first and could not be checked again, it stays failed if the last attempt failed earlier, if an
    earlier step was refused in it and in the one `between`, or if a write was served with a wrong status: the write may
    have destroyed its object for good.
    """
    lost = first.failed.keys() - second.looked_at if second.failed else set()
    if between is not None:
        lost |= first.failed.keys() & between.kept_from & second.kept_from
    judged = {check.requirement for check in second.checks if check.outcome in (Outcome.PASSED, Outcome.FAILED)}
    lost |= {one for one, check in first.failed.items() if one not in judged and _is_wrongly_served_write(check)}
    steady = (first.failed.keys() & second.failed.keys()) | lost
    unstable = [
        *_unstable(first, steady, "it failed at first, and not when the test ran once more"),
        *_unstable(second, steady, "it held at first, and failed when the test ran once more"),
    ]
    lines: list[Line] = []
    for line in second.lines:
        if isinstance(line, Check) and line.outcome is Outcome.FAILED and line.requirement not in steady:
            continue
        if not isinstance(line, TestEnd):
            lines.append(line)
            continue
        lines += [check for check in first.checks if check.outcome is Outcome.FAILED and check.requirement in lost]
        lines += unstable
        lines.append(_ended(line, is_unstable=bool(unstable) and not steady, has_lost=bool(lost)))
    return _Attempt(lines).with_cost_of([first])


def _is_wrongly_served_write(check: Check) -> bool:
    """Tell whether a check failed because a write was served with a wrong status; a page may be of a gateway."""
    if not check.evidence or check.evidence[-1].is_read:
        return False
    if (check.evidence[-1].response_body or "").lstrip().startswith("<"):
        return False
    status = check.evidence[-1].status
    return status is not None and status // 100 == _SERVED and check.actual == f"status {status}"


def _ended(line: TestEnd, *, is_unstable: bool, has_lost: bool) -> TestEnd:
    if line.outcome is TestOutcome.BROKEN:
        return line
    if has_lost:
        return replace(line, outcome=TestOutcome.FAILED, detail="it could not get so far again when it ran once more")
    said = "its result was different when it ran once more"
    return replace(line, outcome=TestOutcome.UNSTABLE, detail=said) if is_unstable else line


def _unstable(attempt: _Attempt, steady: Iterable[str], detail: str) -> list[Check]:
    return [
        replace(check, outcome=Outcome.UNSTABLE, detail=detail)
        for check in attempt.checks
        if check.outcome is Outcome.FAILED and check.requirement not in steady
    ]
