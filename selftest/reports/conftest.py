"""What the tests of the reports share: every sample, rendered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reports import render_all
from selftest.npm import with_packages
from selftest.reports.report_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return for each sample the folder with all its reports."""
    folders = {}
    for name, record in SAMPLES.items():
        folders[name] = tmp_path_factory.mktemp("report") / "made" / "by" / "render"
        render_all(record, folders[name])
    return folders


_TOOLS = ("ctrf@0.3.0", "allure@3.18.0", "axe-core@4.14.1")


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with npm packages, from npm's cache or its registry; skip if they cannot be installed."""
    return with_packages(tmp_path_factory.mktemp("tools"), *_TOOLS)
