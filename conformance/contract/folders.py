"""Folders of the contract, the suite and the JSON Schemas: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def _home() -> Path:
    """Return the folder that holds `openapi/`, `tests/` and `conftest.py`."""
    checkout = _PACKAGE.parent
    if (checkout / "openapi" / "openapi.yaml").is_file() and (checkout / "conftest.py").is_file():
        return checkout
    return _PACKAGE / "_data"


HOME = _home()
CONTRACT_FOLDER = HOME / "openapi"
#: JSON Schemas of our own data files: profile, requirements, version table, record, report.
SCHEMA_FOLDER = _PACKAGE / "contract" / "schemas"
