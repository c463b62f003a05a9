"""Foreign faults: small deviations of the reference, whose authors know the specification but not the tests.

They belong to no requirement. The whole suite is run against each, as operators run it. This shows what the suite
finds without having been tuned to it. `faults` returns them. Each area of the specification has a folder or a file; the
files of a folder differ in what goes wrong. The folder `plausible` has a file for each area.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from conformance.proof.foreign.registry import FOREIGN, ForeignFault

__all__ = ["ForeignFault", "faults"]

#: Modules that run faults, and contain none.
_RUNNING = tuple(f"{__name__}.{name}" for name in ("__main__", "running"))


@cache
def faults() -> tuple[ForeignFault, ...]:
    """Return all foreign faults, by area and file, in the order of the file."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if module.name not in _RUNNING:
            importlib.import_module(module.name)
    return tuple(sorted(FOREIGN.values(), key=lambda fault: fault.apply.__module__))
