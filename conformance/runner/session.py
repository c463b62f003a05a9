"""One session of the suite: from the operator's options to a target, a plan, a run, a record and its reports."""

from __future__ import annotations

import secrets
import sys
import time
from collections import Counter
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, ContractError, ExitCode, TargetError, UsageError
from conformance.fuzzing.corpus import Budget, corpus_folder
from conformance.fuzzing.session_cases import SessionCases
from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.durations import Durations
from conformance.results.parts import closed, require_same_fixtures, require_same_run, together
from conformance.results.plan import Plan, access, make_plan, table
from conformance.results.record import Footer, NetworkUse, Notice, RunRecord, TestEnd, TestOutcome
from conformance.results.recorder import Recorder
from conformance.results.verdicts import RunResult, RunVerdict
from conformance.runner.absent import know_absent, know_and_tell
from conformance.runner.precautions import Precautions, when_terminated
from conformance.runner.profiles import doubts, reference_target, reference_version
from conformance.runner.record_writer import RecordWriter
from conformance.suite.context import Run
from conformance.suite.latencies import summed_up
from conformance.target.machine import require_confirmed
from conformance.target.preflight import preflight, undeclared
from conformance.target.readings import State
from conformance.target.version import upgraded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from conformance.contract import Contract, Version
    from conformance.results.plan import SuiteTest
    from conformance.runner.job import Job
    from conformance.runner.options import Options
    from conformance.target import Profile
    from conformance.target.readings import Finding


class TimeIsUpError(Exception):
    """The time for the run is over; no more tests are begun."""


@dataclass(frozen=True)
class Mode:
    """How a session of an operator runs; a proof, which serves its own targets, changes some of it."""

    serve: Callable[[], AbstractContextManager[Profile]] | None = None
    """Serves the target instead of the embedded reference."""
    ends_with_target: bool = True
    """Whether no further test starts when the target stops answering."""
    confirms: bool = True
    """Whether a failed test runs once more before its failure counts."""
    renders: bool = True
    """Whether reports are rendered from the record."""


@dataclass(frozen=True)
class Share:
    """The part of a run that falls to one process."""

    world: int = 0
    """The number of this process's own world; with several workers, the world of the first one."""
    beside: int = 1
    """How many processes, this one included, share the tests."""
    seconds_known: Mapping[str, float] = field(default_factory=dict)
    """How long each test took in the last run against this target."""


@dataclass(frozen=True)
class ProcessSummary:
    """What one process knows about all the tests that it ran."""

    requests: int
    """How many it sent, those before, between and beside the tests included."""
    drawn: Mapping[str, int]
    """How many cases it drew, by sort."""
    network: NetworkUse
    latencies: Mapping[str, Sequence[float]]
    """How long the target took to answer, by operation."""
    warnings: Sequence[str]


@dataclass
class Ending:
    """How a run ended, as far as it is known."""

    stopped: str | None = None
    """Why it ended early."""
    could_not_run: bool = False
    """Whether it ended before its first test because the target could not be tested."""
    interrupted: bool = False
    """Whether somebody interrupted it, or pytest reported an interrupt."""
    terminated: bool = False
    """Whether SIGTERM ended it."""
    contradicted: tuple[str, ...] = ()
    """The places where the target contradicts the profile, when the run was forced anyway."""
    left: tuple[str, ...] = ()
    """What it changed and could not put back."""

    @property
    def is_early(self) -> bool:
        """Whether not every test that was to run could run."""
        return self.stopped is not None or self.interrupted


@dataclass
class Session:
    """The state of a session before, while and after it runs.

    `open` starts target and record; `close` adds up the results, writes the footer and renders the reports.
    """

    job: Job

    # This process's part.
    share: Share = field(default_factory=Share)
    mode: Mode = field(default_factory=Mode)
    keeps_record: bool = True
    """Whether this process keeps the record; other processes send it their lines."""
    freed_worlds: list[int] = field(default_factory=list)
    """The worlds of crashed workers, for the workers that replace them."""

    # The run.
    name: str = ""
    """The unique name of this run."""
    target: Profile | None = None
    """The target's profile in this run; None before the plan is made."""
    plan: Plan | None = None
    run: Run | None = None
    writer: RecordWriter = field(default_factory=RecordWriter)
    cases: SessionCases = field(init=False)
    precautions: Precautions | None = None
    """The ledgers of what this run changes; None when nothing is restored."""
    begun_anew: int = 0
    """How many times a test started again because the network had spoiled it."""
    of_workers: list[ProcessSummary] = field(default_factory=list)
    """The summaries of the workers."""

    ending: Ending = field(default_factory=Ending)
    result: RunResult | None = None
    record: RunRecord | None = None
    reports_problem: str | None = None
    """Why not all reports could be written."""
    _clock: float = field(default_factory=time.monotonic)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Set the name of the run and the budget of its cases."""
        self.name = self.name or f"{self.job.begun:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
        budget = Budget(self.seed, self.options.max_examples, self.options.fuzz_seconds)
        self.cases = SessionCases(self.contract, budget, corpus_folder(self.options.corpus))

    @property
    def options(self) -> Options:
        """The operator's options."""
        return self.job.options

    @property
    def contract(self) -> Contract:
        """The contract that the target is tested against."""
        return self.job.contract

    @property
    def seed(self) -> int:
        """The seed of all random choices."""
        return self.job.seed

    @property
    def version(self) -> Version | None:
        """The version to judge by; None when it is unknown."""
        return self.job.version

    @property
    def is_over(self) -> bool:
        """Whether no further test starts: the target is gone, or the time is over."""
        return self.ending.stopped is not None and self.mode.ends_with_target

    @property
    def durations(self) -> Durations:
        """How long tests took on this target, as far as known."""
        return Durations(self.cases.folder, self.job.profile.base_url if self.job.profile is not None else "")

    @property
    def subject(self) -> str:
        """What is tested, in a few words."""
        if self.job.profile is None and self.mode.serve is None:
            return f"the embedded reference of version {reference_version(self.options)}"
        return str(self.target.redacted()["base_url"]) if self.target is not None else "a target"

    @property
    def is_open(self) -> bool:
        """Whether the run has begun and has not ended."""
        return self.run is not None and self.result is None

    @property
    def summary(self) -> ProcessSummary:
        """What this process knows about all of its tests."""
        drawn, warnings = self.cases.counts, self.cases.warnings
        if self.run is None:
            return ProcessSummary(0, dict(drawn), NetworkUse(), {}, warnings)
        drawn += Counter(held_back=self.run.learnt.held_back)
        seen = self.run.client.retries
        network = NetworkUse(dict(seen.counts), dict(seen.unanswered), round(seen.waited, 1), self.begun_anew)
        return ProcessSummary(self.run.client.requests, dict(drawn), network, dict(self.run.latencies.of), warnings)

    def _paced(self, profile: Profile) -> Profile:
        """Return a copy of a profile that limits this process to its part of the allowed rate."""
        told = [number for number in (self.options.max_rps, profile.limits.requests_per_second) if number is not None]
        share = self._part_of(min(told, default=None))
        return replace(profile, limits=replace(profile.limits, requests_per_second=share))

    def _part_of(self, number: float | None) -> float | None:
        """Return this process's part of a number that holds for the whole run."""
        return None if number is None else number / self.share.beside

    def await_answers(self) -> None:
        """Wait until the target answers again, within the budget."""
        if self.run is not None:
            with suppress(RequestsSpentError):
                self.run.client.await_answers()

    def draw_ahead(self, tests: Iterable[str]) -> None:
        """Start drawing the cases that these tests will need."""
        if self.run is not None and self.plan is not None:
            drawn = filter(None, (self.plan.tests[name].draws for name in tests))
            self.cases.draw_ahead(drawn, self.run.profile.version)

    def require_time(self) -> None:
        """Raise TimeIsUpError when the operator's minutes are over."""
        minutes = self.options.minutes
        if minutes is not None and time.monotonic() - self._clock > minutes * 60:
            raise TimeIsUpError(f"the {minutes:g} minutes of --minutes were over")

    # -- the run -------------------------------------------------------------------------------------------------------

    def make_plan(self, tests: Mapping[str, SuiteTest]) -> Plan:
        """Start the target if it starts with the run, and plan which of these tests run."""
        if self.plan is None:
            self.target = self._target()
            self.plan = make_plan(self.contract, self.target, tests.values(), self.options.selection, self.job.baseline)
            earlier = self.job.earlier
            if earlier is not None and self.job.kept.issuperset(self.plan.selected):
                raise UsageError(f"Every test of {earlier.name} came to a result: nothing is left to go on with.")
        return self.plan

    def open(self) -> None:
        """Begin the record, write the plan, and check whether the target can be tested.

        Raise ConformanceError, with the record closed, when the run cannot start.
        """
        if self.target is None or self.plan is None:
            raise ContractError("The run has no plan.")
        self._clock = time.monotonic()
        if self.keeps_record and self._changes_what_stays and self.job.profile is not None:
            require_confirmed(self.job.profile, self.options.confirm)
        if self.keeps_record:
            self.writer.recorder = self._begun_record(self.target, self.plan)
        options, paced = self.options, self._paced(self.target)
        settings = paced.client_settings(options.concurrency, only_reads=options.read_only, run=self.name)
        self.run = Run(self.contract, paced, self.writer.write, settings)
        self._stack.callback(self.run.close)
        if self.keeps_record:
            # Python prints arguments in tracebacks; for a method that would be all that the session knows.
            self._stack.callback(when_terminated(lambda *_: self._terminate()))
        try:
            if self.keeps_record:
                preflight(self.target, self.run.client)
                if self.job.profile is not None and self.options.as_of is None:
                    self._take_up(doubts(self.target, self.run.client, self.options))
            self._take_precautions()
            look = partial(know_and_tell, self.run, self.plan, self.writer.write_at_once)
            know_absent(self.run, look, self.cases.shared, is_worker=not self.keeps_record)
        except (ConformanceError, TargetGoneError, RequestsSpentError) as error:
            why = error if isinstance(error, ConformanceError) else TargetError(f"The run could not begin: {error}")
            self.ending.stopped, self.ending.could_not_run = str(why), True
            self.close()
            raise why from None
        if self.keeps_record:
            for text in undeclared(self.target, self.run.client):
                self.writer.write(Notice(text))
        share = self._part_of(options.max_requests)
        self.run.client.most_requests = None if share is None else self.run.client.requests + int(share)

    def _begun_record(self, profile: Profile, plan: Plan) -> Recorder:
        """Begin the record; when this run resumes another, include that run's results."""
        header, earlier = self.job.header(profile), self.job.earlier
        if earlier is not None:
            before = earlier.record.header
            require_same_run(earlier.name, before, "this run", header)
            require_same_fixtures(earlier.name, before, header)
            header = replace(header, started=before.started)
        recorder = self._recorder_of_its_own() if self.mode.renders else Recorder(self.job.folder / "results.jsonl")
        recorder.write(header)
        recorder.write_plan(plan.requirements)
        recorder.write_table(table(self.contract))
        recorder.write_access(access(self.contract, profile.version))
        for line in (*earlier.lines_of(self.job.kept), *earlier.notices) if earlier is not None else ():
            recorder.append(line)
        if earlier is not None:
            recorder.take_its_place()
        self.writer.ended |= self.job.kept
        return recorder

    def _recorder_of_its_own(self) -> Recorder:
        """Open the record in a folder without reports of another run; that run's record is moved aside."""
        from conformance.reports import set_aside, take_away  # noqa: PLC0415 - what renders is for no worker

        folder = self.job.folder
        told = set_aside(folder) if self.job.earlier is None else None
        if told is not None:
            print(told, file=sys.stderr)  # noqa: T201 - whoever names a folder twice has to know
        recorder = Recorder(folder / "results.jsonl", waits=self.job.earlier is not None)
        take_away(folder)
        return recorder

    def _terminate(self) -> None:
        if not self.ending.terminated:  # some send it again and again, and to be told once is enough
            self.ending.terminated = True
            raise KeyboardInterrupt

    def _take_precautions(self) -> None:
        """Make sure that all later changes are undone; raise TargetError when another run uses the target."""
        if self.job.profile is None or self.run is None or not self._changes_what_stays:
            return
        folder = self.writer.recorder.file.parent if self.writer.recorder is not None else self.job.folder
        precautions = Precautions.of(self._paced(self.job.profile), self.options.target, folder, self.name)
        self._stack.callback(precautions.close)
        if self.keeps_record:
            self._stack.callback(precautions.release)
            if self.job.earlier is not None:
                precautions.end_earlier()
            worlds = range(self.share.world, self.share.world + self.options.workers)
            for text in precautions.begin(worlds, restores=not self.options.no_restore):
                self.writer.write(Notice(text))
        self.precautions = precautions
        if self.options.workers == 1:
            precautions.keep_ledger(self.run, self.share.world, self.plan)

    @property
    def _changes_what_stays(self) -> bool:
        return self.job.profile is not None and self.mode.serve is None and not self.options.read_only

    def say_deselected(self, selected: Collection[str], cause: str = "") -> None:
        """Record why each planned test that is not selected is left out: `cause`, unless the plan names a reason."""
        for name in self.plan.tests if self.plan else ():
            if name not in selected and name not in self.writer.ended:
                left_out = self.plan.left_out.get(name) if self.plan else None
                self.writer.write(TestEnd(name, TestOutcome.DESELECTED, detail=left_out or cause))

    def _target(self) -> Profile:
        if self.mode.serve is not None:
            return self._stack.enter_context(self.mode.serve())
        if self.job.profile is None:
            return self._stack.enter_context(reference_target(self.options, self.version))
        return self.job.profile.in_world(self.share.world)

    def _take_up(self, found: Iterable[Finding]) -> None:
        """Keep what the target contradicts for the report, and warn of the rest and of another version."""
        told = [(one, f"{one.place}: {one.detail}") for one in found]
        self.ending.contradicted = tuple(text for one, text in told if one.state is State.CONTRADICTED)
        for text in (text for one, text in told if one.state is not State.CONTRADICTED or one.place == "version"):
            self.writer.write(Notice(text))

    # -- the end -------------------------------------------------------------------------------------------------------

    def close(self, heard: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """Record the outcome of every planned test, add up, render the reports, and release the target.

        `heard` gives a context in which an interrupt ends what is waited for; outside it, none should be able to.
        """
        try:
            if self.writer.recorder is not None and self.result is None:
                self._say_what_was_not_begun()
                self.ending.left = self._put_back(heard)
                with suppress(KeyboardInterrupt), heard():  # somebody does not want to wait for this answer
                    self._say_whether_it_was_upgraded()
                self._finish(self.writer.recorder)
        finally:
            self.cases.close()
            self._stack.close()

    def _put_back(self, heard: Callable[[], AbstractContextManager[None]]) -> tuple[str, ...]:
        """Restore what was changed, and return what is left; an error here must not lose the results."""
        try:
            with heard():
                return self.precautions.put_back() if self.precautions is not None else ()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - as said above
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
            return (f"what could not be put back ({why}). Later: conformance restore {self.job.folder}",)

    def _say_whether_it_was_upgraded(self) -> None:
        """Warn when the target, which is asked for its version, tells another one than before the tests."""
        if self.run is None or self.target is None or self.ending.is_early:
            return
        self.run.client.most_requests = None
        text = upgraded(self.target, self.run.client) if self.target.asks_version else None
        if text is not None:
            self.writer.write(Notice(text))

    def _say_what_was_not_begun(self) -> None:
        cause = self.ending.stopped or "pytest ended before it, without a reason"
        self.say_deselected(self.plan.selected if self.plan else ())
        for name in self.plan.tests if self.plan else ():
            if name not in self.writer.ended:
                self.writer.write(TestEnd(name, TestOutcome.NOT_BEGUN, detail=cause))

    def _finish(self, recorder: Recorder) -> None:
        """Add up the results, write the footer and render the reports."""
        processes, earlier = [self.summary, *self.of_workers], self.job.earlier
        for process in processes:
            for warning in process.warnings:
                recorder.write(Notice(warning))
        before = earlier.record.latencies if earlier is not None else ()
        recorder.write_latencies(together((before, summed_up([process.latencies for process in processes]))))
        footer = Footer(
            verdict=RunVerdict.INCOMPLETE,
            exit_code=ExitCode.INCOMPLETE,
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            requests=self._requests(processes),
            seconds=round(time.monotonic() - self._clock, 3),
            detail=self.ending.stopped,
            drawn=dict(sum((Counter(process.drawn) for process in processes), Counter())),
            network=sum((process.network for process in processes), NetworkUse()),
            could_not_run=self.ending.could_not_run,
            left=self.ending.left,
            contradicted=self.ending.contradicted,
        )
        self.record, self.result = closed(recorder, earlier.followed_by(footer) if earlier is not None else footer)
        self.durations.remember(end for end in self.record.tests if end.test not in self.job.kept)
        if not self.mode.renders:
            return
        from conformance.reports import render_all  # noqa: PLC0415 - what renders is for no worker

        try:
            render_all(self.record, recorder.file.parent)
        except Exception as error:  # noqa: BLE001 - whatever a renderer stumbles over, the record is not lost
            kept = "The record is lost too." if recorder.is_lost else f"The record is kept: {recorder.file}"
            self.reports_problem = f"Reports could not be written: {error} {kept}"
            print(self.reports_problem, file=sys.stderr)  # noqa: T201 - it must reach the operator in any case

    def _requests(self, processes: Iterable[ProcessSummary]) -> int:
        """Return how many requests were sent, those of tests that an earlier part of the run has ended included."""
        earlier = self.job.earlier
        before = earlier.requests_of(self.job.kept) if earlier is not None else 0
        # A worker that crashed has left no number of its own, only those of the tests that it ended.
        return before + max(sum(process.requests for process in processes), self.writer.requests_of_ended)

    @property
    def exit_code(self) -> ExitCode | None:
        """The exit code of the run; None when there was no run. A report that could not be written is no success."""
        if self.result is None:
            return None
        code, recorder = self.result.exit_code, self.writer.recorder
        is_missing = self.reports_problem or (recorder is not None and recorder.moved)
        hides_it = code in (ExitCode.CONFORMANT, ExitCode.INCOMPLETE)
        return ExitCode.SUITE_BROKE if hides_it and is_missing else code


SESSION = pytest.StashKey[Session]()
