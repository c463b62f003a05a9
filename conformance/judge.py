"""Holds an answer against the contract and names the requirement at each violated place of the schema."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from conformance.contract.bundle import Json, resolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.client import Exchange
    from conformance.contract import Contract, DocumentedResponse, Operation, Version


_NO_CONTENT = 204


@dataclass(frozen=True, slots=True)
class Finding:
    """What one answer showed about one requirement."""

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


#: What a gateway answers when the service behind it, or in front of it, cannot be reached.
_GATEWAY_ERRORS = (502, 503, 504)


class Judge:
    """Knows the operations of one version, and what an answer to each of them must look like."""

    def __init__(self, contract: Contract, version: Version | None) -> None:
        """Prepare for a target of this version; schemas are compiled when first needed."""
        self.operations = contract.operations(version)
        self._routes = [(operation, _pattern(operation.path)) for operation in self.operations]
        self._schemas: dict[tuple[str, str], _ResponseSchema] = {}

    @classmethod
    def of(cls, contract: Contract, version: Version | None) -> Judge:
        """Return the judge of a version, with all schemas that were compiled so far."""
        key = (contract.digest, version)
        if key not in _KNOWN:
            _KNOWN[key] = cls(contract, version)
        return _KNOWN[key]

    def operation_of(self, method: str, path: str) -> Operation | None:
        """Return the operation that a request addresses, None when the contract has none."""
        found = [op for op, pattern in self._routes if op.method == method and pattern.fullmatch(path)]
        return min(found, key=lambda operation: operation.path.count("{"), default=None)

    def is_gateway_error(self, exchange: Exchange) -> bool:
        """Tell whether a gateway behind the service failed, which says nothing about the service itself."""
        if exchange.status not in _GATEWAY_ERRORS:
            return False
        operation = self.operation_of(exchange.call.method, exchange.call.path)
        return operation is not None and operation.has_gateway

    def findings(self, exchange: Exchange) -> list[Finding]:
        """
        Return what an answer shows about the requirements of its operation's documented responses.

        Only a call that was served shows anything: a refusal's body is nobody's business. A requirement holds only if
        its place was there to be seen; an empty list says nothing about its entries.
        """
        schema = self._schema(exchange)
        return schema.findings(exchange) if schema else []

    def tolerated(self, exchange: Exchange) -> list[Tolerated]:
        """Return the forms in an answer that are accepted and worth a note."""
        schema = self._schema(exchange)
        return schema.tolerated(exchange) if schema else []

    def foreign(self, exchange: Exchange) -> str | None:
        """
        Say that a served answer is not the documented record at all: of another kind, or without any of its properties.

        A list may be empty. What is merely not quite right is a finding, and no reason to believe nothing else.
        """
        if exchange.status == _NO_CONTENT:
            operation = self.operation_of(exchange.call.method, exchange.call.path)
            has_body = operation is not None and all(
                response.schema is not None for response in operation.responses if response.is_success
            )
            return "204, without the body that is described" if has_body else None
        schema = self._schema(exchange)
        return schema.foreign(exchange) if schema else None

    def _schema(self, exchange: Exchange) -> _ResponseSchema | None:
        if not exchange.is_success or exchange.status is None or exchange.problem:
            return None
        operation = self.operation_of(exchange.call.method, exchange.call.path)
        response = operation.response_to(exchange.status) if operation else None
        if operation is None or response is None or _is_streamed(operation, exchange):
            return None
        key = (operation.id, response.status)
        if key not in self._schemas:
            self._schemas[key] = _ResponseSchema(operation, response)
        return self._schemas[key]


def _is_streamed(operation: Operation, exchange: Exchange) -> bool:
    """Tell whether a call may have asked for an answer in pieces; also by a value that only some targets take so."""
    if operation.streams is None or not exchange.call.body:
        return False
    try:
        sent = json.loads(exchange.call.body)
    except ValueError:
        return True
    return isinstance(sent, dict) and sent.get(operation.streams) not in (None, False)


_KNOWN: dict[tuple[str, Version | None], Judge] = {}


class _ResponseSchema:
    """One documented response, ready to judge answers."""

    def __init__(self, operation: Operation, response: DocumentedResponse) -> None:
        self.operation = operation
        self.response = response

    @cached_property
    def _validator(self) -> Any:
        document = self.operation.document
        components = {"components": {"schemas": document["components"].get("schemas", {})}}
        return jsonschema_rs.Draft202012Validator({**(self.response.schema or {}), **components})

    @property
    def _is_json(self) -> bool:
        return any("json" in media for media in self.response.media_types)

    def findings(self, exchange: Exchange) -> list[Finding]:
        status = self.response.requirement
        if exchange.status == _NO_CONTENT:
            return self._about_silence(exchange)
        if self.response.schema is None or not self._is_json:
            return []
        try:
            body = json.loads(exchange.body)
        except ValueError:
            actual = f"{len(exchange.body)} bytes that are no JSON" if exchange.body else "no body"
            return [Finding(status, False, "a JSON body", actual)] if status else []
        failed = list(self._violations(body))
        broken = {finding.requirement for finding in failed}
        seen = _exercised(self.operation.document, self.response.schema, body)
        return [*failed, *(Finding(name, True) for name in sorted(seen - broken))]

    def _about_silence(self, exchange: Exchange) -> list[Finding]:
        status = self.response.requirement
        if not status or not exchange.body:
            return []
        return [Finding(status, False, "204 without a body", f"204 with {len(exchange.body)} bytes")]

    def _violations(self, body: Any) -> Iterator[Finding]:
        seen: set[tuple[str, str, str]] = set()
        for error in _leaves(self._validator.iter_errors(body)):
            place = [*error.instance_path]
            missing = _missing_property(error)
            requirement = _requirement_at(
                self.operation.document,
                self.response.schema or {},
                [*place, missing] if missing else place,
                self.response.requirement,
            )
            where = "/" + "/".join(str(part) for part in ([*place, missing] if missing else place))
            expected, actual = _in_words(error, missing)
            general = re.sub(r"/\d+", "/*", where)
            if requirement and (requirement, general, expected) not in seen:
                seen.add((requirement, general, expected))
                yield Finding(requirement, False, expected, actual, where)

    def foreign(self, exchange: Exchange) -> str | None:
        if self.response.schema is None or not self._is_json:
            return None
        try:
            body = json.loads(exchange.body)
        except ValueError:
            return "no JSON"
        nodes = _branches(self.operation.document, self.response.schema)
        if isinstance(body, list):
            return None if any(_allows(node, "array") for node in nodes) else "an array"
        if not isinstance(body, dict):
            return "a single value"
        known = {name for node in nodes for name in node.get("properties", {})}
        return f"an object without any of {', '.join(sorted(known)[:3])}" if known and not known & body.keys() else None

    def tolerated(self, exchange: Exchange) -> list[Tolerated]:
        if self.response.schema is None or not self._is_json:
            return []
        try:
            body = json.loads(exchange.body)
        except ValueError:
            return []
        found = _tolerated(self.operation.document, self.response.schema, body, self.response.requirement or "")
        return sorted(set(found), key=lambda entry: (entry.requirement, entry.what))


def _allows(node: Json, kind: str) -> bool:
    allowed = node.get("type", [])
    return kind in ([allowed] if isinstance(allowed, str) else allowed)


def _leaves(errors: Iterable[Any]) -> Iterator[Any]:
    """Go down from an alternative that fails as a whole to what is wrong with the branch that was meant."""
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


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)))


def _missing_property(error: Any) -> str | None:
    return getattr(error.kind, "property", None) if type(error.kind).__name__.endswith("Required") else None


def _in_words(error: Any, missing: str | None) -> tuple[str, str]:
    if missing:
        return f"a property {missing}", "it is missing"
    shown = json.dumps(error.instance, ensure_ascii=False, default=str)
    message = error.message.removeprefix(shown).strip()
    return message or error.message, shown if len(shown) <= 200 else shown[:200] + " ..."  # noqa: PLR2004 - readable


def _branches(document: Json, schema: Any) -> list[Json]:
    """Return a schema and what it is composed of, references followed, the outermost first."""
    node = resolve(document, schema)
    if not isinstance(node, dict):
        return []
    parts = [node]
    for word in ("allOf", "anyOf", "oneOf"):
        for part in node.get(word, ()):
            parts += _branches(document, part)
    return parts


def _requirement_at(document: Json, schema: Json, place: list[Any], default: str | None) -> str | None:
    """Return the requirement of the innermost place on the way that states one."""
    found = default
    nodes = _branches(document, schema)
    found = _first_requirement(nodes) or found
    for part in place:
        nodes = [branch for node in nodes for branch in _children(document, node, part)]
        found = _first_requirement(nodes) or found
    return found


def _first_requirement(nodes: list[Json]) -> str | None:
    return next((node["x-requirement"] for node in nodes if isinstance(node.get("x-requirement"), str)), None)


def _children(document: Json, node: Json, part: Any) -> list[Json]:
    if isinstance(part, int):
        return _branches(document, node["items"]) if "items" in node else []
    if part in node.get("properties", {}):
        return _branches(document, node["properties"][part])
    extra = node.get("additionalProperties")
    return _branches(document, extra) if isinstance(extra, dict) else []


def _exercised(document: Json, schema: Any, value: Any) -> set[str]:
    """Return the requirements whose places a value really has."""
    found: set[str] = set()
    for node in _branches(document, schema):
        if isinstance(node.get("x-requirement"), str):
            found.add(node["x-requirement"])
        for child, inner in _pairs(node, value):
            found |= _exercised(document, child, inner)
        if isinstance(value, dict):
            found.update(_met_by_absence(document, node, value))
    return found


def _met_by_absence(document: Json, node: Json, value: Json) -> Iterator[str]:
    """
    Yield the requirements of properties that are not there, where that is what their requirement asks or allows.

    What has none of the other properties either is not the thing that they belong to, and shows nothing about it.
    """
    properties: Json = node.get("properties", {})
    if not properties.keys() & value.keys():
        return
    for name, child in properties.items():
        schema = resolve(document, child) if name not in value else {}
        if schema.get("type") == "null" or schema.get("not") == {} or "absent" in schema.get("x-tolerates", ()):
            requirement = schema.get("x-requirement")
            if isinstance(requirement, str):
                yield requirement


def _pairs(node: Json, value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, list) and "items" in node:
        # Entries beyond the first few show no place that these do not.
        return [(node["items"], entry) for entry in value[:50]]
    if isinstance(value, dict):
        properties: Mapping[str, Any] = node.get("properties", {})
        return [(properties[name], value[name]) for name in properties if name in value]
    return []


def _tolerated(document: Json, schema: Any, value: Any, requirement: str) -> Iterator[Tolerated]:
    for node in _branches(document, schema):
        own = node.get("x-requirement", requirement)
        if isinstance(value, dict):
            for name, child in node.get("properties", {}).items():
                tolerates = _tolerates(document, child)
                inner = _first_requirement(_branches(document, child)) or own
                if name not in value and "absent" in tolerates:
                    yield Tolerated(inner, f"{name} is absent")
                elif value.get(name, 0) is None and "null" in tolerates:
                    yield Tolerated(inner, f"{name} is null")
                elif "relative" in tolerates and str(value.get(name, "")).startswith("/"):
                    yield Tolerated(inner, f"{name} is a relative path")
        for child, entry in _pairs(node, value):
            yield from _tolerated(document, child, entry, own)


def _tolerates(document: Json, child: Any) -> list[str]:
    node = resolve(document, child)
    return list(node.get("x-tolerates", ())) if isinstance(node, dict) else []
