"""The actors and fixtures of the target profile, as arguments that a test requests by name.

`conformance.target.names` describes each of them: ACTORS and FIXTURES, read from `names.yaml`. A test whose profile
lacks one is not tested, and says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.context import current_run
from conformance.suite.exceptions import require_in
from conformance.suite.expectations import Caller
from conformance.suite.expectations.callers import NOBODY
from conformance.target.names import PLURALS

if TYPE_CHECKING:
    from conformance.target import Fixture


def _actor(name: str) -> Any:
    def caller() -> Caller:
        return Caller.named(name)

    return pytest.fixture(name=name)(caller)


def _one(name: str) -> Any:
    def fixture() -> Fixture:
        require_in(current_run().profile, name)
        return current_run().profile.fixtures[name][0]

    return pytest.fixture(name=name)(fixture)


def _several(name: str) -> Any:
    def fixtures() -> tuple[Fixture, ...]:
        require_in(current_run().profile, name)
        return current_run().profile.fixtures[PLURALS[name]]

    return pytest.fixture(name=name)(fixtures)


@pytest.fixture
def anonymous() -> Caller:
    """A caller without a token."""
    return Caller(current_run(), None)


@pytest.fixture
def wrong_token() -> Caller:
    """A caller with a token that was issued to nobody."""
    return Caller(current_run(), NOBODY)


owner = _actor("owner")
maintainer = _actor("maintainer")
developer = _actor("developer")
reporter = _actor("reporter")
guest = _actor("guest")
approver = _actor("approver")
second_approver = _actor("second_approver")
author = _actor("author")
outsider = _actor("outsider")
admin = _actor("admin")
project_bot = _actor("project_bot")
group_bot = _actor("group_bot")

project = _one("project")
group = _one("group")
subgroup = _one("subgroup")
subgroup_project = _one("subgroup_project")
sibling_project = _one("sibling_project")
sibling_group = _one("sibling_group")
public_project = _one("public_project")
fuzz_project = _one("fuzz_project")
fuzz_group = _one("fuzz_group")
allowlist_projects = _several("allowlist_projects")
allowlist_groups = _several("allowlist_groups")
merge_request = _one("merge_request")
second_merge_request = _one("second_merge_request")
reset_merge_request = _one("reset_merge_request")
untouched_merge_request = _one("untouched_merge_request")
fuzz_merge_request = _one("fuzz_merge_request")
password_merge_request = _one("password_merge_request")
approver_group = _one("approver_group")
second_approver_group = _one("second_approver_group")
hidden_group = _one("hidden_group")
protected_branch = _one("protected_branch")
second_protected_branch = _one("second_protected_branch")
export_group = _one("export_group")
integration = _one("integration")
integrations = _several("integrations")
chat_integration = _one("chat_integration")
token_integration = _one("token_integration")
email_integration = _one("email_integration")
issue_tracker_integration = _one("issue_tracker_integration")
emails_on_push_integration = _one("emails_on_push_integration")
switchable_integration = _one("switchable_integration")
chat_app_integration = _one("chat_app_integration")
installed_chat_app_integration = _one("installed_chat_app_integration")
fresh_group = _one("fresh_group")
fresh_project = _one("fresh_project")
job_token = _one("job_token")
oauth_token_endpoint = _one("oauth_token_endpoint")
enabled_project = _one("enabled_project")
disabled_project = _one("disabled_project")
group_enabled_project = _one("group_enabled_project")
code_owner_merge_request = _one("code_owner_merge_request")
report_approver_merge_request = _one("report_approver_merge_request")
branch_rule_group = _one("branch_rule_group")
policy_group = _one("policy_group")
policy_project = _one("policy_project")
