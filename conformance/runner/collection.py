"""Which tests the suite has and what each of them verifies: read from pytest's items, before anything runs."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import ContractError
from conformance.results.durations import in_order
from conformance.results.plan import SuiteTest
from conformance.runner.claims import claims_in
from conformance.runner.location import SUITE_FOLDER, suite_arguments
from conformance.target import FIXTURES
from conformance.target.names import PLURALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.contract import Contract, Version

_QUIET = ("--collect-only", "-qq", "--disable-plugin-autoload", "--capture=no")
#: Environment variables that change what pytest collects.
_FROM_OUTSIDE = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
#: Set for the collection that only asks which tests there are.
ONLY_ASKS = pytest.StashKey[bool]()


def is_suite(item: pytest.Item) -> bool:
    """Tell whether a test belongs to the suite, rather than to the suite's own tests."""
    return place_in_suite(item.path) is not None


@cache
def place_in_suite(file: Path) -> str | None:
    """Return where a file lies in the suite; None when it is not part of the suite."""
    return file.relative_to(SUITE_FOLDER).as_posix() if SUITE_FOLDER in file.parents else None


def id_of(item: pytest.Item) -> str:
    """Return the id of a suite test; it is the same from whatever folder pytest was started."""
    _, mark, inside = item.nodeid.partition("::")
    return f"{SUITE_FOLDER.name}/{place_in_suite(item.path)}{mark}{inside}"


def id_in(nodeid: str) -> str:
    """Return the id of a suite test, given its node id, whatever folder the node id is relative to."""
    path, mark, inside = nodeid.partition("::")
    return f"{SUITE_FOLDER.name}/{path.rpartition(f'{SUITE_FOLDER.name}/')[2]}{mark}{inside}"


def suite_tests(items: Sequence[pytest.Item], contract: Contract) -> Mapping[str, SuiteTest]:
    """Return what planning needs to know of each test, by its id.

    Raise UsageError of pytest, with all problems at once, when a test names a requirement that cannot be right.
    """
    problems: list[str] = []
    tests = [_suite_test(item, contract, problems) for item in items if is_suite(item)]
    if problems:
        raise pytest.UsageError("The suite contradicts the contract:\n  " + "\n  ".join(dict.fromkeys(problems)))
    return {test.id: test for test in tests}


def _suite_test(item: pytest.Item, contract: Contract, problems: list[str]) -> SuiteTest:
    requirements = _requirements(item, contract, problems)
    operation: Any = getattr(getattr(item, "callspec", None), "params", {}).get("operation")
    areas = [contract.requirements[name].area for name in sorted(requirements)]
    found = max(contract.areas, key=areas.count)
    # Where a test calls operations of areas that its requirements do not name, it says so.
    named = {str(name) for marker in item.iter_markers("calls_area") for name in marker.args}
    own = {operation.area} if operation is not None else {*areas} or {found}
    features = {str(name) for marker in item.iter_markers("needs_feature") for name in marker.args}
    if operation is not None and operation.feature:
        features.add(operation.feature)
    return SuiteTest(
        id=id_of(item),
        requirements=requirements,
        area=operation.area if operation is not None else found,
        areas=frozenset(own | named),
        any_area=_with_projects(contract) if item.get_closest_marker("calls_a_project") else frozenset(),
        features=frozenset(features),
        fixtures=frozenset(_fixtures(item)),
        is_slow=item.get_closest_marker("slow") is not None,
        draws=_draws(item, operation),
    )


def _with_projects(contract: Contract) -> frozenset[str]:
    """Return the areas with operations below a project."""
    return frozenset(one.area for one in contract.operations(None) if one.path.startswith("/projects/{id}/"))


def _draws(item: pytest.Item, operation: Any) -> str | None:
    marker = item.get_closest_marker("every_operation")
    return operation.id if marker is not None and marker.kwargs.get("draws") else None


def _fixtures(item: pytest.Item) -> Iterator[str]:
    """Yield the fixtures of the profile that a test takes as arguments, or requests by the name in a parameter."""
    given = getattr(getattr(item, "callspec", None), "params", {}).values()
    for name in (*getattr(item, "fixturenames", ()), *(value for value in given if isinstance(value, str))):
        if name in FIXTURES or name in PLURALS:
            yield PLURALS.get(name, name)


def _requirements(item: pytest.Item, contract: Contract, problems: list[str]) -> frozenset[str]:
    found = {str(name) for marker in item.iter_markers("requirements") for name in marker.args}
    if isinstance(item, pytest.Function):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        try:
            found |= claims_in(item.function, parameters)
        except ContractError as error:
            problems.append(str(error))
    known = {name for name in found if name in contract.requirements}
    problems += [f"{item.nodeid} verifies {name}, which the contract does not state" for name in sorted(found - known)]
    problems += [
        f"{item.nodeid} verifies {name}, which the contract marks as not testable"
        for name in sorted(known)
        if contract.requirements[name].not_testable
    ]
    if not found:
        problems.append(f"{item.nodeid} verifies no requirement")
    return frozenset(known)


# -- the order in which they run ---------------------------------------------------------------------------------------


def once_each(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Drop tests that pytest collected twice, as it does for a file that is named twice: a test may end only once."""
    return list({item.nodeid: item for item in items}.values())


def put_in_order(items: list[pytest.Item], tests: Mapping[str, SuiteTest], contract: Contract) -> None:
    """Put the tests of an area together; those that share prepared objects come last in it, file by file."""

    def place(item: pytest.Item) -> tuple[str, int]:
        if not is_suite(item):
            return "", -1
        is_shared = item.get_closest_marker("together") is not None
        return id_of(item).partition("::")[0] if is_shared else "", contract.areas.index(tests[id_of(item)].area)

    items.sort(key=place)


def let_the_longest_begin(items: list[pytest.Item], seconds_known: Mapping[str, float], workers: int) -> None:
    """Order tests that several workers share so that all workers end at about the same time."""
    suite = {id_of(item): item for item in items if is_suite(item)}
    order = in_order(list(suite), seconds_known, workers)
    items[:] = [*(item for item in items if not is_suite(item)), *(suite[name] for name in order)]


def is_of_no_operation(item: pytest.Item) -> bool:
    """Tell whether a test of the suite is parametrized over operations of a sort that the target's version lacks."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return is_suite(item) and "operation" in parameters and not hasattr(parameters["operation"], "id")


# -- all tests of the suite --------------------------------------------------------------------------------------------


@dataclass(eq=False)  # pytest keeps plugins in sets
class _Collector:
    """A pytest plugin that takes the items of a collection before anything else can leave some of them out."""

    contract: Contract
    tests: Mapping[str, SuiteTest] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    """The errors of files that cannot be read."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note why a file cannot be read."""
        if report.failed:
            self.unread.append(report.longreprtext)

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Say that nothing is to be run."""
        config.stash[ONLY_ASKS] = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read what the tests verify."""
        self.tests = suite_tests(items, self.contract)


def all_tests(contract: Contract, version: Version | None) -> Mapping[str, SuiteTest]:
    """Return every test that the suite has at a version, whatever the operator's arguments leave out of this run.

    It asks pytest once more, with no arguments, environment or plugins but the suite's own. Raise ContractError when
    the suite cannot be collected.
    """
    # Later sessions in the same process, such as those of a proof, have the same tests.
    key = (contract.digest, version)
    if key not in _COLLECTED:
        _COLLECTED[key] = _collected(contract, version)
    return _COLLECTED[key]


_COLLECTED: dict[tuple[str, Version | None], Mapping[str, SuiteTest]] = {}
_SHOWN_OF_WHY = 2000  # characters


def _collected(contract: Contract, version: Version | None) -> Mapping[str, SuiteTest]:
    collector = _Collector(contract)
    arguments = suite_arguments(*_QUIET, f"--target-version={version or 'unknown'}")
    output = io.StringIO()
    with _without_environment(), contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(arguments, plugins=[collector])
    if code == pytest.ExitCode.INTERRUPTED and not collector.unread:
        raise KeyboardInterrupt
    if collector.unread or not collector.tests:
        why = "\n".join(collector.unread) or output.getvalue().strip()
        raise ContractError(f"The suite cannot be collected (exit code {int(code)}): {why[-_SHOWN_OF_WHY:]}")
    return collector.tests


@contextlib.contextmanager
def _without_environment() -> Iterator[None]:
    given = {name: os.environ.pop(name) for name in _FROM_OUTSIDE if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(given)
