"""Every operation by everybody who must be served, by number and by path: the answer is one that is documented."""

from __future__ import annotations

import gzip
import json
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite.absences import OTHER_PREFIXES
from conformance.suite.arrange import Arranged, arranged
from conformance.suite.context import NotTested, Unmet, Violation
from conformance.suite.derived import (
    cells,
    claims_of,
    documents_json,
    held_against,
    served_caller,
    standing_in,
    success_requirements,
    takes_part,
    token_in,
)
from conformance.suite.expectations import Answer, Caller, given, must, must_settle
from conformance.suite.expectations.words import settles

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
"""Operations whose code the section on errors states once more."""


@dataclass(frozen=True)
class Named:
    """What projects, or groups, are named by, and the requirements about that."""

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
#: What tells a thing from all others. Everything else of a record may move between two answers.
IDENTITY = ("id", "iid", "slug", "relation", "path", "name", "username")
NOT_FOUND = (404, 405)
#: Some services do in the background what they have answered.
CHANGE_SECONDS = 5
#: How many seconds a change by the path may take to show, once the same by the number did.
A_MOMENT = 2.0


def named(operation: Operation) -> Named | None:
    """Return what an operation's project or group is named by; None where it belongs to neither."""
    return next((found for start, found in NAMED.items() if operation.path.startswith(start)), None)


def conventions_of(operation: Operation) -> frozenset[str]:
    """What the whole service promises about an answer of this operation."""
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
        *((found.number, found.encoded_path) if found else ()),
        found.names_no_other if found and operation.is_read else None,
    )


@pytest.mark.every_operation(
    where=takes_part,
    requirements=lambda operation: (
        claims_of(*operation.served.values()) | success_requirements(operation) | conventions_of(operation)
    ),
)
def test_whoever_has_the_role_is_served_as_documented_by_number_and_path(operation: Operation) -> None:
    """
    What one of them can change, every one can; what is written by the path is found by the number.

    What the schema of the answer states is held against it in passing, place by place.
    """
    unseen: list[Unmet | NotTested] = []
    by_path: dict[str, Answer] = {}
    changes = False
    with arranged(operation) as prepared:
        first = served_caller(operation)
        for requirement, actors in cells(operation.served).items():
            for name in actors:
                prepared.again()
                caller, before = standing_in(operation, name), shown_state(prepared)
                answer = prepared.sent_by(caller)
                with held_against([requirement], go_on=True):
                    answer.must_be_served()
                    if changes and before is not None:
                        moved = partial(is_other_than, prepared, before)
                        must_settle(moved, "a change, as by others", lambda: "none", within=CHANGE_SECONDS)
                changed = before is not None and is_other_than(prepared, before)
                changes = changes or changed
                look_at_the_header(prepared, caller, answer)
                if caller.name == first.name:
                    look_at_the_prefix(prepared, caller, answer)
                    look_at_the_document(operation, answer)
                with put_off(unseen):
                    look_at_the_path(prepared, caller, answer, by_path, name, is_changed=changed)
        look_at_the_paths(operation, by_path)
        with put_off(unseen):
            look_at_the_other_kind(prepared, first, by_path)
    if unseen:
        raise unseen[0]


@contextmanager
def put_off(unseen: list[Unmet | NotTested]) -> Iterator[None]:
    """Let what keeps a part of the test from being seen keep no other part; it is told in the end."""
    try:
        yield
    except (Unmet, NotTested) as error:
        unseen.append(error)


def shown_state(prepared: Arranged) -> Any:
    """Return what a call can change; None where it cannot be read, which leaves the call to be judged by its answer."""
    with suppress(Unmet, NotTested, Violation):
        return prepared.state()
    return None


def is_other_than(prepared: Arranged, before: object) -> bool:
    return bool(shown_state(prepared) != before)


# -- the answer --------------------------------------------------------------------------------------------------------


def look_at_the_header(prepared: Arranged, caller: Caller, answer: Answer) -> None:
    """Blame the header of the token only where the same token is served in another header."""
    other = answer
    if not answer.is_served:
        other = prepared.call.sent_by(caller, headers=token_in(caller, "Authorization", "Bearer "))
    if other.is_served:
        with held_against(["authentication.private-token"], go_on=True):
            must(answer.is_served, "served by PRIVATE-TOKEN", "served by Authorization alone", answer.exchange)


def look_at_the_prefix(prepared: Arranged, caller: Caller, answer: Answer) -> None:
    """Blame the prefix only where the operation is there, and below another one: whatever else is wrong is not its."""
    missing = answer.exchange.status in NOT_FOUND
    elsewhere = [where for where in OTHER_PREFIXES if prepared.served_below(where, caller)] if missing else []
    if answer.is_served or elsewhere:
        with held_against(["conventions.path-prefix"], go_on=True):
            must(not elsewhere, "the operation below /api/v4", f"the operation below {elsewhere}", answer.exchange)


def look_at_the_document(operation: Operation, answer: Answer) -> None:
    """Hold status, body and content type against what the contract documents."""
    statuses = [response.status for response in operation.responses if response.is_success]
    stated = {response.requirement for response in operation.responses if response.is_success}
    with held_against([*stated, CODES.get(operation.id)], go_on=True):
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


# -- number and path ---------------------------------------------------------------------------------------------------


def look_at_the_path(
    prepared: Arranged, caller: Caller, by_number: Answer, by_path: dict[str, Answer], name: str, *, is_changed: bool
) -> None:
    """
    Send the call by the path, put the answer to those of others, and hold it against that by the number.

    What is accepted may be done a moment later, so that a change gets a moment to show where there was one before.
    """
    operation, found = prepared.operation, named(prepared.operation)
    if found is None:
        return
    given(prepared.by_path is not None, "the profile does not give the path of what is called")
    prepared.again()
    call, before = prepared.by_path, prepared.state()
    assert call is not None
    answer = by_path[name] = prepared.sent(call, caller)

    def shows() -> bool:
        return bool(prepared.state() != before)

    is_changed_too = shows() or (answer.is_served and settles(shows, A_MOMENT if is_changed else 0))
    both_are_served(found, by_number, answer)
    if operation.is_read:
        both_show_the_same(found, by_number, answer)
    elif answer.is_served:
        what_is_written_is_there(prepared, found, answer, is_changed=is_changed_too or not is_changed)


def look_at_the_paths(operation: Operation, by_path: Mapping[str, Answer]) -> None:
    """Where one of them is served by the path, all are; that no path is taken at all is told once, elsewhere."""
    served = any(answer.is_served for answer in by_path.values())
    for name, answer in by_path.items() if served else ():
        with held_against([operation.served[name]], go_on=True):
            must(answer.is_served, "served by the path as well", f"status {answer.status}", answer.exchange)


def both_are_served(found: Named, by_number: Answer, by_path: Answer) -> None:
    """Blame the number only where the path is served, and the path only where the number is: else it is neither."""
    given(by_number.is_served or by_path.is_served, "neither number nor path is served")
    with held_against([found.number], go_on=True):
        by_number.must_be_served()
    if by_number.is_served:
        with held_against([found.encoded_path], go_on=True):
            by_path.must_be_served()


def both_show_the_same(found: Named, by_number: Answer, by_path: Answer) -> None:
    if by_number.is_served and by_path.is_served:
        with held_against([found.encoded_path], go_on=True):
            seen, wanted = identity(content(by_path)), identity(content(by_number))
            must(seen == wanted, f"what the number shows: {wanted}", str(seen), by_number.exchange, by_path.exchange)


def what_is_written_is_there(prepared: Arranged, found: Named, answer: Answer, *, is_changed: bool) -> None:
    """Look by the number for what was written by the path."""
    with held_against([found.encoded_path], go_on=True):
        must(is_changed, "a change, as by the number", "everything as before", answer.exchange)
        if prepared.request_example.read_back is not None:
            must_be_stored(prepared, prepared.call, answer)


def look_at_the_other_kind(prepared: Arranged, caller: Caller, by_path: Mapping[str, Answer]) -> None:
    """The path of a group names no project, and the other way round."""
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
    """Return what an answer holds: its JSON, or the JSON of each line of a file; None for anything else."""
    body = answer.exchange.body
    try:
        text = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line]
    except (ValueError, RecursionError, OSError, EOFError):
        return None


def identity(node: Any) -> Any:
    """
    Return what of a body must be the same in the next answer: which things it shows, in whatever order.

    Of what has no identity, such as settings, all that it says but the times.
    """
    if isinstance(node, list):
        return sorted((identity(entry) for entry in node), key=lambda entry: json.dumps(entry, sort_keys=True))
    if not isinstance(node, dict):
        return node
    kept = {name: node[name] for name in IDENTITY if name in node}
    return kept or {name: identity(value) for name, value in node.items() if not name.endswith("_at")}
