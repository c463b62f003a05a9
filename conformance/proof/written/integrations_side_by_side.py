"""Faults of integrations that show only with two integrations, two callers, or two calls."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

from conformance.proof.faults import fault
from conformance.proof.tampering import handling, sent
from conformance.proof.written.integrations import NEWER, OLDER, name_at
from conformance.proof.written.job_token_scope import shown_from_memory


def after_one(service, name, changed):
    """Change the values of the other active integrations of a project after a call about one of them."""
    call, known = getattr(service.integrations, name), service.integrations.known

    def calling(project, one, *rest, **named):
        answer = call(project, one, *rest, **named)
        slug = getattr(one, "slug", one)
        for key, other in list(known.items()):
            if key[0] == project.id and key[1] != slug and other.active:
                known[key] = replace(other, values=MappingProxyType(changed(other, *rest)))
        return answer

    setattr(service.integrations, name, calling)


def taken_over(chosen):
    """Return a change that takes those of the values sent which the other integration has as well."""

    def changed(other, sent):
        mine = {*other.kind.events, *(parameter.name for parameter in other.kind.parameters)}
        return {**other.values, **{name: value for name, value in sent.items() if name in mine and chosen(name)}}

    return changed


@fault("integrations.update.leaves-others")
def a_channel_becomes_that_of_the_others(service):
    """Channels of single events that are set for one integration are those of the others from then on."""
    after_one(service, "set_up", taken_over(lambda name: name.endswith("_channel")))


@fault("integrations.update.leaves-others")
def a_switch_for_broken_pipelines_is_that_of_the_others(service):
    """Whether one integration tells of broken pipelines only is so for the others as well."""
    after_one(service, "set_up", taken_over(lambda name: name == "notify_only_broken_pipelines"))


@fault("integrations.update.leaves-others")
def disabling_one_resets_the_flags_of_the_others(service):
    """When one integration is disabled, the others have their event flags as at first."""
    after_one(
        service,
        "disable",
        lambda other: {name: value for name, value in other.values.items() if not name.endswith("_events")},
    )


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


@fault("integrations.disable.settings-stay-reset")
def a_new_text_is_the_one_from_before_the_disabling(service):
    """A text that is sent when a disabled integration is set up again is lost to the one from before."""
    disable, known, kept = service.integrations.disable, service.integrations.known, {}

    def remembering(project, slug):
        before = known.get((project.id, slug))
        if before is not None and before.active:
            kept[project.id, slug] = {name: text for name, text in before.values.items() if isinstance(text, str)}
        disable(project, slug)

    service.integrations.disable = remembering
    set_up = service.integrations.set_up

    def as_before(project, kind, values, *, active=None):
        former = kept.pop((project.id, kind.slug), {})
        required = {one.name for one in kind.parameters if one.required}
        again = {name: text for name, text in former.items() if name in values and name not in required}
        return set_up(project, kind, {**values, **again}, active=active)

    service.integrations.set_up = as_before


@fault("integrations.disable.settings-stay-reset")
def by_the_older_name_a_new_text_is_the_one_from_before(service):
    """A text that is sent when it is set up again by the older name is lost to the one from before the disabling."""
    kept = {}

    def forgetting(handler):
        def disabling(request):
            found = service.integrations.known.get((request.project.id, request.path["slug"]))
            if found is not None and found.active:
                kept[request.project.id, found.slug] = found.values
            return handler(request)

        return disabling

    def as_before(handler):
        def setting_up(request):
            former = kept.pop((request.project.id, request.path["slug"]), {})
            again = {name: text for name, text in former.items() if isinstance(text, str) and "_url" not in name}
            said = sent(request)
            request.body = json.dumps({**said, **{name: again[name] for name in again if name in said}}).encode()
            return handler(request)

        return setting_up

    for name in (NEWER, OLDER):
        handling(service, f"DELETE {name}/:slug", forgetting)
    handling(service, f"PUT {OLDER}/:slug", as_before)
