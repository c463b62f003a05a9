"""Small bugs between neighbours: what is kept, remembered or removed for one project, and shows in another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, let_in
from conformance.reference.errors import StatedError
from conformance.reference.http import Page, ok
from conformance.reference.identity import Kind, Role

if TYPE_CHECKING:
    from conformance.reference import Service

_STAYS = "write x everything that must stay"
_STORY = "numbers and texts that follow from the story"
_NEIGHBOUR = "value x neighbour of the right value"
_PAGES = "pages and totals"
_AGAIN = "again, by another caller, after an undo"
_FORMS = "forms of what is sent"
_CALLER = "caller x form of id x operation"
_SCOPE = "/projects/:id/job_token_scope"
_PROJECTS = f"{_SCOPE}/allowlist"
_GROUPS = f"{_SCOPE}/groups_allowlist"
_COMPLETIONS = "POST /code_suggestions/completions"


def _sends(request: Any, **values: Any) -> None:
    """Let a request have sent something else."""
    request.parameters._values = {**request.parameters._values, **values}


# -- job token scope ---------------------------------------------------------------------------------------------------


@foreign(_STORY, "Job token scope: allowlist project entry, namespace")
def entries_carry_the_namespace_of_the_asking_project(service: Service) -> None:
    """Each entry of the allowlist shows the namespace of the project whose list it is, in the place of its own."""

    @handling(service, f"GET {_PROJECTS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        namespace = service.identities.namespace_of(request.project)
        for entry in answer.content:
            entry["namespace"] = service.present.namespace(namespace)
        return answer


@foreign(_STAYS, "Job token scope: DELETE of an allowlist entry")
def removing_a_project_removes_the_group_of_its_number(service: Service) -> None:
    """Both lists lie in one table, from which a project is removed by its number alone."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        groups = tuple(number for number in scope.groups if number != target.id)
        scopes.scopes[project.id] = replace(scope, groups=groups)


@foreign(_STAYS, "Job token scope: PATCH")
def the_limit_belongs_to_the_group_around(service: Service) -> None:
    """The limit is kept by namespace: switching it for one project switches it for its neighbours in the group."""
    scopes = service.job_token_scope

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled)
        for other in list(service.identities.projects.values()):
            if other.namespace_id == project.namespace_id:
                scopes.scopes[other.id] = replace(scopes.of(other), inbound_enabled=enabled)


@foreign(_PAGES, "Job token scope: GET allowlist, paginated")
def the_project_itself_leads_every_page(service: Service) -> None:
    """The project's own entry is put before each page, whose last entry then finds no room."""

    @handling(service, f"GET {_PROJECTS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        page = Page.of(request.parameters, service.choices)
        others = [target for target in service.job_token_scope.projects(request.project) if target != request.project]
        start = (page.number - 1) * page.size
        found = others[start : start + page.size]
        shown = [request.project, *found][: page.size] if found or page.number == 1 else []
        answer.content = [service.present.limited_project(target) for target in shown]
        return answer


@foreign("caller x value", "Authentication: at least the Maintainer role in the project")
def maintainers_of_the_target_remove_it(service: Service) -> None:
    """The role is looked up in the project that is named last: whoever maintains the target removes its entry."""

    def maintains_target(request: Any, caller: Any, _role: Any) -> bool:
        target = service.identities.find_project(request.path["target_project_id"])
        return target is not None and service.identities.role_in(caller, target) >= Role.MAINTAINER

    let_in(service, (f"DELETE {_PROJECTS}/:target_project_id",), maintains_target)


@foreign(_STAYS, "Job token scope: POST of an allowlist entry")
def an_addition_switches_the_limit_on(service: Service) -> None:
    """Whoever adds an entry is taken to want the list to count: the limit goes on with it."""
    scopes = service.job_token_scope
    for name in ("add_project", "add_group"):

        @instead(scopes, name)
        def _(add: Any, project: Any, target: Any) -> None:
            add(project, target)
            scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)


@foreign(_STAYS, "Job token scope: DELETE of an allowlist entry")
def a_removal_removes_the_group_from_every_list(service: Service) -> None:
    """The removal names the target and forgets to name the project: the group leaves the lists of all projects."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        for number, scope in list(scopes.scopes.items()):
            groups = tuple(group for group in scope.groups if group != target.id)
            scopes.scopes[number] = replace(scope, groups=groups)


@foreign(_AGAIN, "Job token scope: GET after PATCH")
def settings_are_remembered_for_each_reader(service: Service) -> None:
    """The settings are remembered by reader, and a change makes only those be forgotten that its own caller read."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        key = (request.project.id, request.caller.id)
        if key not in remembered:
            remembered[key] = handler(request).content
        return ok(remembered[key])

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        remembered.pop((request.project.id, request.caller.id), None)
        return handler(request)


@foreign(_PAGES, "Job token scope: GET allowlist, paginated")
def pages_are_remembered_without_their_size(service: Service) -> None:
    """Until the list changes, a page that was asked for once comes back when it is asked for with another size."""
    remembered: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {_PROJECTS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        key = (request.project.id, Page.of(request.parameters, service.choices).number)
        answer.content = remembered.setdefault(key, answer.content)
        return answer

    @handling(service, f"POST {_PROJECTS}", f"DELETE {_PROJECTS}/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        for key in [key for key in remembered if key[0] == request.project.id]:
            del remembered[key]
        return handler(request)


@foreign(_NEIGHBOUR, "Job token scope: POST, target_project_id and target_group_id")
def ids_of_targets_are_cut_to_32_bits(service: Service) -> None:
    """A number beyond 32 bits, which is nobody's id, adds the target whose id is what is left of it."""

    @handling(service, f"POST {_PROJECTS}", f"POST {_GROUPS}")
    def _(handler: Any, request: Any) -> Any:
        for name in ("target_project_id", "target_group_id"):
            value = request.parameters._values.get(name)
            if isinstance(value, int) and value > 0xFFFFFFFF:
                _sends(request, **{name: value & 0xFFFFFFFF})
        return handler(request)


@foreign(_AGAIN, "Job token scope: PATCH, 204 without a body")
def the_same_limit_again_answers_with_the_settings(service: Service) -> None:
    """An update to the value that already holds answers 200 with the settings, in the place of 204."""

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.job_token_scope.of(request.project)
        answer = handler(request)
        same = service.job_token_scope.of(request.project).inbound_enabled is before.inbound_enabled
        return ok(service.job_token_scope.settings(request.project)) if same else answer


@foreign(_PAGES, "Job token scope: GET of both allowlists, array")
def a_page_behind_the_last_one_is_null(service: Service) -> None:
    """Where a page begins behind the end there is no list at all: the answer is null, in the place of an array."""

    @handling(service, f"GET {_PROJECTS}", f"GET {_GROUPS}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if not answer.content and Page.of(request.parameters, service.choices).number > 1:
            answer.content = None
        return answer


# -- code completion ---------------------------------------------------------------------------------------------------


@foreign("status over time", "Limits: 60 requests per minute and user")
def the_rate_counts_private_tokens_alone(service: Service) -> None:
    """Requests are counted by the header PRIVATE-TOKEN: whoever sends a bearer token has no limit."""
    requests = service.code_completion.requests

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        if request.header("private-token"):
            return handler(request)
        before = requests.pop(request.caller.id, ())
        try:
            return handler(request)
        finally:
            requests[request.caller.id] = before


@foreign("status over time", "Limits: POST /code_suggestions/completions")
def checks_count_against_the_rate(service: Service) -> None:
    """The limit lies before everything that begins with code_suggestions: who checks often may complete less."""

    @handling(service, "POST /code_suggestions/enabled")
    def _(handler: Any, request: Any) -> Any:
        service.code_completion.count(request.caller)
        return handler(request)


@foreign(_FORMS, "Code completion: stream, default false")
def generations_stream_unless_told_otherwise(service: Service) -> None:
    """A request with intent generation that does not say stream is answered with a stream of text."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("intent") == "generation" and "stream" not in values:
            _sends(request, stream=True)
        return handler(request)


@foreign(_NEIGHBOUR, "Code completion: intent, allowed values")
def intents_may_be_capitals_between_blanks(service: Service) -> None:
    """The intent is trimmed and made small letters before it is compared with the allowed ones."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        intent = request.parameters._values.get("intent")
        if isinstance(intent, str):
            _sends(request, intent=intent.strip().lower())
        return handler(request)


@foreign(_NEIGHBOUR, "Code completion: POST enabled, 404 for an unknown project")
def a_missing_project_is_as_the_group_around_it(service: Service) -> None:
    """A path that lies in a known group and names no project there is answered as the group's settings say."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        group = service.identities.find_group(path.rpartition("/")[0])
        if group is None or service.identities.find_project(path) is not None:
            check(caller, path)
        elif not service.code_completion.switches.get((Kind.GROUP, group.id), False):
            raise StatedError(403, "403 Forbidden")


@foreign(_NEIGHBOUR, "Code completion: POST enabled, 404 for an unknown project")
def a_project_is_checked_by_its_last_name(service: Service) -> None:
    """The project is looked up by the last part of the path: it is found below any other group as well."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        if service.identities.find_project(path) is None and "/" in path:
            named = [p for p in service.identities.projects.values() if p.path == path.rpartition("/")[2]]
            path = named[0].full_path if named else path
        check(caller, path)


@foreign("settings and their resets", "Code completion: enabled for the project or its group")
def what_a_project_says_beats_its_group(service: Service) -> None:
    """Where completions were switched off for a project, those of its group no longer count for it."""
    completion = service.code_completion

    @instead(completion, "enabled")
    def _(enabled: Any, project: Any) -> bool:
        own = completion.switches.get((Kind.PROJECT, project.id))
        return enabled(project) if own is None else own
