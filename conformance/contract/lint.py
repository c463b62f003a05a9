"""Checks the contract itself: references, ids, examples, and valid OpenAPI at every version."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from conformance.contract import TABLE, Contract, Kind, Operation, Version
from conformance.contract.at_version import mappings_in
from conformance.contract.bundle import Json, resolve

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_OPERATION_EXTENSIONS = {
    "x-introduced",
    "x-deprecated",
    "x-removed",
    "x-authorization",
    "x-paginated",
    "x-feature",
    "x-alias-of",
    "x-unsafe",
    "x-streams",
    "x-gateway",
    "x-parameter-requirements",
    "x-body-in-query",
}
EXTENSIONS = frozenset(
    _OPERATION_EXTENSIONS
    | {"x-enum-versions", "x-optional-from", "x-requirement", "x-requirement-required"}
    | {"x-tolerates", "x-fixture", "x-draw", "x-streamed", "x-not-described"}
)
#: The keywords that schemas of the contract use. Any other one is a mistake, such as a comma in an unquoted text.
_KEYWORDS = frozenset(
    {"$ref", "type", "description", "properties", "required", "additionalProperties", "items", "enum", "const"}
    | {"default", "deprecated", "anyOf", "oneOf", "not", "if", "then", "pattern"}
    | {"minimum", "minLength", "maxItems"}
)
_TIED_KINDS = frozenset({Kind.SCHEMA, Kind.STATUS, Kind.PAGINATION})


def problems(contract: Contract) -> Iterator[str]:
    """Yield everything that is wrong with the contract, a sentence each."""
    yield from _extension_problems(contract.document, "")
    for name, schema in contract.document["components"]["schemas"].items():
        yield from _keyword_problems(schema, name)
    yield from _id_problems(contract)
    yield from _change_problems(contract)
    yield from _open_place_problems(contract)
    yield from _side_effect_problems(contract)
    yield from _restoring_problems(contract)
    yield from _record_problems(contract)
    for text in TABLE:
        version = Version.parse(text)
        yield from _openapi_problems(contract, text)
        for operation in contract.operations(version):
            yield from (f"as of {text}: {operation.label}: {problem}" for problem in _operation_problems(operation))


def untied(contract: Contract) -> list[str]:
    """Return the schema, status and pagination requirements that no place of the document states."""
    tied = _stated(contract)
    return [
        requirement.id
        for requirement in contract.requirements.values()
        if requirement.kind in _TIED_KINDS and requirement.id not in tied and not requirement.not_testable
    ]


def _stated(contract: Contract) -> set[str]:
    versions = [None, *(Version.parse(text) for text in TABLE)]
    return {
        name for version in versions for operation in contract.operations(version) for name in operation.requirements()
    }


def _extension_problems(node: Any, place: str) -> Iterator[str]:
    if isinstance(node, list):
        for number, entry in enumerate(node):
            yield from _extension_problems(entry, f"{place}[{number}]")
    elif isinstance(node, dict):
        for key, value in node.items():
            if str(key).startswith("x-") and key not in EXTENSIONS:
                yield f"{place}: unknown extension {key}"
            elif key != "examples":
                yield from _extension_problems(value, f"{place}/{key}")


def _keyword_problems(schema: Any, place: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "properties":
            for name, node in value.items():
                yield from _keyword_problems(node, f"{place}/{name}")
        elif key not in _KEYWORDS and key not in EXTENSIONS:
            yield f"{place}: unknown keyword {key}"
        elif key in ("items", "not", "if", "then"):
            yield from _keyword_problems(value, f"{place} {key}")
        elif key in ("anyOf", "oneOf"):
            for part in value:
                yield from _keyword_problems(part, f"{place} {key}")


def _id_problems(contract: Contract) -> Iterator[str]:
    for name in sorted(_stated(contract) - set(contract.requirements)):
        yield f"the document states requirement {name}, which openapi/requirements/ does not have"
    ids = [operation.id for operation in contract.operations(None)]
    yield from _twice("operationId", sorted(ids), "used")
    for operation in contract.operations(None):
        if operation.alias_of and operation.alias_of not in ids:
            yield f"{operation.id} is an alias of {operation.alias_of}, which does not exist"


def _twice(what: str, names: Iterable[str], done: str = "listed") -> Iterator[str]:
    return (f"{what} {name} is {done} twice" for name, times in Counter(names).items() if times > 1)


def _unknown(said: str, names: Iterable[str], known: Container[str]) -> Iterator[str]:
    return (f"{said} {name}, which does not exist" for name in names if name not in known)


def _change_problems(contract: Contract) -> Iterator[str]:
    places = _places(contract)
    yield from _twice("change", (change.id for change in contract.changes))
    for change in contract.changes:
        replaced = change.replaced_by
        named = [change.requirement, *((replaced.requirement, replaced.agreement) if replaced else ())]
        yield from _unknown(f"change {change.id} names requirement", named, contract.requirements)
        more = [f"{replaced.operation}.{replaced.parameter}"] if replaced else []
        for place in (*change.places, *more):
            if place not in places:
                yield f"change {change.id} names {place}, which the document does not have"


def _open_place_problems(contract: Contract) -> Iterator[str]:
    yield from _twice("open place", (place.id for place in contract.open_places))
    for place in contract.open_places:
        yield from _unknown(f"open place {place.id} names requirement", place.requirements, contract.requirements)


def _side_effect_problems(contract: Contract) -> Iterator[str]:
    table, known = contract.side_effects, {operation.id for operation in contract.operations(None)}
    for part in table.parts.values():
        yield from _unknown(f"part {part.name} of the side effects is read by", [part.operation], known)
    for scope in (*(move.scope for move in table.moves), *table.prepared, *(scope for scope, _ in table.stated)):
        yield from _unknown("the side effects name operation", sorted(scope.operations), known)
        yield from _unknown("the side effects name part", sorted(scope.parts), table.parts)
    requirements = (*(name for _, name in table.stated), *table.rest.values())
    yield from _unknown("the side effects name requirement", requirements, contract.requirements)


def _restoring_problems(contract: Contract) -> Iterator[str]:
    known = {operation.id for operation in contract.operations(None)}
    parts = [restored.part for restored in contract.restoring.parts]
    yield from _unknown("restoring.yaml names part", parts, contract.side_effects.parts)
    named = {name for restored in contract.restoring.parts for name in restored.operations}
    yield from _unknown("restoring.yaml names operation", sorted(named | contract.restoring.stays.keys()), known)


def _record_problems(contract: Contract) -> Iterator[str]:
    areas = {operation.id: operation.area for operation in contract.operations(None)}
    for record in contract.records:
        yield from _unknown("records.yaml names requirement", [record.requirement], contract.requirements)
        for name in record.operations:
            if areas.get(name) != record.requirement.partition(".")[0]:
                yield f"records.yaml names operation {name}, which does not exist in the area of {record.requirement}"
        for place in record.unless.keys() - record.says:
            yield f"records.yaml says when {place} means nothing, which {record.requirement} does not say"


def _places(contract: Contract) -> set[str]:
    """Return what `places` of a change may name: operations, parameters, properties and enum values."""
    names: set[str] = set()
    for operation in contract.operations(None):
        names.add(operation.id)
        for parameter in operation.parameters:
            names.add(f"{operation.id}.{parameter.name}")
            names |= {f"{operation.id}.{parameter.name}={value}" for value in parameter.schema.get("enum", ())}
    for record, schema in contract.document["components"]["schemas"].items():
        for name, node in _properties(contract.document, schema):
            names.add(f"{record}.{name}")
            names |= {f"{record}.{name}={value}" for value in resolve(contract.document, node).get("enum", ())}
    return names


def _properties(document: Json, schema: Json) -> Iterator[tuple[str, Json]]:
    resolved = resolve(document, schema)
    yield from resolved.get("properties", {}).items()
    for part in resolved.get("allOf", ()):
        yield from _properties(document, part)


def _openapi_problems(contract: Contract, version: str) -> Iterator[str]:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: PLC0415 - only developers have this tool

    for error in OpenAPIV31SpecValidator(contract.as_of(version)).iter_errors():
        yield f"as of {version}: not valid OpenAPI at {'/'.join(map(str, error.absolute_path))}: {error.message}"


def _operation_problems(operation: Operation) -> Iterator[str]:
    if not operation.served and operation.area != "versions":
        yield "x-authorization names nobody who is served"
    if not any(response.is_success for response in operation.responses):
        yield "no documented response is a success"
    if operation.body is not None:
        if operation.body_example is None:
            yield "the request body has no example"
        else:
            yield from _example_problems(operation, operation.body, operation.body_example, "request body")
    for response in operation.responses:
        if response.schema is not None and response.example is None and "gzip" not in str(response.media_types):
            yield f"response {response.status} has no example"
        elif response.schema is not None and response.example is not None:
            yield from _example_problems(operation, response.schema, response.example, f"response {response.status}")


def _example_problems(operation: Operation, schema: Json, example: Any, where: str) -> Iterator[str]:
    for error in validator(operation.document, schema).iter_errors(example):
        yield f"example of {where} breaks its schema at {'/'.join(map(str, error.instance_path))}: {error.message}"


def validator(document: Json, schema: Json) -> Any:
    """Compile a schema that may refer to the components of a combined document."""
    if not any(
        "$ref" in part for part in mappings_in(schema)
    ):  # almost all of them; reading the components for each takes most of the time
        return jsonschema_rs.Draft202012Validator(schema)
    components = {"components": {"schemas": document["components"].get("schemas", {})}}
    return jsonschema_rs.Draft202012Validator({**schema, **components})
