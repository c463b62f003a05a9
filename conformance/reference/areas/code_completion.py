"""Completions of code, and the check whether a project has them.

Specification: Endpoints > Code completion; Limits.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.choices import Window
from conformance.reference.errors import ApiError, InvalidError, NoRouteError, StatedError, ThrottledError, hidden
from conformance.reference.http import Response, Route, ok
from conformance.reference.identity import Group, Kind, Project, kind_of
from conformance.reference.store import Table
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.core import Core
    from conformance.reference.http import Request
    from conformance.reference.identity import Subject, User
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

REQUESTS_PER_WINDOW = 60
WINDOW_SECONDS = 60.0
INTENTS = ("completion", "generation")

_TEXTS = {
    "completion": ("return value", "pass", "yield item"),
    "generation": (
        "def process(items):\n    return list(items)\n",
        "class Job:\n    def run(self):\n        return None\n",
        "for number in range(10):\n    print(number)\n",
    ),
}
_CHUNK = 8  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """What somebody wants completed."""

    file_name: str
    content_above_cursor: str
    content_below_cursor: str
    intent: str | None
    stream: bool
    project_path: str | None


class CodeCompletion(Behaviour):
    """The completions, with the gateway that would make them played by a table."""

    name = "code_completion"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.switches: Table[tuple[Kind, int], bool] = Table(service.store)
        self.requests: Table[int, tuple[float, ...]] = Table(service.store)  # seconds, by user

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Enable completions for one project and one deep inside groups, and for another one by its group alone."""
        projects = self.service.identities.projects
        enabled = projects[world.one("project").id]
        self.switch(projects[world.one("subgroup_project").id], enabled=True)
        by_group = projects[world.one("public_project").id]
        disabled = projects[world.one("sibling_project").id]
        self.switch(enabled, enabled=True)
        self.switch(disabled, enabled=False)
        self.switch(by_group, enabled=False)
        self.switch(self.service.identities.namespace_of(by_group), enabled=True)
        named = {
            "enabled_project": enabled,
            "disabled_project": disabled,
            "group_enabled_project": by_group,
        }
        return {name: Fixture(project.id, project.full_path) for name, project in named.items()}

    # -- enabled or not -------------------------------------------------------------------------------------

    def switch(self, subject: Subject, *, enabled: bool) -> None:
        """Switch completions on or off for a project or for everything in a group."""
        self.switches[kind_of(subject), subject.id] = enabled

    def enabled(self, project: Project) -> bool:
        """Say whether the project itself or a group around it has completions on."""
        around: list[Project | Group] = [project, *self.service.identities.lineage(project)]
        return any(self.switches.get((kind_of(subject), subject.id), False) for subject in around)

    def check(self, caller: User, path: str) -> None:
        """Return when completions are on for the project of that path.

        Raise StatedError with 404 for an empty or unknown path and 403 when they are off, HiddenError when
        the caller may not see the project.
        """
        project = self.service.identities.find_project(path) if "/" in path else None
        if project is None:
            raise StatedError(404, "404 Project Not Found")
        if not self.service.identities.can_see(caller, project):
            raise hidden("Project")
        if not self.enabled(project):
            raise StatedError(403, "403 Forbidden")

    # -- completing -----------------------------------------------------------------------------------------

    def require_offered(self) -> None:
        """Require that the installation has the feature switched on. Raise NoRouteError."""
        if not self.service.choices.completions_offered:
            raise NoRouteError

    def read(self, parameters: Parameters) -> CompletionRequest:
        """Read what is to be completed. Raise InvalidError."""
        file = parameters.nested("current_file")
        wanted = CompletionRequest(
            file_name=file.string("file_name"),
            content_above_cursor=file.string("content_above_cursor"),
            content_below_cursor=file.optional_string("content_below_cursor") or "",
            intent=parameters.optional_choice("intent", INTENTS),
            stream=bool(parameters.optional_boolean("stream")),
            project_path=parameters.optional_string("project_path"),
        )
        self.require_length("file_name", wanted.file_name, self.service.choices.completion_file_name_length)
        for name in ("content_above_cursor", "content_below_cursor"):
            self.require_length(name, getattr(wanted, name), self.service.choices.completion_content_length)
        return wanted

    def require_length(self, name: str, text: str, most: int) -> None:
        """Require that a text has at most so many characters. Raise InvalidError."""
        if len(text) > most:
            raise InvalidError(f"{name} is longer than {most} characters", parameter=name)

    def count(self, caller: User) -> None:
        """Count a request of a user. Raise ThrottledError when the user had too many in the window of time.

        Specification: Limits.
        """
        now = self.service.clock.seconds()
        recent = tuple(moment for moment in self.requests.get(caller.id, ()) if self.in_window(moment, now))
        if len(recent) >= REQUESTS_PER_WINDOW:
            raise ThrottledError
        self.requests[caller.id] = (*recent, now)

    def in_window(self, moment: float, now: float) -> bool:
        """Say whether a request of that moment still counts against the rate limit."""
        if self.service.choices.completion_window is Window.FIXED:
            return moment // WINDOW_SECONDS == now // WINDOW_SECONDS
        return now - moment < WINDOW_SECONDS

    def complete(self, wanted: CompletionRequest) -> Json:
        """Return a completion result.

        Specification: Resources and their fields > Completion result.
        """
        choices = [
            {"text": self.text(wanted, index), "index": index, "finish_reason": "length"}
            for index in range(self.service.choices.completion_alternatives)
        ]
        return {
            "id": f"completion-{self.service.store.next_number('completions')}",
            "model": {"engine": "reference", "name": "reference-completion"},
            "object": "text_completion",
            "created": int(self.service.clock.now().timestamp()),
            "choices": choices,
        }

    def text(self, wanted: CompletionRequest, index: int) -> str:
        """Return one completion; the same file and cursor have the same one."""
        asked = f"{wanted.file_name}\0{wanted.content_above_cursor}\0{wanted.content_below_cursor}"
        number = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()[0] + index
        texts = _TEXTS[wanted.intent or "completion"]
        return texts[number % len(texts)]

    def stream(self, wanted: CompletionRequest) -> tuple[bytes, ...]:
        """Return a completion as text in chunks, in the order in which they are sent."""
        text = self.text(wanted, 0)
        return tuple(text[start : start + _CHUNK].encode() for start in range(0, len(text), _CHUNK))


def _complete(request: Request) -> Response:
    completion = request.area(CodeCompletion)
    completion.require_offered()
    try:
        wanted = completion.read(request.parameters)
    except ApiError:
        if request.choices.malformed_completions_count:
            completion.count(request.caller)
        raise
    completion.count(request.caller)
    if wanted.stream and request.choices.completion_streams:
        return Response(chunks=completion.stream(wanted), media_type="text/plain; charset=utf-8")
    return ok(completion.complete(wanted))


def _check(request: Request) -> Response:
    path = request.parameters.string("project_path")
    request.area(CodeCompletion).check(request.caller, path)
    return Response()


AREA = Area(
    CodeCompletion,
    (
        Route("POST", "/code_suggestions/completions", _complete, takes_bearer=True),
        Route("POST", "/code_suggestions/enabled", _check),
    ),
)
