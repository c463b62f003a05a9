"""Turns the exceptions of a test's phases into checks, and into what pytest is told."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance import suite
from conformance.contract.folders import HOME
from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.record import Outcome, Reason, TestOutcome
from conformance.runner.session import TimeIsUpError
from conformance.suite.absences import OperationAbsent
from conformance.suite.evidence import evidence_of
from conformance.suite.exceptions import NotTested, Unmet, Violation
from conformance.target import MissingFieldError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from conformance.runner.session import Session
    from conformance.suite.context import TestContext

#: The folder of helpers that tests share; it is not part of the engine.
_SHARED = Path(suite.__file__).parent
_NOT_CALLED = "pytest did not call it: --setup-only, --setup-plan, a mark or a plugin kept it from running"


@dataclass
class Running:
    """A test that is running, and its outcome so far."""

    test: TestContext
    outcome: TestOutcome = TestOutcome.NOT_BEGUN
    detail: str | None = _NOT_CALLED
    phase: str | None = None
    reason: Reason | None = None
    told: BaseException | None = None
    """The exceptions that pytest was told of; any other exception that pytest sees is not from the suite."""

    @property
    def has_not_begun(self) -> bool:
        """Whether no part of it has run yet."""
        return self.outcome is TestOutcome.NOT_BEGUN

    def say(self, outcome: TestOutcome, detail: str | None = None, reason: Reason | None = None) -> None:
        """Set the outcome of the test; a test that broke stays broken."""
        if self.outcome is not TestOutcome.BROKEN:
            self.outcome, self.detail, self.reason = outcome, detail, reason

    def broke(self, phase: str, error: BaseException) -> None:
        """Note that the suite itself broke in a phase of the test."""
        if self.outcome is TestOutcome.BROKEN:
            return
        self.outcome, self.phase = TestOutcome.BROKEN, phase
        self.detail = f"{type(error).__name__}: {error}"
        self.test.results.leave_open(Reason.HARNESS_ERROR, f"the suite itself broke in its {phase}: {self.detail}")

    def tell(self, exception: BaseException) -> BaseException:
        """Remember what pytest is told, and return it."""
        self.told = exception
        return exception

    def failure(self, text: str) -> BaseException:
        """Return the exception for a failure: a skip where the test ran with other fixtures than the profile names."""
        if self.test.run.is_elsewhere:
            return self.tell(pytest.skip.Exception(text))
        return self.tell(pytest.fail.Exception(text, pytrace=False))

    def end(self) -> None:
        """Write how the test went."""
        self.test.end(self.outcome, self.detail, self.phase, self.reason)


def setup_phase(running: Running, session: Session) -> Generator[None, object, object]:
    """Run the setup of a test; turn whatever keeps the test from starting into a reason."""
    with running.test.run.client.arranging():
        return (yield from _judged(running, session, "setup"))


def call_phase(running: Running, session: Session) -> Generator[None, object, object]:
    """Run a test; at its end, fail it for violations that it saw in passing."""
    result = yield from _judged(running, session, "call")
    failures = running.test.soft_failures
    running.say(TestOutcome.FAILED if failures else TestOutcome.PASSED, failures[0] if failures else None)
    if failures:
        raise running.failure("\n".join(failures))
    return result


def teardown_phase(running: Running) -> Generator[None, object, object]:
    """Run the teardown of a test; when the target can no longer be cleaned up, the results stay valid."""
    try:
        with running.test.run.client.arranging():
            return (yield)
    except Exception as error:  # noqa: BLE001 - told apart below, and raised again
        if not all(_is_of_target(running, one) for one in _each(error)):
            running.broke("teardown", error)
            raise running.tell(error) from None
        running.detail = f"what the test changed could not be put back: {error}"
        return None


def _each(error: Exception) -> Iterator[Exception]:
    """Yield an exception, or each exception of a group that pytest raised."""
    if isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from _each(one)
    else:
        yield error


def _is_of_target(running: Running, error: Exception) -> bool:
    is_known = isinstance(error, NotTested | MissingFieldError | Violation | TargetGoneError | RequestsSpentError)
    return is_known or _unmet_by(error, running.test) is not None


def _judged(running: Running, session: Session, phase: str) -> Generator[None, object, object]:
    test = running.test
    try:
        return (yield)
    except pytest.skip.Exception as skipped:
        running.say(TestOutcome.NOT_BEGUN, f"pytest skipped it: {skipped}")
        raise running.tell(skipped) from None
    except KeyboardInterrupt:
        running.say(TestOutcome.INCONCLUSIVE, "the run was interrupted", Reason.INTERRUPTED)
        test.results.leave_open(Reason.INTERRUPTED, "the run was interrupted")
        raise
    except (TargetGoneError, TimeIsUpError, RequestsSpentError) as end:
        raise running.tell(_last(running, session, end)) from None
    except (NotTested, MissingFieldError) as error:
        missing = _lacking(error, test)
        running.say(TestOutcome.NOT_TESTED, missing.detail, missing.reason)
        test.results.leave_open(missing.reason, missing.detail, missing.outcome, missing.waits_for)
        raise running.tell(pytest.skip.Exception(f"not tested: {missing.detail}")) from None
    except Violation as violation:
        running.say(TestOutcome.FAILED, str(violation))
        detail = f"an earlier step of the same test failed: {violation}"
        test.results.leave_open(Reason.PRECONDITION, detail, waits_for=test.results.last_failed)
        raise running.failure(_in_words(test, violation)) from None
    except BaseException as error:  # noqa: BLE001 - told apart below, and raised again
        unmet = _unmet_by(error, test)
        if unmet is None:
            running.broke(phase, error)
            raise running.tell(error) from None
        running.say(TestOutcome(unmet.outcome), unmet.detail, unmet.reason)
        test.results.leave_open(unmet.reason, unmet.detail, unmet.outcome, unmet.waits_for)
        raise running.tell(pytest.skip.Exception(f"{unmet.outcome}: {unmet.detail}")) from None


def _lacking(error: NotTested | MissingFieldError, test: TestContext) -> NotTested | OperationAbsent:
    """Return why a test was not run: nothing to add to the profile helps where the target has nothing of its areas."""
    missing = error if isinstance(error, NotTested) else NotTested(Reason.PREREQUISITE_MISSING, str(error))
    if missing.reason is not Reason.PREREQUISITE_MISSING:
        return missing
    absence = test.run.absences.of_all(test.run.contract.requirements[name].area for name in test.declared)
    return missing if absence is None else OperationAbsent(absence)


def _last(running: Running, session: Session, end: Exception) -> BaseException:
    """End the run with this test; return the exception for pytest."""
    if isinstance(end, TargetGoneError):
        running.say(TestOutcome.INCONCLUSIVE, str(end), Reason.INTERRUPTED)
        running.test.results.leave_open(Reason.NO_ANSWER, str(end))
        session.ending.stopped = f"the target stopped answering: {end}"
    else:
        is_begun = isinstance(end, RequestsSpentError)
        what, why = (TestOutcome.NOT_TESTED, Reason.INTERRUPTED) if is_begun else (TestOutcome.NOT_BEGUN, None)
        running.say(what, str(end), why)
        running.test.results.leave_open(Reason.NOT_REACHED, str(end), Outcome.NOT_TESTED)
        session.ending.stopped = str(end)
    return pytest.skip.Exception(str(end))


def _in_words(test: TestContext, violation: Violation) -> str:
    lines = [f"expected: {violation.expected}", f"actual:   {violation.actual}"]
    shown = test.history.evidence_for(violation.exchanges)[-max(1, len(violation.exchanges)) :]
    return "\n".join([*lines, *(evidence_of(exchange, test.run.client).curl for exchange in shown)])


def _unmet_by(error: BaseException, test: TestContext) -> Unmet | None:
    """Return why a test could not go on if the target is the cause; None if the suite is the cause."""
    if isinstance(error, Unmet):
        return error
    if isinstance(error, RecursionError):
        return Unmet(Reason.PRECONDITION, "an answer is nested too deeply to be looked at")
    odd = test.results.distrusted or next(iter(test.soft_failures), test.odd_beside)
    if not odd or not isinstance(error, LookupError | TypeError | AttributeError | ValueError):
        return None
    if not _reads_answers(error):
        return None
    return Unmet(Reason.PRECONDITION, f"the test cannot go on after an odd answer ({odd}): {error!r}")


def _reads_answers(error: BaseException) -> bool:
    """Tell whether an exception was raised where answers are read: in a test, or in a helper that tests share.

    The engine must cope with any answer, so an exception in the engine is a bug of the suite, whatever the target
    answered.
    """
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    own = [file for file in files if file.is_relative_to(HOME)]
    return not own or own[-1].is_relative_to(_SHARED) or not own[-1].is_relative_to(_SHARED.parent)
