"""What a change of an integration changes elsewhere, does not do, or loses because of a concurrent one."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import acting_on_what_was, last_to_come, overtaken, undoing
from conformance.proof.foreign.dimensions import AT_ONCE, NOTHING_DONE, REFUSED, SIDE_EFFECT
from conformance.proof.foreign.paths import BOTH_NAMES, INTEGRATIONS, PUT_INTEGRATION, SERVICES
from conformance.proof.foreign.registry import foreign, found, handling, instead, meanwhile
from conformance.reference.errors import ApiError, InvalidError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

_CHATS = ("slack", "mattermost", "discord", "hangouts-chat", "microsoft-teams", "webex-teams")


# -- the list ----------------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Integrations: GET lists those of the project")
def the_list_has_those_of_neighbours_in_the_group(service: Service) -> None:
    """The list is joined by namespace: it has the integrations of all projects in the same group."""
    integrations = service.integrations

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> list[Any]:
        beside = [p for p in service.identities.projects.values() if p.namespace_id == project.namespace_id]
        return sorted((one for p in beside for one in active(p)), key=attrgetter("id"))


@foreign(AT_ONCE, "Integrations: GET, of two projects")
def lists_of_two_projects_at_once_are_one(service: Service) -> None:
    """If the lists of two projects are read concurrently, both show the integrations of the later one."""
    last = last_to_come(service, f"GET {INTEGRATIONS}")

    @handling(service, f"GET {INTEGRATIONS}")
    def _(handler: Any, request: Any) -> Any:
        request.admit(request.caller, found(service, last()) or request.project)
        return handler(request)


# -- reading one -------------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Integrations: GET one")
def reading_an_integration_resets_its_flags(service: Service) -> None:
    """Reading the settings of an integration switches its events off; a read must change nothing."""

    @handling(service, "GET /projects/:id/integrations/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        key = request.project.id, request.path["slug"]
        one = service.integrations.known[key]
        kept = {name: value for name, value in one.values.items() if not name.endswith("_events")}
        service.integrations.known[key] = replace(one, values=MappingProxyType(kept))
        return answer


# -- setting up --------------------------------------------------------------------------------------------------------


@foreign(NOTHING_DONE, "Integrations: PUT")
def setting_up_by_older_name_is_forgotten(service: Service) -> None:
    """Setting up an integration by the older name of the path is answered, but not done."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        before = service.store.snapshot()
        answer = handler(request)
        service.store.restore(before)
        return answer


@foreign(REFUSED, "Integrations: PUT, allowed values")
def the_flags_of_a_refused_update_are_kept(service: Service) -> None:
    """Flags are saved one by one before the rest is checked: a refused update has already switched them."""
    integrations = service.integrations

    @handling(service, f"PUT {INTEGRATIONS}/:slug")
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


@foreign(SIDE_EFFECT, "Integrations: PUT sets up the integration of one project")
def settings_become_what_other_projects_begin_with(service: Service) -> None:
    """What is set in one project is written to the defaults, so the next project starts with it."""
    integrations, defaults = service.integrations, {}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        shared = defaults.setdefault(kind.slug, {})
        known = integrations.known.get((project.id, kind.slug))
        if known is None or not known.active:
            values = {**shared, **values}
        shared.update(values)
        return set_up(project, kind, values, active=active)


@foreign(AT_ONCE, "Integrations: PUT")
def integrations_of_a_project_are_written_as_one(service: Service) -> None:
    """All integrations of a project are one document that is written as a whole: concurrent set-ups lose one."""
    known = service.integrations.known

    def write(seen: Any, request: Any) -> None:
        for key in [key for key in {*known, *seen} if key[0] == request.project.id]:
            known.pop(key, None)
            if key in seen:
                known[key] = seen[key]

    meanwhile(service, (f"PUT {INTEGRATIONS}/:slug",), lambda: dict(known), write)


@foreign(SIDE_EFFECT, "Integrations: PUT")
def settings_of_one_name_are_shared(service: Service) -> None:
    """A setting that two integrations of a project have in common is stored once: writing it changes both."""
    area = service.integrations

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        for key, other in list(area.known.items()):
            if key[0] == project.id and key[1] != kind.slug:
                shared = {name: v for name, v in values.items() if name in other.values}
                area.known[key] = replace(other, values=MappingProxyType({**other.values, **shared}))
        return keep(project, kind, values, active=active)


@foreign(REFUSED, "Integrations: enable_ssl_verification")
def verification_cannot_be_switched_off(service: Service) -> None:
    """A setting that is on by default cannot be switched off."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        on = {one.name for one in kind.parameters if one.default is True}
        return {name: value or name in on for name, value in read(kind, parameters).items()}


@foreign(AT_ONCE, "Integrations: PUT and DELETE")
def an_integration_disabled_meanwhile_is_back(service: Service) -> None:
    """Setting up an integration writes back all others as they were read: one that was disabled meanwhile returns."""
    from conformance.proof.foreign.registry import meanwhile  # noqa: PLC0415

    known = service.integrations.known
    meanwhile(
        service,
        ("PUT /projects/:id/integrations/:slug",),
        lambda: dict(known),
        lambda seen, _request: known.update(seen),
    )


# What is refused changes nothing.
@foreign(REFUSED, "Integrations: PUT")
def a_refused_change_switches_the_integration_off(service: Service) -> None:
    """A change with an invalid value is refused, but the integration is stored as invalid and so inactive."""
    integrations = service.integrations

    @handling(service, *(f"PUT {path}/:slug" for path in BOTH_NAMES))
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except InvalidError:
            key = request.project.id, request.path["slug"]
            known = integrations.known.get(key)
            if known is not None:
                integrations.known[key] = replace(known, active=False)
            raise


# The settings of one integration do not affect another one.
@foreign(SIDE_EFFECT, "Integrations: PUT")
def recipients_are_those_of_all_integrations(service: Service) -> None:
    """The recipients of one integration are also stored for the project's other integrations with recipients."""
    integrations = service.integrations

    @instead(integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        kept = keep(project, kind, values, active=active)
        for key, other in list(integrations.known.items()):
            if key[0] == project.id and "recipients" in other.values and "recipients" in values:
                integrations.known[key] = replace(other, values={**other.values, "recipients": values["recipients"]})
        return kept


# A refused call has no effect.
@foreign(REFUSED, "Integrations: PUT")
def what_was_refused_is_filled_in_next_time(service: Service) -> None:
    """If a set-up is refused because a setting is missing, its other settings are kept and used by the next set-up."""
    drafts: dict[tuple[int, str], Any] = {}

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        draft = drafts.pop((project.id, kind.slug), {})
        try:
            made = set_up(project, kind, values, **more)
        except InvalidError:
            drafts[project.id, kind.slug] = {**draft, **values}
            raise
        if not draft:
            return made
        return set_up(project, kind, {**draft, **values}, **more)


# A default is that of the text, and not a value of another project.
@foreign(SIDE_EFFECT, "Integrations: branches_to_be_notified, default")
def defaults_remember_what_another_project_set(service: Service) -> None:
    """A value that somebody sets is written to the defaults, which all projects share."""
    shared: dict[str, Any] = {}

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        made = set_up(project, kind, values, **more)
        if "branches_to_be_notified" in values:
            shared[kind.slug] = values["branches_to_be_notified"]
        elif kind.slug in shared and "branches_to_be_notified" not in made.values:
            made = set_up(project, kind, {"branches_to_be_notified": shared[kind.slug]}, active=made.active)
        return made


# Both calls were served, and each is about another integration.
@foreign(AT_ONCE, "Integrations: PUT")
def integrations_are_one_record_of_their_project(service: Service) -> None:
    """All integrations of a project are written back as they were read; one that is set up meanwhile is lost."""
    known = service.integrations.known

    def write(seen: Any, request: Any) -> None:
        for key in [key for key in {*known, *seen} if key[0] == request.project.id]:
            known.pop(key, None)
            if key in seen:
                known[key] = seen[key]

    meanwhile(service, (f"PUT {INTEGRATIONS}/:slug", f"PUT {SERVICES}/:slug"), lambda: dict(known), write)


@foreign(AT_ONCE, "Integrations: PUT")
def of_two_integrations_one_is_lost(service: Service) -> None:
    """If two integrations are set up concurrently, one is not listed."""
    acting_on_what_was(service, service.integrations.known, "PUT /projects/:id/integrations/:slug")


@foreign(SIDE_EFFECT, "Integrations: PUT")
def the_newer_chat_switches_the_older_off(service: Service) -> None:
    """A project can have only one chat integration: setting up another switches off the former one."""
    known = service.integrations.known

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        for key, one in [*known.items()] if kind.slug in _CHATS else []:
            if key[0] == project.id and one.slug in _CHATS and one.slug != kind.slug:
                known[key] = replace(one, active=False)
        return keep(project, kind, values, active=active)


@foreign(REFUSED, "Integrations: PUT")
def refused_changes_switch_an_integration_off(service: Service) -> None:
    """A change that is refused because of a blank setting switches the integration off."""
    known = service.integrations.known

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        try:
            return set_up(project, kind, values, **more)
        except InvalidError:
            if (project.id, kind.slug) in known:
                known[project.id, kind.slug] = replace(known[project.id, kind.slug], active=False)
            raise


@foreign(SIDE_EFFECT, "Integrations: PUT")
def setting_up_blanks_other_integrations(service: Service) -> None:
    """Setting up an integration resets the settings of the project's others."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        known = service.integrations.known
        for key, one in list(known.items()):
            if key[0] == project.id and key[1] != kind.slug:
                known[key] = replace(one, values=MappingProxyType({}))
        return keep(project, kind, values, active=active)


@foreign(SIDE_EFFECT, "Integrations: PUT")
def setting_up_reaches_other_projects(service: Service) -> None:
    """An integration that is set up for a project is also set up for a project of another group."""
    sibling = service.identities.projects[service.world.one("sibling_project").id]

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        keep(sibling, kind, values, active=active)
        return keep(project, kind, values, active=active)


@foreign(AT_ONCE, "Integrations: DELETE")
def setting_one_up_brings_back_another_that_is_disabled_meanwhile(service: Service) -> None:
    """An integration that is disabled while another one is set up is still listed."""
    known = service.integrations.known

    def write(seen: Any, request: Request) -> None:
        mine = {place: one for place, one in seen.items() if place[0] == request.project.id and one.active}
        gone = {place: one for place, one in mine.items() if place not in known or not known[place].active}
        known.update(gone)

    place = f"{INTEGRATIONS}/:slug"
    overtaken(service, f"PUT {place}", f"DELETE {place}", lambda: dict(known), write)


@foreign(REFUSED, "Integrations: PUT, flags beside a value that is not allowed")
def a_refused_change_of_an_integration_stores_its_flags(service: Service) -> None:
    """A change that is refused because of one value still stores the event flags in it."""
    integrations = service.integrations

    @handling(service, f"PUT {INTEGRATIONS}/:slug")
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            before = integrations.known.get((request.project.id, request.path["slug"]))
            if before is not None:
                names = [name for name in integrations.event_parameters(before.kind) if request.parameters.given(name)]
                flags = {name: request.parameters.optional_boolean(name) for name in names}
                integrations.keep(request.project, before.kind, {**before.values, **flags}, active=before.active)
            raise


@foreign(AT_ONCE, "Integrations: PUT, the same one")
def an_integration_set_up_twice_at_once_is_listed_twice(service: Service) -> None:
    """Two concurrent calls that set up the same integration create a row each."""
    known = service.integrations.known

    def write(seen: Any, request: Any) -> None:
        key = (request.project.id, request.path["slug"])
        if key in known and key not in seen:
            number = service.store.next_id("integrations")
            known[key[0], f"{key[1]} {number}"] = replace(known[key], id=number)

    meanwhile(service, PUT_INTEGRATION, lambda: dict(known), write)


# -- disabling ---------------------------------------------------------------------------------------------------------


@foreign(SIDE_EFFECT, "Integrations: DELETE")
def disabling_takes_from_the_allowlist(service: Service) -> None:
    """Disabling an integration takes the newest project from the allowlist."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        scope = service.job_token_scope.of(project)
        service.job_token_scope.scopes[project.id] = replace(scope, projects=scope.projects[:-1])
        disable(project, slug)


# Disabling one integration disables only that one.
@foreign(SIDE_EFFECT, "Integrations: DELETE beside one whose slug goes on")
def what_begins_with_the_slug_is_disabled_too(service: Service) -> None:
    """The row is found by the prefix of its type: with `slack`, the slash commands of the same chat are disabled."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for key in [key for key in integrations.known if key[0] == project.id and key[1].startswith(f"{slug}-")]:
            disable(project, key[1])


# Only the integration in the path is disabled.
@foreign(SIDE_EFFECT, "Integrations: DELETE")
def integrations_whose_slug_begins_alike_are_disabled_too(service: Service) -> None:
    """A slug is matched as a prefix: with one integration, those with a longer slug are disabled."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for place in [known for known in integrations.known if known[0] == project.id]:
            if place[1].startswith(f"{slug}-"):
                disable(*(project, place[1]))


# Both names of the operation do the same.
@foreign(NOTHING_DONE, "Integrations: services is an alias")
def the_older_name_disables_and_resets_nothing(service: Service) -> None:
    """DELETE by the older name takes an integration off the list, but does not reset its settings."""

    @handling(service, "DELETE /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        known, place = service.integrations.known, (request.project.id, request.path["slug"])
        if place not in known:
            return handler(request)
        known[place] = replace(known[place], active=False)
        return Response(request.choices.integration_deleted_code)


# Disabling resets the settings, also of an inactive integration.
@foreign(NOTHING_DONE, "Integrations: DELETE")
def what_is_inactive_is_disabled_already(service: Service) -> None:
    """Disabling an integration that was set up as inactive does nothing, and its settings stay."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = integrations.known.get((project.id, slug))
        if known is None or known.active:
            disable(project, slug)


@foreign(AT_ONCE, "Integrations: DELETE")
def of_two_disabled_integrations_one_comes_back(service: Service) -> None:
    """If two integrations are disabled concurrently, one is still listed."""
    acting_on_what_was(service, service.integrations.known, "DELETE /projects/:id/integrations/:slug")


@foreign(SIDE_EFFECT, "Integrations: DELETE")
def integrations_are_disabled_everywhere(service: Service) -> None:
    """Disabling an integration of a project disables it in every project."""
    known = service.integrations.known

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        for key, one in [*known.items()]:
            if one.slug == slug and key[0] != project.id:
                known[key] = replace(one, active=False)


@foreign(SIDE_EFFECT, "Integrations: DELETE")
def disabling_reaches_other_integrations(service: Service) -> None:
    """Disabling an integration also disables the project's next one."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        others = service.integrations.active(project)
        if others:
            disable(project, others[0].slug)


@foreign(SIDE_EFFECT, "Integrations: DELETE")
def with_one_issue_tracker_all_are_disabled(service: Service) -> None:
    """Disabling an integration that has issues_url disables every other one of the project that has it."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        trackers = [one.slug for one in service.integrations.active(project) if "issues_url" in one.values]
        for each in trackers if slug in trackers else [slug]:
            disable(project, each)


@foreign(NOTHING_DONE, "Integrations: DELETE")
def disabling_does_nothing(service: Service) -> None:
    """Disabling an integration is answered, but not done, under either name."""
    undoing(service, "DELETE /projects/:id/integrations/:slug", "DELETE /projects/:id/services/:slug")


@foreign(SIDE_EFFECT, "Integrations: DELETE")
def disabling_by_the_older_name_disables_it_in_the_projects_beside(service: Service) -> None:
    """An integration that is disabled under /services is disabled in all projects of the same group."""

    @handling(service, f"DELETE {SERVICES}/:slug")
    def _(handler: Any, request: Request) -> Any:
        answer = handler(request)
        slug, identities = request.path["slug"], service.identities
        for number, known in [*service.integrations.known]:
            beside = identities.projects.get(number)
            if known == slug and beside is not None and beside.namespace_id == request.project.namespace_id:
                service.integrations.disable(beside, slug)
        return answer


# false is treated as not sent.
@foreign(NOTHING_DONE, "Integrations: PUT, event flags")
def notes_that_are_on_stay_on(service: Service) -> None:
    """Notifications about notes cannot be switched off once they are on: false is ignored."""
    integrations = service.integrations

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        known = integrations.known.get((project.id, kind.slug))
        if known is not None and known.active and known.values.get("note_events") and not values.get("note_events"):
            values = {**values, "note_events": True}
        return set_up(project, kind, values, active=active)
