"""What the tests of the reports share: every sample, rendered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.reports import render_all
from selftest.reports.report_samples import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give for each sample the folder with all its reports."""
    folders = {}
    for name, record in SAMPLES.items():
        folders[name] = tmp_path_factory.mktemp("report") / "made" / "by" / "render"
        render_all(record, folders[name])
    return folders
