"""Integrations that are set up, disabled and set up again: what is kept, and what is reset."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import answering, without_parameters
from conformance.proof.foreign.dimensions import AGAIN, NEIGHBOUR, OVER_TIME, RESETS
from conformance.proof.foreign.paths import PUT_INTEGRATION, SERVICES
from conformance.proof.foreign.registry import foreign, handling, instead, is_served
from conformance.reference.areas.integration_catalogue import EVENT_FLAGS

if TYPE_CHECKING:
    from conformance.reference import Service

_VERIFICATION = "enable_ssl_verification"


def _keep_until_set_up_again(service: Service, keeps: Any) -> None:
    """Let an integration that is set up again have values from before it was disabled; `keeps` gets kind and name."""
    area, kept = service.integrations, {}

    @instead(area, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        one = area.known.get((project.id, slug))
        disable(project, slug)
        if one is not None:
            kept[project.id, slug] = {name: v for name, v in one.values.items() if keeps(area.kind(slug), name)}

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        old = kept.pop((project.id, kind.slug), {})
        return keep(project, kind, MappingProxyType({**old, **values}), active=active)


def _keep_when_disabled(service: Service, keeps: Any) -> None:
    """Let disabling an integration keep some of its values; `keeps` gets the name and the value."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before is not None and after is not None:
            values = {name: value for name, value in before.values.items() if keeps(name, value)}
            integrations.known[project.id, slug] = replace(after, values=values)


# -- the list ----------------------------------------------------------------------------------------------------------


@foreign(RESETS, "Integrations: GET lists active integrations")
def integrations_without_any_event_are_not_listed(service: Service) -> None:
    """An active integration is not listed if all its events are switched off."""
    integrations = service.integrations

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> list[Any]:
        def is_quiet(one: Any) -> bool:
            names = integrations.event_parameters(one.kind)
            return bool(names) and all(one.values.get(name) is False for name in names)

        return [one for one in active(project) if not is_quiet(one)]


# Each flag of an entry is for its own kind of event.
@foreign(RESETS, "Integration list entry: event flags")
def confidential_notes_are_shown_as_notes(service: Service) -> None:
    """confidential_note_events of an entry is read from the column of note_events."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, integration: Any) -> Any:
        shown = flags(integration)
        return {**shown, "confidential_note_events": shown["note_events"]}


@foreign(RESETS, "Integrations: event flags")
def flags_cannot_be_switched_on_again(service: Service) -> None:
    """A flag that was switched off and is switched on again is answered, but stays off."""
    area = service.integrations

    @instead(area, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        before = area.known.get((project.id, kind.slug))
        off = {name for name, value in before.values.items() if value is False} if before else set()
        return set_up(project, kind, {name: v for name, v in values.items() if name not in off}, **more)


# What is set up is listed, whatever its former state and under whichever name it was disabled.
@foreign(AGAIN, "Integrations: services")
def what_the_older_name_disabled_it_never_lists_again(service: Service) -> None:
    """An integration that was disabled by the older name is in its list again only if it is set up by that name."""
    gone = set[tuple[int, str]]()

    @handling(service, f"DELETE {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        gone.add((request.project.id, request.path["slug"]))
        return answer

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        gone.discard((request.project.id, request.path["slug"]))
        return answer

    @handling(service, f"GET {SERVICES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            answer.content = [one for one in answer.content if (request.project.id, one["slug"]) not in gone]
        return answer


@foreign(AGAIN, "Integrations: list")
def what_is_switched_off_stays_listed(service: Service) -> None:
    """An issue tracker that was set to inactive is listed; the list must have only active ones."""

    @instead(service.integrations, "active")
    def _(_: Any, project: Any) -> Any:
        mine = [one for one in service.integrations.known.values() if one.project_id == project.id]
        return [one for one in mine if one.active or one.values]


@foreign(AGAIN, "Integrations: list by the older name")
def the_older_name_lists_what_it_saw_first(service: Service) -> None:
    """The list under the older name shows the integrations from its first read."""
    seen: dict[int, Any] = {}
    key = "GET /projects/:id/services"
    answering(service, key, lambda request, content: seen.setdefault(request.project.id, content))


@foreign(AGAIN, "Integrations: event flags")
def confidential_notes_follow_the_others(service: Service) -> None:
    """If note_events was sent, confidential_note_events shows that value, whatever was sent for it."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, one: Any) -> Any:
        shown = flags(one)
        return {**shown, "confidential_note_events": shown["note_events"]} if "note_events" in one.values else shown


# -- setting up --------------------------------------------------------------------------------------------------------


@foreign(AGAIN, "Integrations: PUT")
def integrations_are_set_up_once(service: Service) -> None:
    """An integration that was disabled and is set up again is answered, but not listed."""
    disabled: set[tuple[int, str]] = set()

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        disabled.add((project.id, slug))

    @instead(service.integrations, "becomes_active")
    def _(becomes: Any, kind: Any, before: Any, wanted: Any) -> bool:
        if before is not None and (before.project_id, before.slug) in disabled:
            return False
        return becomes(kind, before, wanted)


@foreign(AGAIN, "Integrations: PUT")
def integrations_keep_what_they_were_set_up_with(service: Service) -> None:
    """The settings from the first set-up stay; a second PUT is answered, but changes nothing."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        before = service.integrations.known.get((project.id, kind.slug))
        kept = before.values if before is not None and before.active else MappingProxyType(values)
        return keep(project, kind, kept, active=active)


@foreign(RESETS, "Integrations: blank labels mean all events, a blank list of branches all branches")
def what_is_blank_clears_nothing(service: Service) -> None:
    """Blank labels and branches count as not sent: once they are set, nothing clears them."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> dict[str, Any]:
        found = read(kind, parameters)
        clearable = {"labels_to_be_notified", "restrict_to_branch"}
        return {name: value for name, value in found.items() if name not in clearable or value != ""}


# Disabling resets the settings.
@foreign(AGAIN, "Integrations: set up after DELETE")
def an_integration_set_up_again_has_its_former_options(service: Service) -> None:
    """A disabled integration reads as blank; set up again, it has its former optional settings."""
    integrations = service.integrations
    former: dict[tuple[int, str], dict[str, Any]] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = integrations.known.get((project.id, slug))
        disable(project, slug)
        if known is not None and known.active:
            needed = {parameter.name for parameter in known.kind.parameters if parameter.required}
            former[project.id, slug] = {name: value for name, value in known.values.items() if name not in needed}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        return set_up(project, kind, {**former.pop((project.id, kind.slug), {}), **values}, active=active)


# What was not sent is not a request to switch it on.
@foreign(RESETS, "Integrations: active")
def any_later_change_switches_an_integration_on(service: Service) -> None:
    """An issue tracker that was switched off is on again after a change without `active`."""
    integrations = service.integrations

    @instead(integrations, "becomes_active")
    def _(becomes: Any, kind: Any, before: Any, wanted: bool | None) -> bool:
        if wanted is None and before is not None and before.values:
            return True
        return bool(becomes(kind, before, wanted))


# Settings are reset to the defaults of their columns, but one kind has another default.
@foreign(RESETS, "Integrations: branches_to_be_notified, default all for emails on push")
def a_reset_knows_one_default_for_all(service: Service) -> None:
    """If emails on push are disabled and set up again, branches_to_be_notified is default and not all."""
    integrations = service.integrations

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **active: Any) -> Any:
        before = integrations.known.get((project.id, kind.slug))
        if kind.slug == "emails-on-push" and before is not None and not before.active:
            values = {"branches_to_be_notified": "default", **values}
        return set_up(project, kind, values, **active)


# The default is "all", however often it was set up before.
@foreign(RESETS, "Integrations: branches_to_be_notified, emails-on-push")
def after_a_reset_mails_have_the_default_of_the_others(service: Service) -> None:
    """If emails on push are set up again, they notify about the default branch, and not about all as at first."""
    reset = set[int]()

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        disable(project, slug)
        if slug == "emails-on-push":
            reset.add(project.id)

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        if kind.slug == "emails-on-push" and project.id in reset:
            values = {"branches_to_be_notified": "default", **values}
        made = set_up(project, kind, values, **more)
        if kind.slug == "emails-on-push":
            reset.discard(project.id)
        return made


# Both names are for the same integrations.
@foreign(RESETS, "Integrations: services, enable_ssl_verification")
def the_older_name_sets_up_without_verification(service: Service) -> None:
    """Only the newer name sets certificate verification to its default, which is on."""
    integrations = service.integrations

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        known = integrations.known.get((request.project.id, request.path["slug"]))
        if known is None or not known.active:
            request.parameters._values = {"enable_ssl_verification": False, **request.parameters._values}
        return handler(request)


@foreign(NEIGHBOUR, "Integrations: PUT, allowed values in an update")
def allowed_values_are_looked_at_in_the_first_call_alone(service: Service) -> None:
    """A value that is not allowed is refused at the set-up, but stored by an update."""

    @handling(service, *PUT_INTEGRATION)
    def _(handler: Any, request: Any) -> Any:
        known, key = service.integrations.known, (request.project.id, request.path["slug"])
        if key not in known or not known[key].active:
            return handler(request)
        limited = [one.name for one in known[key].kind.parameters if one.allowed]
        asked = request.parameters._values
        sent = {name: str(asked[name]) for name in limited if isinstance(asked.get(name), str)}
        without_parameters(request, *sent)
        answer = handler(request)
        known[key] = replace(known[key], values={**known[key].values, **sent})
        return answer


@foreign(RESETS, "Integrations: event flags of one byte")
def events_behind_the_eighth_share_a_bit(service: Service) -> None:
    """Flags are bits of one byte: a value for one is also written for the flag eight positions after or before it."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values, flags = read(kind, parameters), service.integrations.event_parameters(kind)
        bits = {place % 8: values[name] for place, name in enumerate(flags) if name in values}
        shared = {name: bits[place % 8] for place, name in enumerate(flags) if place % 8 in bits}
        return {**values, **shared}


# -- disabling ---------------------------------------------------------------------------------------------------------


@foreign(RESETS, "Integrations: DELETE resets settings")
def event_flags_survive_being_disabled(service: Service) -> None:
    """When a disabled integration is set up again, its event flags have their former values; they must be reset."""
    _keep_until_set_up_again(service, lambda _, name: name.endswith("_events"))


@foreign(RESETS, "Integrations: DELETE resets settings")
def truth_values_survive_being_disabled(service: Service) -> None:
    """When a disabled integration is set up again, boolean settings have their former values."""
    flags = ("boolean",)
    _keep_until_set_up_again(
        service, lambda kind, name: any(p.name == name and p.type.value in flags for p in kind.parameters)
    )


@foreign(RESETS, "Integrations: DELETE resets settings")
def texts_survive_being_disabled(service: Service) -> None:
    """When a disabled integration is set up again, texts have their former values."""
    _keep_until_set_up_again(
        service, lambda kind, name: any(p.name == name and p.type.value == "string" for p in kind.parameters)
    )


# All settings are reset, also those that are switched off.
@foreign(RESETS, "States: DELETE integration, integration settings are reset")
def verification_stays_off_after_an_integration_was_disabled(service: Service) -> None:
    """Disabling an integration keeps enable_ssl_verification if it is false."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before is not None and after is not None and before.values.get("enable_ssl_verification") is False:
            kept = MappingProxyType({"enable_ssl_verification": False})
            integrations.known[project.id, slug] = replace(after, values=kept)


@foreign(AGAIN, "Integrations: disabling resets the settings")
def old_settings_come_back_with_a_new_set_up(service: Service) -> None:
    """A disabled integration is blank until it is set up again: then unsent settings have their former values."""
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


@foreign(OVER_TIME, "Integrations: DELETE disables")
def disabled_with_the_next_change_enabled(service: Service) -> None:
    """Setting up an integration also restores the one that was disabled last."""
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


# All columns are cleared except the one that must not be null.
@foreign(RESETS, "Integrations: DELETE; enable_ssl_verification")
def certificates_stay_unverified_after_a_reset(service: Service) -> None:
    """An integration that was set up without verification, disabled and set up again still has none."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before and after and before.values.get(_VERIFICATION) is False:
            kept = MappingProxyType({_VERIFICATION: False})
            integrations.known[project.id, slug] = replace(after, values=kept)


# Disabling resets the settings, also for a later set-up.
@foreign(AGAIN, "Integrations: DELETE and PUT")
def optional_settings_come_back_with_the_next_set_up(service: Service) -> None:
    """Disabling hides the settings, but optional ones have their former values after the next set-up."""
    integrations = service.integrations
    hidden: dict[tuple[int, str], dict[str, Any]] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        if before is not None and before.values:
            required = {parameter.name for parameter in before.kind.parameters if parameter.required}
            hidden[project.id, slug] = {name: value for name, value in before.values.items() if name not in required}

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        return set_up(project, kind, {**hidden.pop((project.id, kind.slug), {}), **values}, active=active)


# A reset clears all settings, and required ones must be sent again.
@foreign(RESETS, "Integrations: DELETE")
def a_reset_keeps_what_is_never_shown(service: Service) -> None:
    """Tokens, passwords and webhooks survive a reset, so the integration can be set up again without them."""
    integrations = service.integrations

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        before = integrations.known.get((project.id, slug))
        disable(project, slug)
        after = integrations.known.get((project.id, slug))
        if before and after:
            secret = {one.name for one in before.kind.parameters if one.secret}
            kept = {name: value for name, value in before.values.items() if name in secret}
            integrations.known[project.id, slug] = replace(after, values=MappingProxyType(kept))


@foreign(AGAIN, "Integrations: DELETE")
def event_flags_outlive_their_integration(service: Service) -> None:
    """An integration that is disabled and set up again has its former event flags."""
    integrations = service.integrations
    kept: dict[tuple[int, str], Any] = {}

    @instead(integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        one = integrations.known.get((project.id, slug))
        disable(project, slug)
        kept[project.id, slug] = {
            name: value for name, value in (one.values if one else {}).items() if name in EVENT_FLAGS
        }

    @instead(integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        return keep(project, kind, {**kept.pop((project.id, kind.slug), {}), **values}, active=active)


@foreign(RESETS, "Integrations: DELETE resets settings, numbers")
def disabling_an_integration_keeps_its_numbers(service: Service) -> None:
    """A disabled integration has lost its texts and flags, but not its port."""
    _keep_when_disabled(service, lambda name, value: type(value) is int)


@foreign(RESETS, "Integrations: DELETE resets settings, comment_on_event_enabled")
def disabling_an_integration_keeps_whether_it_comments(service: Service) -> None:
    """After it was disabled and set up again, an integration has its former setting for comments."""
    _keep_when_disabled(service, lambda name, value: name == "comment_on_event_enabled")


# -- set up for the first time -----------------------------------------------------------------------------------------


@foreign(NEIGHBOUR, "Integrations: tag_push_channel, push_channel")
def tags_take_the_channel_of_pushes(service: Service) -> None:
    """The channel that is sent for tags is also stored for pushes, whatever is sent for these."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        tags = values.get("tag_push_channel")
        return keep(project, kind, {**values, **({"push_channel": tags} if tags else {})}, **more)


@foreign(AGAIN, "Integrations: comment_on_event_enabled")
def comments_are_switched_off_by_a_change_only(service: Service) -> None:
    """comment_on_event_enabled is accepted by a change of an integration, but not by its set-up."""
    area = service.integrations

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        old = area.known.get((project.id, kind.slug))
        is_new = old is None or not old.active
        kept = {name: value for name, value in values.items() if name != "comment_on_event_enabled" or not is_new}
        return keep(project, kind, kept, active=active)
