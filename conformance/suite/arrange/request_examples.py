"""What an area defines for its operations, so that each can be provoked, undone and looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from conformance.contract.bundle import resolve
from conformance.http.bodies import ABSENT

if TYPE_CHECKING:
    from conformance.contract import Operation, Parameter
    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Answer, Caller

Values = Mapping[str, Any]


def _no_values(_: Caller, __: Place) -> Values:
    return {}


def same_path(call: Prepared, _: Answer) -> str:
    """Return the path that a call was sent to."""
    return call.path


def left_to_the_next_call(_: Caller, __: Place, ___: Any) -> None:
    """Undo nothing yet: the preparation of the next call does it, and everything is restored at the end."""


@dataclass(frozen=True)
class ReadBack:
    """Where and how the effect of a served write shows when the resource is read."""

    requirement: Callable[[Mapping[str, Any]], str]
    """The requirement that the sent value is stored; it may depend on the value."""
    path: Callable[[Prepared, Answer], str] = same_path
    """The path to read, from the call and its answer; by default the path of the call."""
    shows: Mapping[str, str] = field(default_factory=dict)
    """Sent property -> property of the resource that then has the same value."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """Sent property -> property of the list entry that then has the same value."""
    apart: tuple[tuple[str, str], ...] = ()
    """Pairs of switches that cannot both be on: a sent switch owes nothing while the other is on or sent."""
    free: Callable[[Mapping[str, Any]], Collection[str]] = lambda _: ()
    """Returns the properties of the shown resource that may have another value than the sent one."""
    is_held: Callable[[Caller, Place], bool] = lambda _, __: False
    """Whether something else, such as a lock of a group, may prevent storing what was sent."""

    def owed(self, sent: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the resource must hold after a write, from what was sent and what it holds now."""
        partners: dict[str, set[str]] = {}
        for one, other in self.apart:
            partners.setdefault(one, set()).add(other)
            partners.setdefault(other, set()).add(one)
        return {
            shown: sent[name]
            for name, shown in self.shows.items()
            if name in sent
            and shown not in self.free(found)
            and not (sent[name] is True and any(other in sent or found.get(other) for other in partners.get(name, ())))
        }


#: Key for the body of the call among the values that a preparation returns; no parameter has this name.
WHOLE_BODY: Final = "the whole body"


@dataclass(frozen=True)
class RequestExample:
    """How one operation is provoked.

    The call itself is made from the contract: path values and properties with `x-fixture` take the values of the
    target's fixtures, everything else comes from the example of the request. This class holds only what goes beyond
    that.
    """

    before: Callable[[Caller, Place], Values] = _no_values
    """Makes the call right and able to change something; returns path values that only it knows, or a WHOLE_BODY.

    Such a value is the number of what it created. WHOLE_BODY is the body to send if the target does not accept that of
    the example.
    """
    body: Callable[[Place], Any] | None = None
    """The body to send, if example and fixtures do not make it."""
    instead: Values = field(default_factory=dict)
    """Values that replace those of the example in the body."""
    query: Callable[[Place], Values] | None = None
    """The query to send, if example and fixtures do not make it."""
    state: Callable[[Caller, Place], Any] | None = None
    """Reads the state that a refused call must not change; not needed for operations that only read."""
    is_busy: Callable[[Caller, Place], bool] = lambda _, __: False
    """Tells whether the target is at work on an earlier call, and so may refuse one that is right."""
    busy_seconds: float = 0
    """How long the target may refuse a right call because of other work, such as the export of another group."""
    frees: Callable[[Caller, Place], bool] | None = None
    """Removes what a right call may be refused for, and no read shows; returns whether there was something."""
    takes_seconds: float = 0
    """How long the effect of a served call may take in the background."""
    stays: bool = False
    """Whether no operation removes what it makes, so that a run makes as little as possible."""
    fill: Callable[[Caller, Place], list[Any]] | None = None
    """Makes a paginated list have at least three entries; returns their ids."""
    read_back: ReadBack | None = None
    undo: Callable[[Caller, Place, Any], None] | None = None
    """Undoes a call before the next one, if that needs less than for other operations of the area."""

    @property
    def changes_nothing_before(self) -> bool:
        """Whether the call is right without any preparation."""
        return self.before is _no_values


@dataclass(frozen=True)
class Area:
    """All request examples of an area, and how its part of the target is remembered and restored."""

    keeper: str
    """The actor who prepares, reads the state and restores it."""
    request_examples: Mapping[str, RequestExample]
    """By operationId."""
    remember: Callable[[Caller, Place], Any] = lambda _, __: None
    """Reads everything that calls of the area can change."""
    put_back: Callable[[Caller, Place, Any], None] = lambda _, __, ___: None
    """Restores the remembered state; what cannot be restored is left."""
    undo: Callable[[Caller, Place, Any], None] | None = None
    """Undoes one call before the next one, if that is less than the complete restoring at the end."""
    takes: Callable[[Place, str], bool] = lambda _, __: True
    """Whether the called thing has a parameter of this name, if the things that an operation is called on differ."""
    stand_in: Callable[[Caller, Place], Caller] = lambda caller, _: caller
    """Who calls instead if the text leaves open whether an actor who should be served is the one it means."""


@dataclass(frozen=True)
class Prepared:
    """A call of an operation, ready to be sent by any caller, and to be changed one parameter at a time."""

    operation: Operation
    path_values: Values
    query: Values = field(default_factory=dict)
    body: Any = ABSENT

    @property
    def path(self) -> str:
        """Path below /api/v4, each value encoded as one segment."""
        return self.operation.path_with(self.path_values)

    def having(self, parameter: Parameter, value: Any) -> Prepared:
        """Return the call with one parameter set to a value."""
        if parameter.place == "path":
            return replace(self, path_values={**self.path_values, parameter.name: value})
        if parameter.place == "query":
            return replace(self, query={**self.query, parameter.name: value})
        return replace(self, body={**(self.body if isinstance(self.body, dict) else {}), parameter.name: value})

    def without(self, parameter: Parameter) -> Prepared:
        """Return the call with one parameter of query or body left out."""
        if parameter.place == "query":
            return replace(self, query={key: value for key, value in self.query.items() if key != parameter.name})
        body = {key: value for key, value in self.body.items() if key != parameter.name}
        return replace(self, body=body)

    def sent_by(self, caller: Caller, headers: Mapping[str, str] | None = None) -> Answer:
        """Send the call; if an older name redirects to the newer one, or to a file, return the final answer."""
        if headers is None and any(response.status.startswith("3") for response in self.operation.responses):
            return caller.download(self.path, **self.query)
        answer = caller.call(self.operation.method, self.path, query=self.query, json=self.body, headers=headers)
        return caller.follow(answer) if self.operation.alias_of else answer


def prepare(operation: Operation, request_example: RequestExample, place: Place, known: Values) -> Prepared:
    """Make the call of an operation from contract, request example and fixtures.

    `known` is what the preparation returned. Raise NotTested when the profile lacks a fixture that the call needs.
    """
    path_values = {
        parameter.name: known[parameter.name] if parameter.name in known else _value(parameter, place)
        for parameter in operation.path_parameters
    }
    query = request_example.query(place) if request_example.query else _required_query(operation, place)
    if WHOLE_BODY in known:
        body = known[WHOLE_BODY]
    else:
        body = request_example.body(place) if request_example.body else _body(operation, place)
    if request_example.instead:
        body = {**body, **request_example.instead}
    return Prepared(operation, path_values, query, body)


def _value(parameter: Parameter, place: Place) -> Any:
    if parameter.fixture is None:
        raise LookupError(f"nothing says which {parameter.name} to call: give it x-fixture, or return it from `before`")
    found = place.value(parameter.fixture)
    return [found] if parameter.schema.get("type") == "array" else found


def _required_query(operation: Operation, place: Place) -> Values:
    return {
        parameter.name: _value(parameter, place)
        for parameter in operation.parameters
        if parameter.place == "query" and parameter.required
    }


def _body(operation: Operation, place: Place) -> Any:
    if operation.body is None:
        return ABSENT
    whole = resolve(operation.document, operation.body).get("x-fixture")
    if whole:
        return place.value(whole)
    if not isinstance(operation.body_example, dict):
        return operation.body_example
    fixtures = {
        parameter.name: parameter
        for parameter in operation.parameters
        if parameter.place == "body" and parameter.fixture is not None
    }
    body = {
        name: _value(fixtures[name], place) if name in fixtures else value
        for name, value in operation.body_example.items()
    }
    if isinstance(body.get("name"), str):
        # A name may have to be unique, and stay taken for ever by a deleted thing.
        body["name"] += f" {token_hex(3)}"
    return body
