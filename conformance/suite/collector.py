"""Collects the checks of one test and writes each to the record once."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.results.record import Check, Outcome, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from conformance.results.record import Evidence
    from conformance.results.recorder import Line
    from conformance.suite.exceptions import Violation

_FAILURES_PER_EXPECTATION = 3


def is_unmet(outcome: Outcome, reason: Reason | None) -> bool:
    """Tell whether something could not be checked because a step before it did not succeed."""
    return outcome is Outcome.INCONCLUSIVE and reason is Reason.PRECONDITION


class CheckCollector:
    """The results of one test, requirement by requirement. Safe to use from several threads."""

    def __init__(
        self,
        test: str,
        declared: frozenset[str],
        write: Callable[[Line], None],
        not_owed: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        """Collect for a test that declares to verify these requirements; `write` receives the lines of the record.

        `not_owed` says why a requirement that could not be seen does not concern a target of unknown version.
        """
        self.declared = declared
        self.distrusted: str | None = None
        """The first answer of the test that was not the documented record at all: later answers are not trusted."""
        self.failures = 0
        """Number of recorded violations."""
        self.last_failed: str | None = None
        """The requirement that was violated last: where that ends the test, the rest is open because of it alone."""
        self.has_open = False
        """Whether something could not be seen, for whatever reason."""
        self.is_unmet = False
        """Whether something that the test must verify was not seen, because an earlier step did not succeed."""
        self._test = test
        self._write = write
        self._not_owed = not_owed
        self._told: set[str] = set()
        """The requirements that have a line of this test."""
        self._left: set[str] = set()
        """Those that are left to other tests. If one is seen to hold all the same, that is worth a line."""
        self._written: Counter[tuple[str, str]] = Counter()
        self._pending: dict[str, Check] | None = None
        self._lock = threading.RLock()

    def passed(self, requirement: str) -> None:
        """Record that a requirement held; once per test is enough."""
        claimed = requirement in self.declared
        with self._lock:
            if requirement in self._told:
                return
            if self.distrusted is None:
                self._told.add(requirement)
                self._write(Check(requirement, Outcome.PASSED, self._test, claimed=claimed))
            elif claimed and requirement not in self._left:
                detail = f"{self.distrusted}, so what else was answered shows nothing"
                self.open_question(requirement, Outcome.INCONCLUSIVE, Reason.PRECONDITION, detail)

    def failed(
        self,
        requirement: str,
        violation: Violation,
        shown: Callable[[], tuple[tuple[Evidence, ...], str | None]],
        place: str | None = None,
    ) -> None:
        """Record that a requirement was violated; at most a few times for the same expectation.

        `shown` returns the evidence and the detail; it is called only for these, because making them is slow.
        """
        with self._lock:
            self.last_failed = requirement
            if self._pending is None:
                self.failures += 1
                self._told.add(requirement)
                if self._count(requirement, violation.expected) > _FAILURES_PER_EXPECTATION:
                    return
            evidence, detail = shown()
            check = Check(
                requirement=requirement,
                outcome=Outcome.FAILED,
                test=self._test,
                expected=violation.expected,
                actual=violation.actual,
                place=place,
                detail=detail,
                evidence=evidence,
                claimed=requirement in self.declared,
            )
            if self._pending is None:
                self._write(check)
            else:
                self._pending.pop(requirement, None)  # the latest one comes last
                self._pending[requirement] = check

    def open_question(
        self, requirement: str, outcome: Outcome, reason: Reason, detail: str, waits_for: str | None = None
    ) -> None:
        """Record that a requirement was not verified, why, and the only failure that caused it, if there is one."""
        gone = self._not_owed(requirement) if outcome is Outcome.INCONCLUSIVE else None
        if gone is not None:
            outcome, reason, detail = Outcome.NOT_APPLICABLE, Reason.VERSION, gone
        with self._lock:
            self._told.add(requirement)
            claimed = requirement in self.declared
            self.has_open = True
            self.is_unmet |= claimed and is_unmet(outcome, reason)
            check = Check(requirement, outcome, self._test, reason, detail, claimed=claimed, waits_for=waits_for)
            self._write(check)

    def observed(self, requirement: str, what: str) -> None:
        """Record what the target chose where the specification is silent."""
        with self._lock:
            self._told.add(requirement)
            if self._count(requirement, what) == 1:
                self._write(Check(requirement, Outcome.OBSERVED, self._test, detail=what))

    def tolerated(self, requirement: str, what: str) -> None:
        """Record a form that is accepted although the text shows another; it decides nothing."""
        with self._lock:
            if self._count(requirement, what) == 1:
                self._write(Check(requirement, Outcome.OBSERVED, self._test, detail=what, claimed=False))

    def distrust(self, answer: str) -> None:
        """Ignore everything that the target answers from now on, because an answer was not the documented record."""
        self.distrusted = self.distrusted or answer

    def settle(self, requirements: Iterable[str]) -> None:
        """Mark requirements as done, because other tests verify them."""
        with self._lock:
            self._left |= self.declared.intersection(requirements)

    @contextmanager
    def settling_nothing(self, unless: Callable[[], bool]) -> Iterator[None]:
        """Keep what the context settles open for later checks, unless a condition holds at its end."""
        before = self._told | self._left
        try:
            yield
        finally:
            if not unless():
                with self._lock:
                    self._told -= self.declared - before
                    self._left -= self.declared - before

    @property
    def unsettled(self) -> list[str]:
        """The requirements that the test declares and has not reached."""
        return sorted(self.declared - self._told - self._left)

    def leave_open(
        self, reason: Reason, detail: str, outcome: Outcome = Outcome.INCONCLUSIVE, waits_for: str | None = None
    ) -> None:
        """Record that the rest of what the test declares will not be verified."""
        for requirement in self.unsettled:
            self.open_question(requirement, outcome, reason, detail, waits_for)

    @contextmanager
    def pending(self) -> Iterator[None]:
        """Within the context, keep only the latest failure of each requirement; write these at its end."""
        self._pending = {}
        try:
            yield
        finally:
            held, self._pending = self._pending, None
            for requirement, check in held.items():
                self._told.add(requirement)
                self._write(check)

    @property
    def last_pending(self) -> Check | None:
        """The failure that is to be written last at the end of `pending`."""
        return next(reversed((self._pending or {}).values()), None)

    def _count(self, requirement: str, what: str) -> int:
        self._written[requirement, what] += 1
        return self._written[requirement, what]
