"""Each keyword of each request schema, met and broken once: nothing breaks, and every answer is a documented one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.fuzzing import drawn_for, run_cases
from conformance.suite.arrange import arranged
from conformance.suite.derived import claims_of, drawn_caller, held_against, takes_part
from conformance.suite.expectations import given, must

if TYPE_CHECKING:
    from conformance.fuzzing import DrawingSession
    from conformance.suite import Operation


@pytest.mark.every_operation(
    where=takes_part,
    requirements=lambda operation: claims_of(operation.success.requirement),
    draws="coverage",
)
def test_whatever_the_schema_says_is_met_or_broken_the_answer_is_documented(
    operation: Operation, suite: DrawingSession
) -> None:
    with arranged(operation, aside=True) as prepared:
        cases = drawn_for(suite, operation, "coverage")
        tally = run_cases(prepared, drawn_caller(operation), cases)
        with held_against([operation.success.requirement]):
            given(tally.served > 0, tally.why_nothing_was_served)
            must(tally.sent > tally.unanswered, "an answer to some call", "no answer to any")
