"""The kill matrix: every fault against the tests of the requirement it violates, in one process and one server."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from conformance import pytest_plugin
from conformance.bookkeeping import Run, running
from conformance.contract import Contract
from conformance.embedded import profile_data
from conformance.record import Check, Outcome, Recorder
from conformance.reference import EmbeddedServer, create_service
from conformance.target.profile import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from conformance.proof.faults import Fault
    from conformance.target import Profile


_DEADLINE_SECONDS = 2


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
    A pytest plugin that runs the collected tests once on the healthy reference, and then fault after fault.

    `kills` grows as it goes; `progress` is told after each fault.
    """

    version: str
    faults: Sequence[Fault]
    progress: Callable[[Kill, int, int], None]
    kills: list[Kill] = field(default_factory=list)
    unhealthy: list[str] = field(default_factory=list)
    """Requirements that fail on the healthy reference: the proof is worth nothing before they are mended."""
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
            bench = _Bench(Path(folder), server, self.version)
            self._prove_health(bench, [items[name] for name in self._wanted(claims) if name in items])
            for number, fault in enumerate(self.faults, start=1):
                kill = self._try(
                    bench, fault, [items[name] for name in claims.get(fault.requirement, ()) if name in items]
                )
                self.kills.append(kill)
                self.progress(kill, number, len(self.faults))
        return True

    def _likely(self, item: pytest.Item, fault: Fault) -> tuple[bool, float]:
        """Put the tests of the faulty operation first, and the quick ones before the slow ones."""
        about = bool(fault.operation) and f"[{fault.operation}]" in item.nodeid
        return not about, self._seconds.get(item.nodeid, 0.0)

    def _wanted(self, claims: Mapping[str, Collection[str]]) -> list[str]:
        requirements = {fault.requirement for fault in self.faults}
        return sorted({test for requirement in requirements for test in claims.get(requirement, ())})

    def _prove_health(self, bench: _Bench, items: Sequence[pytest.Item]) -> None:
        for item in items:
            started = time.perf_counter()
            checks = bench.run(item)
            self._seconds[item.nodeid] = time.perf_counter() - started
            self.unhealthy += [check.requirement for check in checks if check.outcome is Outcome.FAILED]

    def _try(self, bench: _Bench, fault: Fault, items: Sequence[pytest.Item]) -> Kill:
        """Run the tests of the violated requirement, the likeliest first, until one sees the fault."""
        started = time.perf_counter()
        collateral: set[str] = set()
        last: Check | None = None
        with bench.faulty(fault):
            for item in sorted(items, key=lambda item: self._likely(item, fault)):
                for check in bench.run(item):
                    if check.outcome is Outcome.FAILED and check.requirement == fault.requirement:
                        reason = f"expected {check.expected}; got {check.actual}"
                        seconds = round(time.perf_counter() - started, 3)
                        return Kill(fault, True, item.nodeid, reason, tuple(sorted(collateral)), seconds)
                    if check.outcome is Outcome.FAILED:
                        collateral.add(check.requirement)
                    elif check.requirement == fault.requirement and check.outcome is not Outcome.PASSED:
                        last = check
        detail = "no test claims the requirement" if not items else f"{last.outcome}: {last.detail}" if last else None
        return Kill(
            fault, False, None, None, tuple(sorted(collateral)), round(time.perf_counter() - started, 3), detail
        )


class _Bench:
    """One server and one recorder for all runs; a fresh service for each."""

    def __init__(self, folder: Path, server: EmbeddedServer, version: str) -> None:
        self._folder = folder
        self._server = server
        self._version = version
        self._contract = Contract.load()
        self._fault: Fault | None = None
        self._profile = self._profile_of()

    def _profile_of(self) -> Profile:
        data = profile_data(self._server.service.world, self._server.base_url, self._version)
        # What a faulty service never finishes need not be waited for as long as what a real one might.
        data["limits"] = {**data["limits"], "deadline_seconds": _DEADLINE_SECONDS}
        return profile_from(data, "the proof")

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Serve a faulty service while the context lasts."""
        self._fault = fault
        try:
            yield
        finally:
            self._fault = None

    def run(self, item: pytest.Item) -> list[Check]:
        """Run one test on a service of its own and return what it checked."""
        service = create_service(version=self._version)
        if self._fault is not None:
            self._fault.apply(service)
        self._server.serve(service)
        recorder = Recorder(self._folder / "results.jsonl")
        try:
            with running(Run(self._contract, self._profile, recorder)) as run, pytest_plugin.booked(item, run):
                runtestprotocol(item, log=False)
        finally:
            recorder.close()
        return recorder.checks
