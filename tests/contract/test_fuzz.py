"""Each keyword of each request schema fulfilled and broken once, and random calls: every answer is a documented one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.fuzzing import drawn_for, keep_failed, run_cases
from conformance.suite.arrange import arranged
from conformance.suite.context import current_run, current_test
from conformance.suite.derived import claims_of, held_against, served_caller, takes_part
from conformance.suite.expectations import given
from conformance.suite.expectations.words import looked

if TYPE_CHECKING:
    from conformance.fuzzing import DrawingSession
    from conformance.suite import Operation


@pytest.mark.every_operation(
    where=takes_part,
    requirements=lambda operation: claims_of(operation.success.requirement),
    draws=True,
)
def test_whatever_is_drawn_the_answer_is_documented(operation: Operation, suite: DrawingSession) -> None:
    with arranged(operation, aside=True) as prepared:
        if current_run().absences.seems_unimplemented(operation.id):
            # An absent operation must not fail once for each call that it does not answer.
            with current_test().unjudged():
                prepared.sent_by(served_caller(operation)).given_there()
        cases = drawn_for(suite, operation)
        tally = run_cases(prepared, served_caller(operation), cases)
        keep_failed(suite, operation, tally)
        with held_against([operation.success.requirement]):
            given(tally.served > 0, tally.why_nothing_was_served)
            looked()  # at each answer when it came
