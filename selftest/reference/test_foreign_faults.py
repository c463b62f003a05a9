"""Each foreign fault shows in plain calls: a long story is told to a healthy service and to a faulty one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.proof.foreign import ForeignFault, faults
from conformance.proof.matrix import MovedClock
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service
from selftest.conftest import NO_AUTHORITIES
from selftest.reference.chapters import OWN_CHAPTERS
from selftest.reference.story import Story, ToldOtherwiseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.reference.choices import Choices
    from selftest.reference.chapters import Chapter


def told_by(
    version: str,
    choices: Choices | None = None,
    chapter: Chapter | None = None,
    *,
    fault: ForeignFault | None = None,
    healthy: Sequence[str] | None = None,
) -> list[str]:
    """
    Return what a service, with a fault or without, answers to the story, or to a chapter of it.

    Raise ToldOtherwiseError at the first answer that is not that of a healthy one.
    """
    clock = MovedClock()
    service = prepared_service(version=version, choices=choices, clock=clock)
    if fault is not None:
        fault.apply(service)
    with (
        EmbeddedServer(service) as server,
        httpx.Client(base_url=f"{server.base_url}/api/v4", verify=NO_AUTHORITIES) as client,
    ):
        told = Story(service, client, clock, healthy)
        if chapter is None:
            return told.tell()
        chapter(told)
        return told.told


healthy = cache(told_by)


def tell_of(fault: ForeignFault) -> None:
    """Tell the chapter that was written for faults such as this, if one was, and the whole story."""
    module = fault.apply.__module__.rpartition(".")[2]
    own = [chapter for name, chapter in OWN_CHAPTERS.items() if module.startswith(name)]
    for chapter in (*own, None):
        ground = (fault.version, fault.choices, chapter)
        told_by(*ground, fault=fault, healthy=healthy(*ground))


def test_the_story_is_the_same_each_time() -> None:
    assert told_by("17.7") == healthy("17.7")


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_foreign_fault_shows_in_plain_calls(fault: ForeignFault) -> None:
    with pytest.raises(ToldOtherwiseError):
        tell_of(fault)
