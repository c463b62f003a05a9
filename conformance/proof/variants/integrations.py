"""Variants in integrations and in how their settings are accepted and shown, and the alterations that make them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.proof.variants.variant import Variant
from conformance.reference.areas.integration_catalogue import CATALOGUE, EVENT_FLAGS
from conformance.reference.areas.integrations import Integration, Integrations
from conformance.reference.choices import Choices
from conformance.reference.errors import InvalidError, NotFoundError, RejectedError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.presenters import Json
    from conformance.reference.world import Fixture

_MASK = "********"
_ISSUES_URL = "issues_url"
_HEARD_PORT = 6659
_PUSHES = "push_events"


def drops_unfit_settings(service: Service) -> None:
    """Ignore sent values that an integration cannot accept, instead of refusing them."""
    area = service.area(Integrations)
    read = area.read

    def what_fits(kind: Any, parameters: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        alone = [replace(kind, parameters=(parameter,), events=()) for parameter in kind.parameters]
        alone += [replace(kind, parameters=(), events=(name,)) for name in kind.events]
        for part in alone:
            with suppress(InvalidError):
                found |= read(part, parameters)
        return found

    area.read = what_fits


def asks_for_required_settings_each_time(service: Service) -> None:
    """Refuse an update of an integration without a required setting, even if one is stored."""
    area = service.area(Integrations)
    set_up = area.set_up

    def complete(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        area.require_settings(kind, values)
        return set_up(project, kind, values, active=active)

    area.set_up = complete


def replaces_settings(service: Service) -> None:
    """Let an update of an integration replace all its settings, except secrets and required ones."""
    area = service.integrations
    set_up = area.set_up

    def replaced(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        key = project.id, kind.slug
        known = area.known.get(key)
        if known is not None:
            stays = {parameter.name for parameter in kind.parameters if parameter.required or parameter.secret}
            kept = {name: value for name, value in known.values.items() if name in stays}
            # The rest is cleared only if the update is not refused.
            area.require_settings(kind, {**kept, **values})
            area.known[key] = replace(known, values=MappingProxyType(kept))
        return set_up(project, kind, values, active=active)

    area.set_up = replaced


def refuses_empty_settings(service: Service) -> None:
    """Refuse to set up an integration without any setting, even if it requires none."""
    area = service.integrations
    set_up = area.set_up

    def with_some(project: Any, kind: Any, values: Any, *, active: Any = None) -> Any:
        if not values and active is None:
            raise RejectedError("at least one setting must be sent")
        return set_up(project, kind, values, active=active)

    area.set_up = with_some


def sets_integrations_up_anew(service: Service) -> None:
    """Reset settings that a change of an integration does not send."""
    integrations = service.integrations
    set_up = integrations.set_up

    def replaced(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        if before := integrations.known.get((project.id, kind.slug)):
            integrations.require_settings(kind, values)
            integrations.known[project.id, kind.slug] = replace(before, values=MappingProxyType({}))
        return set_up(project, kind, values, active=active)

    integrations.set_up = replaced


def numbers_integrations_anew(service: Service) -> None:
    """Give an integration another id each time it is set up after it was disabled."""
    area = service.integrations
    disable, present_entry = area.disable, area.present_entry
    times: dict[tuple[int, str], int] = {}

    def disabled(project: Any, slug: str) -> None:
        disable(project, slug)
        times[project.id, slug] = times.get((project.id, slug), 0) + 1

    def entry(integration: Any) -> dict[str, Any]:
        often = times.get((integration.project_id, integration.kind.slug), 0)
        return {**present_entry(integration), "id": integration.id + 1_000_000 * often}

    area.disable = disabled
    area.present_entry = entry


def lists_an_integration_of_the_installation(service: Service) -> None:
    """List in every project an integration of the installation, which no call of a project can change."""
    area = service.integrations
    active, present = area.active, area.present_entry
    now = service.clock.now()

    def with_another(project: Any) -> list[Any]:
        slug = "pushover" if "pushover" in CATALOGUE else next(iter(CATALOGUE))
        other = Integration(
            id=77_000_001, project_id=project.id, slug=slug, active=True, created_at=now, updated_at=now, values={}
        )
        return [other, *active(project)]

    def shown(integration: Any) -> dict[str, Any]:
        entry = present(integration)
        named = {"slug": "installation-wide-hook", "title": "Hook", "inherited": True}
        return {**entry, **named} if integration.id == 77_000_001 else entry  # noqa: PLR2004 - as above

    area.active = with_another
    area.present_entry = shown


def shows_what_was_never_set_up(service: Service) -> None:
    """Show an integration that was never set up as inactive, with its defaults."""
    area = service.integrations
    find = area.find

    def found(project: Any, slug: str) -> Any:
        try:
            return find(project, slug)
        except NotFoundError:
            now = service.clock.now()
            kind = area.kind(slug)
            return Integration(
                id=0, project_id=project.id, slug=kind.slug, active=False, created_at=now, updated_at=now, values={}
            )

    area.find = found


def fixes_flags_of_other_events(service: Service) -> None:
    """Show flags of events that an integration does not know with the opposite of the usual value."""
    area = service.integrations
    flags = area.event_flags

    def shown(integration: Any) -> dict[str, bool]:
        known = area.event_parameters(integration.kind)
        return {name: value if name in known else not EVENT_FLAGS[name] for name, value in flags(integration).items()}

    area.event_flags = shown


def shows_no_defaults(service: Service) -> None:
    """Show null for a setting of an integration that was never saved, whatever its default."""
    area = service.area(Integrations)
    shown = area.shown_settings

    def saved(integration: Any) -> dict[str, Any]:
        unsaved = {p.name for p in integration.kind.parameters if p.name not in integration.values and not p.fixed}
        return {name: None if name in unsaved else value for name, value in shown(integration).items()}

    area.shown_settings = saved


def leaves_out_what_was_not_sent(service: Service) -> None:
    """Show of the settings of an integration those alone that somebody sent."""
    integrations = service.integrations
    settings = integrations.shown_settings

    def sent(integration: Integration) -> Json:
        return {name: value for name, value in settings(integration).items() if name in integration.values}

    integrations.shown_settings = sent


def shows_settings_as_pairs(service: Service) -> None:
    """Show the settings of an integration as a list of names and values."""
    area = service.integrations
    present_entry, shown_settings = area.present_entry, area.shown_settings

    def present(integration: Any) -> dict[str, Any]:
        pairs = [{"name": name, "value": value} for name, value in shown_settings(integration).items()]
        return {**present_entry(integration), "fields": pairs}

    area.present_settings = present


def shows_settings_as_texts(service: Service) -> None:
    """Show numbers and booleans in the settings of an integration as texts: their format is not stated."""
    area = service.integrations
    shown_settings = area.shown_settings

    def shown(integration: Any) -> dict[str, Any]:
        settings = shown_settings(integration)
        return {name: json.dumps(value) if isinstance(value, bool | int) else value for name, value in settings.items()}

    area.shown_settings = shown


def shows_settings_as_objects(service: Service) -> None:
    """Show each setting of an integration as an object with its value, like approval settings."""
    integrations = service.integrations
    settings = integrations.shown_settings

    def as_objects(integration: Integration) -> Json:
        return {name: {"value": value, "locked": False} for name, value in settings(integration).items()}

    integrations.shown_settings = as_objects


def explains_settings(service: Service) -> None:
    """Show with the settings of an integration the defaults of its kind, and a description of each parameter."""
    integrations = service.integrations
    present = integrations.present_settings

    def explained(integration: Integration) -> Json:
        shown = present(integration)
        parameters = [parameter for parameter in integration.kind.parameters if not parameter.secret]
        described: Json = {parameter.name: {"type": parameter.type.value} for parameter in parameters}
        defaults: Json = {parameter.name: parameter.default for parameter in parameters}
        return {**shown, "defaults": defaults, "schema": {"properties": described}}

    integrations.present_settings = explained


def masks_secrets(service: Service) -> None:
    """Show secrets of an integration as asterisks."""
    area = service.integrations
    shown_settings = area.shown_settings

    def shown(integration: Any) -> dict[str, Any]:
        masked = {parameter.name: _MASK for parameter in integration.kind.parameters if parameter.secret}
        return {**shown_settings(integration), **masked}

    area.shown_settings = shown


def takes_one_issue_tracker(service: Service) -> None:
    """Refuse an issue tracker in a project where another one is active."""
    area = service.integrations
    set_up = area.set_up
    trackers = {slug for slug, kind in CATALOGUE.items() if any(one.name == _ISSUES_URL for one in kind.parameters)}

    def only(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        others = {one.slug for one in area.active(project)} - {kind.slug}
        if kind.slug in trackers and active is not False and others & trackers:
            raise RejectedError("Another issue tracker is already in use", parameter="base")
        return set_up(project, kind, values, active=active)

    area.set_up = only


def tidies_texts(service: Service) -> None:
    """Store recipients once each and in order, addresses with a path, and no text with blanks around it."""
    integrations = service.integrations
    read = integrations.read

    def tidied(kind: Any, parameters: Any) -> dict[str, Any]:
        return {name: _tidy(name, value) for name, value in read(kind, parameters).items()}

    integrations.read = tidied


def _tidy(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "recipients":
        return "\n".join(sorted({*value.replace(",", " ").split()}))
    text = value.strip()
    if not text.startswith(("http://", "https://")):
        return text
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise InvalidError("is no address") from error
    return parts._replace(netloc=parts.netloc.lower(), path=parts.path or "/").geturl()


def checks_what_it_is_told(service: Service) -> None:
    """Refuse channels, labels and branches that do not exist, and a port that nobody listens at."""
    integrations = service.integrations
    set_up = integrations.set_up

    def checked(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        for name, value in values.items():
            is_named = name.endswith("channel") or name in ("labels_to_be_notified", "restrict_to_branch")
            if (is_named and value) or (name == "server_port" and value != _HEARD_PORT):
                raise RejectedError("does not exist", parameter=name)
        return set_up(project, kind, values, active=active)

    integrations.set_up = checked


def folds_channels(service: Service) -> None:
    """Write channels in small letters, as some chats do."""
    integrations = service.integrations
    read = integrations.read

    def folded(kind: Any, parameters: Any) -> dict[str, Any]:
        found = read(kind, parameters).items()
        return {name: str(value).lower() if value and name.endswith("channel") else value for name, value in found}

    integrations.read = folded


def couples_confidential_flags(service: Service) -> None:
    """Switch the flag for confidential things with the one for all of them, unless it is sent too."""
    integrations = service.integrations
    set_up = integrations.set_up

    def coupled(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        all_of = {name: name.replace("confidential_", "") for name in integrations.event_parameters(kind)}
        gone_with = {name: values[other] for name, other in all_of.items() if other in values}
        return set_up(project, kind, {**gone_with, **values}, active=active)

    integrations.set_up = coupled


def knows_pushes_alone(service: Service) -> None:
    """Leave integrations the event of a push, where they have it, and refuse to set them up without any event."""
    integrations, fixtures = service.integrations, service.world.fixtures
    kind_of, set_up = integrations.kind, integrations.set_up

    def with_one_event(slug: str) -> Any:
        kind = kind_of(slug)
        return replace(kind, events=(_PUSHES,)) if _PUSHES in kind.events else kind

    def with_an_event(project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        if kind.events == (_PUSHES,) and values.get(_PUSHES) is False:
            raise RejectedError("tells of nothing", parameter=_PUSHES)
        return set_up(project, kind, values, active=active)

    def told(fixture: Fixture) -> Fixture:
        events = fixture.extra.get("events")
        has_it = isinstance(events, list | tuple) and _PUSHES in events
        return replace(fixture, extra={**fixture.extra, "events": [_PUSHES]}) if has_it else fixture

    for name, found in fixtures.items():
        fixtures[name] = tuple(map(told, found)) if isinstance(found, tuple) else told(found)
    integrations.kind = with_one_event
    integrations.set_up = with_an_event


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "redirects-the-older-name",
        "The older name of integrations redirects to the newer one, and each integration is off unless switched on.",
        replace(_PLAIN, alias_redirect_code=308, all_integrations_switchable=True),
    ),
    Variant(
        "drops-what-does-not-fit",
        "Integrations leave out what they cannot take; completions count malformed calls and give several choices.",
        replace(_PLAIN, malformed_completions_count=True, completion_alternatives=3),
        alterations=(drops_unfit_settings,),
    ),
    Variant(
        "settings-in-pairs",
        "Settings of integrations are shown as names and values, and an update replaces them.",
        alterations=(shows_settings_as_pairs, replaces_settings),
    ),
    Variant(
        "one-issue-tracker",
        "Of several issue trackers one alone can be active in a project.",
        alterations=(takes_one_issue_tracker,),
    ),
    Variant(
        "settings-as-texts",
        "Settings of integrations are shown as texts.",
        alterations=(shows_settings_as_texts,),
    ),
    Variant(
        "secrets-as-stars",
        "Secrets of integrations are shown as stars.",
        alterations=(masks_secrets,),
    ),
    Variant(
        "integrations-numbered-anew",
        "An integration has another number each time it is set up.",
        alterations=(numbers_integrations_anew,),
    ),
    Variant(
        "integrations-set-up-anew",
        "A change of an integration sets what it leaves out back to its default.",
        alterations=(sets_integrations_up_anew,),
    ),
    Variant(
        "settings-as-sent",
        "An integration shows no setting that nobody sent, whatever its default.",
        alterations=(leaves_out_what_was_not_sent,),
    ),
    Variant(
        "settings-explained",
        "Settings of an integration are shown beside the defaults and a description of each parameter.",
        alterations=(explains_settings,),
    ),
    Variant(
        "settings-as-objects",
        "Each setting of an integration is shown as an object with its value.",
        alterations=(shows_settings_as_objects,),
        alone="as a text, as another one shows it, such an object says nothing",
    ),
    Variant(
        "integration-of-the-installation",
        "Every project lists an integration that no call of its own reaches.",
        alterations=(lists_an_integration_of_the_installation,),
    ),
    Variant(
        "integrations-are-always-there",
        "An integration that was never set up is shown as one that is off.",
        alterations=(shows_what_was_never_set_up,),
    ),
    Variant(
        "flags-of-other-events",
        "Flags of events that an integration does not know have any value.",
        alterations=(fixes_flags_of_other_events,),
    ),
    Variant(
        "integrations-check-what-they-are-told",
        "Channels, labels and branches that do not exist are refused, and a port that nobody listens at.",
        alterations=(checks_what_it_is_told,),
    ),
    Variant(
        "integrations-of-one-event",
        "Integrations tell of pushes alone, and are not set up when they would tell of nothing.",
        alterations=(knows_pushes_alone,),
    ),
    Variant(
        "channels-in-small-letters",
        "Channels are kept in small letters, and flags for confidential things go with those for all.",
        alterations=(folds_channels, couples_confidential_flags),
    ),
    Variant(
        "texts-are-tidied",
        "Recipients come once each and in order, addresses have a path, and texts no blanks around them.",
        alterations=(tidies_texts,),
    ),
)
