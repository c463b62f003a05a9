"""A project or group is named by its number, or by its full path as one encoded segment: it is the same one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import Arranged, arranged
from conformance.suite.derived import claims_of, held_against, served_caller, takes_part
from conformance.suite.expectations import Answer, given, must

if TYPE_CHECKING:
    from conformance.contract import Operation, Parameter

OF_THE_OTHER_KIND = {"project": "group", "group": "project"}


def naming(operation: Operation) -> Parameter | None:
    """Return the parameter by which an operation names the project or group that it belongs to."""
    return next(
        (
            parameter
            for parameter in operation.parameters
            if parameter.place == "path" and parameter.name == "id" and kind_of(operation)
        ),
        None,
    )


def kind_of(operation: Operation) -> str | None:
    return next((kind for kind in OF_THE_OTHER_KIND if operation.path.startswith(f"/{kind}s/{{id}}")), None)


def names_something(operation: Operation) -> bool:
    return takes_part(operation) and naming(operation) is not None


@pytest.mark.every_operation(
    where=names_something,
    requirements=lambda operation: claims_of(
        f"conventions.{kind_of(operation)}-id.number",
        f"conventions.{kind_of(operation)}-id.encoded-path",
    ),
)
def test_number_and_encoded_path_name_the_same(operation: Operation) -> None:
    kind, caller, parameter = kind_of(operation), served_caller(operation), naming(operation)
    assert parameter is not None
    with arranged(operation) as prepared:
        given(not isinstance(path_of(prepared, parameter), int), f"the profile does not give the path of {kind}")
        with held_against([f"conventions.{kind}-id.number"]):
            by_number = prepared.sent_by(caller).must_be_served()
        if not operation.is_read:
            prepared.again()
        with held_against([f"conventions.{kind}-id.encoded-path"]):
            by_path = prepared.call.having(parameter, path_of(prepared, parameter)).sent_by(caller).must_be_served()
            if operation.is_read:
                must(
                    steady(by_path) == steady(by_number),
                    "the answer that the number gives",
                    "another answer",
                    by_number.exchange,
                    by_path.exchange,
                )


def path_of(prepared: Arranged, parameter: Parameter) -> Any:
    """Return the full path of what a call names by its number; the number where the profile gives no path."""
    number = prepared.call.path_values[parameter.name]
    name = (parameter.fixture or "").partition(".")[0]
    found = next((entry for entry in prepared.place.entries(name) if entry.id == number), None)
    return number if found is None or found.get("path") is None else found["path"]


def steady(answer: Answer) -> Any:
    """Return a body as it can be compared with the same one a moment later; its times may move."""
    try:
        return without_times(json.loads(answer.exchange.body))
    except ValueError:
        return answer.exchange.body


def without_times(node: Any) -> Any:
    if isinstance(node, list):
        return [without_times(entry) for entry in node]
    if isinstance(node, dict):
        return {key: without_times(value) for key, value in node.items() if not key.endswith("_at")}
    return node


@pytest.mark.every_operation(
    where=lambda operation: names_something(operation) and operation.is_read,
    requirements=lambda operation: claims_of(
        f"conventions.{kind_of(operation)}-id.names-no-{OF_THE_OTHER_KIND[kind_of(operation) or 'group']}",
    ),
)
def test_the_path_of_a_group_names_no_project_and_the_other_way_round(operation: Operation) -> None:
    kind, caller, parameter = kind_of(operation), served_caller(operation), naming(operation)
    assert parameter is not None
    assert kind is not None
    other = OF_THE_OTHER_KIND[kind]
    with arranged(operation) as prepared:
        given(not isinstance(path_of(prepared, parameter), int), f"the profile does not give the path of {kind}")
        by_path = prepared.call.having(parameter, path_of(prepared, parameter)).sent_by(caller)
        foreign = prepared.place.value(f"{other}.path")
        with held_against([f"conventions.{kind}-id.names-no-{other}"]):
            prepared.call.having(parameter, foreign).sent_by(caller).must_be_refused(beside=by_path)
