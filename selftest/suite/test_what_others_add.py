"""What somebody adds to a list while a test changes it stays there, and what the test added is taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from conformance.suite.arrange import arranged
from conformance.suite.context import current_run
from conformance.suite.expectations import Caller
from conformance.target.embedded import profile_data
from conformance.target.profile_file import profile_from
from selftest.conftest import NO_AUTHORITIES, VERSION, in_a_test, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

RULE = {"name": "theirs", "approvals_required": 4, "user_ids": [3]}
PROJECT = "/projects/{project}"
SCOPE = f"{PROJECT}/job_token_scope"
RULES = f"{PROJECT}/approval_rules"
RULES_INSIDE = f"{PROJECT}/merge_requests/{{iid}}/approval_rules"
#: The profile names no such project and no such group, but a project with the number of that group.
OTHER_PROJECT, OTHER_GROUP = {"target_project_id": 6}, {"target_group_id": 7}


@pytest.fixture
def maintainer() -> Iterator[Caller]:
    with serving() as (service, base_url):
        profile = profile_from(profile_data(service.world, base_url, VERSION), "test")
        with in_a_test(profile) as test:
            yield Caller(test.run, profile.actors["maintainer"])


def added_by_another(path: str, body: Any) -> int:
    """Add something as an administrator, in no call of the run, and return the number by which it is listed."""
    profile = current_run().profile
    token = {"PRIVATE-TOKEN": profile.actors["admin"].token}
    answer = httpx.post(f"{profile.base_url}/api/v4{path}", json=body, headers=token, verify=NO_AUTHORITIES)
    assert answer.is_success, answer.text
    return int(answer.json().get("id") or next(iter(body.values())))


@pytest.mark.parametrize(
    ("operation", "lists", "body"),
    [
        ("createProjectApprovalRule", RULES, RULE),
        ("createMergeRequestApprovalRule", RULES_INSIDE, RULE),
        ("addProjectToJobTokenAllowlist", f"{SCOPE}/allowlist", OTHER_PROJECT),
        ("addGroupToJobTokenAllowlist", f"{SCOPE}/groups_allowlist", OTHER_GROUP),
        ("updateJobTokenScope", f"{SCOPE}/allowlist", OTHER_PROJECT),
    ],
)
def test_only_what_a_test_added_is_taken_away_after_it(
    maintainer: Caller, operation: str, lists: str, body: Any
) -> None:
    run = current_run()
    fixtures = run.profile.fixtures
    path = lists.format(project=fixtures["project"][0].id, iid=fixtures["merge_request"][0]["iid"])
    before = {*maintainer.list(path).ids()}
    with arranged(next(one for one in run.validator.operations if one.id == operation)) as made:
        theirs = added_by_another(path, body)
        for _ in range(2):
            assert made.sent_by(made.keeper).is_served
            made.again()
    run.known_reads.forget()
    assert {*maintainer.list(path).ids()} - before == {theirs}
