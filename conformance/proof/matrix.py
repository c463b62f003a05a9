"""The kill matrix: every fault against the tests of the requirement that it violates, in one session of the suite."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract
from conformance.proof.reasons import ANOTHER_REASON, is_the_reason, reason_of, reasons_for
from conformance.reference import EmbeddedServer
from conformance.reference.clock import Clock
from conformance.results.record import Check, Outcome
from conformance.runner.collection import id_of
from conformance.runner.session import SESSION, Mode
from conformance.suite import load
from conformance.suite.context import Run
from conformance.target.embedded import prepared_service, profile_data
from conformance.target.names import FEATURES
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.proof.faults import Fault, Ground
    from conformance.results.recorder import Line
    from conformance.runner.session import Session
    from conformance.target import Profile

_DEADLINE_SECONDS = 1
#: How long a test is assumed to take before it has run: tests that generate many calls are tried last.
_QUICK_SECONDS, _DRAWING_SECONDS = 0.05, 1.0
_DRAWING = ("test_fuzz.py", "_model.py", "test_completion_rate.py")


@dataclass(frozen=True, slots=True)
class Kill:
    """The result for one fault."""

    fault: Fault
    killed: bool
    by: str | None = None
    """The test that saw it."""
    reason: str | None = None
    """What that test expected and got."""
    collateral: tuple[str, ...] = ()
    """Other requirements that failed on the way."""
    seconds: float = 0.0
    detail: str | None = None
    """Why it survived, as far as that is known."""


@dataclass
class _Trial:
    """A fault that is being tried."""

    fault: Fault
    left: int
    """How many tests are still to be tried on it."""
    collateral: set[str] = field(default_factory=set)
    detail: str | None = None
    seconds: float = 0.0

    def survived(self) -> Kill:
        return Kill(
            self.fault,
            killed=False,
            collateral=tuple(sorted(self.collateral)),
            seconds=round(self.seconds, 3),
            detail=self.detail,
        )


@dataclass
class Matrix:
    """A pytest plugin that runs each test once for every fault of a requirement that it verifies.

    pytest runs the tests for the first fault, then those for the next one, and so on; between two tests the service is
    replaced by one with the next fault. Once a fault is found, its other tests are skipped. A test counts only after it
    has run on the healthy reference without failing the requirement. `tell` gets the result for each fault at once.
    """

    version: str
    faults: Sequence[Fault]
    tell: Callable[[Kill], None]
    unhealthy: set[str] = field(default_factory=set)
    """Requirements that fail on the healthy reference: the proof is worth nothing before they are mended."""
    _failing: dict[tuple[str, Ground], frozenset[str]] = field(default_factory=dict)
    """Of each test that has run on the healthy reference: which requirements failed there."""
    _schedule: list[_Trial] = field(default_factory=list)
    """The trial that each entry of pytest's list of tests belongs to."""
    _seen: set[str] = field(default_factory=set)
    """The faults that were seen."""
    _bench: Bench | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Let the session use our services, and keep no record."""
        session = config.stash[SESSION]
        self._bench = Bench(session, self.version)
        session.keeps_record = False
        session.mode = Mode(self._bench.serving, ends_with_target=False, confirms=False)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Put the tests for the first fault first, the most likely one ahead, then those for the next, and so on."""
        plan = config.stash[SESSION].plan
        tests = {row.id: row.tests for row in plan.requirements} if plan is not None else {}
        known = {id_of(item): item for item in items}
        items.clear()
        for fault in self.faults:
            own = [known[name] for name in tests.get(fault.requirement, ()) if name in known]
            trial = _Trial(fault, len(own))
            if not own:
                self.tell(Kill(fault, killed=False, detail="no test verifies the requirement"))
            for item in sorted(own, key=lambda item: _likelihood(item, trial.fault)):
                items.append(item)
                self._schedule.append(trial)
        self._schedule.reverse()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Replace the service before a test, and read its checks after it."""
        if self._bench is None or self._bench.is_busy:
            return None  # the inner call of the same hook, which runs the test
        trial = self._schedule.pop()
        trial.left -= 1
        if trial.fault.name in self._seen:
            return True
        kill = self._try(self._bench, trial, item)
        if kill is not None:
            self._seen.add(trial.fault.name)
            self.tell(kill)
        elif not trial.left:
            self.tell(trial.survived())
        return True

    def _try(self, bench: Bench, trial: _Trial, item: pytest.Item) -> Kill | None:
        fault = trial.fault
        if not self._passes_without(bench, fault, item):
            trial.detail = "a test of the requirement fails without the fault as well"
            return None
        started = time.perf_counter()
        checks = bench.run(item, fault.ground, fault)
        trial.seconds += time.perf_counter() - started
        for check in checks:
            if check.outcome is Outcome.FAILED and check.requirement == fault.requirement:
                expected, actual = check.expected or "", check.actual or ""
                reason = f"expected {expected}; got {actual}"
                if not is_the_reason(fault, check):
                    wanted = " or ".join(sorted(reasons_for(fault)))
                    trial.detail = (
                        f"{ANOTHER_REASON} than '{wanted}', which is '{reason_of(expected, actual)}': {reason}"
                    )
                    continue
                collateral = tuple(sorted(trial.collateral))
                seconds = round(trial.seconds, 3)
                return Kill(fault, killed=True, by=id_of(item), reason=reason, collateral=collateral, seconds=seconds)
            if check.outcome is Outcome.FAILED:
                trial.collateral.add(check.requirement)
            elif check.requirement == fault.requirement and check.outcome is not Outcome.PASSED:
                trial.detail = f"{check.outcome}: {check.detail}"
        return None

    def _passes_without(self, bench: Bench, fault: Fault, item: pytest.Item) -> bool:
        """Tell whether a test finds no failure of the fault's requirement on a healthy service."""
        key = (id_of(item), fault.ground)
        if key not in self._failing:
            checks = bench.run(item, fault.ground)
            failed = frozenset(check.requirement for check in checks if check.outcome is Outcome.FAILED)
            self._failing[key] = failed
            self.unhealthy |= failed
        return fault.requirement not in self._failing[key]


def _likelihood(item: pytest.Item, fault: Fault) -> tuple[bool, float]:
    """Put the tests of the faulty operation first, and quick tests before slow ones."""
    about = bool(fault.operation) and f"[{fault.operation}]" in item.nodeid
    return not about, _DRAWING_SECONDS if item.path.name.endswith(_DRAWING) else _QUICK_SECONDS


@dataclass
class _Lookout:
    """Ends a test as soon as it has seen its fault: what comes after that decides nothing.

    The next test gets a service of its own, so that nothing need be put back.
    """

    fault: Fault | None
    tell: Callable[[Line], None]
    is_over: bool = False

    def write(self, line: Line) -> None:
        """Pass on a line of the record, and end the test if it is the failure that the fault states."""
        self.tell(line)
        if self.fault is None or not isinstance(line, Check):
            return
        if line.outcome is Outcome.FAILED and line.requirement == self.fault.requirement:
            self.is_over |= is_the_reason(self.fault, line)
            self.stop()

    def stop(self, _: object = None) -> None:
        """End the test at its next call as well, if it goes on all the same."""
        if self.is_over:
            raise pytest.skip.Exception("the fault has been seen")


class Bench:
    """One server for all tests of a session, with a new service for each."""

    def __init__(self, session: Session, version: str) -> None:
        """Serve nothing yet."""
        self._session = session
        self._version = version
        self._contract = Contract.load()
        self._clock = MovedClock()
        self._server: EmbeddedServer | None = None
        self._profiles: dict[Ground | None, Profile] = {}
        self.is_busy = False

    @contextmanager
    def serving(self) -> Iterator[Profile]:
        """Serve services of the version while the context lasts, and return a profile with which no test is left out.

        Times without any call are skipped by advancing the clock of the service.
        """
        with ExitStack() as stack:
            self._server = stack.enter_context(EmbeddedServer(prepared_service(version=self._version)))
            let_pass, load.let_pass = load.let_pass, self._clock.skip
            try:
                yield replace(self._profile(None), features=dict.fromkeys(FEATURES, True))
            finally:
                load.let_pass = let_pass

    def run(self, item: pytest.Item, ground: Ground, fault: Fault | None = None) -> list[Check]:
        """Let pytest run one test on its own service, with or without a fault, and return its checks."""
        if self._server is None:
            raise RuntimeError("The tests were run before the server was up.")
        service = prepared_service(version=self._version, choices=ground.choices, clock=self._clock)
        if fault is not None:
            fault.apply(service)
        self._server.serve(service)
        session = self._session
        lookout = _Lookout(fault, session.writer.write)
        before, session.run = session.run, Run(self._contract, self._profile(ground), lookout.write)
        session.run.client.before_write(lookout.stop)
        session.run.client.on_exchange(lookout.stop)
        self.is_busy = True
        session.ending.stopped = None  # a service that does not answer has ended only its own test
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        finally:
            self.is_busy = False
            session.run.close()
            session.run = before
        checks = [line for line in session.writer.lines if isinstance(line, Check)]
        session.writer.lines.clear()
        return checks

    def _profile(self, ground: Ground | None) -> Profile:
        if ground not in self._profiles:
            choices = ground.choices if ground is not None else None
            world = prepared_service(version=self._version, choices=choices).world
            data = profile_data(world, self._server.base_url if self._server else "", self._version)
            # A faulty service may never finish something, so the wait is shorter than for a real one.
            data["limits"] = {**data["limits"], "deadline_seconds": _DEADLINE_SECONDS}
            features: Mapping[str, bool] = dict(ground.features) if ground is not None else {}
            data["features"] = {**data["features"], **features}
            self._profiles[ground] = profile_from(data, "the proof")
        return self._profiles[ground]


class MovedClock(Clock):
    """The clock of the machine, which can be advanced."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def skip(self, seconds: float) -> None:
        """Advance the clock by this number of seconds."""
        self._ahead += seconds

    def now(self) -> datetime:
        """Return the advanced time in UTC."""
        return super().now() + timedelta(seconds=self._ahead)

    def seconds(self) -> float:
        """Return seconds that only increase."""
        return super().seconds() + self._ahead
