"""The actors and fixtures of the target profile, as arguments that a test asks for by name."""

from __future__ import annotations

import pytest

from conformance.results.record import Reason
from conformance.suite.context import current_run
from conformance.suite.exceptions import NotTested
from conformance.suite.expectations import Caller
from conformance.target import Actor, Fixture
from conformance.target.profile import PLURALS

_NOBODY = Actor("wrong-token", "0000-no-such-token-0000")


def _caller(name: str) -> Caller:
    run = current_run()
    missing = run.profile.missing((name,))
    if missing:
        raise NotTested(Reason.PREREQUISITE_MISSING, missing)
    return Caller(run, run.profile.actors[name])


def _all(name: str) -> tuple[Fixture, ...]:
    profile = current_run().profile
    missing = profile.missing((name,))
    if missing:
        raise NotTested(Reason.PREREQUISITE_MISSING, missing)
    return profile.fixtures[PLURALS.get(name, name)]


def _one(name: str) -> Fixture:
    return _all(name)[0]


# -- actors ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def anonymous() -> Caller:
    """Somebody without a token."""
    return Caller(current_run(), None)


@pytest.fixture
def wrong_token() -> Caller:
    """Somebody with a token that nobody was given."""
    return Caller(current_run(), _NOBODY)


@pytest.fixture
def owner() -> Caller:
    """Owner of `group`, and by that of `project`."""
    return _caller("owner")


@pytest.fixture
def maintainer() -> Caller:
    """Maintainer of `project` and `group`, with a role in every allowlist fixture."""
    return _caller("maintainer")


@pytest.fixture
def developer() -> Caller:
    """Developer in `project` and `group`."""
    return _caller("developer")


@pytest.fixture
def reporter() -> Caller:
    """Reporter in `project`."""
    return _caller("reporter")


@pytest.fixture
def guest() -> Caller:
    """Guest in `project`."""
    return _caller("guest")


@pytest.fixture
def approver() -> Caller:
    """Developer in `project` who may approve: neither author nor committer of `merge_request`."""
    return _caller("approver")


@pytest.fixture
def second_approver() -> Caller:
    """Another one like `approver`."""
    return _caller("second_approver")


@pytest.fixture
def author() -> Caller:
    """Author of `merge_request`."""
    return _caller("author")


@pytest.fixture
def outsider() -> Caller:
    """A user without any role in `project` and `group`."""
    return _caller("outsider")


@pytest.fixture
def admin() -> Caller:
    """Administrator of the installation; only used where the text speaks of administrators."""
    return _caller("admin")


@pytest.fixture
def project_bot() -> Caller:
    """Bot user of an access token of `project`."""
    return _caller("project_bot")


@pytest.fixture
def group_bot() -> Caller:
    """Bot user of an access token of `group`."""
    return _caller("group_bot")


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def project() -> Fixture:
    """Private project in `group`, whose settings the suite may change: id, path."""
    return _one("project")


@pytest.fixture
def group() -> Fixture:
    """Private top-level group: id, path."""
    return _one("group")


@pytest.fixture
def subgroup() -> Fixture:
    """Group inside `group`: id, path."""
    return _one("subgroup")


@pytest.fixture
def sibling_project() -> Fixture:
    """Another project that `maintainer` maintains, which must stay untouched: id, path."""
    return _one("sibling_project")


@pytest.fixture
def sibling_group() -> Fixture:
    """Another top-level group that `owner` owns: id, path."""
    return _one("sibling_group")


@pytest.fixture
def public_project() -> Fixture:
    """Public project that `maintainer` maintains: id, path."""
    return _one("public_project")


@pytest.fixture
def fuzz_project() -> Fixture:
    """Project like `project`, in `fuzz_group`, for random calls; or a list of such: id, path."""
    return _one("fuzz_project")


@pytest.fixture
def fuzz_group() -> Fixture:
    """Group like `group`, set aside for random calls; or a list of such: id, path."""
    return _one("fuzz_group")


@pytest.fixture
def allowlist_project() -> Fixture:
    """Project that may be put on an allowlist: id, path; see allowlist_projects."""
    return _one("allowlist_project")


@pytest.fixture
def allowlist_projects() -> tuple[Fixture, ...]:
    """List of at least three such projects, each with a repository: id, path."""
    return _all("allowlist_projects")


@pytest.fixture
def allowlist_group() -> Fixture:
    """Group that may be put on an allowlist: id, name; see allowlist_groups."""
    return _one("allowlist_group")


@pytest.fixture
def allowlist_groups() -> tuple[Fixture, ...]:
    """List of at least three such groups: id, name."""
    return _all("allowlist_groups")


@pytest.fixture
def merge_request() -> Fixture:
    """Open merge request of `project` with a description: iid, id, sha (its HEAD)."""
    return _one("merge_request")


@pytest.fixture
def second_merge_request() -> Fixture:
    """Another one like `merge_request`: iid, id, sha."""
    return _one("second_merge_request")


@pytest.fixture
def reset_merge_request() -> Fixture:
    """One whose approvals may be reset: iid, id, sha."""
    return _one("reset_merge_request")


@pytest.fixture
def fuzz_merge_request() -> Fixture:
    """One of `fuzz_project`, set aside for random calls; or a list of such: iid, id, sha."""
    return _one("fuzz_merge_request")


@pytest.fixture
def password_merge_request() -> Fixture:
    """One in a project that asks for the password of who approves: iid, project_id."""
    return _one("password_merge_request")


@pytest.fixture
def approver_group() -> Fixture:
    """Group visible to all, with a description, that may be named in rules: id, path."""
    return _one("approver_group")


@pytest.fixture
def second_approver_group() -> Fixture:
    """Another one like `approver_group`: id, path."""
    return _one("second_approver_group")


@pytest.fixture
def hidden_group() -> Fixture:
    """Private group that some callers cannot see: id, path."""
    return _one("hidden_group")


@pytest.fixture
def protected_branch() -> Fixture:
    """Protected branch of `project`: id, name."""
    return _one("protected_branch")


@pytest.fixture
def second_protected_branch() -> Fixture:
    """Another one: id, name."""
    return _one("second_protected_branch")


@pytest.fixture
def export_group() -> Fixture:
    """Group with some labels or milestones whose export may be scheduled: id, path, relation."""
    return _one("export_group")


@pytest.fixture
def integration() -> Fixture:
    """Integration that may be set up on `project`: slug, settings (values that it takes."""
    return _one("integration")


@pytest.fixture
def integrations() -> tuple[Fixture, ...]:
    """List of at least three such integrations, which together have as many parameters as there are."""
    return _all("integrations")


@pytest.fixture
def chat_integration() -> Fixture:
    """Chat-style integration that needs a webhook: slug, settings."""
    return _one("chat_integration")


@pytest.fixture
def token_integration() -> Fixture:
    """Integration that needs a token: slug, settings."""
    return _one("token_integration")


@pytest.fixture
def email_integration() -> Fixture:
    """Email-style integration that needs recipients: slug, settings."""
    return _one("email_integration")


@pytest.fixture
def issue_tracker_integration() -> Fixture:
    """Issue tracker that needs three addresses together: slug, settings."""
    return _one("issue_tracker_integration")


@pytest.fixture
def emails_on_push_integration() -> Fixture:
    """The emails-on-push integration: slug, settings, required."""
    return _one("emails_on_push_integration")


@pytest.fixture
def switchable_integration() -> Fixture:
    """Issue tracker with the parameter active: slug, settings."""
    return _one("switchable_integration")


@pytest.fixture
def chat_app_integration() -> Fixture:
    """The chat-app integration, not installed on `project`: slug, settings."""
    return _one("chat_app_integration")


@pytest.fixture
def installed_chat_app_integration() -> Fixture:
    """The chat-app integration where it is installed: slug, settings, events, project_id."""
    return _one("installed_chat_app_integration")


@pytest.fixture
def fresh_group() -> Fixture:
    """Group that `owner` owns, its approval rules never touched: id, path."""
    return _one("fresh_group")


@pytest.fixture
def fresh_project() -> Fixture:
    """Project made after the installation, its settings never touched: id, path."""
    return _one("fresh_project")


@pytest.fixture
def job_token() -> Fixture:
    """Job token of a project: token."""
    return _one("job_token")


@pytest.fixture
def oauth_token_endpoint() -> Fixture:
    """Where OAuth tokens are issued: url."""
    return _one("oauth_token_endpoint")


@pytest.fixture
def enabled_project() -> Fixture:
    """Project with code completion on: path."""
    return _one("enabled_project")


@pytest.fixture
def disabled_project() -> Fixture:
    """Project with code completion off: path."""
    return _one("disabled_project")


@pytest.fixture
def group_enabled_project() -> Fixture:
    """Project whose group alone has code completion on: path."""
    return _one("group_enabled_project")


@pytest.fixture
def code_owner_merge_request() -> Fixture:
    """Merge request with a code owner rule: iid."""
    return _one("code_owner_merge_request")


@pytest.fixture
def report_approver_merge_request() -> Fixture:
    """Merge request with a rule of a policy: iid."""
    return _one("report_approver_merge_request")


@pytest.fixture
def branch_rule_group() -> Fixture:
    """Group with an approval rule that lists protected branches: id, path."""
    return _one("branch_rule_group")


@pytest.fixture
def policy_group() -> Fixture:
    """Group with an approval rule that a policy made: id, path."""
    return _one("policy_group")


@pytest.fixture
def policy_project() -> Fixture:
    """Project with an approval rule that a policy made: id, path."""
    return _one("policy_project")
