"""What a variant of the reference is, and how an alteration changes the responses of a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.reference.choices import Choices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

#: Changes a new service, mostly by replacing its methods.
Alteration = Callable[["Service"], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One difference that the specification allows, or several that belong together."""

    name: str
    says: str
    choices: Choices = field(default_factory=Choices)
    features: Mapping[str, bool] = field(default_factory=dict)
    """Where it declares other features than the reference does by itself."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Its limits in the profile: how long the suite waits."""
    alterations: tuple[Alteration, ...] = ()
    """What makes it differ where the reference itself leaves no choice."""
    alone: str = ""
    """Why no other variant would be seen beside it; empty where others may be put on the same service."""


def transform(service: Service, change: Callable[[Route, Request, Response], None]) -> None:
    """Let a function change each response of a service in place."""

    def changed(route: Route, request: Request, answer: Response) -> Response:
        change(route, request, answer)
        return answer

    service.transformers.append(changed)
