"""Plausible faults in job token scopes and their allowlists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_FORM, SIDE_EFFECT
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST
from conformance.proof.foreign.registry import by_path, foreign, handling, instead

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
