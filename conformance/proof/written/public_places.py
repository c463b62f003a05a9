"""Faults of public projects and groups: being found by everybody lets callers in who have no role, or no token."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around, is_route, let_in, refusing
from conformance.reference.errors import ForbiddenError
from conformance.reference.identity import Kind, Role, Visibility

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

SCOPE = "/projects/:id/job_token_scope"
PROJECT_RULES = "/projects/:id/approval_rules"
GROUP_RULES = "/groups/:id/approval_rules"
MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
RULES = f"{MERGE_REQUEST}/approval_rules"
SLUG = "/projects/:id/{}/:slug"
EXPORT = "/groups/:id/export_relations"

ON_PUBLIC_PROJECTS = "authentication.anonymous-on-public-project"
SCOPES_UNNAMED = "job-token-scope.authorization.anonymous"
SCOPES_WITHOUT_ROLE = "job-token-scope.authorization.without-role"

#: By what is done: the operation, and the requirement that it is refused without a token.
BY_NOBODY = {
    "create_rules_of_public_projects": (
        f"POST {PROJECT_RULES}",
        "project-approval-rules.authorization.anonymous-changing",
    ),
    "update_rules_of_public_projects": (f"PUT {PROJECT_RULES}/:approval_rule_id", ON_PUBLIC_PROJECTS),
    "delete_rules_of_public_projects": (f"DELETE {PROJECT_RULES}/:approval_rule_id", ON_PUBLIC_PROJECTS),
    "create_rules_of_public_merge_requests": (f"POST {RULES}", ON_PUBLIC_PROJECTS),
    "read_a_rule_of_public_merge_requests": (f"GET {RULES}/:approval_rule_id", ON_PUBLIC_PROJECTS),
    "update_rules_of_public_merge_requests": (f"PUT {RULES}/:approval_rule_id", ON_PUBLIC_PROJECTS),
    "delete_rules_of_public_merge_requests": (f"DELETE {RULES}/:approval_rule_id", ON_PUBLIC_PROJECTS),
    "approve_public_merge_requests": (f"POST {MERGE_REQUEST}/approve", ON_PUBLIC_PROJECTS),
    "switch_the_limit_of_public_projects": (f"PATCH {SCOPE}", SCOPES_UNNAMED),
    "let_projects_into_public_projects": (f"POST {SCOPE}/allowlist", SCOPES_UNNAMED),
    "let_groups_into_public_projects": (f"POST {SCOPE}/groups_allowlist", SCOPES_UNNAMED),
    "put_projects_out_of_public_projects": (f"DELETE {SCOPE}/allowlist/:target_project_id", SCOPES_UNNAMED),
    "put_groups_out_of_public_projects": (f"DELETE {SCOPE}/groups_allowlist/:target_group_id", SCOPES_UNNAMED),
    "set_integrations_of_public_projects_up": (
        f"PUT {SLUG.format('integrations')}",
        "integrations.authorization.anonymous",
    ),
    "disable_services_of_public_projects": (
        f"DELETE {SLUG.format('services')}",
        "integrations.authorization.anonymous",
    ),
    "read_an_integration_of_public_projects": (
        f"GET {SLUG.format('integrations')}",
        "integrations.authorization.anonymous",
    ),
    "create_rules_of_public_groups": (f"POST {GROUP_RULES}", "group-approval-rules.authorization.anonymous-changing"),
    "update_rules_of_public_groups": (
        f"PUT {GROUP_RULES}/:approval_rule_id",
        "group-approval-rules.authorization.anonymous-changing",
    ),
    "schedule_exports_of_public_groups": (
        f"POST {EXPORT}",
        "group-relations-export.authorization.scheduling-anonymous",
    ),
    "follow_exports_of_public_groups": (
        f"GET {EXPORT}/status",
        "group-relations-export.authorization.following-anonymous",
    ),
}
#: The same for callers who have a token and no role.
BY_STRANGERS = {
    "let_projects_into_public_projects": (f"POST {SCOPE}/allowlist", SCOPES_WITHOUT_ROLE),
    "let_groups_into_public_projects": (f"POST {SCOPE}/groups_allowlist", SCOPES_WITHOUT_ROLE),
    "put_projects_out_of_public_projects": (f"DELETE {SCOPE}/allowlist/:target_project_id", SCOPES_WITHOUT_ROLE),
    "put_groups_out_of_public_projects": (f"DELETE {SCOPE}/groups_allowlist/:target_group_id", SCOPES_WITHOUT_ROLE),
    "set_services_of_public_projects_up": (
        f"PUT {SLUG.format('services')}",
        "integrations.alias.authorization.without-role",
    ),
    "disable_integrations_of_public_projects": (
        f"DELETE {SLUG.format('integrations')}",
        "integrations.authorization.without-role",
    ),
    "read_an_integration_of_public_projects": (
        f"GET {SLUG.format('integrations')}",
        "integrations.authorization.without-role",
    ),
    "read_a_service_of_public_projects": (
        f"GET {SLUG.format('services')}",
        "integrations.authorization.without-role",
    ),
    "create_rules_of_public_groups": (f"POST {GROUP_RULES}", "group-approval-rules.authorization.without-role"),
    "update_rules_of_public_groups": (
        f"PUT {GROUP_RULES}/:approval_rule_id",
        "group-approval-rules.authorization.without-role",
    ),
    "set_what_public_groups_prescribe": (
        "PUT /groups/:id/merge_request_approval_setting",
        "approval-settings.group.authorization.without-role",
    ),
}
#: Reads for which guests and reporters have too low a role.
READS = {
    f"GET {SCOPE}": "job-token-scope.authorization.reading-below-maintainer",
    f"GET {SCOPE}/allowlist": "job-token-scope.authorization.reading-below-maintainer",
    f"GET {SCOPE}/groups_allowlist": "job-token-scope.authorization.reading-below-maintainer",
    "GET /projects/:id/merge_request_approval_setting": (
        "approval-settings.project.authorization.reading-below-maintainer"
    ),
    "GET /projects/:id/integrations": "integrations.authorization.reading-below-maintainer",
    "GET /projects/:id/services": "integrations.alias.authorization.reading-below-maintainer",
    f"GET {GROUP_RULES}": "group-approval-rules.authorization.listing-below-administrator",
    "GET /groups/:id/merge_request_approval_setting": "approval-settings.group.authorization.reading-below-maintainer",
}


def is_public(service: Service, request: Request) -> bool:
    """Tell whether the project or group that a call names is public."""
    find = {Kind.PROJECT: service.identities.find_project, Kind.GROUP: service.identities.find_group}
    kind = request.route.subject
    subject = find[kind](request.path["id"]) if kind is not None else None
    return subject is not None and subject.visibility is Visibility.PUBLIC


def without_a_token(key: str, service: Service) -> None:
    """Let everybody call an operation of what is public, in the owner's name."""

    def is_let_in(request: Request) -> bool:
        is_called = is_route(request.route, key) and is_public(service, request)
        return is_called and not service.access.token_text(request)

    let_in(service, is_let_in, "owner")


def without_a_role(key: str, service: Service) -> None:
    """Let everybody with a token call an operation of what is public."""
    open_to_strangers(service, key, Visibility.PUBLIC)


def with_a_role(key: str, role: Role, service: Service) -> None:
    """Let everybody who has this role call an operation of what is public."""
    open_to_strangers(service, key, Visibility.PUBLIC, role)


def open_to_strangers(service: Service, key: str, visibility: Visibility, role: Role = Role.NONE) -> None:
    """Let everybody with a token call an operation of what has this visibility, and in which they have this role."""
    access = service.access

    def make(require_role: Any) -> Any:
        return lambda caller, subject, least: is_open(caller, subject) or require_role(caller, subject, least)

    def is_open(caller: Any, subject: Any) -> bool:
        return subject.visibility is visibility and service.identities.role_in(caller, subject) is role

    def admitting(admit: Any) -> Any:
        def lenient(request: Request) -> None:
            require_role = access.require_role
            if is_route(request.route, key):
                around(access, "require_role", make)
            try:
                admit(request)
            finally:
                access.require_role = require_role  # type: ignore[method-assign] # that is what a fault does

        return lenient

    around(access, "admit", admitting)


for _what, (_key, _requirement) in BY_NOBODY.items():
    _says = f"Without a token {_key} is served, if it names what is public."
    fault(_requirement)(named(f"all_may_{_what}", _says, partial(without_a_token, _key)))  # type: ignore[arg-type]
for _what, (_key, _requirement) in BY_STRANGERS.items():
    _says = f"Without a role {_key} is served, if it names what is public."
    fault(_requirement)(named(f"strangers_may_{_what}", _says, partial(without_a_role, _key)))
for (_role, _who), (_key, _requirement) in product(
    ((Role.GUEST, "guests"), (Role.REPORTER, "reporters")), READS.items()
):
    _says = f"{_who.capitalize()} are served by {_key}, if it names what is public."
    _kind, _, _what = _key.removeprefix("GET /").partition("/:id/")
    _name = f"{_who}_may_read_{_what.replace('/', '_')}_of_public_{_kind}"
    fault(_requirement)(named(_name, _says, partial(with_a_role, _key, _role)))


@fault("approval-settings.group.authorization.without-role")
def strangers_may_read_settings_of_internal_groups(service: Service) -> None:
    """Whoever has a token may read the settings of a group that all users see."""
    open_to_strangers(service, "GET /groups/:id/merge_request_approval_setting", Visibility.INTERNAL)


@fault("group-approval-rules.authorization.without-role")
def strangers_may_list_rules_of_internal_groups(service: Service) -> None:
    """Whoever has a token may list the rules of a group that all users see."""
    open_to_strangers(service, f"GET {GROUP_RULES}", Visibility.INTERNAL)


@fault("merge-request-approvals.reset.others-get-401")
def strangers_may_reset_public_merge_requests(service: Service) -> None:
    """Whoever has no role in a public project may reset the approvals of its merge requests."""
    identities = service.identities

    def make(require_bot: Any) -> Any:
        def lenient(caller: Any, merge_request: Any) -> None:
            project = identities.projects[merge_request.project_id]
            is_open = project.visibility is Visibility.PUBLIC and identities.role_in(caller, project) is Role.NONE
            if not is_open:
                require_bot(caller, merge_request)

        return lenient

    around(service.merge_request_approvals, "require_bot", make)


@fault("merge-request-approvals.reset.others-get-401")
def strangers_are_forbidden_to_reset_public_merge_requests(service: Service) -> None:
    """Whoever has no role in a public project gets 403 from a reset, and not 401."""

    def is_stranger(request: Request) -> bool:
        role = service.identities.role_in(request.caller, request.project)
        return is_public(service, request) and role is Role.NONE

    refusing(service, f"PUT {MERGE_REQUEST}/reset_approvals", is_stranger, ForbiddenError)


@fault("merge-request-approvals.reset.others-get-401")
def everybody_is_forbidden_to_reset_public_merge_requests(service: Service) -> None:
    """Whoever is no bot gets 403 from a reset in a public project, and not 401."""
    key = f"PUT {MERGE_REQUEST}/reset_approvals"
    refusing(service, key, lambda request: is_public(service, request) and not request.caller.bot, ForbiddenError)
