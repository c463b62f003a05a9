"""What must not be accepted: a parameter that is missing or of a wrong type, a value or a thing that does not exist."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing.coercion import may_be_dropped, shows_value, wrong_values
from conformance.suite import Outcome, Reason
from conformance.suite.arrange import UNUSED_ID, Arranged, Prepared, area_of, arranged
from conformance.suite.arrange.integrations import has
from conformance.suite.context import current_run, current_test
from conformance.suite.derived import (
    claims_of,
    held_against,
    is_validation,
    note,
    parameters_where,
    requirements_of,
    served_caller,
    takes_part,
)
from conformance.suite.expectations import Answer, Caller, given, must

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suite import Operation, Parameter

REFUSAL = ("errors.refusal.is-client-error", "errors.refusal.changes-nothing", "errors.refusal.code-of-invalid-input")


def required(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation, lambda parameter: parameter.required and is_validation(parameter.requirement_required)
    )


def typed(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation,
        lambda parameter: is_validation(parameter.requirement) and bool(wrong_values(parameter.schema)),
    )


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(required(operation)),
    requirements=lambda operation: claims_of(*requirements_of(required(operation), "requirement_required"), *REFUSAL),
)
def test_a_call_without_a_required_parameter_is_refused(operation: Operation) -> None:
    with arranged(operation) as prepared:
        for parameter in required(operation):
            refuse(prepared, prepared.call.without(parameter), parameter.requirement_required, f"no {parameter.name}")


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(typed(operation)),
    requirements=lambda operation: claims_of(*requirements_of(typed(operation), "requirement"), *REFUSAL),
)
def test_a_value_that_nobody_could_take_for_the_right_type_is_not_accepted(operation: Operation) -> None:
    """Values that lenient services convert, such as the text "1" for a number, are never sent."""
    with arranged(operation) as prepared:
        for parameter in taken(prepared, typed(operation)):
            for value in wrong_values(parameter.schema):
                call = prepared.call.having(parameter, value)
                if may_be_dropped(parameter):
                    refuse_or_drop(prepared, call, parameter, value)
                else:
                    refuse(prepared, call, parameter.requirement, f"a wrong {parameter.name}")


def taken(prepared: Arranged, parameters: list[Parameter]) -> list[Parameter]:
    """
    Return the parameters that what is called has: what is not there takes no wrong value, which shows nothing.

    What is stated of others alone is left to the stories where the profile names something else that has them, and is
    not tested where it does not.
    """
    found = [parameter for parameter in parameters if prepared.takes(parameter.name)]
    shown = {parameter.requirement for parameter in found}
    test = current_test()
    for parameter in parameters:
        name, requirement = parameter.name, parameter.requirement
        if requirement is None or requirement in shown or requirement not in test.declared:
            continue
        if any(has(other, name) for entries in test.run.profile.fixtures.values() for other in entries):
            test.results.settle([requirement])
            continue
        detail = f"no integration of the profile has {name}: name one that has, with it among its parameters or events"
        test.results.open_question(requirement, Outcome.NOT_TESTED, Reason.PREREQUISITE_MISSING, detail)
    return found


def refuse(prepared: Arranged, call: Prepared, requirement: str | None, what: str) -> None:
    """Expect that a call is refused and changes nothing, beside the right call, which is served."""
    caller = served_caller(prepared.operation)
    (answer,), control = tried(prepared, requirement, lambda: [call.sent_by(caller)])
    with held_against(shared(requirement, "errors.refusal.is-client-error", [answer]), go_on=True):
        answer.must_be_refused(beside=control if not answer.is_served else None)
    note("errors.refusal.code-of-invalid-input", f"{prepared.operation.id} answers {answer.exchange.status} to {what}")
    prepared.again()


def tried(prepared: Arranged, requirement: str | None, send: Callable[[], list[Answer]]) -> tuple[list[Answer], Answer]:
    """
    Send calls that must be refused, then the right one, and return their answers.

    The state must be after the calls as it was before them, which shows something only where the right call is served.
    """
    has_state = prepared.request_example.state is not None
    before = prepared.state() if has_state else None
    answers = send()
    after = prepared.state() if has_state else None
    control = prepared.control(served_caller(prepared.operation))
    if has_state:
        with held_against(shared(requirement, "errors.refusal.changes-nothing", answers), go_on=True):
            is_served = any(answer.is_served for answer in (control, *answers))
            given(is_served, "the right call is not served either, so that nothing could have changed")
            must(after == before, f"the state as before: {before}"[:400], str(after)[:400])
    return answers, control


def shared(requirement: str | None, general: str, answers: list[Answer]) -> list[str | None]:
    """
    Return a requirement beside the general one that it is a case of, unless a service may read it otherwise.

    What is served was not refused: what the text says of refusals is not to blame for it.
    """
    found = current_run().contract.requirements.get(requirement or "")
    is_read_otherwise = found is not None and bool(found.eased_by)
    is_served = any(answer.is_served for answer in answers)
    return [requirement] if is_read_otherwise or is_served else [requirement, general]


def refuse_or_drop(prepared: Arranged, call: Prepared, parameter: Parameter, value: Any) -> None:
    """Expect a refusal, or a served call that does not store the value."""
    answer = call.sent_by(served_caller(prepared.operation))
    with held_against([parameter.requirement], go_on=True):
        answer.must_not_break()
        documented = prepared.operation.response_to(answer.status) is not None
        given(documented or not answer.is_served, f"status {answer.status} is no answer of the operation")
        shown = shown_after(prepared, call, answer) if answer.is_served else None
        must(
            not shows_value(shown, value),
            f"{parameter.name} refused or left out of account",
            f"{parameter.name} stored",
            answer.exchange,
        )
    prepared.again()


def shown_after(prepared: Arranged, call: Prepared, answer: Answer) -> Any:
    """Return what is shown after a served write: the answer, what the resource holds, and the state of the rest."""
    read_back = prepared.request_example.read_back
    held = prepared.keeper.read(read_back.path(call, answer)) if read_back is not None else None
    return [content(answer), held, prepared.state()]


def content(answer: Answer) -> Any:
    try:
        return json.loads(answer.exchange.body)
    except ValueError:
        return None


# -- things that do not exist ------------------------------------------------------------------------------------------


def nobodys(prepared: Arranged, parameter: Parameter) -> tuple[int | str, ...]:
    """
    Return what names nothing: numbers not in use, before the first, a right one beyond 32 bits, and a right path that
    goes on behind its end.
    """
    body = prepared.call.body if isinstance(prepared.call.body, dict) else {}
    right = prepared.call.path_values.get(parameter.name, body.get(parameter.name))
    by_path = prepared.by_path.path_values["id"] if prepared.by_path and parameter.name == "id" else None
    longer = (f"{by_path}-conformance-none",) if by_path else ()
    ids = ids_that_are_no_iids(prepared) if parameter.name == "merge_request_iid" else ()
    return (UNUSED_ID, 0, 2**32 + (right if isinstance(right, int) else UNUSED_ID), *longer, *ids)


def ids_that_are_no_iids(prepared: Arranged) -> tuple[int, ...]:
    """
    Return the id of a merge request, where no merge request of its project has it for its iid.

    For calls that read alone: a run writes to no merge request whose iid the profile does not give.
    """
    merge_request = prepared.place.fixture("merge_request")
    number, (place, _, _) = merge_request.get("id"), prepared.call.path.partition("/merge_requests/")
    if number in (None, merge_request.get("iid")) or not prepared.operation.is_read:
        return ()
    is_none = prepared.keeper.get(f"{place}/merge_requests/{number}/approvals").exchange.is_refusal
    return (number,) if is_none else ()


def naming(operation: Operation) -> Iterator[tuple[Parameter, str | None]]:
    """Parameters that name a thing, each with the requirement that an unknown one is refused."""
    unknown = area_of(operation).unknown
    for parameter in operation.parameters:
        requirement = unknown.get(f"{operation.id}.{parameter.name}", unknown.get(parameter.name))
        names_it = parameter.place == "path" and parameter.fixture is not None and takes_integer(parameter)
        if (requirement or names_it) and not is_removed_thing(operation, parameter):
            yield parameter, requirement


def takes_integer(parameter: Parameter) -> bool:
    forms = [parameter.schema, *parameter.schema.get("anyOf", ())]
    return any(form.get("type") == "integer" for form in forms)


def is_removed_thing(operation: Operation, parameter: Parameter) -> bool:
    """Removing what is not there may succeed, and what lies below something that is not there is not there either."""
    return operation.method == "DELETE" and parameter.place == "path"


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(list(naming(operation))),
    requirements=lambda operation: claims_of(
        *(requirement for _, requirement in naming(operation)),
        "errors.refusal.is-client-error",
        "errors.refusal.changes-nothing",
        "errors.refusal.code-of-missing-resource",
    ),
)
def test_a_call_that_names_what_does_not_exist_is_refused(operation: Operation) -> None:
    caller = served_caller(operation)
    with arranged(operation) as prepared:
        for parameter, requirement in naming(operation):
            calls = [prepared.call.having(parameter, number) for number in nobodys(prepared, parameter)]
            answers, control = tried(prepared, requirement, partial(sent_each, calls, caller))
            for answer in answers:
                with held_against(shared(requirement, "errors.refusal.is-client-error", [answer]), go_on=True):
                    answer.must_be_refused(beside=control if not answer.is_served else None)
            note(
                "errors.refusal.code-of-missing-resource",
                f"{operation.id} answers {answers[0].exchange.status} to an unknown {parameter.name}",
            )
            prepared.again()


def sent_each(calls: list[Prepared], caller: Caller) -> list[Answer]:
    return [call.sent_by(caller) for call in calls]


# -- values that are not on the list -----------------------------------------------------------------------------------


def chosen(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation, lambda parameter: is_validation(parameter.requirement) and bool(parameter.schema.get("enum"))
    )


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(chosen(operation)),
    requirements=lambda operation: claims_of(*requirements_of(chosen(operation), "requirement")),
)
def test_a_value_that_is_not_among_the_stated_ones_is_not_stored(operation: Operation) -> None:
    with arranged(operation) as prepared:
        for parameter in taken(prepared, chosen(operation)):
            call = prepared.call.having(parameter, "conformance-unknown-value")
            handle: Callable[..., None] = refuse_or_drop if may_be_dropped(parameter) else refuse_value
            handle(prepared, call, parameter, "conformance-unknown-value")


def refuse_value(prepared: Arranged, call: Prepared, parameter: Parameter, value: Any) -> None:
    refuse(prepared, call, parameter.requirement, f"{parameter.name} = {value}")
