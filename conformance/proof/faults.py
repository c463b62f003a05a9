"""A fault: one named deviation of the reference that violates one requirement and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference import Service
    from conformance.reference.choices import Choices

Apply = Callable[["Service"], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """The healthy reference on which a fault shows; usually it has nothing special."""

    choices: Choices | None = None
    """Its choices, where it is a variant."""
    features: tuple[tuple[str, bool], ...] = ()
    """Where its profile declares more or less than it does by itself."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One deviation, which can be applied to a new service."""

    name: str
    """Unique, and readable in the matrix."""
    requirement: str
    """Which requirement it violates: a check of this one must kill it."""
    says: str
    """What the faulty service does."""
    apply: Apply
    version: str = ""
    """The version at which it is tried; empty while it may be any at which its requirement is owed."""
    operation: str = ""
    """The operation it is about, whose own tests are likely to see it first."""
    ground: Ground = Ground()
    sort: str = "written"
    """`written` by hand; `rule`, where a role, status, parameter or page of the contract is broken; `crossed`, where a
    fault of these two sets in at times or ends otherwise; or `schema`: these last test the engine, because check and
    fault follow from the same place, and are counted apart."""
    prop: str = ""
    """The property that is spoiled, which the reason must name."""
    crossing: str = ""
    """By which crossing it was made from another fault."""
    seen_as: frozenset[str] = frozenset()
    """For which reasons it may be seen, where its name does not state them."""


WRITTEN: dict[str, Fault] = {}


def fault(
    requirement: str,
    *,
    version: str = "",
    operation: str = "",
    choices: Choices | None = None,
    features: Mapping[str, bool] | None = None,
) -> Callable[[Apply], Apply]:
    """Register a function that applies a fault to a service; its docstring says what the faulty service does.

    `version` is where the fault shows, if not at every version at which its requirement applies; `operation` is the one
    whose tests probably find it first; `choices` and `features` select a variant of the reference on which it shows, if
    that is not the default. A function may be registered more than once, if requirements of several areas are alike.
    """
    ground = Ground(choices, tuple(sorted((features or {}).items())))

    def register(apply: Apply) -> Apply:
        name = f"{requirement.partition('.')[0]}: {apply.__name__}".replace("_", "-")
        if name in WRITTEN:
            raise ContractError(f"Two faults are named {name}.")
        says = (apply.__doc__ or "").strip()
        if not says:
            raise ContractError(f"The fault {apply.__name__} does not say what the faulty service does.")
        WRITTEN[name] = Fault(name, requirement, says, apply, version, operation, ground)
        return apply

    return register


def named(name: str, says: str, apply: Apply) -> Apply:
    """Give a function that exists for each of several places its own name and docstring, to register it."""
    apply.__name__, apply.__doc__ = name, says
    return apply
