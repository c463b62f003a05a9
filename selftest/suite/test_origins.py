"""A failure names the values of the profile on which its expectation is based."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.http.exchange import Call, Exchange
from conformance.suite.exceptions import Violation
from conformance.suite.origins import Origins
from conformance.target.profile import Fixture
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from conformance.target import Profile

FIXTURES = {
    "export_group": {"id": 5, "relation": "labels", "objects": ["bug", "late"]},
    "second_merge_request": {"iid": 2, "title": "Add the second one"},
    "integrations": [{"slug": "chat", "settings": {}}, {"slug": "planner", "settings": {}}],
    "allowlist_groups": [{"id": 13}, {"id": 14}, {"id": 15}],
}


@pytest.fixture(scope="module")
def profile() -> Profile:
    return profile_from({"base_url": "http://localhost", "actors": {}, "fixtures": FIXTURES}, "a profile")


@pytest.mark.parametrize(
    ("expected", "place"),
    [
        ("a line with late", "fixtures.export_group.objects"),
        ("the relation labels", "fixtures.export_group.relation"),
        ('title = "Add the second one"', "fixtures.second_merge_request.title"),
        ("slug = planner", "fixtures.integrations[1].slug"),
        ("id = 14", "fixtures.allowlist_groups[1].id"),
    ],
)
def test_a_failure_names_the_value_of_the_profile(profile: Profile, expected: str, place: str) -> None:
    named = Origins().behind(profile, Violation(expected, "something else"))
    assert named == f"the expectation is made of the profile: {place}"


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("/projects/1/job_token_scope/groups_allowlist?page=1", "fixtures.allowlist_groups[0].id"),
        ("/projects/1/job_token_scope/allowlist", "fixtures.allowlist_projects[0].id"),
        ("/groups/1/approval_rules/13", None),
        ("/projects/1/integrations/chat", None),
        ("/projects/1/elsewhere", "fixtures.allowlist_groups[0].id, fixtures.allowlist_projects[0].id"),
    ],
)
def test_a_number_is_that_of_a_fixture_only_where_the_call_shows_such(path: str, places: str | None) -> None:
    """Two things of different kinds may have the same number, and a new rule that of any of them."""
    alike = {**FIXTURES, "allowlist_projects": [{"id": 13, "path": "a/b"}]}
    data = {"base_url": "http://localhost", "actors": {}, "fixtures": alike}
    shown = Exchange(Call(None, "GET", path), 200, {}, b"[]", 0.1)
    named = Origins().behind(profile_from(data, "a profile"), Violation("id = 13", "id = 14", shown))
    assert named == (places and f"the expectation is made of the profile: {places}")


def test_what_the_run_has_made_is_not_of_the_profile(profile: Profile) -> None:
    made = (Fixture("rules_group", {"id": 77, "path": "conformance-made"}),)
    running = replace(profile, fixtures={**profile.fixtures, "rules_group": made})
    assert Origins().behind(running, Violation("id = 77", "id = 78")) is None
    assert Origins().behind(running, Violation("id = 14", "id = 15")) is not None


@pytest.mark.parametrize("expected", ["status 204", "a refusal (any 4xx)", "inbound_enabled = true", "any 2xx"])
def test_an_expectation_based_only_on_the_specification_names_nothing(profile: Profile, expected: str) -> None:
    assert Origins().behind(profile, Violation(expected, "something else")) is None


@pytest.mark.parametrize(
    ("path", "is_named"), [("/projects/1/integrations/chat", True), ("/groups/1/approvals", False)]
)
def test_a_sent_value_is_of_the_profile_only_where_the_profile_is_sent(path: str, *, is_named: bool) -> None:
    """The same word may stand in a body that the suite made up."""
    fixtures = {"integrations": [{"slug": "chat", "settings": {"project": "conformance"}}]}
    profile = profile_from({"base_url": "http://localhost", "actors": {}, "fixtures": fixtures}, "a profile")
    call = Call(None, "POST", path, body=b'{"number": {"conformance": "abc"}}')
    exchange = Exchange(call, 500, {}, b"", 0.0)
    found = Origins().behind(profile, Violation("a refusal (any 4xx)", "status 500", exchange))
    assert found == ("the expectation is made of the profile: fixtures.integrations[0].settings" if is_named else None)
