"""Plausible faults in integrations of projects."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.dimensions import (
    AGAIN,
    VERSIONS,
)
from conformance.proof.foreign.paths import (
    DELETE_INTEGRATION,
    PUT_INTEGRATION,
    SERVICES,
)
from conformance.proof.foreign.registry import foreign, handling, instead

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
