"""Plausible faults in integrations of projects."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    NEIGHBOUR,
    SIDE_EFFECT,
    VERSIONS,
)
from conformance.proof.foreign.paths import (
    DELETE_INTEGRATION,
    PUT_INTEGRATION,
    SERVICES,
)
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.reference.errors import NoRouteError

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(AGAIN, "Integrations: GET under both names")
def the_older_name_lists_what_was_disabled_under_the_newer(service: Service) -> None:
    """The list under services is remembered until something is changed under services."""
    known: dict[int, Any] = {}

    @handling(service, f"GET {SERVICES}")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = known.setdefault(request.project.id, answer.content)
        return answer

    @handling(service, PUT_INTEGRATION[1], DELETE_INTEGRATION[1])
    def _(handler: Any, request: Any) -> Any:
        known.pop(request.project.id, None)
        return handler(request)


@foreign(AGAIN, "Integrations: DELETE resets the settings")
def flags_survive_when_it_is_disabled(service: Service) -> None:
    """Disabling resets the settings but not the event flags: set up again, the flags are as they were."""

    @instead(service.integrations, "disable")
    def _(disable: Any, project: Any, slug: str) -> None:
        known = service.integrations.known.get((project.id, slug))
        disable(project, slug)
        after = service.integrations.known.get((project.id, slug))
        if known is not None and after is not None:
            kept = {name: value for name, value in known.values.items() if name.endswith("_events")}
            service.integrations.known[project.id, slug] = replace(after, values=MappingProxyType(kept))


@foreign(AGAIN, "Integrations: required parameters")
def required_settings_are_asked_for_once(service: Service) -> None:
    """What is required is asked for until somebody set up that kind of integration, in whatever project."""
    done: set[str] = set()

    @instead(service.integrations, "require_settings")
    def _(require: Any, kind: Any, values: Any) -> None:
        if kind.slug not in done:
            require(kind, values)
            done.add(kind.slug)


@foreign(VERSIONS, "Integrations: vulnerability_events since 16.4", version="16.11")
def version_16_11_has_no_vulnerability_events(service: Service) -> None:
    """Versions are compared as decimal numbers: 16.11 is less than 16.4, and the flag is missing."""
    service.integrations.has_vulnerability_events = lambda: False


@foreign(NEIGHBOUR, "Integration: recipients with a plus")
def a_plus_in_recipients_becomes_a_space(service: Service) -> None:
    """The plus of an address such as team+ci@example.com is stored as a space."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        return {name: v.replace("+", " ") if name == "recipients" else v for name, v in values.items()}


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


@foreign(NEIGHBOUR, "Integration: beginning of an identifier")
def the_beginning_of_a_slug_suffices(service: Service) -> None:
    """An identifier that is the beginning of one is taken for it, from four characters on."""

    @instead(service.integrations, "kind")
    def _(kind: Any, slug: str) -> Any:
        if len(slug) > 3 and slug not in CATALOGUE:
            slug = next((one for one in CATALOGUE if one.startswith(slug)), slug)
        return kind(slug)


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


@foreign(VERSIONS, "Versions: the former name of integrations", version="19.0")
def the_former_name_is_gone_at_the_end(service: Service) -> None:
    """At 19.0 the former name of integrations is gone for setting up."""

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(_handler: Any, _request: Any) -> Any:
        raise NoRouteError
