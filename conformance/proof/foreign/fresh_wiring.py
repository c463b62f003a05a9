"""Small bugs of exports, integrations, and rows of the version table."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.choices import Choices

if TYPE_CHECKING:
    from conformance.reference import Service

_EXPORT = "/groups/:id/export_relations"
_OLDER = "/projects/:id/services"


# -- exports -----------------------------------------------------------------------------------------------------------


@foreign("value x neighbour of the right value", "Group relations export: download, batch_number")
def batch_zero_is_the_last(service: Service) -> None:
    """Batch 0 is the last one; there is no such batch."""

    @instead(service.group_relations_export, "batch")
    def _(batch: Any, export: Any, number: int) -> Any:
        return service.group_relations_export.batches(export)[-1] if number == 0 else batch(export, number)


@foreign("status over time", "Group relations export: updated_at", choices=Choices(export_delay_seconds=0.4))
def relations_in_progress_have_no_time(service: Service) -> None:
    """updated_at is null as long as a relation is being exported."""

    @instead(service.group_relations_export, "progress")
    def _(progress: Any, export: Any) -> Any:
        shown = progress(export)
        return {**shown, "updated_at": None} if shown["status"] == 0 else shown


@foreign("status over time", "Group relations export: status", choices=Choices(failing_export_relations=("boards",)))
def failed_relations_have_status_two(service: Service) -> None:
    """A relation that could not be exported has status 2; it is -1."""

    @instead(service.group_relations_export, "progress")
    def _(progress: Any, export: Any) -> Any:
        shown = progress(export)
        return {**shown, "status": 2} if shown["status"] == -1 else shown


# -- integrations ------------------------------------------------------------------------------------------------------


@foreign("write x everything that must stay", "Integrations: PUT")
def settings_of_one_name_are_shared(service: Service) -> None:
    """A setting that two integrations of a project have in common is one: writing it changes both."""
    area = service.integrations

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        for key, other in list(area.known.items()):
            if key[0] == project.id and key[1] != kind.slug:
                shared = {name: v for name, v in values.items() if name in other.values}
                area.known[key] = replace(other, values=MappingProxyType({**other.values, **shared}))
        return keep(project, kind, values, active=active)


@foreign("refusal x everything that must stay", "Integrations: enable_ssl_verification")
def verification_cannot_be_switched_off(service: Service) -> None:
    """A setting that is on by default cannot be switched off."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        on = {one.name for one in kind.parameters if one.default is True}
        return {name: value or name in on for name, value in read(kind, parameters).items()}


@foreign("refusal x everything that must stay", "Integrations: blank means all")
def texts_cannot_be_emptied(service: Service) -> None:
    """A setting that is sent blank keeps the text that it had."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        return {name: value for name, value in read(kind, parameters).items() if value != ""}


@foreign("settings and their resets", "Integrations: event flags")
def flags_cannot_be_switched_on_again(service: Service) -> None:
    """A flag that was switched off and is switched on again is answered and stays off."""
    area = service.integrations

    @instead(area, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        before = area.known.get((project.id, kind.slug))
        off = {name for name, value in before.values.items() if value is False} if before else set()
        return set_up(project, kind, {name: v for name, v in values.items() if name not in off}, **more)


@foreign("version table", "Integrations: the alias; the chat app cannot be created")
def the_alias_creates_the_chat_app(service: Service) -> None:
    """The chat app, which must be installed elsewhere, can be created by the older path."""

    @handling(service, f"PUT {_OLDER}/:slug")
    def _(handler: Any, request: Any) -> Any:
        area = service.integrations
        kind = area.kind(request.path["slug"])
        if not kind.creatable and (request.project.id, kind.slug) not in area.known:
            area.keep(request.project, kind, {}, active=True)
        return handler(request)


@foreign("version table", "Integrations: the alias lists active ones only")
def the_alias_lists_disabled_ones(service: Service) -> None:
    """The older path lists disabled integrations as well."""

    @handling(service, f"GET {_OLDER}")
    def _(_handler: Any, request: Any) -> Any:
        area = service.integrations
        mine = [one for key, one in area.known.items() if key[0] == request.project.id]
        return request.collection(mine, area.present_entry)


@foreign("none, one or two values", "Integrations: new_issue_url, issues_url and project_url are required together")
def the_last_required_setting_is_not_required(service: Service) -> None:
    """The last of several required settings may be left out."""

    @instead(service.integrations, "require_settings")
    def _(require: Any, kind: Any, values: Any) -> None:
        needed = [one.name for one in kind.parameters if one.required]
        if len(needed) > 1:
            values = {needed[-1]: "set", **values}
        require(kind, values)


@foreign("version table", "Versioning: 16.4, vulnerability_events")
def vulnerabilities_are_never_notified(service: Service) -> None:
    """vulnerability_events is shown, can be sent and stays false."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, integration: Any) -> Any:
        return {**flags(integration), "vulnerability_events": False}


@foreign("numbers and texts that follow from the story", "Integration list entry: slug")
def slugs_are_shown_with_underscores(service: Service) -> None:
    """The list shows slugs with underscores where calls take dashes."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "slug": integration.slug.replace("-", "_")}


@foreign("status over time", "Integrations: DELETE disables")
def disabled_with_the_next_change_enabled(service: Service) -> None:
    """Setting up one integration brings back the one that was disabled last."""
    area, gone = service.integrations, {}

    @instead(area, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        one = area.known.get((project.id, slug))
        disable(project, slug)
        if one is not None:
            gone[project.id] = one

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        kept = keep(project, kind, values, active=active)
        back = gone.pop(project.id, None)
        if back is not None and back.slug != kind.slug:
            area.known[project.id, back.slug] = back
        return kept


@foreign("two write at once", "Integrations: PUT and DELETE")
def an_integration_disabled_meanwhile_is_back(service: Service) -> None:
    """Setting up an integration writes back all of them as they were read: one disabled meanwhile is back."""
    from conformance.proof.foreign.registry import meanwhile  # noqa: PLC0415

    known = service.integrations.known
    meanwhile(
        service,
        ("PUT /projects/:id/integrations/:slug",),
        lambda: dict(known),
        lambda seen, _request: known.update(seen),
    )


# -- rows of the version table -----------------------------------------------------------------------------------------


@foreign("caller x form of id x operation", "Integrations: GET one")
def reading_one_integration_needs_an_owner(service: Service) -> None:
    """A maintainer may not read a single integration by the newer path."""
    from conformance.reference.identity import Role  # noqa: PLC0415

    service.routes.change("GET /projects/:id/integrations/:slug", least_role=Role.OWNER)
