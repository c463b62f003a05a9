"""Who calls, and by which form of the id: faults that show for one of the two forms, or for one of the callers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, found, handling, instead, let_in
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service

_SCOPE = "/projects/:id/job_token_scope"
_GROUP_RULES = "/groups/:id/approval_rules"
_SETTINGS = "merge_request_approval_setting"
_ROLES = "Authentication: role requirements"


@foreign("caller x form of id x operation", _ROLES)
def developers_read_the_scope_by_path(service: Service) -> None:
    """A developer who names the project by its path reads the scope, which is for maintainers."""
    let_in(service, (f"GET {_SCOPE}",), lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign("caller x form of id x operation", _ROLES)
def guests_switch_the_limit_by_path(service: Service) -> None:
    """A guest who names the project by its path switches its limit, which is for maintainers."""
    let_in(service, (f"PATCH {_SCOPE}",), lambda request, _, role: by_path(request) and role >= Role.GUEST)


@foreign("caller x form of id x operation", _ROLES)
def developers_add_groups_by_path(service: Service) -> None:
    """A developer who names the project by its path lets a group in, which is for maintainers."""
    keys = (f"POST {_SCOPE}/groups_allowlist",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign("caller x form of id x operation", _ROLES)
def reporters_remove_projects_by_path(service: Service) -> None:
    """A reporter who names the project by its path removes a project from its allowlist, which is for maintainers."""
    keys = (f"DELETE {_SCOPE}/allowlist/:target_project_id",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.REPORTER)


@foreign("caller x form of id x operation", _ROLES)
def developers_list_integrations_by_older_name_and_path(service: Service) -> None:
    """A developer lists integrations by their older name when the project is named by its path."""
    keys = ("GET /projects/:id/services",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign("caller x form of id x operation", _ROLES)
def developers_disable_integrations_by_older_name(service: Service) -> None:
    """A developer disables integrations by their older name; both names are for maintainers and owners."""
    let_in(service, ("DELETE /projects/:id/services/:slug",), lambda _, __, role: role >= Role.DEVELOPER)


@foreign("caller x form of id x operation", _ROLES)
def guests_set_up_integrations_by_path(service: Service) -> None:
    """A guest who names the project by its path sets up an integration, which takes a maintainer's token."""
    keys = ("PUT /projects/:id/integrations/:slug",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.GUEST)


@foreign("caller x form of id x operation", _ROLES)
def maintainers_write_settings_of_groups_by_path(service: Service) -> None:
    """A maintainer changes the settings of a group named by its path, which is for owners."""
    keys = (f"PUT /groups/:id/{_SETTINGS}",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.MAINTAINER)


@foreign("caller x form of id x operation", _ROLES)
def strangers_write_settings_of_projects_by_path(service: Service) -> None:
    """Somebody without any role changes the settings of a private project that is named by its path."""
    let_in(service, (f"PUT /projects/:id/{_SETTINGS}",), lambda request, _, __: by_path(request))


@foreign("forms of what is sent", _ROLES)
def developers_create_group_rules_by_query(service: Service) -> None:
    """A developer creates a rule of a group when the parameters come in the query; this is for group administrators."""
    let_in(service, (f"POST {_GROUP_RULES}",), lambda request, _, role: bool(request.query) and role >= Role.DEVELOPER)


@foreign("caller x form of id x operation", _ROLES)
def reporters_update_group_rules_by_path(service: Service) -> None:
    """A reporter changes a rule of a group that is named by its path; this is for group administrators."""
    keys = (f"PUT {_GROUP_RULES}/:approval_rule_id",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.REPORTER)


@foreign("caller x form of id x operation", _ROLES)
def developers_read_later_pages_of_group_rules(service: Service) -> None:
    """A developer is refused the first page of a group's rules and served the later ones."""
    let_in(service, (f"GET {_GROUP_RULES}",), lambda request, _, role: b"page=2" in request.query and role >= 30)


@foreign("caller x form of id x operation", "Authentication: every caller is authenticated")
def nobody_reads_the_approval_state_by_path(service: Service) -> None:
    """Without any token the approval state of a private project's merge request is served, if it is named by path."""
    key = "GET /projects/:id/merge_requests/:merge_request_iid/approval_state"

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == key and by_path(request) and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], found(service, request))
            return
        admit(request)


@foreign("caller x form of id x operation", "Authentication: every caller is authenticated")
def nobody_reads_the_export_status_by_path(service: Service) -> None:
    """Without any token the export status of a private group is served, if the group is named by its path."""
    key = "GET /groups/:id/export_relations/status"

    @instead(service.access, "admit")
    def _(admit: Any, request: Any) -> None:
        if request.route.key == key and by_path(request) and not service.access.token_text(request):
            request.admit(service.identities.users[service.world.actors["owner"].id], found(service, request))
            return
        admit(request)


@foreign("caller x form of id x operation", _ROLES)
def owners_of_other_groups_disable_integrations(service: Service) -> None:
    """Whoever owns any group at all disables integrations of every project; a role elsewhere is no role here."""
    owners = {user for (_, __, user), role in service.identities.roles.items() if role >= Role.OWNER}
    let_in(service, ("DELETE /projects/:id/integrations/:slug",), lambda _, caller, __: caller.id in owners)


@foreign("caller x form of id x operation", "Merge request approvals: rule 4")
def administrators_reset_approvals(service: Service) -> None:
    """An administrator resets approvals, which only bots of project and group tokens may; others get a 401."""

    @instead(service.merge_request_approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if not caller.admin:
            require(caller, merge_request)


@foreign("caller x form of id x operation", "Errors: 401")
def administrators_get_a_403_for_resetting(service: Service) -> None:
    """An administrator who resets approvals is refused with 403; whoever is no such bot receives a 401."""
    from conformance.reference.errors import StatedError  # noqa: PLC0415

    @instead(service.merge_request_approvals, "require_bot")
    def _(require: Any, caller: Any, merge_request: Any) -> None:
        if caller.admin:
            raise StatedError(403, "403 Forbidden")
        require(caller, merge_request)


@foreign("caller x value", "Errors: 409")
def administrators_approve_whatever_the_sha(service: Service) -> None:
    """An administrator's sha is not looked at; a sha other than the HEAD is a conflict for everybody."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        approve(merge_request, caller, None if caller.admin else sha, password)


@foreign("caller x value", "Authentication: role requirements, approve")
def owners_need_no_password(service: Service) -> None:
    """An owner approves without a password where the project requires one of everybody."""

    @instead(service.merge_request_approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        project = service.identities.projects[merge_request.project_id]
        if service.identities.role_in(caller, project) < Role.OWNER:
            require(caller, merge_request, password)


@foreign("caller x form of id x operation", "Authentication: role requirements, job token scope")
def administrators_are_refused_a_scope(service: Service) -> None:
    """An administrator who holds no role in a project is shown an allowlist that is always empty."""

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if request.caller.admin:
            answer.content = []
        return answer


@foreign("caller x form of id x operation", "Common conventions: id or path")
def deep_paths_have_no_scope(service: Service) -> None:
    """A project that lies in a group within a group is not found by its path where its scope is read or changed."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if "job_token_scope" in route.path and reference.count("/") > 1:
            reference = "no/such"
        return subject(route, caller, reference)


@foreign("caller x form of id x operation", "Common conventions: id or path")
def deep_paths_have_no_approvals(service: Service) -> None:
    """A project that lies in a group within a group is not found by its path where its approval rules are listed."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.key == "GET /projects/:id/approval_rules" and reference.count("/") > 1:
            reference = "no/such"
        return subject(route, caller, reference)


@foreign("caller x form of id x operation", "Common conventions: id or path")
def paths_of_subgroups_mean_the_group_around(service: Service) -> None:
    """A group within a group, named by its path, shows and gets the approval rules of the group around it."""

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.path.startswith(_GROUP_RULES):
            reference = reference.partition("/")[0]
        return subject(route, caller, reference)


@foreign("caller x form of id x operation", "Common conventions: id or path")
def deep_paths_write_elsewhere(service: Service) -> None:
    """An integration is set up in another project when its own, in a group within a group, is named by the path."""
    elsewhere = service.world.one("sibling_project").id

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.key == "PUT /projects/:id/integrations/:slug" and reference.count("/") > 1:
            reference = str(elsewhere)
        return subject(route, caller, reference)


@foreign("caller x form of id x operation", "Job token scope: PATCH")
def switching_by_path_is_forgotten(service: Service) -> None:
    """Switching the limit of a project that is named by its path is answered and not done."""

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if by_path(request):
            service.store.restore(before)
        return answer


@foreign("caller x form of id x operation", "Project approval rules: DELETE")
def deleting_rules_by_path_is_forgotten(service: Service) -> None:
    """Deleting a rule of a project that is named by its path is answered and not done."""

    @handling(service, "DELETE /projects/:id/approval_rules/:approval_rule_id")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        if by_path(request):
            service.store.restore(before)
        return answer


@foreign("caller x form of id x operation", "Allowlist addition result")
def additions_by_path_name_another_source(service: Service) -> None:
    """What is added to an allowlist of a project named by its path says that the target is its own source."""

    @handling(service, f"POST {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if by_path(request) and answer.status == 201:
            answer.content["source_project_id"] = answer.content["target_project_id"]
        return answer
