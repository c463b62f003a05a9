"""Plausible faults in completions, and in the check whether a project has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_VALUE, FORM_SENT, NEIGHBOUR, STORY
from conformance.proof.foreign.paths import POST_COMPLETIONS
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import InvalidError, StatedError
from conformance.reference.http import Response
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(NEIGHBOUR, "Code completion: enabled, unknown project")
def an_unknown_project_of_an_enabled_group_is_enabled(service: Service) -> None:
    """For an unknown project, the group of the path decides: 200 or 403 instead of 404."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        group = service.identities.find_group(path.rpartition("/")[0]) if "/" in path else None
        if group is not None and service.identities.find_project(path) is None:
            if service.code_completion.switches.get((Kind.GROUP, group.id)):
                return
            raise StatedError(403, "403 Forbidden")
        check(caller, path)


@foreign(STORY, "Code completion: enabled for the project")
def the_project_alone_never_suffices(service: Service) -> None:
    """The feature counts as enabled only if the group has it on as well: "and" where the text says "or"."""

    @instead(service.code_completion, "enabled")
    def _(enabled: Any, project: Any) -> bool:
        switches = service.code_completion.switches
        around = any(switches.get((Kind.GROUP, one.id)) for one in service.identities.lineage(project))
        return bool(enabled(project)) and around


@foreign(AGAIN, "Code completion: enabled, one project after another")
def the_last_answer_is_given_to_the_same_caller_again(service: Service) -> None:
    """The check is remembered by caller: the second project that somebody asks for gets the answer of the first."""
    known: dict[int, Any] = {}

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if caller.id not in known:
            try:
                check(caller, path)
                known[caller.id] = None
            except StatedError as error:
                known[caller.id] = error
        if known[caller.id] is not None:
            raise known[caller.id]


@foreign(CALLER_AND_VALUE, "Code completion: completions, intent generation")
def generation_takes_nothing_below_the_cursor(service: Service) -> None:
    """Intent generation is refused if content_below_cursor is sent."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and wanted.content_below_cursor:
            raise InvalidError("content_below_cursor is invalid", parameter="content_below_cursor")
        return wanted


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


@foreign(NEIGHBOUR, "Code completion: completions, project_path in a subgroup")
def a_project_path_has_one_slash(service: Service) -> None:
    """A project_path that leads through a subgroup is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if (wanted.project_path or "").count("/") > 1:
            raise InvalidError("project_path is invalid", parameter="project_path")
        return wanted
