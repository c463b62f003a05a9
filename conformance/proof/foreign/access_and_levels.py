"""Callers whose role is looked up in the wrong place, things that another place reaches, and calls that meet.

Here are those of job token scopes, completions, exports and integrations.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.registry import foreign, found, handling, instead, let_in, meanwhile
from conformance.reference.areas.code_completion import CompletionRequest
from conformance.reference.errors import ForbiddenError, InvalidError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

_CALLERS = "caller x form of id x operation"
_CALLER_AND_VALUE = "caller x value"
_LEVELS = "level x id of another level"
_NEIGHBOURS = "value x neighbour of the right value"
_WRITES = "write x everything that must stay"
_AT_ONCE = "two write at once"
_SCOPE = "/projects/:id/job_token_scope"
_EXPORT = "/groups/:id/export_relations"
_COMPLETIONS = "POST /code_suggestions/completions"

#: How long the slower of two calls waits before it acts, and the quicker one: it acts while the other still waits.
_SLOW_SECONDS = 0.06
_QUICK_SECONDS = 0.03


def overtaken(service: Service, slow: str, quick: str, look: Callable[[], Any], write: Callable[..., Any]) -> None:
    """Let one operation act on what it saw before another one acted; `write` gets what `look` returned, and the request."""
    seen: dict[int, Any] = {}

    async def wait(request: Request) -> None:
        if request.route.key == slow:
            seen[id(request)] = look()
            await asyncio.sleep(_SLOW_SECONDS)
        elif request.route.key == quick:
            await asyncio.sleep(_QUICK_SECONDS)

    service.interruption = wait

    @handling(service, slow)
    def _(handler: Any, request: Request) -> Any:
        write(seen.pop(id(request)), request)
        return handler(request)


def _is_of_integrations(path: str) -> bool:
    return path.startswith(("/projects/:id/integrations", "/projects/:id/services"))


# -- who may call ------------------------------------------------------------------------------------------------------


@foreign(_CALLERS, "Integrations: GET")
def a_role_in_one_project_is_remembered_for_all_around_it(service: Service) -> None:
    """Whoever used the integrations of one project as its owner may use those of all projects of the outermost group."""
    known: dict[tuple[int, int], Role] = {}

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        if _is_of_integrations(route.path):
            place = caller.id, service.identities.lineage(subject)[-1].id
            known[place] = max(known.get(place, Role.NONE), service.identities.role_in(caller, subject))
            if known[place] >= route.least_role:
                return
        require(route, caller, subject)


@foreign(_CALLER_AND_VALUE, "Code completion: completions")
def a_token_of_a_bearer_may_be_in_another_case(service: Service) -> None:
    """A token that is sent as a bearer's is compared without regard to case: another token gets a completion."""

    @instead(service.access, "token_text")
    def _(text: Any, request: Any) -> str:
        sent = str(text(request))
        if request.route.key != _COMPLETIONS or request.header("private-token"):
            return sent
        return next((known for known in service.identities.tokens if known.lower() == sent.lower()), sent)


@foreign(_CALLER_AND_VALUE, "Job token scope: PATCH")
def a_developer_may_switch_the_limit_on(service: Service) -> None:
    """Developers may switch the inbound limit on, though not off: nobody is to do either below Maintainer."""

    def fits(request: Request, _: Any, role: Role) -> bool:
        return role >= Role.DEVELOPER and bool(request.parameters.optional_boolean("enabled"))

    let_in(service, (f"PATCH {_SCOPE}",), fits)


@foreign(_CALLER_AND_VALUE, "Job token scope: POST of a group")
def who_owns_a_group_lets_it_in_anywhere(service: Service) -> None:
    """Members of a project let groups in that they own, whatever their role in the project is."""

    def fits(request: Request, caller: Any, role: Role) -> bool:
        target = service.identities.groups.get(request.parameters.integer("target_group_id"))
        return role > Role.NONE and target is not None and service.identities.role_in(caller, target) is Role.OWNER

    let_in(service, (f"POST {_SCOPE}/groups_allowlist",), fits)


@foreign(_CALLERS, "Integrations: PUT")
def the_token_of_a_project_sets_up_no_integration(service: Service) -> None:
    """The access token of a project is refused where integrations are set up, though it has the Maintainer role."""

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        if route.method == "PUT" and _is_of_integrations(route.path) and caller.bot is not None:
            raise ForbiddenError
        require(route, caller, subject)


@foreign(_CALLERS, "Group relations export: download")
def a_finished_export_is_downloaded_without_a_token(service: Service) -> None:
    """Whoever has the address of a finished export gets the file, also without a token."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Request) -> None:
        group = found(service, request) if request.route.key == f"GET {_EXPORT}/download" else None
        if group is None or service.access.token_text(request):
            admit(request)
        else:
            request.admit(next(iter(service.identities.users.values())), group)


# -- what another place reaches ----------------------------------------------------------------------------------------


@foreign(_NEIGHBOURS, "Code completion: enabled")
def an_underscore_in_a_path_stands_for_any_character(service: Service) -> None:
    """A path that no project has is taken for that of a project from which it differs by underscores alone."""

    @instead(service.code_completion, "check")
    def _(check: Any, caller: Any, path: str) -> None:
        known = [project.full_path for project in service.identities.projects.values()]
        pattern = re.compile(re.escape(path).replace("_", "."))
        check(caller, path if path in known else next(filter(pattern.fullmatch, known), path))


@foreign(_WRITES, "Job token scope: DELETE")
def removing_a_project_removes_it_on_the_other_side_too(service: Service) -> None:
    """Where two projects let each other in and one removes the other, it is removed from the other's list as well."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        other = scopes.of(target)
        scopes.scopes[target.id] = replace(other, projects=tuple(n for n in other.projects if n != project.id))


@foreign(_LEVELS, "Job token scope: DELETE")
def with_a_number_goes_each_that_contains_its_digits(service: Service) -> None:
    """With the project of id 2 go those of ids 12 and 20 from the allowlist, for ids are compared as text."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(
            scope, projects=tuple(number for number in scope.projects if str(target.id) not in str(number))
        )


@foreign(_WRITES, "Integrations: DELETE")
def disabling_by_the_older_name_disables_it_in_the_projects_beside(service: Service) -> None:
    """An integration that is disabled under /services is disabled in all projects of the same group."""

    @handling(service, "DELETE /projects/:id/services/:slug")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        slug, identities = request.path["slug"], service.identities
        for number, known in [*service.integrations.known]:
            beside = identities.projects.get(number)
            if known == slug and beside is not None and beside.namespace_id == request.project.namespace_id:
                service.integrations.disable(beside, slug)
        return answer


# -- calls that meet ---------------------------------------------------------------------------------------------------


@foreign(_AT_ONCE, "Job token scope: PATCH")
def an_addition_puts_the_limit_back_as_it_was(service: Service) -> None:
    """The limit that is switched while a project is let in is as before, though 204 was answered."""
    scopes = service.job_token_scope

    def write(seen: Any, request: Request) -> None:
        before = seen.get(request.project.id)
        enabled = before.inbound_enabled if before else service.choices.inbound_enabled_initially
        scopes.scopes[request.project.id] = replace(scopes.of(request.project), inbound_enabled=enabled)

    overtaken(service, f"POST {_SCOPE}/allowlist", f"PATCH {_SCOPE}", lambda: dict(scopes.scopes), write)


@foreign(_AT_ONCE, "Job token scope: POST of a group")
def a_group_that_is_let_in_twice_at_once_is_listed_twice(service: Service) -> None:
    """Of two additions of one group at the same time neither sees the other: the group stands in the list twice."""
    scopes, current = service.job_token_scope, []

    def write(seen: Any, _: Any) -> None:
        current[:] = [seen]

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        before = current.pop().get(project.id)
        if before is not None and target.id in before.groups:
            add(project, target)
        else:
            scope = scopes.of(project)
            scopes.scopes[project.id] = replace(scope, groups=(*scope.groups, target.id))

    meanwhile(service, (f"POST {_SCOPE}/groups_allowlist",), lambda: dict(scopes.scopes), write)


@foreign(_AT_ONCE, "Integrations: DELETE")
def setting_one_up_brings_back_another_that_is_disabled_meanwhile(service: Service) -> None:
    """An integration that is disabled while another one of the project is set up is listed still."""
    known = service.integrations.known

    def write(seen: Any, request: Request) -> None:
        mine = {place: one for place, one in seen.items() if place[0] == request.project.id and one.active}
        gone = {place: one for place, one in mine.items() if place not in known or not known[place].active}
        known.update(gone)

    place = "/projects/:id/integrations/:slug"
    overtaken(service, f"PUT {place}", f"DELETE {place}", lambda: dict(known), write)


@foreign(_AT_ONCE, "Group relations export: POST")
def two_groups_that_are_exported_at_once_get_one_content(service: Service) -> None:
    """Of two groups whose exports are scheduled at the same time one gets files with what the other one holds."""
    exports, last = service.group_relations_export, [""]

    async def wait(request: Request) -> None:
        if request.route.key == f"POST {_EXPORT}":
            last[:] = [request.path["id"]]
            await asyncio.sleep(_QUICK_SECONDS)

    service.interruption = wait

    @handling(service, f"POST {_EXPORT}")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        other = service.identities.find_group(last[0]) or request.group
        for relation, objects in exports.relations(other).items():
            lines = tuple(orjson.dumps(one) for one in objects)
            place = request.group.id, relation
            exports.exports[place] = replace(exports.exports[place], lines=lines)
        return answer


# -- values that are almost right --------------------------------------------------------------------------------------


@foreign(_NEIGHBOURS, "Integrations: PUT")
def an_integration_that_is_told_to_be_inactive_stays_active(service: Service) -> None:
    """An integration that was active stays so, and is listed, after `active` false was sent."""

    @instead(service.integrations, "becomes_active")
    def _(becomes_active: Any, kind: Any, before: Any, wanted: Any) -> bool:
        return bool(before is not None and before.active) or bool(becomes_active(kind, before, wanted))


@foreign("forms of what is sent", "Code completion: completions")
def a_generation_needs_no_content(service: Service) -> None:
    """With the intent of a generation a file without content_above_cursor is taken, which is required always."""

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
