"""Explores a target with a state machine: random moves, a model beside them, and a comparison after every step."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, cast

import hypothesis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky, Unsatisfiable
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from conformance.http.client import RequestsSpentError, TargetGoneError
from conformance.results.record import Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.context import Unmet, Violation, current_run, current_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.results.record import Check
    from conformance.suite.session import SuiteSession

_STEPS = 12
#: How many examples more may be tried to make a failing one shorter, each of them dozens of calls.
_TRIES_TO_SHRINK = 60


class _ShortEnoughError(BaseException):
    """Ends the search for a shorter example; not an Exception, so that it is not mistaken for the end of one."""


class Model(RuleBasedStateMachine):
    """A state machine for one area; each example forgets the calls of the last one at its start.

    After a move, its own place is compared; all other places are compared before the moves go on elsewhere, and at the
    end.
    """

    moved: Any = None
    """The place of the last moves, as long as no other place has been compared since."""

    def __init__(self) -> None:
        """Begin an example."""
        super().__init__()
        current_test().history.begin_example()

    def go_on_at(self, place: object) -> None:
        """Begin a move at a place."""
        if self.moved is not None and self.moved != place:
            self.look_around(self.moved)
        self.moved = None

    def look_around(self, moved: Any) -> None:
        """Compare everything except the place that was moved with the model."""

    def tour(self) -> None:
        """Make the moves that must be made whatever is drawn, once and before all examples; none unless overridden."""

    def teardown(self) -> None:
        """End an example; after a failure nothing is left to compare."""
        if self.moved is not None:
            self.look_around(self.moved)


def explore(suite: SuiteSession, make: Callable[[], Model]) -> None:
    """Run random sequences of moves against the target, with the seed of the session; `make` begins an example.

    The tour of the model comes first. A violation is shrunk to the shortest sequence that some tries find; that one is
    recorded, with all its calls. Requirements that the moves never reached are left to the stories: the model leaves no
    requirement open.
    """
    test = current_test()
    try:
        make().tour()
        _draw_moves(suite, make)
    except Violation:
        test.results.settle(test.declared)  # the stories show what later moves would have shown
        raise
    test.results.settle(test.declared)


def _draw_moves(suite: SuiteSession, make: Callable[[], Model]) -> None:
    test = current_test()
    examples = max(3, 4 * suite.options.max_examples // 15)
    options = settings(
        max_examples=examples,
        stateful_step_count=_STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    begun = count(1)

    def begin() -> Model:
        if next(begun) > examples + _TRIES_TO_SHRINK and test.results.last_pending is not None:
            raise _ShortEnoughError
        return make()

    with test.shrinking():
        test.on_silence = hypothesis.reject  # nothing was shown; try another sequence
        try:
            # Any function that makes a machine will do, though the annotation names a class.
            run_state_machine_as_test(cast("type[Model]", seed(suite.seed)(begin)), settings=options)
        except (_ShortEnoughError, Flaky) as error:
            raise _told_by(error, test.results.last_pending) from error
        except Unsatisfiable as error:
            if test.history.unanswered is None:
                raise
            detail = f"no moves came to their end: {test.history.unanswered} got no answer"
            raise Unmet(Reason.NO_ANSWER, detail) from error
        finally:
            test.on_silence = None


def _told_by(error: BaseException, shortest: Check | None) -> Exception:
    """Return the known result if the same moves end in different ways, as on a target that stops answering.

    The search for a shorter example may also have been ended; `shortest` is the failure of the last one, if any failed.
    """
    seen = error.exceptions if isinstance(error, ExceptionGroup) else ()
    for kind in (TargetGoneError, RequestsSpentError, Violation, Unmet):
        found = next((one for one in seen if isinstance(one, kind)), None)
        if found is not None:
            return found
    if shortest is not None:
        return Violation(str(shortest.expected), str(shortest.actual))
    absent = [*current_run().absences.found.values()]
    if absent:  # found absent on the way, so that the same moves ended in another way before
        return OperationAbsent(absent[-1])
    return Unmet(Reason.PRECONDITION, "the target did not answer alike when the same moves were repeated")
