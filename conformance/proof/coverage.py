"""Which requirements have a fault, which need none, and which still lack one."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.contract import TABLE, Level, Version
from conformance.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from conformance.contract import Contract, Requirement

_OVER_TLS = (
    "The embedded reference speaks plain HTTP, so that it has no TLS to spoil. selftest/http/test_tls.py holds the "
    "same checks against TLS servers, strong ones and weak ones."
)

#: Requirements that tests verify and no fault of the embedded reference can violate, each with the reason.
EXCUSED: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (
            "limits.tls.version",
            "limits.tls.rsa-and-dsa-keys",
            "limits.tls.dh-keys",
            "limits.tls.ecc-certificate-keys",
            "limits.tls.ecc-exchange-keys",
        ),
        _OVER_TLS,
    )
)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The faults that exist for the requirements that must be met."""

    reached: int
    """How many have a fault."""
    without: tuple[str, ...]
    """Those that tests verify, that are judged, and that no fault violates: the proof fails on them."""
    excused: Mapping[str, str]
    """Those that cannot have one, with the reason."""
    observed: tuple[str, ...]
    """Notes: the target's choice is recorded and nothing is asserted, so that no fault could violate them."""


def coverage(
    contract: Contract,
    violated: Collection[str],
    version: str | None = None,
    wanted: Callable[[Requirement], bool] = lambda _: True,
) -> Coverage:
    """Compare the requirements that faults violate with those that must be met.

    That is at a version, or at any version of the version table if none is given; `wanted` leaves some out.
    Raise ContractError if a requirement has both a fault and an excuse.
    """
    needless = sorted(EXCUSED.keys() & set(violated))
    if needless:
        raise ContractError(f"These requirements have a fault and need no excuse: {', '.join(needless)}.")
    versions = [Version.parse(version)] if version else [Version.parse(text) for text in TABLE]
    owed = [
        entry
        for entry in contract.requirements.values()
        if entry.tested and wanted(entry) and any(entry.applies_to(known) for known in versions)
    ]
    judged = [entry.id for entry in owed if entry.level is not Level.NOTE]
    return Coverage(
        reached=sum(name in violated for name in judged),
        without=tuple(name for name in judged if name not in violated and name not in EXCUSED),
        excused={name: EXCUSED[name] for name in judged if name in EXCUSED},
        observed=tuple(entry.id for entry in owed if entry.level is Level.NOTE),
    )
