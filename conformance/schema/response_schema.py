"""One documented response, compiled: what an answer shows about the requirements at the places of its schema."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from conformance.http.bodies import in_part, is_cut
from conformance.http.redaction import beginning
from conformance.schema.places import Compiler, Place, branches_of, collect, first_requirement, meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.contract import DocumentedResponse, Operation
    from conformance.contract.bundle import Json


_REMEMBERED_ANSWERS = 64
_SHOWN = 200
_LARGEST_REMEMBERED = 64 * 1024
_MASK = "value"  # replaces the found value in messages, because it may be the whole body
_LARGEST_LOOKED_AT = 256 * 1024
_ENTRIES_OF_LARGE = 100  # the maximum that a page has


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one answer for one requirement."""

    requirement: str
    holds: bool
    expected: str = ""
    actual: str = ""
    place: str = ""
    """JSON pointer into the body."""


@dataclass(frozen=True, slots=True)
class Tolerated:
    """A form that the contract accepts and that is still worth a note."""

    requirement: str
    what: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of one body."""

    findings: tuple[Finding, ...] = ()
    tolerated: tuple[Tolerated, ...] = ()
    unrecognisable: str | None = None
    """Why the body is not the documented record at all: another type, or none of its properties."""


class ResponseSchema:
    """One documented response, ready to judge answers; equal answers are judged once."""

    def __init__(self, operation: Operation, response: DocumentedResponse) -> None:
        """Prepare for the answers of an operation with this status; the schema is compiled when first needed."""
        self.operation = operation
        self.response = response
        self._remembered = lru_cache(_REMEMBERED_ANSWERS)(self._look)

    def seen(self, status: int, body: bytes) -> Seen:
        """Return the results of an answer with one of this response's statuses."""
        if status == HTTPStatus.NO_CONTENT:
            return self._about_silence(body)
        if self.response.schema is None or not self._is_json:
            return Seen()
        return self._remembered(body) if len(body) <= _LARGEST_REMEMBERED else self._look(body)

    def meant(self, status: int, body: bytes, value: Any) -> Any:
        """Return the value of a body; what has another type in it is read as it was meant."""
        is_right = all(finding.holds for finding in self.seen(status, body).findings)
        return value if is_right or self.response.schema is None else meant([self._root], value)

    @cached_property
    def _validator(self) -> Any:
        document = self.operation.document
        components = {"components": {"schemas": document["components"].get("schemas", {})}}
        schema = {**(self.response.schema or {}), **components}
        return jsonschema_rs.Draft202012Validator(schema, mask=_MASK)

    @cached_property
    def _root(self) -> Place:
        return Compiler(self.operation.document).place(self.response.schema)

    @cached_property
    def _is_json(self) -> bool:
        return any("json" in media for media in self.response.media_types)

    def _look(self, text: bytes) -> Seen:
        status = self.response.requirement
        exercised: set[str] = set()
        tolerated: set[tuple[str, str]] = set()
        try:
            body = _parsed(text)
            found = [*self._violations(body)]
            if found:  # what is inside a list of another type, for example, can still be judged
                body = meant([self._root], body)
                found = [*dict.fromkeys((*found, *self._violations(body)))]
            foreign = self._foreign(body)
            failed = (*_about_byte_order_mark(text), *self._about_another_record(body, foreign, found))
            collect(self._root, body, status or "", exercised, tolerated)
        except (ValueError, RecursionError) as error:
            return Seen(self._about_no_json(text, error), (), "no JSON")
        violated = {finding.requirement for finding in failed}
        held = sorted(exercised - violated)
        return Seen(
            (*failed, *(Finding(name, holds=True) for name in held)),
            # What is violated is not tolerated, even if it looks like a form that would be.
            tuple(Tolerated(*entry) for entry in sorted(tolerated) if entry[0] not in violated),
            foreign,
        )

    def _about_another_record(self, body: Any, foreign: str | None, found: list[Finding]) -> Iterator[Finding]:
        """Yield what was found, or, for an object that is another thing, such as an error, this as one violation.

        Else each property that it lacks would be a violation of its own.
        """
        status = self.response.requirement
        if status and foreign and body and isinstance(body, dict) and len({one.requirement for one in found}) > 1:
            shown = beginning(json.dumps(body, ensure_ascii=False, default=str), _SHOWN)
            yield Finding(status, holds=False, expected="an object of the described kind", actual=f"{foreign}: {shown}")
        else:
            yield from found

    def _about_no_json(self, text: bytes, error: Exception) -> tuple[Finding, ...]:
        status = self.response.requirement
        if not status:
            return ()
        if isinstance(error, RecursionError):
            expected = "a body that is not nested beyond all reason"
            return (Finding(status, holds=False, expected=expected, actual=f"{len(text)} bytes"),)
        return (Finding(status, holds=False, expected="a JSON body", actual=_in_place_of_json(text, error)),)

    def _about_silence(self, body: bytes) -> Seen:
        status = self.response.requirement
        if not status or not body:
            return Seen()
        return Seen((Finding(status, False, "204 without a body", f"204 with {len(body)} bytes"),))

    def _violations(self, body: Any) -> Iterator[Finding]:
        seen: set[tuple[str, str, str]] = set()
        for error in _leaves(self._validator.iter_errors(body)):
            place = [*error.instance_path]
            missing = _missing_property(error)
            requirement = _requirement_at(
                self.operation.document, self.response.schema or {}, place, missing, self.response.requirement
            )
            where = "/" + "/".join(str(part) for part in ([*place, missing] if missing else place))
            expected, actual = _in_words(self.operation.document, error, missing)
            general = re.sub(r"/\d+", "/*", where)
            if requirement and (requirement, general, expected) not in seen:
                seen.add((requirement, general, expected))
                yield Finding(requirement, False, expected, actual, where)

    def _foreign(self, body: Any) -> str | None:
        branches = self._root.branches
        if isinstance(body, list):
            return None if any("array" in branch.kinds for branch in branches) else "an array"
        if not isinstance(body, dict):
            return "a single value"
        known = {entry.name for branch in branches for entry in branch.properties}
        return f"an object without any of {', '.join(sorted(known)[:3])}" if known and not known & body.keys() else None


def _parsed(text: bytes) -> Any:
    """Return a body in a form that can be validated; raise ValueError when it is no JSON.

    An unpaired surrogate, which JSON may contain and the validator cannot handle, becomes a question mark. If a body is
    far larger than any described one, only a part of each list is kept: millions of violations tell no more than a few.
    """
    body = json.loads(text, parse_constant=_no_number)
    if b"\\u" in text:
        body = json.loads(json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"))
    return in_part(body, _ENTRIES_OF_LARGE) if len(text) > _LARGEST_LOOKED_AT else body


def _in_place_of_json(text: bytes, error: Exception) -> str:
    """Say what a body is that `error` was raised for, and where it stops being JSON."""
    if not text:
        return "no body"
    if is_cut(text):
        return f"{len(text)} bytes of JSON without its end"
    what = "UTF-8, which JSON must be" if isinstance(error, UnicodeDecodeError) else "JSON"
    place = f" from character {error.pos} on" if isinstance(error, json.JSONDecodeError) and error.pos else ""
    return f"{len(text)} bytes that are no {what}{place}"


def _about_byte_order_mark(text: bytes) -> Iterator[Finding]:
    """Python's reader of JSON skips the mark; other readers refuse it, and RFC 8259 (8.1) forbids it."""
    if text.startswith(codecs.BOM_UTF8):
        actual = "a byte order mark before the JSON"
        yield Finding("conventions.responses.are-json", False, "a JSON body", actual)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


# -- violations and their places ---------------------------------------------------------------------------------------


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """Go down from an alternative that fails as a whole to the error in the branch that was meant."""
    for error in errors:
        branches: list[list[Any]] = getattr(error.kind, "context", None) or []
        meant = [branch for branch in branches if not _is_of_another_type(branch, error.instance_path)]
        if meant:
            closest: list[Any] = min(meant, key=len)
            yield from _leaves(closest)
        else:
            yield error


def _is_of_another_type(branch: list[Any], place: Iterable[Any]) -> bool:
    return any(type(error.kind).__name__ == "Type" and [*error.instance_path] == [*place] for error in branch)


def _missing_property(error: Any) -> str | None:
    return getattr(error.kind, "property", None) if type(error.kind).__name__.endswith("Required") else None


#: What a keyword of the contract demands, in words around its value.
_DEMANDS = {
    "maxItems": "a value that has at most {} entries",
    "minLength": "a value that has at least {} character",
    "minimum": "a value that is at least {}",
    "not": "a value that is left out",
}


def _in_words(document: Json, error: Any, missing: str | None) -> tuple[str, str]:
    """Return what a violation expected and what it found, in words for readers who know no JSON Schema."""
    if missing:
        return f"a property {missing}", "it is missing"
    shown = json.dumps(error.instance, ensure_ascii=False, default=str)
    return _demand(document, error), beginning(shown, _SHOWN)


def _demand(document: Json, error: Any) -> str:
    name, value = error.kind.name, error.kind.value
    if name in ("type", "anyOf"):
        return f"a value of type {_one_of(_types_of(error))}"
    if name == "enum":
        return f"a value that is {_one_of(value)}"
    if name == "pattern" and (described := _of_pattern(document, value)):
        return f"a value that is {described}"
    message = error.message.removeprefix(_MASK).strip() or error.message
    return _DEMANDS.get(name, f"another value, for this one {message}").format(value)


def _types_of(error: Any) -> list[str]:
    """Return the types that an error wants; one of alternatives is only left whole if the type fits none of them."""
    if error.kind.name == "anyOf":
        inner = (entry for branch in error.kind.context for entry in branch if entry.kind.name in ("type", "anyOf"))
        return [*dict.fromkeys(name for entry in inner for name in _types_of(entry))]
    return [error.kind.value] if isinstance(error.kind.value, str) else list(error.kind.value)


def _one_of(values: Iterable[Any]) -> str:
    *others, last = [json.dumps(value, ensure_ascii=False) for value in values]
    return f"{', '.join(others)} or {last}" if others else last


def _of_pattern(document: Json, pattern: str) -> str:
    """Return what the contract calls texts of a pattern; empty if it has no schema of them."""
    schemas = document["components"].get("schemas", {}).values()
    described = next((str(schema["description"]) for schema in schemas if schema.get("pattern") == pattern), "")
    return described[:1].lower() + described[1:].partition(". ")[0].rstrip(".")


def _requirement_at(
    document: Json, schema: Json, place: list[Any], missing: str | None, default: str | None
) -> str | None:
    """Return the requirement of the innermost place on the path that states one.

    What another area says of the record that a property would hold does not count if the property is missing.
    """
    found = default
    nodes = branches_of(document, schema)
    found = first_requirement(nodes) or found
    for part in place:
        nodes = [branch for node in nodes for branch in _children(document, node, part)]
        found = first_requirement(nodes) or found
    nodes = [branch for node in nodes for branch in _children(document, node, missing)] if missing else []
    inner = first_requirement(nodes)
    return inner if inner and (not found or _area_of(inner) == _area_of(found)) else found


def _area_of(requirement: str) -> str:
    return requirement.partition(".")[0]


def _children(document: Json, node: Json, part: Any) -> list[Json]:
    if isinstance(part, int):
        return branches_of(document, node["items"]) if "items" in node else []
    if part in node.get("properties", {}):
        return branches_of(document, node["properties"][part])
    extra = node.get("additionalProperties")
    return branches_of(document, extra) if isinstance(extra, dict) else []
