"""Where the suite's tests lie, and the arguments with which pytest runs them from anywhere."""

from __future__ import annotations

from pathlib import Path

from conformance.contract.resources import HOME

SUITE_FOLDER = HOME / "tests"
_SUITE_INI = Path(__file__).with_name("suite.ini")


def suite_arguments(*options: str) -> list[str]:
    """Return what pytest needs to run the suite from anywhere, in front of further options."""
    return [str(SUITE_FOLDER), "-c", str(_SUITE_INI), "--rootdir", str(HOME), *options]
