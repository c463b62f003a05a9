"""What is expected, of which requirement, and what keeps it from being seen."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.http.redaction import beginning
from conformance.results.record import ItemState, Outcome, Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.context import (
    MisuseError,
    NotTested,
    TestContext,
    Unmet,
    Violation,
    current_run,
    current_test,
    suspects,
)
from conformance.target import MissingFieldError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from conformance.http.exchange import Exchange
    from conformance.target import Fixture

T = TypeVar("T")

_SHOWN = 300
_FIRST_PAUSE, _LONGEST_PAUSE = 0.004, 0.25  # seconds


@contextmanager
def verifies(*requirements: str, go_on: bool = False, elsewhere: Collection[str] = ()) -> Iterator[None]:
    """
    Hold the expectations inside against requirements.

    A violation fails them and ends the test, unless `go_on` says that the rest of the story does not depend on it.
    What could not be seen leaves them inconclusive, and so does a violation after a write that got no answer: what it
    changed is not known, so nothing that is found since can be held against the target. The same holds where the
    version is unknown and the target may not have yet, or no longer have, what the violation is about. What the profile
    lacks leaves them not tested. Those that other tests show as well, `elsewhere`, are left to these. A block without
    any expectation is a mistake of the suite.
    """
    test = _test_that_declares(requirements)
    before = test.expectations
    try:
        with _believed(test):
            yield
    except Violation as violation:
        _blame(test, requirements, violation, go_on=go_on)
        if not go_on:
            raise
    except (Unmet, NotTested) as unseen:
        _leave_open(test, requirements, unseen, elsewhere)
        # Whoever goes on counts on an answer, whatever it says: what is not there is not even called.
        if not go_on or isinstance(unseen, OperationAbsent):
            raise
    else:
        if test.expectations == before:
            raise MisuseError(f"{test.id} looks at nothing while verifying {', '.join(requirements)}.")
        for requirement in requirements:
            test.results.passed(requirement)


def left_to_others(*requirements: str) -> None:
    """Say that a test has nothing to look at here, and that others show the same: of requirements, or of all of its."""
    results = current_test().results
    results.settle(requirements or results.declared)


def was_not_tested(requirement: str, lacking: str) -> None:
    """Say that a requirement could not be looked at, and what the profile would have to give for that."""
    current_test().results.open_question(requirement, Outcome.NOT_TESTED, Reason.PREREQUISITE_MISSING, lacking)


def _blame(test: TestContext, requirements: tuple[str, ...], violation: Violation, *, go_on: bool) -> None:
    """Fail requirements; raise Unmet where another version may be the cause, unless the test goes on."""
    excuses = [test.excused(requirement, violation) for requirement in requirements]
    for requirement, excuse in zip(requirements, excuses, strict=True):
        if excuse is None:
            test.failed(requirement, violation)
    if None not in excuses and not go_on:
        raise Unmet(Reason.VERSION, str(excuses[0])) from violation
    if None in excuses and go_on:
        test.fail_softly(f"{', '.join(requirements)}: {violation}")


def _leave_open(
    test: TestContext, requirements: tuple[str, ...], unseen: Unmet | NotTested, elsewhere: Collection[str]
) -> None:
    test.results.settle(elsewhere)
    for requirement in [name for name in requirements if name not in elsewhere]:
        test.results.open_question(requirement, unseen.outcome, unseen.reason, unseen.detail, unseen.waits_for)


@contextmanager
def _believed(test: TestContext) -> Iterator[None]:
    try:
        yield
    except Violation as violation:
        if test.history.unanswered_write is None:
            raise
        detail = f"{test.history.unanswered_write} got no answer before, so this may come of it: {violation}"
        raise Unmet(Reason.NO_ANSWER, detail) from violation


def _test_that_declares(requirements: tuple[str, ...]) -> TestContext:
    test = current_test()
    undeclared = set(requirements) - test.declared
    if undeclared:
        raise MisuseError(f"{test.id} verifies {', '.join(sorted(undeclared))} without declaring it.")
    return test


def observe(requirement: str, what: str) -> None:
    """Record what the target chose where the specification is silent; never judged."""
    current_test().results.observed(requirement, what)


def sees(item: str, state: ItemState, detail: str) -> None:
    """Record how the target stands to an item of the version table, by the item's id; never judged by itself."""
    current_test().saw_item(item, state, detail)


def does_not_apply(requirement: str, reason: Reason, detail: str) -> None:
    """
    Record that a requirement turns out not to concern this target, which only a call could show.

    That is so of what the text names without describing it and the target does not offer, and of what the answer says
    about a version that nobody knows. What the profile lacks is never of this kind: raise NotTested for it.
    """
    if reason not in (Reason.NOT_OFFERED, Reason.VERSION):
        raise MisuseError(f"{requirement} is not tested for the reason '{reason}', and not without application.")
    current_test().results.open_question(requirement, Outcome.NOT_APPLICABLE, reason, detail)


def must(holds: bool, expected: str, actual: str, *exchanges: Exchange) -> None:  # noqa: FBT001 - reads as a sentence
    """Expect something that the other words do not say."""
    looked()
    if not holds:
        raise Violation(expected, actual, *(exchanges or suspects()))


def given(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Go on only if a precondition holds; what follows is inconclusive otherwise, and says why."""
    if not holds:
        raise Unmet(Reason.PRECONDITION, otherwise)


@contextmanager
def given_done(requirement: str) -> Iterator[None]:
    """
    Go on only if a served call that prepares or undoes a story has done what the expectations inside say.

    If it has not, that fails the requirement that it belongs to, whichever test called it, and leaves the story
    inconclusive.
    """
    test = current_test()
    try:
        yield
    except Violation as violation:
        if test.history.unanswered_write is None:
            test.fail_in_passing(requirement, violation)
        detail = f"an earlier step did not do what it was served for ({requirement}): {violation}"
        raise Unmet(Reason.PRECONDITION, detail, waits_for=requirement) from violation


def given_field(fixture: Fixture, name: str, kind: type[T]) -> T:
    """Return a value that the profile gives of a fixture; raise NotTested when it does not, or not of this type."""
    found = fixture.get(name)
    if isinstance(found, kind) and found != "" and not (kind is int and isinstance(found, bool)):
        return found
    raise NotTested(Reason.PREREQUISITE_MISSING, str(MissingFieldError(fixture.name, name)))


def whole_number(value: Any) -> int | None:
    """Return the integer that a value of JSON is, `1.0` being one as well; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def told_number(value: Any) -> Any:
    """Return a number that is told as a text as a number: which of the two it is, the contract finds, and it alone."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() else value


def looked() -> None:
    """Count that an expectation is being looked at; see `verifies`."""
    current_test().expectations += 1


@contextmanager
def unchanged(read: Callable[[], Any], what: str) -> Iterator[None]:
    """Expect that what is read before and after is the same; inconclusive when it cannot be read."""
    before = read()
    yield
    looked()
    current_run().known_reads.forget()
    after = read()
    if after != before:
        raise Violation(f"{what} as before: {_brief(before)}", _brief(after), *suspects())


def must_settle(holds: Callable[[], bool], expected: str, actual: Callable[[], str], *, within: float = 0) -> None:
    """
    Expect something that is read anew each time it is asked, within the time the target has to settle.

    `within` gives it at least so many seconds, where the text leaves room for a delay.
    """
    looked()
    if not (holds() or settles(holds, within)):
        raise Violation(expected, actual(), *suspects())


def settles(holds: Callable[[], bool], within: float = 0) -> bool:
    """Ask again until something holds or the target has had its time to settle, which is at least `within` seconds."""
    deadline = time.monotonic() + max(within, current_run().profile.limits.settle_seconds)
    pauses = _pauses()
    while time.monotonic() < deadline:
        _pause(next(pauses))
        if holds():
            return True
    return False


def eventually(holds: Callable[[], bool], expected: str) -> None:
    """Poll until something holds; inconclusive when the target's deadline passes before."""
    limits = current_run().profile.limits
    deadline = time.monotonic() + limits.deadline_seconds
    pauses = _pauses()
    while not holds():
        if time.monotonic() >= deadline:
            raise Unmet(Reason.PRECONDITION, f"{expected} did not happen within {limits.deadline_seconds:g} s")
        _pause(next(pauses))


def _pause(seconds: float) -> None:
    time.sleep(seconds)
    current_run().known_reads.forget()


def _pauses() -> Iterator[float]:
    """Yield how long to wait before asking again: hardly at first, then longer, so that a slow target has its peace."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)


def _brief(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return beginning(text, _SHOWN)
