"""Plausible faults in job token scopes and their allowlists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    NOTHING_DONE,
    PAGES,
    SIDE_EFFECT,
)
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST
from conformance.proof.foreign.registry import by_path, foreign, handling, instead
from conformance.reference.http import Page

if TYPE_CHECKING:
    from conformance.reference import Service


_ADD = f"POST {ALLOWLIST}"
_ADD_GROUP = f"POST {GROUPS_ALLOWLIST}"
_REMOVE_GROUP = f"DELETE {GROUPS_ALLOWLIST}/:target_group_id"


@foreign(AGAIN, "Allowlist: GET after DELETE")
def a_list_that_was_read_outlives_a_removal(service: Service) -> None:
    """The list of projects is remembered by page; an addition clears what is remembered, a removal does not."""
    known: dict[Any, Any] = {}

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.query
        if key not in known:
            known[key] = handler(request).content
        answer = handler(request)
        answer.content = known[key]
        return answer

    @handling(service, _ADD)
    def _(handler: Any, request: Any) -> Any:
        known.clear()
        return handler(request)


@foreign(SIDE_EFFECT, "Allowlist: DELETE removes the target")
def removing_a_group_removes_the_project_of_that_id(service: Service) -> None:
    """Removing the group 7 from the allowlist removes the project 7 as well: the kind is not looked at."""

    @handling(service, _REMOVE_GROUP)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        scopes, number = service.job_token_scope, int(request.path["target_group_id"])
        scope = scopes.of(request.project)
        scopes.scopes[request.project.id] = replace(scope, projects=tuple(n for n in scope.projects if n != number))
        return answer


@foreign(SIDE_EFFECT, "Allowlist: POST adds the target")
def a_project_of_a_listed_group_is_not_added(service: Service) -> None:
    """A project whose group is listed already is answered with 201, and not added."""
    scopes = service.job_token_scope

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> bool:
        listed = {*scopes.of(project).groups}
        if any(group.id in listed for group in service.identities.lineage(target)):
            return True
        return bool(add(project, target))


@foreign(SIDE_EFFECT, "Allowlist: POST of a group")
def a_subgroup_takes_the_place_of_its_parent(service: Service) -> None:
    """Adding a subgroup removes the groups around it from the allowlist, and the other way round."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> bool:
        is_new = bool(add(project, target))
        scope, groups = scopes.of(project), service.identities.groups
        mine = {one.id for one in service.identities.lineage(target)} - {target.id}
        below = {n for n in scope.groups if n != target.id and target in service.identities.lineage(groups[n])}
        kept = tuple(n for n in scope.groups if n not in mine | below)
        scopes.scopes[project.id] = replace(scope, groups=kept)
        return is_new


@foreign(AGAIN, "Job token scope: PATCH makes the limit equal enabled")
def the_same_value_twice_switches_back(service: Service) -> None:
    """PATCH toggles the limit if it has the sent value already."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        same = service.job_token_scope.of(project).inbound_enabled == enabled
        limit(project, enabled=not enabled if same else enabled)


@foreign(CALLER_AND_FORM, "Allowlist: POST, result")
def a_project_by_path_has_no_source_id(service: Service) -> None:
    """source_project_id is what stands in the path: for a path instead of an id it is 0."""

    def change(request: Any, content: Any) -> Any:
        return {**content, "source_project_id": 0} if by_path(request) else content

    answering(service, _ADD_GROUP, change)


@foreign(NOTHING_DONE, "Job token scope: PATCH enabled false, allowlist not empty")
def the_limit_stays_on_while_a_group_is_listed(service: Service) -> None:
    """With a group in the allowlist the limit cannot be switched off: 204, and it stays on."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        if enabled or not service.job_token_scope.of(project).groups:
            limit(project, enabled=enabled)


@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist, group of the target")
def removing_a_project_removes_its_group(service: Service) -> None:
    """Removing a project takes the group in which it lies out of the allowlist of groups."""

    @instead(service.job_token_scope, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = service.job_token_scope.of(project)
        rest = tuple(number for number in scope.groups if number != target.namespace_id)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=rest)


@foreign(PAGES, "Job token scope: GET allowlist, page 2")
def every_page_begins_with_the_project_itself(service: Service) -> None:
    """The project itself is put in front of each page of its allowlist, so pages are too long and repeat it."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        shown = answer.content
        if Page.of(request.parameters, request.choices).number > 1 and shown:
            answer.content = [service.present.limited_project(request.project), *shown]
        return answer


@foreign(AGAIN, "Job token scope: POST allowlist after DELETE")
def a_removed_group_does_not_come_back(service: Service) -> None:
    """A group that was removed once is added with 201, and is not listed."""
    removed: set[tuple[int, int]] = set()

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        removed.add((project.id, target.id))

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> bool:
        return (project.id, target.id) in removed or add(project, target)


@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist, projects of the group")
def adding_a_group_adds_its_projects(service: Service) -> None:
    """Adding a group adds the projects that lie in it to the allowlist of projects."""

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> bool:
        is_new = add(project, target)
        inside = [one for one in service.identities.projects.values() if one.namespace_id == target.id]
        scope = service.job_token_scope.of(project)
        more = tuple(one.id for one in inside if one.id not in scope.projects)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=scope.projects + more)
        return bool(is_new)
