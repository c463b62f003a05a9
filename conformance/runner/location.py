"""Where the suite's tests lie, and the arguments with which pytest runs them from anywhere."""

from __future__ import annotations

from pathlib import Path

from conformance.contract.folders import HOME

SUITE_FOLDER = HOME / "tests"
PLUGIN = "conformance.runner.plugin"
_SUITE_INI = Path(__file__).with_name("suite.ini")


def suite_arguments(*options: str) -> list[str]:
    """Return what pytest needs to run the suite from anywhere, in front of further options."""
    # The plugin goes by name, so that workers of pytest-xdist, which are given these arguments, load it too.
    return [str(SUITE_FOLDER), "-p", PLUGIN, "-c", str(_SUITE_INI), "--rootdir", str(HOME), *options]
