"""Rounds of the whole suite in one process: against one personality of the reference after another, in any order."""

from __future__ import annotations

import contextlib
import io
import platform
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from conformance import __version__
from conformance.contract import Contract
from conformance.errors import ContractError, ExitCode
from conformance.reference import Choices, EmbeddedServer, create_service
from conformance.results.plan import plan
from conformance.results.record import RECORD_FORM, Check, Footer, Header, Reason, Recorder, RunRecord
from conformance.results.verdicts import RunVerdict, Verdict, add_up
from conformance.runner import plugin as pytest_plugin
from conformance.runner.location import suite_arguments
from conformance.suite.context import Run, running
from conformance.target.embedded import DEFAULT_VERSION, profile_data
from conformance.target.preflight import preflight
from conformance.target.profile import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from conformance.proof.alterations import Alteration
    from conformance.results.verdicts import RequirementVerdict
    from conformance.target import Profile

_SEED = 1
_HANDFUL = 4
#: What draws many cases holds for one personality as for another, and takes most of the time of a round.
WITHOUT_DRAWN = ("-k", "not model and not test_fuzz and not test_coverage", "--max-examples=3")
#: A round at this version is judged as one of a target whose version nobody knows.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Round:
    """One run of the whole suite against a service of its own."""

    name: str
    version: str
    choices: Choices = field(default_factory=Choices)
    features: Mapping[str, bool] = field(default_factory=dict)
    """Where the service declares other features than the reference does by itself."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """What its profile says of patience."""
    alterations: tuple[Alteration, ...] = ()
    """What is put on the service beyond its choices."""
    order: int | None = None
    """The seed by which the tests are shuffled; None for their own order."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one round came to."""

    name: str
    version: str
    order: int | None
    verdict: RunVerdict
    verified: int
    """How many requirements passed."""
    alarms: tuple[str, ...]
    """What failed, with what was expected and seen; of a legal service each is a false alarm."""
    broken: tuple[str, ...]
    """Tests in which the suite itself broke."""
    gaps: tuple[str, ...]
    """What must hold and was not verified, and why."""
    seconds: float
    requests: int

    @property
    def is_clean(self) -> bool:
        """Whether the suite found no fault with the service, and none with itself."""
        return not self.alarms and not self.broken and self.verified > 0


def told(rounds: Iterable[Round], *options: str, progress: Callable[[Told], None] = lambda _: None) -> tuple[Told, ...]:
    """
    Run the suite once for each round and return what they came to, rounds of one version after each other.

    `options` go to the suite in front of its own, such as `--max-examples=3` or `-k` and what to select; `progress`
    is told after each round. Raise ContractError when the suite cannot be collected.
    """
    by_version: dict[str, list[Round]] = {}
    for one in rounds:
        by_version.setdefault(one.version, []).append(one)
    return tuple(each for version, several in by_version.items() for each in _at(version, several, options, progress))


def told_by(
    workers: int, rounds: Sequence[Round], *options: str, progress: Callable[[Told], None] = lambda _: None
) -> tuple[Told, ...]:
    """
    Do the same in several processes at once; the results keep the order of the rounds, `progress` does not.

    A round is about as much work for the suite as for the service, which share one processor in one process.
    """
    if workers <= 1:
        return told(rounds, *options, progress=progress)
    found: dict[tuple[str, str, int | None], Told] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(told, handful, *options) for handful in _handfuls(rounds)]
        for done in as_completed(waiting):
            for each in done.result():
                found[each.name, each.version, each.order] = each
                progress(each)
    return tuple(found[one.name, one.version, one.order] for one in rounds)


def _handfuls(rounds: Sequence[Round]) -> Iterator[Sequence[Round]]:
    """Yield rounds of one version, a few at a time: collecting the suite takes as long as a part of a round."""
    for version in dict.fromkeys(one.version for one in rounds):
        several = [one for one in rounds if one.version == version]
        for start in range(0, len(several), _HANDFUL):
            yield several[start : start + _HANDFUL]


def _at(
    version: str, rounds: Sequence[Round], options: Sequence[str], progress: Callable[[Told], None]
) -> Sequence[Told]:
    shown, output = sys.stdout, io.StringIO()

    def tell(run: Told) -> None:
        with contextlib.redirect_stdout(shown):
            progress(run)

    plugin = _Rounds(rounds, tell)
    given = ("-q", f"--target-version={version}", f"--seed={_SEED}", *options)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(suite_arguments(*given), plugins=[pytest_plugin, plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or len(plugin.told) != len(rounds):
        raise ContractError(f"The suite cannot be run in rounds:\n{output.getvalue().strip()[-2000:]}")
    return plugin.told


@dataclass
class _Rounds:
    """A pytest plugin that runs the collected tests once for each round, instead of once."""

    rounds: Sequence[Round]
    progress: Callable[[Told], None]
    told: list[Told] = field(default_factory=list)

    def pytest_configure(self, config: pytest.Config) -> None:
        """Say that the tests are run here."""
        config.stash[pytest_plugin.RUNS_ELSEWHERE] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop and of a run's."""
        claims = session.config.stash[pytest_plugin.ALL_CLAIMS]
        items = tuple(session.items)
        with TemporaryDirectory() as folder:
            for one in self.rounds:
                self.told.append(_perform(one, items, claims, Path(folder)))
                self.progress(self.told[-1])
        return True


def _perform(one: Round, items: Sequence[pytest.Item], claims: Mapping[str, Collection[str]], folder: Path) -> Told:
    started = time.perf_counter()
    recorder = Recorder(folder / "results.jsonl")
    with contextlib.ExitStack() as stack:
        stack.callback(recorder.close)
        profile = stack.enter_context(_served(one))
        contract = Contract.load()
        recorder.write(_header(one, profile, contract))
        recorder.write_plan(plan(contract, profile, claims, [item.nodeid for item in items]))
        run = stack.enter_context(running(Run(contract, profile, recorder)))
        preflight(profile, run.client)
        for item in shuffled(items, one.order):
            with pytest_plugin.in_context(item, run):
                runtestprotocol(item, log=False)
        recorder.write(Footer(RunVerdict.INCOMPLETE, ExitCode.INCOMPLETE, "", run.client.requests, 0))
        record = recorder.read_back()
    return added_up(one, record, time.perf_counter() - started, run.client.requests)


def shuffled(items: Sequence[pytest.Item], order: int | None) -> Sequence[pytest.Item]:
    """Return tests in the order that a seed makes of them; None leaves them as they are."""
    if order is None:
        return items
    mixed = sorted(items, key=lambda item: item.nodeid)
    random.Random(order).shuffle(mixed)  # noqa: S311 - an order is no secret
    return mixed


@contextlib.contextmanager
def _served(one: Round) -> Iterator[Profile]:
    # Of an unknown version the reference plays the one it has by itself.
    played = DEFAULT_VERSION if one.version == UNKNOWN else one.version
    service = create_service(version=played, choices=one.choices)
    for alter in one.alterations:
        alter(service)
    with EmbeddedServer(service) as server:
        data = profile_data(service.world, server.base_url, one.version)
        data["features"] = {**data["features"], **one.features}
        data["limits"] = {**data["limits"], **one.limits}
        yield profile_from(data, one.name)


def _header(one: Round, profile: Profile, contract: Contract) -> Header:
    return Header(
        form=RECORD_FORM,
        suite=__version__,
        contract=contract.digest,
        target=profile.title,
        base_url=profile.base_url,
        version=one.version,
        edition=profile.edition,
        profile=profile.redacted(),
        seed=_SEED,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
    )


def added_up(one: Round, record: RunRecord, seconds: float, requests: int) -> Told:
    """Return what the record of a round came to; `seconds` and `requests` are what it took."""
    result = add_up(record)
    return Told(
        name=one.name,
        version=one.version,
        order=one.order,
        verdict=result.verdict,
        verified=result.counts[Verdict.PASSED],
        alarms=tuple(_alarm(check) for row in result.rows_with(Verdict.FAILED) for check in row.failures[:1]),
        broken=tuple(f"{end.test}: {end.detail}" for end in record.tests if end.outcome == "broken"),
        gaps=tuple(f"{row.requirement.id}: {row.reason}: {row.detail}" for row in result.rows if _is_open(row)),
        seconds=round(seconds, 1),
        requests=requests,
    )


def _is_open(row: RequirementVerdict) -> bool:
    """Tell whether a requirement that a round was to verify was not verified."""
    return row.is_gap and row.reason is not Reason.SWITCHED_OFF


def _alarm(check: Check) -> str:
    shown = "".join(f"\n    {one.status} {one.request} {one.request_body or ''}" for one in check.evidence)
    return f"{check.requirement} in {check.test}: expected {check.expected}; got {check.actual}{shown}"
