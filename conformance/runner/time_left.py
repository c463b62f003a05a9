"""Estimates how long a run still takes, from its tests so far and from how much work each test is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: After this many tests, they alone are enough for an estimate.
_ENOUGH_TO_GUESS = 5
#: Until this share of the work is done, the pace known from elsewhere counts as well as the pace of the tests so far.
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Work:
    """How much work the tests of a run are."""

    weights: Mapping[str, float]
    """The approximate work of each test, by its name."""
    pace: Callable[[], float | None] = lambda: None
    """
    Returns how many seconds a weight of 1 takes, if there is a better source than the tests so far.

    The first tests to end are few, and they are the shortest and the longest ones.
    """


class TimeLeft:
    """The tests of a run that have not ended, with the work of each.

    Tests of one kind, such as one for each operation, are assumed to take equally long for the same work; other tests
    as long as the average of all tests so far.
    """

    def __init__(self, work: Work, workers: int, clock: Callable[[], float]) -> None:
        """Take the work of every test, and how many tests run side by side."""
        self._left = dict(work.weights)
        self._share = sum(self._left.values()) * _SHARE or 1.0
        self._workers = workers
        self._clock = clock
        self._known_pace = work.pace
        self._begun: dict[str, float] = {}
        self._ended = 0
        self._seconds: Counter[str] = Counter()
        self._work: Counter[str] = Counter()

    def began(self, test: str) -> None:
        """Note that a test has started."""
        self._begun[test] = self._clock()

    def stopped(self, test: str) -> None:
        """Note that a test does not run now, and may start again."""
        self._begun.pop(test, None)

    def ended(self, test: str, seconds: float) -> None:
        """Note how long a test took, or how long it took again."""
        self.stopped(test)
        self._ended += test in self._left
        kind = kind_of(test)
        self._seconds.update({kind: seconds})
        self._work.update({kind: self._left.pop(test, 0.0)})

    def longest(self) -> tuple[str, float]:
        """Return the test that has been running for the longest time, and for how many seconds."""
        test = min(self._begun, key=self._begun.__getitem__, default="")
        return test, self._clock() - self._begun.get(test, self._clock())

    def seconds(self) -> float | None:
        """Return the seconds left; None while there is nothing to estimate from."""
        pace, now = self._pace(), self._clock()
        if pace is None:
            return None
        each = [max(0.0, self._expected(test, pace) - (now - self._begun.get(test, now))) for test in self._left]
        # However many workers there are, one of them runs the longest test.
        return max(max(each, default=0.0), sum(each) / self._workers)

    def _pace(self) -> float | None:
        """Return the seconds for a weight of 1, from the tests so far and from what else is known."""
        seconds, work, known = self._seconds.total(), self._work.total(), self._known_pace()
        if known is not None:
            return (seconds + known * self._share) / (work + self._share)
        return seconds / work if work and self._ended >= _ENOUGH_TO_GUESS else None

    def _expected(self, test: str, pace: float) -> float:
        kind = kind_of(test)
        own = self._seconds[kind] / self._work[kind] if self._work[kind] else pace
        return self._left[test] * own


def alike(tests: Iterable[str]) -> Work:
    """Return work that is equal for all tests."""
    return Work(dict.fromkeys(tests, 1.0))


def kind_of(test: str) -> str:
    """Return the kind of a test: tests of one function have the same."""
    return test.split("[", maxsplit=1)[0]
