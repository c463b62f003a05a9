"""The suite at every version of the table and its neighbours: green where it must be, and never because nothing ran."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from conformance.contract import OLDEST, Change, ChangeKind, Contract, Version
from conformance.contract.folders import HOME
from conformance.results.reading import read_record
from conformance.results.record import Outcome, Reason, RunRecord
from conformance.results.verdicts import RunResult, Verdict, add_up
from conformance.schema.response_validator import ResponseValidator
from conformance.versions.timeline import TimelineState, timeline
from selftest.versions.suite_runs import SuiteRun, described

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONTRACT = Contract.load()
CHANGED = sorted({change.version for change in CONTRACT.changes if change.version})

#: Items for which a reference of the version before shows no difference, and why.
NOT_TOLD_APART = {
    "18.0-job-token-allowlist": "new projects of the reference limit access at every version",
}
#: Must-level rows that an older service does not violate: the text allows some services to serve them longer.
TOLERATED = {"16.0-project-approval-configuration"}
OPERATIONS = {operation.id: operation for operation in CONTRACT.operations(None)}


def before(version: Version) -> Version:
    """Return the release before a release, as services of this kind count them."""
    return Version(version.major, version.minor - 1) if version.minor else Version(version.major - 1, 11)


def about(changes: list[Change]) -> set[str]:
    """Return the requirements of items: their own, those of their version, and those stated at their places."""
    found = {change.requirement for change in changes}
    found |= {change.replaced_by.requirement for change in changes if change.replaced_by}
    versions = {change.version for change in changes}
    found |= {entry.id for entry in CONTRACT.requirements.values() if entry.introduced in versions}
    for place in (place for change in changes for place in change.places):
        owner, _, name = place.partition(".")
        if owner in OPERATIONS and not name:
            found |= OPERATIONS[owner].requirements()
        elif owner in OPERATIONS:
            parameters = [entry for entry in OPERATIONS[owner].parameters if entry.name == name.partition("=")[0]]
            found |= {entry.requirement for entry in parameters if entry.requirement}
            found |= {OPERATIONS[owner].paginated or ""} if name in ("page", "per_page") else set()
    return found


def paths_of(changes: list[Change]) -> set[str]:
    owners = {place.partition(".")[0] for change in changes for place in change.places}
    return {operation.path for operation in OPERATIONS.values() if operation.id in owners}


BOUNDARIES = [(before(version), version) for version in CHANGED if version > OLDEST]
SAME = [SuiteRun(str(version), str(version)) for version in CHANGED]
NEIGHBOURS = [SuiteRun(str(old), str(old), str(old), str(new)) for old, new in BOUNDARIES]
TOO_OLD = [SuiteRun(str(old), str(new), str(old), str(new)) for old, new in BOUNDARIES]
TOO_NEW = [SuiteRun(str(new), str(old), str(old), str(new)) for old, new in BOUNDARIES]
#: For a service whose version is unknown, whatever any version allows is right.
UNTOLD = [SuiteRun(version, "unknown") for version in ("12.3", "15.0", "15.2", "15.9", "16.0", "17.0", "19.0")]
#: The runs that one process makes one after the other; several processes share all of them.
PARTS = [[*SAME, *UNTOLD], NEIGHBOURS, TOO_OLD, TOO_NEW]


def each(runs: list[SuiteRun]) -> pytest.MarkDecorator:
    """Run a test with each of some runs, in the worker that makes their records."""
    return pytest.mark.parametrize("run", [pytest.param(run, id=run.name, marks=in_part(part_of(run))) for run in runs])


def in_part(part: int) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"versions {part}")


def part_of(run: SuiteRun) -> int:
    return next(part for part, runs in enumerate(PARTS) if run in runs)


@dataclass(frozen=True)
class Seen:
    record: RunRecord

    @cached_property
    def result(self) -> RunResult:
        return add_up(self.record)

    def ids(self, *verdicts: Verdict) -> set[str]:
        return {row.requirement.id for row in self.result.rows_with(*verdicts)}

    def beyond(self, changes: list[Change]) -> set[tuple[str, str]]:
        """Return failed checks that are unrelated to some items: requirement and last call.

        A requirement for all operations may be violated by an item's operation, or by what the operation returns.
        """
        judge = ResponseValidator.of(CONTRACT, None)
        found = set()
        for check in self.record.checks:
            if check.outcome is Outcome.FAILED and check.requirement not in about(changes):
                method, _, target = check.evidence[-1].request.partition(" ")
                operation = judge.operation_of(method, urlsplit(target).path.removeprefix("/api/v4"))
                if operation is None or operation.path not in paths_of(changes):
                    found.add((check.requirement, check.evidence[-1].request))
        return found

    @property
    def states(self) -> dict[str, TimelineState]:
        return {entry.item.id: entry.state for entry in timeline(self.record, self.result)}


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Return the records of a part, whose runs are made in one process when they are first needed."""

    @cache
    def made(part: int) -> Path:
        folder = tmp_path_factory.mktemp("versions")
        finished = subprocess.run(
            [sys.executable, "-m", "selftest.versions.suite_runs", str(folder), described(PARTS[part])],
            cwd=HOME,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=4 * 3600 if os.environ.get("WHOLE_SUITE") else 1800,
            check=False,
        )
        assert finished.returncode == 0, finished.stderr
        return folder

    return made


@pytest.fixture
def found(run: SuiteRun, folder_of: Callable[[int], Path]) -> Seen:
    """Return the results of a run."""
    folder = folder_of(part_of(run))
    file = folder / run.name / "results.jsonl"
    assert file.is_file(), (folder / f"{run.name}.txt").read_text(encoding="utf-8")
    return Seen(read_record(file))


def rows_of(version: str) -> list[Change]:
    """Return the items of a version that can be observed from outside."""
    return [
        change
        for change in CONTRACT.changes
        if str(change.version) == version and not CONTRACT.requirements[change.requirement].not_testable
    ]


@each([*SAME, *NEIGHBOURS])
def test_the_reference_passes_at_every_version_and_at_the_one_before(found: Seen) -> None:
    assert found.ids(Verdict.FAILED, Verdict.INCONCLUSIVE) == set()
    owed = {test for entry in found.record.plan if entry.status == "applicable" for test in entry.tests}
    ends = {end.test: end.outcome for end in found.record.tests if end.test in owed}
    # What was not selected was deselected; everything that ran held.
    assert set(ends.values()) - {"passed", "deselected"} == set()
    assert found.ids(Verdict.PASSED)


@each(UNTOLD)
def test_a_service_of_unknown_version_violates_no_row(found: Seen) -> None:
    assert found.ids(Verdict.FAILED) == set()
    assert {end.outcome for end in found.record.tests} <= {"passed", "inconclusive", "not tested", "deselected"}
    assert found.ids(Verdict.PASSED)


#: Words from the table for things without a path that must never be called.
NEVER = re.compile(r"runners|registration_token|credit_card|minutes|purchase|subscription", re.IGNORECASE)


@pytest.mark.parametrize("part", [pytest.param(part, marks=in_part(part)) for part in range(len(PARTS))])
def test_what_must_never_be_called_is_not_called_at_any_version(folder_of: Callable[[int], Path], part: int) -> None:
    called = [tuple(entry) for entry in json.loads((folder_of(part) / "called.json").read_text(encoding="utf-8"))]
    judge = ResponseValidator.of(CONTRACT, None)
    operations = [judge.operation_of(method, path.removeprefix("/api/v4")) for method, path in called]
    assert {operation.id for operation in operations if operation} > {"getJobTokenScope", "updateJobTokenScope"}
    assert [operation.label for operation in operations if operation and operation.unsafe] == []
    assert [entry for entry in called if NEVER.search(entry[1])] == []


@each(SAME)
def test_every_required_item_of_the_table_is_verified_at_its_version(found: Seen, run: SuiteRun) -> None:
    passed = found.ids(Verdict.PASSED)
    owed = {
        change.requirement
        for change in CONTRACT.changes
        if change.reached(Version.parse(run.judged))
        and CONTRACT.requirements[change.requirement].level == "must"
        and CONTRACT.requirements[change.requirement].applies_to(Version.parse(run.judged))
        and not CONTRACT.requirements[change.requirement].not_testable
    }
    assert owed <= passed


@each(TOO_OLD)
def test_a_service_of_the_version_before_is_distinguished(found: Seen, run: SuiteRun) -> None:
    expected = {
        change.id
        for change in rows_of(run.judged)
        if change.kind is not ChangeKind.DEPRECATED and change.id not in NOT_TOLD_APART
    }
    assert {item for item, state in found.states.items() if state is TimelineState.NOT_MADE} == expected
    owed = {
        change.requirement
        for change in rows_of(run.judged)
        if change.id in expected - TOLERATED and CONTRACT.requirements[change.requirement].level == "must"
    }
    failed = found.ids(Verdict.FAILED)
    # Items of a missing operation are open; the one requirement that the operation exists has failed.
    absent = {row.requirement.id for row in found.result.rows if row.reason is Reason.OPERATION_ABSENT}
    assert owed <= failed | absent
    assert found.beyond(rows_of(run.judged)) == set()
    assert bool(failed) == bool(owed)


@each(TOO_NEW)
def test_a_service_of_the_version_after_fails_only_because_of_removals(found: Seen, run: SuiteRun) -> None:
    removed = [change for change in rows_of(run.played) if change.kind is ChangeKind.REMOVED and change.described]
    assert found.beyond(removed) == set()
    assert bool(found.ids(Verdict.FAILED)) == bool(removed)
