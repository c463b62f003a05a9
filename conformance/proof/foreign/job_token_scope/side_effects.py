"""What else a served or refused change of a job token scope changes, in the project or in another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import REFUSED, SIDE_EFFECT
from conformance.proof.foreign.paths import SCOPE
from conformance.proof.foreign.registry import foreign, handling, instead

if TYPE_CHECKING:
    from conformance.reference import Service


# -- switching the limit -----------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Job token scope: PATCH")
def switching_off_deletes_a_rule(service: Service) -> None:
    """Switching the limit off deletes the newest approval rule of the project."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        rules = service.project_approval_rules.rules(project)
        if rules and not enabled:
            del service.approval_rules.rules[rules[-1].id]
        limit(project, enabled=enabled)


# The two lists are changed separately.
@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist")
def a_removed_project_takes_its_group_along(service: Service) -> None:
    """Removing a project also removes its group from the groups allowlist."""
    scopes, identities = service.job_token_scope, service.identities

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        around = {group.id for group in identities.lineage(target)[:1]}
        left = tuple(number for number in scopes.of(project).groups if number not in around)
        scopes.scopes[project.id] = replace(scopes.of(project), groups=left)


# The limit belongs to the project in the path.
@foreign(SIDE_EFFECT, "Job token scope: PATCH")
def the_limit_is_that_of_all_in_the_group(service: Service) -> None:
    """Switching the limit of a project switches that of every project in the same top-level group."""
    scopes, identities = service.job_token_scope, service.identities

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled)
        for other in list(identities.projects.values()):
            if identities.lineage(other)[-1:] == identities.lineage(project)[-1:]:
                scopes.scopes[other.id] = replace(scopes.of(other), inbound_enabled=enabled)


@foreign(SIDE_EFFECT, "Job token scope: PATCH")
def the_limit_belongs_to_the_group_around(service: Service) -> None:
    """The limit is stored by namespace: switching it for one project switches it for all projects of the group."""
    scopes = service.job_token_scope

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled)
        for other in list(service.identities.projects.values()):
            if other.namespace_id == project.namespace_id:
                scopes.scopes[other.id] = replace(scopes.of(other), inbound_enabled=enabled)


@foreign(SIDE_EFFECT, "Job token scope: PATCH")
def the_limit_is_switched_in_other_projects_too(service: Service) -> None:
    """Switching the limit of a project also switches that of every other project."""

    @instead(service.job_token_scope, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        for each in list(service.identities.projects.values()):
            limit(each, enabled=enabled)


@foreign(SIDE_EFFECT, "Job token scope: PATCH, allowlists of other projects")
def switching_the_limit_takes_a_project_off_other_lists(service: Service) -> None:
    """Switching the limit of a project removes it from the allowlists of other projects."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for number, scope in list(service.job_token_scope.scopes.items()):
            kept = tuple(one for one in scope.projects if one != request.project.id)
            service.job_token_scope.scopes[number] = replace(scope, projects=kept)
        return answer


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Job token scope: POST")
def letting_in_is_mutual(service: Service) -> None:
    """Adding a project also adds the source to that project's allowlist."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(target)
        service.job_token_scope.scopes[target.id] = replace(scope, projects=(*scope.projects, project.id))


@foreign(SIDE_EFFECT, "Job token scope: POST of an allowlist entry")
def an_addition_switches_the_limit_on(service: Service) -> None:
    """An addition is taken as a wish that the list counts: it switches the limit on."""
    scopes = service.job_token_scope
    for name in ("add_project", "add_group"):

        @instead(scopes, name)
        def _(add: Any, project: Any, target: Any) -> None:
            add(project, target)
            scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)


# Access through the outer group includes the inner one, so its entry seems superfluous.
@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist")
def an_outer_group_takes_the_place_of_its_inner_ones(service: Service) -> None:
    """Adding a group removes the entries of its subgroups from the allowlist, which nobody requested."""
    scopes, known = service.job_token_scope, service.identities

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        inside = {one.id for one in known.groups.values() if target in known.lineage(one)[1:]}
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# Adding a part seems to contradict the entry for the whole.
@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist")
def an_inner_group_takes_the_place_of_its_outer_one(service: Service) -> None:
    """Adding a group removes the entry of its parent group from the allowlist."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n != target.parent_id))
        add(project, target)


# Only a removal takes an entry from the list.
@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist")
def an_outer_group_takes_the_place_of_those_inside(service: Service) -> None:
    """Adding a group drops the entries of its subgroups, because they seem to be included."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope, groups = scopes.of(project), service.identities.groups
        inside = {n for n in scope.groups if n != target.id and target in service.identities.lineage(groups[n])}
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# The index is unique by target alone, and an insertion moves the conflicting row.
@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist")
def a_group_is_let_in_by_one_project_at_a_time(service: Service) -> None:
    """A group that one project adds disappears from the allowlist of another project."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        for number, scope in list(scopes.scopes.items()):
            if number != project.id and target.id in scope.groups:
                scopes.scopes[number] = replace(scope, groups=tuple(one for one in scope.groups if one != target.id))


# An added project is listed until it is removed.
@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist")
def a_group_that_is_let_in_takes_the_place_of_its_projects(service: Service) -> None:
    """Adding a group removes its projects from the other list, because they seem to be included."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        known, scope = service.identities.projects, scopes.of(project)
        left = (p for p in scope.projects if p in known and target not in service.identities.lineage(known[p]))
        scopes.scopes[project.id] = replace(scope, projects=tuple(left))


@foreign(SIDE_EFFECT, "Job token scope: POST")
def new_groups_switch_the_limit_on(service: Service) -> None:
    """Adding a group switches the limit on; only PATCH may do that."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)


@foreign(SIDE_EFFECT, "Job token scope: POST")
def additions_reach_the_sibling(service: Service) -> None:
    """What is added for a project is also added for a project of another group."""
    sibling = service.identities.projects[service.world.one("sibling_project").id]

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(sibling)
        service.job_token_scope.scopes[sibling.id] = replace(scope, projects=(*scope.projects, target.id))


@foreign(SIDE_EFFECT, "Job token scope: POST")
def additions_empty_the_other_list(service: Service) -> None:
    """Adding a project empties the list of groups; only the list of projects must change."""

    @instead(service.job_token_scope, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=())


@foreign(SIDE_EFFECT, "Job token scope: POST")
def additions_switch_the_limit_off(service: Service) -> None:
    """Adding a group switches the limit off; only the list must change."""

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, inbound_enabled=False)


@foreign(SIDE_EFFECT, "Job token scope: POST groups_allowlist, inbound_enabled", version="16.1")
def letting_a_group_in_switches_the_limit_on(service: Service) -> None:
    """Adding a group while the inbound limit is off switches it on."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        scopes.limit_inbound(project, enabled=True)


# -- removing from an allowlist ----------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Job token scope: DELETE of a group")
def removing_a_group_removes_its_subgroups(service: Service) -> None:
    """Removing a group from an allowlist also removes its subgroups."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope, known = service.job_token_scope.of(project), service.identities.groups
        kept = tuple(n for n in scope.groups if n not in known or known[n].parent_id != target.id)
        service.job_token_scope.scopes[project.id] = replace(scope, groups=kept)


# Removing a group from its list does not remove a project from the other one.
@foreign(SIDE_EFFECT, "Job token scope: DELETE, groups_allowlist")
def both_lists_are_one_table(service: Service) -> None:
    """Removing a group also removes the project with that id; if there is no such group, the answer is a refusal."""
    scopes = service.job_token_scope

    @handling(service, "DELETE /projects/:id/job_token_scope/groups_allowlist/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        scope = scopes.of(request.project)
        left = tuple(number for number in scope.projects if str(number) != request.path["target_group_id"])
        scopes.scopes[request.project.id] = replace(scope, projects=left)
        return handler(request)


@foreign(SIDE_EFFECT, "Job token scope: DELETE of an allowlist entry")
def removing_a_project_removes_the_group_of_its_number(service: Service) -> None:
    """Both lists are one table, from which a project is removed by its id alone."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        groups = tuple(number for number in scope.groups if number != target.id)
        scopes.scopes[project.id] = replace(scope, groups=groups)


@foreign(SIDE_EFFECT, "Job token scope: DELETE of an allowlist entry")
def a_removal_removes_the_group_from_every_list(service: Service) -> None:
    """The DELETE statement has a condition for the target but none for the project: the group leaves all lists."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        for number, scope in list(scopes.scopes.items()):
            groups = tuple(group for group in scope.groups if group != target.id)
            scopes.scopes[number] = replace(scope, groups=groups)


# Removing one entry removes only that entry.
@foreign(SIDE_EFFECT, "Job token scope: DELETE groups_allowlist")
def a_removed_group_takes_its_subgroups_along(service: Service) -> None:
    """Removing a group from the allowlist also removes its subgroups that were added separately."""
    scopes, known = service.job_token_scope, service.identities

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        inside = {group.id for group in known.groups.values() if target in known.lineage(group)}
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# One table has a column for the id and one for the kind, and the condition for the kind is missing.
@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist")
def a_removed_project_takes_the_group_of_its_number_along(service: Service) -> None:
    """Removing a project from the allowlist also removes the group with the same id from the other list."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n != target.id))


# Only the group is removed.
@foreign(SIDE_EFFECT, "Job token scope: DELETE groups_allowlist/:target_group_id")
def a_group_that_leaves_takes_its_projects_along(service: Service) -> None:
    """Removing a group from its list also removes its projects from theirs."""
    scopes, identities = service.job_token_scope, service.identities

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        inside = {one.id for one in identities.projects.values() if target in identities.lineage(one)}
        scopes.scopes[project.id] = replace(scope, projects=tuple(n for n in scope.projects if n not in inside))


# Each entry was added by its own call, and only a call that names it removes it.
@foreign(SIDE_EFFECT, "Job token scope: DELETE groups_allowlist")
def removing_a_group_removes_the_groups_inside_it(service: Service) -> None:
    """Removing a group also removes its subgroups that were added by their own calls."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        groups, scope = service.identities.groups, scopes.of(project)
        left = (g for g in scope.groups if g in groups and target not in service.identities.lineage(groups[g]))
        scopes.scopes[project.id] = replace(scope, groups=tuple(left))


# Whatever the answer to a removal of what is not listed, nothing else is removed.
@foreign(REFUSED, "Job token scope: DELETE allowlist")
def removing_what_is_not_listed_removes_the_last_entry(service: Service) -> None:
    """The index of a missing project is -1, which is that of the last entry."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        scope = scopes.of(project)
        if target.id in scope.projects or not scope.projects:
            return remove(project, target)
        scopes.scopes[project.id] = replace(scope, projects=scope.projects[:-1])
        return None


@foreign(SIDE_EFFECT, "Job token scope: DELETE")
def removing_a_project_removes_it_on_the_other_side_too(service: Service) -> None:
    """If two projects are in each other's allowlists and one removes the other, both entries are removed."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        other = scopes.of(target)
        scopes.scopes[target.id] = replace(other, projects=tuple(n for n in other.projects if n != project.id))


@foreign(SIDE_EFFECT, "Job token scope: DELETE, allowlists of other projects")
def who_is_taken_off_one_allowlist_is_off_all_of_them(service: Service) -> None:
    """A project that is removed from the allowlist of one project is removed from those of all others."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        for number, scope in list(scopes.scopes.items()):
            scopes.scopes[number] = replace(scope, projects=tuple(n for n in scope.projects if n != target.id))


# Only its own operation changes the limit.
@foreign(SIDE_EFFECT, "Job token scope: DELETE allowlist")
def the_limit_is_back_on_when_a_project_is_taken_off_the_list(service: Service) -> None:
    """Removing a project while the limit is off switches it on."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=True)


@foreign(SIDE_EFFECT, "Job token scope: PATCH")
def the_limit_stays_on_while_a_group_is_let_in(service: Service) -> None:
    """Switching the limit off is served but has no effect while the groups allowlist has an entry."""
    scopes = service.job_token_scope

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled or bool(scopes.of(project).groups))


@foreign(SIDE_EFFECT, "Job token scope: DELETE, allowlists of other projects")
def who_leaves_one_list_leaves_those_of_its_namespace(service: Service) -> None:
    """A project that is removed from one allowlist is removed from those of all projects in the same namespace."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        for other in service.identities.projects.values():
            if other.namespace_id == project.namespace_id:
                scope = scopes.of(other)
                scopes.scopes[other.id] = replace(scope, projects=tuple(n for n in scope.projects if n != target.id))
