"""The vocabulary for what is expected, by which requirement, and why it could not be seen."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.results.record import ItemState, Outcome, Reason
from conformance.results.text import as_json
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
from conformance.suite.per_run import PerRun
from conformance.target import MissingFieldError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from conformance.http.exchange import Exchange
    from conformance.target import Fixture

T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.004, 0.25  # seconds
#: The requirements by which a run has seen that a service keeps what it accepts.
_KEPT: PerRun[set[str]] = PerRun(set)


@contextmanager
def verifies(*requirements: str, go_on: bool = False, elsewhere: Collection[str] = ()) -> Iterator[None]:
    """Check the expectations inside against requirements.

    A violation fails them and ends the test, unless `go_on` says that the rest of the story does not depend on it. What
    could not be seen leaves them inconclusive. So does a violation after a write without an answer, because its effect
    is unknown and nothing found since can be held against the target. The same holds if the version is unknown and the
    target may not have yet, or no longer have, what the violation is about. If the profile lacks something, they are
    not tested. Those in `elsewhere` are verified by other tests as well, and are left to these. A block without any
    expectation is a mistake of the suite.

    What violates the requirements of a block inside this one is held against those alone: here it only ends the block.
    """
    test = _test_that_declares(requirements)
    before = test.expectations
    try:
        with _believed(test):
            yield
    except Violation as violation:
        if violation.requirement is None:
            _blame(test, requirements, violation, go_on=go_on)
        else:
            _leave_open(test, requirements, violation, go_on=go_on)
        if not go_on:
            raise
    except (Unmet, NotTested) as unseen:
        test.results.settle(elsewhere)
        for requirement in [name for name in requirements if name not in elsewhere]:
            test.results.open_question(requirement, unseen.outcome, unseen.reason, unseen.detail, unseen.waits_for)
        # A story that goes on needs an answer, whatever it says; an absent operation is not even called.
        if not go_on or isinstance(unseen, OperationAbsent):
            raise
    else:
        for requirement in requirements if _has_looked(test, before, requirements) else ():
            test.results.passed(requirement)


def _has_looked(test: TestContext, before: int, requirements: tuple[str, ...]) -> bool:
    """Tell whether a block has checked an expectation; if an earlier step kept it from that, leave it open."""
    if test.expectations > before:
        return True
    if not test.results.has_open and not test.results.failures:
        raise MisuseError(f"{test.id} looks at nothing while verifying {', '.join(requirements)}.")
    for requirement in requirements:
        detail = "an earlier step of the same test left nothing to look at"
        test.results.open_question(requirement, Outcome.INCONCLUSIVE, Reason.PRECONDITION, detail)
    return False


def left_to_others(*requirements: str) -> None:
    """Say that a test has nothing to check here and that other tests show the same: for some requirements, or all."""
    results = current_test().results
    results.settle(requirements or results.declared)


def was_not_tested(requirement: str, lacking: str) -> None:
    """Record that a requirement could not be checked, and what the profile must give for that."""
    current_test().results.open_question(requirement, Outcome.NOT_TESTED, Reason.PREREQUISITE_MISSING, lacking)


def _blame(test: TestContext, requirements: tuple[str, ...], violation: Violation, *, go_on: bool) -> None:
    """Fail the requirements that the profile asks for and no other version excuses.

    If there is none, raise Unmet, unless the test goes on.
    """
    excuses = {name: test.excused(name, violation) for name in requirements if test.is_asked(name, violation)}
    blamed = [name for name, excuse in excuses.items() if excuse is None]
    for requirement in blamed:
        test.failed(requirement, violation)
    if blamed:
        violation.requirement = blamed[0]
        if go_on:
            test.fail_softly(f"{', '.join(requirements)}: {violation}")
    elif not go_on:
        excuse = next(filter(None, excuses.values()), None)
        unasked = f"the profile does not ask for what was violated: {violation}"
        raise Unmet(Reason.VERSION if excuse else Reason.PRECONDITION, excuse or unasked) from violation


def _leave_open(test: TestContext, requirements: tuple[str, ...], violation: Violation, *, go_on: bool) -> None:
    """Leave requirements open because of a violation that a block inside has failed its own requirements for."""
    detail = f"an earlier step of the same test failed: {violation}"
    for requirement in requirements:
        if requirement != violation.requirement:
            test.results.open_question(
                requirement, Outcome.INCONCLUSIVE, Reason.PRECONDITION, detail, waits_for=violation.requirement
            )
    if go_on:
        test.fail_softly(f"{violation.requirement}: {violation}")


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
    """Record the target's position on an item of the version table, by the item's id; never judged by itself."""
    current_test().saw_item(item, state, detail)


def does_not_apply(requirement: str, reason: Reason, detail: str) -> None:
    """Record that a requirement does not concern this target, which only a call could show.

    That holds for what the text names without describing it and the target does not offer, and for what the answer says
    about a version that nobody knows. If the profile lacks something, raise NotTested instead.
    """
    if reason not in (Reason.NOT_OFFERED, Reason.VERSION):
        raise MisuseError(f"{requirement} is not tested for the reason '{reason}', and not without application.")
    current_test().results.open_question(requirement, Outcome.NOT_APPLICABLE, reason, detail)


def must(holds: bool, expected: str, actual: str, *exchanges: Exchange) -> None:  # noqa: FBT001 - reads as a sentence
    """Expect a condition for which there is no other word."""
    looked()
    if not holds:
        raise Violation(expected, actual, *(exchanges or suspects()))


def must_be_as_before(what: str, before: Any, after: Any, *exchanges: Exchange) -> None:
    """Expect that two reads, before and after, are the same; a violation shows what differs."""
    looked()
    if after != before:
        raise Violation.of_change(what, before, after, *(exchanges or suspects()))


def given(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Go on only if a precondition holds; otherwise what follows is inconclusive, with this reason."""
    if not holds:
        raise Unmet(Reason.PRECONDITION, otherwise)


@contextmanager
def given_done(requirement: str) -> Iterator[None]:
    """Go on only if a served call that prepares or undoes a story did what the expectations inside say.

    If it did not, that fails the requirement of the call, whichever test made it, and leaves the story inconclusive.
    """
    test = current_test()
    try:
        yield
    except Violation as violation:
        if test.history.unanswered_write is None:
            test.fail_in_passing(requirement, violation)
        detail = f"an earlier step did not do what it was served for ({requirement}): {violation}"
        raise Unmet(Reason.PRECONDITION, detail, waits_for=requirement) from violation


@contextmanager
def given_kept(requirement: str, read: Callable[[], object]) -> Iterator[None]:
    """Go on after a write only if a service keeps what it accepts: what `read` returns is another thing afterwards.

    Where it is not, that fails this requirement, and stories that need the thing show nothing of their own. A run
    looks until it was seen once. What cannot be read shows nothing.
    """
    kept, before = _KEPT(), None
    is_seen = requirement in kept
    with suppress(Unmet, NotTested):
        before = None if is_seen else read()
    yield
    with given_done(requirement), suppress(Unmet, NotTested):
        if before is not None:
            must_settle(lambda: read() != before, "another list than before", lambda: f"{as_json(before)} as before")
            kept.add(requirement)


def given_field(fixture: Fixture, name: str, kind: type[T]) -> T:
    """Return a value that the profile gives for a fixture; raise NotTested when it is missing or of another type."""
    found = fixture.get(name)
    if isinstance(found, kind) and found != "" and not (kind is int and isinstance(found, bool)):
        return found
    raise NotTested(Reason.PREREQUISITE_MISSING, str(MissingFieldError(fixture.name, name)))


def whole_number(value: Any) -> int | None:
    """Return the integer that a JSON value is, also for `1.0`; None when it is no integer."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def looked() -> None:
    """Count that an expectation is being checked; see `verifies`."""
    current_test().expectations += 1


@contextmanager
def unchanged(read: Callable[[], Any], what: str) -> Iterator[None]:
    """Expect that two reads, before and after, are the same; inconclusive when one of them failed."""
    before = read()
    yield
    current_run().known_reads.forget()
    must_be_as_before(what, before, read())


def must_settle(holds: Callable[[], bool], expected: str, actual: Callable[[], str], *, within: float = 0) -> None:
    """Expect a condition that is read again at each check, within the time the target has to settle.

    `within` gives it at least this many seconds, if the text permits a delay.
    """
    looked()
    if not (holds() or settles(holds, within)):
        raise Violation(expected, actual(), *suspects())


def settles(holds: Callable[[], bool], within: float = 0) -> bool:
    """Check again until a condition holds or the target has had its time to settle.

    That is at least `within` seconds, but for these never longer than the target's deadline.
    """
    limits = current_run().profile.limits
    return _holds_before(time.monotonic() + max(min(within, limits.deadline_seconds), limits.settle_seconds), holds)


def read_until(read: Callable[[], T], holds: Callable[[T], bool], within: float = 0) -> T:
    """Return what is read, once a condition holds or the target has had its time to settle; see `settles`."""
    found = read()

    def is_so() -> bool:
        nonlocal found
        found = read()
        return holds(found)

    if not holds(found):
        settles(is_so, within)
    return found


def eventually(holds: Callable[[], bool], expected: str) -> None:
    """Poll until a condition holds; inconclusive when the time for it passes before: at most the target's deadline."""
    waits = current_run().waits
    seconds = waits.seconds_for(expected)
    deadline = time.monotonic() + seconds
    if holds():
        return
    if _holds_before(deadline, holds):
        waits.came(expected)
        return
    waits.missed(expected)
    why = "" if seconds == waits.deadline_seconds else ", after others were waited for in vain"
    raise Unmet(Reason.PRECONDITION, f"{expected} did not happen within {seconds:g} s{why}")


def _holds_before(deadline: float, holds: Callable[[], bool]) -> bool:
    """Check again until a condition holds: very soon at first, then more rarely, to spare a slow target."""
    pause = _FIRST_PAUSE
    while time.monotonic() < deadline:
        time.sleep(pause)
        current_run().known_reads.forget()
        if holds():
            return True
        pause = min(pause * 2, _LONGEST_PAUSE)
    return False
