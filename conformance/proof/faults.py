"""A fault: one named deviation of the reference that violates one requirement and leaves the rest alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.errors import ContractError

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

_NAME = re.compile(r":[^/]+")
Apply = Callable[["Service"], None]
Alter = Callable[["Request", "Response"], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One deviation, ready to be put on a service that was just made."""

    name: str
    """Unique, and readable in the matrix."""
    requirement: str
    """Which requirement it violates: a check of this one must kill it."""
    says: str
    """What the faulty service does."""
    apply: Apply
    versions: tuple[str, ...] = ()
    """Versions at which it shows; none for the version of the proof."""
    operation: str = ""
    """The operation it is about, whose own tests are likely to see it first."""


WRITTEN: dict[str, Fault] = {}


def fault(requirement: str, *, version: str | None = None) -> Callable[[Apply], Apply]:
    """
    Register a function that puts a fault on a service; its docstring says what the faulty service does.

    `version` is one at which the fault shows, where the proof's own version would hide it.
    """

    def register(apply: Apply) -> Apply:
        area = apply.__module__.rpartition(".")[2]
        name = f"{area}: {apply.__name__}".replace("_", "-")
        if name in WRITTEN:
            raise ContractError(f"Two faults are named {name}.")
        says = (apply.__doc__ or "").strip()
        if not says:
            raise ContractError(f"The fault {apply.__name__} does not say what the faulty service does.")
        versions = (version,) if version else ()
        WRITTEN[name] = Fault(name, requirement, says, apply, versions)
        return apply

    return register


def does_nothing(*_: object, **__: object) -> None:
    """Stand in for a method that should have done something."""


def is_route(route: Route, key: str) -> bool:
    """Tell whether a route is the one of a key, whatever either calls its parameters."""
    return _NAME.sub(":", route.key) == _NAME.sub(":", key)


def altering(service: Service, key: str, alter: Alter) -> None:
    """Alter the served answers of one route, named by method and path such as "GET /user"."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if is_route(route, key) and response.status < 300:  # noqa: PLR2004 - HTTP's own number
            alter(request, response)
        return response

    service.transformers.append(transform)
