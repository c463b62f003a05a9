"""A project or group is named by its number, or by its full path as one encoded segment: it is the same one."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.fuzzing import must_be_stored
from conformance.suite.arrange import Arranged, Prepared, arranged
from conformance.suite.derived import claims_of, held_against, is_known, served_caller, standing_in, takes_part
from conformance.suite.expectations import Answer, Caller, given, must
from conformance.suite.expectations.words import settles

if TYPE_CHECKING:
    from conformance.suite import Operation


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


def named(operation: Operation) -> Named | None:
    """Return what an operation's project or group is named by; None where it belongs to neither."""
    return next((found for start, found in NAMED.items() if operation.path.startswith(start)), None)


#: How many seconds a change by the path may take to show, once the same by the number did.
_A_MOMENT = 2.0


def names_something(operation: Operation) -> bool:
    return takes_part(operation) and named(operation) is not None


def found_by(operation: Operation) -> Named:
    found = named(operation)
    assert found is not None
    return found


@pytest.mark.every_operation(
    where=names_something,
    requirements=lambda operation: claims_of(found_by(operation).number, found_by(operation).encoded_path),
)
def test_number_and_encoded_path_name_the_same(operation: Operation) -> None:
    """Whoever must be served is served by both; what is written by one is found by the other."""
    names = [name for name in operation.served if is_known(name)] or [next(iter(operation.served))]
    with arranged(operation) as prepared:
        given(prepared.by_path is not None, "the profile does not give the path of what is called")
        for name in names:
            caller = standing_in(operation, name)
            prepared.again()
            by_number, changed = sent(prepared, prepared.call, caller)
            prepared.again()
            within = _A_MOMENT if changed else 0
            by_path, changed_by_path = sent(prepared, by_its_path(prepared), caller, within=within)
            both_are_served(operation, by_number, by_path)
            if operation.is_read:
                both_show_the_same(operation, by_number, by_path)
            elif by_path.is_served:
                what_is_written_is_there(prepared, by_path, is_changed=changed_by_path or not changed)


def by_its_path(prepared: Arranged) -> Prepared:
    call = prepared.by_path
    assert call is not None
    return call


def sent(prepared: Arranged, call: Prepared, caller: Caller, *, within: float = 0) -> tuple[Answer, bool]:
    """
    Send a call, and return the answer and whether what it is about is another one since.

    `within` gives a served change so many seconds to show, for what is accepted may be done a moment later.
    """
    before = prepared.state()
    answer = call.sent_by(caller)

    def is_changed() -> bool:
        return bool(prepared.state() != before)

    return answer, is_changed() or (answer.is_served and settles(is_changed, within))


def both_are_served(operation: Operation, by_number: Answer, by_path: Answer) -> None:
    """Blame the number only where the path is served, and the path only where the number is: else it is neither."""
    given(by_number.is_served or by_path.is_served, "neither number nor path is served")
    with held_against([found_by(operation).number], go_on=True):
        by_number.must_be_served()
    if by_number.is_served:
        with held_against([found_by(operation).encoded_path], go_on=True):
            by_path.must_be_served()


def both_show_the_same(operation: Operation, by_number: Answer, by_path: Answer) -> None:
    if by_number.is_served and by_path.is_served:
        with held_against([found_by(operation).encoded_path], go_on=True):
            found, wanted = identity(content(by_path)), identity(content(by_number))
            must(found == wanted, f"what the number shows: {wanted}", str(found), by_number.exchange, by_path.exchange)


def what_is_written_is_there(prepared: Arranged, answer: Answer, *, is_changed: bool) -> None:
    """Look by the number for what was written by the path."""
    with held_against([found_by(prepared.operation).encoded_path], go_on=True):
        must(is_changed, "a change, as by the number", "everything as before", answer.exchange)
        if prepared.request_example.read_back is not None:
            must_be_stored(prepared, prepared.call, answer)


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


@pytest.mark.every_operation(
    where=lambda operation: names_something(operation) and operation.is_read,
    requirements=lambda operation: claims_of(found_by(operation).names_no_other),
)
def test_the_path_of_a_group_names_no_project_and_the_other_way_round(operation: Operation) -> None:
    kind, caller = found_by(operation), served_caller(operation)
    owner = next(parameter for parameter in operation.parameters if parameter.name == "id")
    with arranged(operation) as prepared:
        given(prepared.by_path is not None, "the profile does not give the path of what is called")
        by_path = by_its_path(prepared).sent_by(caller)
        foreign = prepared.place.value(f"{kind.other}.path")
        with held_against([kind.names_no_other]):
            prepared.call.having(owner, foreign).sent_by(caller).must_be_refused(beside=by_path)
