"""Foreign faults, whose authors have not seen the tests: small deviations from the text, each without a requirement.

They cross dimensions that a test varies one at a time: caller and naming of a thing, the level of a rule and an id
of another level, the right value and a similar one, a write and everything that it must not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from conformance.errors import ContractError
from conformance.proof.foreign.dimensions import DIMENSIONS
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.choices import Choices
    from conformance.reference.http import Request
    from conformance.reference.identity import Role

Apply = Callable[["Service"], None]

#: The folder that has a file for each area; each other folder is of one area.
_ALL_AREAS = "plausible."
#: How long a request waits between reading and writing, so that another one can come in between.
_MEANWHILE_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class ForeignFault:
    """One deviation, which can be applied to a new service."""

    name: str
    """Unique, and readable in a table."""
    dimension: str
    """Which dimensions it crosses: one of DIMENSIONS."""
    section: str
    """Which part of the specification it contradicts."""
    says: str
    """What the faulty service does, and what it should do."""
    apply: Apply
    version: str
    """The version at which it is tried."""
    choices: Choices | None
    """Where it shows on another legal service than the usual one."""

    @property
    def area(self) -> str:
        """The area of the specification: the name of the module's folder, or of the file."""
        module = self.apply.__module__.removeprefix(f"{__package__}.").removeprefix(_ALL_AREAS)
        return module.partition(".")[0]


FOREIGN: dict[str, ForeignFault] = {}


def foreign(
    dimension: str, section: str, *, version: str = "17.7", choices: Choices | None = None
) -> Callable[[Apply], Apply]:
    """Register a function that applies a fault to a service. Raise ContractError for an invalid name or docstring."""

    def register(apply: Apply) -> Apply:
        name = apply.__name__.replace("_", "-")
        if name in FOREIGN:
            raise ContractError(f"Two foreign faults are named {name}.")
        says = " ".join((apply.__doc__ or "").split())
        if dimension not in DIMENSIONS:
            raise ContractError(f"The dimension of the foreign fault {name}, {dimension}, is not in DIMENSIONS.")
        if not says:
            raise ContractError(f"The foreign fault {name} does not say what the faulty service does.")
        FOREIGN[name] = ForeignFault(name, dimension, section, says, apply, version, choices)
        return apply

    return register


# -- building blocks of the faults -------------------------------------------------------------------------------------


def instead(target: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace a method by a function that gets the method as its first argument."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(target, name, partial(function, getattr(target, name)))
        return function

    return put


def handling(service: Service, *keys: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace the handlers of operations by a function that gets the handler and the request."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            service.routes.change(key, handler=partial(function, service.routes.get(key).handler))
        return function

    return put


def is_served(answer: Any) -> bool:
    """Tell whether a response is a success."""
    return bool(200 <= answer.status < 300)


def by_path(request: Request) -> bool:
    """Tell whether the request names its project or group by path."""
    return not request.path.get("id", "0").isdigit()


def let_in(service: Service, keys: tuple[str, ...], fits: Callable[[Request, Any, Role], bool]) -> None:
    """Serve operations if `fits` is true, whatever the role; it gets the request, the caller and the role."""

    @instead(service.access, "admit")
    def _(admit: Any, request: Request) -> None:
        if request.route.key in keys:
            caller = service.access.authenticate(request)
            subject = found(service, request)
            if subject is not None and fits(request, caller, service.identities.role_in(caller, subject)):
                request.admit(caller, subject)
                return
        admit(request)


def found(service: Service, request: Request) -> Any:
    """Return the project or group in the path, whoever calls."""
    find = {Kind.PROJECT: service.identities.find_project, Kind.GROUP: service.identities.find_group}
    subject = request.route.subject
    return find[subject](request.path["id"]) if subject else None


def meanwhile(service: Service, keys: tuple[str, ...], look: Callable[[], Any], write: Callable[..., Any]) -> None:
    """Let an operation act on what it saw a moment before; `write` gets the result of `look`, and the request.

    What others wrote in that moment is lost; without concurrent calls there is no difference.
    """
    seen: dict[int, Any] = {}

    async def wait(request: Request) -> None:
        if request.route.key in keys:
            seen[id(request)] = look()
            await asyncio.sleep(_MEANWHILE_SECONDS)

    service.interruption = wait

    @handling(service, *keys)
    def _(handler: Any, request: Request) -> Any:
        write(seen.pop(id(request)), request)
        return handler(request)
