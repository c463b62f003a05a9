"""Cases drawn from the OpenAPI document, sent many at once; a failure is only what no reading of the text excuses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from conformance.fuzzing.case_adapter import without_like_mistakes, without_repeated_queries
from conformance.fuzzing.cases import DrawnCase, without_small_steps
from conformance.fuzzing.running import must_be_stored, run_cases
from conformance.suite.context import current_run
from conformance.suite.session import SuiteSession

if TYPE_CHECKING:
    from conformance.contract import Operation
    from conformance.fuzzing.cases import DrawnCase
    from conformance.fuzzing.running import Tally
    from conformance.fuzzing.session_cases import SessionCases
    from conformance.suite.context import Run

__all__ = ["DrawingSession", "drawn_for", "keep_failed", "must_be_stored", "run_cases"]


_RATION = 8
_SAMPLE = 7


class DrawingSession(SuiteSession, Protocol):
    """A session that knows which cases are drawn in it."""

    @property
    def run(self) -> Run | None:
        """The run against the operator's target; None if a proof has its own."""

    @property
    def cases(self) -> SessionCases:
        """The cases that it draws and replays."""


def drawn_for(suite: DrawingSession, operation: Operation) -> list[DrawnCase]:
    """Return the cases of an operation for the running target, within the budget of the session, and count them.

    They are those that the schema always gives, those of the seed and, unless the operator gave a seed to repeat a run,
    those of earlier runs. A test that runs a second time gets the same cases.
    """
    corpus, budget = suite.cases.corpus(current_run().profile.version), suite.cases.budget
    wanted = (operation.id, budget)
    if wanted in corpus.given:
        return corpus.given[wanted].cases
    each_once = without_repeated_queries(operation, without_small_steps(corpus.cases(operation, "coverage")))
    always = tuple(without_like_mistakes(operation, each_once, budget.seed))
    found = replace(corpus.draw(operation, budget, with_earlier=suite.options.seed is None), coverage=always)
    if operation.has_gateway:
        # A gateway behind the service may answer these: it has a rate limit, and may cost money. Specification: Limits.
        found = found.rationed(_RATION)
    elif operation.is_second_name:
        # The cases that the schema always gives are the same for both names; all of them are sent by the newer name.
        found = replace(found, coverage=found.coverage[::_SAMPLE])
    corpus.count(found)
    corpus.given[wanted] = found
    return found.cases


def keep_failed(suite: DrawingSession, operation: Operation, tally: Tally) -> None:
    """Let later runs of any seed repeat the failed cases; those that a proof made fail on purpose are not kept."""
    if tally.failing and suite.run is not None:
        suite.cases.corpus(current_run().profile.version).keep_failed(operation, tally.failing)
