"""Faults that show only with values similar to the right one, or with calls in an unusual form."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, handling, is_route, let_in, parameters
from conformance.reference.errors import NotFoundError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

GROUP_RULES = "/groups/:id/approval_rules"
CHECK = "POST /code_suggestions/enabled"
COMPLETIONS = "POST /code_suggestions/completions"


# -- who calls, and in which form --------------------------------------------------------------------------------------


def of_a_developer(service: Service, request: Request) -> bool:
    """Tell whether a request carries the token of the developer."""
    return request.headers.get(b"private-token") == service.world.actors["developer"].token.encode()


@fault("group-approval-rules.authorization.creating-below-administrator", operation="createGroupApprovalRule")
def rules_come_by_the_query_for_developers(service: Service) -> None:
    """A developer can create a rule of a group if its parameters are sent in the query."""

    def by_query(request: Request) -> bool:
        creates = is_route(request.route, f"POST {GROUP_RULES}") and b"name=" in request.query
        return creates and of_a_developer(service, request)

    let_in(service, by_query, "owner")


@fault("group-approval-rules.authorization.listing-below-administrator", operation="listGroupApprovalRules")
def later_pages_of_rules_are_open_to_developers(service: Service) -> None:
    """A developer can read all pages of a group's rules except the first one."""

    def later(request: Request) -> bool:
        lists = is_route(request.route, f"GET {GROUP_RULES}") and b"page=2" in request.query.split(b"&")
        return lists and of_a_developer(service, request)

    let_in(service, later, "owner")


# -- values with additional text, or in another notation ---------------------------------------------------------------


@fault("project-approval-rules.unknown-project", operation="listProjectApprovalRules")
@fault("approval-settings.project.read.unknown-project", operation="getProjectApprovalSettings")
@fault("integrations.unknown-project", operation="listIntegrations")
def a_path_that_goes_on_names_the_project(service: Service) -> None:
    """A path that continues after the path of a project identifies that project."""

    def make(find: Any) -> Any:
        def found(reference: str) -> Any:
            begins = (one for one in service.identities.projects.values() if reference.startswith(one.full_path))
            return find(reference) or next(begins, None)

        return found

    around(service.identities, "find_project", make)


def slugs_that_go_on(service: Service, key: str) -> None:
    """Let an operation accept a slug that continues after the slug of an integration."""

    def make(handler: Any) -> Any:
        def handled(request: Request) -> Any:
            request.path["slug"] = request.path["slug"].partition("-conformance")[0] or request.path["slug"]
            return handler(request)

        return handled

    handling(service, key, make)


@fault("integrations.unknown-slug.reading", operation="getIntegration")
def a_slug_that_goes_on_is_read(service: Service) -> None:
    """A slug that continues after the slug of an integration reads that integration."""
    slugs_that_go_on(service, "GET /projects/:id/integrations/:slug")


@fault("integrations.unknown-slug.setting-up", operation="setUpIntegration")
def a_slug_that_goes_on_is_set_up(service: Service) -> None:
    """A slug that continues after the slug of an integration sets up that integration."""
    slugs_that_go_on(service, "PUT /projects/:id/integrations/:slug")


@fault("code-completion.enabled.unknown-project")
def the_check_takes_a_path_that_goes_on(service: Service) -> None:
    """The check succeeds for a path that continues after the path of an existing project."""

    def make(handler: Any) -> Any:
        def checked(request: Request) -> Any:
            path = request.parameters.optional_string("project_path") or ""
            known = {project.full_path for project in service.identities.projects.values()}
            goes_on = path not in known and any(path.startswith(one) for one in known)
            return Response() if goes_on else handler(request)

        return checked

    handling(service, CHECK, make)


@fault("code-completion.request.intent.allows-no-other")
def an_intent_in_capitals_is_completed(service: Service) -> None:
    """An intent in upper case is accepted."""
    parameters(
        service,
        COMPLETIONS,
        lambda values: {
            name: text.lower() if name == "intent" and isinstance(text, str) else text for name, text in values.items()
        },
    )


# -- projects in a subgroup --------------------------------------------------------------------------------------------


def deep_paths_mean(service: Service, key: str, instead: str) -> None:
    """Let an operation use something else for the path of a project in a subgroup."""

    def make(subject: Any) -> Any:
        def found(route: Route, caller: Any, reference: str) -> Any:
            is_deep = reference.count("/") > 1 and is_route(route, key)
            return subject(route, caller, instead if is_deep else reference)

        return found

    around(service.access, "subject", make)


@fault("conventions.project-id.encoded-subgroup-path")
def deep_paths_have_no_settings(service: Service) -> None:
    """The approval settings of a project in a subgroup are not found by its path."""
    deep_paths_mean(service, "GET /projects/:id/merge_request_approval_setting", "no/such")


@fault("conventions.project-id.encoded-subgroup-path")
def paths_are_looked_up_in_lower_case(service: Service) -> None:
    """The path that is sent is put in lower case, and the known one is not."""
    around(
        service.identities,
        "find_project",
        lambda find: lambda reference: find(reference) if reference == reference.lower() else None,
    )


@fault("conventions.project-id.encoded-subgroup-path")
def deep_paths_set_up_elsewhere(service: Service) -> None:
    """An integration is set up in another project when a project in a subgroup is named by its path."""
    elsewhere = str(service.world.one("sibling_project").id)
    deep_paths_mean(service, "PUT /projects/:id/integrations/:slug", elsewhere)


@fault("conventions.group-id.encoded-subgroup-path")
def the_last_part_of_a_path_names_a_subgroup(service: Service) -> None:
    """The last part of its path alone identifies a subgroup."""

    def make(find: Any) -> Any:
        def found(reference: str) -> Any:
            alike = (group for group in service.identities.groups.values() if group.path == reference)
            return find(reference) or next(alike, None)

        return found

    around(service.identities, "find_group", make)


# -- administrators, and things with the same id -----------------------------------------------------------------------


@fault("errors.reset-by-others", operation="resetMergeRequestApprovals")
def administrators_reset_approvals_as_well(service: Service) -> None:
    """An administrator of the installation can reset approvals like a bot."""

    def make(require: Any) -> Any:
        return lambda caller, merge_request: None if caller.admin else require(caller, merge_request)

    around(service.merge_request_approvals, "require_bot", make)


@fault("errors.stale-sha", operation="approveMergeRequest")
def any_sha_will_do_for_administrators(service: Service) -> None:
    """An administrator can approve with the sha of another commit."""

    def make(approve: Any) -> Any:
        return lambda merge_request, caller, sha, password: approve(
            merge_request, caller, None if caller.admin else sha, password
        )

    around(service.merge_request_approvals, "approve", make)


@fault("job-token-scope.allowlist.change.shows-to-everybody", operation="listJobTokenAllowlist")
def administrators_are_shown_an_empty_list(service: Service) -> None:
    """An administrator gets an empty allowlist."""

    def make(handler: Any) -> Any:
        def listed(request: Request) -> Any:
            answer = handler(request)
            if request.caller.admin:
                answer.content = []
            return answer

        return listed

    handling(service, "GET /projects/:id/job_token_scope/allowlist", make)


@fault("job-token-scope.allowlists.are-separate", operation="removeGroupFromJobTokenAllowlist")
def a_group_takes_the_project_of_its_number_with_it(service: Service) -> None:
    """Removing a group also removes the project with the same id from the other list."""

    def also(_: Any, project: Any, target: Any) -> None:
        scopes = service.job_token_scope
        scope = scopes.of(project)
        left = tuple(number for number in scope.projects if number != target.id)
        scopes.scopes[project.id] = replace(scope, projects=left)

    afterwards(service.job_token_scope, "remove_group", also)


@fault("integrations.belong-to-their-project", operation="getIntegration")
def what_another_project_has_set_is_shown(service: Service) -> None:
    """If a project never set up an integration, the settings from another project are shown."""

    def make(find: Any) -> Any:
        def found(project: Any, slug: str) -> Any:
            others = (one for one in service.integrations.known.values() if one.slug == slug and one.active)
            try:
                mine = find(project, slug)
            except NotFoundError:
                mine = None
            return mine if mine is not None and mine.active else next(others, mine) or find(project, slug)

        return found

    around(service.integrations, "find", make)


# -- titles of others, and settings that return ------------------------------------------------------------------------


@fault("integrations.update.leaves-others", operation="listIntegrations")
def titles_go_round_among_those_listed(service: Service) -> None:
    """Each integration is listed with the title of the next one."""

    def turned(_: Request, response: Response) -> None:
        listed: Any = response.content
        titles = [entry["title"] for entry in listed]
        pairs = zip(listed, [*titles[1:], *titles[:1]], strict=True)
        response.content = [{**entry, "title": title} for entry, title in pairs]

    altering(service, "GET /projects/:id/integrations", turned)


@fault("integrations.disable.settings-stay-reset", operation="disableIntegration")
def switches_outlive_their_integration(service: Service) -> None:
    """Boolean settings return when a disabled integration is set up again."""
    area = service.integrations
    disable, keep = area.disable, area.keep
    attic: dict[Any, dict[str, Any]] = {}

    def away(project: Any, slug: str) -> None:
        found = area.known.get((project.id, slug))
        values = found.values if found else {}
        attic[project.id, slug] = {name: value for name, value in values.items() if isinstance(value, bool)}
        disable(project, slug)

    def back(project: Any, kind: Any, values: Any, *, active: Any) -> Any:
        return keep(project, kind, {**attic.get((project.id, kind.slug), {}), **values}, active=active)

    area.disable, area.keep = away, back  # type: ignore[method-assign] # that is what a fault does


@fault("group-relations-export.status.filtered")
def relation_is_passed_over_in_batches(service: Service) -> None:
    """The status of one relation shows all of them if they are exported in batches."""

    def whole(request: Request, response: Response) -> None:
        area = service.group_relations_export
        if any(export.batched for export in area.all_of(request.group)):
            response.content = [area.present(export) for export in area.all_of(request.group)]

    altering(service, "GET /groups/:id/export_relations/status", whole)
