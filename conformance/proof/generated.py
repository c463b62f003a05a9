"""Faults that follow from the contract: one place of a schema broken, one status, one role, one parameter, one page."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.contract.bundle import Json, resolve
from conformance.proof.faults import Fault
from conformance.proof.tampering import altering, is_route, let_in, sent, with_body
from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.contract import Contract, DocumentedResponse, Operation, Parameter, Version
    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

Place = tuple[str, ...]
Spoil = Callable[[Json, str], None]

_ANY_ENTRY = "*"
#: What the reference leaves empty at some versions, so that no fault can alter anything in it.
_EMPTY_AT = dict.fromkeys(
    (("createGroupApprovalRule", "protected_branches"), ("updateGroupApprovalRule", "protected_branches")),
    ("12.3", "14.4", "15.2"),
)
_DEEPEST = 6
_OTHER_TYPES: dict[str, Any] = {
    "string": {"not": "a string"},
    "integer": "not-a-number",
    "number": "not-a-number",
    "boolean": "perhaps",
    "array": {"not": "an array"},
    "object": "not-an-object",
}

#: A fault that refuses everybody with this makes the operation look absent: a whole run reports that separately.
_TAKEN_FOR_ABSENT = (
    "listJobTokenAllowlist",
    "listJobTokenGroupsAllowlist",
    "getProjectApprovalConfiguration",
    "listMergeRequestApprovalRules",
)
#: The kind of the faults that come from a schema of the contract.
_SCHEMA = "schema"


def generated(contract: Contract, version: Version) -> Iterator[Fault]:
    """Yield the faults of every operation that the suite calls at a version."""
    for operation in contract.operations(version):
        if operation.unsafe:
            continue
        for fault in _of_operation(operation, version):
            requirement = contract.requirements.get(fault.requirement)
            if requirement and requirement.tested and requirement.level == "must" and requirement.applies_to(version):
                yield replace(fault, operation=operation.id, sort=fault.sort if fault.sort == _SCHEMA else "rule")


def _of_operation(operation: Operation, version: Version) -> Iterator[Fault]:
    yield from _status_faults(operation)
    for response in operation.responses:
        if response.schema is not None and response.is_success and any("json" in kind for kind in response.media_types):
            yield from _schema_faults(operation, response, version)
            break
    yield from _role_faults(operation)
    yield from _parameter_faults(operation)
    if operation.paginated:
        yield from _page_faults(operation)


def route_key(operation: Operation) -> str:
    """Return the key of an operation in the reference: its path parameters are written with a colon."""
    path = re.sub(r"{([^}]+)}", r":\1", operation.path)
    return f"{operation.method} {path}"


# -- schemas ---------------------------------------------------------------------------------------------------------


def _schema_faults(operation: Operation, response: DocumentedResponse, version: Version) -> Iterator[Fault]:
    for place, schema, required, requirement, around in _places(operation.document, response):
        if len(place) > 1 and str(version) in _EMPTY_AT.get((operation.id, place[0]), ()):
            continue
        where = "/".join(place)
        for kind, spoil in _spoilers(operation.document, schema, required=required):
            # What is missing does not violate what another area says of the record that it would be.
            is_lacking = kind == "missing" and requirement.partition(".")[0] != around.partition(".")[0]
            yield Fault(
                f"{operation.id}: {where} {kind}",
                around if is_lacking else requirement,
                f"{operation.label} answers with {where} {kind}.",
                _spoiling(route_key(operation), place, spoil),
                sort=_SCHEMA,
                prop=place[-1],
            )


def _places(document: Json, response: DocumentedResponse) -> Iterator[tuple[Place, Json, bool, str, str]]:
    """Yield every property of a response: its path, schema, whether it is required, its requirement, its record's."""

    def walk(node: Any, place: Place, above: str | None, depth: int) -> Iterator[tuple[Place, Json, bool, str, str]]:
        schema = resolve(document, node)
        own = schema.get("x-requirement", above)
        if depth > _DEEPEST:
            return
        # If the contract also allows a single entry instead of a list, the reference answers with the list.
        schema = next((part for part in schema.get("anyOf", ()) if "items" in part), schema)
        if "items" in schema:
            yield from walk(schema["items"], (*place, _ANY_ENTRY), own, depth + 1)
            return
        for part in schema.get("allOf", ()):
            yield from walk(part, place, own, depth + 1)
        for name, child in schema.get("properties", {}).items():
            inner = resolve(document, child)
            requirement = inner.get("x-requirement", own)
            if requirement:
                yield (*place, name), inner, name in schema.get("required", ()), requirement, own or requirement
            yield from walk(child, (*place, name), own, depth + 1)

    yield from walk(response.schema, (), response.requirement, 0)


def _spoilers(document: Json, schema: Json, *, required: bool) -> Iterator[tuple[str, Spoil]]:
    types = _types(document, schema)
    if required:
        yield "missing", lambda entry, name: entry.pop(name, None)
    if types and "null" not in types:
        yield "null", _setting(None)
    if types:
        wrong = next((value for kind, value in _OTHER_TYPES.items() if kind in types), None)
        if wrong is not None and not {"string", "object"} <= types:
            yield "of another type", _setting(wrong)
    if "enum" in schema and "string" in types:
        yield "outside its values", _setting("no-such-value")


def _types(document: Json, schema: Json) -> set[str]:
    resolved = resolve(document, schema)
    own = resolved.get("type", [])
    found = {own} if isinstance(own, str) else set(own)
    for word in ("anyOf", "oneOf", "allOf"):
        for part in resolved.get(word, ()):
            found |= _types(document, part)
    return found


def _setting(value: Any) -> Spoil:
    def spoil(entry: Json, name: str) -> None:
        entry[name] = value

    return spoil


def _spoiling(key: str, place: Place, spoil: Spoil) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def alter(_: Request, response: Response) -> None:
            response.content = copy.deepcopy(response.content)
            for entry in _entries(response.content, place[:-1]):
                if place[-1] in entry:
                    spoil(entry, place[-1])

        altering(service, key, alter)

    return apply


def _entries(content: Any, place: Place) -> Iterator[Json]:
    if not place:
        if isinstance(content, dict):
            yield content
    elif place[0] == _ANY_ENTRY:
        if isinstance(content, list):
            for entry in content:
                yield from _entries(entry, place[1:])
    elif isinstance(content, dict) and place[0] in content:
        yield from _entries(content[place[0]], place[1:])


# -- status ----------------------------------------------------------------------------------------------------------


def _status_faults(operation: Operation) -> Iterator[Fault]:
    response = operation.success
    if not response.requirement:
        return
    documented = [other.status for other in operation.responses]
    wrong = 500 if "2XX" in documented else next(code for code in (206, 203) if str(code) not in documented)

    def other_status(_: Request, answer: Response) -> None:
        answer.status = wrong
        answer.has_content = True

    yield Fault(
        f"{operation.id}: status {wrong}",
        response.requirement,
        f"{operation.label} answers {wrong} instead of {response.status}.",
        lambda service: altering(service, route_key(operation), other_status),
    )

    def refused(_: Request, answer: Response) -> None:
        answer.status, answer.content, answer.has_content = 404, {"message": "404 Not Found"}, True

    if operation.id not in _TAKEN_FOR_ABSENT:
        yield Fault(
            f"{operation.id}: refuses everybody",
            response.requirement,
            f"{operation.label} carries out the call, but answers 404.",
            lambda service: altering(service, route_key(operation), refused),
        )
    if response.status == "204":
        yield Fault(
            f"{operation.id}: 204 with a body",
            response.requirement,
            f"{operation.label} answers 204 and sends a body.",
            lambda service: altering(service, route_key(operation), with_body),
        )


# -- roles -----------------------------------------------------------------------------------------------------------


def _role_faults(operation: Operation) -> Iterator[Fault]:
    key = route_key(operation)
    for actor, requirement in operation.refused.items():
        yield Fault(
            f"{operation.id}: lets {actor} in",
            requirement,
            f"{operation.label} serves {actor} like the owner.",
            _letting_in(key, actor, _privileged(operation)),
        )
        if "{id}" in operation.path:
            yield Fault(
                f"{operation.id}: lets {actor} in by the path",
                requirement,
                f"{operation.label} serves {actor} like the owner if the project or group is named by path.",
                _letting_in(key, actor, _privileged(operation), when=_names_by_path),
            )
    for actor, requirement in operation.served.items():
        yield Fault(
            f"{operation.id}: keeps {actor} out",
            requirement,
            f"{operation.label} refuses {actor}.",
            _keeping_out(key, actor),
        )
        if "{id}" in operation.path and len(operation.served) > 1:
            yield Fault(
                f"{operation.id}: keeps {actor} out by the path",
                requirement,
                f"{operation.label} refuses {actor} if the project or group is named by path.",
                _keeping_out(key, actor, when=_names_by_path),
            )


def _privileged(operation: Operation) -> str:
    """Return an actor for whom the operation is served."""
    return next(iter(operation.served), "owner")


def _names_by_path(request: Request) -> bool:
    return not request.path["id"].isdigit()


def _in_any_form(_: Request) -> bool:
    return True


def _letting_in(
    key: str, actor: str, privileged: str, when: Callable[[Request], bool] = _in_any_form
) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        actors = service.world.actors
        known = {record.token for record in actors.values()}

        def is_actor(request: Request) -> bool:
            token = service.access.token_text(request)
            if actor == "anonymous":
                return not token
            return bool(token) and token not in known if actor == "wrong-token" else token == actors[actor].token

        let_in(
            service,
            lambda request: is_route(request.route, key) and when(request) and is_actor(request),
            privileged,
        )

    return apply


def _keeping_out(key: str, actor: str, when: Callable[[Request], bool] = _in_any_form) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        from conformance.reference.errors import ForbiddenError  # noqa: PLC0415 - the engine needs it nowhere else

        admit, actors = service.access.admit, service.world.actors

        def strict(request: Request) -> None:
            admit(request)
            is_kept_out = is_route(request.route, key) and when(request)
            if is_kept_out and service.access.token_text(request) == actors[actor].token:
                raise ForbiddenError

        service.access.admit = strict  # type: ignore[assignment, method-assign]

    return apply


# -- parameters ------------------------------------------------------------------------------------------------------


def _parameter_faults(operation: Operation) -> Iterator[Fault]:
    for parameter in operation.parameters:
        if parameter.place != "body":
            continue
        if parameter.requirement_required:
            yield Fault(
                f"{operation.id}: does without {parameter.name}",
                parameter.requirement_required,
                f"{operation.label} accepts a call without {parameter.name}.",
                _accepting(operation, _is_missing(parameter.name)),
            )
            yield Fault(
                f"{operation.id}: breaks without {parameter.name}",
                parameter.requirement_required,
                f"{operation.label} causes a server error without {parameter.name}.",
                _breaking_on(operation, _is_missing(parameter.name)),
            )
        wrong = _is_of_wrong_type(operation.document, parameter)
        may_drop = not parameter.required or "dropped" in parameter.schema.get("x-tolerates", ())
        if parameter.requirement and wrong:
            yield Fault(
                f"{operation.id}: breaks on a wrong {parameter.name}",
                parameter.requirement,
                f"{operation.label} causes a server error with an invalid {parameter.name}.",
                _breaking_on(operation, wrong),
            )
        if parameter.requirement and wrong and not may_drop:
            yield Fault(
                f"{operation.id}: takes any {parameter.name}",
                parameter.requirement,
                f"{operation.label} accepts a {parameter.name} of any type.",
                _accepting(operation, wrong),
            )


def _breaking_on(operation: Operation, is_faulty: Callable[[Json], bool]) -> Callable[[Service], None]:
    """Answer calls with some bodies with a server error, whether they were done or refused."""

    def apply(service: Service) -> None:
        def transform(route: Route, request: Request, response: Response) -> Response:
            if is_route(route, route_key(operation)) and is_faulty(sent(request)):
                return Response(500)
            return response

        service.transformers.append(transform)

    return apply


def _is_missing(name: str) -> Callable[[Json], bool]:
    return lambda body: name not in body


def _is_of_wrong_type(document: Json, parameter: Parameter) -> Callable[[Json], bool] | None:
    types = _types(document, parameter.schema)
    plain: dict[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    allowed = tuple(plain[kind] for kind in types if kind in plain)
    if not allowed:
        return None
    return lambda body: parameter.name in body and not isinstance(body[parameter.name], allowed)


def _accepting(operation: Operation, is_faulty: Callable[[Json], bool]) -> Callable[[Service], None]:
    """Answer with the documented success where an invalid call was refused."""
    success = operation.success
    status = 200 if success.status == "2XX" else int(success.status)

    def apply(service: Service) -> None:
        def transform(route: Route, request: Request, response: Response) -> Response:
            if is_route(route, route_key(operation)) and 400 <= response.status < 500 and is_faulty(sent(request)):  # noqa: PLR2004
                response.status = status
                response.content, response.has_content = success.example, success.example is not None
            return response

        service.transformers.append(transform)

    return apply


# -- pages -----------------------------------------------------------------------------------------------------------


def _page_faults(operation: Operation) -> Iterator[Fault]:
    key = route_key(operation)
    requirement = operation.paginated or ""

    def paging(name: str, says: str, read: Callable[[bytes], bytes]) -> Fault:
        return Fault(f"{operation.id}: {name}", requirement, f"{operation.label} {says}", _paging(key, read))

    yield paging("ignores per_page", "ignores per_page.", lambda query: _replace(query, b"per_page", b"100"))
    yield paging(
        "repeats its first page", "answers every page with the first one.", lambda query: _replace(query, b"page", b"1")
    )

    def skip_last(_: Request, response: Response) -> None:
        if isinstance(response.content, list):
            response.content = response.content[:-1]

    yield Fault(
        f"{operation.id}: skips the last entry of a page",
        requirement,
        f"{operation.label} leaves the last entry out of each page.",
        lambda service: altering(service, key, skip_last),
    )

    def lose_last(_: Request, response: Response) -> None:
        headers = response.headers
        if isinstance(response.content, list) and headers.get("x-prev-page") and not headers.get("x-next-page"):
            response.content = response.content[:-1]

    yield Fault(
        f"{operation.id}: loses the last entry of all",
        requirement,
        f"{operation.label} leaves the last entry out of the last of several pages.",
        lambda service: altering(service, key, lose_last),
    )


def _replace(query: bytes, name: bytes, value: bytes) -> bytes:
    return re.sub(rb"(^|&)" + name + rb"=[^&]*", rb"\1" + name + b"=" + value, query)


def _paging(key: str, read: Callable[[bytes], bytes]) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        admit = service.access.admit

        def rewriting(request: Request) -> None:
            if is_route(request.route, key):
                request.query = read(request.query)
            admit(request)

        service.access.admit = rewriting  # type: ignore[assignment, method-assign]

    return apply
