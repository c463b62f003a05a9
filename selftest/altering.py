"""Answers of the reference that are altered on their way, for tests that need a service which does one thing wrong."""

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
    """Alter the answers of one route, such as `GET /version`, refusals among them unless only successes are wanted."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if route.key == key and (response.status < 300 or not successes_only):
            alter(request, response)
        return response

    service.transformers.append(transform)
