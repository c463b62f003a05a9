"""The pytest plugin that runs the suite; operators and proofs all use it."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, ContractError, ExitCode
from conformance.http.redaction import REDACTION, guarded_logs
from conformance.results.record import Reason
from conformance.runner import collection_hooks, outcomes, workers
from conformance.runner.collection import ONLY_ASKS, id_in, id_of, is_suite
from conformance.runner.collection_hooks import deselected_by, everything_in
from conformance.runner.job import Job
from conformance.runner.options import add_options, options_of
from conformance.runner.outcomes import Running
from conformance.runner.precautions import undisturbed
from conformance.runner.progress import NOT_RUN, TRIED_AGAIN, ByArea, FewWords, after_tests, before_tests
from conformance.runner.reruns import Reruns
from conformance.runner.session import SESSION, Session, Share
from conformance.suite.context import TestContext, enter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from xdist.workermanage import WorkerController


# Actors and fixtures of the profile, as arguments of tests.
pytest_plugins = ["conformance.suite.fixtures"]

_RUNNING = pytest.StashKey[Running]()
_RERUNS = pytest.StashKey[Reruns]()
_BRIEF = pytest.StashKey[bool]()
"""Set where the command shows the run; true for the shortest output."""
_SHOWS = pytest.StashKey[bool]()
"""Set where the command shows progress, also before the first test."""
_EXIT = pytest.StashKey[ExitCode]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the suite's options to pytest's own."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the suite's markers and check the operator's options."""
    workers.begin(config)
    config.pluginmanager.register(collection_hooks)
    for line in (
        "requirements(*ids): requirements that a test verifies beyond those that its source names",
        "needs_feature(*names): features of the target without which there is nothing for a test to see",
        "calls_area(*names): areas whose operations a test calls beyond those of its requirements",
        "calls_a_project: tests that call whatever is below a project, of whichever area",
        "slow: takes minutes or many calls; runs with --include slow",
        "every_operation(where, requirements, draws): one test per operation of the contract",
        "together: tests of several areas that follow each other, since they share what is made for them",
    ):
        config.addinivalue_line("markers", line)
    # What pytest itself writes during a run: live logs, log files and, with -s, printed text.
    slips = ExitStack()
    config.add_cleanup(slips.close)
    slips.enter_context(guarded_logs(and_streams=config.option.capture == "no"))
    # Hypothesis would otherwise leave a folder of its own where the command was given.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(tempfile.gettempdir()) / "conformance-hypothesis"))
    try:
        options = options_of(config, workers.number_of(config))
        is_worker = workers.is_worker(config)
        if is_worker:  # it is told what is kept; the record of the earlier run is being written anew
            options = replace(options, resume=None)
        job = Job.prepare(options, keeps_record=not is_worker)
    except ContractError as error:
        raise pytest.UsageError(f"The contract is broken: {error}") from error
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from error
    if is_worker:
        told = config.workerinput  # type: ignore[attr-defined]  # as pytest-xdist has it
        config.stash[SESSION] = workers.session_of_worker(job, told)
    else:
        config.stash[SESSION] = Session(job, Share(job.first_world))
        _show_by_area(config)
        if workers.has_workers(config) and config.option.maxschedchunk is None:
            config.option.maxschedchunk = 1  # whoever is free takes the next test


def _show_by_area(config: pytest.Config) -> None:
    """Show progress by area when the operator asked for it; -v keeps pytest's own display, and -q shows none."""
    option = config.option
    config.stash[_SHOWS] = option.by_area and option.verbose >= 0
    if not option.by_area or option.verbose > 0 or option.usepdb:
        option.tbstyle = "short" if option.tbstyle == "auto" else option.tbstyle
        return
    config.stash[_BRIEF] = option.verbose < 0
    config.pluginmanager.register(ByArea(config.stash[SESSION], is_shown=option.verbose == 0))
    config.pluginmanager.register(FewWords(config.stash[SESSION]))
    option.verbose = min(option.verbose, -1)


def _leave_failures_to_the_verdict(config: pytest.Config) -> None:
    """Keep pytest from reporting failures itself: the verdict reports them once, with what was expected."""
    if _BRIEF not in config.stash:
        return
    config.option.verbose = min(config.option.verbose, -2)  # its own count of tests is no verdict
    if config.option.tbstyle == "auto":  # unless the operator asked for tracebacks
        config.option.tbstyle = "no"
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.reportchars = ""


def session_of(config: pytest.Config) -> Session | None:
    """Return the session of a pytest run, also after it has ended; None when it never began."""
    return config.stash.get(SESSION, None)


# -- workers -----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None, None, None]:
    """Start workers that get no interrupt: this process ends them."""
    with workers.interrupts_held() if workers.has_workers(session.config) else nullcontext():
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker of pytest-xdist what it needs to know about the run."""
    session, number = node.config.stash[SESSION], int(node.workerinput["workerid"].removeprefix("gw"))
    node.workerinput.update(workers.told_to_worker(session, number))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object | None) -> None:
    """Read the summary that a worker leaves when it ends."""
    session = node.config.stash[SESSION]
    if session.is_open and error:
        workers.note_crash(session, node.workerinput, error)
    elif session.is_open:
        workers.take_leave(session, getattr(node, "workeroutput", {}))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str) -> None:
    """Record that a worker crashed while it ran this test."""
    for session in _KEEPING:
        workers.note_crashed_test(session, id_in(crashitem))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: WorkerController, ids: list[str]) -> None:
    """Learn which tests will run from the workers, which all collect the same tests."""
    session = node.config.stash[SESSION]
    if session.is_open:
        session.say_deselected({id_in(name) for name in ids}, deselected_by(node.config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the lines of a worker's test into the record, before anything that depends on them is shown."""
    for session in _KEEPING:
        workers.take_over(session, report)


#: The sessions of this process that keep a record while workers run the tests.
_KEEPING: list[Session] = []


# -- the run -----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Start the run before the first test: target up, record open. Return True, to stop pytest, if it cannot start."""
    config, state = session.config, session.config.stash[SESSION]
    workers.go_on(config)
    suite = [item for item in session.items if is_suite(item)]
    if state.ending.interrupted:
        _leave_failures_to_the_verdict(config)
        return True
    is_broken = session.testsfailed and not config.option.continue_on_collection_errors
    if config.option.collectonly or is_broken or not (suite or workers.has_workers(config)):
        return None
    try:
        if workers.has_workers(config):
            state.make_plan(everything_in(state))
            _KEEPING.append(state)
        with before_tests(state, config) if config.stash.get(_SHOWS, False) else nullcontext():
            state.open()
    except ConformanceError as error:
        return _give_up(session, error)
    _leave_failures_to_the_verdict(config)
    if state.keeps_record and not workers.has_workers(config):
        state.say_deselected([id_of(item) for item in suite], deselected_by(config))
        state.draw_ahead(id_of(item) for item in suite)
    elif state.keeps_record:
        workers.draw_for_all(state)
    return None


def _give_up(session: pytest.Session, error: ConformanceError) -> bool:
    """Run nothing, print the reason once, and exit with the code of the record, or of the error if there is none."""
    session.config.stash[_EXIT] = session.config.stash[SESSION].exit_code or error.exit_code
    _leave_failures_to_the_verdict(session.config)
    if not workers.is_worker(session.config):  # who keeps the record meets the same, and says it once
        print(f"\n{error}", file=sys.stderr)  # noqa: T201 - the one message that says what to do
    return True


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """End the run after pytest has torn down the last test, also when it was interrupted, and set its exit code."""
    state = session.config.stash.get(SESSION, None)
    # Nothing may be put back while a worker still changes something: it ends within seconds, or is killed.
    try:
        with undisturbed() if workers.has_workers(session.config) else nullcontext():
            yield
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever it is, the results so far come first
        why = str(error) or "interrupted once more"  # what the ledger has is put back below all the same
        print(f"\nThe test could not put back what it changed: {why}", file=sys.stderr)  # noqa: T201
    if state is None or ONLY_ASKS in session.config.stash:
        return
    quiet = ExitStack()
    heard = quiet.enter_context(undisturbed())  # until all is told: what was seen must not be lost to impatience
    session.config.add_cleanup(quiet.close)
    if workers.is_worker(session.config):
        workers.leave(state, session.config.workeroutput)  # type: ignore[attr-defined]  # the same
    if state in _KEEPING:
        _KEEPING.remove(state)
    state.ending.interrupted = state.ending.interrupted or exitstatus == pytest.ExitCode.INTERRUPTED
    ended_itself = state.ending.stopped is not None  # its time was over, or its target was gone: nobody interrupted it
    if state.is_open:
        _end_last_test(session, state)
    state.ending.stopped = state.ending.stopped or _why_stopped(session, state)
    with after_tests(session.config) if session.config.stash.get(_SHOWS, False) else nullcontext():
        state.close(heard)
    if state.ending.interrupted:
        exitstatus = pytest.ExitCode.OK if ended_itself else pytest.ExitCode.INTERRUPTED
    session.exitstatus = _exit_status(session, state, exitstatus)


def _end_last_test(session: pytest.Session, state: Session) -> None:
    """Close the test during which the run was interrupted, or before whose next attempt it was."""
    for item in session.items:
        running, reruns = item.stash.get(_RUNNING, None), item.stash.get(_RERUNS, None)
        if reruns is None or id_of(item) in state.writer.ended:
            continue
        if running is None:
            for line in reruns.lines_so_far():
                state.writer.write(line)
        else:
            running.test.results.leave_open(Reason.INTERRUPTED, "the run was interrupted")
            running.end()
            _ended(item, state, running.test, is_interrupted=True)
    enter(None)


def _why_stopped(session: pytest.Session, state: Session) -> str | None:
    if state.ending.terminated:
        return "the run was terminated"
    told = session.shouldfail or session.shouldstop
    if told:
        return f"pytest stopped: {told}"
    return "the operator interrupted the run" if state.ending.interrupted else None


def _exit_status(session: pytest.Session, state: Session, exitstatus: int) -> int:
    """Return the verdict's exit code, unless pytest was interrupted or broke; a run without tests is no success."""
    if state.ending.terminated:
        return int(ExitCode.TERMINATED)
    if _EXIT in session.config.stash:
        return int(session.config.stash[_EXIT])
    kept = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
    if exitstatus in kept:
        return int(exitstatus)
    if state.exit_code is not None:
        return int(state.exit_code)
    is_suite_run = state.plan is not None or session.config.option.collectonly
    nothing_ran = exitstatus == pytest.ExitCode.OK and is_suite_run and state.keeps_record
    return int(ExitCode.NOTHING_RAN) if nothing_ran else int(exitstatus)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print verdict, counts, failures and the path of the report at the end of the terminal output."""
    state = config.stash.get(SESSION, None)
    if state is None or state.result is None or state.record is None or state.writer.recorder is None:
        return
    brief = config.stash.get(_BRIEF, False)
    if not brief:
        terminalreporter.write_line("")
    from conformance.reports.terminal import summary  # noqa: PLC0415 - what renders is for no worker

    folder = state.writer.recorder.file.parent
    shown = {"colour": terminalreporter.hasmarkup, "brief": brief, "is_explained": _EXIT in config.stash}
    terminalreporter.write(f"{summary(state.record, state.result, folder, **shown)}\n")
    if state.writer.recorder.moved:
        terminalreporter.write_line(f"Warning: {state.writer.recorder.moved}.")


@pytest.fixture
def suite(request: pytest.FixtureRequest) -> Session:
    """Give a test the session: seed, budgets, contract."""
    return request.config.stash[SESSION]


@pytest.fixture(autouse=True)
def _within_time(request: pytest.FixtureRequest) -> None:
    """Start no test when the operator's minutes are over."""
    if is_suite(request.node):
        request.config.stash[SESSION].require_time()


# -- one test ----------------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Make a test current in this thread from before its first fixture until after its last; rerun it if needed."""
    session = item.config.stash[SESSION]
    if not is_suite(item) or session.run is None or session.plan is None or session.is_over:
        return (yield)
    planned = session.plan.tests[id_of(item)]
    is_first = _RERUNS not in item.stash
    reruns = item.stash.setdefault(_RERUNS, Reruns.of(session.run, planned.area, confirms=session.mode.confirms))
    reruns.hand_out_fixtures(session.run)
    item.stash[_RUNNING] = Running(TestContext.begin(session.run, id_of(item), planned.requirements))
    enter(item.stash[_RUNNING].test)
    if reruns.is_plagued:
        session.run.client.persevere()
    session.writer.hold()
    # When the run is interrupted, the test stays current in this thread: its fixtures still have to restore things.
    result = yield
    enter(None)
    while is_first and reruns.is_wanted:
        reruns.is_wanted = False
        session.await_answers()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
    if is_first:
        session.begun_anew += reruns.begun_anew
        del item.stash[_RERUNS]
        session.writer.release()  # of a test that ended nothing is held any more; what took its place wrote nothing
    return result


def _ended(item: pytest.Item, session: Session, test: TestContext, *, is_interrupted: bool = False) -> None:
    """Write the result of a test, or keep it where the test will run again."""
    reruns, lines = item.stash[_RERUNS], session.writer.release()
    is_last = is_interrupted or session.ending.stopped is not None
    counting = reruns.lines_at_last(lines) if is_last else reruns.lines_after(lines, test)
    for line in counting or ():
        session.writer.write(line)


def _running(item: pytest.Item) -> Running | None:
    return item.stash.get(_RUNNING, None) if is_suite(item) else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Turn whatever keeps a test from starting into a reason."""
    return (yield from _phase(item, outcomes.setup_phase))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Turn the outcome of a test into checks."""
    return (yield from _phase(item, outcomes.call_phase))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the results when the target can no longer be cleaned up."""
    running = _running(item)
    return (yield) if running is None else (yield from outcomes.teardown_phase(running))


def _phase(
    item: pytest.Item, phase: Callable[[Running, Session], Generator[None, object, object]]
) -> Generator[None, object, object]:
    """Run a phase of a suite test; when no further test may start, stop pytest and say why."""
    running, session = _running(item), item.config.stash[SESSION]
    if running is None:
        return (yield)
    try:
        return (yield from phase(running, session))
    finally:
        if session.is_over and _BRIEF not in item.config.stash:  # by area the summary says it
            item.session.shouldstop = str(session.ending.stopped)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record what broke outside a test, in a mark or another plugin; end the test after its last phase."""
    report = _without_secrets((yield))
    running = _running(item)
    if running is None:
        return report
    if call.excinfo is not None and call.excinfo.value is not running.told:
        running.broke(call.when, call.excinfo.value)
    session = item.config.stash[SESSION]
    if not report.passed and _runs_again(item, session, running):
        report.outcome = TRIED_AGAIN  # type: ignore[assignment]  # pytest's own are passed, failed and skipped
    if call.when == "teardown":
        report.user_properties += [NOT_RUN] if session.ending.stopped and running.has_not_begun else []
        running.end()
        del item.stash[_RUNNING]
        _ended(item, session, running.test)
        if workers.is_worker(item.config):
            workers.hand_over(session, report)
    return report


def _runs_again(item: pytest.Item, session: Session, running: Running) -> bool:
    """Tell whether a test of which an attempt did not pass will run once more."""
    return session.ending.stopped is None and not item.stash[_RERUNS].is_last(running.test, running.outcome)


def _without_secrets(report: pytest.TestReport) -> pytest.TestReport:
    """Remove secrets from what pytest and other plugins show of a test, because they do not read the record."""
    if report.longrepr is not None and (text := str(report.longrepr)) != (shown := REDACTION.pieces(text)):
        report.longrepr = shown
    report.sections = [(name, REDACTION.text(content)) for name, content in report.sections]
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Tell pytest's own display when a test failed and will run again."""
    return (TRIED_AGAIN, "R", TRIED_AGAIN.upper()) if report.outcome == TRIED_AGAIN else None
