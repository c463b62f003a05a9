"""The hooks of pytest by which the tests of a run are collected, planned and deselected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, ContractError
from conformance.runner.collection import (
    ONLY_ASKS,
    all_tests,
    id_of,
    is_of_no_operation,
    is_suite,
    let_the_longest_begin,
    once_each,
    put_in_order,
    suite_tests,
)
from conformance.runner.session import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.contract import Contract, Operation
    from conformance.results.plan import SuiteTest
    from conformance.runner.session import Session


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
    everything = everything_in(session) if session.keeps_record else tests
    try:
        plan = session.make_plan(everything)
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from error
    problems = [row.id for row in plan.requirements if row.status == "applicable" and not row.tests]
    if problems:
        raise pytest.UsageError("The contract claims tests that do not exist:\n  " + "\n  ".join(problems))
    items[:] = [item for item in items if not is_suite(item) or id_of(item) in plan.tests]
    not_wanted = plan.left_out.keys() | session.kept
    left_out = [item for item in items if is_suite(item) and id_of(item) in not_wanted]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        unwanted = set(left_out)
        items[:] = [item for item in items if item not in unwanted]
    if session.share.beside > 1:
        let_the_longest_begin(items, session.share.seconds_known, session.share.beside)


def everything_in(session: Session) -> Mapping[str, SuiteTest]:
    """Return all tests of the suite, also those that arguments, the environment or a plugin remove from this run."""
    try:
        return all_tests(session.contract, session.version)
    except ContractError as error:
        raise pytest.UsageError(str(error)) from error


def deselected_by(config: pytest.Config) -> str:
    """Return what deselected tests, apart from the suite's own options."""
    given = config.stash[SESSION].options.pytest_arguments
    return f"left out by the arguments for pytest: {' '.join(given)}" if given else "left out by a plugin of pytest"
