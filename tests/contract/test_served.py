"""Every operation, by every actor who must be served, by number and by path: the answer is a documented one."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite.arrange import ZERO, Arranged, area_of, arranged
from conformance.suite.call_forms import sent_in_all_forms
from conformance.suite.context import NotTested, Unmet, Violation
from conformance.suite.derived import (
    ANONYMOUS,
    WRONG_TOKEN,
    caller_named,
    cells,
    changes_a_state,
    claims_of,
    documents_json,
    held_against,
    note,
    served_caller,
    standing_in,
    success_requirements,
    takes_part,
    token_in,
)
from conformance.suite.expectations import WITH_CHARSET, Answer, Caller, given, must, must_be_as_before, must_settle
from conformance.suite.expectations.words import settles
from conformance.suite.probes import OTHER_PREFIXES
from conformance.suite.steady import identity, says_the_same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.suite import Operation

CODES = {
    "addProjectToJobTokenAllowlist": "errors.addition-to-allowlist",
    "addGroupToJobTokenAllowlist": "errors.addition-to-allowlist",
    "updateJobTokenScope": "errors.success-without-body",
    "removeProjectFromJobTokenAllowlist": "errors.success-without-body",
    "removeGroupFromJobTokenAllowlist": "errors.success-without-body",
    "scheduleGroupRelationsExport": "errors.scheduled-export",
}
"""Operations whose code the section on errors also states."""


@dataclass(frozen=True)
class Named:
    """The names of projects, or groups, and the requirements about them."""

    other: str
    number: str
    encoded_path: str
    names_no_other: str


NAMED = {
    "/projects/{id}": Named(
        other="group",
        number="conventions.project-id.number",
        encoded_path="conventions.project-id.encoded-path",
        names_no_other="conventions.project-id.names-no-group",
    ),
    "/groups/{id}": Named(
        other="project",
        number="conventions.group-id.number",
        encoded_path="conventions.group-id.encoded-path",
        names_no_other="conventions.group-id.names-no-project",
    ),
}
NOT_FOUND = (404, 405)
#: The actor who repeats a call that another one has just made.
UNCHANGING = "developer"
#: Texts that change when escaped, written in an older character set, read as ASCII, taken for a template, or cut.
UNUSUAL = (
    f"R&D's Prüfung 検査 🚀 for 5$$, $& and {{0}} of %s {'of what was changed since, ' * 5}at last",
    "R&D's Prüfung 検査 🚀",
    "R&D's Prüfung 検査",
)
#: Some services carry out in the background what they have answered.
CHANGE_SECONDS = 5
#: How many seconds a change by the path may take to show, once the same change by the number did.
A_MOMENT = 2.0


def named(operation: Operation) -> Named | None:
    """Return how an operation names its project or group; None if it belongs to neither."""
    return next((found for start, found in NAMED.items() if operation.path.startswith(start)), None)


def conventions_of(operation: Operation) -> frozenset[str]:
    """The requirements for the whole service about an answer of this operation."""
    responses = [response for response in operation.responses if response.is_success]
    with_json = any(documents_json(response) for response in responses)
    found = named(operation)
    return claims_of(
        "authentication.private-token",
        "conventions.path-prefix",
        "conventions.responses.are-json" if with_json else None,
        "conventions.responses.content-type" if with_json else None,
        "conventions.no-content" if any(response.status == "204" for response in responses) else None,
        "errors.success-with-body" if operation.is_read and with_json else None,
        CODES.get(operation.id),
        "conventions.requests.are-json" if keeps_what_is_sent(operation) else None,
        *((found.number, found.encoded_path) if found else ()),
        found.names_no_other if found and operation.is_read else None,
    )


def refusals(operation: Operation) -> frozenset[str]:
    """The requirements that a refusal by this operation shows, besides the cells of its own table."""
    nobody, changing = {ANONYMOUS, WRONG_TOKEN}, changes_a_state(operation)
    return claims_of(
        *operation.refused.values(),
        "authentication.anonymous-is-refused" if ANONYMOUS in operation.refused else None,
        "authentication.anonymous-changes-nothing" if ANONYMOUS in operation.refused and changing else None,
        "errors.refusal.changes-nothing" if changing else None,
        "errors.refusal.is-client-error",
        "errors.refusal.code-without-right" if set(operation.refused) - nobody else None,
        "errors.body-shape",
    )


@pytest.mark.every_operation(
    where=takes_part,
    requirements=lambda operation: (
        claims_of(*operation.served.values())
        | success_requirements(operation)
        | conventions_of(operation)
        | (refusals(operation) if operation.refused else frozenset())
    ),
)
def test_whoever_has_the_role_is_served_as_documented_and_nobody_else(operation: Operation) -> None:
    """Every permitted actor can change what another one can; what is written by the path is found by the number.

    The answer is checked against its schema on the way, place by place. Actors without the role make the same call:
    without the served one, a refusal would prove nothing.
    """
    unseen: list[Unmet | NotTested] = []
    by_path: dict[str, Answer] = {}
    control: Answer | None = None
    changes = shows_change = False
    with arranged(operation) as prepared:
        first = served_caller(operation)
        for requirement, actors in cells(operation.served).items():
            for name in actors:
                prepared.again()
                caller, before = standing_in(operation, name), shown_state(prepared)
                answer = prepared.sent_by(caller)
                prepared.given_idle(answer)
                with held_against([requirement], go_on=True):
                    answer.must_be_served()
                    if changes and before is not None:
                        moved = partial(is_other_than, prepared, before)
                        must_settle(moved, "a change, as by others", lambda: "none", within=CHANGE_SECONDS)
                changed = before is not None and shown_state(prepared) not in (None, before)
                changes = changes or changed
                look_at_the_header(prepared, caller, answer)
                if caller.name == first.name:
                    control, shows_change = answer, changed
                    look_at_the_prefix(prepared, caller, answer)
                    look_at_the_document(operation, answer)
                    with put_off(unseen):
                        look_at_what_is_stored(prepared, caller, answer, changed=changed)
                elif changed and answer.is_served:
                    look_at_the_document(operation, answer)
                with put_off(unseen):
                    look_at_the_path(prepared, caller, answer, by_path, name, is_changed=changed)
        look_at_the_paths(operation, by_path)
        with put_off(unseen):
            look_at_the_other_kind(prepared, first, by_path)
        if control is not None:
            is_served_by_path = any(answer.is_served for answer in by_path.values())
            refuse_all(prepared, Control(control, shows_change=shows_change, by_path=is_served_by_path))
    if unseen:
        raise unseen[0]


@contextmanager
def put_off(unseen: list[Unmet | NotTested]) -> Iterator[None]:
    """Let an obstacle to one part of the test not affect the other parts; report it at the end."""
    try:
        yield
    except (Unmet, NotTested) as error:
        unseen.append(error)


def shown_state(prepared: Arranged) -> Any:
    """Return the state that a call can change; None if it cannot be read, so that only the answer is judged."""
    with suppress(Unmet, NotTested, Violation):
        return prepared.state()
    return None


def is_other_than(prepared: Arranged, before: object) -> bool:
    return bool(shown_state(prepared) != before)


# -- the answer --------------------------------------------------------------------------------------------------------


def look_at_the_header(prepared: Arranged, caller: Caller, answer: Answer) -> None:
    """Blame the token header only if the same token is served in another header; a 429 says nothing about it."""
    if answer.exchange.status == HTTPStatus.TOO_MANY_REQUESTS:
        return
    other = answer
    if not answer.is_served:
        other = prepared.call.sent_by(caller, headers=token_in(caller, "Authorization", "Bearer "))
    if other.is_served:
        with held_against(["authentication.private-token"], go_on=True):
            must(answer.is_served, "served by PRIVATE-TOKEN", "served by Authorization alone", answer.exchange)


def look_at_the_prefix(prepared: Arranged, caller: Caller, answer: Answer) -> None:
    """Blame the prefix only if the operation is found below another one: otherwise something else is wrong."""
    missing = answer.exchange.status in NOT_FOUND
    elsewhere = [where for where in OTHER_PREFIXES if prepared.served_below(where, caller)] if missing else []
    if answer.is_served or elsewhere:
        with held_against(["conventions.path-prefix"], go_on=True):
            must(not elsewhere, "the operation below /api/v4", f"the operation below {elsewhere}", answer.exchange)


def look_at_the_document(operation: Operation, answer: Answer) -> None:
    """Check status, body and content type against what the contract documents."""
    statuses = [response.status for response in operation.responses if response.is_success]
    stated = {response.requirement for response in operation.responses if response.is_success}
    # The section on errors says which code a success has, and not who is served.
    with held_against([*stated, CODES.get(operation.id) if answer.is_served else None], go_on=True):
        answer.must_be_served()
        must(is_one_of(answer, statuses), f"status {' or '.join(statuses)}", f"status {answer.status}", answer.exchange)
    response = operation.response_to(answer.exchange.status or 0)
    if response is not None and response.status == "204":
        with held_against([response.requirement, "conventions.no-content"], go_on=True):
            answer.without_body()
    elif response is not None and response.schema is not None and documents_json(response):
        held = [response.requirement, "conventions.responses.are-json", "errors.success-with-body"]
        with held_against(held, go_on=True):
            must(answer.json is not None, "a JSON body", "null", answer.exchange)
        with held_against(["conventions.responses.content-type"], go_on=True):
            kind = answer.exchange.headers.get("content-type", "application/json")
            must("json" in kind.lower(), "a content type of JSON, or none", kind, answer.exchange)


def is_one_of(answer: Answer, statuses: list[str]) -> bool:
    return str(answer.status) in statuses or f"{answer.status // 100}XX" in statuses


def keeps_what_is_sent(operation: Operation) -> bool:
    return area_of(operation).request_examples[operation.id].read_back is not None


def look_at_what_is_stored(prepared: Arranged, caller: Caller, answer: Answer, *, changed: bool) -> None:
    """The resource has the values that were sent as JSON and accepted, and a refused call does not change them."""
    stored, call, keeps = ["conventions.requests.are-json"], prepared.call, keeps_what_is_sent(prepared.operation)
    if keeps and answer.is_served and changed:
        with held_against(stored, go_on=True):
            must_be_stored(prepared, call, answer)
    serve_what_is_so(prepared, caller, answer)
    refuse_what_is_so(prepared, answer)
    given(changed or not keeps, "the call changed nothing, whichever way its body is read")
    name = call.body.get("name") if isinstance(call.body, dict) else None
    if not keeps or not answer.is_served or not isinstance(name, str):
        return
    # A type with a charset is JSON as well; a service that refuses it may accept the same without charset.
    for text, headers in ((UNUSUAL[0], WITH_CHARSET), *((text, None) for text in UNUSUAL)):
        if stores(prepared, caller, f"{name} {text}", headers):
            break
    if not prepared.request_example.stays:
        stores(prepared, caller, ZERO)


def stores(prepared: Arranged, caller: Caller, name: str, headers: Mapping[str, str] | None = None) -> bool:
    """Send a name, which is stored unchanged if it is accepted: services may take fewer. Tell if it is."""
    prepared.again()
    call = replace(prepared.call, body={**prepared.call.body, "name": name})
    answer = prepared.sent(call, caller, headers)
    with held_against(["conventions.requests.are-json"], go_on=True):
        answer.must_not_break()
        if answer.is_served:
            must_be_stored(prepared, call, answer)
    return answer.is_served


# -- number and path ---------------------------------------------------------------------------------------------------


def look_at_the_path(
    prepared: Arranged, caller: Caller, by_number: Answer, by_path: dict[str, Answer], name: str, *, is_changed: bool
) -> None:
    """Call by the path, add the answer to those of the other actors, and compare it with the call by the number.

    An accepted change may take effect a moment later, so a change by the path gets that time if there was one before.
    """
    operation, found = prepared.operation, named(prepared.operation)
    if found is None:
        return
    prepared.again()  # this may choose another project or group
    call, before = prepared.by_path, prepared.state()
    given(call is not None, "the profile does not give the path of what is called")
    assert call is not None
    answer = by_path[name] = prepared.sent(call, caller)

    def shows() -> bool:
        return bool(prepared.state() != before)

    is_changed_too = shows() or (answer.is_served and settles(shows, A_MOMENT if is_changed else 0))
    both_are_served(found, by_number, answer)
    if answer.is_served and (operation.is_read or is_changed_too):  # what changes nothing may be answered otherwise
        look_at_the_document(operation, answer)
    if operation.is_read:
        both_show_the_same(prepared, caller, found, by_number, answer)
    elif answer.is_served and is_changed:  # by the number too
        what_is_written_is_there(prepared, found, answer, is_changed=is_changed_too)


def look_at_the_paths(operation: Operation, by_path: Mapping[str, Answer]) -> None:
    """If one of them is served by path, all are; a service without any paths is reported once, elsewhere."""
    served = any(answer.is_served for answer in by_path.values())
    for name, answer in by_path.items() if served else ():
        with held_against([operation.served[name]], go_on=True):
            must(answer.is_served, "served by the path as well", f"status {answer.status}", answer.exchange)


def both_are_served(found: Named, by_number: Answer, by_path: Answer) -> None:
    """Blame the number only if the path is served, and the path only if the number is: otherwise it is neither."""
    given(by_number.is_served or by_path.is_served, "neither number nor path is served")
    with held_against([found.number], go_on=True):
        by_number.must_be_served()
    if by_number.is_served:
        with held_against([found.encoded_path], go_on=True):
            by_path.must_be_served()


def both_show_the_same(prepared: Arranged, caller: Caller, found: Named, by_number: Answer, by_path: Answer) -> None:
    if by_number.is_served and by_path.is_served:
        with held_against([found.encoded_path], go_on=True):
            seen, wanted = content(by_path), content(by_number)
            # A page of an unordered list may be any part of it.
            if seen != wanted and prepared.operation.paginated:
                seen, wanted = (
                    sorted(map(str, caller.list(answer.exchange.call.path).ids())) for answer in (by_path, by_number)
                )
            is_same = says_the_same(seen, wanted, lambda: content(prepared.sent_by(caller)))
            call, path, sent = prepared.call, prepared.by_path or prepared.call, prepared.sent
            # Unfinished work, such as an export, may show more at each read.
            is_same = is_same or settles(lambda: content(sent(call, caller)) == content(sent(path, caller)), A_MOMENT)
            must(is_same, f"what the number shows: {wanted}", str(seen), by_number.exchange, by_path.exchange)


def what_is_written_is_there(prepared: Arranged, found: Named, answer: Answer, *, is_changed: bool) -> None:
    """Read by number what was written by the path, where the same call by the number changed something."""
    with held_against([found.encoded_path], go_on=True):
        must(is_changed, "a change, as by the number", "everything as before", answer.exchange)
        if prepared.request_example.read_back is not None:
            must_be_stored(prepared, prepared.call, answer)


def look_at_the_other_kind(prepared: Arranged, caller: Caller, by_path: Mapping[str, Answer]) -> None:
    """The path of a group is no path of a project, and vice versa."""
    operation, found = prepared.operation, named(prepared.operation)
    if found is None or not operation.is_read:
        return
    owner = next(parameter for parameter in operation.parameters if parameter.name == "id")
    foreign = prepared.place.value(f"{found.other}.path")
    control = next((answer for answer in by_path.values() if answer.exchange.call.actor == caller.actor), None)
    given(control is not None, "the profile does not give the path of what is called")
    with held_against([found.names_no_other], go_on=True):
        prepared.call.having(owner, foreign).sent_by(caller).must_be_refused(beside=control)


def content(answer: Answer) -> Any:
    """Return the things that an answer shows, as JSON or as the lines of a file; None for anything else."""
    body = answer.exchange.body
    try:
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        try:
            return identity(json.loads(text))
        except ValueError:
            return identity([json.loads(line) for line in text.splitlines() if line])
    except (ValueError, RecursionError, OSError, EOFError):
        return None


# -- who lacks the role ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    """The results of the same call by actors with the role: without them a refusal would prove nothing."""

    answer: Answer
    shows_change: bool
    by_path: bool
    """Whether somebody was served by the path, so that no gateway in between fails on paths."""


def refuse_all(prepared: Arranged, control: Control) -> None:
    """Let everybody without the role make the call."""
    prepared.again()
    table = cells(prepared.operation.refused)
    together = tried_together(prepared, [name for names in table.values() for name in names])
    for requirement, actors in table.items():
        for name in actors:
            refuse(prepared, name, requirement, control, together.get(name))


@dataclass(frozen=True)
class Tried:
    """The answer to an actor, and the state before and after it."""

    answers: list[Answer]
    before: Any
    after: Any
    shows_no_right: bool


def tried_together(prepared: Arranged, names: list[str]) -> dict[str, Tried]:
    """Let these actors call, one after the other, and return the results.

    If any was served, or something changed, each has to call alone as well, to find out who it was.
    """
    with suppress(Unmet, NotTested):
        before = prepared.state()
        called = {name: sent_in_all_forms(prepared, caller_named(name)) for name in names}
        after = prepared.state()
        is_served = any(answer.is_served for answers in called.values() for answer in answers)
        if is_served or after != before:
            prepared.again()
        return {name: Tried(called[name], before, after, not is_served and after == before) for name in names}
    prepared.again()
    return {}


def refuse(prepared: Arranged, name: str, requirement: str, control: Control, together: Tried | None) -> None:
    """Let one actor call, unless all did so together; every change is undone before the next one calls.

    Changes elsewhere are not undone, so there the first call may be the only one that is served. An unchanged state
    proves something only if the same call, served, changes it: an instance may, for example, keep a switch on.
    """
    operation = prepared.operation
    is_anonymous = name == ANONYMOUS
    general = "authentication.anonymous-is-refused" if is_anonymous else "errors.refusal.is-client-error"
    untouched = ["errors.refusal.changes-nothing", *(["authentication.anonymous-changes-nothing"] * is_anonymous)]
    found: list[Answer] = []
    with held_against([requirement], go_on=True):
        known = together if together is not None and together.shows_no_right else None
        before = prepared.state() if known is None else known.before
        found += sent_in_all_forms(prepared, caller_named(name)) if known is None else known.answers
        found += [one for one in together.answers if one.is_served] if together is not None else []
        after = prepared.state if known is None else lambda: known.after
        is_served = any(called.is_served for called in found)
        # A served actor has a right too many: statements about refusals are only to blame if a refusal was meant.
        # The state is that of the first call; the others may be served elsewhere.
        is_refusal = not is_served or (control.shows_change and found[0].is_served and after() == before)
        with held_against([requirement, *([general] if is_refusal else [])], go_on=True):
            found[0].must_be_refused(beside=control.answer)
            for other in found[1:]:
                must(not other.is_served, "a refusal in any form", f"status {other.status}", other.exchange)
                if control.by_path:
                    other.must_not_break()
        if prepared.request_example.state is not None:
            as_refused = untouched if control.shows_change and not is_served else []
            with held_against([requirement, *as_refused], go_on=True):
                must_be_as_before("the state", before, after())
    if not found:
        return  # the state could not be read, so nobody called
    answer = found[0]
    if name not in (ANONYMOUS, WRONG_TOKEN):
        note("errors.refusal.code-without-right", f"{operation.id} answers {answer.exchange.status} to {name}")
    if answer.exchange.status:
        note("errors.body-shape", f"the body of a {answer.exchange.status} is {answer.form}")
    if any(called.is_served for called in found):
        prepared.again()


def serve_what_is_so(prepared: Arranged, caller: Caller, control: Answer) -> None:
    """A value that has just been set may be set once more; no text says so of a reset, which sends no value."""
    operation = prepared.operation
    if operation.method in ("PUT", "PATCH") and isinstance(prepared.call.body, dict) and control.is_served:
        stated = {response.requirement for response in operation.responses if response.is_success}
        with held_against([*stated], go_on=True):
            prepared.sent_by(caller).must_be_served()


def refuse_what_is_so(prepared: Arranged, control: Answer) -> None:
    """Actors without the role are refused even if the call changes nothing, because another one has just made it."""
    lacking = {name: requirement for requirement, names in cells(prepared.operation.refused).items() for name in names}
    if prepared.operation.is_read or UNCHANGING not in lacking:
        return
    with held_against([lacking[UNCHANGING]], go_on=True):
        prepared.sent_by(caller_named(UNCHANGING)).must_be_refused(beside=control)
