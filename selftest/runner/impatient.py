"""A plugin of pytest that sends an interrupt at each moment after the last test at which code of a run works."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Generator[None, None, None]:
    """Interrupt when the session is over for everybody else."""
    try:
        return (yield)
    finally:
        signal.raise_signal(signal.SIGINT)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary() -> None:
    """Interrupt before the result is printed."""
    signal.raise_signal(signal.SIGINT)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """Interrupt before the process may end."""
    signal.raise_signal(signal.SIGINT)
