"""Cases drawn from the OpenAPI document, sent many at once, judged where no reading of the text excuses them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from conformance.bookkeeping import current_run
from conformance.contract import Contract
from conformance.fuzzing.cases import DrawnCase, Mutation
from conformance.fuzzing.corpus import FOLDER, PHASES, Corpus
from conformance.fuzzing.fitting import Fitting
from conformance.fuzzing.read_back import must_be_stored
from conformance.fuzzing.running import Failure, Tally, run_cases

if TYPE_CHECKING:
    from conformance.arrange import Place
    from conformance.contract import Operation, Version
    from conformance.session import Session

__all__ = [
    "FOLDER",
    "PHASES",
    "Corpus",
    "DrawnCase",
    "Failure",
    "Fitting",
    "Mutation",
    "Tally",
    "draw",
    "drawn_for",
    "must_be_stored",
    "run_cases",
]


_RATION = 8


@cache
def _corpus(version: Version | None) -> Corpus:
    return Corpus(Contract.load(), version)


def drawn_for(suite: Session, operation: Operation, phase: str) -> list[DrawnCase]:
    """Return the cases of an operation for the running target, within the budget of the session."""
    options = suite.options
    cases = _corpus(current_run().profile.version).cases(
        operation,
        phase,
        seed=suite.seed,
        max_examples=options.max_examples,
        seconds=options.fuzz_seconds,
    )
    return _rationed(cases) if operation.has_gateway else cases


def _rationed(cases: list[DrawnCase]) -> list[DrawnCase]:
    """
    Leave out most cases that a gateway behind the service may have to answer: it has a rate, and may have a price.

    Specification: Limits.
    """
    right = [case for case in cases if case.is_positive][:_RATION]
    wrong = [case for case in cases if not case.is_positive][:_RATION]
    return right + wrong


def draw(  # noqa: PLR0913 - the budget of a draw
    operation: Operation,
    phase: str,
    *,
    corpus: Corpus,
    place: Place,
    seed: int = 0,
    max_examples: int = 30,
    seconds: float = 10,
) -> list[DrawnCase]:
    """
    Draw cases and let the fixtures of a place flow in; nothing is sent.

    `seconds` bounds the drawing. Raise NotTested when the profile lacks a fixture that every call needs.
    """
    cases = corpus.cases(operation, phase, seed=seed, max_examples=max_examples, seconds=seconds)
    values = {
        parameter.name: place.value(parameter.fixture)
        for parameter in operation.parameters
        if parameter.place == "path" and parameter.fixture
    }
    return Fitting(operation).fitted(cases, place, values)
