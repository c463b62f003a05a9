"""The kill matrix: every fault against the tests of the requirement it violates, in one process and one server."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from conformance.contract import Contract
from conformance.reference import EmbeddedServer, create_service
from conformance.reference.clock import Clock
from conformance.results.record import Check, Outcome, Recorder
from conformance.runner import plugin as pytest_plugin
from conformance.suite import load as bursts
from conformance.suite.context import Run, running
from conformance.target.embedded import profile_data
from conformance.target.profile import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from conformance.proof.faults import Fault, Ground
    from conformance.target import Profile


_DEADLINE_SECONDS = 2
#: What a test is taken to last before it has run: those that draw many calls are tried last.
_QUICK_SECONDS, _DRAWING_SECONDS = 0.05, 1.0
_DRAWING = ("test_coverage.py", "test_fuzz.py", "_model.py", "test_completion_rate.py")


@dataclass(frozen=True, slots=True)
class Kill:
    """What became of one fault."""

    fault: Fault
    killed: bool
    by: str | None
    """The test that saw it."""
    reason: str | None
    """What that test expected and got."""
    collateral: tuple[str, ...]
    """Other requirements that failed on the way."""
    seconds: float
    detail: str | None = None
    """Why it survived, as far as that is known."""


@dataclass
class Matrix:
    """
    A pytest plugin that runs the tests of each fault's requirement against it, instead of all tests once.

    A test counts only after it has run on the healthy reference without failing the requirement. `tell` gets what
    became of each fault as soon as that is known.
    """

    version: str
    faults: Iterable[Fault]
    tell: Callable[[Kill], None]
    unhealthy: set[str] = field(default_factory=set)
    """Requirements that fail on the healthy reference: the proof is worth nothing before they are mended."""
    _failing: dict[tuple[str, Ground], frozenset[str]] = field(default_factory=dict)
    """Of each test that has run on the healthy reference: which requirements failed there."""
    _seconds: dict[str, float] = field(default_factory=dict)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Say that the tests are run here."""
        config.stash[pytest_plugin.RUNS_ELSEWHERE] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop and of a run's."""
        claims: Mapping[str, Collection[str]] = session.config.stash[pytest_plugin.ALL_CLAIMS]
        items = {item.nodeid: item for item in session.items}
        service = create_service(version=self.version)
        with TemporaryDirectory() as folder, EmbeddedServer(service) as server:
            bench = Bench(Path(folder), server, self.version)
            with bench.owning_time():
                for fault in self.faults:
                    known = [items[name] for name in claims.get(fault.requirement, ()) if name in items]
                    self.tell(self._try(bench, fault, known))
        return True

    def _likely(self, item: pytest.Item, fault: Fault) -> tuple[bool, float]:
        """Put the tests of the faulty operation first, and the quick ones before the slow ones."""
        about = bool(fault.operation) and f"[{fault.operation}]" in item.nodeid
        guessed = _DRAWING_SECONDS if item.path.name.endswith(_DRAWING) else _QUICK_SECONDS
        return not about, self._seconds.get(item.nodeid, guessed)

    def _passes_without(self, bench: Bench, fault: Fault, item: pytest.Item) -> bool:
        """Tell whether a test finds nothing wrong with the fault's requirement where nothing is."""
        key = (item.nodeid, fault.ground)
        if key not in self._failing:
            started = time.perf_counter()
            failed = frozenset(
                check.requirement for check in bench.run(item, fault.ground) if check.outcome is Outcome.FAILED
            )
            self._seconds[item.nodeid] = time.perf_counter() - started
            self._failing[key] = failed
            self.unhealthy |= failed
        return fault.requirement not in self._failing[key]

    def _try(self, bench: Bench, fault: Fault, items: Sequence[pytest.Item]) -> Kill:
        """Run the tests of the violated requirement, the likeliest first, until one sees the fault."""
        collateral: set[str] = set()
        detail = None if items else "no test claims the requirement"
        seconds = 0.0
        for item in sorted(items, key=lambda item: self._likely(item, fault)):
            if not self._passes_without(bench, fault, item):
                detail = "a test of the requirement fails without the fault as well"
                continue
            started = time.perf_counter()
            checks = bench.run(item, fault.ground, fault)
            seconds = round(seconds + time.perf_counter() - started, 3)
            for check in checks:
                if check.outcome is Outcome.FAILED and check.requirement == fault.requirement:
                    reason = f"expected {check.expected}; got {check.actual}"
                    return Kill(fault, True, item.nodeid, reason, tuple(sorted(collateral)), seconds)
                if check.outcome is Outcome.FAILED:
                    collateral.add(check.requirement)
                elif check.requirement == fault.requirement and check.outcome is not Outcome.PASSED:
                    detail = f"{check.outcome}: {check.detail}"
        return Kill(fault, False, None, None, tuple(sorted(collateral)), seconds, detail)


class Bench:
    """One server and one recorder for all runs; a fresh service for each."""

    def __init__(self, folder: Path, server: EmbeddedServer, version: str) -> None:
        self._folder = folder
        self._server = server
        self._version = version
        self._contract = Contract.load()
        self._clock = _Clock()
        self._profiles: dict[Ground, Profile] = {}

    @contextmanager
    def owning_time(self) -> Iterator[None]:
        """Let times without any call pass at once while the context lasts: the service's clock is put forward."""
        let_pass, bursts.let_pass = bursts.let_pass, self._clock.skip
        try:
            yield
        finally:
            bursts.let_pass = let_pass

    def run(self, item: pytest.Item, ground: Ground, fault: Fault | None = None) -> list[Check]:
        """Run one test on a service of its own, with a fault or without, and return what it checked."""
        service = create_service(version=self._version, choices=ground.choices, clock=self._clock)
        profile = self._profile(ground)
        if fault is not None:
            fault.apply(service)
        self._server.serve(service)
        recorder = Recorder(self._folder / "results.jsonl")
        try:
            with running(Run(self._contract, profile, recorder)) as run, pytest_plugin.in_context(item, run):
                runtestprotocol(item, log=False)
        finally:
            recorder.close()
        return recorder.checks

    def _profile(self, ground: Ground) -> Profile:
        if ground not in self._profiles:
            world = create_service(version=self._version, choices=ground.choices).world
            data = profile_data(world, self._server.base_url, self._version)
            # What a faulty service never finishes need not be waited for as long as what a real one might.
            data["limits"] = {**data["limits"], "deadline_seconds": _DEADLINE_SECONDS}
            data["features"] = {**data["features"], **dict(ground.features)}
            self._profiles[ground] = profile_from(data, "the proof")
        return self._profiles[ground]


class _Clock(Clock):
    """The clock of the machine, which can be put forward."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def skip(self, seconds: float) -> None:
        """Let so many seconds have passed."""
        self._ahead += seconds

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead)

    def seconds(self) -> float:
        return super().seconds() + self._ahead
