"""Legal differences of the reference in allowlists, exports and integrations, each for a service that was just made."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.reference.areas.group_relations_export import RelationExport, Status
from conformance.reference.errors import NotFoundError, RejectedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.world import Fixture

_EXPORT_STATUS = "GET /groups/:id/export_relations/status"
_LATE_SECONDS = 0.15
_MASK = "********"


# -- job token scope ---------------------------------------------------------------------------------------------------


def manages_entries_only_while_limited(service: Service) -> None:
    """Add and remove entries of an allowlist only while the limit is on that they are exceptions from."""
    scopes = service.job_token_scope

    def while_limited(move: Callable[..., Any]) -> Callable[..., Any]:
        def moved(project: Any, target: Any) -> None:
            if not scopes.of(project).inbound_enabled:
                raise RejectedError("The limit is off.")
            move(project, target)

        return moved

    scopes.add_project = while_limited(scopes.add_project)  # type: ignore[method-assign] # a service is altered so
    scopes.add_group = while_limited(scopes.add_group)  # type: ignore[method-assign] # see above
    scopes.remove_project = while_limited(scopes.remove_project)  # type: ignore[method-assign] # see above
    scopes.remove_group = while_limited(scopes.remove_group)  # type: ignore[method-assign] # see above


def lists_the_own_group(service: Service) -> None:
    """List the group that a project lies in among the groups that have access to it."""
    scopes = service.job_token_scope
    groups = scopes.groups

    def with_own(project: Any) -> list[Any]:
        own = service.identities.namespace_of(project)
        return [own, *(group for group in groups(project) if group.id != own.id)]

    scopes.groups = with_own  # type: ignore[method-assign] # see above


def gives_places_one_name(service: Service) -> None:
    """Call all projects by one name and all groups by another, in the profile as well."""
    known, fixtures = service.identities, service.world.fixtures
    known.projects.update({number: replace(one, name="Copy of") for number, one in known.projects.items()})
    known.groups.update({number: replace(one, name="Team", full_name="Team") for number, one in known.groups.items()})
    of_projects = {one.full_path for one in known.projects.values()}

    def renamed(one: Fixture) -> Fixture:
        name = "Copy of" if one.path in of_projects else "Team"
        return replace(one, extra={**one.extra, "name": name}) if one.path and "name" in one.extra else one

    for place, found in list(fixtures.items()):
        fixtures[place] = tuple(map(renamed, found)) if isinstance(found, tuple) else renamed(found)


# -- exports -----------------------------------------------------------------------------------------------------------


def finishes_relations_one_by_one(service: Service) -> None:
    """Take up the relations of an export one after the other: until then the entry of the export before stays."""
    exports = service.group_relations_export
    schedule, seconds = exports.schedule, service.clock.seconds
    waiting: dict[tuple[int, str], tuple[float, RelationExport]] = {}

    def one_by_one(group: Any, *, batched: bool) -> None:
        before = {export.relation: export for export in exports.all_of(group)}
        schedule(group, batched=batched)
        delay = service.choices.export_delay_seconds
        for place, export in enumerate(exports.all_of(group)):
            begins = seconds() + place * delay
            waiting[group.id, export.relation] = begins, replace(export, started=begins)
            if export.relation in before:
                exports.exports[group.id, export.relation] = before[export.relation]
            else:
                exports.exports[group.id, export.relation] = replace(export, started=begins)

    def take_up() -> None:
        for key, (begins, export) in list(waiting.items()):
            if seconds() >= begins:
                exports.exports[key] = replace(export, started_at=service.clock.now())
                del waiting[key]

    _before_each_look(service, take_up)
    exports.schedule = one_by_one  # type: ignore[method-assign] # see above


def begins_exports_later(service: Service) -> None:
    """Accept an export at once and begin it a moment later: until then nothing of it shows."""
    exports = service.group_relations_export
    schedule, seconds = exports.schedule, service.clock.seconds
    accepted: list[tuple[float, Any, bool]] = []

    def accept(group: Any, *, batched: bool) -> None:
        accepted.append((seconds() + _LATE_SECONDS, group, batched))

    def begin() -> None:
        while accepted and seconds() >= accepted[0][0]:
            _, group, batched = accepted.pop(0)
            schedule(group, batched=batched)

    _before_each_look(service, begin)
    exports.schedule = accept  # type: ignore[method-assign] # see above


def tries_exports_again(service: Service) -> None:
    """Let the export of each relation fail at first, and begin once more by itself."""
    exports = service.group_relations_export
    status_of, seconds = exports.status_of, service.clock.seconds

    def at_the_second_try(export: RelationExport) -> Status:
        tries = (seconds() - export.started) / _LATE_SECONDS
        return Status.FAILED if tries < 1 else Status.STARTED if tries < 2 else status_of(export)  # noqa: PLR2004 - two tries

    exports.status_of = at_the_second_try  # type: ignore[method-assign] # see above


def lists_batches_as_they_come(service: Service) -> None:
    """Show the first batch only, and count one, as long as an export is running."""
    exports = service.group_relations_export
    present = exports.present

    def shown(export: RelationExport) -> dict[str, Any]:
        entry: dict[str, Any] = dict(present(export))
        if export.batched and exports.status_of(export) is Status.STARTED:
            entry["batches"] = entry["batches"][:1]
            entry["batches_count"] = len(entry["batches"])
        return entry

    exports.present = shown  # type: ignore[method-assign] # see above


def exports_once_at_a_time(service: Service) -> None:
    """Refuse to export a group anew as long as any of its relations is under way, and take one after the other."""
    exports = service.group_relations_export
    schedule, status_of = exports.schedule, exports.status_of

    def status_in_turn(export: RelationExport) -> Status:
        relations = sorted(each.relation for each in exports.exports.values() if each.group_id == export.group_id)
        place = relations.index(export.relation)
        turn = replace(export, started=export.started + place * service.choices.export_delay_seconds)
        return Status(status_of(turn))

    def once(group: Any, *, batched: bool) -> None:
        if any(exports.status_of(export) is Status.STARTED for export in exports.all_of(group)):
            raise RejectedError("409 An export is running")
        schedule(group, batched=batched)

    exports.status_of = status_in_turn  # type: ignore[method-assign] # see above
    exports.schedule = once  # type: ignore[method-assign] # see above


def has_no_status_before_the_first_export(service: Service) -> None:
    """Refuse to tell the status of a group's exports before there was one."""
    exports = service.group_relations_export
    status = service.routes.get(_EXPORT_STATUS).handler

    def after_the_first(request: Request) -> Response:
        response: Response = status(request)  # first: an export may begin when somebody looks
        if not exports.all_of(request.group):
            raise NotFoundError("404 Export not found")
        return response

    service.routes.change(_EXPORT_STATUS, handler=after_the_first)


def escapes_letters_in_files(service: Service) -> None:
    """Write the files of exports with no letter but those of ASCII, the others being escaped, as JSON may be."""
    exports = service.group_relations_export
    pack = exports.file

    def escaped(lines: tuple[bytes, ...]) -> bytes:
        return pack(tuple(json.dumps(json.loads(line)).encode("ascii") for line in lines))

    exports.file = escaped  # type: ignore[method-assign] # see above


def _before_each_look(service: Service, act: Callable[[], None]) -> None:
    for name in ("", "/status", "/download"):
        key = f"{'GET' if name else 'POST'} /groups/:id/export_relations{name}"
        handler = service.routes.get(key).handler

        def after_acting(request: Request, handler: Any = handler) -> Response:
            act()
            response: Response = handler(request)
            return response

        service.routes.change(key, handler=after_acting)


# -- integrations ------------------------------------------------------------------------------------------------------


def shows_settings_as_pairs(service: Service) -> None:
    """Show the settings of an integration as a list of names and values."""
    area = service.integrations
    present_entry, shown_settings = area.present_entry, area.shown_settings

    def present(integration: Any) -> dict[str, Any]:
        pairs = [{"name": name, "value": value} for name, value in shown_settings(integration).items()]
        return {**present_entry(integration), "fields": pairs}

    area.present_settings = present  # type: ignore[method-assign] # see above


def replaces_settings(service: Service) -> None:
    """Let an update of an integration replace all its settings, but for secrets and what is required."""
    area = service.integrations
    set_up = area.set_up

    def replaced(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        key = project.id, kind.slug
        known = area.known.get(key)
        if known is not None:
            stays = {parameter.name for parameter in kind.parameters if parameter.required or parameter.secret}
            kept = {name: value for name, value in known.values.items() if name in stays}
            # The rest is forgotten only when the update is not refused.
            area.require_settings(kind, {**kept, **values})
            area.known[key] = replace(known, values=MappingProxyType(kept))
        return set_up(project, kind, values, active=active)

    area.set_up = replaced  # type: ignore[method-assign] # see above


def refuses_empty_settings(service: Service) -> None:
    """Refuse to set up an integration without any setting, though it needs none."""
    area = service.integrations
    set_up = area.set_up

    def with_some(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        if not values and active is None:
            raise RejectedError("at least one setting must be sent")
        return set_up(project, kind, values, active=active)

    area.set_up = with_some  # type: ignore[method-assign] # see above


def shows_settings_as_texts(service: Service) -> None:
    """Show the numbers and truth values among the settings of an integration as texts: their form is not shown."""
    area = service.integrations
    shown_settings = area.shown_settings

    def shown(integration: Any) -> dict[str, Any]:
        settings = shown_settings(integration)
        return {name: json.dumps(value) if isinstance(value, bool | int) else value for name, value in settings.items()}

    area.shown_settings = shown  # type: ignore[method-assign] # see above


def masks_secrets(service: Service) -> None:
    """Show secrets of an integration as stars."""
    area = service.integrations
    shown_settings = area.shown_settings

    def shown(integration: Any) -> dict[str, Any]:
        masked = {parameter.name: _MASK for parameter in integration.kind.parameters if parameter.secret}
        return {**shown_settings(integration), **masked}

    area.shown_settings = shown  # type: ignore[method-assign] # see above


def numbers_integrations_anew(service: Service) -> None:
    """Give an integration another number each time it is set up after it was disabled."""
    area = service.integrations
    disable, present_entry = area.disable, area.present_entry
    times: dict[tuple[int, str], int] = {}

    def disabled(project: Any, slug: str) -> None:
        disable(project, slug)
        times[project.id, slug] = times.get((project.id, slug), 0) + 1

    def entry(integration: Any) -> dict[str, Any]:
        often = times.get((integration.project_id, integration.kind.slug), 0)
        return {**present_entry(integration), "id": integration.id + 1_000_000 * often}

    area.disable = disabled  # type: ignore[method-assign] # see above
    area.present_entry = entry  # type: ignore[method-assign] # see above


def sets_integrations_up_anew(service: Service) -> None:
    """Set what a change of an integration leaves out back to its default."""
    integrations = service.integrations
    set_up = integrations.set_up

    def replaced(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        if before := integrations.known.get((project.id, kind.slug)):
            integrations.require_settings(kind, values)
            integrations.known[project.id, kind.slug] = replace(before, values=MappingProxyType({}))
        return set_up(project, kind, values, active=active)

    integrations.set_up = replaced  # type: ignore[method-assign] # a service is altered by putting methods in place
