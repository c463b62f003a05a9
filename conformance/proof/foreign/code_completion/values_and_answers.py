"""What a request for completions may contain, and what the response contains."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import with_parameters
from conformance.proof.foreign.dimensions import FORM_SENT, MOMENT_OR_ADDRESS, NEIGHBOUR, STORY
from conformance.proof.foreign.paths import POST_COMPLETIONS, POST_ENABLED
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.code_completion import CompletionRequest
from conformance.reference.errors import InvalidError, StatedError
from conformance.reference.http import Response
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service


# -- completions -------------------------------------------------------------------------------------------------------


# The allowed values of intent are the same for every project.
@foreign(FORM_SENT, "Code completion: intent and project_path")
def completions_for_a_project_take_any_intent(service: Service) -> None:
    """If project_path is sent, it is checked instead of intent."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("project_path"):
            request.parameters._values = {name: value for name, value in values.items() if name != "intent"}
        return handler(request)


@foreign(MOMENT_OR_ADDRESS, "Completion result: created")
def completions_are_made_in_milliseconds(service: Service) -> None:
    """The time of a completion is in milliseconds; the text says seconds."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        shown = complete(wanted)
        return {**shown, "created": shown["created"] * 1000}


# Content below the cursor may be sent with any intent.
@foreign(FORM_SENT, "Code completion: intent and content_below_cursor")
def a_generation_takes_no_text_below_the_cursor(service: Service) -> None:
    """A request with the intent generation is refused if it contains content below the cursor."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and wanted.content_below_cursor:
            raise InvalidError("content_below_cursor is not for generations", parameter="content_below_cursor")
        return wanted


# The time is a number in every response.
@foreign(NEIGHBOUR, "Completion result: created")
def completions_for_a_project_tell_their_time_as_text(service: Service) -> None:
    """If project_path is sent, created is a string with the seconds."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        made = complete(wanted)
        return {**made, "created": str(made["created"])} if wanted.project_path else made


@foreign(FORM_SENT, "Code completion: intent, stream")
def generations_cannot_be_streamed(service: Service) -> None:
    """A request to stream a generation is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.stream and wanted.intent == "generation":
            raise InvalidError("stream does not have a valid value")
        return wanted


# The allowed values of intent are the same, whether or not the response is streamed.
@foreign(FORM_SENT, "Code completion: intent and stream")
def streamed_completions_take_any_intent(service: Service) -> None:
    """A stream starts before intent has been checked."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("stream") is True:
            request.parameters._values = {name: value for name, value in values.items() if name != "intent"}
        return handler(request)


@foreign(FORM_SENT, "Code completion: stream, default false")
def generations_stream_unless_told_otherwise(service: Service) -> None:
    """A request with the intent generation and without stream is answered with a stream."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("intent") == "generation" and "stream" not in values:
            with_parameters(request, {"stream": True})
        return handler(request)


@foreign(NEIGHBOUR, "Code completion: intent, allowed values")
def intents_may_be_capitals_between_blanks(service: Service) -> None:
    """The intent is trimmed and lower-cased before it is compared with the allowed values."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        intent = request.parameters._values.get("intent")
        if isinstance(intent, str):
            with_parameters(request, {"intent": intent.strip().lower()})
        return handler(request)


# false is the default, and means the same if it is sent.
@foreign(NEIGHBOUR, "Code completion: stream")
def a_completion_that_shall_not_be_streamed_is(service: Service) -> None:
    """The response is streamed if `stream` is sent at all, even as false."""

    @handling(service, "POST /code_suggestions/completions")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("stream") is not None:
            request.parameters._values = {**values, "stream": True}
        return handler(request)


# With content on both sides of the cursor, another model answers in another form.
@foreign(STORY, "Completion result: choices, finish_reason")
def what_fills_a_gap_has_no_reason_to_finish(service: Service) -> None:
    """With content below the cursor, finish_reason is null; it must be a string."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        shown = complete(wanted)
        if wanted.content_below_cursor:
            shown["choices"] = [{**choice, "finish_reason": None} for choice in shown["choices"]]
        return shown


# A response is streamed only on request.
@foreign(FORM_SENT, "Code completion: stream and intent")
def generations_are_streamed_unasked(service: Service) -> None:
    """A generation takes long, so it is always sent in chunks, and not as a completion result."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        return replace(wanted, stream=wanted.stream or wanted.intent == "generation")


# The content above the cursor may contain any characters.
@foreign(NEIGHBOUR, "Code completion: content_above_cursor")
def code_with_other_letters_is_not_completed(service: Service) -> None:
    """The gateway is called in ASCII, so a file with an umlaut above the cursor is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if not wanted.content_above_cursor.isascii():
            raise InvalidError("current_file is invalid", parameter="current_file")
        return wanted


# The prompt template for generations requires content below the cursor.
@foreign(FORM_SENT, "Code completion: content_below_cursor, optional; intent")
def code_is_generated_only_above_something(service: Service) -> None:
    """A request with the intent generation and without content_below_cursor is refused."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and not parameters.nested("current_file").given("content_below_cursor"):
            raise InvalidError("content_below_cursor is missing", parameter="content_below_cursor")
        return wanted


@foreign(NEIGHBOUR, "Code completion: intent")
def intents_in_other_case_are_taken(service: Service) -> None:
    """An intent in upper case is accepted; only two values are allowed, in lower case."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        intent = parameters.optional_string("intent")
        if intent and intent != intent.lower():
            parameters._values = {**parameters._values, "intent": intent.lower()}  # unchanged
        return read(parameters)


# Content below the cursor may be sent with either intent.
@foreign(FORM_SENT, "Code completion: intent and content_below_cursor")
def a_generation_has_nothing_below(service: Service) -> None:
    """A generation is refused if the file continues below the cursor."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        file = request.parameters.nested("current_file")
        if request.parameters.optional_string("intent") == "generation" and file.optional_string(
            "content_below_cursor"
        ):
            raise InvalidError("content_below_cursor is not allowed", parameter="content_below_cursor")
        return handler(request)


# A result names the engine, whatever the project.
@foreign(FORM_SENT, "Completion result: model")
def the_model_of_a_project_has_no_engine(service: Service) -> None:
    """If project_path is sent, the model is described only by its name."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        result = complete(wanted)
        if wanted.project_path:
            result["model"] = {"name": result["model"]["name"]}
        return result


# A file name is a string of any characters.
@foreign(FORM_SENT, "Code completion: current_file, file_name")
def names_of_files_travel_in_a_header(service: Service) -> None:
    """A file name is passed to the backend in a header; characters outside Latin-1 cause a server error."""

    @handling(service, POST_COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        request.parameters.nested("current_file").string("file_name").encode("latin-1")
        return answer


# false is also the default.
@foreign(NEIGHBOUR, "Code completion: stream")
def a_stream_that_is_not_wanted_is_sent(service: Service) -> None:
    """The response is streamed whenever stream is sent, even as false."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        return replace(read(parameters), stream=parameters.given("stream"))


@foreign(FORM_SENT, "Code completion: POST completions")
def generating_needs_what_follows(service: Service) -> None:
    """A generation without content_below_cursor is refused; this parameter is optional for every intent."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.intent == "generation" and not wanted.content_below_cursor:
            raise InvalidError("content_below_cursor is missing")
        return wanted


@foreign(FORM_SENT, "Code completion: completions")
def a_generation_needs_no_content(service: Service) -> None:
    """With the intent generation, a file without content_above_cursor is accepted, which is always required."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        try:
            return read(parameters)
        except InvalidError:
            file = parameters.nested("current_file")
            if parameters.optional_string("intent") != "generation" or file.given("content_above_cursor"):
                raise
            return CompletionRequest(
                file_name=file.string("file_name"),
                content_above_cursor="",
                content_below_cursor=file.optional_string("content_below_cursor") or "",
                intent="generation",
                stream=False,
                project_path=None,
            )


@foreign(NEIGHBOUR, "Code completion: content_above_cursor")
def content_of_blanks_is_no_content(service: Service) -> None:
    """content_above_cursor is checked after trimming: indentation or a line end counts as missing."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        wanted = read(parameters)
        if wanted.content_above_cursor.isspace():
            raise InvalidError("current_file.content_above_cursor is missing")
        return wanted


@foreign(NEIGHBOUR, "Code completion: intent, allowed values")
def an_empty_intent_is_taken(service: Service) -> None:
    """An intent is compared with the allowed values only if it is not empty, so an empty text is accepted."""

    @instead(service.code_completion, "read")
    def _(read: Any, parameters: Any) -> Any:
        if parameters._values.get("intent") == "":
            parameters._values = {name: value for name, value in parameters._values.items() if name != "intent"}
        return read(parameters)


# -- the check whether they are enabled --------------------------------------------------------------------------------


# Only a missing project is answered with 404; an existing one is enabled, or disabled with 403.
@foreign(FORM_SENT, "Code completion: enabled, 404")
def projects_in_subgroups_are_unknown_to_the_check(service: Service) -> None:
    """The check answers for a project in a subgroup that it does not exist."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if path.count("/") > 1:
            raise StatedError(404, "404 Project Not Found")
        check(caller, path)


@foreign(NEIGHBOUR, "Code completion: POST enabled, 404 for an unknown project")
def a_missing_project_is_as_the_group_around_it(service: Service) -> None:
    """A path in a known group without such a project is answered according to the group's settings."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        group = service.identities.find_group(path.rpartition("/")[0])
        if group is None or service.identities.find_project(path) is not None:
            check(caller, path)
        elif not service.code_completion.switches.get((Kind.GROUP, group.id), False):
            raise StatedError(403, "403 Forbidden")


@foreign(NEIGHBOUR, "Code completion: POST enabled, 404 for an unknown project")
def a_project_is_checked_by_its_last_name(service: Service) -> None:
    """The project is looked up by the last part of the path, so it is also found below any other group."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if service.identities.find_project(path) is None and "/" in path:
            named = [p for p in service.identities.projects.values() if p.path == path.rpartition("/")[2]]
            path = named[0].full_path if named else path
        check(caller, path)


# The project exists, in whatever namespace.
@foreign(NEIGHBOUR, "Code completion: POST enabled")
def projects_of_a_user_are_unknown_to_the_check(service: Service) -> None:
    """The check first looks for the group of a project, so a personal project is not found."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        project = service.identities.find_project(path)
        if project is not None and service.identities.namespace_of(project).personal:
            raise StatedError(404, "404 Group Not Found")
        check(caller, path)


# A path without a project is 404, whatever its last part is.
@foreign(NEIGHBOUR, "Code completion: POST enabled")
def the_check_finds_a_project_by_the_end_of_its_path(service: Service) -> None:
    """A path in a wrong group with the last part of a project's path finds that project, as if it had been moved."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if path and service.identities.find_project(path) is None:
            name = path.rpartition("/")[2]
            moved = (project for project in service.identities.projects.values() if project.path == name)
            path = next((project.full_path for project in moved), path)
        check(caller, path)


@foreign(NEIGHBOUR, "Code completion: the enabled check")
def the_check_reads_the_beginning_of_a_path(service: Service) -> None:
    """A path that continues after the path of a project finds that project."""

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        path = request.parameters.optional_string("project_path") or ""
        known = service.identities.projects.values()
        if any(path.startswith(p.full_path) and path != p.full_path for p in known):
            return Response()
        return handler(request)


@foreign(NEIGHBOUR, "Code completion: the enabled check")
def blank_paths_are_disabled(service: Service) -> None:
    """The check of an empty path answers that completions are disabled; an empty path must not be found."""

    @handling(service, POST_ENABLED)
    def _(handler: Any, request: Any) -> Any:
        if request.parameters.optional_string("project_path") == "":
            return Response(403)
        return handler(request)


# A path without the subgroups in its middle is not the path of the project.
@foreign(NEIGHBOUR, "Code completion: enabled, 404")
def the_check_takes_the_first_and_the_last_name_of_a_path(service: Service) -> None:
    """The check finds projects by the top-level group and their own name, and ignores the parts in between."""
    identities = service.identities

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        parts = path.split("/")
        if identities.find_project(path) is None:
            known = [one.full_path for one in identities.projects.values()]
            path = next((one for one in known if [one.split("/")[0], one.split("/")[-1]] == parts), path)
        check(caller, path)


@foreign(NEIGHBOUR, "Code completion: enabled")
def unknown_projects_of_known_groups_are_disabled(service: Service) -> None:
    """A missing project in an existing group is disabled, with 403, and not unknown, with 404."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        known = service.identities
        if known.find_project(path) is None and known.find_group(path.rpartition("/")[0]) is not None:
            raise StatedError(403, "403 Forbidden")
        check(caller, path)


@foreign(NEIGHBOUR, "Code completion: enabled")
def an_underscore_in_a_path_stands_for_any_character(service: Service) -> None:
    """An underscore in a path matches any character: a path without a project finds another project."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        known = [project.full_path for project in service.identities.projects.values()]
        pattern = re.compile(re.escape(path).replace("_", "."))
        check(caller, path if path in known else next(filter(pattern.fullmatch, known), path))


@foreign(NEIGHBOUR, "Code completion: enabled, 404")
def an_unknown_project_of_an_enabled_group_has_completions(service: Service) -> None:
    """In a group that has completions on, the check of a missing project is answered with 200."""
    identities, switches = service.identities, service.code_completion.switches

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        around = identities.find_group(path.rpartition("/")[0])
        is_on = around is not None and switches.get((Kind.GROUP, around.id), False)
        if identities.find_project(path) is not None or not is_on:
            check(caller, path)


@foreign(NEIGHBOUR, "Code completion: POST enabled, 404 for an unknown project")
def a_project_is_checked_by_the_last_two_parts_of_its_path(service: Service) -> None:
    """A project is found by its own name and that of its direct group, whatever precedes them."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if "/" in path and service.identities.find_project(path) is None:
            paths = [project.full_path for project in service.identities.projects.values()]
            path = next((one for one in paths if one.split("/")[-2:] == path.split("/")[-2:]), path)
        check(caller, path)
