"""Each foreign fault shows in plain calls: a long story is told to a healthy service and to a faulty one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.proof.foreign import ForeignFault, faults
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service
from selftest.conftest import NO_AUTHORITIES
from selftest.reference.story import Story, ToldOtherwiseError

if TYPE_CHECKING:
    from collections.abc import Sequence


def told_by(version: str, fault: ForeignFault | None = None, healthy: Sequence[str] | None = None) -> list[str]:
    """
    Return what a service of that version answers to the story, with a fault or without.

    Raise ToldOtherwiseError at the first answer that is not that of a healthy one.
    """
    service = prepared_service(version=version, choices=fault.choices if fault else None)
    if fault is not None:
        fault.apply(service)
    with (
        EmbeddedServer(service) as server,
        httpx.Client(base_url=f"{server.base_url}/api/v4", verify=NO_AUTHORITIES) as client,
    ):
        return Story(service, client, healthy).tell()


@cache
def healthy(version: str) -> list[str]:
    """Return what a healthy service of that version answers to the story."""
    return told_by(version)


def test_the_story_is_the_same_each_time() -> None:
    assert told_by("17.7") == healthy("17.7")


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_foreign_fault_shows_in_plain_calls(fault: ForeignFault) -> None:
    with pytest.raises(ToldOtherwiseError):
        told_by(fault.version, fault, healthy(fault.version))
