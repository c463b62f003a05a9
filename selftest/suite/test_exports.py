"""What tests of exports share: when the export before is over, and what is new of the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.exports import of_group
from conformance.suite.expectations import Caller
from conformance.target import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service


def test_an_export_of_long_ago_says_nothing_of_how_long_the_next_one_takes(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    limits = {"timeout_seconds": 5, "deadline_seconds": 5}
    profile: Any = load_profile(write_profile(*reference, limits=limits))
    with in_a_test(profile) as test:
        export = of_group(Caller(test.run, profile.actors["owner"]), profile.fixtures["export_group"][0], "labels")
        export.accepted(batched=False).given_served()
        # A worker runs tests of other areas in between, and only then looks.
        test.run.writes.served["POST", export.path][0] -= 3600
        before = export.marks()
        export.accepted(batched=True).given_served()
        assert export.marks().keys() == before.keys()
        assert export.marks() != before
