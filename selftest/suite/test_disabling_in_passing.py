"""An integration that stays listed fails the requirement of disabling, also where that is only a step of a story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.reference.areas.integration_catalogue import CATALOGUE
from conformance.results.record import Check, Outcome
from conformance.suite.arrange.integrations import borrowed, given_disabled, integrations_path
from conformance.suite.context import Unmet, current_test
from conformance.suite.expectations import Caller
from conformance.target.profile_file import load_profile
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.reference import Service


@pytest.fixture
def lines() -> list[Any]:
    """The lines that the test of the suite writes."""
    return []


@pytest.fixture
def staying(
    reference: tuple[Service, str], write_profile: Callable[..., Path], lines: list[Any]
) -> Iterator[tuple[Caller, Any, Any]]:
    """A caller, a path and an integration that is set up there and stays, although its disabling is served."""
    service = reference[0]
    project = service.identities.projects[service.world.one("project").id]
    service.integrations.keep(project, CATALOGUE["slack"], {"webhook": "https://chat.example.com"}, active=True)
    service.integrations.disable = lambda *_: None  # type: ignore[method-assign] # that is what is wrong with it
    profile: Any = load_profile(write_profile(*reference))
    slack = next(one for one in profile.fixtures["integration"] if one["slug"] == "slack")
    with in_a_test(profile, lines=lines) as test:
        caller = Caller(test.run, profile.actors["maintainer"])
        yield caller, integrations_path(caller, profile.fixtures["project"][0]), slack


def failed_in(lines: list[Any]) -> set[str]:
    return {line.requirement for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED}


def borrow(caller: Caller, path: Any, integration: Any) -> None:
    """Begin a story with this integration not set up, and end it."""
    with borrowed(caller, path, integration):
        pass


@pytest.mark.parametrize("step", [given_disabled, borrow])
def test_an_integration_that_stays_listed_fails_the_requirement_of_disabling(
    staying: tuple[Caller, Any, Any], lines: list[Any], step: Callable[[Caller, Any, Any], None]
) -> None:
    with pytest.raises(Unmet):
        step(*staying)
    assert failed_in(lines) == {"integrations.disable.unlisted"}


def test_what_is_read_outside_the_test_hides_no_entry_that_should_be_gone(
    staying: tuple[Caller, Any, Any], lines: list[Any]
) -> None:
    """As while an accepted deletion is waited for."""
    caller, path, slack = staying
    assert caller.delete(path / slack["slug"]).is_served
    with current_test().unjudged():
        caller.get(path)
    assert not failed_in(lines)
    caller.get(path)
    assert failed_in(lines) == {"integrations.disable.unlisted"}
