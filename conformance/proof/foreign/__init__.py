"""Foreign faults: small deviations of the reference, written by whoever knows the specification and not the tests.

They belong to no requirement. A run of the whole suite against each, as operators run it, shows what the suite sees
that nobody tuned it to: `faults` returns them. They are sorted by area of the specification, a folder or a file for
each, and within a folder by what goes wrong.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from conformance.proof.foreign.registry import FOREIGN, ForeignFault

__all__ = ["ForeignFault", "faults"]

#: What runs faults, and holds none.
_RUNNING = tuple(f"{__name__}.{name}" for name in ("__main__", "running"))


@cache
def faults() -> tuple[ForeignFault, ...]:
    """Return all foreign faults, area by area and file by file, in the order in which they stand there."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if module.name not in _RUNNING:
            importlib.import_module(module.name)
    return tuple(sorted(FOREIGN.values(), key=lambda fault: fault.apply.__module__))
