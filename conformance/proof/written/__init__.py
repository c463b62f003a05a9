"""Faults written by hand, one module per area: what cannot be derived from the contract."""

from __future__ import annotations

import importlib
import pkgutil

# Each module registers its faults when it is imported.
for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
