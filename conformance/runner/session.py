"""One session of the suite: from the operator's options to a target, a run, a record and its reports."""

from __future__ import annotations

import platform
import random
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from conformance import __version__
from conformance.contract import Contract, Version
from conformance.errors import ExitCode, TargetError, UsageError
from conformance.fuzzing.corpus import Budget, Corpus, corpus_folder
from conformance.reports import render_all
from conformance.results.known_failures import load_known_failures
from conformance.results.plan import plan, table
from conformance.results.record import RECORD_FORM, Footer, Header, Notice, PlannedRequirement, Recorder, RunRecord
from conformance.results.verdicts import RunResult, RunVerdict, add_up
from conformance.suite.context import Run, running
from conformance.target import Profile, load_profile
from conformance.target.embedded import DEFAULT_VERSION, embedded_target
from conformance.target.preflight import preflight, undeclared
from conformance.target.profile import AUTO, base_url_from
from conformance.target.version import contradiction, resolved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.runner.options import Options


class TimeIsUpError(Exception):
    """The time for the run is over; no more tests are begun."""


@dataclass
class Session:
    """What is known of a session before, while and after it runs."""

    options: Options
    contract: Contract
    profile: Profile | None
    """None for the embedded reference, which starts with the run."""
    seed: int
    warnings: tuple[str, ...] = ()
    """What is worth a warning before the run begins."""
    known_failures: Mapping[str, str] = field(default_factory=dict)
    """The requirements that are known to fail, with the reason."""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    run: Run | None = None
    recorder: Recorder | None = None
    stopped: str | None = None
    """Why the run ended early."""
    result: RunResult | None = None
    record: RunRecord | None = None
    reports: tuple[Path, ...] = ()
    corpus_folder: Path | None = None
    """Where drawn cases are kept from run to run, if anywhere."""
    corpora: dict[Version | None, Corpus] = field(default_factory=dict)
    """The cases that this run draws and replays, by the version of their target."""
    _clock: float = field(default_factory=time.monotonic)
    _has_head: bool = False
    """Whether the record has begun, so that there is something to add up."""

    @classmethod
    def prepare(cls, options: Options) -> Session:
        """Check the options as far as that goes without a request; raise UsageError when they are wrong."""
        contract = Contract.load()
        for area in options.areas:
            if area not in contract.areas:
                raise UsageError(f"There is no area '{area}'. Areas are: {', '.join(contract.areas)}.")
        for requirement in options.requirements:
            contract.requirement(requirement)
        if options.version is not None and options.version != AUTO:
            Version.parse_known(options.version)
        if options.as_of is not None:
            Version.parse_known(options.as_of)
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**31)
        folder = corpus_folder(options.corpus)
        known = load_known_failures(options.known_failures, contract) if options.known_failures else {}
        profile, warnings = _profile(options)
        return cls(options, contract, profile, seed, warnings, known, corpus_folder=folder)

    @property
    def version(self) -> Version | None:
        """The version to judge by: from the options, the profile, the target, or the default of the reference."""
        if self.profile is not None:
            return self.profile.version
        if self.options.as_of is not None:
            return Version.parse_known(self.options.as_of)
        return Version.parse_known(self._reference_version)

    @property
    def _reference_version(self) -> str:
        """The version that the embedded reference shall have, which always knows it."""
        wanted = self.options.version
        return DEFAULT_VERSION if wanted in (None, AUTO) else wanted

    @property
    def folder(self) -> Path:
        """Where the reports of this run go."""
        if self.options.out is not None:
            return self.options.out
        target = self.profile.title if self.profile else "reference"
        return Path("reports") / target / self.started.strftime("%Y%m%dT%H%M%SZ")

    def corpus(self, version: Version | None) -> Corpus:
        """Return the drawn cases for targets of a version."""
        if version not in self.corpora:
            self.corpora[version] = Corpus(self.contract, version, self.corpus_folder)
        return self.corpora[version]

    def draw_ahead(self, wanted: Iterable[tuple[Operation, str]]) -> None:
        """Begin to draw the cases of these operations and phases, which tests of this run will ask for."""
        if self.run is not None:
            self.corpus(self.run.profile.version).draw_ahead(wanted, self.budget)

    @property
    def budget(self) -> Budget:
        """What decides which random cases are drawn for an operation."""
        return Budget(self.seed, self.options.max_examples, self.options.fuzz_seconds)

    def require_time(self) -> None:
        """Raise TimeIsUpError when the operator's minutes are over."""
        minutes = self.options.minutes
        if minutes is not None and time.monotonic() - self._clock > minutes * 60:
            raise TimeIsUpError(f"the {minutes:g} minutes for the run were over")

    def wants(self, claims: Collection[str]) -> bool:
        """Tell whether a test with these claims belongs to what the operator selected."""
        if self.options.requirements and not set(self.options.requirements).intersection(claims):
            return False
        areas = {self.contract.requirements[name].area for name in claims}
        return not self.options.areas or bool(areas.intersection(self.options.areas))

    @contextmanager
    def running(self, claims: Mapping[str, Collection[str]], selected: Collection[str]) -> Iterator[Run]:
        """Open target and record, yield the run, and close with footer and reports whatever happens."""
        self._clock = time.monotonic()
        with ExitStack() as stack:
            recorder = self.recorder = Recorder(self.folder / "results.jsonl")
            stack.callback(recorder.close)
            stack.callback(self._draw_no_more)
            try:
                profile = self.profile or self._embedded(stack)
                rows = plan(self.contract, profile, claims, selected, self.known_failures)
                self._write_head(recorder, profile, rows)
                self.run = stack.enter_context(running(Run(self.contract, profile, recorder, self.options.concurrency)))
                self.run.only_reads = self.options.read_only
                preflight(profile, self.run.client)
                self._compare_versions(recorder, profile)
                for text in undeclared(profile, self.run.client):
                    recorder.write(Notice(text))
                yield self.run
            except KeyboardInterrupt:
                self.stopped = "the operator interrupted the run"
                raise
            except TargetError as error:
                self.stopped = str(error)
                raise
            finally:
                if self._has_head:
                    self._finish(recorder)

    def _draw_no_more(self) -> None:
        for corpus in self.corpora.values():
            corpus.close()

    def _write_head(self, recorder: Recorder, profile: Profile, rows: tuple[PlannedRequirement, ...]) -> None:
        recorder.write(
            Header(
                form=RECORD_FORM,
                suite=__version__,
                contract=self.contract.digest,
                target=profile.title,
                base_url=profile.redacted()["base_url"],
                version=str(profile.version or "unknown"),
                version_source=profile.version_source,
                edition=profile.edition,
                profile=profile.redacted(),
                seed=self.seed,
                started=self.started.isoformat(timespec="seconds"),
                python=platform.python_version(),
                arguments=self.options.arguments,
                warnings=self.warnings,
            ),
        )
        recorder.write_plan(rows)
        recorder.write_table(table(self.contract))
        self._has_head = True

    def _embedded(self, stack: ExitStack) -> Profile:
        """Start the reference, and judge it by the version that was asked for."""
        wanted = self._reference_version
        played = DEFAULT_VERSION if Version.parse_known(wanted) is None else wanted
        profile = stack.enter_context(embedded_target(played))
        # The reference keeps the rate; whether that is to be seen, at the cost of minutes, is for the operator to say.
        features = {**profile.features, "completion_rate_limit": "slow" in self.options.include}
        source = self._reference_source(played)
        return replace(profile, version=self.version, version_source=source, features=features)

    def _reference_source(self, played: str) -> str:
        judged_otherwise = self.version is not None and self.version != Version.parse(played)
        return f"--as-of, of a reference of version {played}" if judged_otherwise else "the embedded reference"

    def _compare_versions(self, recorder: Recorder, profile: Profile) -> None:
        """Warn when an operator's version is not the one that the target reports."""
        if self.profile is None or profile.asks_version or self.options.as_of is not None or self.run is None:
            return
        text = contradiction(profile, self.run.client)
        if text is not None:
            recorder.write(Notice(text))

    def _finish(self, recorder: Recorder) -> None:
        """Add up, write the footer and render the reports."""
        for corpus in self.corpora.values():
            if corpus.warning:
                recorder.write(Notice(corpus.warning))
        requests = self.run.client.requests if self.run else 0
        footer = Footer(
            verdict=RunVerdict.INCOMPLETE,
            exit_code=ExitCode.INCOMPLETE,
            ended=datetime.now(UTC).isoformat(timespec="seconds"),
            requests=requests,
            seconds=round(time.monotonic() - self._clock, 3),
            detail=self.stopped,
            drawn=dict(sum((corpus.counts for corpus in self.corpora.values()), Counter())),
        )
        result = add_up(replace(recorder.read_back(), footer=footer))
        recorder.write(replace(footer, verdict=result.verdict, exit_code=result.exit_code))
        self.record = recorder.read_back()
        self.result = add_up(self.record)
        try:
            self.reports = render_all(self.record, recorder.file.parent)
        except Exception as error:  # noqa: BLE001 - whatever a renderer stumbles over, the record is not lost
            print(f"Reports could not be written: {error}. The record is kept: {recorder.file}", file=sys.stderr)  # noqa: T201


def _profile(options: Options) -> tuple[Profile | None, tuple[str, ...]]:
    """Return the profile of the target with its version, and what there is to warn of; None for the reference."""
    profile = _declared_profile(options)
    if profile is None:
        return None, ()
    if options.as_of is not None:
        return replace(profile, version=Version.parse_known(options.as_of), version_source="--as-of"), ()
    return resolved(profile) if profile.asks_version else (profile, ())


def _declared_profile(options: Options) -> Profile | None:
    file = options.target
    if file is None and options.base_url is not None:
        file = Path("target.yaml")
        if not file.is_file():
            raise UsageError(
                "A base URL alone is not enough: the suite also needs tokens and fixtures. Write a profile with "
                "`conformance target --example > target.yaml`, fill it in, and pass --target target.yaml.",
            )
    if file is None:
        return None
    profile = load_profile(file)
    if options.base_url is not None:
        profile = replace(profile, base_url=base_url_from(options.base_url, "--base-url"))
    if options.version is None:
        return profile
    asked = options.version == AUTO
    version = None if asked else Version.parse_known(options.version)
    return replace(profile, version=version, version_source="--target-version", asks_version=asked)
