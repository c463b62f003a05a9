"""Faults of code completion: what is required or accepted beyond the text, and which caller gets what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import altering, bodies, does_nothing, sent
from conformance.reference.choices import Choices
from conformance.reference.errors import RejectedError, StatedError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

COMPLETE = "POST /code_suggestions/completions"
CHECK = "POST /code_suggestions/enabled"


def demanding(service: Service, unwanted: Any) -> None:
    """Refuse some valid completions."""
    area = service.code_completion
    read = area.read

    def choosy(parameters: Any) -> Any:
        wanted = read(parameters)
        if unwanted(wanted):
            raise RejectedError("is not taken", parameter="intent")
        return wanted

    area.read = choosy


@fault("code-completion.result.created-counts-seconds")
def created_counts_milliseconds(service: Service) -> None:
    """Created is a thousand times too large."""

    def finer(_: Request, response: Any) -> None:
        if response.has_content:
            response.content["created"] *= 1000

    altering(service, COMPLETE, finer)


@fault("code-completion.request.content-below-cursor.is-optional")
def nothing_may_follow_the_cursor(service: Service) -> None:
    """A file with content below the cursor is refused."""
    demanding(service, lambda wanted: wanted.content_below_cursor)


@fault("code-completion.request.intent.is-optional")
def intent_is_owed(service: Service) -> None:
    """A completion without an intent is refused."""
    demanding(service, lambda wanted: wanted.intent is None)


@fault("code-completion.request.intent.may-be-completion")
def completion_is_no_intent(service: Service) -> None:
    """The intent completion is refused."""
    demanding(service, lambda wanted: wanted.intent == "completion")


@fault("code-completion.request.intent.may-be-generation")
def generation_is_no_intent(service: Service) -> None:
    """The intent generation is refused."""
    demanding(service, lambda wanted: wanted.intent == "generation")


@fault("code-completion.request.project-path.is-optional")
def project_is_not_taken(service: Service) -> None:
    """A completion with project_path is refused."""
    demanding(service, lambda wanted: wanted.project_path is not None)


@fault("code-completion.stream.on")
def stream_is_not_taken(service: Service) -> None:
    """A streamed completion is refused."""
    demanding(service, lambda wanted: wanted.stream)


@fault("code-completion.stream.on")
def stream_answers_206(service: Service) -> None:
    """A streamed completion has another status code."""

    def other(_: Request, response: Any) -> None:
        if response.chunks:
            response.status = 206

    altering(service, COMPLETE, other)


@fault("code-completion.stream.off")
def always_streams_on_request(service: Service) -> None:
    """The response is streamed if stream is sent, whether true or false."""
    handle = service.routes.get(COMPLETE).handler

    def streaming(request: Request) -> Response:
        if b'"stream"' in request.body:
            return Response(chunks=(b"return ", b"value"), media_type="text/plain")
        return handle(request)

    service.routes.change(COMPLETE, handler=streaming)


@fault("code-completion.stream.is-off-by-default")
def streams_by_default(service: Service) -> None:
    """Without a stream parameter the response is streamed."""
    handle = service.routes.get(COMPLETE).handler

    def streaming(request: Request) -> Response:
        if b'"stream"' not in request.body:
            return Response(chunks=(b"return ", b"value"), media_type="text/plain")
        return handle(request)

    service.routes.change(COMPLETE, handler=streaming)


@fault("code-completion.completion.answered")
def some_of_what_is_optional_excludes_the_rest(service: Service) -> None:
    """A completion with both an intent and project_path is refused."""
    demanding(service, lambda wanted: wanted.intent is not None and wanted.project_path is not None)


@fault("code-completion.stream.on")
def completion_is_no_intent_of_a_stream(service: Service) -> None:
    """A streamed completion with the intent completion is refused."""
    demanding(service, lambda wanted: wanted.stream and wanted.intent == "completion")


@fault("code-completion.stream.off")
def generations_are_always_streamed(service: Service) -> None:
    """With the intent generation the response is streamed, although stream is false."""
    handle = service.routes.get(COMPLETE).handler

    def streaming(request: Request) -> Response:
        wanted = sent(request)
        if wanted.get("intent") == "generation" and wanted.get("stream") is False:
            return Response(chunks=(b"return ", b"value"), media_type="text/plain")
        return handle(request)

    service.routes.change(COMPLETE, handler=streaming)


MENDED: dict[str, Any] = {
    "current-file.is-required": lambda body: {"current_file": {"file_name": "a", "content_above_cursor": "b"}, **body},
    "current-file.is-object": lambda body: (
        body
        if isinstance(body.get("current_file", {}), dict)
        else {**body, "current_file": {"file_name": "a", "content_above_cursor": "b"}}
    ),
    "file-name.is-required": lambda body: in_file(body, lambda file: {"file_name": "a", **file}),
    "file-name.is-string": lambda body: in_file(body, lambda file: as_text(file, "file_name")),
    "content-above-cursor.is-required": lambda body: in_file(body, lambda file: {"content_above_cursor": "a", **file}),
    "content-above-cursor.is-string": lambda body: in_file(body, lambda file: as_text(file, "content_above_cursor")),
    "intent.allows-no-other": lambda body: {
        **body,
        **({"intent": "completion"} if body.get("intent") not in (None, "generation") else {}),
    },
}


def as_text(values: dict[str, Any], name: str) -> dict[str, Any]:
    """Convert a value to text."""
    return {**values, name: str(values[name])} if name in values else values


def in_file(body: Any, mend: Any) -> Any:
    """Correct the file of a request."""
    file = body.get("current_file")
    return {**body, "current_file": mend(file)} if isinstance(file, dict) else body


for _name, _mend in MENDED.items():

    def taken(service: Service, mend: Any = _mend) -> None:
        """An invalid request is corrected."""
        bodies(service, COMPLETE, mend)

    taken.__name__ = f"completion_mends_{_name}"
    fault(f"code-completion.request.{_name}")(taken)


def _breaking(service: Service, is_unreadable: Any) -> None:
    """Answer a completion with a server error if a part of the request is invalid."""
    service_route = service.routes.get(COMPLETE)

    def brittle(request: Request) -> Response:
        return Response(500) if is_unreadable(sent(request)) else service_route.handler(request)

    service.routes.change(COMPLETE, handler=brittle)


@fault("code-completion.request.content-below-cursor.is-string")
def unreadable_end_of_the_file_breaks_a_completion(service: Service) -> None:
    """A completion whose content_below_cursor is an object causes a server error."""
    _breaking(service, lambda body: isinstance((body.get("current_file") or {}).get("content_below_cursor"), dict))


@fault("code-completion.request.stream.is-boolean")
def unreadable_stream_breaks_a_completion(service: Service) -> None:
    """A completion whose stream is a word causes a server error."""
    _breaking(service, lambda body: isinstance(body.get("stream"), str))


@fault("code-completion.request.project-path.is-string")
def unreadable_project_breaks_a_completion(service: Service) -> None:
    """A completion whose project_path is an object causes a server error."""
    _breaking(service, lambda body: isinstance(body.get("project_path"), dict))


def file_of(body: dict[str, Any], name: str) -> str:
    """Return a text of the file in a request."""
    file = body.get("current_file")
    return str(file.get(name, "")) if isinstance(file, dict) else ""


@fault("code-completion.request.content-below-cursor.is-optional")
def other_letters_below_the_cursor_break_a_completion(service: Service) -> None:
    """Letters beyond ASCII below the cursor cause a server error."""
    _breaking(service, lambda body: not file_of(body, "content_below_cursor").isascii())


@fault("code-completion.request.content-below-cursor.is-optional")
def lines_of_another_system_break_a_completion(service: Service) -> None:
    """Lines below the cursor that end as on another system, with a carriage return, cause a server error."""
    _breaking(service, lambda body: "\r\n" in file_of(body, "content_below_cursor"))


@fault("code-completion.completion.answered")
def a_file_in_a_folder_breaks_a_completion(service: Service) -> None:
    """A file name with a folder causes a server error."""
    _breaking(service, lambda body: "/" in file_of(body, "file_name"))


@fault("code-completion.completion.answered")
def a_long_file_breaks_a_completion(service: Service) -> None:
    """More than 4096 characters above the cursor cause a server error."""
    _breaking(service, lambda body: len(file_of(body, "content_above_cursor")) > 4096)


def answering(service: Service, status: int, when: Any) -> None:
    """Answer some checks with a given status."""
    area = service.code_completion
    check = area.check

    def other(caller: Any, path: str) -> None:
        if when(path):
            raise StatedError(status, "so there")
        check(caller, path)

    area.check = other


@fault("code-completion.enabled.is-on-through-group")
def group_does_not_count(service: Service) -> None:
    """Only the setting of the project itself counts."""
    area = service.code_completion
    area.enabled = lambda project: area.switches.get(("project", project.id), False) or project.id == 1


@fault("errors.completion-switched-off")
@fault("code-completion.enabled.is-off")
def disabled_answers_404(service: Service) -> None:
    """A project without the feature answers 404."""
    answering(service, 404, lambda path: path == service.world.one("disabled_project").path)


@fault("code-completion.enabled.is-off")
def disabled_is_enabled(service: Service) -> None:
    """Every project has the feature."""
    service.code_completion.enabled = lambda _: True


@fault("errors.empty-project-path")
@fault("code-completion.enabled.empty-path")
def empty_path_is_invalid(service: Service) -> None:
    """An empty path answers 400."""
    answering(service, 400, lambda path: not path)


@fault("errors.unknown-project-path")
@fault("code-completion.enabled.unknown-project")
def unknown_project_is_forbidden(service: Service) -> None:
    """An unknown path answers 403."""
    answering(service, 403, lambda path: "no-such" in path)


@fault("code-completion.enabled.unknown-project")
def what_follows_the_path_of_a_project_does_not_count(service: Service) -> None:
    """A path that goes on behind that of a project is taken for it."""
    area = service.code_completion
    check, find = area.check, service.identities.find_project

    def lenient(caller: Any, path: str) -> None:
        around = path.rpartition("/")[0]
        check(caller, around if find(path) is None and find(around) is not None else path)

    area.check = lenient  # type: ignore[method-assign] # that is what a fault does


@fault("code-completion.enabled.answers")
def readable_project_answers_409(service: Service) -> None:
    """A known project answers 409."""
    answering(service, 409, lambda path: path == service.world.one("project").path)


@fault("code-completion.enabled.path.is-required")
def path_may_be_missing(service: Service) -> None:
    """Without a path, the first project is used."""
    bodies(service, CHECK, lambda body: {"project_path": service.world.one("enabled_project").path, **body})


@fault("code-completion.enabled.path.is-string")
def path_may_be_anything(service: Service) -> None:
    """If the path is not a text, the first project is used."""
    known = service.world.one("enabled_project").path
    bodies(
        service,
        CHECK,
        lambda body: {**body, "project_path": known} if not isinstance(body.get("project_path", ""), str) else body,
    )


@fault(
    "code-completion.completion.follows-the-flag",
    choices=Choices(completions_offered=False),
    features={"code_completion_flag_off": True, "code_completion": False},
)
def completions_come_while_the_flag_is_off(service: Service) -> None:
    """Completions are served although the feature flag is off."""
    service.code_completion.require_offered = does_nothing


def _later_choices(
    name: str, says: str, spoil: Callable[[list[Any]], Any], requirement: str, *, only_second: bool = False
) -> None:
    """Register a fault: from the second completion on, or in that one alone, the choices are of another kind."""

    def apply(service: Service) -> None:
        seen = {"completions": 0}

        def alter(_: Request, response: Response) -> None:
            content: Any = response.content
            if response.has_content and isinstance(content, dict):
                seen["completions"] += 1
                if seen["completions"] == 2 or (seen["completions"] > 2 and not only_second):
                    response.content = {**content, "choices": spoil(content["choices"])}

        altering(service, COMPLETE, alter)

    fault(requirement)(named(name, says, apply))


CHOICES = "code-completion.result.choices"
_later_choices("later_choices_are_null", "From the second completion on, choices is null.", lambda _: None, CHOICES)
_later_choices(
    "second_choices_are_null", "Choices of the second completion is null.", lambda _: None, CHOICES, only_second=True
)
_later_choices(
    "later_choices_are_one", "From the second completion on, choices is a choice.", lambda each: each[0], CHOICES
)
_later_choices(
    "later_choices_are_texts",
    "From the second completion on, choices is a list of texts.",
    lambda every: [each["text"] for each in every],
    "code-completion.choice.fields",
)
