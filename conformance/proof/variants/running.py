"""Sessions of the whole suite against one variant of the reference after the other, in any order of tests."""

from __future__ import annotations

import contextlib
import io
import random
import time
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ContractError
from conformance.proof.processes import processes
from conformance.reference import Choices, EmbeddedServer
from conformance.results.reading import read_record
from conformance.results.record import Check, Reason, RunRecord, TestOutcome
from conformance.results.verdicts import RunVerdict, Verdict, add_up
from conformance.runner.collection import id_of
from conformance.runner.location import suite_arguments
from conformance.runner.session import SESSION, Mode
from conformance.target.embedded import DEFAULT_VERSION, prepared_service, profile_data
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.proof.variants.variant import Alteration
    from conformance.results.verdicts import RequirementVerdict
    from conformance.target import Profile

_SEED = 1
#: Tests that generate many calls have the same result on every variant, and take most of the time of a session.
WITHOUT_DRAWN = ("-k", "not model and not test_fuzz", "--max-examples=3")
#: A service of this version is judged like a target of unknown version.
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class VariantRun:
    """One session of the whole suite against its own service."""

    name: str
    version: str
    choices: Choices = field(default_factory=Choices)
    features: Mapping[str, bool] = field(default_factory=dict)
    """Where the service declares other features than the reference does by itself."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """How long its profile lets it take."""
    alterations: tuple[Alteration, ...] = ()
    """What is put on the service beyond its choices."""
    order: int | None = None
    """The seed by which the tests are shuffled; None for their own order."""
    is_told: bool = True
    """Whether the suite is told the version, or judges the service as one whose version nobody knows."""
    seed: int = _SEED
    """The seed of the drawn calls."""
    ahead: tuple[str, ...] = ()
    """The areas whose tests come first; the others keep their order behind them."""

    @property
    def key(self) -> tuple[str, str, int | None, bool, int]:
        """What distinguishes this run from every other one."""
        return self.name, self.version, self.order, self.is_told, self.seed


@dataclass(frozen=True, slots=True)
class VariantResult:
    """The result of one session."""

    name: str
    version: str
    order: int | None
    is_told: bool
    seed: int
    verdict: RunVerdict
    verified: int
    """How many requirements passed."""
    alarms: tuple[str, ...]
    """What failed, with what was expected and seen; of a variant each is a false alarm."""
    broken: tuple[str, ...]
    """Tests in which the suite itself broke."""
    gaps: tuple[str, ...]
    """What must hold and was not verified, and why."""
    seconds: float
    requests: int

    @property
    def is_clean(self) -> bool:
        """Whether the suite found no fault in the service, and none in itself."""
        return not self.alarms and not self.broken and self.verified > 0

    @property
    def key(self) -> tuple[str, str, int | None, bool, int]:
        """The key of the run to which the result belongs."""
        return self.name, self.version, self.order, self.is_told, self.seed


def run_each(
    runs: Iterable[VariantRun], *options: str, progress: Callable[[VariantResult], None] = lambda _: None
) -> tuple[VariantResult, ...]:
    """Run the suite once for each run and return the results.

    `options` are passed to the suite before its own, such as `--max-examples=3` or `-k` and a selection; `progress` is
    called after each. Raise ContractError if the suite cannot be run.
    """
    found = []
    with TemporaryDirectory() as folder:
        for one in runs:
            found.append(_perform(one, options, Path(folder)))
            progress(found[-1])
    return tuple(found)


def run_side_by_side(
    workers: int,
    runs: Sequence[VariantRun],
    *options: str,
    progress: Callable[[VariantResult], None] = lambda _: None,
) -> tuple[VariantResult, ...]:
    """Run the suite once for each run, in several processes.

    The results keep the order of the runs; `progress` is called when a run ends. In a run, suite and service take about
    the same time, and share one processor in one process.
    """
    if workers <= 1:
        return run_each(runs, *options, progress=progress)
    found: dict[tuple[str, str, int | None, bool, int], VariantResult] = {}
    with processes(workers) as pool:
        waiting = [pool.submit(run_each, (one,), *options) for one in runs]
        for done in as_completed(waiting):
            for each in done.result():
                found[each.key] = each
                progress(each)
    return tuple(found[one.key] for one in runs)


@dataclass
class _Serving:
    """A pytest plugin that replaces the session's target by one of our services, and orders the tests."""

    one: VariantRun

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Set the function that serves the target; only the record of the run is read."""
        config.stash[SESSION].mode = Mode(self._served, renders=False)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Shuffle the tests if there is a seed, and put those of some areas first."""
        items[:] = shuffled(items, self.one.order)
        plan = config.stash[SESSION].plan
        if plan is not None and self.one.ahead:
            items.sort(key=lambda item: plan.tests[id_of(item)].area not in self.one.ahead)

    @contextlib.contextmanager
    def _served(self) -> Iterator[Profile]:
        one = self.one
        # For an unknown version, the reference has its default version.
        played = DEFAULT_VERSION if one.version == UNKNOWN else one.version
        service = prepared_service(version=played, choices=one.choices)
        for alter in one.alterations:
            alter(service)
        with EmbeddedServer(service) as server:
            data = profile_data(service.world, server.base_url, one.version if one.is_told else UNKNOWN)
            data["features"] = {**data["features"], **one.features}
            data["limits"] = {**data["limits"], **one.limits}
            yield profile_from(data, one.name)


def shuffled(items: Sequence[pytest.Item], order: int | None) -> Sequence[pytest.Item]:
    """Return tests in an order that is determined by a seed; None keeps their order."""
    if order is None:
        return items
    mixed = sorted(items, key=lambda item: item.nodeid)
    random.Random(order).shuffle(mixed)  # noqa: S311 - an order is no secret
    return mixed


def _perform(one: VariantRun, options: Sequence[str], folder: Path) -> VariantResult:
    started = time.perf_counter()
    output = io.StringIO()
    judged = one.version if one.is_told else UNKNOWN
    given = ("-q", f"--target-version={judged}", f"--seed={one.seed}", "--corpus=none", f"--out={folder}", *options)
    (folder / "results.jsonl").unlink(missing_ok=True)
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        pytest.main(suite_arguments(*given), plugins=[_Serving(one)])
    if not (folder / "results.jsonl").is_file():
        raise ContractError(f"The suite cannot be run against {one.name}:\n{output.getvalue().strip()[-2000:]}")
    record = read_record(folder / "results.jsonl")
    return added_up(one, record, time.perf_counter() - started, record.footer.requests if record.footer else 0)


def added_up(one: VariantRun, record: RunRecord, seconds: float, requests: int) -> VariantResult:
    """Return the result of a run from its record; `seconds` and `requests` are those of the run."""
    result = add_up(record)
    broken = [f"{end.test}: {end.detail}" for end in record.tests if end.outcome is TestOutcome.BROKEN]
    if result.verdict in (RunVerdict.BROKEN, RunVerdict.COULD_NOT_RUN) and not broken:
        broken = [result.explanation]
    return VariantResult(
        name=one.name,
        version=one.version,
        order=one.order,
        is_told=one.is_told,
        seed=one.seed,
        verdict=result.verdict,
        verified=result.counts[Verdict.PASSED],
        alarms=tuple(
            _alarm(check) for row in result.rows_with(Verdict.FAILED, Verdict.UNSTABLE) for check in row.failures[:1]
        ),
        broken=tuple(broken),
        gaps=tuple(f"{row.requirement.id}: {row.reason}: {row.detail}" for row in result.rows if _is_open(row)),
        seconds=round(seconds, 1),
        requests=requests,
    )


def _is_open(row: RequirementVerdict) -> bool:
    """Tell whether a requirement that a run should verify was not verified."""
    return row.is_gap and row.reason is not Reason.SWITCHED_OFF


def _alarm(check: Check) -> str:
    shown = "".join(f"\n    {one.status} {one.request} {one.request_body or ''}" for one in check.evidence)
    return f"{check.requirement} in {check.test}: expected {check.expected}; got {check.actual}{shown}"
