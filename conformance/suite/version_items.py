"""What the items of the version table mean for a target: where they show, who calls them, and what the target does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from conformance.contract import Change, ChangeKind, Contract, Operation
from conformance.contract.bundle import resolve
from conformance.http.bodies import is_same, records_of
from conformance.http.exchange import NOT_THERE
from conformance.results.record import ItemState, Reason
from conformance.results.text import as_json
from conformance.suite.absences import OperationAbsent
from conformance.suite.arrange import Place
from conformance.suite.context import NotTested, Unmet, Violation, current_run, current_test
from conformance.suite.expectations import Answer, Caller, Path, must_settle
from conformance.target import ACTORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.contract import Parameter, Requirement, Version
    from conformance.suite.arrange import Arranged, Prepared

#: What to send for a parameter of a type, if no value of the target is needed.
_SAMPLES: Mapping[str, Sequence[Any]] = {"boolean": (True, False), "integer": (1,)}


def changes(*kinds: ChangeKind, where: Callable[[Change], bool] = lambda _: True) -> list[Change]:
    """Return the items of these kinds that fulfil a condition, without those that nobody outside can observe."""
    contract = Contract.load()
    return [
        change
        for change in contract.changes
        if change.kind in kinds and where(change) and not contract.requirements[change.requirement].not_testable
    ]


def named(item: str) -> Change:
    """Return an item of the table by its id; raise LookupError when there is none."""
    found = next((change for change in Contract.load().changes if change.id == item), None)
    if found is None:
        raise LookupError(item)
    return found


def target_version() -> Version | None:
    """Return the version that the target is judged by; None when it is unknown."""
    return current_run().profile.version


def new_operations(kind: ChangeKind) -> dict[str, Any]:
    """Return arguments of `parametrize`: items of a kind, each with one of its operations that change something."""
    known = {operation.id: operation for operation in Contract.load().operations(None)}
    return _pairs((change, place) for change, place in _places(kind) if place in known and not known[place].is_read)


def new_parameters(kind: ChangeKind) -> dict[str, Any]:
    """Return arguments of `parametrize`: items of a kind, each with one of its parameters that a body can contain."""
    known = {
        f"{operation.id}.{parameter.name}"
        for operation in Contract.load().operations(None)
        for parameter in operation.parameters
        if parameter.place == "body"
    }
    return _pairs((change, place) for change, place in _places(kind) if place in known and change.shown_as)


def replaced_items(kind: ChangeKind) -> dict[str, Any]:
    """Return arguments of `parametrize`: items of a kind whose replacement is described, each with what shows it."""
    found = [(change, change.replaced_by) for change in changes(kind) if change.replaced_by]
    areas = {operation.id: operation.area for operation in Contract.load().operations(None)}
    marked = [
        pytest.param(change, replaced, marks=pytest.mark.calls_area(areas[replaced.operation]))
        for change, replaced in found
    ]
    return {**_pairs(found), "argvalues": marked}


def _places(kind: ChangeKind) -> Iterator[tuple[Change, str]]:
    return ((change, place) for change in changes(kind) if change.described for place in change.places)


def _pairs(pairs: Iterable[tuple[Change, Any]]) -> dict[str, Any]:
    found = list(pairs)
    if not found:
        raise LookupError("the version table has no such item")
    ids = [f"{change.id}-{part}" if isinstance(part, str) else change.id for change, part in found]
    return {"argvalues": found, "ids": ids}


@dataclass(frozen=True)
class ItemUnderTest:
    """One item of the table on the running target."""

    change: Change

    @cached_property
    def requirement(self) -> Requirement:
        """The requirement of the row."""
        return Contract.load().requirements[self.change.requirement]

    @cached_property
    def caller(self) -> Caller:
        """The caller of the item: the first actor that its requirement needs; raise NotTested without one."""
        return Caller.named(next(need for need in self.requirement.needs if need in ACTORS))

    @property
    def is_reached(self) -> bool:
        """Whether the row is in effect at the version that the target is judged by."""
        return self.change.reached(current_run().profile.version)

    @property
    def _query(self) -> dict[str, str]:
        """The query of the item's probe."""
        return dict(parse_qsl(urlsplit(self.change.probe.path).query)) if self.change.probe else {}

    def probe(self, **query: str) -> Answer:
        """Send the item's probe with its own query, or with another one."""
        probe = self.change.probe
        if probe is None:
            raise LookupError(f"{self.change.id} has no probe")
        path = _filled(urlsplit(probe.path).path, {"id": "project"})
        return self.caller.call(probe.method, path, query=query or self._query)

    def probe_beside(self, **query: str) -> Answer:
        """Send the item's probe with its own query, and more beside that."""
        return self.probe(**self._query, **query)

    def control(self) -> Answer:
        """Send the item's probe without the parameter of the row, to see whether the target has the endpoint."""
        probe = self.change.probe
        kept = {name: value for name, value in self._query.items() if probe and name != probe.parameter}
        return self.probe(**(kept or {"per_page": str(current_run().learnt.page_length)}))

    def operations(self) -> list[Operation]:
        """Return the operations that the row names and the target's version has."""
        return [operation for operation in current_run().validator.operations if operation.id in self.change.places]

    def fields(self) -> list[tuple[str, str]]:
        """Return record and property of every field that the row names."""
        records = Contract.load().document["components"]["schemas"]
        parts = [place.partition(".") for place in self.change.places if "=" not in place]
        return [(record, name) for record, _, name in parts if record in records]

    def parameters(self) -> list[tuple[Operation, str]]:
        """Return operation and name of every parameter that the row names and the target's version has."""
        known = {operation.id: operation for operation in current_run().validator.operations}
        parts = [place.partition(".") for place in self.change.places if "=" not in place]
        return [(known[owner], name) for owner, _, name in parts if name and owner in known]

    def records(self, record: str) -> Iterator[tuple[dict[str, Any], Answer]]:
        """Read what answers a record and yield each record with its answer; skip reads that are not served."""
        for operation in current_run().validator.operations:
            if self.is_readable(operation) and not operation.alias_of and operation.answers(record):
                answer = self.read(operation)
                for entry in entries(answer) if answer.is_served else ():
                    yield entry, answer

    def read(self, operation: Operation, **query: str | int) -> Answer:
        """Call an operation that reads, with its path filled from the fixtures; raise NotTested without them."""
        references = {entry.name: entry.fixture or "" for entry in operation.path_parameters}
        try:
            return self.caller.get(_filled(operation.path, references), **query)
        except OperationAbsent as absent:
            # What an absent operation leaves open is about the item that introduced it.
            if self.change.kind in (ChangeKind.INTRODUCED, ChangeKind.RENAMED):
                current_test().saw_item(self.change.id, ItemState.NOT_MADE, str(absent))
            raise

    def is_readable(self, operation: Operation) -> bool:
        """Tell whether the fixtures alone fill the path of an operation that reads."""
        return operation.is_read and operation.is_named_by_fixtures

    # -- values to send ----------------------------------------------------------------------------------------------

    def operation(self, place: str) -> Operation:
        """Return the operation that a place names, with or without a parameter."""
        wanted = place.partition(".")[0]
        return next(operation for operation in current_run().validator.operations if operation.id == wanted)

    def values(self, place: str, where: Place) -> list[Any]:
        """Return what to send for a parameter: both values of a flag, a number, what the profile gives for a list."""
        parameter = self._parameter(place)
        kind = str(parameter.schema.get("type"))
        if kind in _SAMPLES:
            return list(_SAMPLES[kind])
        if parameter.fixture is None:
            raise LookupError(f"nothing says what to send for {place}: give it x-fixture")
        value = where.value(parameter.fixture)
        return [[value] if kind == "array" else value]

    def having(self, prepared: Arranged, place: str, value: Any) -> Prepared:
        """Return a prepared call with a value for a parameter."""
        return prepared.call.having(self._parameter(place), value)

    def shown(self, prepared: Arranged, answer: Answer) -> list[Any]:
        """Return the value that the record shows for the parameter; inconclusive when it cannot be read."""
        read_back = prepared.request_example.read_back
        record = prepared.keeper.read(read_back.path(prepared.call, answer) if read_back else prepared.call.path)
        name, _, field = str(self.change.shown_as).partition(".")
        value = record.get(name) if isinstance(record, dict) else None
        found = value if isinstance(value, list) else [value]
        return [entry.get(field) for entry in found if isinstance(entry, dict)] if field else found

    def shows(self, prepared: Arranged, answer: Answer, value: Any) -> bool:
        """Tell whether the record shows a value that was sent."""
        found = self.shown(prepared, answer)
        return all(
            any(is_same(entry, wanted) for entry in found) for wanted in (value if isinstance(value, list) else [value])
        )

    def must_show(self, prepared: Arranged, answer: Answer, value: Any) -> None:
        """Expect that the record shows a value that was sent, within the time the target has to settle."""
        must_settle(
            lambda: self.shows(prepared, answer, value),
            f"{self.change.shown_as} telling {as_json(value)}, as it was sent",
            lambda: f"{self.change.shown_as} telling {as_json(self.shown(prepared, answer))}",
        )

    def is_locked(self, prepared: Arranged) -> bool:
        """Tell whether the record says that the value of the parameter is locked."""
        if prepared.request_example.read_back:
            return False
        record = prepared.keeper.read(prepared.call.path)
        setting = record.get(str(self.change.shown_as).partition(".")[0]) if isinstance(record, dict) else None
        return isinstance(setting, dict) and setting.get("locked") is True

    def present(self) -> dict[str, Any]:
        """Return the fields of the item that can be read, each with its value."""
        return {
            name: entry[name] for record, name in self.fields() for entry, _ in self.records(record) if name in entry
        }

    def _parameter(self, place: str) -> Parameter:
        name = place.partition(".")[2]
        return next(parameter for parameter in self.operation(place).parameters if parameter.name == name)

    # -- what is left to others --------------------------------------------------------------------------------------

    @contextmanager
    def seen_in_passing(self) -> Iterator[None]:
        """Leave an item that cannot be seen to the tests of its own area, if its requirement belongs to one."""
        try:
            yield
        except (Unmet, NotTested):
            if self.requirement.area == "versions":
                raise
            current_test().results.settle([self.requirement.id])


@contextmanager
def left_open() -> Iterator[None]:
    """Within the context, settle nothing unless the running test gets to look; otherwise it says why itself."""
    looks = False
    with current_test().results.settling_nothing(unless=lambda: looks):
        try:
            yield
            looks = True
        except Violation:
            looks = True
            raise


def is_offered(answer: Answer) -> bool:
    """Tell whether an endpoint exists; inconclusive when it neither serves nor says that it does not exist."""
    if answer.is_served:
        return True
    if answer.status in NOT_THERE:
        return False
    raise Unmet(Reason.PRECONDITION, f"{called(answer)} was not served: status {answer.status}")


def called(answer: Answer) -> str:
    """Say which call was answered, without values that differ from target to target."""
    call = answer.exchange.call
    path = "/".join(":id" if part.isdigit() else part for part in urlsplit(call.path).path.split("/"))
    return f"{call.method} {path}"


def entries(answer: Answer) -> list[dict[str, Any]]:
    """Return the records of an answer: the object, or those of the array; empty when it is neither."""
    return records_of(answer.json_if_any)


def is_required(record: str, name: str) -> bool:
    """Tell whether a record of the target's version must have a property."""
    document = current_run().contract.at(current_run().profile.version)
    return name in _required(document, {"$ref": f"#/components/schemas/{record}"})


def _required(document: dict[str, Any], schema: Any) -> set[str]:
    node = resolve(document, schema)
    own = set(node.get("required", ()))
    return own.union(*(_required(document, part) for part in node.get("allOf", ())))


def _filled(path: str, references: Mapping[str, str]) -> Path:
    place = Place(current_run().profile)
    for name, reference in references.items():
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", str(place.value(reference)))
    return Path(path)
