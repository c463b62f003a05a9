"""Keeps, for the test that runs, which requirements it verified, and writes each check to the record once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from conformance.http.client import AT_ONCE, Client, Exchange
from conformance.results.record import Check, ItemSeen, ItemState, Outcome, Reason, Recorder, TestEnd
from conformance.schema.response_validator import Finding, ResponseValidator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from conformance.contract import Contract
    from conformance.target import Profile

T = TypeVar("T")
R = TypeVar("R")

_EVIDENCE_BEFORE = 2
_FAILURES_PER_PLACE = 3
_LONGEST_STORY = 25


class Violation(AssertionError):  # noqa: N818 - the word of the reports
    """The target did something that the specification rules out."""

    def __init__(self, expected: str, actual: str, *exchanges: Exchange) -> None:
        """Say what was expected and what was seen, and in which exchanges."""
        super().__init__(f"expected {expected}; got {actual}")
        self.expected = expected
        self.actual = actual
        self.exchanges = exchanges


class Unmet(Exception):  # noqa: N818 - no error: something could not be seen
    """What a check needs before it can show anything is not there, so it shows nothing."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """Name the reason, one of the closed set, and say in words what was missing."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class NotTested(Exception):  # noqa: N818 - no error: the test is not for this target
    """The target's profile lacks what the test needs, or the operator switched it off."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """Name the reason, one of the closed set, and say in words what is missing."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail

    @property
    def outcome(self) -> Outcome:
        """What it leaves of a requirement that no other test verifies: what the target has not, it does not owe."""
        undeclared = self.reason is Reason.FEATURE_NOT_DECLARED
        return Outcome.NOT_APPLICABLE if undeclared else Outcome.NOT_TESTED


class MisuseError(Exception):
    """A test of the suite is wrong: it verifies what it does not declare, or looks at nothing."""


@dataclass
class TestContext:
    """What one test has verified so far."""

    test: str
    declared: frozenset[str]
    started: float = field(default_factory=time.monotonic)
    seconds: float | None = None
    """How long it took, once it has ended."""
    requests: int = 0
    expectations: int = 0
    """How many expectations were looked at; a block that looks at none verifies nothing."""
    recent: list[Exchange] = field(default_factory=list)
    settled: set[str] = field(default_factory=set)
    """Requirements that have a check of this test in the record."""
    unrecognisable: str | None = None
    """The first answer of this test that was not the documented record at all: after it, nothing here is believed."""
    unanswered_write: str | None = None
    """The first call of this test that may have changed something and was not answered."""
    soft_failures: list[str] = field(default_factory=list)
    """Failures after which the test went on."""
    story: list[Exchange] | None = None
    """While a model is explored: every call of the current example, so that a failure shows all that led to it."""
    pending_failures: dict[str, Check] | None = None
    """While a failure is being shrunk: the latest failed check of each requirement."""
    failures: dict[tuple[str, str], int] = field(default_factory=dict)
    is_unjudged: bool = False
    """While many calls are under way at once: whoever sends them judges them, in an order of their own."""

    __test__ = False


class _OfThread(threading.local):
    """The test that a thread works for: most runs have one thread, some have several tests under way at once."""

    context: TestContext | None = None
    lane: int = 0


class Run:
    """Everything of one run that the vocabulary of expectations reaches."""

    def __init__(self, contract: Contract, profile: Profile, recorder: Recorder, at_once: int = AT_ONCE) -> None:
        """Open the client of a target, for so many calls at once; every exchange is judged and remembered from here."""
        self.contract = contract
        self.profile = profile
        self.recorder = recorder
        self.validator = ResponseValidator.of(contract, profile.version)
        self.client = Client(profile, at_once)
        self.client.tell_apart(self.validator.place)
        self.client.on_exchange(self._see)
        self._of_thread = _OfThread()
        self.only_reads = False
        """Whether nothing may be sent that could change the target."""
        self.shutting_down = threading.Event()
        """Set when tests shall come to an end: what they changed is put back, and nothing else is begun."""
        self._lock = threading.RLock()

    @property
    def context(self) -> TestContext | None:
        """The context of the test that runs in this thread."""
        return self._of_thread.context

    @property
    def lane(self) -> int:
        """The number of those things set aside that the test in this thread may use; no other test uses them now."""
        return self._of_thread.lane

    def close(self) -> None:
        """Close all connections to the target."""
        self.client.close()

    def threads(self, number: int) -> ThreadPoolExecutor:
        """Return so many threads that work for the test of this one."""
        return ThreadPoolExecutor(number, initializer=self.join, initargs=(self.context, self.lane))

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """
        Do something with every one of several things, for the test of this thread, and return what came of each.

        Several at once, where the target takes longer to answer than it takes to call it.
        """
        number = min(self.client.at_once, len(things), self.client.worth_sending_at_once())
        if number <= 1:
            return [act(thing) for thing in things]
        with self.threads(number) as pool:
            try:
                return list(pool.map(act, things))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def require_allowed(self, method: str, what: str) -> None:
        """Raise NotTested when a call could change a target that is only to be read."""
        if self.only_reads and method != "GET":
            raise NotTested(Reason.UNSAFE, f"{what} may change the target, which is only to be read")

    def require_declared(self, claims: Iterable[str]) -> None:
        """Raise NotTested when the target declares none of the features that these requirements are about."""
        features = {self.contract.requirements[name].feature for name in claims}
        if not any(feature is None or self.profile.declares(feature) for feature in features):
            named = ", ".join(sorted(filter(None, features)))
            raise NotTested(Reason.FEATURE_NOT_DECLARED, f"the target does not declare {named}")

    def begin(self, test: str, declared: frozenset[str]) -> TestContext:
        """Start the context of a test that declares to verify these requirements."""
        context = TestContext(test, declared)
        self.join(context)
        return context

    def join(self, context: TestContext | None, lane: int = 0) -> None:
        """Let this thread work for the test of a context, or for none."""
        self._of_thread.context, self._of_thread.lane = context, lane
        self.client.test = context.test if context else ""

    def end(self, outcome: str, detail: str | None = None) -> None:
        """Close the context of the running test and write how it went."""
        context = self._open_context()
        self.release()
        self.recorder.write(
            TestEnd(
                test=context.test,
                outcome=outcome,
                seconds=round(time.monotonic() - context.started if context.seconds is None else context.seconds, 3),
                requests=context.requests,
                detail=detail,
            ),
        )
        self.join(None)

    # -- checks -------------------------------------------------------------------------------------------------

    def passed(self, requirement: str) -> None:
        """Record that a requirement held; once a test is enough."""
        context = self._open_context()
        claimed = requirement in context.declared
        with self._lock:
            if requirement in context.settled:
                return
            if context.unrecognisable is None:
                context.settled.add(requirement)
                self.recorder.write(Check(requirement, Outcome.PASSED, context.test, claimed=claimed))
            elif claimed:
                detail = f"{context.unrecognisable}, so what else was answered shows nothing"
                self.open_question(requirement, Outcome.INCONCLUSIVE, Reason.PRECONDITION, detail)

    def failed(self, requirement: str, violation: Violation, place: str | None = None) -> None:
        """Record that a requirement was violated, with the exchanges that show it."""
        context = self._open_context()
        with self._lock:
            shown = violation.exchanges or tuple(context.recent[-1:])
            led_to_it = context.recent[-_EVIDENCE_BEFORE - 1 :] if context.story is None else _telling(context.story)
            before = [exchange for exchange in led_to_it if exchange not in shown]
            check = Check(
                requirement=requirement,
                outcome=Outcome.FAILED,
                test=context.test,
                expected=violation.expected,
                actual=violation.actual,
                place=place,
                evidence=tuple(self.client.evidence(exchange) for exchange in [*before, *shown]),
                claimed=requirement in context.declared,
            )
            if context.pending_failures is not None:
                context.pending_failures[requirement] = check
                return
            key = (requirement, violation.expected)
            context.failures[key] = context.failures.get(key, 0) + 1
            context.settled.add(requirement)
            if context.failures[key] <= _FAILURES_PER_PLACE:
                self.recorder.write(check)

    def open_question(self, requirement: str, outcome: Outcome, reason: Reason, detail: str) -> None:
        """Record that a requirement was not verified, and why."""
        context = self._open_context()
        with self._lock:
            context.settled.add(requirement)
            claimed = requirement in context.declared
            self.recorder.write(
                Check(requirement, outcome, context.test, reason=reason, detail=detail, claimed=claimed)
            )

    def observed(self, requirement: str, what: str) -> None:
        """Record what the target chose where the specification is silent."""
        context = self._open_context()
        with self._lock:
            key = (requirement, what)
            if key not in context.failures:
                context.failures[key] = 1
                context.settled.add(requirement)
                self.recorder.write(Check(requirement, Outcome.OBSERVED, context.test, detail=what))

    def saw_item(self, item: str, state: ItemState, detail: str) -> None:
        """Record how the target stands to an item of the version table."""
        context = self._open_context()
        with self._lock:
            self.recorder.write(ItemSeen(item, state, detail, context.test))

    def leave_open(self, reason: Reason, detail: str, outcome: Outcome = Outcome.INCONCLUSIVE) -> None:
        """Record that nothing more of what the test declares will be seen."""
        context = self._open_context()
        for requirement in sorted(context.declared - context.settled):
            self.open_question(requirement, outcome, reason, detail)

    def unmet_by(self, error: BaseException) -> Unmet | None:
        """Return what kept a test from going on where that is the target's doing; None where the suite is to blame."""
        if isinstance(error, Unmet):
            return error
        if isinstance(error, RecursionError):
            return Unmet(Reason.PRECONDITION, "an answer is nested too deeply to be looked at")
        odd = self.context and (self.context.unrecognisable or next(iter(self.context.soft_failures), None))
        if not odd or not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
            return None
        return Unmet(Reason.PRECONDITION, f"the test cannot go on after an odd answer ({odd}): {error!r}")

    @contextmanager
    def shrinking(self) -> Iterator[None]:
        """While an example is being shrunk, keep only the last failure of each requirement: the smallest one."""
        context = self._open_context()
        context.pending_failures = {}
        context.story = []
        try:
            yield
        finally:
            context.story = None
            self.release()

    def new_example(self) -> None:
        """Forget the calls of the last example."""
        self._open_context().story = []

    @contextmanager
    def unjudged(self) -> Iterator[None]:
        """Judge nothing in passing while the context lasts, and let no call stand as the one before another."""
        context = self._open_context()
        context.is_unjudged = True
        try:
            yield
        finally:
            context.is_unjudged = False
            context.recent.clear()

    def release(self) -> None:
        """Write the failures that were held back."""
        context = self._open_context()
        held, context.pending_failures = context.pending_failures or {}, None
        for requirement, check in held.items():
            context.settled.add(requirement)
            self.recorder.write(check)

    # -- what is seen in passing -----------------------------------------------------------------------------------

    def _see(self, exchange: Exchange) -> None:
        context = self.context
        if context is None:
            return
        with self._lock:
            context.requests += 1
            if context.is_unjudged:
                return
            context.recent.append(exchange)
            del context.recent[:-10]
            if exchange.status is None and exchange.call.method != "GET" and context.unanswered_write is None:
                context.unanswered_write = f"{exchange.call.method} {exchange.call.path}"
            if context.story is not None:
                context.story.append(exchange)
            seen = self.validator.seen(exchange)
            if seen.unrecognisable and context.unrecognisable is None:
                context.unrecognisable = f"{exchange.call.method} {exchange.call.path} answered {seen.unrecognisable}"
        self.note_findings(exchange, seen.findings)
        for form in seen.tolerated:
            self._note_tolerated(form.requirement, form.what)

    def note_findings(self, exchange: Exchange, findings: Sequence[Finding]) -> None:
        """Record what an answer showed about the schemas of the contract."""
        for finding in findings:
            if finding.holds:
                self.passed(finding.requirement)
            else:
                violation = Violation(finding.expected, finding.actual, exchange)
                self.failed(finding.requirement, violation, finding.place)
                self.fail_softly(f"{finding.requirement}: {violation} at {finding.place or 'the answer'}")

    def fail_softly(self, text: str) -> None:
        """Let the running test fail at its end for what it saw in passing; a test that saw a violation is not green."""
        failures = self._open_context().soft_failures
        with self._lock:
            if len(failures) < _LONGEST_STORY and text not in failures:
                failures.append(text)

    def _note_tolerated(self, requirement: str, what: str) -> None:
        context = self._open_context()
        with self._lock:
            key = (requirement, what)
            if key not in context.failures:
                context.failures[key] = 1
                self.recorder.write(Check(requirement, Outcome.OBSERVED, context.test, detail=what, claimed=False))

    def _open_context(self) -> TestContext:
        if self.context is None:
            raise MisuseError("A check was made outside a test.")
        return self.context


def _telling(story: Sequence[Exchange]) -> list[Exchange]:
    """Return the calls that tell a story: all that changed something, and the last look at the result."""
    return [exchange for exchange in story if exchange.call.method != "GET"][-_LONGEST_STORY:] + list(story[-1:])


_current: list[Run] = []


def current_run() -> Run:
    """Return the run that is going on; raise MisuseError outside one."""
    if not _current:
        raise MisuseError("There is no run. Tests of the suite run under `conformance run` or pytest.")
    return _current[-1]


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """Make a run the current one, and close it afterwards."""
    _current.append(run)
    try:
        yield run
    finally:
        _current.remove(run)
        run.close()
