"""The places of a response's schema, compiled: which requirements a value shows, and how it was meant."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract.bundle import Json, resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ENTRIES_LOOKED_AT = 50  # later ones would show no other place


def branches_of(document: Json, schema: Any) -> list[Json]:
    """Return a schema and its parts, with references followed, the outermost first."""
    node = resolve(document, schema)
    if not isinstance(node, dict):
        return []
    parts = [node]
    for word in ("allOf", "anyOf", "oneOf"):
        for part in node.get(word, ()):
            parts += branches_of(document, part)
    return parts


def first_requirement(nodes: list[Json]) -> str | None:
    """Return the requirement of the outermost of some schemas that states one."""
    return next((node["x-requirement"] for node in nodes if isinstance(node.get("x-requirement"), str)), None)


@dataclass(slots=True)
class Place:
    """A place of the schema: itself and all its parts."""

    branches: tuple[Branch, ...] = ()
    requirement: str | None = None
    """The requirement of the outermost part that states one."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A part of a place: the schema itself, or one that it is made of."""

    requirement: str | None
    kinds: tuple[str, ...]
    """The JSON types that it allows; empty if it says nothing about the type."""
    properties: tuple[Property, ...]
    names: frozenset[str]
    items: Place | None

    def is_about(self, value: Any) -> bool:
        """Tell whether a value may be meant for this alternative: a list is no record, and a record is no list."""
        kind = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else None
        return kind is None or not self.kinds or kind in self.kinds


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a record."""

    name: str
    place: Place
    tolerates: frozenset[str]
    """The names of the forms that are accepted with a note."""
    absent: str | None
    """The requirement that is met when the property is absent."""


@dataclass(frozen=True)
class Compiler:
    """Compiles a schema; a record that refers to itself is one place."""

    document: Json
    known: dict[str, Place] = field(default_factory=dict)

    def place(self, schema: Any) -> Place:
        """Return the place of a schema, with everything in it."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self.known:
            found = self.known[key] = Place()
            nodes = branches_of(self.document, schema)
            found.requirement = first_requirement(nodes)
            found.branches = tuple(map(self.branch, nodes))
        return self.known[key]

    def branch(self, node: Json) -> Branch:
        """Return one part of a place, from its schema without references."""
        kinds = node.get("type", ())
        properties: Json = node.get("properties", {})
        own = node.get("x-requirement")
        return Branch(
            own if isinstance(own, str) else None,
            (kinds,) if isinstance(kinds, str) else tuple(kinds),
            tuple(self.property(name, schema) for name, schema in properties.items()),
            frozenset(properties),
            self.place(node["items"]) if "items" in node else None,
        )

    def property(self, name: str, schema: Any) -> Property:
        """Return a property of a record, from its name and schema."""
        node = resolve(self.document, schema)
        tolerates = frozenset(node.get("x-tolerates", ()))
        is_met = node.get("type") == "null" or node.get("not") == {} or "absent" in tolerates
        own = node.get("x-requirement")
        return Property(name, self.place(schema), tolerates, own if is_met and isinstance(own, str) else None)


def collect(place: Place, value: Any, around: str, exercised: set[str], tolerated: set[tuple[str, str]]) -> None:
    """Collect the requirements whose places a value really has, and the merely tolerated forms in it.

    `around` is the requirement of the enclosing value.
    """
    for branch in place.branches:
        if not branch.is_about(value):
            continue
        own = branch.requirement or around
        if branch.requirement:
            exercised.add(branch.requirement)
        if isinstance(value, dict):
            _collect_in_record(branch, value, own, exercised, tolerated)
        elif isinstance(value, list) and branch.items is not None:
            for entry in value[:_ENTRIES_LOOKED_AT]:
                collect(branch.items, entry, own, exercised, tolerated)


def _collect_in_record(
    branch: Branch, value: Json, own: str, exercised: set[str], tolerated: set[tuple[str, str]]
) -> None:
    """Look at a record. The absence of a property may be required or allowed.

    If none of the other properties is there either, the record is another thing and shows nothing about the property.
    """
    is_the_thing = not branch.names.isdisjoint(value)
    for entry in branch.properties:
        if entry.name in value:
            found = value[entry.name]
            if entry.tolerates:
                for form, words, fits in _FORMS:
                    if form in entry.tolerates and fits(found):
                        tolerated.add((entry.place.requirement or own, f"{entry.name} {words}"))
            collect(entry.place, found, own, exercised, tolerated)
        else:
            if entry.absent and is_the_thing:
                exercised.add(entry.absent)
            if "absent" in entry.tolerates:
                tolerated.add((entry.place.requirement or own, f"{entry.name} is absent"))


_USUAL_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")


#: Tolerated forms by their names in the contract: in words, and whether a value has the form.
_FORMS: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("null", "is null", lambda value: value is None),
    (
        "unusual-date",
        "is in another form of ISO 8601 than the usual one",
        lambda value: isinstance(value, str) and _USUAL_DATE.match(value) is None,
    ),
    ("relative", "is a relative path", lambda value: isinstance(value, str) and value.startswith("/")),
)


# -- what a value was meant as -----------------------------------------------------------------------------------------

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_FLAGS = {"true": True, "false": False, "1": True, "0": False, "": False}


def meant(places: Sequence[Place], value: Any) -> Any:
    """Return a value with everything in it that has another type, and can only be meant in one way, as it was meant.

    Such are "2" for a number, 1 for true, and null or `{"0": ...}` for a list. Only their types are wrong then, which
    `collect` and the schema tell; what they say can still be compared.
    """
    kinds = {kind for place in places for branch in place.branches for kind in branch.kinds}
    value = _in_kind(kinds, value)
    branches = [branch for place in places for branch in place.branches if branch.is_about(value)]
    if isinstance(value, dict):
        named = defaultdict(list)
        for entry in (entry for branch in branches for entry in branch.properties):
            named[entry.name].append(entry.place)
        return {name: meant(named[name], found) if name in named else found for name, found in value.items()}
    if isinstance(value, list):
        entries = [branch.items for branch in branches if branch.items is not None]
        return [meant(entries, found) for found in value]
    return value


def _in_kind(kinds: set[str], value: Any) -> Any:
    """Return a value as one of the types that are allowed at its place, if it can only be meant so."""
    if isinstance(value, dict | list) or value is None:
        return _collection(kinds, value)
    is_number = not kinds.isdisjoint(("integer", "number"))
    if isinstance(value, str) and "string" not in kinds:
        if is_number and _WHOLE.fullmatch(value):
            return int(value)
        return _FLAGS.get(value, value) if "boolean" in kinds else value
    is_flag = type(value) is int and value in (0, 1) and "boolean" in kinds and not is_number
    return bool(value) if is_flag else value


def _collection(kinds: set[str], value: Any) -> Any:
    """Return an empty or numbered collection as a list, or as a record, if only that is allowed at its place.

    Some languages have one type for both, and some write an empty list as null.
    """
    may_be_record = "object" in kinds
    if "array" in kinds:
        is_numbered = isinstance(value, dict) and all(map(str.isdecimal, value)) and bool(value or not may_be_record)
        is_empty = value is None and not kinds.intersection(("null", "object"))
        return [*value.values()] if is_numbered else [] if is_empty else value
    return {} if value == [] and may_be_record else value
