"""Each foreign fault shows in plain calls: the same long story is run on a healthy service and on a faulty one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.proof.foreign import ForeignFault, faults
from conformance.proof.foreign.dimensions import AT_ONCE
from conformance.proof.foreign.running import areas_of
from conformance.proof.matrix import MovedClock
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service
from selftest.conftest import NO_AUTHORITIES
from selftest.reference.chapters.all_areas import CHAPTERS, WHOLE_STORY, chapters_of
from selftest.reference.story import Story, ToldOtherwiseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.reference.choices import Choices
    from selftest.reference.chapters.all_areas import Chapter

#: A fault of two calls at once shows only if they meet, which a loaded machine may prevent.
TRIES = 3


def told_by(
    version: str,
    choices: Choices | None = None,
    chapters: tuple[Chapter, ...] = WHOLE_STORY,
    *,
    fault: ForeignFault | None = None,
    healthy: Sequence[str] | None = None,
) -> list[str]:
    """Return the responses of a service, with a fault or without, to the whole story or to some chapters.

    Raise ToldOtherwiseError at the first response that a healthy service does not give.
    """
    clock = MovedClock()
    service = prepared_service(version=version, choices=choices, clock=clock)
    if fault is not None:
        fault.apply(service)
    with (
        EmbeddedServer(service) as server,
        httpx.Client(base_url=f"{server.base_url}/api/v4", verify=NO_AUTHORITIES) as client,
    ):
        story = Story(service, client, clock, healthy)
        for chapter in chapters:
            chapter(story)
        return story.told


healthy = cache(told_by)


def tell_of(fault: ForeignFault) -> None:
    """Run the chapters of the area that a fault belongs to, and then the whole story."""
    for chapters in (chapters_of(fault), WHOLE_STORY):
        ground = (fault.version, fault.choices, chapters)
        told_by(*ground, fault=fault, healthy=healthy(*ground))


def tell_several_times_of(fault: ForeignFault) -> None:
    for _ in range(TRIES if fault.dimension == AT_ONCE else 1):
        tell_of(fault)


@pytest.mark.parametrize("chapters", [*CHAPTERS.values(), WHOLE_STORY], ids=[*CHAPTERS, "whole story"])
def test_the_story_gives_the_same_responses_each_time(chapters: tuple[Chapter, ...]) -> None:
    assert told_by("17.7", None, chapters) == healthy("17.7", None, chapters)


def test_a_fault_is_in_the_folder_of_the_area_of_its_section() -> None:
    folders = {"merge-request-approvals": {"approvals", "merge_request_approval_rules"}}
    elsewhere = [
        fault.name
        for fault in faults()
        for area in areas_of(fault)
        if fault.area not in folders.get(area, {area.replace("-", "_")})
    ]
    assert not elsewhere


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_foreign_fault_shows_in_plain_calls(fault: ForeignFault) -> None:
    with pytest.raises(ToldOtherwiseError):
        tell_several_times_of(fault)
