"""Faults by whoever has not seen the tests: each deviates from the text in one small way, and is tied to no requirement.

They cross dimensions that a test tries one at a time: who calls and how a thing is named, the level of a rule and the id
of another level, the right value and its neighbour, a write and everything that must stay.
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

#: How long a request waits between reading and writing where two callers get in each other's way.
_MEANWHILE_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class ForeignFault:
    """One deviation, ready to be put on a service that was just made."""

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
        """The area of the specification that it lies in: the folder of its module, or the file."""
        return self.apply.__module__.removeprefix(f"{__package__}.").partition(".")[0]


FOREIGN: dict[str, ForeignFault] = {}


def foreign(
    dimension: str, section: str, *, version: str = "17.7", choices: Choices | None = None
) -> Callable[[Apply], Apply]:
    """Register a function that puts a fault on a service. Raise ContractError for a name or docstring that is wrong."""

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


# -- what the faults are made of ---------------------------------------------------------------------------------------


def instead(target: Any, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function in the place of a method; it gets the method as its first argument."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(target, name, partial(function, getattr(target, name)))
        return function

    return put


def handling(service: Service, *keys: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Put a function in the place of the handlers of operations; it gets the handler and the request."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in keys:
            service.routes.change(key, handler=partial(function, service.routes.get(key).handler))
        return function

    return put


def is_served(answer: Any) -> bool:
    """Say whether an answer is a success."""
    return bool(200 <= answer.status < 300)


def by_path(request: Request) -> bool:
    """Say whether the request names its project or group by the path."""
    return not request.path.get("id", "0").isdigit()


def let_in(service: Service, keys: tuple[str, ...], fits: Callable[[Request, Any, Role], bool]) -> None:
    """Serve operations to whoever fits, whatever their role; `fits` gets the request, the caller and the role."""

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
    """Return the project or group that a path names, whoever calls."""
    find = {Kind.PROJECT: service.identities.find_project, Kind.GROUP: service.identities.find_group}
    subject = request.route.subject
    return find[subject](request.path["id"]) if subject else None


def meanwhile(service: Service, keys: tuple[str, ...], look: Callable[[], Any], write: Callable[..., Any]) -> None:
    """Let an operation act on what it saw before a moment passed; `write` gets what `look` returned, and the request.

    What others wrote in that moment is lost; callers who wait for each other notice nothing.
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
