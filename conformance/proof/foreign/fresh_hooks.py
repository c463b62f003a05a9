"""Small bugs of integrations, of the table of versions, and of what holds for every call."""

from __future__ import annotations

import html
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead, meanwhile
from conformance.reference.areas.approval_rule_records import Home, Level
from conformance.reference.errors import ApiError, StatedError, not_found
from conformance.reference.http import Page
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_STAYS = "write x everything that must stay"
_SETTINGS = "settings and their resets"
_FORMS = "forms of what is sent"
_VERSIONS = "version table"
_NEWER = "/projects/:id/integrations"
_OLDER = "/projects/:id/services"
_RULES = "/projects/:id/approval_rules"
_GROUPS = "/projects/:id/job_token_scope/groups_allowlist"


# -- integrations ------------------------------------------------------------------------------------------------------


@foreign("again, by another caller, after an undo", "Integrations: disabling resets the settings")
def old_settings_come_back_with_a_new_set_up(service: Service) -> None:
    """A disabled integration is blank, until it is set up again: what is not sent then is as it was before."""
    integrations, buried = service.integrations, {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = integrations.known.get((project.id, slug))
        disable(project, slug)
        if known is not None:
            buried[project.id, slug] = known.values

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        old = buried.pop((project.id, kind.slug), {})
        return set_up(project, kind, {**old, **values}, active=active)


@foreign("caller x form of id x operation", "Integrations: GET /services lists active integrations only")
def the_older_name_lists_disabled_ones_too(service: Service) -> None:
    """The list under the older name has what was ever set up, the newer one what is active."""

    @handling(service, f"GET {_OLDER}")
    def _(_handler: Any, request: Any) -> Any:
        integrations = service.integrations
        mine = [one for one in integrations.known.values() if one.project_id == request.project.id]
        return request.collection(sorted(mine, key=attrgetter("id")), integrations.present_entry)


@foreign(_STAYS, "Integrations: GET lists those of the project")
def the_list_has_those_of_neighbours_in_the_group(service: Service) -> None:
    """The list is joined by namespace: it has the integrations of all projects that lie beside this one."""
    integrations = service.integrations

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> list[Any]:
        beside = [p for p in service.identities.projects.values() if p.namespace_id == project.namespace_id]
        return sorted((one for p in beside for one in active(p)), key=attrgetter("id"))


@foreign(_SETTINGS, "Integrations: blank labels mean all events, a blank list of branches all branches")
def what_is_blank_clears_nothing(service: Service) -> None:
    """Labels and branches that are sent blank count as not sent: once they are set, nothing takes them away."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> dict[str, Any]:
        found = read(kind, parameters)
        clearable = {"labels_to_be_notified", "restrict_to_branch"}
        return {name: value for name, value in found.items() if name not in clearable or value != ""}


@foreign("numbers and texts that follow from the story", "Integrations: issues_url, string")
def ampersands_of_settings_are_escaped(service: Service) -> None:
    """Texts are made safe for pages before they are kept: an address with two parameters comes back as another one."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        safe = {
            name: html.escape(value, quote=False) if isinstance(value, str) else value for name, value in values.items()
        }
        return set_up(project, kind, safe, active=active)


@foreign("refusal x everything that must stay", "Integrations: PUT, allowed values")
def the_flags_of_a_refused_update_are_kept(service: Service) -> None:
    """Flags are saved one by one before the rest is looked at: a refused update has switched them already."""
    integrations = service.integrations

    @handling(service, f"PUT {_NEWER}/:slug")
    def _(handler: Any, request: Any) -> Any:
        before = integrations.known.get((request.project.id, request.path["slug"]))
        try:
            return handler(request)
        except ApiError:
            if before is not None and before.active:
                sent = request.parameters._values
                flags = {name: sent[name] for name in before.kind.events if isinstance(sent.get(name), bool)}
                integrations.keep(request.project, before.kind, {**before.values, **flags}, active=True)
            raise


@foreign(_SETTINGS, "Integrations: GET lists active integrations")
def integrations_without_any_event_are_not_listed(service: Service) -> None:
    """An integration whose events are all switched off is not listed, active as it is."""
    integrations = service.integrations

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> list[Any]:
        def is_quiet(one: Any) -> bool:
            names = integrations.event_parameters(one.kind)
            return bool(names) and all(one.values.get(name) is False for name in names)

        return [one for one in active(project) if not is_quiet(one)]


@foreign(_STAYS, "Integrations: PUT sets up the integration of one project")
def settings_become_what_other_projects_begin_with(service: Service) -> None:
    """What is set in one project is written into the defaults: the next project begins with it."""
    integrations, defaults = service.integrations, {}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        shared = defaults.setdefault(kind.slug, {})
        known = integrations.known.get((project.id, kind.slug))
        if known is None or not known.active:
            values = {**shared, **values}
        shared.update(values)
        return set_up(project, kind, values, active=active)


@foreign("two write at once", "Integrations: PUT")
def integrations_of_a_project_are_written_as_one(service: Service) -> None:
    """All integrations of a project lie in one document, which is read and written whole: one of two set-ups is lost."""
    known = service.integrations.known

    def write(seen: Any, request: Any) -> None:
        for key in [key for key in {*known, *seen} if key[0] == request.project.id]:
            known.pop(key, None)
            if key in seen:
                known[key] = seen[key]

    meanwhile(service, (f"PUT {_NEWER}/:slug",), lambda: dict(known), write)


# -- what comes and goes with a version --------------------------------------------------------------------------------


@foreign(_VERSIONS, "Versioning, row 16.1: job token scope endpoints", version="16.1")
def groups_are_let_in_from_17_0_on(service: Service) -> None:
    """Of the job token scope, the list of groups comes with 17.0 only, not with 16.1 as all the rest."""
    for key in (f"GET {_GROUPS}", f"POST {_GROUPS}", f"DELETE {_GROUPS}/:target_group_id"):
        service.routes.change(key, introduced=Version(17, 0))


@foreign(_VERSIONS, "Integrations: vulnerability_events since 16.4", version="16.10")
def versions_are_compared_as_texts(service: Service) -> None:
    """Whether a list entry has vulnerability_events is decided by comparing texts, where 16.10 comes before 16.4."""

    @instead(service.integrations, "has_vulnerability_events")
    def _(has: Any) -> bool:
        return has() and str(service.version) >= "16.4"


@foreign(_VERSIONS, "Approval settings: require_reauthentication_to_approve since 17.1", version="18.0")
def versions_are_compared_part_by_part(service: Service) -> None:
    """A setting of 17.1 asks for a minor version of at least 1: at 18.0 it is gone again."""

    @instead(service.approval_settings, "_exists")
    def _(exists: Any, setting: Any) -> bool:
        return exists(setting) and (setting != "require_reauthentication_to_approve" or service.version.minor >= 1)


@foreign(_VERSIONS, "Versioning, row 17.7: the tree of a missing path")
def a_missing_path_is_empty_all_the_way_down(service: Service) -> None:
    """The tree of a missing path is refused; asked for with all that lies below, it is an empty list as before."""

    @instead(service.sources, "tree")
    def _(tree: Any, project: Any, ref: Any, path: str, *, recursive: bool) -> list[Any]:
        try:
            return tree(project, ref, path, recursive=recursive)
        except StatedError:
            if recursive:
                return []
            raise


@foreign(_VERSIONS, "Project approval configuration: approver_groups, always empty since 12.3")
def groups_of_rules_are_shown_as_approvers(service: Service) -> None:
    """The deprecated field approver_groups lists the groups that the project's rules name."""

    @handling(service, "GET /projects/:id/approvals")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        rules = service.approval_rules.rules_of(Home(Level.PROJECT, request.project.id))
        named = sorted({number for rule in rules for number in rule.groups})
        groups = [service.identities.groups[number] for number in named if number in service.identities.groups]
        answer.content["approver_groups"] = [{"group": service.present.group(group)} for group in groups]
        return answer


# -- what holds for every call -----------------------------------------------------------------------------------------


@foreign("caller x form of id x operation", "Common conventions: :id is an integer or a URL-encoded path")
def projects_of_subgroups_have_no_path(service: Service) -> None:
    """A path is taken for a group and a project: with a subgroup between them, the project is not found."""

    @instead(service.access, "visible_project")
    def _(visible: Any, caller: Any, reference: str) -> Any:
        if reference.count("/") > 1:
            raise not_found("Project")
        return visible(caller, reference)


@foreign("none, one or two values", "Project approval rules: GET, array of approval rule")
def a_rule_is_listed_once_for_each_of_its_users(service: Service) -> None:
    """The list is joined with the approvers: a rule that names two users is listed twice, and takes two places."""

    @handling(service, f"GET {_RULES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        joined = [rule for rule in answer.content for _ in range(max(1, len(rule["users"])))]
        answer.content = joined[: Page.of(request.parameters, service.choices).size]
        return answer
