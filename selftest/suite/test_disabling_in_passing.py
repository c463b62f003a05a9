"""An integration that stays listed fails the requirement of disabling, also where that is only a step of a story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.results.record import Check, Outcome
from conformance.suite.arrange.integrations import borrowed, given_disabled, integrations_path
from conformance.suite.context import Unmet
from conformance.suite.expectations import Caller
from conformance.target.profile_file import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service


def borrow(caller: Caller, path: Any, integration: Any) -> None:
    """Begin a story with this integration not set up, and end it."""
    with borrowed(caller, path, integration):
        pass


@pytest.mark.parametrize("step", [given_disabled, borrow])
def test_an_integration_that_stays_listed_fails_the_requirement_of_disabling(
    reference: tuple[Service, str], write_profile: Callable[..., Path], step: Callable[[Caller, Any, Any], None]
) -> None:
    service, lines = reference[0], list[Any]()
    project = service.identities.projects[service.world.one("project").id]
    service.integrations.keep(project, CATALOGUE["slack"], {"webhook": "https://chat.example.com"}, active=True)
    service.integrations.disable = lambda *_: None  # type: ignore[method-assign] # that is what is wrong with it
    profile: Any = load_profile(write_profile(*reference))
    slack = next(one for one in profile.fixtures["integration"] if one["slug"] == "slack")
    with in_a_test(profile, lines=lines) as test:
        caller = Caller(test.run, profile.actors["maintainer"])
        path = integrations_path(caller, profile.fixtures["project"][0])
        with pytest.raises(Unmet):
            step(caller, path, slack)
    found = {line.requirement for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED}
    assert found == {"integrations.disable.unlisted"}
