"""A service is only judged for what is wrong under every reading, and never for what some service would convert."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.contract import Contract, Kind, Operation, Version
from conformance.fuzzing.case_adapter import CaseAdapter
from conformance.fuzzing.cases import DrawnCase, Mutation
from conformance.fuzzing.coercion import is_beyond_coercion, kind_of, may_be_dropped
from conformance.suite.arrange import ABSENT

pytestmark = pytest.mark.usefixtures("inside_this_process")

VERSION = Version.parse("17.7")
REQUIRED = "job-token-scope.switch.enabled-is-required"
BOOLEAN = "job-token-scope.switch.enabled-is-boolean"
BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minProperties", "pattern", "additionalProperties", "format")


def operation_named(name: str) -> Operation:
    return next(operation for operation in Contract.load().operations(VERSION) if operation.id == name)


def owed(body: Any, raw: bytes | None = None, *, is_positive: bool = False) -> list[str]:
    """Return the requirements for which the switch of the limit must refuse this body."""
    operation = operation_named("updateJobTokenScope")
    adapter = CaseAdapter(operation)
    case = DrawnCase(operation.id, "PATCH", operation.path, (("id", "1"),), (), body, raw, (), is_positive)
    return adapter.must_be_refused(adapter.diagnose(case))


@pytest.mark.parametrize("value", ["maybe", "abc", {"a": 1}, [True, False], [None, None]])
def test_a_value_that_nobody_converts_to_a_truth_value_must_be_refused(value: object) -> None:
    assert owed({"enabled": value}) == [BOOLEAN]


@pytest.mark.parametrize(
    "value",
    [0, 1, "0", "1", "true", "FALSE", "yes", "no", "on", "off", "t", "", " ", None, [True], [], {}, 0.5, "1x", "null"],
)
def test_a_value_that_some_service_converts_proves_nothing(value: object) -> None:
    assert owed({"enabled": value}) == []


@pytest.mark.parametrize("body", [{}, {"other": 1}, [], "text", 7, None, ABSENT])
def test_a_missing_required_parameter_must_be_refused(body: object) -> None:
    assert owed(body) == [REQUIRED]


def test_bytes_that_are_not_json_prove_nothing() -> None:
    assert owed(ABSENT, b"\xff\x00") == []


def test_a_correct_call_need_not_be_refused() -> None:
    assert owed({"enabled": True}, is_positive=True) == []
    assert owed({"enabled": True, "extra": {"a": [1]}}) == []


@pytest.mark.parametrize(
    "text", ["12", "-3", "1.0", "1e3", "0x1f", "\u0663", "\u2167", "nan", "true", "", "ab", "12abc"]
)
def test_text_that_may_mean_a_number_can_be_converted(text: str) -> None:
    assert not is_beyond_coercion({"type": "integer"}, text)


@pytest.mark.parametrize("value", ["abc", {"a": 1}, [1, 2]])
def test_words_objects_and_lists_are_not_numbers(value: object) -> None:
    assert is_beyond_coercion({"type": "integer"}, value)
    assert is_beyond_coercion({"type": ["integer", "null"]}, value)


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "object"}, {}, {"type": ["string", "integer"]}])
def test_every_value_can_be_converted_to_lists_objects_or_mixed_types(schema: dict[str, Any]) -> None:
    assert not any(is_beyond_coercion(schema, value) for value in (1, "abc", {"a": 1}, [1, 2], None))


@pytest.mark.parametrize("value", [12, ["one", "two"], [None, None]])
def test_numbers_and_lists_can_be_converted_to_text(value: object) -> None:
    assert not is_beyond_coercion({"type": "string"}, value)


def test_an_object_cannot_be_converted_to_text() -> None:
    assert is_beyond_coercion({"type": "string"}, {"a": 1})


def test_the_type_of_composed_schemas_is_known_if_there_is_only_one() -> None:
    assert kind_of({"anyOf": [{"type": "integer"}, {"type": "null"}]}) == "integer"
    assert kind_of({"anyOf": [{"type": "integer"}, {"type": "string"}]}) is None
    assert kind_of({"enum": ["a", "b"]}) == "string"


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_only_drawn_cases_that_no_reading_allows_are_judged(drawn: Any, phase: str) -> None:
    """For all operations: a judged case lacks something required, or has a value that nobody can convert."""
    judged = 0
    for operation, cases in drawn[phase].values():
        adapter = CaseAdapter(operation)
        for case in (adapter.diagnose(case) for case in cases):
            for name in adapter.must_be_refused(case):
                judged += 1
                assert not case.is_positive
                assert Contract.load().requirements[name].kind is Kind.VALIDATION
                assert any(reason_for(operation, mutation, name) for mutation in case.mutated), case
    assert judged >= 10


def reason_for(operation: Operation, mutation: Mutation, name: str) -> bool:
    """Whether the requirement is about this mutation, and the service has no choice."""
    parameter = next(
        (entry for entry in operation.parameters if (entry.place, entry.name) == (mutation.place, mutation.name)), None
    )
    if parameter is None or not mutation.is_fatal:
        return False
    if mutation.is_missing:
        return parameter.requirement_required == name
    return parameter.requirement == name and not may_be_dropped(parameter)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_broken_limit_alone_is_never_judged(drawn: Any, bound: str) -> None:
    for operation, cases in drawn["fuzz"].values():
        adapter = CaseAdapter(operation)
        for case in (adapter.diagnose(case) for case in cases):
            is_whole = not any(mutation.is_missing for mutation in case.mutated)
            if is_whole and case.description.startswith(f"violates `{bound}`") and case.description.count("`") == 2:
                assert adapter.must_be_refused(case) == [], case
