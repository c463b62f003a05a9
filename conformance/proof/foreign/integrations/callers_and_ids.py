"""Who may read and change integrations, and which project or integration a path means."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering
from conformance.proof.foreign.dimensions import AGAIN, CALLER_AND_FORM, LEVEL, SIDE_EFFECT, STORY, VERSIONS
from conformance.proof.foreign.paths import BOTH_NAMES, DELETE_INTEGRATION, INTEGRATIONS, PUT_INTEGRATION, SERVICES
from conformance.proof.foreign.registry import by_path, foreign, handling, instead, is_served, let_in
from conformance.reference.errors import ForbiddenError, NotFoundError, not_found
from conformance.reference.identity import Role
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service


def _is_of_integrations(path: str) -> bool:
    """Tell whether a path belongs to integrations, under either of their names."""
    return path.startswith(BOTH_NAMES)


# -- the list ----------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_list_integrations_by_older_name_and_path(service: Service) -> None:
    """A developer can list integrations by their older name if the project is named by its path."""
    keys = ("GET /projects/:id/services",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(CALLER_AND_FORM, "Integrations: GET /services lists active integrations only")
def the_older_name_lists_disabled_ones_too(service: Service) -> None:
    """The list under the older name has everything that was ever set up; under the newer name, only what is active."""

    @handling(service, f"GET {SERVICES}")
    def _(_handler: Any, request: Any) -> Any:
        integrations = service.integrations
        mine = [one for one in integrations.known.values() if one.project_id == request.project.id]
        return request.collection(sorted(mine, key=attrgetter("id")), integrations.present_entry)


# The older name does not find the row of the newer one, and creates another.
@foreign(CALLER_AND_FORM, "Integrations: services is an alias; GET lists active integrations")
def what_both_names_have_set_up_is_listed_twice(service: Service) -> None:
    """An integration that was set up below integrations and is then changed below services has two entries."""
    integrations = service.integrations
    doubled: set[tuple[int, str]] = set()

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        before = {one.slug for one in integrations.active(request.project)}
        answer = handler(request)
        doubled.update((request.project.id, slug) for slug in before & {request.path["slug"]})
        return answer

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> Any:
        found = active(project)
        return [*found, *(one for one in found if (project.id, one.slug) in doubled)]


@foreign(SIDE_EFFECT, "Integration list entry: id")
def integrations_are_numbered_by_their_places(service: Service) -> None:
    """The id of an entry is its position in the list, so it changes when one before it is disabled."""

    def numbered(_: Any, entries: Any) -> Any:
        return [{**entry, "id": place} for place, entry in enumerate(entries, start=1)]

    answering(service, f"GET {INTEGRATIONS}", numbered)


@foreign(STORY, "Integration list entry: alert_events, by the older name")
def entries_of_the_older_name_have_no_alert_events(service: Service) -> None:
    """The list under the older name has its own serializer, which lacks alert_events."""

    def change(_: Any, content: Any) -> Any:
        return [{name: value for name, value in entry.items() if name != "alert_events"} for entry in content]

    answering(service, f"GET {SERVICES}", change)


# -- reading one -------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def reporters_read_one_integration_by_older_name(service: Service) -> None:
    """A reporter can read the settings of an integration by the older name of the path; it requires a maintainer."""
    let_in(service, ("GET /projects/:id/services/:slug",), lambda _, __, role: role >= Role.REPORTER)


@foreign(CALLER_AND_FORM, "Integrations: GET one")
def reading_one_integration_needs_an_owner(service: Service) -> None:
    """A maintainer may not read a single integration by the newer path."""
    from conformance.reference.identity import Role  # noqa: PLC0415

    service.routes.change("GET /projects/:id/integrations/:slug", least_role=Role.OWNER)


@foreign(LEVEL, "Integrations: GET one")
def integrations_of_other_projects_are_shown(service: Service) -> None:
    """A project that never set up an integration shows the settings from another project."""

    @instead(service.integrations, "find")
    def _(find: Any, project: Any, slug: str) -> Any:
        try:
            return find(project, slug)
        except NotFoundError:
            others = (one for one in service.integrations.known.values() if one.slug == slug and one.active)
            other = next(others, None)
            if other is None:
                raise
            return other


@foreign(CALLER_AND_FORM, "Integrations: GET one")
def developers_read_an_integration_by_path(service: Service) -> None:
    """A developer can read an integration if the project is named by its path."""
    keys = ("GET /projects/:id/integrations/:slug", "GET /projects/:id/services/:slug")
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.DEVELOPER)


@foreign(CALLER_AND_FORM, "Integrations: GET")
def a_role_in_one_project_is_remembered_for_all_around_it(service: Service) -> None:
    """A user who called the integrations of one project as its owner may call those of the whole top-level group."""
    known: dict[tuple[int, int], Role] = {}

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        if _is_of_integrations(route.path):
            place = caller.id, service.identities.lineage(subject)[-1].id
            known[place] = max(known.get(place, Role.NONE), service.identities.role_in(caller, subject))
            if known[place] >= route.least_role:
                return
        require(route, caller, subject)


# -- setting up --------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def guests_set_up_integrations_by_path(service: Service) -> None:
    """A guest can set up an integration if the project is named by its path; it requires a maintainer's token."""
    keys = ("PUT /projects/:id/integrations/:slug",)
    let_in(service, keys, lambda request, _, role: by_path(request) and role >= Role.GUEST)


@foreign(CALLER_AND_FORM, "Common conventions: id or path")
def deep_paths_write_elsewhere(service: Service) -> None:
    """If a project in a subgroup is named by its path, its integration is set up in another project."""
    elsewhere = service.world.one("sibling_project").id

    @instead(service.access, "subject")
    def _(subject: Any, route: Any, caller: Any, reference: str) -> Any:
        if route.key == "PUT /projects/:id/integrations/:slug" and reference.count("/") > 1:
            reference = str(elsewhere)
        return subject(route, caller, reference)


# The older name accepts the same paths as the newer one.
@foreign(CALLER_AND_FORM, "Conventions: URL-encoded path; Integrations: alias")
def the_older_name_sets_up_nothing_in_projects_deep_down(service: Service) -> None:
    """Setting up an integration by the older name answers 404 for a path with more than one group."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        if request.path["id"].count("/") > 1:
            raise not_found("Project")
        return handler(request)


# Integrations belong to one project; no other project inherits them.
@foreign(LEVEL, "Integrations: PUT")
def subgroups_take_over_integrations(service: Service) -> None:
    """What is set up for a project is also set up for the projects of the subgroups of its group."""
    area, identities = service.integrations, service.identities

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        for other in list(identities.projects.values()):
            if project.namespace_id in {group.id for group in identities.lineage(other)[1:]}:
                keep(other, kind, values, **more)
        return keep(project, kind, values, **more)


@foreign(CALLER_AND_FORM, "Integrations: PUT")
def the_token_of_a_project_sets_up_no_integration(service: Service) -> None:
    """The access token of a project cannot set up integrations, although it has the Maintainer role."""

    @instead(service.access, "require")
    def _(require: Any, route: Any, caller: Any, subject: Any) -> None:
        if route.method == "PUT" and _is_of_integrations(route.path) and caller.bot is not None:
            raise ForbiddenError
        require(route, caller, subject)


@foreign(SIDE_EFFECT, "Integrations: the chat app cannot be created")
def a_chat_app_that_was_updated_can_be_created_elsewhere(service: Service) -> None:
    """That the chat app is installed is stored globally: once it was updated, it can be created elsewhere."""
    installed: set[str] = set()

    @handling(service, *PUT_INTEGRATION)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            installed.add(request.path["slug"])
        return answer

    @instead(service.integrations, "require_creatable")
    def _(require: Any, kind: Any) -> None:
        if kind.slug not in installed:
            require(kind)


@foreign(VERSIONS, "Versioning: 14.4, both names work", version="14.4")
def the_newer_name_writes_a_release_later(service: Service) -> None:
    """At 14.4 the newer name reads integrations, but cannot set them up or disable them before 14.5."""
    for key in (PUT_INTEGRATION[0], DELETE_INTEGRATION[0]):
        service.routes.change(key, introduced=Version(14, 5))


# -- disabling ---------------------------------------------------------------------------------------------------------


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def developers_disable_integrations_by_older_name(service: Service) -> None:
    """A developer can disable integrations by their older name; both names are for maintainers and owners."""
    let_in(service, ("DELETE /projects/:id/services/:slug",), lambda _, __, role: role >= Role.DEVELOPER)


@foreign(CALLER_AND_FORM, "Authentication: role requirements")
def owners_of_other_groups_disable_integrations(service: Service) -> None:
    """An owner of any group can disable integrations of every project; a role elsewhere must not count."""
    owners = {user for (_, __, user), role in service.identities.roles.items() if role >= Role.OWNER}
    let_in(service, ("DELETE /projects/:id/integrations/:slug",), lambda _, caller, __: caller.id in owners)


@foreign(LEVEL, "Integrations: DELETE")
def disabling_what_is_not_set_up_disables_it_elsewhere(service: Service) -> None:
    """Disabling an integration that the project never set up disables that of another project."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        if (project.id, slug) not in service.integrations.known:
            for key in [key for key in service.integrations.known if key[1] == slug]:
                del service.integrations.known[key]
        disable(project, slug)


# In the code for the older name, disabling by path does not reset anything.
@foreign(CALLER_AND_FORM, "Integrations: services is an alias; DELETE resets the settings")
def the_older_name_disables_by_path_and_resets_nothing(service: Service) -> None:
    """After DELETE below services with the project named by path, the settings of the integration can still be read."""
    known = service.integrations.known

    @handling(service, f"DELETE {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.path["slug"]
        before = known.get(key)
        answer = handler(request)
        if before is not None and by_path(request):
            known[key] = replace(before, active=False)
        return answer


# A change by path has the same effect as one by id.
@foreign(CALLER_AND_FORM, "Integrations: PUT")
def settings_that_are_changed_by_path_stay(service: Service) -> None:
    """An update of an existing integration with the project named by path changes no settings."""
    known = service.integrations.known

    @handling(service, *PUT_INTEGRATION)
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.path["slug"]
        before = known.get(key)
        answer = handler(request)
        if before is not None and before.active and by_path(request) and is_served(answer):
            known[key] = replace(known[key], values=before.values)
        return answer


@foreign(CALLER_AND_FORM, "Integrations: DELETE by the older name")
def developers_disable_by_the_older_name(service: Service) -> None:
    """A developer can disable integrations by the older name."""
    service.routes.change("DELETE /projects/:id/services/:slug", least_role=Role.DEVELOPER)


@foreign(AGAIN, "Integrations: DELETE by another maintainer")
def an_integration_is_disabled_by_who_set_it_up(service: Service) -> None:
    """An integration belongs to the user who set it up: another one with the same role cannot disable it."""
    owners: dict[tuple[int, str], int] = {}

    @handling(service, *PUT_INTEGRATION, *DELETE_INTEGRATION)
    def _(handler: Any, request: Any) -> Any:
        key = (request.project.id, request.path["slug"])
        if request.method == "DELETE" and owners.get(key, request.caller.id) != request.caller.id:
            raise ForbiddenError
        answer = handler(request)
        owners.setdefault(key, request.caller.id)
        if request.method == "DELETE":
            del owners[key]
        return answer


# -- flags that are not sent -------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Integrations: parameter shapes, notifications for an event kind")
def deployments_follow_pipelines(service: Service) -> None:
    """The flag for pipelines also sets that for deployments, if the latter is not sent."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **others: Any) -> Any:
        followed = {"deployment_events": values["pipeline_events"]} if "pipeline_events" in values else {}
        return set_up(project, kind, {**followed, **values}, **others)
