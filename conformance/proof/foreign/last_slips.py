"""Slips that a review passes over: a loop that ends too soon, a number that is kept too small, a name that is gone.

Job token scopes, completions, approval settings, exports and integrations.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import ForbiddenError
from conformance.reference.http import Page, ok
from conformance.reference.identity import Group
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_CALLER = "caller x form of id x operation"
_VALUE = "caller x value"
_NEIGHBOUR = "value x neighbour of the right value"
_FILES = "content of exports"
_STORY = "numbers and texts that follow from the story"
_SECOND = "none, one or two values"
_AGAIN = "again, by another caller, after an undo"
_STAYS = "write x everything that must stay"
_NOTHING = "what arranges or undoes, and does nothing"
_SETTINGS = "settings and their resets"
_PAGES = "pages and totals"
_VERSIONS = "version table"

_SCOPE = "/projects/:id/job_token_scope"
_COMPLETIONS = "POST /code_suggestions/completions"
_EXPORT = "/groups/:id/export_relations"
_OLDER_NAME = "/projects/:id/services"
_VERIFICATION = "enable_ssl_verification"


# -- job token scope ---------------------------------------------------------------------------------------------------


# A slice where one element was meant: right for one entry, and for the last one.
@foreign(_SECOND, "Job token scope: DELETE groups_allowlist")
def what_came_after_a_removed_group_goes_too(service: Service) -> None:
    """Removing a group cuts the list off at its place, so that the groups added later leave with it."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_group")
    def _(remove: Any, project: Any, target: Any) -> None:
        before = scopes.of(project).groups
        remove(project, target)
        remaining = before[: before.index(target.id)]
        scopes.scopes[project.id] = replace(scopes.of(project), groups=remaining)


# One table with a column of ids and one of kinds, and the condition on the kind is missing.
@foreign(_STAYS, "Job token scope: DELETE allowlist")
def a_removed_project_takes_the_group_of_its_number_along(service: Service) -> None:
    """Who removes a project from the allowlist removes the group of the same id from the other list as well."""
    scopes = service.job_token_scope

    @instead(scopes, "remove_project")
    def _(remove: Any, project: Any, target: Any) -> None:
        remove(project, target)
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n != target.id))


# A pair of ids is kept in ascending order, and read as if the first one were the source.
@foreign(_STORY, "Allowlist addition result: source_project_id, target_project_id")
def the_older_of_two_projects_is_the_source(service: Service) -> None:
    """An addition of a project that is older than its source is answered with both ids exchanged."""

    @handling(service, f"POST {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        source, target = sorted(answer.content.values())
        answer.content = {"source_project_id": source, "target_project_id": target}
        return answer


# Nothing to do is done by another way out of the function.
@foreign(_AGAIN, "Job token scope: PATCH, 204")
def a_limit_that_is_so_already_is_answered_with_the_settings(service: Service) -> None:
    """Setting the limit to the value that it has gets 200 with the settings, and not 204 without a body."""
    scopes = service.job_token_scope

    @handling(service, f"PATCH {_SCOPE}")
    def _(handler: Any, request: Any) -> Any:
        before = scopes.of(request.project)
        answer = handler(request)
        return ok(scopes.settings(request.project)) if scopes.of(request.project) == before else answer


# Whether another page follows is found out by one entry more, which is then taken off where there is none.
@foreign(_PAGES, "Job token scope: GET allowlist, page and per_page")
def a_last_page_that_is_full_lacks_an_entry(service: Service) -> None:
    """Where the projects just fill the last page, its last entry is on no page."""
    scopes = service.job_token_scope

    @handling(service, f"GET {_SCOPE}/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer, page = handler(request), Page.of(request.parameters, request.choices)
        if page.number * page.size == len(scopes.projects(request.project)):
            answer.content = answer.content[:-1]
        return answer


# The role decides, and not what sort of user has it.
@foreign(_CALLER, "Authentication: role requirements of the job token scope")
def bots_let_no_groups_in(service: Service) -> None:
    """The bot of a project token is refused when it adds a group, though it has the Maintainer role."""

    @handling(service, f"POST {_SCOPE}/groups_allowlist")
    def _(handler: Any, request: Any) -> Any:
        if request.caller.bot:
            raise ForbiddenError
        return handler(request)


# Whoever is inside is let in by the outer one anyway, so the entry looks superfluous.
@foreign(_STAYS, "Job token scope: POST groups_allowlist")
def an_outer_group_takes_the_place_of_its_inner_ones(service: Service) -> None:
    """Adding a group takes the entries of its subgroups out of the allowlist, which nobody asked for."""
    scopes, known = service.job_token_scope, service.identities

    @instead(scopes, "add_group")
    def _(add: Any, project: Any, target: Any) -> None:
        add(project, target)
        inside = {one.id for one in known.groups.values() if target in known.lineage(one)[1:]}
        scope = scopes.of(project)
        scopes.scopes[project.id] = replace(scope, groups=tuple(n for n in scope.groups if n not in inside))


# All endpoints of the area came together.
@foreign(_VERSIONS, "Versioning: 16.1", version="16.1")
def groups_are_let_out_a_release_later(service: Service) -> None:
    """At 16.1 groups can be added to the allowlist, and not be removed: that endpoint came with 16.2."""
    service.routes.change(f"DELETE {_SCOPE}/groups_allowlist/:target_group_id", introduced=Version(16, 2))


# What is planned for a version is still there in the last one before it.
@foreign(_VERSIONS, "Versioning: 18.0; Job token scope settings", version="17.11")
def the_outbound_limit_goes_a_release_early(service: Service) -> None:
    """In the last release before 18.0 the settings have no outbound_enabled any more."""

    @instead(service.job_token_scope, "settings")
    def _(settings: Any, project: Any) -> Any:
        shown = settings(project)
        if service.version >= Version(17, 11):
            shown.pop("outbound_enabled", None)
        return shown


# -- code completion ---------------------------------------------------------------------------------------------------


# The key of the counter holds more than the user.
@foreign(_VALUE, "Limits: request rate of completions")
def each_project_path_has_a_minute_of_its_own(service: Service) -> None:
    """Requests are counted for each project that they name, so that a user has sixty for each."""
    completion = service.code_completion
    counted: dict[tuple[int, object], tuple[float, ...]] = {}

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        key = request.caller.id, str(request.parameters._values.get("project_path"))
        completion.requests[request.caller.id] = counted.get(key, ())
        try:
            return handler(request)
        finally:
            counted[key] = completion.requests[request.caller.id]


# Another model answers where there is text on both sides, and says it otherwise.
@foreign(_STORY, "Completion result: choices, finish_reason")
def what_fills_a_gap_has_no_reason_to_finish(service: Service) -> None:
    """With text below the cursor the choices have null as finish_reason, which is a string."""

    @instead(service.code_completion, "complete")
    def _(complete: Any, wanted: Any) -> Any:
        shown = complete(wanted)
        if wanted.content_below_cursor:
            shown["choices"] = [{**choice, "finish_reason": None} for choice in shown["choices"]]
        return shown


# -- approval settings -------------------------------------------------------------------------------------------------


# A loop is left where only one round of it should be.
@foreign(_NOTHING, "Approval settings: PUT of a project")
def a_setting_that_is_so_already_ends_the_update(service: Service) -> None:
    """Of several settings of a project, those after one that already has its value are not changed."""
    settings = service.approval_settings

    @instead(settings, "change")
    def _(change: Any, subject: Any, wanted: Any) -> None:
        if isinstance(subject, Group) or len(wanted) == 1:
            change(subject, wanted)
            return
        for setting, value in wanted.items():
            if settings.effective(subject, setting) is value:
                return
            change(subject, {setting: value})


# Two presenters, and the new field was added to one of them at first.
@foreign(_VERSIONS, "Versioning: 17.1", version="17.1")
def groups_reauthenticate_a_release_later(service: Service) -> None:
    """At 17.1 the settings of projects have require_reauthentication_to_approve, and those of groups have not."""

    @instead(service.approval_settings, "settings")
    def _(settings: Any, subject: Any) -> Any:
        shown = settings(subject)
        if isinstance(subject, Group) and service.version < Version(17, 2):
            shown.pop(Setting.REQUIRE_REAUTHENTICATION.value, None)
        return shown


# -- group relations export --------------------------------------------------------------------------------------------


# What is made anew is no creation, somebody thought.
@foreign(_AGAIN, "Group relations export: POST, 202")
def a_later_export_is_no_longer_accepted_but_done(service: Service) -> None:
    """The first export of a group is answered with 202, and each one after it with 200."""
    exports = service.group_relations_export

    @handling(service, f"POST {_EXPORT}")
    def _(handler: Any, request: Any) -> Any:
        known = exports.all_of(request.group)
        answer = handler(request)
        answer.status = 200 if known else answer.status
        return answer


# The name of a thing and the name of many of them go through the same function of the framework.
@foreign(_FILES, "Group relations export: download, relation")
def one_of_many_names_a_relation_too(service: Service) -> None:
    """A download of the relation `label`, which there is not, is given the file of `labels`."""
    exports = service.group_relations_export

    @instead(exports, "find")
    def _(find: Any, group: Any, relation: str) -> Any:
        return find(group, relation if (group.id, relation) in exports.exports else f"{relation}s")


# What is left over of the group is to be cleared away first, and the ancestors were taken for the descendants.
@foreign(_STAYS, "Group relations export: status")
def an_inner_export_clears_the_outer_one_away(service: Service) -> None:
    """Exporting a subgroup makes the exports of the groups around it disappear, with their files."""
    exports, known = service.group_relations_export, service.identities

    @instead(exports, "schedule")
    def _(schedule: Any, group: Any, *, batched: bool) -> None:
        outer = {one.id for one in known.lineage(group)[1:]}
        for key in [key for key in exports.exports if key[0] in outer]:
            del exports.exports[key]
        schedule(group, batched=batched)


# -- integrations ------------------------------------------------------------------------------------------------------


# One of two names, one of two forms of an id: the older code was never told what disabling means.
@foreign(_CALLER, "Integrations: services is an alias; DELETE resets the settings")
def the_older_name_disables_by_path_and_resets_nothing(service: Service) -> None:
    """DELETE below services, with the project named by its path, leaves the settings of the integration readable."""
    known = service.integrations.known

    @handling(service, f"DELETE {_OLDER_NAME}/:slug")
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.path["slug"]
        before = known.get(key)
        answer = handler(request)
        if before is not None and by_path(request):
            known[key] = replace(before, active=False)
        return answer


# What was left out is not a wish to have it on.
@foreign(_SETTINGS, "Integrations: active")
def any_later_change_switches_an_integration_on(service: Service) -> None:
    """An issue tracker that was switched off is on again after a change that says nothing of `active`."""
    integrations = service.integrations

    @instead(integrations, "becomes_active")
    def _(becomes: Any, kind: Any, before: Any, wanted: bool | None) -> bool:
        if wanted is None and before is not None and before.values:
            return True
        return bool(becomes(kind, before, wanted))


# A pattern whose dot stands for everything but the end of a line.
@foreign(_SECOND, "Integrations: recipients")
def recipients_end_with_the_first_line(service: Service) -> None:
    """Of recipients that stand one below the other only the first one is kept."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        lines = str(values.get("recipients", "")).splitlines()
        return {**values, "recipients": lines[0]} if lines else values


# The older name finds no row of the newer one, and makes a second.
@foreign(_CALLER, "Integrations: services is an alias; GET lists active integrations")
def what_both_names_have_set_up_is_listed_twice(service: Service) -> None:
    """An integration that is changed below services, after it was set up below integrations, has two entries."""
    integrations = service.integrations
    doubled: set[tuple[int, str]] = set()

    @handling(service, f"PUT {_OLDER_NAME}/:slug")
    def _(handler: Any, request: Any) -> Any:
        before = {one.slug for one in integrations.active(request.project)}
        answer = handler(request)
        doubled.update((request.project.id, slug) for slug in before & {request.path["slug"]})
        return answer

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> Any:
        found = active(project)
        return [*found, *(one for one in found if (project.id, one.slug) in doubled)]


# All columns are blanked but the one that must not be null.
@foreign(_SETTINGS, "Integrations: DELETE; enable_ssl_verification")
def certificates_stay_unverified_after_a_reset(service: Service) -> None:
    """An integration that was set up without verification, disabled and set up again is without it still."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before and after and before.values.get(_VERIFICATION) is False:
            kept = MappingProxyType({_VERIFICATION: False})
            integrations.known[project.id, slug] = replace(after, values=kept)


# The answer knew the flag before the request did.
@foreign(_VERSIONS, "Versioning: 16.4", version="16.4")
def vulnerabilities_are_notified_of_a_release_later(service: Service) -> None:
    """At 16.4 the entries have vulnerability_events, and sending it changes nothing before 16.5."""

    @instead(service.integrations, "event_parameters")
    def _(event_parameters: Any, kind: Any) -> Any:
        early = service.version < Version(16, 5)
        return tuple(name for name in event_parameters(kind) if not (early and name == "vulnerability_events"))


# The row that renamed it says that both names work, and no later row takes one away.
@foreign(_VERSIONS, "Versioning: 14.4", version="19.0")
def the_older_name_goes_with_the_other_removals(service: Service) -> None:
    """At 19.0 nothing is found below services any more, though it is an alias of integrations."""
    for method, rest in (("GET", ""), ("PUT", "/:slug"), ("DELETE", "/:slug"), ("GET", "/:slug")):
        service.routes.change(f"{method} {_OLDER_NAME}{rest}", removed=Version(19, 0))
