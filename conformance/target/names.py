"""The names that a profile may use: actors, fixtures and features, and what each of them must be."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.contract import OLDEST, Version

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The actors a profile may name, and who each of them must be.
ACTORS: Mapping[str, str] = MappingProxyType(
    {
        "owner": "owner of `group`, and by that of `project`",
        "maintainer": "maintainer of `project` and `group`, with a role in every allowlist fixture",
        "developer": "developer in `project` and `group`",
        "reporter": "reporter in `project`",
        "guest": "guest in `project`",
        "approver": "developer in `project` who may approve: neither author nor committer of `merge_request`",
        "second_approver": "another one like `approver`",
        "author": "author of `merge_request`",
        "outsider": "a user without any role in `project` and `group`",
        "admin": "administrator of the installation; only used where the text speaks of these or of everybody",
        "project_bot": "bot user of an access token of `project`",
        "group_bot": "bot user of an access token of `group`",
    },
)

#: The fixtures a profile may name, and what each of them must be.
FIXTURES: Mapping[str, str] = MappingProxyType(
    {
        "project": "private project in `group`, whose settings the suite may change: id, path",
        "group": "private top-level group: id, path",
        "subgroup": "group inside `group`: id, path",
        "subgroup_project": "project in `subgroup` that `maintainer` maintains; takes `integration` as well: id, path",
        "sibling_project": "another project that `maintainer` maintains, which must stay untouched: id, path",
        "sibling_group": "another top-level group that `owner` owns: id, path",
        "public_project": "public project that `maintainer` maintains: id, path",
        "fuzz_project": "project like `project`, in `fuzz_group`, for random calls; or a list of such: id, path",
        "fuzz_group": "group like `group`, set aside for random calls; or a list of such: id, path",
        "allowlist_project": "project that may be put on an allowlist: id, path; see allowlist_projects",
        "allowlist_projects": "list of at least three such projects, each with a repository: id, path",
        "allowlist_group": "group that may be put on an allowlist: id, name; see allowlist_groups",
        "allowlist_groups": "list of at least three such groups: id, name",
        "merge_request": "open merge request of `project`: iid, id, sha (its HEAD), title, description",
        "second_merge_request": "another one like `merge_request`: iid, id, sha, title, description",
        "reset_merge_request": "one whose approvals may be reset: iid, id, sha",
        "fuzz_merge_request": "one of `fuzz_project`, set aside for random calls; or a list of such: iid, id, sha",
        "password_merge_request": "one in a project that asks for the password of who approves: iid, project_id",
        "approver_group": "group visible to all, with a description, that may be named in rules: id, path",
        "second_approver_group": "another one like `approver_group`: id, path",
        "hidden_group": "private group that some callers cannot see: id, path",
        "protected_branch": "protected branch of `project`: id, name",
        "second_protected_branch": "another one: id, name",
        "export_group": (
            "group with some labels or milestones whose export may be scheduled: id, path, relation (one that has "
            "objects), objects (texts that the file of the relation holds and no other group has, such as titles)"
        ),
        "integration": (
            "integration that may be set up on `project`: slug, settings (values that it takes; active: true where it "
            "has that), required (the settings that it cannot do without), parameters and events (those that it has), "
            "distinctive_name and distinctive_value (an optional text that is shown again)"
        ),
        "integrations": "list of at least three such integrations, which together have as many parameters as there are",
        "chat_integration": "chat-style integration that needs a webhook: slug, settings",
        "token_integration": "integration that needs a token: slug, settings",
        "email_integration": "email-style integration that needs recipients: slug, settings",
        "issue_tracker_integration": "issue tracker that needs three addresses together: slug, settings",
        "emails_on_push_integration": "the emails-on-push integration: slug, settings, required",
        "switchable_integration": "issue tracker with the parameter active: slug, settings",
        "chat_app_integration": "the chat-app integration, not installed on `project`: slug, settings",
        "installed_chat_app_integration": (
            "the chat-app integration where it is installed: slug, settings, events, project_id (of a project that "
            "`maintainer` maintains)"
        ),
        "fresh_group": "group that `owner` owns, its approval rules never touched: id, path",
        "fresh_project": "project made after the installation, its settings never touched: id, path",
        "job_token": "job token of a project: token",
        "oauth_token_endpoint": "where OAuth tokens are issued: url",
        "enabled_project": "project with code completion on: path",
        "disabled_project": "project with code completion off: path",
        "group_enabled_project": "project whose group alone has code completion on: path",
        "code_owner_merge_request": "merge request with a code owner rule: iid",
        "report_approver_merge_request": "merge request with a rule of a policy: iid",
        "branch_rule_group": "group with an approval rule that lists protected branches: id, path",
        "policy_group": "group with an approval rule that a policy made: id, path",
        "policy_project": "project with an approval rule that a policy made: id, path",
    },
)

#: The features a profile may declare, and what the target has that declares one.
FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "approval_configuration": (
            "lets the approval configuration of a project be read; false where that was given up, as may be from 16.0"
        ),
        "approval_policies": "policies that make approval rules",
        "chat_app_integration": "the chat-app integration, which is installed in the user interface",
        "chat_integration": "integrations that send to a chat and need a webhook",
        "code_completion": "code completions",
        "code_completion_flag_off": "code completions, switched off for the time of the run",
        "completion_rate_limit": "the rate limit of completions, to be tried out with --include slow",
        "email_integration": "integrations that send mail and need recipients",
        "emails_on_push_integration": "the integration that sends mails on push",
        "enterprise_edition": "what only the enterprise edition has; the edition of the profile says it too",
        "group_approval_rules": "approval rules of groups",
        "group_mention_events": (
            "events for mentions of groups, on integrations of projects; false where only those of groups have them"
        ),
        "group_approval_rules_flag_off": "approval rules of groups, switched off for the time of the run",
        "hidden_groups": "groups that some of those who may change rules cannot see",
        "https": "TLS in front; the base URL says it too",
        "issue_tracker_integration": "integrations for issue trackers that need three addresses together",
        "member_roles": "member roles of the installation",
        "partial_rule_updates": (
            "changes of the rules of projects that leave out name or approvals_required, which the text requires: what "
            "would be a violation is a warning then"
        ),
        "password_approval": "approvals that ask for a password",
        "switchable_integration": "an issue tracker with the parameter active",
        "token_integration": "integrations that need a token",
    },
)

#: Features that a target has unless its profile says false, each with the version before which it cannot say so.
PRESUMED: Mapping[str, Version] = MappingProxyType(
    {
        "approval_configuration": Version.parse("16.0"),
        "group_mention_events": OLDEST,
        **{name: OLDEST for name in FEATURES if name.endswith("_integration")},
    },
)

#: Plural names of fixtures, each of which holds a list of at least three.
PLURALS: Mapping[str, str] = MappingProxyType(
    {"allowlist_projects": "allowlist_project", "allowlist_groups": "allowlist_group", "integrations": "integration"},
)
