"""The hooks of pytest by which the tests of a run are collected, planned and deselected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError
from conformance.runner.collection import (
    ONLY_ASKS,
    all_tests,
    id_of,
    is_of_no_operation,
    is_suite,
    let_the_longest_begin,
    once_each,
    place_in_suite,
    put_in_order,
    suite_tests,
)
from conformance.runner.location import SUITE_FOLDER
from conformance.runner.session import SESSION
from conformance.runner.workers import has_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from conformance.contract import Contract, Operation
    from conformance.results.plan import Plan, SuiteTest
    from conformance.runner.session import Session

_FILES = pytest.StashKey[frozenset[str]]()
"""The files of the suite in which options select tests."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per operation for a test that asks for every operation."""
    marker = metafunc.definition.get_closest_marker("every_operation")
    if marker is None:
        return
    session = metafunc.config.stash[SESSION]
    where: Callable[[Operation], bool] = marker.kwargs["where"]
    requirements: Callable[[Operation], frozenset[str]] = marker.kwargs["requirements"]
    metafunc.parametrize(
        "operation",
        [
            pytest.param(operation, id=operation.id, marks=pytest.mark.requirements(*sorted(stated)))
            for operation in session.contract.operations(session.version)
            if not operation.unsafe and where(operation)
            if (stated := _tested(session.contract, requirements(operation)))
        ],
    )


def _tested(contract: Contract, ids: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in ids if name in contract.requirements and contract.requirements[name].tested)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of the suite in which the options select no test, because importing all takes long."""
    session, place = config.stash[SESSION], place_in_suite(collection_path)
    if place is None or not collection_path.name.startswith("test_") or not _selects_few(session, config):
        return None
    if _FILES not in config.stash:
        selected = _planned(session).selected
        config.stash[_FILES] = frozenset(name.partition("::")[0] for name in selected)
    files = config.stash[_FILES]
    return True if files and f"{SUITE_FOLDER.name}/{place}" not in files else None


def _selects_few(session: Session, config: pytest.Config) -> bool:
    """Tell whether this process alone runs what it collects, and its options select some tests."""
    is_alone = session.keeps_record and ONLY_ASKS not in config.stash and not has_workers(config)
    return is_alone and bool(session.options.areas or session.options.requirements or session.options.failed)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Read what each test verifies, plan the run, and deselect tests that are not planned or not selected."""
    session = config.stash[SESSION]
    items[:] = once_each(item for item in items if not is_of_no_operation(item))
    if not any(is_suite(item) for item in items):
        return
    tests = suite_tests(items, session.contract)
    put_in_order(items, tests, session.contract)
    if ONLY_ASKS in config.stash:
        return
    plan = _planned(session, None if session.keeps_record else tests)
    problems = [row.id for row in plan.requirements if row.status == "applicable" and not row.tests]
    if problems:
        raise pytest.UsageError("The contract claims tests that do not exist:\n  " + "\n  ".join(problems))
    items[:] = [item for item in items if not is_suite(item) or id_of(item) in plan.tests]
    not_wanted = plan.left_out.keys() | session.job.kept
    left_out = [item for item in items if is_suite(item) and id_of(item) in not_wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        unwanted = set(left_out)
        items[:] = [item for item in items if item not in unwanted]
    if session.share.beside > 1:
        let_the_longest_begin(items, session.share.seconds_known, session.share.beside)


def _planned(session: Session, tests: Mapping[str, SuiteTest] | None = None) -> Plan:
    """Plan a run of some tests, by default of all that the suite has."""
    try:
        return session.make_plan(everything_in(session) if tests is None else tests)
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from error


def everything_in(session: Session) -> Mapping[str, SuiteTest]:
    """Return all tests of the suite, also those that arguments, the environment or a plugin remove from this run."""
    return all_tests(session.contract, session.version)


def deselected_by(config: pytest.Config) -> str:
    """Return what deselected tests, apart from the suite's own options."""
    given = config.stash[SESSION].options.pytest_arguments
    return f"left out by the arguments for pytest: {' '.join(given)}" if given else "left out by a plugin of pytest"
