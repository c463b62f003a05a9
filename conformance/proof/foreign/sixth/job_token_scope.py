"""Faults of the job token scope that depend on what else is listed, and on what happened before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_entries
from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    COUNT,
    NEIGHBOUR,
    NOTHING_DONE,
    PAGES,
    SIDE_EFFECT,
    STORY,
)
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, SCOPE
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, is_served, let_in
from conformance.reference.http import Page
from conformance.reference.identity import Visibility

if TYPE_CHECKING:
    from conformance.reference import Service


# expects job-token-scope.allowlist.change.leaves-others
@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist")
def removing_a_project_removes_those_behind_it(service: Service) -> None:
    """Removing a project cuts the allowlist off at its place: those that were added later go as well."""

    @instead(service.job_token_scope, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        before = service.job_token_scope.of(project).projects
        remove(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=before[: before.index(target.id)])


# expects job-token-scope.switch.off
@foreign(NOTHING_DONE, "Job token scope: PATCH enabled false, allowlist not empty")
def the_limit_stays_on_while_a_group_is_listed(service: Service) -> None:
    """With a group in the allowlist the limit cannot be switched off: 204, and it stays on."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        if enabled or not service.job_token_scope.of(project).groups:
            limit(project, enabled=enabled)


# expects job-token-scope.allowlists.are-separate
@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist, group of the target")
def removing_a_project_removes_its_group(service: Service) -> None:
    """Removing a project takes the group in which it lies out of the allowlist of groups."""

    @instead(service.job_token_scope, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = service.job_token_scope.of(project)
        rest = tuple(number for number in scope.groups if number != target.namespace_id)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=rest)


# expects job-token-scope.project-entry.describes-target
@foreign(STORY, "Allowlist project entry: namespace, nested deeply")
def a_deep_namespace_has_the_outermost_group_as_parent(service: Service) -> None:
    """The parent_id of a namespace is the id of the outermost group, which shows only three levels down."""

    def change(entry: Any, _: Any) -> None:
        group = service.identities.groups.get(entry["namespace"]["id"])
        if group is not None and group.parent_id is not None:
            entry["namespace"]["parent_id"] = service.identities.lineage(group)[-1].id

    changing_entries(service, change)


# expects job-token-scope.allowlist.pages
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


# expects conventions.pagination.page-size
@foreign(PAGES, "Job token scope: GET allowlist, per_page without page")
def per_page_counts_only_beside_page(service: Service) -> None:
    """Without page, per_page is passed over, and the first page has the default length."""

    @handling(service, f"GET {ALLOWLIST}", f"GET {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        if not request.parameters.given("page"):
            values = request.parameters._values
            request.parameters._values = {name: value for name, value in values.items() if name != "per_page"}
        return handler(request)


# expects job-token-scope.allowlist.add.present
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


# expects job-token-scope.allowlist.add.present
@foreign(NOTHING_DONE, "Job token scope: POST allowlist, neighbour of the project")
def a_project_of_the_same_group_is_not_kept(service: Service) -> None:
    """A target in the same group counts as let in: it is answered with 201, and not listed."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> bool:
        return target.namespace_id == project.namespace_id or add(project, target)


# expects job-token-scope.allowlist.add.result-names-both
@foreign(CALLER_AND_FORM, "Job token scope: POST groups_allowlist by path")
def by_path_the_source_is_the_group_of_the_project(service: Service) -> None:
    """If the project is named by its path, source_project_id is the id of its namespace."""

    @handling(service, f"POST {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if by_path(request) and is_served(answer):
            answer.content = {**answer.content, "source_project_id": request.project.namespace_id}
        return answer


# expects job-token-scope.switch.shows-to-everybody
@foreign(AGAIN, "Job token scope: GET settings, cached by caller")
def the_settings_are_remembered_for_each_caller(service: Service) -> None:
    """Settings are remembered by caller, and only the one who switches the limit gets to see it."""
    seen: dict[tuple[int, int], Any] = {}

    @handling(service, f"GET {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = seen.setdefault((request.caller.id, request.project.id), answer.content)
        return answer

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        seen.pop((request.caller.id, request.project.id), None)
        return answer


# expects job-token-scope.group-entry.describes-target
@foreign(STORY, "Allowlist group entry: name of a subgroup")
def a_subgroup_is_listed_by_its_full_name(service: Service) -> None:
    """The name of a subgroup in the allowlist is its full name, with those of the groups around it."""

    @instead(service.job_token_scope, "present_group")
    def _(present: Any, group: Any) -> Any:
        return {**present(group), "name": group.full_name}


# expects job-token-scope.allowlists.are-separate
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


# expects job-token-scope.switch.enabled-is-required
@foreign(NEIGHBOUR, "Job token scope: PATCH enabled null")
def null_switches_the_limit_off(service: Service) -> None:
    """For enabled, null is taken as false."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if "enabled" in values and values["enabled"] is None:
            request.parameters._values = {**values, "enabled": False}
        return handler(request)


# expects job-token-scope.authorization.reading-below-maintainer
@foreign(CALLER_AND_FORM, "Job token scope: GET settings of a public project")
def everybody_reads_the_scope_of_a_public_project(service: Service) -> None:
    """In a public project everybody may read the settings and both allowlists, whatever the role."""
    reads = tuple(f"GET {path}" for path in (SCOPE, ALLOWLIST, GROUPS_ALLOWLIST))

    def fits(request: Any, _caller: Any, _role: Any) -> bool:
        return bool(found(service, request).visibility is Visibility.PUBLIC)

    let_in(service, reads, fits)


# expects job-token-scope.project-entry.topics
@foreign(COUNT, "Allowlist project entry: topics")
def no_topics_are_null(service: Service) -> None:
    """A project without topics has null as tag_list."""

    def change(entry: Any, _: Any) -> None:
        entry["tag_list"] = entry["tag_list"] or None

    changing_entries(service, change)

