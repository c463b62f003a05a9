"""A pytest plugin with which one test kills its process, as the system does when memory runs out."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Kill the process once, in the first test after a number of others in this process."""
    before = item.config.stash.setdefault(_BEFORE, [])
    before.append(item.nodeid)
    if len(before) > _ENOUGH:
        with suppress(FileExistsError):  # only the first of several processes
            with Path("killed").open("x", encoding="utf-8") as file:
                file.write(item.nodeid)
            os.kill(os.getpid(), signal.SIGKILL)


_BEFORE = pytest.StashKey[list[str]]()
_ENOUGH = int(os.environ.get("CRASH_AFTER", "10"))
