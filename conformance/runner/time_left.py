"""How long a run still takes, guessed from what its tests took so far and what each of them is known to be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: After so many tests something can be guessed by them alone.
_ENOUGH_TO_GUESS = 5
#: For as large a share of the work the pace that is known from elsewhere counts, beside that of the tests so far.
_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Work:
    """How much work the tests of a run are."""

    weights: Mapping[str, float]
    """About how much each is, by its name."""
    pace: Callable[[], float | None] = lambda: None
    """
    Returns how many seconds a weight of 1 seems to take, where more than the tests so far tells.

    The first that end are few, and the shortest and the longest of all.
    """


class TimeLeft:
    """
    The tests of a run that have not ended, with how much work each is.

    Tests of a kind, such as one for each operation, are taken to need equally long for the same work; the others as
    long as all tests so far.
    """

    def __init__(self, work: Work, workers: int, clock: Callable[[], float]) -> None:
        """Take the work of every test, and how many run side by side."""
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
        """Note that a test runs from now on."""
        self._begun[test] = self._clock()

    def ended(self, test: str, seconds: float) -> None:
        """Note how long a test took, or took once more."""
        self._begun.pop(test, None)
        self._ended += test in self._left
        kind = kind_of(test)
        self._seconds.update({kind: seconds})
        self._work.update({kind: self._left.pop(test, 0.0)})

    def seconds(self) -> float | None:
        """Return how many seconds the rest takes; None as long as there is nothing to guess by."""
        pace, now = self._pace(), self._clock()
        if pace is None:
            return None
        each = [max(0.0, self._expected(test, pace) - (now - self._begun.get(test, now))) for test in self._left]
        # However many work, the longest test is done by one.
        return max(max(each, default=0.0), sum(each) / self._workers)

    def _pace(self) -> float | None:
        """Return the seconds of a weight of 1, by the tests so far and by what else is known."""
        seconds, work, known = self._seconds.total(), self._work.total(), self._known_pace()
        if known is not None:
            return (seconds + known * self._share) / (work + self._share)
        return seconds / work if work and self._ended >= _ENOUGH_TO_GUESS else None

    def _expected(self, test: str, pace: float) -> float:
        kind = kind_of(test)
        own = self._seconds[kind] / self._work[kind] if self._work[kind] else pace
        return self._left[test] * own


def alike(tests: Iterable[str]) -> Work:
    """Return what takes all tests for equal work."""
    return Work(dict.fromkeys(tests, 1.0))


def kind_of(test: str) -> str:
    """Return what the tests of one function have in common."""
    return test.split("[", maxsplit=1)[0]
