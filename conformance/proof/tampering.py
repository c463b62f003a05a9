"""How faults alter a service: its methods, its handlers, the requests that it gets and the responses that it sends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

Method = Callable[..., Any]
Alter = Callable[["Request", Response], None]
Holds = Callable[["Request"], bool]
Change = Callable[[dict[str, Any]], dict[str, Any]]

_NAME = re.compile(r":[^/]+")
_REFUSED = 300
_LONGEST_NUMBER_IN_USE = 8


# -- methods -----------------------------------------------------------------------------------------------------------


def does_nothing(*_: object, **__: object) -> None:
    """Replace a method, and do nothing."""


def around(thing: object, name: str, make: Callable[[Method], Method]) -> None:
    """Wrap a method of one object: `make` takes the method and returns its replacement."""
    setattr(thing, name, make(getattr(thing, name)))


def afterwards(thing: object, name: str, then: Callable[..., Any]) -> None:
    """Run something after a method.

    `then` takes the method's result and arguments; its own result, unless None, replaces that of the method.
    """

    def make(method: Method) -> Method:
        def more(*arguments: Any, **named: Any) -> Any:
            result = method(*arguments, **named)
            changed = then(result, *arguments)
            return result if changed is None else changed

        return more

    around(thing, name, make)


def beforehand(thing: object, name: str, first: Callable[..., None]) -> None:
    """Run something before a method, which may refuse the call; `first` takes the method's arguments."""

    def make(method: Method) -> Method:
        def later(*arguments: Any, **named: Any) -> Any:
            first(*arguments)
            return method(*arguments, **named)

        return later

    around(thing, name, make)


def told_otherwise(thing: object, name: str, place: int, twist: Callable[[Any], Any]) -> None:
    """Give a method another value for its argument at a position, counted from 0."""

    def make(method: Method) -> Method:
        def twisted(*arguments: Any, **named: Any) -> Any:
            said = [*arguments[:place], twist(arguments[place]), *arguments[place + 1 :]]
            return method(*said, **named)

        return twisted

    around(thing, name, make)


# -- routes ------------------------------------------------------------------------------------------------------------


def is_route(route: Route, key: str) -> bool:
    """Tell whether a route has this key, even if its parameters have other names there."""
    return _NAME.sub(":", route.key) == _NAME.sub(":", key)


def names_nothing(request: Request, name: str) -> bool:
    """Tell whether a parameter of the path is a number larger than any id in use."""
    return len(request.path[name]) > _LONGEST_NUMBER_IN_USE


def is_number(request: Request, name: str) -> bool:
    """Tell whether a parameter of the path is a number."""
    return request.path[name].isdigit()


def handling(service: Service, key: str, make: Callable[[Method], Method]) -> None:
    """Wrap the handler of a route, given by method and path, even if its parameters have other names there."""
    key = next((route.key for route in service.routes if is_route(route, key)), key)
    service.routes.change(key, handler=make(service.routes.get(key).handler))


def answering(service: Service, key: str, when: Holds, answer: Callable[[], Response]) -> None:
    """Answer some requests of a route with a given response, without handling them."""
    handling(service, key, lambda handler: lambda request: answer() if when(request) else handler(request))


def breaking(service: Service, key: str, when: Holds) -> None:
    """Answer some requests of a route with a server error."""
    answering(service, key, when, lambda: Response(500))


def refusing(service: Service, key: str, when: Holds, error: Callable[[], Exception]) -> None:
    """Refuse some requests of a route."""

    def make(handler: Method) -> Method:
        def strict(request: Request) -> Any:
            if when(request):
                raise error()
            return handler(request)

        return strict

    handling(service, key, make)


def altering(service: Service, key: str, alter: Alter) -> None:
    """Alter the successful responses of one route."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if is_route(route, key) and response.status < _REFUSED:
            alter(request, response)
        return response

    service.transformers.append(transform)


def replacing(service: Service, key: str, **values: Any) -> None:
    """Replace values in the object with which a route answers."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, **values}

    altering(service, key, alter)


def replacing_in_each(service: Service, key: str, **values: Any) -> None:
    """Replace values in every entry of the list with which a route answers."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = [{**entry, **values} for entry in content]

    altering(service, key, alter)


def with_body(_: Request, response: Response) -> None:
    """Send a body with status 204."""
    response.content, response.has_content = {"message": "204 No Content"}, True


def let_in(service: Service, when: Holds, actor: str) -> None:
    """Treat some calls, recognized before authentication, as calls of an actor."""
    admit, token = service.access.admit, service.world.actors[actor].token.encode()

    def lenient(request: Request) -> None:
        if when(request):
            request.headers[b"private-token"] = token
        admit(request)

    service.access.admit = lenient  # type: ignore[assignment, method-assign] # that is what a fault does


def done_and_refused(service: Service, key: str, when: Holds, status: int = 403) -> None:
    """Carry out some calls of a route, and then refuse them."""

    def alter(request: Request, response: Response) -> None:
        if when(request):
            response.status, response.content, response.has_content = status, {"message": "refused"}, True

    altering(service, key, alter)


# -- requests ----------------------------------------------------------------------------------------------------------


def sent(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request; an empty one if there is none."""
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def bodies(service: Service, key: str, change: Change) -> None:
    """Give a route another JSON body than the one that was sent."""

    def make(handler: Method) -> Method:
        def twisted(request: Request) -> Any:
            if request.body:
                request.body = json.dumps(change(sent(request))).encode()
            return handler(request)

        return twisted

    handling(service, key, make)


def parameters(service: Service, key: str, change: Change) -> None:
    """Give a route other parameters than those that were sent, in the body or in the query."""

    def make(handler: Method) -> Method:
        def twisted(request: Request) -> Any:
            read = request.parameters
            read._values = change(dict(read._values))  # noqa: SLF001 - a fault reaches where it must
            return handler(request)

        return twisted

    handling(service, key, make)


def without(*names: str, unless: Callable[[Any], bool] = lambda _: False) -> Change:
    """Drop values, except those for which a condition holds."""
    return lambda values: {name: value for name, value in values.items() if name not in names or unless(value)}


def flattened(*names: str) -> Change:
    """Read the values of an object as the list that should have been sent."""
    return lambda values: {
        name: list(value.values()) if name in names and isinstance(value, dict) else value
        for name, value in values.items()
    }


def taken_for(name: str, instead: Any, *, unless: Callable[[Any], bool]) -> Change:
    """Read a value as another one, unless a condition holds for it."""
    return lambda values: {**values, name: instead} if name in values and not unless(values[name]) else values


def remembering_lists(service: Service, read: str, *, added: str, removed: str) -> None:
    """Show each caller the list that it read first, until somebody adds an entry or it removes one itself.

    The three are keys of routes, such as `GET /version`.
    """
    seen: dict[tuple[int, bytes, bytes], Any] = {}

    def remembering(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            key = (request.caller.id, request.raw_path, request.query)
            return seen.setdefault(key, handler(request))

        return reading

    def make(*, is_own: bool) -> Callable[[Any], Any]:
        def forgetting(handler: Any) -> Any:
            def writing(request: Request) -> Any:
                for key in [key for key in seen if not is_own or key[0] == request.caller.id]:
                    del seen[key]
                return handler(request)

            return writing

        return forgetting

    handling(service, read, remembering)
    handling(service, added, make(is_own=False))
    handling(service, removed, make(is_own=True))
