"""Variants in which paths, parameters and bodies a service accepts, and the alterations that make them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from conformance.contract import Contract, Version
from conformance.proof.variants.variant import Variant
from conformance.reference.errors import InvalidError, NoRouteError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response


def refuses_what_is_not_documented(service: Service) -> None:
    """Refuse parameters that an operation does not document, in query and body."""
    contract = Contract.load()
    known = {
        (operation.method, operation.path.replace("{", ":").replace("}", "")): operation
        for operation in contract.operations(Version.parse(str(service.version)))
    }
    for route in list(service.routes):
        operation = known.get((route.method, route.path))
        if operation is None or operation.area == "versions":
            continue
        if operation.area == "integrations" and not operation.is_read:
            continue  # the parameters depend on the integration
        query = {parameter.name for parameter in operation.parameters if parameter.place == "query"}
        body = {parameter.name for parameter in operation.parameters if parameter.place == "body"}
        # Before 15.3 the lists of rules are described without pages.
        service.routes.change(route.key, handler=_strict(route.handler, query | body))


def _strict(handler: Callable[[Request], Response], allowed: set[str]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        names = [name.removesuffix("[]") for name in parse_qs(request.query.decode("latin-1"), keep_blank_values=True)]
        unknown = [name for name in names if name not in allowed]
        try:
            body = json.loads(request.body or b"{}")
        except ValueError:
            body = {}
        unknown += [name for name in body if name not in allowed] if isinstance(body, dict) else []
        if unknown:
            raise InvalidError(f"{unknown[0]} is not a parameter")
        return handler(request)

    return handled


def reads_numbers_as_far_as_they_go(service: Service) -> None:
    """Read the id of a rule, a merge request or a target up to the first character that is not a digit."""

    def reading(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def handled(request: Request) -> Response:
            for name, text in request.path.items():
                digits = text[: len(text) - len(text.lstrip("0123456789"))]
                if name.endswith(("_id", "_iid")) and digits:
                    request.path[name] = digits
            return handler(request)

        return handled

    for route in list(service.routes):
        if "_id" in route.path or "_iid" in route.path:
            service.routes.change(route.key, handler=reading(route.handler))


def reads_a_plus_sign_as_itself(service: Service) -> None:
    """Read a plus sign in a query as one, as in any other part of an address; a blank is %20 alone."""
    admit = service.access.admit

    def admit_as_written(request: Any) -> None:
        request.query = request.query.replace(b"+", b"%2B")
        admit(request)

    service.access.admit = admit_as_written


def takes_no_body_where_none_is_described(service: Service) -> None:
    """Refuse a body, even an empty object, for an operation without documented body parameters."""
    contract = Contract.load()
    bare = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in contract.operations(Version.parse(str(service.version)))
        if operation.area not in ("integrations", "versions")
        and not any(parameter.place == "body" for parameter in operation.parameters)
    }
    for route in list(service.routes):
        if (route.method, route.path) in bare:
            service.routes.change(route.key, handler=_without_body(route.handler))


def asks_for_a_body_where_one_is_described(service: Service) -> None:
    """Refuse a call without a body if a body is documented, even if all of it is optional."""
    contract = Contract.load()
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in contract.operations(Version.parse(str(service.version)))
        if operation.body is not None and not operation.takes_body_in_query
    }
    for route in list(service.routes):
        if (route.method, route.path) in described:
            service.routes.change(route.key, handler=_with_body(route.handler))


def _with_body(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        if not request.body:
            raise InvalidError("takes an object")
        return handler(request)

    return handled


def _without_body(handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
    def handled(request: Request) -> Response:
        if request.body:
            raise InvalidError("takes no body")
        return handler(request)

    return handled


def finds_paths_in_any_case(service: Service) -> None:
    """Find projects, groups and users by their names case-insensitively."""
    identities: Any = service.identities

    def in_any_case(find: Callable[[str], Any], known: Callable[[], list[str]]) -> Callable[[str], Any]:
        def found(name: str) -> Any:
            return find(name) or next((find(one) for one in known() if one.lower() == name.lower()), None)

        return found

    def paths(table: str) -> Callable[[], list[str]]:
        return lambda: [one.full_path for one in getattr(identities, table).values()]

    identities.find_project = in_any_case(identities.find_project, paths("projects"))
    identities.find_group = in_any_case(identities.find_group, paths("groups"))
    identities.find_username = in_any_case(
        identities.find_username, lambda: [user.username for user in identities.users.values()]
    )


def has_only_what_is_documented(service: Service) -> None:
    """Serve only what the text describes; every other path is unknown to the service."""
    described = {
        (operation.method, operation.path.replace("{", ":").replace("}", ""))
        for operation in Contract.load().operations(Version.parse(str(service.version)))
    }

    def is_no_path(_: Request) -> Response:
        raise NoRouteError

    for route in list(service.routes):
        slug = route.path.replace(":slug", ":integration_slug")
        if route.method == "GET" and (route.method, slug) not in described:
            service.routes.change(route.key, handler=is_no_path)


VARIANTS = (
    Variant(
        "documented-parameters-only",
        "Parameters that an operation is not described with are refused, in query and body.",
        alterations=(refuses_what_is_not_documented,),
    ),
    Variant(
        "numbers-as-far-as-they-go",
        "Numbers in a path may have letters behind them.",
        alterations=(reads_numbers_as_far_as_they_go,),
    ),
    Variant(
        "no-body-where-none-is-described",
        "Operations without a parameter take no body, not even an empty object; the others ask for one.",
        alterations=(takes_no_body_where_none_is_described, asks_for_a_body_where_one_is_described),
    ),
    Variant(
        "names-in-any-case",
        "Projects, groups and people are found by their names in any case.",
        alterations=(finds_paths_in_any_case,),
    ),
    Variant(
        "plus-signs-are-no-blanks",
        "A plus sign in a query is one, and no blank.",
        alterations=(reads_a_plus_sign_as_itself,),
    ),
)
