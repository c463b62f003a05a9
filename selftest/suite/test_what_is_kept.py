"""A service that answers a write and keeps nothing fails by that, and not by the stories that need the thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.results.record import Check, Outcome
from conformance.suite.arrange.approval_rules import by_id
from conformance.suite.arrange.job_token_scope import PROJECTS
from conformance.suite.arrange.reviews import created
from conformance.suite.context import Unmet, Violation, current_run
from conformance.suite.expectations import Caller, project_path, verifies
from conformance.target.profile_file import load_profile
from selftest.altering import altering, called
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.suite.context import TestContext
    from conformance.target import Fixture

LISTED = "project-approval-rules.create.listed"
RULES = "/projects/:id/approval_rules"


def add_a_rule(maintainer: Caller, project: Fixture) -> None:
    created(maintainer, project_path(project) / "approval_rules")


def let_a_project_in(maintainer: Caller, project: Fixture) -> None:
    target = current_run().profile.fixtures[PROJECTS.fixture][0]
    PROJECTS.given_listed(maintainer, project, target.id)


def failed_in(lines: list[Any]) -> list[str]:
    return [line.requirement for line in lines if isinstance(line, Check) and line.outcome is Outcome.FAILED]


def maintainer_of(test: TestContext, profile: Any) -> Caller:
    return Caller(test.run, profile.actors["maintainer"])


@pytest.mark.parametrize(
    ("add", "key", "failed"),
    [
        (add_a_rule, f"POST {RULES}", LISTED),
        (let_a_project_in, "POST /projects/:id/job_token_scope/allowlist", PROJECTS.present),
    ],
)
def test_what_keeps_nothing_fails_once_and_leaves_the_story_open(
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    add: Callable[[Caller, Fixture], None],
    key: str,
    failed: str,
) -> None:
    service, base_url = reference
    profile: Any = load_profile(write_profile(service, base_url))
    before = service.store.snapshot()
    altering(service, key, lambda *_: service.store.restore(before), successes_only=True)
    lines: list[Any] = []
    with in_a_test(profile, lines=lines) as test, pytest.raises(Unmet, match="as before"):
        add(maintainer_of(test, profile), profile.fixtures["project"][0])
    assert failed_in(lines) == [failed]


def test_once_a_service_was_seen_to_keep_rules_no_more_lists_are_read(
    reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    profile: Any = load_profile(write_profile(*reference))
    keys = called(reference[0])
    with in_a_test(profile) as test:
        for _ in range(2):
            add_a_rule(maintainer_of(test, profile), profile.fixtures["project"][0])
    assert keys.count(f"POST {RULES}") == 2
    assert keys[-1] == f"POST {RULES}"


@pytest.mark.parametrize(("status", "ends"), [(500, Unmet), (403, Unmet), (404, Violation)])
def test_only_a_read_that_finds_nothing_shows_that_there_is_no_rule(
    reference: tuple[Service, str], write_profile: Callable[..., Path], status: int, ends: type[BaseException]
) -> None:
    """What cannot be read was not stored wrongly: the requirement of the read fails, and none of the creation."""

    def breaks(_: Request, response: Response) -> None:
        response.status = status

    profile: Any = load_profile(write_profile(*reference))
    altering(reference[0], f"GET {RULES}/:approval_rule_id", breaks)
    rules = project_path(profile.fixtures["project"][0]) / "approval_rules"
    with in_a_test(profile, LISTED) as test:
        rule = created(maintainer_of(test, profile), rules)
        reading = by_id(maintainer_of(test, profile), rules, rule["id"])
        with pytest.raises(ends), verifies(LISTED):
            reading.must_hold(id=rule["id"])
