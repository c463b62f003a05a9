"""Faults of completions, and of the check whether a project has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, FORM_SENT, NEIGHBOUR
from conformance.proof.foreign.paths import POST_COMPLETIONS, POST_ENABLED
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.errors import InvalidError, StatedError
from conformance.reference.http import Response
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service


# expects code-completion.request.content-below-cursor.is-string
@foreign(NEIGHBOUR, "Code completion: completions, nothing below the cursor")
def an_empty_text_below_the_cursor_is_refused(service: Service) -> None:
    """At the end of a file, where content_below_cursor is empty, completing is refused."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        file = request.parameters._values.get("current_file")
        if isinstance(file, dict) and file.get("content_below_cursor") == "":
            raise InvalidError("content_below_cursor is empty", parameter="content_below_cursor")
        return handler(request)


# expects code-completion.completion.answered
@foreign(NEIGHBOUR, "Code completion: completions, other letters")
def content_beyond_latin_letters_is_refused(service: Service) -> None:
    """Content with characters that Latin-1 has not is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if not (wanted.content_above_cursor + wanted.content_below_cursor).encode("utf-8", "replace").isascii():
            raise InvalidError("content_above_cursor is invalid", parameter="content_above_cursor")
        return wanted


# expects code-completion.stream.off
@foreign(FORM_SENT, "Code completion: completions, stream beside intent")
def generations_are_always_streamed(service: Service) -> None:
    """With intent generation, stream false is passed over, and text comes in chunks."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.parameters._values.get("intent") == "generation" and answer.has_content:
            chunks = tuple(choice["text"].encode() for choice in answer.content["choices"])
            return Response(chunks=chunks, media_type="text/plain; charset=utf-8")
        return answer


# expects code-completion.request.project-path.is-optional
@foreign(NEIGHBOUR, "Code completion: completions, project_path in a subgroup")
def a_project_path_has_one_slash(service: Service) -> None:
    """A project_path that leads through a subgroup is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if (wanted.project_path or "").count("/") > 1:
            raise InvalidError("project_path is invalid", parameter="project_path")
        return wanted


# expects authentication.bearer-on-completions
@foreign(CALLER_AND_FORM, "Completion result: created, asked with Bearer")
def a_bearer_gets_the_moment_as_text(service: Service) -> None:
    """Callers with a Bearer token get created as an ISO 8601 text."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.header("authorization") and answer.has_content:
            answer.content = {**answer.content, "created": "2024-05-01T10:00:00Z"}
        return answer


# expects authentication.unknown-token-is-refused
@foreign(NEIGHBOUR, "Authentication: unknown token")
def a_token_may_have_something_behind_it(service: Service) -> None:
    """A token with further characters behind it is taken for the token."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = text(request)
        return next((one for one in service.identities.tokens if sent.startswith(one)), sent)


# expects code-completion.enabled.is-off
@foreign(CALLER_AND_VALUE, "Code completion: enabled, switched off, by role")
def below_maintainers_off_is_unknown(service: Service) -> None:
    """A caller below the Maintainer role gets 404 instead of 403 for a project where the feature is off."""

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except StatedError as error:
            project = service.identities.find_project(str(request.parameters._values.get("project_path")))
            if project is None or service.identities.role_in(request.caller, project) >= Role.MAINTAINER:
                raise
            raise StatedError(404, "404 Project Not Found") from error


# expects limits.completions.refused-above-rate
@foreign(CALLER_AND_FORM, "Limits: completions, by way of authentication")
def only_bearers_are_limited(service: Service) -> None:
    """The rate limit counts the requests with a Bearer token alone."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if not request.header("authorization"):
            service.code_completion.requests.pop(request.caller.id, None)
        return handler(request)


# expects limits.completions.served-below-rate
@foreign(CALLER_AND_FORM, "Limits: completions, checks beside them")
def checks_draw_on_the_limit(service: Service) -> None:
    """A check whether completions are enabled counts as a request for a completion."""

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            service.code_completion.count(request.caller)
        return answer
