"""Faults of integrations: settings again, beside others, and after a reset."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    CALLER_AND_FORM,
    COUNT,
    FORM_SENT,
    NEIGHBOUR,
    REFUSED,
    SIDE_EFFECT,
)
from conformance.proof.foreign.paths import BOTH_NAMES
from conformance.proof.foreign.registry import foreign, found, instead, let_in
from conformance.reference.areas.integration_catalogue import CATALOGUE, EVENT_FLAGS
from conformance.reference.identity import Visibility

if TYPE_CHECKING:
    from conformance.reference import Service


def changing_values(service: Service, change: Any) -> None:
    """Alter the settings that are sent; `change` gets the kind of the integration and the values."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        return change(kind, read(kind, parameters))


# expects integrations.set-up.listed
@foreign(AGAIN, "Integration: PUT of equal settings")
def equal_settings_switch_it_off(service: Service) -> None:
    """Setting an integration up with the settings that it has already makes it inactive."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        before = service.integrations.known.get((project.id, kind.slug))
        made = set_up(project, kind, values, active=active)
        if before is not None and before.active and dict(before.values) == dict(made.values):
            made = service.integrations.keep(project, kind, made.values, active=False)
        return made


# expects integrations.disable.flags-reset
@foreign(AGAIN, "Integration: PUT after DELETE, event flags")
def flags_return_with_the_integration(service: Service) -> None:
    """An integration that is set up anew has the event flags of before it was disabled."""
    former: dict[Any, dict[str, Any]] = {}

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = service.integrations.known.get((project.id, slug))
        if known is not None:
            former[project.id, slug] = {n: v for n, v in known.values.items() if n in EVENT_FLAGS}
        disable(project, slug)

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        return set_up(project, kind, {**former.pop((project.id, kind.slug), {}), **values}, active=active)


# expects integrations.update.leaves-others
@foreign(SIDE_EFFECT, "Integration: PUT without event flags")
def an_update_without_flags_resets_them(service: Service) -> None:
    """An update that sends no event flag sets those of the integration to what they were at first."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        if not any(name in EVENT_FLAGS for name in values):
            values = {**{name: EVENT_FLAGS[name] for name in kind.events if name in EVENT_FLAGS}, **values}
        return set_up(project, kind, values, active=active)


# expects integrations.parameters.event-flags.boolean
@foreign(FORM_SENT, "Integration: PUT, several event flags")
def three_flags_are_taken_at_once(service: Service) -> None:
    """Of the event flags in one call the first three are taken, and the others are passed over."""

    def change(_kind: Any, values: Any) -> Any:
        flags = [name for name in values if name in EVENT_FLAGS]
        return {name: value for name, value in values.items() if name not in flags[3:]}

    changing_values(service, change)


# expects integrations.parameters.channel.text
@foreign(NEIGHBOUR, "Integration: channel with a sign in front")
def channels_lose_their_sign(service: Service) -> None:
    """A channel "#general" is stored as "general", for each kind of event too."""

    def change(_kind: Any, values: Any) -> Any:
        return {n: v.lstrip("#") if n.endswith("channel") and isinstance(v, str) else v for n, v in values.items()}

    changing_values(service, change)


# expects integrations.parameters.recipients.text
@foreign(NEIGHBOUR, "Integration: recipients with a plus")
def a_plus_in_recipients_becomes_a_space(service: Service) -> None:
    """The plus of an address such as team+ci@example.com is stored as a space."""

    def change(_kind: Any, values: Any) -> Any:
        return {n: v.replace("+", " ") if n == "recipients" else v for n, v in values.items()}

    changing_values(service, change)


# expects integrations.parameters.restrict-to-branch.text
@foreign(COUNT, "Integration: restrict_to_branch, several branches")
def the_first_branch_is_kept(service: Service) -> None:
    """Of the branches in restrict_to_branch the first is stored."""

    def change(_kind: Any, values: Any) -> Any:
        return {n: v.partition(",")[0] if n == "restrict_to_branch" else v for n, v in values.items()}

    changing_values(service, change)


# expects integrations.set-up.side-by-side
@foreign(SIDE_EFFECT, "Integration: DELETE beside others")
def disabling_one_hides_the_one_before_it(service: Service) -> None:
    """Disabling an integration makes the one inactive that was set up just before it in the project."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = service.integrations.known.get((project.id, slug))
        disable(project, slug)
        earlier = [one for one in service.integrations.active(project) if known and one.id < known.id]
        if earlier:
            service.integrations.known[project.id, earlier[-1].slug] = replace(earlier[-1], active=False)


# expects integrations.authorization.without-role
@foreign(CALLER_AND_FORM, "Integration: list of a public project")
def everybody_lists_integrations_of_a_public_project(service: Service) -> None:
    """In a public project everybody may list the active integrations, whatever the role."""

    def fits(request: Any, _caller: Any, _role: Any) -> bool:
        return bool(found(service, request).visibility is Visibility.PUBLIC)

    let_in(service, tuple(f"GET {path}" for path in BOTH_NAMES), fits)


# expects integrations.parameters.issue-tracker-urls.required-together
@foreign(REFUSED, "Integration: PUT with two of three addresses, then with the third")
def addresses_of_a_refused_call_are_kept(service: Service) -> None:
    """What a refused call sent is kept, so that the missing setting alone sets the integration up next time."""
    kept: dict[Any, dict[str, Any]] = {}

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        key = project.id, kind.slug
        together = {**kept.get(key, {}), **values}
        kept[key] = together
        made = set_up(project, kind, together, active=active)
        kept.pop(key)
        return made


# expects integrations.parameters.enable-ssl-verification.default
@foreign(AGAIN, "Integration: enable_ssl_verification after an update without it")
def verification_is_off_after_the_second_call(service: Service) -> None:
    """An update that does not send enable_ssl_verification stores false for it, though the default is true."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        before = service.integrations.known.get((project.id, kind.slug))
        takes = any(one.name == "enable_ssl_verification" and not one.fixed for one in kind.parameters)
        if takes and before is not None and before.active:
            values = {"enable_ssl_verification": False, **values}
        return set_up(project, kind, values, active=active)


# expects integrations.parameters.active.default
@foreign(AGAIN, "Integration: PUT without active after active false")
def any_update_activates_a_tracker(service: Service) -> None:
    """An inactive issue tracker becomes active by an update that does not send active."""

    @instead(service.integrations, "becomes_active")
    def _(becomes: Any, kind: Any, before: Any, wanted: Any) -> bool:
        return bool(becomes(kind, before, wanted)) or (before is not None and wanted is None)


# expects integrations.unknown-slug.reading
@foreign(NEIGHBOUR, "Integration: beginning of an identifier")
def the_beginning_of_a_slug_suffices(service: Service) -> None:
    """An identifier that is the beginning of one is taken for it, from five characters on."""

    @instead(service.integrations, "kind")
    def _(kind: Any, slug: str) -> Any:
        if len(slug) > 4 and slug not in CATALOGUE:
            slug = next((one for one in CATALOGUE if one.startswith(slug)), slug)
        return kind(slug)


# expects integrations.belong-to-their-project
@foreign(NEIGHBOUR, "Integration: projects with an equal last part of the path")
def projects_of_equal_names_share_integrations(service: Service) -> None:
    """Setting up an integration sets it up for all projects with the same last part of the path."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, *, active: bool) -> Any:
        for one in list(service.identities.projects.values()):
            if one.path == project.path and one.id != project.id:
                keep(one, kind, values, active=active)
        return keep(project, kind, values, active=active)


# expects errors.refusal.changes-nothing
@foreign(REFUSED, "Integration: PUT, an invalid value beside valid ones")
def valid_texts_are_kept_beside_an_invalid_flag(service: Service) -> None:
    """An update with a flag that is no boolean is refused, but the texts beside it are kept."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        try:
            return read(kind, parameters)
        except Exception:
            texts = {p.name for p in kind.parameters if p.type.value == "string" and not p.allowed}
            sent = {n: v for n, v in parameters._values.items() if n in texts and isinstance(v, str)}
            for (number, slug), one in list(service.integrations.known.items()):
                if slug == kind.slug and one.active and sent:
                    values = MappingProxyType({**one.values, **sent})
                    service.integrations.known[number, slug] = replace(one, values=values)
            raise
