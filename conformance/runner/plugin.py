"""What pytest learns from this project: options, actors and fixtures as arguments, and the bookkeeping of checks."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, ContractError, ExitCode
from conformance.http.client import TargetGoneError
from conformance.reports.terminal import summary
from conformance.results.record import Outcome, Reason
from conformance.runner.claims import claims_in
from conformance.runner.lanes import Lanes, drawn_calls, lanes
from conformance.runner.location import SUITE_FOLDER
from conformance.runner.options import add_options, options_of
from conformance.runner.progress import ByArea
from conformance.runner.session import Session, TimeIsUpError
from conformance.suite.context import NotTested, Run, TestContext, Violation, current_run
from conformance.suite.expectations import Caller
from conformance.target import ACTORS, FIXTURES, Actor, Fixture
from conformance.target.profile import PLURALS

if TYPE_CHECKING:
    from conformance.contract import Contract, Operation

_SESSION = pytest.StashKey[Session]()
_CLAIMS = pytest.StashKey[Collection[str]]()
_AREA = pytest.StashKey[str]()
_EXIT = pytest.StashKey[ExitCode]()
_LANES = pytest.StashKey[Lanes]()
#: Set by whoever runs the collected tests in another way than once against one target.
RUNS_ELSEWHERE = pytest.StashKey[bool]()
_NOBODY = Actor("wrong-token", "0000-no-such-token-0000")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's options to pytest's own."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the suite's markers and check the operator's options."""
    config.addinivalue_line(
        "markers", "requirements(*ids): requirements that a test verifies beyond those its source names"
    )
    config.addinivalue_line("markers", "slow: takes minutes or many calls; runs with --include slow")
    config.addinivalue_line(
        "markers", "every_operation(where, requirements, draws): one test per operation of the contract"
    )
    # Hypothesis would otherwise leave a folder of its own where the command was given.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir()) / "conformance-hypothesis"))
    try:
        config.stash[_SESSION] = Session.prepare(options_of(config))
    except ContractError as error:
        raise pytest.UsageError(f"The contract is broken: {error}") from error
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from error
    _show_by_area(config)


def _show_by_area(config: pytest.Config) -> None:
    """Show progress by area where that was asked for; more words (-v) are pytest's own, and -q means none."""
    option = config.option
    if not option.by_area or option.verbose > 0 or option.usepdb:
        return
    note = f"seed {config.stash[_SESSION].seed}"
    config.pluginmanager.register(ByArea(_area_of, note, is_shown=option.verbose == 0))
    option.verbose = min(option.verbose, -1)


# -- collection ------------------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test per operation where a test asks for every operation."""
    marker = metafunc.definition.get_closest_marker("every_operation")
    if marker is None:
        return
    session = metafunc.config.stash[_SESSION]
    where: Callable[[Operation], bool] = marker.kwargs["where"]
    claims: Callable[[Operation], frozenset[str]] = marker.kwargs["requirements"]
    metafunc.parametrize(
        "operation",
        [
            pytest.param(operation, id=operation.id, marks=pytest.mark.requirements(*sorted(claimed)))
            for operation in session.contract.operations(session.version)
            if not operation.unsafe and where(operation) and (claimed := _tested(session.contract, claims(operation)))
        ],
    )


def _tested(contract: Contract, ids: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in ids if name in contract.requirements and contract.requirements[name].tested)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Find out what each test claims, refuse claims that cannot be right, and drop what was not selected."""
    session = config.stash[_SESSION]
    problems: list[str] = []
    items[:] = [item for item in items if not _is_of_no_operation(item)]
    for item in items:
        if is_suite(item):
            item.stash[_CLAIMS] = _claims(item, session.contract, problems)
    if problems:
        raise pytest.UsageError("The suite contradicts the contract:\n  " + "\n  ".join(dict.fromkeys(problems)))
    items[:] = [item for item in items if not is_suite(item) or _is_owed(item, session)]
    dropped = [item for item in items if is_suite(item) and not _is_wanted(item, session)]
    config.stash[ALL_CLAIMS] = _by_requirement(items)
    if _is_whole_suite(config):
        problems = _untested(session, config.stash[ALL_CLAIMS])
    if problems:
        raise pytest.UsageError("The contract claims tests that do not exist:\n  " + "\n  ".join(problems))
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in set(dropped)]
    _put_in_order(items, session.contract)


def _put_in_order(items: list[pytest.Item], contract: Contract) -> None:
    """Let the tests of an area follow each other: that of their operation, or of most that they verify."""
    areas = contract.areas
    for item in filter(is_suite, items):
        operation = getattr(getattr(item, "callspec", None), "params", {}).get("operation")
        claimed = [contract.requirements[name].area for name in item.stash[_CLAIMS]]
        item.stash[_AREA] = operation.area if operation is not None else max(areas, key=claimed.count)
    items.sort(key=lambda item: areas.index(item.stash[_AREA]) if is_suite(item) else -1)


def _area_of(item: pytest.Item) -> str:
    return item.stash.get(_AREA, "tests of the suite")


ALL_CLAIMS = pytest.StashKey[Mapping[str, Collection[str]]]()


def _is_of_no_operation(item: pytest.Item) -> bool:
    """Tell whether a test asks for every operation of some sort where the version of the target has none."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "operation" in parameters and not hasattr(parameters["operation"], "id")


def is_suite(item: pytest.Item) -> bool:
    """Tell whether a test belongs to the suite, rather than to the suite's own tests."""
    return SUITE_FOLDER in item.path.parents


def _claims(item: pytest.Item, contract: Contract, problems: list[str]) -> frozenset[str]:
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


def _is_whole_suite(config: pytest.Config) -> bool:
    """Tell whether pytest was asked for all of the suite, and not for some of its files or tests."""
    chosen = [Path(str(argument)).resolve() for argument in config.args]
    return chosen == [SUITE_FOLDER.resolve()] and not (config.option.keyword or config.option.markexpr)


def _untested(session: Session, claims: Mapping[str, Collection[str]]) -> list[str]:
    """Return the requirements that are owed at the target's version, say that they are tested, and are not."""
    return [
        entry.id
        for entry in session.contract.requirements.values()
        if entry.tested and entry.applies_to(session.version) and entry.id not in claims
    ]


def _is_owed(item: pytest.Item, session: Session) -> bool:
    """Tell whether anything that a test verifies holds at the version of the target."""
    return any(session.contract.requirements[name].applies_to(session.version) for name in item.stash[_CLAIMS])


def _is_wanted(item: pytest.Item, session: Session) -> bool:
    """Tell whether the operator selected a test."""
    if item.get_closest_marker("slow") and "slow" not in session.options.include:
        return False
    return session.wants(item.stash[_CLAIMS])


def _by_requirement(items: list[pytest.Item]) -> Mapping[str, Collection[str]]:
    claims: dict[str, list[str]] = {}
    for item in items:
        for name in item.stash.get(_CLAIMS, frozenset()):
            claims.setdefault(name, []).append(item.nodeid)
    return claims


# -- the run ---------------------------------------------------------------------------------------------------------


def session_of(config: pytest.Config) -> Session | None:
    """Return the session of a pytest run, also after it has ended; None when it never began."""
    return config.stash.get(_SESSION, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Run the suite's tests inside a run: target up, record open, reports written at the end."""
    config = session.config
    suite = [item.nodeid for item in session.items if is_suite(item)]
    if not suite or config.option.collectonly or session.testsfailed or RUNS_ELSEWHERE in config.stash:
        return (yield)
    state = config.stash[_SESSION]
    with ExitStack() as stack:
        try:
            run = stack.enter_context(state.running(config.stash[ALL_CLAIMS], suite))
            drawn = drawn_calls(session.items)
            found = config.stash[_LANES] = stack.enter_context(lanes(run, state, drawn))
            state.draw_ahead([*found.wanted, *(call.wanted for call in drawn if not found.has(call.item))])
            session.items.sort(key=found.has)
        except ConformanceError as error:
            _give_up(session, error)
        try:
            return (yield)
        except KeyboardInterrupt:
            _put_back(session)
            raise


def _put_back(session: pytest.Session) -> None:
    """Let the fixtures of an interrupted test restore the target while it can still be called."""
    try:
        session._setupstate.teardown_exact(None)  # noqa: SLF001 - pytest does this only after the run has closed
    except Exception as error:  # noqa: BLE001 - whatever it is, the results so far come first
        print(f"\nWhat the test changed could not be put back: {error}", file=sys.stderr)  # noqa: T201


def _give_up(session: pytest.Session, error: ConformanceError) -> None:
    """Run nothing more, say why in one message, and end with the error's exit code."""
    session.items.clear()
    session.config.stash[_EXIT] = error.exit_code
    print(f"\n{error}", file=sys.stderr)  # noqa: T201 - the one message that says what to do


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """End with the verdict's exit code, unless pytest itself was interrupted or broke."""
    state = session.config.stash.get(_SESSION, None)
    if _EXIT in session.config.stash:
        session.exitstatus = session.config.stash[_EXIT]
    elif state is not None and state.result is not None and exitstatus in (0, 1, 5):
        session.exitstatus = state.result.exit_code


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """End the terminal's output with verdict, counts, what failed and where the report is."""
    state = config.stash.get(_SESSION, None)
    if state is None or state.result is None or state.record is None or state.recorder is None:
        return
    terminalreporter.write_line("")
    folder = state.recorder.file.parent
    terminalreporter.write(summary(state.record, state.result, folder, colour=terminalreporter.hasmarkup) + "\n")
    if state.recorder.moved:
        terminalreporter.write_line(f"Warning: {state.recorder.moved}.")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Open the context of a test before its first fixture, and close it after its last."""
    if not is_suite(item):
        return (yield)
    with in_context(item, current_run()):
        return (yield)


@contextmanager
def in_context(item: pytest.Item, run: Run) -> Iterator[None]:
    """Keep the context of one test of the suite while the context lasts."""
    item.stash[_OUTCOME], item.stash[_DETAIL] = "not tested", None
    found = _lanes_of(item)
    run.join(found.context(item, partial(_begun, run)) if found else _begun(run, item))
    try:
        yield
    finally:
        run.leave_open(Reason.NOT_REACHED, "its test ended before it was looked at")
        run.end(item.stash[_OUTCOME], item.stash[_DETAIL])


def _begun(run: Run, item: pytest.Item) -> TestContext:
    claims: Collection[str] = item.stash[_CLAIMS]
    return run.begin(item.nodeid, frozenset(claims))


def _lanes_of(item: pytest.Item) -> Lanes | None:
    found = item.config.stash.get(_LANES, None)
    return found if found is not None and found.has(item) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Take what came of a test that runs beside others."""
    found = _lanes_of(pyfuncitem)
    if found is None:
        return None
    found.wait_for(pyfuncitem)
    return True


_OUTCOME = pytest.StashKey[str]()
_DETAIL = pytest.StashKey[str | None]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Turn what keeps a test from starting into a reason."""
    if not is_suite(item):
        return (yield)
    return (yield from _told(item, ends=False))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Turn what a test comes to into checks."""
    if not is_suite(item):
        return (yield)
    return (yield from _told(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Let a target that can no longer be put in order spoil no result."""
    if not is_suite(item):
        return (yield)
    try:
        return (yield)
    except Exception as error:
        if not isinstance(error, NotTested | Violation | TargetGoneError) and current_run().unmet_by(error) is None:
            raise
        item.stash[_DETAIL] = f"what the test changed could not be put back: {error}"
        return None


def _told(item: pytest.Item, *, ends: bool = True) -> Generator[None, object, object]:
    """Tell what came of a test, or of its preparation; what that saw in passing fails the test only at its end."""
    run = current_run()
    try:
        result = yield
    except pytest.skip.Exception:
        raise
    except KeyboardInterrupt:
        run.leave_open(Reason.INTERRUPTED, "the operator interrupted the run")
        raise
    except (TargetGoneError, TimeIsUpError) as end:
        raise _last(item, run, end) from None
    except NotTested as missing:
        _say(item, "not tested", missing.detail)
        run.leave_open(missing.reason, missing.detail, missing.outcome)
        raise pytest.skip.Exception(f"not tested: {missing.detail}") from None
    except Violation as violation:
        _say(item, "failed", str(violation))
        run.leave_open(Reason.PRECONDITION, f"an earlier step of the same story failed: {violation}")
        raise pytest.fail.Exception(_in_words(run, violation), pytrace=False) from None
    except BaseException as error:
        unmet = run.unmet_by(error)
        if unmet is not None:
            _say(item, "inconclusive", unmet.detail)
            run.leave_open(unmet.reason, unmet.detail)
            raise pytest.skip.Exception(f"inconclusive: {unmet.detail}") from None
        _say(item, "broken", f"{type(error).__name__}: {error}")
        run.leave_open(Reason.HARNESS_ERROR, f"the suite itself broke: {type(error).__name__}: {error}")
        raise
    else:
        failures = run.context.soft_failures if run.context and ends else []
        _say(item, "failed" if failures else "passed")
        if failures:
            pytest.fail("\n".join(failures), pytrace=False)
        return result


def _last(item: pytest.Item, run: Run, end: TargetGoneError | TimeIsUpError) -> BaseException:
    """Let a test be the last one of the run; return what pytest is told of it."""
    is_gone = isinstance(end, TargetGoneError)
    _say(item, "inconclusive" if is_gone else "not tested", str(end))
    if is_gone:
        run.leave_open(Reason.NO_ANSWER, str(end))
    else:
        run.leave_open(Reason.NOT_REACHED, str(end), Outcome.NOT_TESTED)
    item.config.stash[_SESSION].stopped = f"the target stopped answering: {end}" if is_gone else str(end)
    del item.session.items[item.session.items.index(item) + 1 :]
    return pytest.skip.Exception(str(end))


def _say(item: pytest.Item, outcome: str, detail: str | None = None) -> None:
    item.stash[_OUTCOME] = outcome
    if detail is not None:
        item.stash[_DETAIL] = detail


def _in_words(run: Run, violation: Violation) -> str:
    lines = [f"expected: {violation.expected}", f"actual:   {violation.actual}"]
    shown = violation.exchanges or (tuple(run.context.recent[-1:]) if run.context else ())
    lines += [run.client.evidence(exchange).curl for exchange in shown]
    return "\n".join(lines)


# -- arguments of tests ----------------------------------------------------------------------------------------------


def _actor_argument(name: str) -> Callable[..., Caller]:
    def actor() -> Caller:
        run = current_run()
        missing = run.profile.missing((name,))
        if missing:
            raise NotTested(Reason.PREREQUISITE_MISSING, missing)
        return Caller(run, run.profile.actors[name])

    return pytest.fixture(name=name)(actor)


def _fixture_argument(name: str) -> Callable[..., Fixture | tuple[Fixture, ...]]:
    def fixture() -> Fixture | tuple[Fixture, ...]:
        run = current_run()
        if run.profile.has_given_up(name):
            raise NotTested(Reason.FEATURE_NOT_DECLARED, f"the target declares to have no {name}")
        missing = run.profile.missing((name,))
        if missing:
            raise NotTested(Reason.PREREQUISITE_MISSING, missing)
        found = run.profile.fixtures[PLURALS.get(name, name)]
        return found if name in PLURALS else found[0]

    return pytest.fixture(name=name)(fixture)


for _name in ACTORS:
    globals()[f"_actor_{_name}"] = _actor_argument(_name)
for _name in FIXTURES:
    globals()[f"_fixture_{_name}"] = _fixture_argument(_name)


@pytest.fixture
def anonymous() -> Caller:
    """Somebody without a token."""
    return Caller(current_run(), None)


@pytest.fixture
def wrong_token() -> Caller:
    """Somebody with a token that nobody was given."""
    return Caller(current_run(), _NOBODY)


@pytest.fixture(autouse=True)
def _is_applicable(request: pytest.FixtureRequest) -> None:
    """Keep a test from a target that declares none of the features it is about."""
    if not is_suite(request.node):
        return
    request.config.stash[_SESSION].require_time()
    current_run().require_declared([*request.node.stash[_CLAIMS]])


@pytest.fixture
def suite(request: pytest.FixtureRequest) -> Session:
    """Give a test the session: seed, budgets, contract."""
    return request.config.stash[_SESSION]
