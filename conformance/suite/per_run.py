"""What the suite remembers of a target for as long as a run lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

from conformance.suite.context import current_run

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.suite.context import Run

T = TypeVar("T")


class PerRun(Generic[T]):
    """Something that each run has for itself, such as what it has seen of its target; it ends with the run."""

    def __init__(self, begin: Callable[[], T]) -> None:
        """Take what makes the one of a run, when it is first asked for."""
        self._begin = begin
        self._known: WeakKeyDictionary[Run, T] = WeakKeyDictionary()

    def __call__(self) -> T:
        """Return the one of the current run."""
        run = current_run()
        if run not in self._known:
            self._known[run] = self._begin()
        return self._known[run]
