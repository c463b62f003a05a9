"""Alter responses of the reference before they are sent, for tests that need a service with exactly one fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


def altering(
    service: Service, key: str, alter: Callable[[Request, Response], None], *, successes_only: bool = False
) -> None:
    """Alter the responses of one route, such as `GET /version`, including refusals unless `successes_only` is set."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if route.key == key and (response.status < 300 or not successes_only):
            alter(request, response)
        return response

    service.transformers.append(transform)
