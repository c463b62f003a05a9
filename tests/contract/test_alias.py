"""Operations that are older names of others: for every caller, both names have the same outcome."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import Arranged, arranged
from conformance.suite.arrange.integrations import comparable
from conformance.suite.derived import (
    ANONYMOUS,
    WRONG_TOKEN,
    caller_named,
    claims_of,
    held_against,
    is_known,
    takes_part,
)
from conformance.suite.expectations import Answer, as_json, given, must
from conformance.suite.steady import says_the_same

if TYPE_CHECKING:
    from conformance.suite import Exchange, Operation, SuiteSession

SAME = {
    "listServices": "integrations.alias.lists-the-same",
    "getService": "integrations.alias.reads-the-same",
    "setUpService": "integrations.alias.set-up-shows",
    "disableService": "integrations.alias.disable-shows",
}
"""The requirement that an operation has the same effect by its older name."""


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and operation.alias_of is not None,
    requirements=lambda operation: claims_of(SAME.get(operation.id)),
)
def test_another_name_of_an_operation_comes_to_the_same_for_everybody(
    operation: Operation, suite: SuiteSession
) -> None:
    """The older name must not permit what the newer one refuses, nor do anything else."""
    original = next(entry for entry in suite.contract.operations(suite.version) if entry.id == operation.alias_of)
    with arranged(original) as newer, arranged(operation) as older:
        served, refused = (
            [name for name in names if is_known(name)] for names in (operation.served, operation.refused)
        )
        for name in served if are_refused(newer, older, refused) else [*served, *refused]:
            expected, (actual, exchange) = outcome(newer, name), outcome_and_call(older, name)
            with held_against([SAME[operation.id]], go_on=True):
                is_same = says_the_same(actual, expected, partial(outcome, newer, name))
                told = f"for {name} the same as {original.label}: {as_json(expected)}"
                must(is_same, told, as_json(actual), *([exchange] if operation.is_read else []))


def are_refused(newer: Arranged, older: Arranged, names: list[str]) -> bool:
    """Tell whether both names refuse all of these actors and change nothing: then they behave alike for them."""
    newer.again()
    before = newer.state()
    answers = [prepared.sent_by(caller_named(name)) for name in names for prepared in (newer, older)]
    return all(answer.exchange.is_refusal for answer in answers) and newer.state() == before


def outcome(prepared: Arranged, name: str) -> tuple[str, Any]:
    """Return whether a call was served, and what it showed or left; times and numbers may differ."""
    return outcome_and_call(prepared, name)[0]


def outcome_and_call(prepared: Arranged, name: str) -> tuple[tuple[str, Any], Exchange]:
    """Return the outcome of a call, and the call."""
    prepared.again()
    before = prepared.state()
    answer = prepared.sent_by(caller_named(name))
    if name in prepared.operation.served:
        answer.given_there()
    after = prepared.state()
    served = answer.is_served
    given(not served or prepared.operation.is_read or before != after, f"{prepared.operation.label} changed nothing")
    found = shown(answer) if prepared.operation.is_read else without_numbers(after)
    return (outcome_of(answer, name), found), answer.exchange


def outcome_of(answer: Answer, name: str) -> str:
    refused = 400 <= answer.status < 500 or (name in (ANONYMOUS, WRONG_TOKEN) and 300 <= answer.status < 400)
    return "served" if answer.is_served else "refused" if refused else f"status {answer.status}"


def shown(answer: Answer) -> Any:
    """Return what a served call shows; the body of a refusal is not checked."""
    try:
        return comparable(json.loads(answer.exchange.body)) if answer.is_served else None
    except ValueError:
        return "no JSON"


def without_numbers(state: dict[str, Any]) -> dict[str, Any]:
    """Return entries without their times and numbers, which each set-up makes anew."""
    entries = {name: comparable(entry) for name, entry in state.items()}
    return {name: {key: value for key, value in entry.items() if key != "id"} for name, entry in entries.items()}
