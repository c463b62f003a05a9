"""Faults of what is found, listed or kept where it does not belong: beside it, or cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, told_otherwise
from conformance.reference.identity import Visibility

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

SCOPE = "/projects/:id/job_token_scope"
SETTINGS = "/projects/:id/merge_request_approval_setting"
#: Shorter than a usual column of a database table.
CUT_AT = 100


# -- what names nothing ------------------------------------------------------------------------------------------------


@fault("job-token-scope.unknown-project", operation="getJobTokenScope")
def numbers_beyond_64_bits_break_the_search_for_a_project(service: Service) -> None:
    """A project whose number has more than 64 bits is searched for in a column that holds no such number."""

    def make(find: Any) -> Any:
        def narrow(reference: str) -> Any:
            if reference.isdigit():
                int(reference).to_bytes(8)
            return find(reference)

        return narrow

    around(service.identities, "find_project", make)


@fault("job-token-scope.unknown-project", operation="getJobTokenScope")
def paths_begin_with_any_group(service: Service) -> None:
    """A path that nothing has names a project whose path only begins otherwise."""
    identities = service.identities

    def make(find: Any) -> Any:
        def lenient(reference: str) -> Any:
            _, nested, below = reference.partition("/")
            ending = (one for one in identities.projects.values() if one.full_path.endswith(f"/{below}"))
            return find(reference) or (next(ending, None) if nested else None)

        return lenient

    around(identities, "find_project", make)


# -- beside it ---------------------------------------------------------------------------------------------------------


@fault("job-token-scope.allowlists.are-separate")
def numbers_are_listed_once(service: Service) -> None:
    """A group is not added if a project of the same number is listed, though the answer is 201."""
    scopes = service.job_token_scope

    def make(add: Any) -> Any:
        return lambda project, group: group.id in scopes.of(project).projects or add(project, group)

    around(scopes, "add_group", make)


@fault("job-token-scope.allowlists.belong-to-their-project")
def additions_reach_the_projects_beside_it(service: Service) -> None:
    """A project that is added is added for all projects of the namespace; removing it removes it from one list."""
    scopes = service.job_token_scope

    def spread(added: bool, project: Any, target: Any) -> bool:
        for other in service.identities.projects.values():
            scope = scopes.of(other)
            if other.namespace_id == project.namespace_id and target.id not in scope.projects:
                scopes.scopes[other.id] = replace(scope, projects=(*scope.projects, target.id))
        return added

    afterwards(scopes, "add_project", spread)


@fault("integrations.belong-to-their-project")
def lists_show_what_is_set_up_beside_it(service: Service) -> None:
    """The list of a project holds the integrations of all projects of its namespace."""
    integrations = service.integrations

    def make(active: Any) -> Any:
        def of_all(project: Any) -> Any:
            known = service.identities.projects.values()
            return [one for each in known if each.namespace_id == project.namespace_id for one in active(each)]

        return of_all

    around(integrations, "active", make)


def without_a_role_in_public_projects(service: Service, key: str) -> None:
    """Let everybody with a token call an operation of a public project."""
    access = service.access

    def make(admit: Any) -> Any:
        def lenient(request: Request) -> None:
            project = service.identities.find_project(request.path.get("id", ""))
            if request.route.key == key and project and project.visibility is Visibility.PUBLIC:
                request.admit(access.authenticate(request), project)
            else:
                admit(request)

        return lenient

    around(access, "admit", make)


@fault("job-token-scope.authorization.switching-below-maintainer")
def everybody_switches_the_limit_of_public_projects(service: Service) -> None:
    """The limit of a public project can be switched by everybody with a token."""
    without_a_role_in_public_projects(service, f"PATCH {SCOPE}")


@fault("approval-settings.project.authorization.updating-below-maintainer")
def everybody_updates_the_settings_of_public_projects(service: Service) -> None:
    """The approval settings of a public project can be updated by everybody with a token."""
    without_a_role_in_public_projects(service, f"PUT {SETTINGS}")


# -- another value -----------------------------------------------------------------------------------------------------


@fault("group-relations-export.status.filtered")
def status_of_one_relation_never_ends(service: Service) -> None:
    """The status of one relation is 0 after its export has finished, which the whole status shows."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        if request.parameters.given("relation") and isinstance(content, list):
            response.content = [{**entry, "status": 0} for entry in content]

    altering(service, "GET /groups/:id/export_relations/status", alter)


@fault("integrations.parameters.event-channels.text")
def texts_end_after_a_hundred_characters(service: Service) -> None:
    """Settings of integrations are cut after a hundred characters."""

    def cut(values: Any) -> Any:
        return {name: value[:CUT_AT] if isinstance(value, str) else value for name, value in values.items()}

    told_otherwise(service.integrations, "keep", 2, cut)


@fault("integrations.parameters.event-channels.text")
def channel_of_pushes_becomes_the_default(service: Service) -> None:
    """The channel for pushes replaces the default channel as well."""

    def replaced(values: Any) -> Any:
        return {**values, "channel": values["push_channel"]} if "push_channel" in values else values

    told_otherwise(service.integrations, "keep", 2, replaced)
