"""Variants in code completion, and the alterations that make them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices
from conformance.reference.errors import InvalidError, RejectedError, StatedError
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

_COMPLETIONS = "POST /code_suggestions/completions"
_LANGUAGES = (".c", ".go", ".java", ".js", ".py", ".rb", ".rs", ".ts")
_FEWEST_CHARACTERS = 3
_CHECKED = ("enabled_project", "disabled_project", "group_enabled_project")


def withholds_the_check_of_completions(service: Service) -> None:
    """Put the check whether completions are on behind the same flag, so it is not available."""
    completion = service.code_completion
    for name in _CHECKED:
        service.world.fixtures.pop(name)
    check = completion.check

    def behind_the_flag(caller: Any, path: str) -> None:
        completion.require_offered()
        check(caller, path)

    completion.check = behind_the_flag


def completes_otherwise(service: Service) -> None:
    """Give all completions the same id, a clock that is days behind, and choices that are numbered down to 7."""
    completion = service.code_completion
    complete = completion.complete

    def completed(wanted: Any) -> dict[str, Any]:
        result: dict[str, Any] = dict(complete(wanted))
        choices = [
            {**choice, "index": 7 + len(result["choices"]) - place, "finish_reason": ""}
            for place, choice in enumerate(result["choices"])
        ]
        created = result["created"] - 3 * 24 * 3600
        model = {"engine": "", "name": ""}
        return {**result, "id": "", "object": "", "created": created, "choices": choices, "model": model}

    completion.complete = completed


def completes_known_languages(service: Service) -> None:
    """Refuse files of languages that are not known, and contents of less than three characters."""
    completion = service.code_completion
    read = completion.read

    def known(parameters: Any) -> Any:
        wanted = read(parameters)
        if not wanted.file_name.endswith(_LANGUAGES) or len(wanted.content_above_cursor) < _FEWEST_CHARACTERS:
            raise InvalidError("cannot be completed")
        return wanted

    completion.read = known


def completes_where_it_is_on(service: Service) -> None:
    """Refuse a completion for a project without completions, as the usual one is; they are on in another project."""
    completion, world, identities = service.code_completion, service.world, service.identities
    other = identities.projects[world.one("subgroup_project").id]
    completion.switch(identities.projects[world.one("project").id], enabled=False)
    world.fixtures["enabled_project"] = Fixture(other.id, other.full_path)
    read = completion.read

    def where_it_is_on(parameters: Any) -> Any:
        wanted = read(parameters)
        project = identities.find_project(wanted.project_path) if wanted.project_path else None
        if wanted.project_path and (project is None or not completion.enabled(project)):
            raise RejectedError("has no completions", parameter="project_path")
        return wanted

    completion.read = where_it_is_on


def entitles_nobody_to_completions(service: Service) -> None:
    """Answer the check of completions with 401 for each project that there is, because nobody is entitled to any."""
    completion = service.code_completion
    for name in _CHECKED:
        service.world.fixtures.pop(name)
    check = completion.check

    def for_nobody(caller: Any, path: str) -> None:
        if service.identities.find_project(path) is None:
            check(caller, path)
        raise StatedError(401, "401 Unauthorized")

    completion.check = for_nobody


def streams_events(service: Service) -> None:
    """Stream a completion as server-sent events."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key == _COMPLETIONS and answer.chunks:
            events = tuple(
                b"event: text\ndata: " + json.dumps(str(chunk)).encode() + b"\n\n" for chunk in answer.chunks
            )
            answer.chunks, answer.media_type = events, "text/event-stream"

    transform(service, change)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "completes-otherwise",
        "Completions share an id, count down and come from another day.",
        alterations=(completes_otherwise,),
    ),
    Variant(
        "streams-events",
        "A completion is streamed as events.",
        alterations=(streams_events,),
    ),
    Variant(
        "completes-known-languages",
        "A completion is refused for a language that is not known, and for less than three characters.",
        alterations=(completes_known_languages,),
    ),
    Variant(
        "completes-where-it-is-on",
        "A completion for a project without completions is refused, and the usual project has none.",
        alterations=(completes_where_it_is_on,),
    ),
    Variant(
        "nobody-is-entitled-to-completions",
        "Without code completion the check answers 401 for each project, because nobody is entitled to any.",
        replace(_PLAIN, completions_offered=False),
        features={"code_completion": False},
        alterations=(entitles_nobody_to_completions,),
    ),
)
