"""Where the contract and the suite lie: beside the package in a checkout, inside it in an installed wheel."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _home() -> Path:
    """Return the folder that holds `openapi/`, `tests/` and `conftest.py`."""
    checkout = _PACKAGE.parent
    if (checkout / "openapi" / "openapi.yaml").is_file() and (checkout / "conftest.py").is_file():
        return checkout
    return _PACKAGE / "_data"


HOME = _home()
CONTRACT_FOLDER = HOME / "openapi"
SUITE_FOLDER = HOME / "tests"
SCHEMA_FOLDER = _PACKAGE / "schemas"
_SUITE_INI = _PACKAGE / "suite.ini"


def suite_arguments(*options: str) -> list[str]:
    """Return what pytest needs to run the suite from anywhere, in front of further options."""
    return [
        str(SUITE_FOLDER),
        "-c",
        str(_SUITE_INI),
        "--rootdir",
        str(HOME),
        *options,
    ]
