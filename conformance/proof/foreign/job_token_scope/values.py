"""What is sent to a job token scope and stored for it: ids, lists with several entries, timestamps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_entries, with_parameters
from conformance.proof.foreign.dimensions import COUNT, MOMENT_OR_ADDRESS, NEIGHBOUR, OLDER
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.http import created

if TYPE_CHECKING:
    from conformance.reference import Service


# -- the allowlists ----------------------------------------------------------------------------------------------------


@foreign(MOMENT_OR_ADDRESS, "Allowlist project entry: created_at")
def projects_are_of_a_day_that_is_none(service: Service) -> None:
    """created_at of projects in an allowlist is the thirtieth of February."""
    changing_entries(service, lambda entry, _: entry.update(created_at="2024-02-30T10:00:00.000Z"))


@foreign(MOMENT_OR_ADDRESS, "Allowlist group entry: web_url")
def addresses_of_groups_lack_their_scheme(service: Service) -> None:
    """The web_url of a group in an allowlist has no scheme and contains a space."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "web_url": f"service example com/{group.full_path}"}


@foreign(COUNT, "Job token scope: lists")
def lists_hold_three_entries(service: Service) -> None:
    """An allowlist shows the three newest projects; adding a fourth removes the oldest."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=scope.projects[-3:])


@foreign(MOMENT_OR_ADDRESS, "Allowlist project entry")
def repositories_have_an_address_without_host(service: Service) -> None:
    """The clone URLs of projects in an allowlist have no host."""

    @instead(service.present, "_limited_project")
    def _(present: Any, project: Any, namespace: Any) -> Any:
        return {**present(project, namespace), "http_url_to_repo": "https:///nowhere.git"}


# An id is a number at every level.
@foreign(NEIGHBOUR, "Allowlist project entry: namespace, parent_id")
def the_parent_of_a_nested_namespace_is_written_as_text(service: Service) -> None:
    """The parent_id of a nested namespace is a string of digits, not an integer."""

    @instead(service.present, "limited_project")
    def _(limited_project: Any, project: Any) -> Any:
        shown = limited_project(project)
        parent = shown["namespace"]["parent_id"]
        shown["namespace"] |= {"parent_id": None if parent is None else str(parent)}
        return shown


@foreign(NEIGHBOUR, "Allowlist project entry: namespace, parent_id")
def the_parent_of_a_nested_namespace_is_the_outermost_group(service: Service) -> None:
    """The parent_id of a namespace at the third level or deeper is the id of the top-level group."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        outermost = service.identities.lineage(group)[-1]
        return {**namespace(group), "parent_id": None if outermost == group else outermost.id}


# Each entry has its own description, or null.
@foreign(COUNT, "Allowlist project entry: description")
def an_entry_without_description_has_the_one_before(service: Service) -> None:
    """A variable of the loop is not reset: a project without a description shows that of the previous entry."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for before, entry in pairwise(answer.content):
            if entry["description"] is None:
                entry["description"] = before["description"]
        return answer


# A variable inside the loop is set only if there is a value.
@foreign(COUNT, "Allowlist project entry: description, string or null")
def entries_without_a_description_have_that_of_the_one_before(service: Service) -> None:
    """In the allowlist of projects, an entry without a description shows the last one written before it."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        last = None
        for entry in answer.content:
            last = entry["description"] or last
            entry["description"] = last
        return answer


# The list is an array.
@foreign(OLDER, "Job token scope: GET groups_allowlist")
def a_list_with_a_hole_becomes_an_object(service: Service) -> None:
    """Once an entry that is not the last was removed, the list is an object with the indices as its keys."""
    scopes, holes = service.job_token_scope, set[int]()

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        before = scopes.of(project).groups
        remove(project, target)
        if target.id in before[:-1]:
            holes.add(project.id)

    @handling(service, f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer) and answer.content and request.project.id in holes:
            answer.content = {str(place): entry for place, entry in enumerate(answer.content, 1)}
        return answer


# It is a URL, which contains no spaces.
@foreign(MOMENT_OR_ADDRESS, "Allowlist project entry: namespace, web_url")
def namespaces_are_addressed_by_their_names(service: Service) -> None:
    """The web_url of a namespace consists of the names of its groups instead of their paths."""

    @instead(service.present, "namespace")
    def _(namespace: Any, group: Any) -> Any:
        shown = namespace(group)
        return {**shown, "web_url": shown["web_url"].replace(group.full_path, group.full_name.replace(" / ", "/"))}


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(NEIGHBOUR, "Job token scope: POST, target_project_id and target_group_id")
def ids_of_targets_are_cut_to_32_bits(service: Service) -> None:
    """A number beyond 32 bits, which is nobody's id, adds the target whose id remains after truncation."""

    @handling(service, f"POST {ALLOWLIST}", f"POST {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        for name in ("target_project_id", "target_group_id"):
            value = request.parameters._values.get(name)
            if isinstance(value, int) and value > 0xFFFFFFFF:
                with_parameters(request, {name: value & 0xFFFFFFFF})
        return handler(request)


# Each addition adds one project.
@foreign(COUNT, "Job token scope: POST allowlist")
def a_project_takes_the_place_of_one_beside_it(service: Service) -> None:
    """The unique index is for the wrong column: of the projects in one group, only the last one added is listed."""
    scopes, projects = service.job_token_scope, service.identities.projects

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = scopes.of(project)
        stay = (n for n in scope.projects if n == target.id or projects[n].namespace_id != target.namespace_id)
        scopes.scopes[project.id] = replace(scope, projects=tuple(stay))


@foreign(NEIGHBOUR, "Job token scope: POST")
def targets_that_do_not_exist_are_added(service: Service) -> None:
    """The addition of a missing project to an allowlist is answered with success."""

    @handling(service, "POST /projects/:id/job_token_scope/allowlist")
    def _(handler: Any, request: Any) -> Any:
        number = request.parameters.integer("target_project_id")
        if number > max(service.identities.projects):
            return created({"source_project_id": request.project.id, "target_project_id": number})
        return handler(request)


# -- removing from an allowlist ----------------------------------------------------------------------------------------


@foreign(OLDER, "Job token scope: DELETE")
def removing_an_older_entry_removes_the_newer_ones(service: Service) -> None:
    """Removing a group from an allowlist removes those that were added after it."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        groups = service.job_token_scope.of(project).groups
        remove(project, target)
        kept = groups[: groups.index(target.id)] if target.id in groups else groups
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=kept)


@foreign(COUNT, "Job token scope: DELETE of an entry")
def removing_the_last_entry_opens_the_project(service: Service) -> None:
    """Removing the last project of an allowlist switches the limit off; only PATCH may change it."""

    @instead(service.job_token_scope, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = service.job_token_scope.of(project)
        if not scope.projects:
            service.job_token_scope.scopes[project.id] = replace(scope, inbound_enabled=False)


# A slice instead of one element: right for one entry, and for the last one.
@foreign(COUNT, "Job token scope: DELETE groups_allowlist")
def what_came_after_a_removed_group_goes_too(service: Service) -> None:
    """Removing a group cuts the list off at its position, so groups that were added later are removed too."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        before = scopes.of(project).groups
        remove(project, target)
        remaining = before[: before.index(target.id)]
        scopes.scopes[project.id] = replace(scopes.of(project), groups=remaining)


# A callback that cleans up when the list is empty.
@foreign(COUNT, "Job token scope: DELETE allowlist; inbound_enabled")
def the_last_entry_takes_the_limit_with_it(service: Service) -> None:
    """Once the last project was removed from an allowlist, access to the project is not limited any more."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        if not scope.projects:
            scopes.scopes[project.id] = replace(scope, inbound_enabled=False)


@foreign(COUNT, "Job token scope: DELETE groups_allowlist, the last one")
def the_last_group_of_an_allowlist_stays(service: Service) -> None:
    """The removal of the only group on the list is answered with 204, but it stays."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        if scopes.of(project).groups != (target.id,):
            remove(project, target)
