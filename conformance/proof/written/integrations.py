"""Faults of integrations: set-up, update, disabling, the older name, and list entries."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.reference.areas import integration_catalogue
from conformance.reference.errors import InvalidError
from conformance.reference.http import Response, ok
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.proof.faults import Apply
    from conformance.reference import Service

NEWER, OLDER = "/projects/:id/integrations", "/projects/:id/services"


def name_at(service):
    """Return the newest name of integrations at the version of a service."""
    return NEWER if service.routes.get(f"GET {NEWER}").exists_at(service.version) else OLDER


def registered(apply: Apply, name: str, requirement: str) -> None:
    """Register a fault that is made for each of several parameters or fields; its name says what goes wrong."""
    fault(requirement)(named(name, f"{name.replace('_', ' ').capitalize()}.", apply))


def answered(service: Service, method: str, below: str, alter, *, when=lambda response: response.status < 300) -> None:
    """Replace or alter the responses of an operation under the newest name."""
    answered_at(service, f"{method} {name_at(service)}{below}", alter, when=when)


def answered_at(service: Service, key: str, alter, *, when=lambda response: response.status < 300) -> None:
    """Replace or alter the responses of one route."""

    def transform(route, request, response):
        if route.key == key and when(response):
            return alter(request, response) or response
        return response

    service.transformers.append(transform)


# -- life --------------------------------------------------------------------------------------------------------------


@fault("integrations.set-up.accepted")
def setting_up_is_redirected(service):
    """Setting up an integration answers with a redirect."""
    answered(service, "PUT", "/:slug", lambda q, r: Response(303, headers={"location": "/"}))


@fault("integrations.set-up.listed")
def set_up_ones_stay_inactive(service):
    """Integrations that are set up stay inactive."""
    service.integrations.becomes_active = lambda kind, before, wanted: bool(before and before.active)


@fault("integrations.update.followed")
def a_change_is_not_stored(service):
    """A change of an integration is not stored."""
    keep = service.integrations.keep

    def first_only(project, kind, values, *, active):
        found = service.integrations.known.get((project.id, kind.slug))
        return found if found and found.active else keep(project, kind, values, active=active)

    service.integrations.keep = first_only


@fault("integrations.update.same-entry")
def a_change_makes_a_new_number(service):
    """A change gives the integration a new id."""
    keep = service.integrations.keep

    def anew(project, kind, values, *, active):
        made = keep(project, kind, values, active=active)
        service.integrations.known[project.id, kind.slug] = replace(made, id=service.store.next_id("integrations"))
        return service.integrations.known[project.id, kind.slug]

    service.integrations.keep = anew


@fault("integrations.update.leaves-others")
def a_change_switches_push_events_of_the_others(service):
    """A change also switches push events of the others."""
    keep = service.integrations.keep

    def all_of_them(project, kind, values, *, active):
        for key, other in list(service.integrations.known.items()):
            if key[0] == project.id and key[1] != kind.slug and "push_events" in values:
                changed = {**other.values, "push_events": values["push_events"]}
                service.integrations.known[key] = replace(other, values=MappingProxyType(changed))
        return keep(project, kind, values, active=active)

    service.integrations.keep = all_of_them


@fault("integrations.update.leaves-others")
def disabling_one_disables_all_of_the_project(service):
    """Disabling one integration disables all of the project."""
    disable = service.integrations.disable

    def every(project, slug):
        for key in [key for key in service.integrations.known if key[0] == project.id]:
            disable(project, key[1])

    service.integrations.disable = every


@fault("integrations.belong-to-their-project")
def disabling_hits_every_project(service):
    """Disabling an integration disables it in every project."""
    disable = service.integrations.disable

    def every(project, slug):
        for key, other in list(service.integrations.known.items()):
            if key[1] == slug and key[0] != project.id and slug in ("slack", "asana"):
                service.integrations.known[key] = replace(other, active=False)
        disable(project, slug)

    service.integrations.disable = every


@fault("integrations.belong-to-their-project")
def setting_up_hits_every_project(service):
    """Setting up an integration sets it up in every project."""
    keep = service.integrations.keep

    def every(project, kind, values, *, active):
        for key, other in list(service.integrations.known.items()):
            if key[1] == kind.slug and key[0] != project.id:
                service.integrations.known[key] = replace(other, values=MappingProxyType({**other.values, **values}))
        return keep(project, kind, values, active=active)

    service.integrations.keep = every


@fault("integrations.disable.accepted")
def disabling_answers_a_server_error(service):
    """Disabling an integration causes a server error."""
    answered(service, "DELETE", "/:slug", lambda q, r: ok({}, 500))


@fault("integrations.disable.unlisted")
def disabling_does_nothing(service):
    """Disabling an integration does nothing."""
    service.integrations.disable = lambda project, slug: None


@fault("integrations.disable.settings-reset")
def disabling_keeps_the_settings(service):
    """Disabling an integration keeps its settings."""

    def disable(project, slug):
        key = (project.id, slug)
        service.integrations.find(project, slug)
        service.integrations.known[key] = replace(service.integrations.known[key], active=False)

    service.integrations.disable = disable


@fault("integrations.disable.settings-stay-reset")
def settings_come_back(service):
    """Settings return when a disabled integration is set up again."""
    disable, keep = service.integrations.disable, service.integrations.keep
    attic: dict[Any, Any] = {}

    def away(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found and found.values:
            attic[project.id, slug] = found.values
        disable(project, slug)

    def back(project, kind, values, *, active):
        return keep(project, kind, {**attic.get((project.id, kind.slug), {}), **values}, active=active)

    service.integrations.disable, service.integrations.keep = away, back


@fault("integrations.disable.set-up-again")
def once_disabled_for_ever(service):
    """Once disabled, an integration cannot be set up again."""
    gone: set[Any] = set()
    disable, set_up = service.integrations.disable, service.integrations.set_up

    def away(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found and found.active and found.slug == "slack":
            gone.add((project.id, slug))
        disable(project, slug)

    def refused(project, kind, values, *, active=None):
        if (project.id, kind.slug) in gone:
            raise InvalidError("it is gone")
        return set_up(project, kind, values, active=active)

    service.integrations.disable, service.integrations.set_up = away, refused


@fault("integrations.disable.repeated")
def disabling_twice_breaks(service):
    """Disabling an integration twice causes a server error."""
    disable = service.integrations.disable

    def once(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found is not None and not found.active and not found.values:
            raise RuntimeError
        disable(project, slug)

    service.integrations.disable = once


@fault("integrations.disable.repeated")
def disabling_what_is_off_disables_the_rest(service):
    """Disabling an inactive integration disables all others."""
    disable = service.integrations.disable

    def rest(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found is not None and not found.active:
            for key in [key for key in service.integrations.known if key[0] == project.id]:
                disable(project, key[1])
        disable(project, slug)

    service.integrations.disable = rest


# -- unknown things ----------------------------------------------------------------------------------------------------


@fault("integrations.unknown-slug.reading")
def an_unknown_one_is_read_as_blank(service):
    """An unknown integration is read as blank."""
    answered(service, "GET", "/:slug", lambda q, r: ok({}), when=lambda r: r.status == 404)


@fault("integrations.unknown-slug.setting-up")
def an_unknown_one_is_set_up(service):
    """An unknown integration can be set up."""
    answered(service, "PUT", "/:slug", lambda q, r: ok({}), when=lambda r: r.status == 404)


@fault("integrations.unknown-slug.setting-up")
def an_unknown_one_sets_up_another(service):
    """Setting up an unknown integration sets up another one."""

    def set_up_another(request, _response):
        if request.path["slug"] not in integration_catalogue.CATALOGUE:
            service.integrations.keep(request.project, integration_catalogue.CATALOGUE["github"], {}, active=True)

    answered(service, "PUT", "/:slug", set_up_another, when=lambda response: response.status == 404)


@fault("integrations.unknown-slug.disabling")
def disabling_an_unknown_one_breaks(service):
    """Disabling an unknown integration causes a server error."""
    answered(
        service,
        "DELETE",
        "/:slug",
        lambda q, r: ok({}, 500) if q.path["slug"] not in integration_catalogue.CATALOGUE else None,
        when=lambda r: r.status == 404,
    )


@fault("integrations.unknown-project")
def an_unknown_project_has_no_integrations(service):
    """An unknown project has no integrations."""
    answered(service, "GET", "", lambda q, r: ok([]), when=lambda r: r.status == 404)


# -- the older name ----------------------------------------------------------------------------------------------------


@fault("integrations.alias.list")
def the_older_name_lists_an_object(service):
    """The list under the older name is an object."""
    answered_at(service, f"GET {OLDER}", lambda q, r: ok({"integrations": r.content}))


@fault("integrations.alias.lists-the-same")
def the_older_name_forgets_the_last(service):
    """The list under the older name lacks the last entry."""
    answered_at(service, f"GET {OLDER}", lambda q, r: ok(r.content[:-1]))


@fault("integrations.alias.lists-the-same")
def the_older_name_lists_inactive_ones(service):
    """The list under the older name includes inactive integrations."""
    area = service.integrations

    def everything(request, _):
        return ok([area.present_entry(one) for one in area.known.values() if one.project_id == request.project.id])

    answered_at(service, f"GET {OLDER}", everything)


@fault("integrations.alias.read")
def the_older_name_reads_nothing(service):
    """Reading an integration by the older name answers 204."""
    answered_at(service, f"GET {OLDER}/:slug", lambda q, r: Response(204))


@fault("integrations.alias.reads-the-same")
def the_older_name_shows_less(service):
    """An integration that is read by the older name lacks properties."""
    answered_at(
        service, f"GET {OLDER}/:slug", lambda q, r: ok({k: v for k, v in r.content.items() if k != "properties"})
    )


# If the older name is the only one, nothing can be prepared without it.
@fault("integrations.alias.set-up", version="17.7")
def the_older_name_sets_nothing_up(service):
    """The older name cannot set up an integration."""
    answered_at(service, f"PUT {OLDER}/:slug", lambda q, r: ok({}, 400))


@fault("integrations.alias.set-up-shows")
def the_older_name_pretends_to_set_up(service):
    """Setting up by the older name is answered, but not done."""
    service.routes.change(f"PUT {OLDER}/:slug", handler=lambda request: ok({}))


@fault("integrations.alias.set-up-shows")
def the_older_name_sets_up_for_anybody_who_reports(service):
    """The older name accepts a reporter for setting up."""
    service.routes.change(f"PUT {OLDER}/:slug", least_role=Role.REPORTER)


@fault("integrations.alias.disable")
def the_older_name_breaks_at_disabling(service):
    """Disabling by the older name causes a server error."""
    answered_at(service, f"DELETE {OLDER}/:slug", lambda q, r: ok({}, 500))


@fault("integrations.alias.disable-shows")
def the_older_name_pretends_to_disable(service):
    """Disabling by the older name is answered, but not done."""
    service.routes.change(f"DELETE {OLDER}/:slug", handler=lambda request: Response(204))


# -- particular ones ---------------------------------------------------------------------------------------------------


@fault("integrations.chat-app.not-created")
def the_chat_app_is_created(service):
    """The chat app can be created."""
    service.integrations.require_creatable = lambda kind: None


@fault("integrations.chat-app.updated")
def the_chat_app_is_never_changed(service):
    """The chat app can never be changed."""
    set_up = service.integrations.set_up

    def refused(project, kind, values, *, active=None):
        if not kind.creatable:
            raise InvalidError("not through the API")
        return set_up(project, kind, values, active=active)

    service.integrations.set_up = refused


@fault("integrations.parameters.active.default")
def an_issue_tracker_is_active_at_once(service):
    """An issue tracker is active although active was not sent."""
    service.integrations.becomes_active = lambda kind, before, wanted: wanted is not False


@fault("integrations.list.active-only")
def the_list_shows_inactive_ones(service):
    """The list includes inactive integrations."""
    service.integrations.active = lambda project: [
        i for i in service.integrations.known.values() if i.project_id == project.id
    ]


@fault("integrations.list.active-only")
def inactive_ones_are_listed_as_active(service):
    """Inactive integrations are listed as active."""
    present = service.integrations.present_entry
    service.integrations.active = lambda project: [
        i
        for i in service.integrations.known.values()
        if i.project_id == project.id and (i.active or (i.kind.switchable and i.values))
    ]
    service.integrations.present_entry = lambda integration: {**present(integration), "active": True}


# -- entries -----------------------------------------------------------------------------------------------------------


def _entry(name, alter, requirement):
    def breaks(service):
        present = service.integrations.present_entry
        service.integrations.present_entry = lambda integration: alter(dict(present(integration)))

    registered(breaks, name, requirement)


def _drop(name):
    return lambda entry: {key: value for key, value in entry.items() if key != name}


_entry("an_entry_has_no_id", _drop("id"), "integrations.entry.fields")
_entry("a_title_is_null", lambda e: {**e, "title": None}, "integrations.entry.fields")
_entry("an_entry_has_a_date_for_a_time", lambda e: {**e, "updated_at": "2024-05-01"}, "integrations.entry.timestamps")
_entry("an_entry_has_no_alert_events", _drop("alert_events"), "integrations.entry.event-flags")
_entry("an_entry_has_no_alert_events_2", _drop("alert_events"), "events.flags.named-after-kind")
_entry("an_entry_has_no_job_events", _drop("job_events"), "events.flags.job")
_entry(
    "an_entry_has_no_comment_on_event_enabled",
    _drop("comment_on_event_enabled"),
    "integrations.entry.comment-on-event-enabled",
)
_entry(
    "an_entry_has_no_vulnerability_events",
    _drop("vulnerability_events"),
    "integrations.entry.vulnerability-events.enterprise",
)
_entry(
    "vulnerability_events_is_text",
    lambda e: {**e, "vulnerability_events": "false"},
    "integrations.entry.vulnerability-events.boolean",
)


@fault("integrations.list.read")
def the_list_is_an_object(service):
    """The list is an object."""
    answered(service, "GET", "", lambda q, r: ok({"integrations": r.content}))


@fault("integrations.list.read")
def the_list_is_gone(service):
    """The list does not exist."""
    answered(service, "GET", "", lambda q, r: ok({}, 404))


@fault("integrations.list.read")
def the_list_breaks(service):
    """The list causes a server error."""
    answered(service, "GET", "", lambda q, r: ok({}, 500))


@fault("integrations.list.read")
def the_list_comes_with_another_code(service):
    """The list has another status code."""
    answered(service, "GET", "", lambda q, r: ok(r.content, 206))


@fault("integrations.alias.list")
def the_older_list_breaks(service):
    """The list under the older name causes a server error."""
    answered_at(service, f"GET {OLDER}", lambda q, r: ok({}, 500))


@fault("integrations.single.read")
def reading_one_breaks(service):
    """Reading one integration causes a server error."""
    answered(service, "GET", "/:slug", lambda q, r: ok({}, 500))


@fault("integrations.set-up.accepted")
def setting_up_breaks(service):
    """Setting up an integration causes a server error."""
    answered(service, "PUT", "/:slug", lambda q, r: ok({}, 500))


@fault("integrations.set-up.accepted")
def nothing_is_ever_set_up(service):
    """Nothing is ever set up."""
    service.routes.change(f"PUT {name_at(service)}/:slug", handler=lambda q: ok({}, 404))


@fault("integrations.single.read")
def settings_come_with_another_code(service):
    """The settings have another status code."""
    answered(service, "GET", "/:slug", lambda q, r: ok(r.content, 203))


@fault("integrations.single.object")
def settings_come_in_an_array(service):
    """The settings are in an array."""
    answered(service, "GET", "/:slug", lambda q, r: ok([r.content]))
