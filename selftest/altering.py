"""Watch the calls to a reference, or alter its responses, for tests that need a service with exactly one fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


def called(service: Service) -> list[str]:
    """Return a list that gets the key of each route that is called from now on, such as `GET /version`."""
    keys: list[str] = []

    def note(route: Route, _: Request, response: Response) -> Response:
        keys.append(route.key)
        return response

    service.transformers.append(note)
    return keys


def altering(
    service: Service, key: str, alter: Callable[[Request, Response], None], *, successes_only: bool = False
) -> None:
    """Alter the responses of one route, such as `GET /version`, including refusals unless `successes_only` is set."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if route.key == key and (response.status < 300 or not successes_only):
            alter(request, response)
        return response

    service.transformers.append(transform)
