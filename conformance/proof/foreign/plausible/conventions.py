"""Plausible faults that do not belong to one area: callers, ids and what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN
from conformance.proof.foreign.registry import foreign, instead
from conformance.reference.errors import ForbiddenError, UnauthorizedError

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(AGAIN, "Authentication: all endpoints require an authenticated caller")
def what_somebody_read_is_served_to_anybody(service: Service) -> None:
    """What was read once is remembered by its address alone: somebody without a token is served, too."""
    readers: dict[Any, Any] = {}

    @instead(service.access, "authenticate")
    def _(authenticate: Any, request: Any) -> Any:
        key = request.raw_path, request.query
        try:
            caller = authenticate(request)
        except UnauthorizedError:
            if request.method == "GET" and key in readers and not service.access.token_text(request):
                return readers[key]
            raise
        if request.method == "GET":
            readers[key] = caller
        return caller


@foreign(AGAIN, "Authentication: a refused caller elsewhere")
def a_refused_caller_is_refused_from_then_on(service: Service) -> None:
    """Who was refused once in a project is refused there for good, also what is allowed."""
    refused: set[Any] = set()

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        key = caller.id, subject and (type(subject), subject.id)
        if key in refused:
            raise ForbiddenError
        try:
            require(route, caller, subject)
        except ForbiddenError:
            refused.add(key)
            raise
