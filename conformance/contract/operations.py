"""One operation of the service, at one version, in the form that the suite reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from conformance.contract.at_version import METHODS
from conformance.contract.bundle import Json, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Parameter:
    """A path or query parameter, or a property of the request body."""

    name: str
    place: str
    """`path`, `query` or `body`."""
    required: bool
    schema: Json
    requirement: str | None
    """The requirement about its type and values."""
    requirement_required: str | None
    """The requirement that it must be sent."""
    fixture: str | None
    """The source of its value: a fixture of the target, or `actor.field`."""


@dataclass(frozen=True, slots=True)
class DocumentedResponse:
    """A response that the contract documents."""

    status: str
    """A code, or a range such as `2XX`."""
    requirement: str | None
    media_types: tuple[str, ...]
    schema: Json | None
    """With extensions; None when the text shows no body."""
    example: Any

    @property
    def is_success(self) -> bool:
        """Whether it answers a served call."""
        return self.status.startswith("2")

    def covers(self, status: int) -> bool:
        """Tell whether a status code belongs to this response."""
        return self.status in (str(status), f"{status // 100}XX")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path, with everything that the contract says about it at a version."""

    id: str
    method: str
    path: str
    area: str
    summary: str
    deprecated: bool
    least_role: str
    served: Mapping[str, str]
    """Actor -> the requirement by which it is served."""
    refused: Mapping[str, str]
    """Actor -> the requirement by which it is refused."""
    paginated: str | None
    feature: str | None
    alias_of: str | None
    unsafe: str | None
    streams: str | None
    """Property of the request body that, unless false, leaves the form of the answer open."""
    has_gateway: bool
    """Whether a gateway behind the service answers, whose 502, 503 and 504 say nothing about the service."""
    parameters: tuple[Parameter, ...]
    body: Json | None
    """Schema of the request body."""
    body_example: Any
    responses: tuple[DocumentedResponse, ...]
    document: Json = field(repr=False, compare=False)
    """The document of the operation, for following references."""

    @property
    def label(self) -> str:
        """Method and path, in the usual notation."""
        return f"{self.method} {self.path}"

    @property
    def is_read(self) -> bool:
        """Whether the operation only reads."""
        return self.method == "GET"

    @property
    def is_second_name(self) -> bool:
        """Whether it is the older name of another operation, and the version has both names."""
        items = self.document["paths"].values()
        known = {item[method]["operationId"] for item in items for method in METHODS if method in item}
        return self.alias_of is not None and self.alias_of in known

    @property
    def path_parameters(self) -> tuple[Parameter, ...]:
        """The parameters in its path."""
        return tuple(parameter for parameter in self.parameters if parameter.place == "path")

    @property
    def owner(self) -> Parameter | None:
        """The parameter in its path that names a project or group; None if it has none."""
        return next((parameter for parameter in self.path_parameters if parameter.name == "id"), None)

    @property
    def is_named_by_fixtures(self) -> bool:
        """Whether fixtures of a profile are enough to fill its path."""
        return all(parameter.fixture for parameter in self.path_parameters)

    def path_with(self, values: Mapping[str, Any]) -> str:
        """Return its path with values for its parameters, each encoded as one segment."""
        path = self.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        return path

    def answers(self, record: str) -> bool:
        """Tell whether it answers with a record, given by schema name, or with a list of them."""
        schema = self.success.schema or {}
        return f"#/components/schemas/{record}" in (schema.get("$ref"), schema.get("items", {}).get("$ref"))

    @property
    def success(self) -> DocumentedResponse:
        """The first documented answer to a served call."""
        return next(response for response in self.responses if response.is_success)

    def response_to(self, status: int) -> DocumentedResponse | None:
        """Return the documented response for a status code: an exact one before a range, None if undocumented."""
        exact = next((response for response in self.responses if response.status == str(status)), None)
        return exact or next((response for response in self.responses if response.covers(status)), None)

    @property
    def takes_body_in_query(self) -> bool:
        """Whether the properties of the body may be sent in the query instead."""
        return bool(self.document["paths"][self.path][self.method.lower()].get("x-body-in-query"))

    def requirements(self) -> frozenset[str]:
        """Return every requirement that this operation's place in the document states."""
        named: set[str | None] = {*self.served.values(), *self.refused.values(), self.paginated}
        for parameter in self.parameters:
            named |= {parameter.requirement, parameter.requirement_required}
        for response in self.responses:
            named |= {response.requirement, *self.response_requirements(response)}
        return frozenset(name for name in named if name)

    def response_requirements(self, response: DocumentedResponse) -> set[str]:
        """Return the requirements that the schema of a response states."""
        return set(_requirements_in(self.document, response.schema, set())) if response.schema else set()


def read_operations(document: Json) -> tuple[Operation, ...]:
    """Read the operations of a gathered document in its order."""
    return tuple(
        _operation(document, path, method, item)
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    )


def _operation(document: Json, path: str, method: str, item: Json) -> Operation:
    node = item[method]
    authorization = node.get("x-authorization", {})
    media = _media(document, node.get("requestBody"))
    body = media.get("schema") if media else None
    stated = node.get("x-parameter-requirements", {})
    listed = [resolve(document, entry) for entry in [*item.get("parameters", []), *node.get("parameters", [])]]
    return Operation(
        id=node["operationId"],
        method=method.upper(),
        path=path,
        area=node["tags"][0],
        summary=node.get("summary", ""),
        deprecated=bool(node.get("deprecated")),
        least_role=authorization.get("least-role", "authenticated"),
        served=MappingProxyType(authorization.get("served", {})),
        refused=MappingProxyType(authorization.get("refused", {})),
        paginated=node.get("x-paginated"),
        feature=node.get("x-feature"),
        alias_of=node.get("x-alias-of"),
        unsafe=node.get("x-unsafe"),
        streams=node.get("x-streams"),
        has_gateway=bool(node.get("x-gateway")),
        parameters=(
            *(_parameter(document, entry, stated.get(entry["name"])) for entry in listed),
            *(_body_parameters(document, body) if body else ()),
        ),
        body=body,
        body_example=_example(document, media) if media else None,
        responses=tuple(_response(document, str(status), response) for status, response in node["responses"].items()),
        document=document,
    )


def _media(document: Json, body: Any) -> Json | None:
    content = resolve(document, body).get("content", {}) if body else {}
    return next(iter(content.values()), None)


def _example(document: Json, media: Json) -> Any:
    """Return the first named example of a media type; None without any."""
    return next((resolve(document, entry)["value"] for entry in media.get("examples", {}).values()), None)


def _parameter(document: Json, node: Json, requirement: str | None) -> Parameter:
    return Parameter(
        name=node["name"],
        place=node["in"],
        required=bool(node.get("required")),
        schema=resolve(document, node.get("schema", {})),
        requirement=requirement or node.get("x-requirement"),
        requirement_required=node.get("x-requirement-required"),
        fixture=node.get("x-fixture"),
    )


def _body_parameters(document: Json, body: Json) -> Iterator[Parameter]:
    schema = resolve(document, body)
    for name, node in schema.get("properties", {}).items():
        resolved = resolve(document, node)
        yield Parameter(
            name=name,
            place="body",
            required=name in schema.get("required", []),
            schema=resolved,
            requirement=resolved.get("x-requirement"),
            requirement_required=resolved.get("x-requirement-required"),
            fixture=resolved.get("x-fixture"),
        )


def _response(document: Json, status: str, node: Json) -> DocumentedResponse:
    resolved = resolve(document, node)
    content: Json = resolved.get("content", {})
    media: Json = next(iter(content.values()), {})
    return DocumentedResponse(
        status=status,
        requirement=resolved.get("x-requirement"),
        media_types=tuple(content),
        schema=media.get("schema"),
        example=_example(document, media),
    )


def _requirements_in(document: Json, node: Any, seen: set[str]) -> Iterator[str]:
    if isinstance(node, list):
        for entry in node:
            yield from _requirements_in(document, entry, seen)
    elif isinstance(node, dict):
        if isinstance(node.get("x-requirement"), str):
            yield node["x-requirement"]
        reference = node.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            yield from _requirements_in(document, resolve(document, {"$ref": reference}), seen)
        for key, value in node.items():
            if key not in ("examples", "x-requirement"):
                yield from _requirements_in(document, value, seen)
