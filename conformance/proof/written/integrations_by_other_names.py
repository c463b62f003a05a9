"""Faults of integrations that show only by the older name, by the path of the project, or by both together."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, beforehand, handling, is_number, sent
from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.reference.http import ok

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.reference import Service
    from conformance.reference.areas.integrations import Integration
    from conformance.reference.http import Request

OLDER, NEWER = "/projects/:id/services", "/projects/:id/integrations"
EVENTS = "_events"

Values = dict[tuple[int, str], "Mapping[str, Any]"]


def as_at_first(service: Service) -> Values:
    """Return what is kept of the values with which each integration was set up first; it is filled as they are."""
    kept: Values = {}

    def make(set_up: Any) -> Any:
        def remembering(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
            found = set_up(project, kind, values, active=active)
            kept.setdefault((project.id, kind.slug), found.values)
            return found

        return remembering

    around(service.integrations, "set_up", make)
    beforehand(service.integrations, "disable", lambda project, slug: kept.pop((project.id, slug), None))
    return kept


def listing(service: Service, path: str, shown: Callable[[Integration], Integration], *, by_path: bool) -> None:
    """Let a list, all of it or read by the path of the project, show something else than what it holds."""

    def make(handler: Any) -> Any:
        def listed(request: Any) -> Any:
            if by_path and is_number(request, "id"):
                return handler(request)
            known = service.integrations.active(request.project)
            return ok([service.integrations.present_entry(shown(each)) for each in known])

        return listed

    handling(service, f"GET {path}", make)


@fault("integrations.alias.set-up-shows")
def the_older_list_shows_the_flags_of_the_first_set_up(service: Service) -> None:
    """The list by the older name shows the flags with which an integration was set up first."""
    kept = as_at_first(service)
    listing(
        service,
        OLDER,
        lambda each: replace(each, values=kept.get((each.project_id, each.slug), each.values)),
        by_path=False,
    )


@fault("integrations.alias.set-up-shows")
def by_the_path_all_flags_are_as_by_default(service: Service) -> None:
    """If the project is named by its path, the list shows the default of each flag."""
    listing(service, NEWER, lambda each: replace(each, values=MappingProxyType({})), by_path=True)


@fault("integrations.alias.reads-the-same")
def by_the_older_name_and_the_path_settings_are_as_at_first(service: Service) -> None:
    """By the older name and the path of the project, an integration is shown as it was set up first."""
    kept = as_at_first(service)

    def make(handler: Any) -> Any:
        def read(request: Any) -> Any:
            key = (request.project.id, request.path["slug"])
            if is_number(request, "id") or key not in kept:
                return handler(request)
            found = service.integrations.find(request.project, request.path["slug"])
            return ok(service.integrations.present_settings(replace(found, values=kept[key])))

        return read

    handling(service, f"GET {OLDER}/:slug", make)


@fault("integrations.disable.flags-reset")
def flags_outlive_a_disabling_by_the_older_name_and_the_path(service: Service) -> None:
    """Flags survive if the integration is disabled by the older name and the path of the project."""
    outliving(service, EVENTS)


@fault("integrations.disable.settings-stay-reset")
def channels_outlive_a_disabling_by_the_older_name_and_the_path(service: Service) -> None:
    """Channels of events survive if the integration is disabled by the older name and the path of the project."""
    outliving(service, "_channel")


def outliving(service: Service, end: str) -> None:
    """Keep values whose names have this end, if an integration is disabled by the older name and the path."""
    kept: Values = {}

    def make(handler: Any) -> Any:
        def disabling(request: Any) -> Any:
            key = (request.project.id, request.path["slug"])
            found = service.integrations.known.get(key)
            if found is not None and not is_number(request, "id"):
                kept[key] = {name: value for name, value in found.values.items() if name.endswith(end)}
            return handler(request)

        return disabling

    def make_again(set_up: Any) -> Any:
        def restoring(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
            return set_up(project, kind, {**kept.pop((project.id, kind.slug), {}), **values}, active=active)

        return restoring

    handling(service, f"DELETE {OLDER}/:slug", make)
    around(service.integrations, "set_up", make_again)


@fault("integrations.alias.set-up-shows")
def flags_are_lost_at_a_set_up_by_the_older_name(service: Service) -> None:
    """Flags that are sent when an integration is set up by the older name are dropped; a change takes them."""

    def make(handler: Any) -> Any:
        def setting_up(request: Request) -> Any:
            before = service.integrations.known.get((request.project.id, request.path["slug"]))
            if before is None or not before.active:
                request.body = json.dumps(without_flags(sent(request))).encode()
            return handler(request)

        return setting_up

    handling(service, f"PUT {OLDER}/:slug", make)


@fault("integrations.alias.set-up-shows")
def a_change_by_the_older_name_and_the_path_is_lost(service: Service) -> None:
    """What is set up already and changed by the older name and the path of the project stays as it was."""

    def make(handler: Any) -> Any:
        def changing(request: Request) -> Any:
            place = request.project.id, request.path["slug"]
            before = service.integrations.known.get(place)
            answer = handler(request)
            if before is not None and before.active and not is_number(request, "id"):
                service.integrations.known[place] = before
            return answer

        return changing

    handling(service, f"PUT {OLDER}/:slug", make)


def without_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was sent without its event flags."""
    return {name: value for name, value in values.items() if not name.endswith(EVENTS)}


@fault("integrations.unknown-slug.setting-up")
def by_the_path_anything_is_set_up(service: Service) -> None:
    """By the path of a project an unknown integration is set up, as the answer says; nothing happens."""

    def make(handler: Any) -> Any:
        def lenient(request: Request) -> Any:
            is_known = request.path["slug"] in CATALOGUE
            return handler(request) if is_known or is_number(request, "id") else ok({})

        return lenient

    handling(service, f"PUT {NEWER}/:slug", make)
