"""Plausible faults that do not belong to one area: callers, ids and what is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    NEIGHBOUR,
)
from conformance.proof.foreign.paths import (
    POST_ENABLED,
)
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.errors import (
    ForbiddenError,
    UnauthorizedError,
)
from conformance.reference.http import Response

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


@foreign(NEIGHBOUR, "Conventions: content type of empty lists")
def an_empty_list_is_plain_text(service: Service) -> None:
    """An empty list is sent as text/plain."""

    def transform(_route: Any, _request: Any, answer: Any) -> Any:
        if answer.has_content and answer.content == []:
            answer.media_type = "text/plain"
        return answer

    service.transformers.append(transform)


@foreign(AGAIN, "Authentication: anonymous after somebody else")
def answers_are_remembered_for_anybody(service: Service) -> None:
    """What was read once with a token is served from memory to callers without one, at the same address."""
    seen: dict[tuple[bytes, bytes], Any] = {}

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        try:
            admit(request)
        except UnauthorizedError:
            known = seen.get((request.raw_path, request.query))
            if request.method != "GET" or known is None or service.access.token_text(request):
                raise
            request.admit(*known)
        else:
            if request.method == "GET" and request._caller is not None:
                seen[request.raw_path, request.query] = request._caller, request._subject


@foreign(NEIGHBOUR, "Conventions: characters beyond ASCII in answers")
def other_characters_are_not_utf_8(service: Service) -> None:
    """Characters beyond ASCII are written in Latin-1, so that the answer is no JSON."""

    def transform(_route: Any, _request: Any, answer: Any) -> Any:
        if not answer.has_content:
            return answer
        text = orjson.dumps(answer.content).decode()
        if text.isascii():
            return answer
        raw = text.encode("latin-1", "replace")
        return Response(answer.status, raw=raw, headers=answer.headers)

    service.transformers.append(transform)


@foreign(NEIGHBOUR, "Authentication: unknown token")
def a_token_may_have_something_behind_it(service: Service) -> None:
    """A token with further characters behind it is taken for the token."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = text(request)
        return next((one for one in service.identities.tokens if sent.startswith(one)), sent)


@foreign(CALLER_AND_FORM, "Limits: completions, checks beside them")
def checks_draw_on_the_limit(service: Service) -> None:
    """A check whether completions are enabled counts as a request for a completion."""

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            service.code_completion.count(request.caller)
        return answer
