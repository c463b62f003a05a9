"""Invalid input: a missing parameter, a wrong type, a value that is not allowed, or a thing that does not exist."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing.coercion import may_be_dropped, shows_value, wrong_values
from conformance.suite import Outcome, Reason
from conformance.suite.arrange import INHERITED, UNUSED_ID, Arranged, Prepared, arranged, requirements_of_unknown
from conformance.suite.arrange.integrations import has, lacks
from conformance.suite.call_forms import take_back
from conformance.suite.context import NotTested, current_run, current_test
from conformance.suite.derived import (
    administrators,
    changes_a_state,
    claims_of,
    held_against,
    is_validation,
    note,
    parameters_where,
    requirements_of,
    served_caller,
    takes_part,
)
from conformance.suite.expectations import Answer, given, must, must_be_as_before

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suite import Operation, Parameter

UNKNOWN_VALUE = "conformance-unknown-value"
IS_REFUSED, UNTOUCHED = "errors.refusal.is-client-error", "errors.refusal.changes-nothing"
CODE_OF_INVALID, CODE_OF_MISSING = "errors.refusal.code-of-invalid-input", "errors.refusal.code-of-missing-resource"


def required(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation, lambda parameter: parameter.required and is_validation(parameter.requirement_required)
    )


def typed(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation,
        lambda parameter: is_validation(parameter.requirement) and bool(wrong_values(parameter.schema)),
    )


def chosen(operation: Operation) -> list[Parameter]:
    return parameters_where(
        operation, lambda parameter: is_validation(parameter.requirement) and bool(parameter.schema.get("enum"))
    )


def claims(operation: Operation) -> frozenset[str]:
    """Return the requirements that calls with a mistake can show about an operation."""
    return claims_of(
        *requirements_of(required(operation), "requirement_required"),
        *requirements_of([*typed(operation), *chosen(operation)], "requirement"),
        *(requirement for _, requirement in naming(operation)),
    )


def can_be_wrong(operation: Operation) -> bool:
    """Tell whether calls can be wrong; by the older of two names, the tests about integrations send wrong ones."""
    is_tried = takes_part(operation) and not operation.is_second_name
    return is_tried and bool(claims(operation) or list(naming(operation)))


@pytest.mark.every_operation(
    where=can_be_wrong,
    requirements=lambda operation: (
        claims(operation)
        | claims_of(IS_REFUSED, UNTOUCHED if changes_a_state(operation) else None, CODE_OF_INVALID, CODE_OF_MISSING)
    ),
)
def test_a_call_with_something_wrong_in_it_is_refused_or_stores_none_of_it(operation: Operation) -> None:
    """A required parameter is missing, a type is wrong, a value is not in the list, or a named thing does not exist.

    Values that lenient services convert, such as the text "1" for a number, are never sent.
    """
    with arranged(operation) as prepared:
        wrong = [
            Wrong(parameter.requirement_required, f"no {parameter.name}", partial(without, parameter))
            for parameter in required(operation)
        ]
        odd = []
        for parameter, value, what in wrong_values_of(prepared):
            if may_be_dropped(parameter):
                odd.append((parameter, value))
            else:
                wrong.append(Wrong(parameter.requirement, what, partial(having, parameter, value)))
        refuse_or_drop_all(prepared, odd)
        wrong += [
            Wrong(requirement, f"an unknown {parameter.name}", partial(of_nobody, parameter), CODE_OF_MISSING)
            for parameter, requirement in naming(operation)
        ]
        refuse(prepared, wrong)
        # A required parameter is required for everybody. Whether an administrator may call this at all is another
        # question.
        for admin in administrators() if required(operation) else ():
            prepared.again()
            for parameter in required(operation):
                answer = prepared.call.without(parameter).sent_by(admin)
                with held_against([parameter.requirement_required], go_on=True):
                    answer.must_be_refused(beside=None)


def wrong_values_of(prepared: Arranged) -> Iterator[tuple[Parameter, Any, str]]:
    """Yield parameters with values of a wrong type, or outside a list of values, and a description of each."""
    for parameter in taken(prepared, typed(prepared.operation)):
        for value in wrong_values(parameter.schema):
            yield parameter, value, f"a wrong {parameter.name}"
    for parameter in taken(prepared, chosen(prepared.operation)):
        right = str(parameter.schema["enum"][0])
        for value in (UNKNOWN_VALUE, right[:-1], f"{right}-none"):
            yield parameter, value, f"{parameter.name} = {value}"


def without(parameter: Parameter, prepared: Arranged) -> list[Prepared]:
    """Return the call without a parameter, and once more with everything beside it that might be mistaken for it."""
    bare, whole = prepared.call, amid_all_others(prepared)
    return [call.without(parameter) for call in ([bare] if whole == bare else [bare, whole])]


def amid_all_others(prepared: Arranged) -> Prepared:
    """Return the call with every body property that may be sent and that the profile has a value for."""
    call = prepared.call
    for parameter in parameters_where(prepared.operation, lambda found: found.place == "body"):
        if parameter.fixture and isinstance(call.body, dict) and parameter.name not in call.body:
            with suppress(NotTested):
                value = prepared.place.value(parameter.fixture)
                call = call.having(parameter, [value] if parameter.schema.get("type") == "array" else value)
    return call


def having(parameter: Parameter, value: Any, prepared: Arranged) -> list[Prepared]:
    return [prepared.call.having(parameter, value)]


def taken(prepared: Arranged, parameters: list[Parameter]) -> list[Parameter]:
    """Return the parameters that the called thing has: sending a wrong value for any other shows nothing.

    Parameters that are only stated for others are left to the stories if the profile names a thing that has one of
    them, and are not tested otherwise. Several may share a requirement, such as the flags of events.
    """
    found = [parameter for parameter in parameters if prepared.takes(parameter.name)]
    shown = {parameter.requirement for parameter in found}
    test = current_test()
    for parameter in parameters:
        name, requirement = parameter.name, parameter.requirement
        if requirement is None or requirement in shown or requirement not in test.declared:
            continue
        alike = [other.name for other in parameters if other.requirement == requirement]
        others = [other for entries in test.run.profile.fixtures.values() for other in entries]
        is_with_others = any(has(other, one) for other in others for one in alike)
        # Perhaps nothing has a deprecated parameter any more; its story sends it to a thing that has the replacement.
        if is_with_others or parameter.schema.get("deprecated"):
            test.results.settle([requirement])
            continue
        test.results.open_question(requirement, Outcome.NOT_TESTED, Reason.PREREQUISITE_MISSING, lacks(name))
    return found


@dataclass(frozen=True)
class Wrong:
    """A mistake in a call, the requirement that it is refused, and the calls that contain it."""

    requirement: str | None
    what: str
    calls: Callable[[Arranged], list[Prepared]]
    code: str = CODE_OF_INVALID
    """The note about the codes that refuse such calls."""


@dataclass(frozen=True)
class Tried:
    """The results of wrong calls, and of the right one after them."""

    answers: list[list[Answer]]
    """By mistake."""
    before: Any
    after: Any
    control: Answer

    @property
    def is_clean(self) -> bool:
        """Whether all were refused, and nothing changed."""
        return self.after == self.before and all(answer.exchange.is_refusal for each in self.answers for answer in each)


def refuse(prepared: Arranged, wrong: list[Wrong]) -> None:
    """Expect that calls are refused and change nothing, and that the right call is served.

    They are sent one after the other; only if that shows something, each is tried alone, to find out which one it was.
    """
    parts = parts_of(prepared, wrong) if wrong else []
    # A switch is on or off before and after the right call, and a refused call may change neither.
    if is_switch(prepared.operation) and parts and parts[-1][1].control.is_served:
        parts += parts_of(prepared, wrong, as_it_is=True)
    for asked, came in parts:
        for one, answers in zip(asked, came.answers, strict=True):
            hold(prepared, one, answers, came)
            note(one.code, f"{prepared.operation.id} answers {answers[0].exchange.status} to {one.what}")


def parts_of(prepared: Arranged, wrong: list[Wrong], *, as_it_is: bool = False) -> list[tuple[list[Wrong], Tried]]:
    """Return the results of wrong calls: of all together, or of each one if the former does not tell which it was.

    A call that was served among all counts even if it is refused alone, because it may be possible only once.
    """
    found = tried(prepared, wrong, as_it_is=as_it_is)
    if found.is_clean or len(wrong) == 1:
        return [(wrong, found)]
    parts = []
    for one, among_all in zip(wrong, found.answers, strict=True):
        alone = tried(prepared, [one], as_it_is=as_it_is)
        answers = [*alone.answers[0], *(answer for answer in among_all if answer.is_served)]
        parts.append(([one], replace(alone, answers=[answers])))
    return parts


def is_switch(operation: Operation) -> bool:
    """Tell whether a call can only switch things on or off."""
    return not operation.is_read and {one.schema.get("type") for one in required(operation)} == {"boolean"}


def tried(prepared: Arranged, wrong: list[Wrong], *, as_it_is: bool = False) -> Tried:
    """Send wrong calls, then the right one, and read the state before and after the wrong ones."""
    if not as_it_is:
        prepared.again()
    caller, before = served_caller(prepared.operation), prepared.state()
    calls = [one.calls(prepared) for one in wrong]
    answers = [[call.sent_by(caller) for call in each] for each in calls]
    after = prepared.state()
    for call, answer in zip(chain.from_iterable(calls), chain.from_iterable(answers), strict=True):
        take_back(call, answer)
    return Tried(answers, before, after, prepared.control(caller))


def hold(prepared: Arranged, wrong: Wrong, answers: list[Answer], came: Tried) -> None:
    """Expect refusals, and an unchanged state, which shows something only if the right call is served."""
    if prepared.request_example.state is not None:
        with held_against(shared(wrong.requirement, UNTOUCHED, answers), go_on=True):
            is_served = any(answer.is_served for answer in (came.control, *answers))
            given(is_served, "the right call is not served either, so that nothing could have changed")
            must_be_as_before("the state", came.before, came.after)
    for answer in answers:
        with held_against(shared(wrong.requirement, IS_REFUSED, [answer]), go_on=True):
            answer.must_be_refused(beside=came.control if not answer.is_served else None)


def shared(requirement: str | None, general: str, answers: list[Answer]) -> list[str | None]:
    """Return a requirement besides the general one that covers this case, unless a service may read it otherwise.

    If a call was served, it was not refused: then the statements about refusals are only to blame if nothing else is.
    """
    if requirement is None:
        return [general]
    found = current_run().contract.requirements.get(requirement)
    is_read_otherwise = found is not None and bool(found.eased_by)
    is_served = any(answer.is_served for answer in answers)
    return [requirement] if is_read_otherwise or is_served else [requirement, general]


def refuse_or_drop_all(prepared: Arranged, odd: list[tuple[Parameter, Any]]) -> None:
    """Expect a refusal of each value, or a served call that does not store it; a refused call stores nothing.

    The state is read once after all of them; only if it changed, each is tried alone, to find out which one it was. A
    blank name is sent with them, which may be refused or accepted; but not if no call removes what is made.
    """
    stays = prepared.request_example.stays
    blank = [(parameter, "") for parameter in parameters_where(prepared.operation, is_name) if not stays]
    before = prepared.state() if odd or blank else None
    are_refused = [refuse_or_drop(prepared, parameter, value) for parameter, value in (*odd, *blank)]
    if not all(are_refused) or prepared.state() == before:
        return
    for parameter, value in (*odd, *blank):
        prepared.again()
        before = prepared.state()
        answer = prepared.call.having(parameter, value).sent_by(served_caller(prepared.operation))
        with held_against(shared(parameter.requirement, UNTOUCHED, [answer]), go_on=True):
            must_be_as_before("the state", before, prepared.state(), answer.exchange)


def is_name(parameter: Parameter) -> bool:
    return parameter.name == "name" and parameter.place == "body"


def refuse_or_drop(prepared: Arranged, parameter: Parameter, value: Any) -> bool:
    """Expect a refusal, or a served call that stores none but a blank value. Tell whether it is refused."""
    call, caller = prepared.call.having(parameter, value), served_caller(prepared.operation)
    answer = call.sent_by(caller)
    with held_against([parameter.requirement], go_on=True):
        shows_something = not answer.is_broken or not prepared.control(caller).is_broken
        given(shows_something, "the right call breaks the service as well, so that no value is to blame")
        answer.must_not_break()
        documented = prepared.operation.response_to(answer.status) is not None
        given(documented or not answer.is_served, f"status {answer.status} is no answer of the operation")
        shown = shown_after(prepared, call, answer) if answer.is_served and value else None
        must(
            not shows_value(shown, value),
            f"{parameter.name} refused or left out of account",
            f"{parameter.name} stored",
            answer.exchange,
        )
        if answer.exchange.is_refusal:
            return True  # the right call is still right
    prepared.again()
    return False


def shown_after(prepared: Arranged, call: Prepared, answer: Answer) -> Any:
    """Return what is shown after a served write: the answer, the resource, and the state of the rest."""
    read_back = prepared.request_example.read_back
    held = prepared.keeper.read(read_back.path(call, answer)) if read_back is not None else None
    return [content(prepared, answer), held, prepared.state()]


def content(prepared: Arranged, answer: Answer) -> Any:
    """Return the JSON of an answer; if the contract describes its content, without additional properties.

    A service may repeat the sent values in a property of its own.
    """
    documented = prepared.operation.response_to(answer.status)
    try:
        found = json.loads(answer.exchange.body)
    except ValueError:
        return None
    if isinstance(found, dict) and documented is not None and documented.schema:
        return {name: value for name, value in found.items() if name in current_run().contract.property_names}
    return found


# -- things that do not exist ------------------------------------------------------------------------------------------


def nobodys(prepared: Arranged, parameter: Parameter) -> tuple[int | str, ...]:
    """Return values that name nothing: unused numbers, too small ones, one beyond 32 or 64 bits, and changed ones.

    These are a right path or a right number with something appended; the latter is a path that nothing has. For reads
    they are also a right path with another group at its beginning and, of projects, a name that each object inherits.
    """
    body = prepared.call.body if isinstance(prepared.call.body, dict) else {}
    right = prepared.call.path_values.get(parameter.name, body.get(parameter.name))
    by_path = prepared.by_path.path_values["id"] if prepared.by_path and parameter.name == "id" else None
    longer = (f"{by_path}-conformance-none", f"{right}-conformance-none") if by_path else ()
    _, nested, below = str(by_path or "").partition("/")
    elsewhere = (f"conformance-none/{below}",) if nested and prepared.operation.is_read else ()
    # The full path of a project has a slash, so that this is none.
    inherited = (INHERITED,) if elsewhere and prepared.operation.path.startswith("/projects/") else ()
    ids = ids_that_are_no_iids(prepared) if parameter.name == "merge_request_iid" else ()
    # Reads and writes look things up in the same way, so that each of them needs one of the two.
    beyond = 2 ** (64 if prepared.operation.is_read else 32) + (right if isinstance(right, int) else UNUSED_ID)
    return (UNUSED_ID, -1 if right == 0 or counts_from_zero() else 0, beyond, *longer, *elsewhere, *inherited, *ids)


def counts_from_zero() -> bool:
    """Tell whether something of the profile has the number 0."""
    profile = current_run().profile
    worlds = (profile.fixtures, *(world.fixtures for world in profile.worlds))
    known = (entry for fixtures in worlds for entries in fixtures.values() for entry in entries)
    return any(0 in (entry.get("id"), entry.get("iid")) for entry in known)


def ids_that_are_no_iids(prepared: Arranged) -> tuple[int, ...]:
    """Return the id of a merge request, if no merge request of its project has it as its iid.

    Only for calls that read: a run writes to no merge request whose iid the profile does not give.
    """
    merge_request = prepared.place.fixture("merge_request")
    number, (place, _, _) = merge_request.get("id"), prepared.call.path.partition("/merge_requests/")
    if number in (None, merge_request.get("iid")) or not prepared.operation.is_read:
        return ()
    is_none = prepared.keeper.get(f"{place}/merge_requests/{number}/approvals").exchange.is_refusal
    return (number,) if is_none else ()


def naming(operation: Operation) -> Iterator[tuple[Parameter, str | None]]:
    """Parameters that name a thing, each with the requirement that an unknown one is refused."""
    unknown = requirements_of_unknown(operation)
    for parameter in operation.parameters:
        requirement = unknown.get(parameter.name)
        names_it = parameter.place == "path" and parameter.fixture is not None and takes_integer(parameter)
        if (requirement or names_it) and not is_removed_thing(operation, parameter):
            yield parameter, requirement


def takes_integer(parameter: Parameter) -> bool:
    forms = [parameter.schema, *parameter.schema.get("anyOf", ())]
    return any(form.get("type") == "integer" for form in forms)


def is_removed_thing(operation: Operation, parameter: Parameter) -> bool:
    """Removing an absent thing may succeed, and so may removing something below an absent thing."""
    return operation.method == "DELETE" and parameter.place == "path"


def of_nobody(parameter: Parameter, prepared: Arranged) -> list[Prepared]:
    return [prepared.call.having(parameter, number) for number in nobodys(prepared, parameter)]
