"""Third-party integrations of a project: setting up, reading, disabling.

Specification: Endpoints > Integrations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.integration_catalogue import (
    CATALOGUE,
    EVENT_FLAGS,
    GROUP_MENTION_EVENTS,
    VULNERABILITY_EVENTS,
    ValueType,
)
from conformance.reference.choices import Repeat
from conformance.reference.errors import InvalidError, RejectedError, not_found
from conformance.reference.http import Response, Route, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import Version
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from conformance.reference.areas.integration_catalogue import IntegrationKind, Parameter, Value
    from conformance.reference.core import Core
    from conformance.reference.http import Request
    from conformance.reference.identity import Project
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

RENAMED = Version(14, 4)
VULNERABILITY_EVENTS_INTRODUCED = Version(16, 4)

_CHAT_APP = "gitlab-slack-application"


class NotCreatableError(RejectedError):
    """An integration that is installed elsewhere cannot be set up by a call."""

    choice: ClassVar[str] = "integration_not_creatable_code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """An integration of one project. `values` are those that were set, by parameter."""

    id: int
    project_id: int
    slug: str
    active: bool
    created_at: datetime
    updated_at: datetime
    values: Mapping[str, Value]

    @property
    def kind(self) -> IntegrationKind:
        """What the catalogue says of it."""
        return CATALOGUE[self.slug]


class Integrations(Behaviour):
    """The integrations of all projects."""

    name = "integrations"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.known: Table[tuple[int, str], Integration] = Table(service.store)

    # -- finding --------------------------------------------------------------------------------------------

    def kind(self, slug: str) -> IntegrationKind:
        """Return the catalogue's entry. Raise NotFoundError when there is no such integration."""
        found = CATALOGUE.get(slug)
        if found is None:
            raise not_found("Integration")
        return found

    def active(self, project: Project) -> list[Integration]:
        """Return the active integrations of a project, oldest first."""
        mine = [i for i in self.known.values() if i.project_id == project.id and i.active]
        return sorted(mine, key=lambda integration: integration.id)

    def find(self, project: Project, slug: str) -> Integration:
        """Return one integration. Raise NotFoundError when it is unknown or was never set up."""
        found = self.known.get((project.id, self.kind(slug).slug))
        if found is None:
            raise not_found("Integration")
        return found

    # -- setting up -----------------------------------------------------------------------------------------

    def event_parameters(self, kind: IntegrationKind) -> tuple[str, ...]:
        """Return the event flags that can be set for an integration at this version and in this edition."""
        mentions = self.service.choices.integrations_notify_of_group_mentions
        return tuple(
            name
            for name in kind.events
            if (name != VULNERABILITY_EVENTS or self.has_vulnerability_events())
            and (name not in GROUP_MENTION_EVENTS or mentions)
        )

    def switchable(self, kind: IntegrationKind) -> bool:
        """Say whether an integration takes `active`."""
        return kind.switchable or self.service.choices.all_integrations_switchable

    def read(self, kind: IntegrationKind, parameters: Parameters) -> dict[str, Value]:
        """Read the settings of an integration that were sent. Raise InvalidError for a value of another type."""
        found: dict[str, Value | None] = {
            parameter.name: _READERS[parameter.type](parameters, parameter) for parameter in kind.parameters
        }
        found |= {name: parameters.optional_boolean(name) for name in self.event_parameters(kind)}
        fixed = {parameter.name for parameter in kind.parameters if parameter.fixed}
        return {name: value for name, value in found.items() if value is not None and name not in fixed}

    def set_up(
        self, project: Project, kind: IntegrationKind, values: Mapping[str, Value], *, active: bool | None = None
    ) -> Integration:
        """Set up an integration or change its settings; what is not sent keeps its value.

        Raise NotCreatableError where it cannot be created, InvalidError when a required setting is missing.
        """
        before = self.known.get((project.id, kind.slug))
        if before is None:
            self.require_creatable(kind)
        kept = before.values if before else {}
        self.require_settings(kind, {**kept, **values})
        return self.keep(project, kind, {**kept, **values}, active=self.becomes_active(kind, before, active))

    def require_creatable(self, kind: IntegrationKind) -> None:
        """Require that calls may create it. Raise NotCreatableError."""
        if not kind.creatable:
            raise NotCreatableError(f"{kind.title} cannot be created through the API; install it first.")

    def require_settings(self, kind: IntegrationKind, values: Mapping[str, Value]) -> None:
        """Require a value for each required parameter. Raise InvalidError."""
        for parameter in kind.parameters:
            if parameter.required and str(values.get(parameter.name, "")).strip() == "":
                raise InvalidError(f"{parameter.name} is missing", parameter=parameter.name)

    def becomes_active(
        self,
        kind: IntegrationKind,
        before: Integration | None,
        wanted: bool | None,  # noqa: FBT001 - as sent
    ) -> bool:
        """Say whether the integration is active after it was set up or changed."""
        if not self.switchable(kind):
            return True
        if wanted is None:
            return before is not None and before.active
        return wanted

    def keep(
        self, project: Project, kind: IntegrationKind, values: Mapping[str, Value], *, active: bool
    ) -> Integration:
        """Store the integration as it now is."""
        key, now = (project.id, kind.slug), self.service.clock.now()
        before = self.known.get(key)
        self.known[key] = Integration(
            id=before.id if before else self.service.store.next_id("integrations"),
            project_id=project.id,
            slug=kind.slug,
            active=active,
            created_at=before.created_at if before else now,
            updated_at=now,
            values=MappingProxyType(dict(values)),
        )
        return self.known[key]

    # -- disabling ------------------------------------------------------------------------------------------

    def disable(self, project: Project, slug: str) -> None:
        """Disable an integration and reset its settings. Raise NotFoundError when it was never set up, by choice."""
        key = (project.id, self.kind(slug).slug)
        integration = self.known.get(key)
        if integration is None:
            if self.service.choices.absent_integration_disabled is Repeat.REFUSE:
                raise not_found("Integration")
        elif self.service.choices.integration_kept_when_disabled:
            self.known[key] = replace(
                integration, active=False, values=MappingProxyType({}), updated_at=self.service.clock.now()
            )
        else:
            del self.known[key]

    # -- presenting -----------------------------------------------------------------------------------------

    def has_vulnerability_events(self) -> bool:
        """Say whether vulnerability_events exists at this version and in this edition."""
        choices = self.service.choices
        return choices.enterprise and self.service.version >= VULNERABILITY_EVENTS_INTRODUCED

    def event_flags(self, integration: Integration) -> dict[str, bool]:
        """Return the event flags of an entry; those that the integration does not support keep their default."""
        return {
            name: bool(integration.values.get(name, default))
            for name, default in EVENT_FLAGS.items()
            if name != VULNERABILITY_EVENTS or self.has_vulnerability_events()
        }

    def present_entry(self, integration: Integration) -> Json:
        """Present an integration list entry.

        Specification: Resources and their fields > Integration list entry.
        """
        stamp = self.service.present.timestamp
        shown: Json = {
            "id": integration.id,
            "title": integration.kind.title,
            "slug": integration.slug,
            "created_at": stamp(integration.created_at),
            "updated_at": stamp(integration.updated_at),
            "active": integration.active,
            **self.event_flags(integration),
        }
        if self.service.choices.extra_fields:
            shown |= {"incident_events": bool(integration.values.get("incidents_events", False)), "inherited": False}
        return shown

    def present_settings(self, integration: Integration) -> Json:
        """Present one integration with its settings. The specification does not show this response."""
        settings = self.shown_settings(integration)
        if self.service.choices.integration_settings_nested:
            return {**self.present_entry(integration), "properties": settings}
        return {**self.present_entry(integration), **settings}

    def shown_settings(self, integration: Integration) -> Json:
        """Return the settings with their defaults, without secrets and without the flags of the entry."""
        kind, values = integration.kind, integration.values
        settings: Json = {
            parameter.name: values.get(parameter.name, parameter.default)
            for parameter in kind.parameters
            if not parameter.secret
        }
        others = (name for name in self.event_parameters(kind) if name not in EVENT_FLAGS)
        return settings | {name: values.get(name, False) for name in others}

    # -- the seeded world -----------------------------------------------------------------------------------

    def seed(self, world: World) -> Mapping[str, Fixture | tuple[Fixture, ...]]:
        """Install the chat app where no call of a client can."""
        elsewhere = self.service.identities.projects[world.one("subgroup_project").id]
        kind = CATALOGUE[_CHAT_APP]
        self.keep(elsewhere, kind, {}, active=True)
        events, parameters = list(self.event_parameters(kind)), [parameter.name for parameter in kind.parameters]
        described: Json = {
            "slug": _CHAT_APP,
            "settings": {},
            "required": [],
            "parameters": parameters,
            "events": events,
            "never_shown": [],
            "project_id": elsewhere.id,
        }
        return {"installed_chat_app_integration": Fixture(elsewhere.id, elsewhere.full_path, described)}


def _read_text(parameters: Parameters, parameter: Parameter) -> str | None:
    if parameter.allowed:
        return parameters.optional_choice(parameter.name, parameter.allowed)
    return parameters.optional_string(parameter.name)


def _read_flag(parameters: Parameters, parameter: Parameter) -> bool | None:
    return parameters.optional_boolean(parameter.name)


def _read_number(parameters: Parameters, parameter: Parameter) -> int | None:
    return parameters.optional_integer(parameter.name)


_READERS: Mapping[ValueType, Callable[[Parameters, Parameter], Value | None]] = {
    ValueType.TEXT: _read_text,
    ValueType.FLAG: _read_flag,
    ValueType.NUMBER: _read_number,
}


def _list(request: Request) -> Response:
    integrations = request.area(Integrations)
    return request.collection(integrations.active(request.project), integrations.present_entry)


def _show(request: Request) -> Response:
    integrations = request.area(Integrations)
    return ok(integrations.present_settings(integrations.find(request.project, request.path["slug"])))


def _set_up(request: Request) -> Response:
    integrations = request.area(Integrations)
    kind = integrations.kind(request.path["slug"])
    values = integrations.read(kind, request.parameters)
    active = request.parameters.optional_boolean("active") if integrations.switchable(kind) else None
    integration = integrations.set_up(request.project, kind, values, active=active)
    code = request.choices.updated_code
    if not request.choices.unshown_bodies:
        return Response(code)
    return ok(integrations.present_settings(integration), code)


def _disable(request: Request) -> Response:
    request.area(Integrations).disable(request.project, request.path["slug"])
    return Response(request.choices.integration_deleted_code)


_route = partial(Route, subject=Kind.PROJECT, least_role=Role.MAINTAINER)
_OPERATIONS = (
    ("GET", "", _list),
    ("PUT", "/:slug", _set_up),
    ("DELETE", "/:slug", _disable),
    ("GET", "/:slug", _show),
)
_NEWER = "/projects/:id/integrations"
_OLDER = "/projects/:id/services"

AREA = Area(
    Integrations,
    (
        *(_route(method, _NEWER + rest, answer, introduced=RENAMED) for method, rest, answer in _OPERATIONS),
        *(_route(method, _OLDER + rest, answer, alias_of=_NEWER + rest) for method, rest, answer in _OPERATIONS),
    ),
)
