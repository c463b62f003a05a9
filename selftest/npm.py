"""Packages of npm, for tests that use tools or clients written in JavaScript."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_INSTALL = ("npm", "install", "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts")


def with_packages(folder: Path, *packages: str) -> Path:
    """Install packages into a folder, from npm's cache or its registry, and return it; skip if that is impossible."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip(f"node and npm, which install {', '.join(packages)}, are not on the PATH")
    try:
        done = subprocess.run(
            [*_INSTALL, *packages], cwd=folder, capture_output=True, text=True, check=False, timeout=180
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {', '.join(packages)} in time")
    if done.returncode != 0:
        pytest.skip(f"npm cannot install {', '.join(packages)}: {done.stderr.strip()[-200:]}")
    return folder
