"""Faults of integrations that show only with two integrations, two callers, or two calls."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from conformance.proof.faults import fault
from conformance.proof.tampering import handling
from conformance.proof.written.integrations import name_at
from conformance.proof.written.job_token_scope import shown_from_memory


@fault("integrations.single.shows-its-own")
def the_newest_one_is_read(service):
    """Reading any integration shows the settings of the one that was set up last."""
    find, known = service.integrations.find, service.integrations.known

    def newest(project, slug):
        find(project, slug)
        return max((one for one in known.values() if one.project_id == project.id), key=lambda one: one.updated_at)

    service.integrations.find = newest


@fault("integrations.update.shows-to-everybody")
def list_of_integrations_is_shown_from_memory(service):
    """A caller who has read the list gets the same one until the next own change."""
    name = name_at(service)
    shown_from_memory(service, f"GET {name}", (f"PUT {name}/:slug", f"DELETE {name}/:slug"))


@fault("integrations.set-up.side-by-side")
def set_ups_overwrite_each_other(service):
    """If two callers set up two integrations concurrently, only the second one is listed."""
    known, moment, last = service.integrations.known, 0.05, {}

    def make(handler):
        def setting_up(request):
            project, slug, now = request.project.id, request.path["slug"], service.clock.seconds()
            who, when, other = last.get(project, (request.caller.id, 0.0, slug))
            if who != request.caller.id and other != slug and now - when < moment:
                known.pop((project, other), None)
            last[project] = (request.caller.id, now, slug)
            return handler(request)

        return setting_up

    handling(service, f"PUT {name_at(service)}/:slug", make)


@fault("integrations.disable.flags-reset")
def flags_survive_their_integration(service):
    """Disabling resets texts and numbers, but keeps the flags."""
    disable, known = service.integrations.disable, service.integrations.known

    def all_but_flags(project, slug):
        before = known.get((project.id, slug))
        disable(project, slug)
        if before is not None and (project.id, slug) in known:
            flags = {name: value for name, value in before.values.items() if isinstance(value, bool)}
            known[project.id, slug] = replace(known[project.id, slug], values=MappingProxyType(flags))

    service.integrations.disable = all_but_flags


@fault("integrations.update.followed")
def pushes_follow_tags(service):
    """Notifications about pushes follow the flag for pushed tags."""
    read = service.integrations.read

    def mixed(kind, parameters):
        values = read(kind, parameters)
        return values | {"push_events": values["tag_push_events"]} if "tag_push_events" in values else values

    service.integrations.read = mixed
