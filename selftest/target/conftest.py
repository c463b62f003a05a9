"""What several files about targets use: a world that was provisioned once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from selftest.target.bench import Bench

if TYPE_CHECKING:
    from conformance.target.provisioning import Provisioned


@pytest.fixture(scope="session")
def whole() -> tuple[Bench, Provisioned]:
    """A reference that was provisioned once, without an interruption."""
    bench = Bench()
    return bench, bench.provision()
