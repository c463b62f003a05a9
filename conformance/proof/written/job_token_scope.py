"""Faults of the job token scope: changes over time, isolation, and invalid input that is accepted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import (
    altering,
    around,
    does_nothing,
    handling,
    refusing,
    replacing,
    replacing_in_each,
)
from conformance.proof.written.approval_rules import unknown_is_the_usual
from conformance.reference.errors import ApiError, ForbiddenError, NoRouteError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

SCOPE = "/projects/:id/job_token_scope"
ALLOWLIST = f"{SCOPE}/allowlist"
GROUPS = f"{SCOPE}/groups_allowlist"


@fault("job-token-scope.switch.off")
def limit_cannot_be_switched_off(service: Service) -> None:
    """PATCH answers 204 to enabled false, but leaves the limit on."""
    limit = service.job_token_scope.limit_inbound

    def only_on(project: Any, *, enabled: bool) -> None:
        if enabled:
            limit(project, enabled=True)

    service.job_token_scope.limit_inbound = only_on


@fault("job-token-scope.switch.on")
def limit_cannot_be_switched_on(service: Service) -> None:
    """PATCH answers 204 to enabled true, but leaves the limit off."""
    limit = service.job_token_scope.limit_inbound

    def only_off(project: Any, *, enabled: bool) -> None:
        if not enabled:
            limit(project, enabled=False)

    service.job_token_scope.limit_inbound = only_off


@fault("job-token-scope.switch.repeated")
def repeated_switch_toggles(service: Service) -> None:
    """Setting the limit to its current value switches it to the opposite."""
    scopes = service.job_token_scope
    limit = scopes.limit_inbound

    def toggling(project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled != (scopes.of(project).inbound_enabled == enabled))

    scopes.limit_inbound = toggling


@fault("job-token-scope.allowlist.add.present")
def added_project_is_not_stored(service: Service) -> None:
    """POST answers 201, but adds nothing."""
    service.job_token_scope.add_project = does_nothing


@fault("job-token-scope.groups-allowlist.add.present")
def added_group_is_not_stored(service: Service) -> None:
    """POST answers 201, but adds nothing."""
    service.job_token_scope.add_group = does_nothing


@fault("job-token-scope.allowlist.remove.gone")
def removed_project_stays(service: Service) -> None:
    """DELETE answers 204, but removes nothing."""
    service.job_token_scope.remove_project = does_nothing


@fault("job-token-scope.groups-allowlist.remove.gone")
def removed_group_stays(service: Service) -> None:
    """DELETE answers 204, but removes nothing."""
    service.job_token_scope.remove_group = does_nothing


def _instead_of_adding(service: Service, name: str, then: Callable[[Any, Any], None]) -> None:
    """Add as usual, and run something afterwards."""
    scopes = service.job_token_scope
    add = getattr(scopes, name)

    def adding(project: Any, target: Any) -> None:
        listed = target.id in (scopes.of(project).projects if name == "add_project" else scopes.of(project).groups)
        if not listed:
            add(project, target)
        then(project, target)

    setattr(scopes, name, adding)


def _twice(service: Service, kind: str) -> None:
    """Let an addition of a listed entry list it again."""
    scopes = service.job_token_scope

    def adding(project: Any, target: Any) -> None:
        scope = scopes.of(project)
        more: dict[str, Any] = {kind: (*getattr(scope, kind), target.id)}
        scopes.scopes[project.id] = replace(scope, **more)

    setattr(scopes, "add_project" if kind == "projects" else "add_group", adding)


@fault("job-token-scope.allowlist.add.repeated")
def project_is_listed_twice(service: Service) -> None:
    """Adding a listed project again lists it twice."""
    _twice(service, "projects")


@fault("job-token-scope.groups-allowlist.add.repeated")
def group_is_listed_twice(service: Service) -> None:
    """Adding a listed group again lists it twice."""
    _twice(service, "groups")


@fault("job-token-scope.allowlist.change.leaves-others")
def adding_a_third_project_drops_the_first(service: Service) -> None:
    """The list of projects keeps at most two added ones."""
    scopes = service.job_token_scope

    def trim(project: Any, _: Any) -> None:
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, projects=scope.projects[-2:])

    _instead_of_adding(service, "add_project", trim)


@fault("job-token-scope.groups-allowlist.change.leaves-others")
def removing_a_group_drops_another(service: Service) -> None:
    """Removing a group also removes the last of the others."""
    scopes = service.job_token_scope
    remove = scopes.remove_group

    def removing(project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=scope.groups[:-1])

    scopes.remove_group = removing


@fault("job-token-scope.allowlists.are-separate")
def adding_a_project_clears_the_groups(service: Service) -> None:
    """Adding a project empties the list of groups."""
    scopes = service.job_token_scope

    def clear(project: Any, _: Any) -> None:
        scopes.scopes[project.id] = replace(scopes.of(project), groups=())

    _instead_of_adding(service, "add_project", clear)


@fault("job-token-scope.allowlists.belong-to-their-project")
def additions_reach_every_project(service: Service) -> None:
    """A project that is added to one list is added to the lists of all projects."""
    scopes = service.job_token_scope

    def spread(_: Any, target: Any) -> None:
        for project in list(service.identities.projects.values()):
            scope = scopes.of(project)
            scopes.scopes[project.id] = replace(scope, projects=tuple({*scope.projects, target.id}))

    _instead_of_adding(service, "add_project", spread)


def emptied_by_absent_removal(service: Service, kind: str, part: str) -> None:
    """Let the removal of what is not listed remove everything else."""
    scopes = service.job_token_scope

    def make(remove: Any) -> Any:
        def removing(project: Any, target: Any) -> None:
            if target.id in getattr(scopes.of(project), part):
                remove(project, target)
            else:
                scopes.scopes[project.id] = replace(scopes.of(project), **{part: ()})

        return removing

    around(scopes, f"remove_{kind}", make)


@fault("job-token-scope.allowlist.remove.absent")
def removing_an_absent_project_empties_the_list(service: Service) -> None:
    """Removing a project that is not listed removes all others."""
    emptied_by_absent_removal(service, "project", "projects")


@fault("job-token-scope.groups-allowlist.remove.absent")
def removing_an_absent_group_empties_the_list(service: Service) -> None:
    """Removing a group that is not listed removes all others."""
    emptied_by_absent_removal(service, "group", "groups")


@fault("job-token-scope.allowlist.add.result-names-both")
def answer_names_another_source_project(service: Service) -> None:
    """The answer to the addition of a project names the wrong source."""
    replacing(service, f"POST {ALLOWLIST}", source_project_id=999_999)


@fault("job-token-scope.groups-allowlist.add.result-names-both")
def answer_names_another_group(service: Service) -> None:
    """The answer to the addition of a group names the wrong target."""
    replacing(service, f"POST {GROUPS}", target_group_id=999_999)


@fault("job-token-scope.allowlist.add.result-is-of-its-kind")
def answer_for_a_project_names_a_group(service: Service) -> None:
    """The answer to the addition of a project also has a group."""
    replacing(service, f"POST {ALLOWLIST}", target_group_id=999_999)


@fault("job-token-scope.groups-allowlist.add.result-is-of-its-kind")
def answer_for_a_group_names_a_project(service: Service) -> None:
    """The answer to the addition of a group also has a project."""
    replacing(service, f"POST {GROUPS}", target_project_id=999_999)


@fault("job-token-scope.project-entry.describes-target")
def entries_describe_one_project(service: Service) -> None:
    """Every entry of the list of projects has the same path."""
    replacing_in_each(service, f"GET {ALLOWLIST}", path_with_namespace="some/where")


@fault("job-token-scope.group-entry.describes-target")
def entries_describe_one_group(service: Service) -> None:
    """Every entry of the list of groups has the same name."""
    replacing_in_each(service, f"GET {GROUPS}", name="Somebody")


@fault("job-token-scope.project-entry.fields")
def listed_project_has_no_default_branch(service: Service) -> None:
    """Projects with a repository are listed without a default branch."""
    replacing_in_each(service, f"GET {ALLOWLIST}", default_branch=None)


def _taking_unknown(service: Service, name: str, subjects: str) -> None:
    find = getattr(service.job_token_scope, name)

    def anything(number: int, caller: Any = None) -> Any:
        with suppress(ApiError):  # the default branch does not exist, or the caller may not see it
            return find(number, caller)
        return replace(next(iter(getattr(service.identities, subjects).values())), id=number)

    setattr(service.job_token_scope, name, anything)


@fault("job-token-scope.allowlist.add.unknown-target")
def unknown_project_can_be_added(service: Service) -> None:
    """POST answers 201 for a project that does not exist."""
    _taking_unknown(service, "target_project", "projects")


@fault("job-token-scope.groups-allowlist.add.unknown-target")
def unknown_group_can_be_added(service: Service) -> None:
    """POST answers 201 for a group that does not exist."""
    _taking_unknown(service, "target_group", "groups")


def _renaming(service: Service, key: str, taken: str, wanted: str) -> None:
    route = service.routes.get(key)

    def lenient(request: Request) -> Response:
        request.body = request.body.replace(f'"{taken}"'.encode(), f'"{wanted}"'.encode())
        return route.handler(request)

    service.routes.change(key, handler=lenient)


@fault("job-token-scope.allowlist.add.needs-its-own-parameter")
def list_of_projects_takes_groups(service: Service) -> None:
    """POST to the list of projects accepts any number as the id of a group."""
    _taking_unknown(service, "target_project", "projects")
    _renaming(service, f"POST {ALLOWLIST}", "target_group_id", "target_project_id")


@fault("job-token-scope.groups-allowlist.add.needs-its-own-parameter")
def list_of_groups_takes_projects(service: Service) -> None:
    """POST to the list of groups accepts any number as the id of a project."""
    _taking_unknown(service, "target_group", "groups")
    _renaming(service, f"POST {GROUPS}", "target_project_id", "target_group_id")


@fault("job-token-scope.unknown-project")
def unknown_project_is_the_first_one(service: Service) -> None:
    """An existing project is used in place of a missing one."""
    unknown_is_the_usual(service, "find_project", "projects", "project")


@fault("job-token-scope.available")
def groups_allowlist_is_not_offered(service: Service) -> None:
    """The list of groups is answered with 404."""
    refusing(service, f"GET {GROUPS}", lambda _: True, NoRouteError)


@fault("job-token-scope.authorization.switching-below-maintainer")
def developer_may_switch(service: Service) -> None:
    """PATCH requires only the developer role."""
    service.routes.change(f"PATCH {SCOPE}", least_role=Role.DEVELOPER)


def _open_while_off(service: Service, key: str) -> None:
    service.routes.change(key, least_role=Role.DEVELOPER)

    def lacks_the_role(request: Request) -> bool:
        is_below = service.identities.role_in(request.caller, request.project) < Role.MAINTAINER
        return is_below and service.job_token_scope.of(request.project).inbound_enabled

    refusing(service, key, lacks_the_role, ForbiddenError)


@fault("job-token-scope.authorization.reading-below-maintainer")
def developer_may_list_projects_while_the_limit_is_off(service: Service) -> None:
    """While the limit is off, the list of projects requires only the developer role."""
    _open_while_off(service, f"GET {ALLOWLIST}")


@fault("job-token-scope.authorization.switching-below-maintainer")
def developer_may_switch_while_the_limit_is_off(service: Service) -> None:
    """While the limit is off, PATCH requires only the developer role."""
    _open_while_off(service, f"PATCH {SCOPE}")


# -- several readers and writers ---------------------------------------------------------------------------------------


def shown_from_memory(service: Service, read: str, writes: tuple[str, ...]) -> None:
    """Show each reader the result of the first read, until the reader writes something."""
    seen: dict[tuple[int, str], Response] = {}

    def remembering(handler: Any) -> Any:
        def reading(request: Request) -> Response:
            return seen.setdefault((request.caller.id, str(request.path)), handler(request))

        return reading

    def forgetting(handler: Any) -> Any:
        def writing(request: Request) -> Response:
            for key in [key for key in seen if key[0] == request.caller.id]:
                del seen[key]
            return handler(request)

        return writing

    handling(service, read, remembering)
    for key in writes:
        handling(service, key, forgetting)


@fault("job-token-scope.switch.shows-to-everybody")
def settings_are_shown_from_memory(service: Service) -> None:
    """A caller who has read the settings gets the same ones until the next own change."""
    shown_from_memory(service, f"GET {SCOPE}", (f"PATCH {SCOPE}",))


@fault("job-token-scope.allowlist.change.shows-to-everybody")
def list_of_projects_is_shown_from_memory(service: Service) -> None:
    """A caller who has read the list of projects gets the same one until the next own change."""
    shown_from_memory(
        service, f"GET {ALLOWLIST}", (f"POST {ALLOWLIST}", f"DELETE {ALLOWLIST}/:target_project_id", f"PATCH {SCOPE}")
    )


@fault("job-token-scope.groups-allowlist.change.shows-to-everybody")
def list_of_groups_is_shown_from_memory(service: Service) -> None:
    """A caller who has read the list of groups gets the same one until the next own change."""
    shown_from_memory(
        service, f"GET {GROUPS}", (f"POST {GROUPS}", f"DELETE {GROUPS}/:target_group_id", f"PATCH {SCOPE}")
    )


def _overwritten(service: Service, key: str, part: str) -> None:
    """Let an addition drop another caller's recent one, as if both had started from the same list."""
    scopes, moment = service.job_token_scope, 0.05
    last: dict[int, tuple[int, float, Any]] = {}

    def make(handler: Any) -> Any:
        def adding(request: Request) -> Response:
            project, now = request.project, service.clock.seconds()
            who, when, begun_with = last.get(project.id, (0, 0.0, None))
            fresh = scopes.of(project)
            if who not in (0, request.caller.id) and now - when < moment:
                scopes.scopes[project.id] = replace(fresh, **{part: begun_with})
            last[project.id] = (request.caller.id, now, getattr(fresh, part))
            return handler(request)

        return adding

    handling(service, key, make)


@fault("job-token-scope.allowlist.add.side-by-side")
def additions_of_projects_overwrite_each_other(service: Service) -> None:
    """If two callers add two projects concurrently, only the second one is listed."""
    _overwritten(service, f"POST {ALLOWLIST}", "projects")


@fault("job-token-scope.groups-allowlist.add.side-by-side")
def additions_of_groups_overwrite_each_other(service: Service) -> None:
    """If two callers add two groups concurrently, only the second one is listed."""
    _overwritten(service, f"POST {GROUPS}", "groups")


# -- what entries show -------------------------------------------------------------------------------------------------


@fault("job-token-scope.project-entry.is-of-one-project")
def entries_share_their_address(service: Service) -> None:
    """Every entry of the list of projects has the same web_url."""
    replacing_in_each(service, f"GET {ALLOWLIST}", web_url="https://service.example.com/some/where")


@fault("job-token-scope.project-entry.is-of-one-project")
def entries_lie_in_another_namespace(service: Service) -> None:
    """An entry of the list of projects has the namespace of another project."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = [{**entry, "namespace": {**entry["namespace"], "full_path": "others"}} for entry in content]

    altering(service, f"GET {ALLOWLIST}", alter)


@fault("job-token-scope.project-entry.same-everywhere")
def entries_are_made_when_they_are_listed(service: Service) -> None:
    """The name of a project depends on the list in which it is shown."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        response.content = [
            {**entry, "name_with_namespace": f"{request.project.id} / {entry['name']}"} for entry in content
        ]

    altering(service, f"GET {ALLOWLIST}", alter)


@fault("job-token-scope.group-entry.describes-target")
def groups_share_their_address(service: Service) -> None:
    """Every entry of the list of groups has the same web_url."""
    replacing_in_each(service, f"GET {GROUPS}", web_url="https://service.example.com/groups/some")


@fault("job-token-scope.project-entry.describes-target")
def entries_have_another_branch(service: Service) -> None:
    """Every entry of the list of projects has a default branch that its project does not have."""
    replacing_in_each(service, f"GET {ALLOWLIST}", default_branch="trunk-of-another")
