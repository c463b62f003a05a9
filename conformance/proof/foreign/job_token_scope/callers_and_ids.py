"""Who may read and change a job token scope, and which project or group an id means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import CALLER_AND_FORM, CALLER_AND_VALUE, LEVEL
from conformance.proof.foreign.paths import ALLOWLIST, GROUPS_ALLOWLIST, SCOPE
from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, let_in
from conformance.reference.errors import ForbiddenError, RejectedError, RepeatedError
from conformance.reference.identity import Kind, Role, Visibility

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request


# -- reading the scope -------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_read_the_scope_by_path(service: Service) -> None:
    """A developer can read the scope if the project is named by its path; it requires a maintainer."""
    let_in(service, (f"GET {SCOPE}",), lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(CALLER_AND_FORM, "Job token scope: GET")
def public_projects_show_their_scope(service: Service) -> None:
    """Everybody who can see a project that is not private can read its scope and lists; it requires a maintainer."""

    def is_open(request: Any, _: Any, __: Any) -> bool:
        project = service.identities.find_project(request.path["id"])
        return project is not None and project.visibility is not Visibility.PRIVATE

    let_in(service, (f"GET {SCOPE}", f"GET {ALLOWLIST}", f"GET {GROUPS_ALLOWLIST}"), is_open)


@foreign(CALLER_AND_VALUE, "Job token scope settings: inbound_enabled, read by a bot")
def bots_are_shown_the_limit_that_a_project_began_with(service: Service) -> None:
    """Bots get values from the creation of their token: the limit as it was before any change."""

    def change(request: Any, content: Any) -> Any:
        if request.caller.bot:
            return {**content, "inbound_enabled": service.choices.inbound_enabled_initially}
        return content

    answering(service, f"GET {SCOPE}", change)


# -- switching the limit -----------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def guests_switch_the_limit_by_path(service: Service) -> None:
    """A guest can switch the limit if the project is named by its path; it requires a maintainer."""
    let_in(service, (f"PATCH {SCOPE}",), lambda request, _, role: by_path(request) and role >= Role.GUEST)


@foreign(CALLER_AND_FORM, "Job token scope: PATCH")
def switching_by_path_is_forgotten(service: Service) -> None:
    """Switching the limit of a project named by its path is answered, but not done."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if by_path(request):
            service.store.restore(before)
        return answer


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_switch_limits_in_subgroups(service: Service) -> None:
    """A developer can switch the limit of a project in a subgroup; it requires a maintainer."""
    let_in(service, (f"PATCH {SCOPE}",), lambda r, _, role: found(service, r).full_path.count("/") > 1 and role >= 30)


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def owners_may_not_switch_by_path(service: Service) -> None:
    """An owner may not switch the limit if the project is named by its path; the Maintainer role is sufficient."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and service.identities.role_in(request.caller, request.project) >= Role.OWNER:
            request.service.access.require_role(request.caller, request.project, 60)
        return handler(request)


@foreign(CALLER_AND_VALUE, "Job token scope: PATCH")
def a_developer_may_switch_the_limit_on(service: Service) -> None:
    """Developers can switch the inbound limit on, but not off; both require the Maintainer role."""

    def fits(request: Request, _: Any, role: Role) -> bool:
        return role >= Role.DEVELOPER and bool(request.parameters.optional_boolean("enabled"))

    let_in(service, (f"PATCH {SCOPE}",), fits)


# -- the allowlists ----------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements, job token scope")
def administrators_are_refused_a_scope(service: Service) -> None:
    """An administrator without a role in a project gets an allowlist that is always empty."""

    @handling(service, f"GET {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.caller.admin:
            answer.content = []
        return answer


# -- adding to an allowlist --------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_add_groups_by_path(service: Service) -> None:
    """A developer can add a group if the project is named by its path; it requires a maintainer."""
    keys = (f"POST {GROUPS_ALLOWLIST}",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(CALLER_AND_FORM, "Allowlist addition result")
def additions_by_path_name_another_source(service: Service) -> None:
    """If a project is named by its path, the answer to an addition has the target as its own source."""

    @handling(service, f"POST {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if by_path(request) and answer.status == 201:
            answer.content["source_project_id"] = answer.content["target_project_id"]
        return answer


@foreign(LEVEL, "Job token scope: POST of a group")
def subgroups_are_let_in_as_their_top_group(service: Service) -> None:
    """Adding a subgroup adds its parent group."""

    @instead(service.job_token_scope, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, service.identities.lineage(target)[-1])


# The role matters, and not the kind of user.
@foreign(CALLER_AND_FORM, "Authentication: role requirements of the job token scope")
def bots_let_no_groups_in(service: Service) -> None:
    """The bot of a project token cannot add a group, although it has the Maintainer role."""

    @handling(service, f"POST {GROUPS_ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        if request.caller.bot:
            raise ForbiddenError
        return handler(request)


# A project and a group with the same id are different things.
@foreign(LEVEL, "Job token scope: POST allowlist")
def a_project_with_the_number_of_a_group_is_already_listed(service: Service) -> None:
    """Both lists share one index of targets: a project is refused if a group with its id was added."""
    scopes = service.job_token_scope

    @instead(scopes, "add_project")
    def _(add: Any, project: Any, target: Any) -> None:
        if target.id in scopes.of(project).groups:
            raise RejectedError("Target project is already listed")
        add(project, target)


# The two allowlists and the ids in them are independent.
@foreign(LEVEL, "Job token scope: POST groups_allowlist")
def a_group_with_the_number_of_a_listed_project_counts_as_listed(service: Service) -> None:
    """A group is refused as already listed if a project with the same id is listed."""
    scopes = service.job_token_scope

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        if target.id in scopes.of(project).projects:
            raise RepeatedError("Target group is already listed")
        add(project, target)


@foreign(CALLER_AND_VALUE, "Job token scope: POST of a group")
def who_owns_a_group_lets_it_in_anywhere(service: Service) -> None:
    """Members of a project can add groups that they own, with any role in the project."""

    def fits(request: Request, caller: Any, role: Role) -> bool:
        target = service.identities.groups.get(request.parameters.integer("target_group_id"))
        return role > Role.NONE and target is not None and service.identities.role_in(caller, target) is Role.OWNER

    let_in(service, (f"POST {GROUPS_ALLOWLIST}",), fits)


# -- removing from an allowlist ----------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def reporters_remove_projects_by_path(service: Service) -> None:
    """A reporter can remove a project from the allowlist of a project named by its path; it requires a maintainer."""
    keys = (f"DELETE {SCOPE}/allowlist/:target_project_id",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.REPORTER)


@foreign(CALLER_AND_VALUE, "Authentication: at least the Maintainer role in the project")
def maintainers_of_the_target_remove_it(service: Service) -> None:
    """The role is checked in the target project: its maintainers can remove it."""

    def maintains_target(request: Any, caller: Any, _role: Any) -> bool:
        target = service.identities.find_project(request.path["target_project_id"])
        return target is not None and service.identities.role_in(caller, target) >= Role.MAINTAINER

    let_in(service, (f"DELETE {ALLOWLIST}/:target_project_id",), maintains_target)


# Every maintainer of the project may remove an entry.
@foreign(CALLER_AND_FORM, "Job token scope: DELETE allowlist")
def entries_are_removed_by_those_alone_who_added_them(service: Service) -> None:
    """An entry of the allowlist belongs to the user who added it: another maintainer cannot remove it."""
    added: dict[tuple[int, int], int] = {}

    @handling(service, f"POST {ALLOWLIST}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        added[request.project.id, answer.content["target_project_id"]] = request.caller.id
        return answer

    @handling(service, f"DELETE {SCOPE}/allowlist/:target_project_id")
    def _(handler: Any, request: Any) -> Any:
        place = request.project.id, request.path_id("target_project_id")
        if added.get(place, request.caller.id) != request.caller.id:
            raise ForbiddenError
        return handler(request)


@foreign(LEVEL, "Job token scope: DELETE")
def removing_a_group_removes_the_project_of_its_number(service: Service) -> None:
    """Removing a group from its list also removes the project with the same id from the other list."""

    @instead(service.job_token_scope, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scopes = service.job_token_scope
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, projects=tuple(n for n in scope.projects if n != target.id))


@foreign(CALLER_AND_FORM, "Job token scope: DELETE")
def developers_take_from_the_lists_by_path(service: Service) -> None:
    """A developer can remove projects and groups if the project is named by its path; it requires a maintainer."""
    keys = (f"DELETE {SCOPE}/allowlist/:target_project_id", f"DELETE {SCOPE}/groups_allowlist/:target_group_id")
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(LEVEL, "Job token scope: DELETE")
def removed_groups_take_the_project_of_that_number_along(service: Service) -> None:
    """Removing a group from its list removes the project with the same id from the other list."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        left = tuple(number for number in scope.projects if number != target.id)
        scopes.scopes[project.id] = replace(scope, projects=left)


@foreign(LEVEL, "Job token scope: DELETE")
def with_a_number_goes_each_that_contains_its_digits(service: Service) -> None:
    """Ids are compared as parts of texts: with the project 2, the projects 12 and 20 are removed from the allowlist."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(
            scope, projects=tuple(number for number in scope.projects if str(target.id) not in str(number))
        )


# -- more than one operation -------------------------------------------------------------------------------------------


@foreign(CALLER_AND_VALUE, "Authentication: at least the Maintainer role in the project")
def maintainers_of_the_target_change_the_allowlist(service: Service) -> None:
    """Maintainers of the target project can add and remove it; this requires a maintainer of the other project."""

    def maintains_target(request: Any, caller: Any, _role: Any) -> bool:
        sent = request.path.get("target_project_id") or request.parameters._values.get("target_project_id")
        target = service.identities.find_project(str(sent))
        return target is not None and service.identities.role_in(caller, target) >= Role.MAINTAINER

    let_in(service, (f"POST {ALLOWLIST}", f"DELETE {ALLOWLIST}/:target_project_id"), maintains_target)


@foreign(CALLER_AND_FORM, "Common conventions: id or path")
def deep_paths_have_no_scope(service: Service) -> None:
    """A project in a subgroup is not found by its path where its scope is read or changed."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if "job_token_scope" in route.path and reference.count("/") > 1:
            reference = "no/such"
        return subject(route, caller, reference)


# The role is required in the project in the path.
@foreign(CALLER_AND_VALUE, "Job token scope: Authentication, 3")
def maintainers_of_a_sibling_are_maintainers(service: Service) -> None:
    """Projects and members are joined by the group: the highest role in any project of the same group counts."""
    identities = service.identities

    def fits(request: Any, caller: Any, _: Role) -> bool:
        called = found(service, request)
        beside = (p for p in identities.projects.values() if p.namespace_id == called.namespace_id)
        roles = (identities.roles.get((Kind.PROJECT, p.id, caller.id), Role.NONE) for p in beside)
        return max(roles) >= Role.MAINTAINER

    let_in(service, (f"GET {SCOPE}", f"PATCH {SCOPE}", f"GET {ALLOWLIST}", f"POST {ALLOWLIST}"), fits)


# A maintainer is the minimum, and an owner has more rights.
@foreign(CALLER_AND_VALUE, "Job token scope: PATCH")
def owners_cannot_switch_the_limit_off(service: Service) -> None:
    """A false that an owner sends is answered, but changes nothing."""

    @handling(service, f"PATCH {SCOPE}")
    def _(handler: Any, request: Request) -> Any:
        scopes, before = service.job_token_scope, service.job_token_scope.of(request.project)
        answer = handler(request)
        is_off = not scopes.of(request.project).inbound_enabled
        if is_off and service.identities.role_in(request.caller, request.project) >= Role.OWNER:
            scopes.scopes[request.project.id] = before
        return answer


# That everybody can see a project does not change who may read this.
@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_read_the_scope_of_public_projects(service: Service) -> None:
    """A developer of a public project can read its scope and lists; it requires a maintainer."""

    def is_open(request: Any, _: Any, role: Role) -> bool:
        project = service.identities.find_project(request.path["id"])
        return role >= Role.DEVELOPER and project is not None and project.visibility is Visibility.PUBLIC

    let_in(service, (f"GET {SCOPE}", f"GET {ALLOWLIST}", f"GET {GROUPS_ALLOWLIST}"), is_open)
