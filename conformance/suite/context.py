"""The state of a running test: its run, the calls it made, and the results of its checks."""

from __future__ import annotations

import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.http.client import Client
from conformance.http.exchange import READING
from conformance.results.plan import left_out_by
from conformance.results.record import ItemSeen, ItemState, Outcome, Reason, TestEnd, TestOutcome
from conformance.schema.response_validator import ResponseValidator
from conformance.suite.absences import Absences
from conformance.suite.accepted import Accepted
from conformance.suite.arrivals import SEPARATE, Arrivals
from conformance.suite.collector import CheckCollector
from conformance.suite.deletions import Deletions
from conformance.suite.evidence import evidence_of
from conformance.suite.exceptions import MisuseError, NotTested, Unmet, Violation
from conformance.suite.history import CallHistory
from conformance.suite.known_reads import KnownReads
from conformance.suite.latencies import Latencies
from conformance.suite.origins import Origins
from conformance.suite.served_reads import ServedReads
from conformance.suite.shown_records import ShownRecords
from conformance.suite.version_traces import VersionTraces
from conformance.suite.waits import Waits
from conformance.suite.writes import FirstExports, Writes
from conformance.target.ownership import Ownership
from conformance.target.stand_ins import StandIns, stand_ins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.contract import Contract
    from conformance.http.exchange import Call, Credentials, Exchange
    from conformance.http.settings import ClientSettings
    from conformance.results.record import Evidence
    from conformance.results.recorder import Line
    from conformance.schema.response_schema import Seen
    from conformance.schema.response_validator import Finding
    from conformance.target import Profile

__all__ = [
    "MisuseError",
    "NotTested",
    "Run",
    "TestContext",
    "Unmet",
    "Violation",
    "current_run",
    "current_test",
]

T = TypeVar("T")
R = TypeVar("R")

_MOST_SOFT_FAILURES = 25
#: Page size of the first request for a list.
_PAGE_LENGTH = 20


@dataclass
class Learnt:
    """What one test of a run learns about the target for later tests."""

    tells_totals: dict[str, bool] = field(default_factory=dict)
    """By kind of list: whether X-Total on its pages correctly tells the number of all entries."""
    page_length: int = _PAGE_LENGTH
    """The page size to request: smaller if larger ones are refused."""
    described: set[str] = field(default_factory=set)
    """The operations, by their place in the contract, that were seen to answer with a body."""
    held_back: int = 0
    """Number of drawn calls that were not sent because they may have reached things that are not the run's own."""
    renamed_integrations: bool | None = None
    """Whether a target of unknown version serves the newer name of integrations; None until it was asked."""
    made_for_good: dict[tuple[str, str, str], Exchange] = field(default_factory=dict)
    """By operation, path and actor: a served call of an operation whose product no operation removes."""


class Run:
    """What all tests of a run share: contract, target, client, and the destination for lines of the record."""

    def __init__(
        self,
        contract: Contract,
        profile: Profile,
        write: Callable[[Line], None],
        settings: ClientSettings | None = None,
        *,
        writes_anywhere: bool = False,
    ) -> None:
        """Open the client of a target; every exchange is validated and remembered from now on.

        `write` receives the lines of the record; `settings` are those of the client, by default those of the profile.
        With `writes_anywhere`, writes are not limited to what the profile names: for a service that ends with its test.
        """
        settings = settings or profile.client_settings()
        self.contract = contract
        self.before_tests: Callable[[], None] = lambda: None
        """Makes sure that the things which the run made for itself exist."""
        self.only_reads = settings.only_reads
        self.write = write
        self.client = Client(settings)
        self.validator = ResponseValidator.of(contract, profile.version)
        self._areas = {operation.area for operation in self.validator.operations}

        # Observers of every exchange.
        self.ownership = Ownership(profile, self.validator.operation_of)
        """Things on the target that are not the run's own."""
        self.writes = Writes()
        self.known_reads = KnownReads(self.validator.operation_of, self.writes, keeps=not profile.limits.settle_seconds)
        """Reads that the running test need not repeat."""
        self.latencies = Latencies(self.validator.operation_of)
        """How long the target took to answer."""
        self.absences = Absences(profile, self.validator, self.client)
        """The operations that the target does not have."""
        self.traces = VersionTraces(contract, profile, self.validator, self._ask) if profile.version is None else None
        """Signs of how old the target may be; None if its version is known."""

        # Observers that find contradictions in an answer.
        self.deletions = Deletions(self.validator, profile.limits.settle_seconds)
        """Things that were deleted, and must not be listed again."""
        self.first_exports = FirstExports(self.writes, profile.limits.deadline_seconds)
        """Exports that may not have begun yet."""

        self.waits = Waits(profile.limits.deadline_seconds)
        """What was waited for, and whether it came."""

        self.origins = Origins()
        """Names the values of the profile that may have caused a failure."""
        self.learnt = Learnt()
        self._know(profile)
        self._listen(writes_anywhere=writes_anywhere)

    def _listen(self, *, writes_anywhere: bool) -> None:
        """Pass exchanges to all observers: first those that learn, then the running test."""
        if not writes_anywhere:
            self.client.before_write(self.ownership.check)
        self.client.before_write(self._expect)
        self.client.tell_apart(self.validator.place)
        learning = (self.ownership.learn, self.writes.see, self.known_reads.see)
        for see in (*learning, _see, self.latencies.see, self.absences.see):
            self.client.on_exchange(see)
        if self.traces is not None:
            self.client.on_exchange(self.traces.see)
        # Last, because the other observers must see the write before the reads that wait for it.
        self.client.on_exchange(Accepted(self.validator, self._read).see)

    def _expect(self, call: Call) -> None:
        """Before a call is sent, record what it may change and what exists already."""
        if call.actor is not None:
            for path in self.arrivals.unseen_beside(call):
                self.arrivals.saw_beside(self._aside(call.actor, path))
        self.arrivals.expect(call)

    def include(self, profile: Profile) -> None:
        """Go on with a profile that names more things of the target: those that the run has made for itself."""
        self.ownership.include(profile)
        self._know(profile)

    def _know(self, profile: Profile) -> None:
        self.profile = self._own = profile
        self.stand_ins = StandIns(stand_ins(profile))
        """The fixtures for a test that cannot be prepared on the first ones."""
        self.shown = ShownRecords(profile, self.validator, self.contract.records)
        """What the running test was shown of each record."""
        self.arrivals = Arrivals(profile, self.validator)
        """Who asked to approve which merge request."""
        self.served_reads = ServedReads(profile, self.validator)
        """Reads that were served, and must be served again."""

    def take(self, profile: Profile | None) -> None:
        """Hand out the actors and fixtures of a profile from now on; with None, those of the run itself."""
        self.before_tests()
        self.profile = profile or self._own

    @property
    def is_elsewhere(self) -> bool:
        """Whether the fixtures handed out differ from those that the profile names first."""
        return self.profile is not self._own

    def close(self) -> None:
        """Close all connections to the target."""
        self.client.close()

    def not_owed(self, requirement: str) -> str | None:
        """Return why a requirement ended with a version that the target is seen to have; None when it did not end."""
        return self.traces.removed(self.contract.requirements[requirement]) if self.traces else None

    def is_shared(self, requirement: str) -> bool:
        """Tell whether a requirement belongs to no area of operations: all operations verify it together."""
        return self.contract.requirements[requirement].area not in self._areas

    def asks_for(self, exchange: Exchange) -> bool:
        """Tell whether the profile claims and declares what was called, as far as the contract has it."""
        operation = self.validator.operation_of(exchange.call.method, exchange.call.path)
        features = [operation.feature] if operation is not None and operation.feature else []
        return operation is None or (self.profile.claims(operation.area) and all(map(self.profile.declares, features)))

    def _ask(self, actor: str, path: str) -> None:
        """Read a path as an actor of the profile, outside the running test."""
        self._aside(self.profile.actors[actor], path)

    def _read(self, call: Call, path: str) -> Any:
        """Read a path as the actor who made a call; None when that is refused or no JSON."""
        return self._aside(call.actor, path).served_json

    def _aside(self, actor: Credentials | None, path: str) -> Exchange:
        """Read a path outside the test of this thread: no observer concludes anything from the answer."""
        token = _ASIDE.set(True)
        try:
            return self.client.send(actor, "GET", path)
        finally:
            _ASIDE.reset(token)

    def require_allowed(self, method: str, what: str) -> None:
        """Raise NotTested when a call could change a target that may only be read."""
        if self.only_reads and method not in READING:
            raise NotTested(Reason.UNSAFE, f"{what} may change the target, which is only to be read")

    def threads(self, number: int) -> ThreadPoolExecutor:
        """Return this many threads that work for the test of this thread."""
        return ThreadPoolExecutor(number, initializer=enter, initargs=(_CURRENT.get(),))

    def each(self, act: Callable[[T], R], things: Sequence[T]) -> list[R]:
        """Call a function with each of several things, for the test of this thread, and return the results.

        Several calls run at once if waiting for the target takes longer than making a call.
        """
        number = min(self.client.settings.at_once, len(things), self.client.worth_sending_at_once())
        if number <= 1:
            return [act(thing) for thing in things]
        with self.threads(number) as pool:
            try:
                return list(pool.map(act, things))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


@dataclass
class TestContext:
    """One running test of the suite."""

    id: str
    """Node id."""
    run: Run
    results: CheckCollector
    """The results of its checks."""
    history: CallHistory = field(default_factory=CallHistory)
    """The calls that it made."""
    started: float = field(default_factory=time.monotonic)
    expectations: int = 0
    """Number of expectations that were checked; a block that checks none verifies nothing."""
    soft_failures: list[str] = field(default_factory=list)
    """Failures after which the test went on; the test fails at its end."""
    odd_beside: str | None = None
    """The first wrong answer of something that the profile does not ask for: the test may not cope with it."""
    on_silence: Callable[[], None] | None = None
    """Called when a call got no answer, before its check becomes inconclusive: a test that draws moves draws others."""
    failed_before_silence: bool = False
    """Whether a violation was recorded before the first call without an answer."""
    calls_at_once: bool = False
    """Whether it made calls at the same moment, so that its result may depend on which came first."""
    is_unjudged: bool = False
    """True while many calls run at once: then the sender validates them, in its own order."""
    _thread: int = field(default_factory=threading.get_ident)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    __test__ = False  # not a test class, although pytest would take it for one by its name

    @classmethod
    def begin(cls, run: Run, test: str, declared: frozenset[str]) -> TestContext:
        """Return the context of a test that declares to verify these requirements."""
        run.known_reads.forget()
        return cls(test, run, CheckCollector(test, declared, run.write, run.not_owed))

    @property
    def declared(self) -> frozenset[str]:
        """The requirements that the test must verify."""
        return self.results.declared

    def fail_softly(self, text: str) -> None:
        """Make the test fail at its end for something seen on the way; a test that saw a violation is not green."""
        with self._lock:
            if len(self.soft_failures) < _MOST_SOFT_FAILURES and text not in self.soft_failures:
                self.soft_failures.append(text)

    def is_asked(self, requirement: str, violation: Violation) -> bool:
        """Tell whether the profile asks for what a violation is about; otherwise it is noted, and not judged."""
        run, shown = self.run, (violation.exchanges or self.history.suspects)[-1:]
        called = (run.validator.operation_of(one.call.method, one.call.path) for one in shown)
        shown_by = next(called, None) if run.is_shared(requirement) else None
        left_out = left_out_by(run.profile, run.contract.requirements[requirement], shown_by)
        if left_out is not None:
            self.results.tolerated(requirement, f"{left_out[1]}, so this is not judged: {violation}")
            self.odd_beside = self.odd_beside or f"{requirement}: {violation}"
        return left_out is None

    def fail_in_passing(self, requirement: str, violation: Violation, place: str | None = None) -> None:
        """Record that a requirement was violated, and go on. The test fails at its end, unless it is excused."""
        if self.is_asked(requirement, violation):
            self.failed(requirement, violation, place)
            where = "" if place is None else f" at {place or 'the answer'}"
            self.fail_softly(f"{requirement}: {violation}{where}")

    def failed(self, requirement: str, violation: Violation, place: str | None = None) -> None:
        """Record that a requirement was violated, with the exchanges that show it and some that led to it."""
        with self._lock:
            exchanges = self.history.evidence_for(violation.exchanges)

        def shown() -> tuple[tuple[Evidence, ...], str | None]:
            evidence = tuple(evidence_of(exchange, self.run.client) for exchange in exchanges)
            return evidence, self.run.origins.behind(self.run.profile, violation)

        self.results.failed(requirement, violation, shown, place)

    def excused(self, requirement: str, violation: Violation) -> str | None:
        """Return why another version may excuse a violation, and leave the requirement open; None if not.

        Requirements that all operations verify together are left to the operations that the target is seen to have.
        """
        run = self.run
        if run.traces is None:
            return None
        found = run.contract.requirements[requirement]
        detail = run.traces.excuse(found, violation.exchanges or self.history.suspects)
        if detail is not None and run.is_shared(requirement) and not (found.introduced or found.removed):
            self.results.settle([requirement])
        elif detail is not None:
            self.results.open_question(requirement, Outcome.INCONCLUSIVE, Reason.VERSION, detail)
        return detail

    @property
    def spoiled_by(self) -> str | None:
        """The call without an answer that may have spoiled the test; None without one, or after a violation."""
        return None if self.failed_before_silence else self.history.unanswered

    def saw_item(self, item: str, state: ItemState, detail: str) -> None:
        """Record the target's position on an item of the version table."""
        self.run.write(ItemSeen(item, state, detail, self.id))

    def note_findings(self, exchange: Exchange, findings: Sequence[Finding]) -> None:
        """Record what an answer showed about the schemas of the contract."""
        for finding in findings:
            if finding.holds:
                self.results.passed(finding.requirement)
            else:
                violation = Violation(finding.expected, finding.actual, exchange)
                self.fail_in_passing(finding.requirement, violation, finding.place)

    def _recognise(self, exchange: Exchange, seen: Seen) -> None:
        """Stop trusting the target when an answer is something completely different from the described one."""
        place = self.run.validator.place(exchange.call)
        if not seen.unrecognisable:
            self.run.learnt.described.update([place] if exchange.is_success and exchange.body else [])
        # A repeated action may have nothing to tell, and many languages write an empty list as null.
        elif exchange.body.strip() not in (b"", b"null") or place not in self.run.learnt.described:
            told = f"{exchange.call.label} answered {seen.unrecognisable}"
            if self.run.asks_for(exchange):
                self.results.distrust(told)
            self.odd_beside = self.odd_beside or told

    def see(self, exchange: Exchange) -> None:
        """Remember an exchange of this test, and compare its answer with the contract."""
        is_unjudged = self.is_unjudged or _ASIDE.get()
        # What an unjudged read shows is left to the next one: a contradiction is told only once.
        is_left = is_unjudged and exchange.call.method in READING
        undone = [] if is_left else self.run.deletions.contradicted_by(exchange)
        with self._lock:
            was_answered = self.history.unanswered is None
            self.history.add(exchange, keep=not is_unjudged)
            if was_answered and self.history.unanswered is not None:
                self.failed_before_silence = self.results.failures > 0
            if is_unjudged or self.run.first_exports.may_be_yet_to_begin(exchange):
                return
            seen = self.run.validator.seen(exchange)
            self._recognise(exchange, seen)
        self.note_findings(exchange, seen.findings)
        for deletion, name in undone:
            violation = Violation("what was deleted to be gone", f"{name} is listed", deletion.exchange, exchange)
            self.fail_in_passing(deletion.requirement, violation)
        for number in self.run.arrivals.contradicted_by(exchange):
            expected = "no approval by who has not asked to approve"
            violation = Violation(expected, f"user {number} in approved_by", *self.history.suspects, exchange)
            self.fail_in_passing(SEPARATE, violation)
        withdrawn = self.run.served_reads.contradicted_by(exchange)
        if withdrawn is not None:
            requirement, before = withdrawn
            expected = "what the same caller was shown before, or an empty list"
            violation = Violation(expected, f"status {exchange.status}", before, *self.history.suspects, exchange)
            self.fail_in_passing(requirement, violation)
        # For calls that run at the same time, nobody knows which one saw the effect of another.
        if threading.get_ident() == self._thread:
            for found in self.run.shown.contradicted_by(exchange, self.run.known_reads.age):
                self.fail_in_passing(found.requirement, Violation(found.expected, found.actual, *found.exchanges))
        for form in seen.tolerated:
            self.results.tolerated(form.requirement, form.what)

    @contextmanager
    def shrinking(self) -> Iterator[None]:
        """While an example is made smaller, keep only the last failure of each requirement: the smallest one."""
        self.history.begin_example()
        with self.results.pending():
            try:
                yield
            finally:
                self.history.end_examples()

    @contextmanager
    def unjudged(self) -> Iterator[None]:
        """Within the context, validate nothing on the way, and use no call as the one before another."""
        self.is_unjudged = True
        try:
            yield
        finally:
            self.is_unjudged = False
            self.history.forget()

    def end(
        self, outcome: TestOutcome, detail: str | None = None, phase: str | None = None, reason: Reason | None = None
    ) -> None:
        """Leave open what was not checked, and write the result of the test."""
        if outcome is TestOutcome.PASSED:
            self._blame_the_version()
            # Claims about the form of answers are checked on the way, if an answer has something to check.
            self.results.leave_open(Reason.VACUOUS, "no answer held what it is about, as where a list is empty")
        self.results.leave_open(Reason.NOT_REACHED, "its test ended before it was looked at")
        seconds = round(time.monotonic() - self.started, 3)
        self.run.write(TestEnd(self.id, outcome, seconds, self.history.requests, detail, phase, reason))

    def _blame_the_version(self) -> None:
        """Leave open, because of the version, what a target of unknown version may be too old to show."""
        traces = self.run.traces
        if traces is None:
            return
        for name in self.results.unsettled:
            detail = traces.excuse(self.run.contract.requirements[name], ())
            if detail is not None:
                self.results.open_question(name, Outcome.INCONCLUSIVE, Reason.VERSION, detail)


_CURRENT: contextvars.ContextVar[TestContext | None] = contextvars.ContextVar("test", default=None)
#: True while a thread reads outside its test.
_ASIDE: contextvars.ContextVar[bool] = contextvars.ContextVar("aside", default=False)


def current_test() -> TestContext:
    """Return the test that runs in this thread; raise MisuseError outside one."""
    found = _CURRENT.get()
    if found is None:
        raise MisuseError("There is no test. Tests of the suite run under `conformance run` or pytest.")
    return found


def suspects() -> tuple[Exchange, ...]:
    """Return the calls of a violation that names none: the last that may have changed something, and the last.

    It must be called at once, because the calls that restore things come before the violation is caught.
    """
    return current_test().history.suspects


def current_run() -> Run:
    """Return the run of the test that runs in this thread; raise MisuseError outside one."""
    return current_test().run


def enter(test: TestContext | None) -> None:
    """Make this thread work for a test, or for none."""
    _CURRENT.set(test)
    if test is not None:
        test.run.client.test = test.id


@contextmanager
def testing(run: Run, test: str, declared: frozenset[str]) -> Iterator[TestContext]:
    """Within the context, make this thread work for a test of a run."""
    before, context = _CURRENT.get(), TestContext.begin(run, test, declared)
    enter(context)
    try:
        yield context
    finally:
        enter(before)


testing.__test__ = False  # type: ignore[attr-defined]  # not a test class, whatever pytest thinks of the name


def _see(exchange: Exchange) -> None:
    test = _CURRENT.get()
    if test is not None:
        test.see(exchange)
