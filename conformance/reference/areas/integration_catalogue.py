"""Which integrations there are and what each of them takes: a table, and the words it is written in.

Specification: Endpoints > Integrations gives the parameters that many integrations share. Which integrations
exist and what else they take is not shown; the table follows what servers of this kind offer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = str | bool | int


class ValueType(StrEnum):
    """What a parameter holds."""

    TEXT = "string"
    FLAG = "boolean"
    NUMBER = "integer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an integration. `allowed` lists its values where only some are; `default` may be None.

    A `secret` is taken and never shown. One that is `fixed` may be sent and keeps its default all the same.
    """

    name: str
    type: ValueType = ValueType.TEXT
    required: bool = False
    default: Value | None = None
    allowed: tuple[str, ...] = ()
    secret: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationKind:
    """One integration: identifier, title, parameters, and the event kinds that can be switched on for it.

    `switchable` ones take `active` and are off unless told otherwise; all others are on once they are set up.
    """

    slug: str
    title: str
    parameters: tuple[Parameter, ...] = ()
    events: tuple[str, ...] = ()
    creatable: bool = True
    switchable: bool = False


#: The event flags of a list entry, with their value where nobody set them.
EVENT_FLAGS: Mapping[str, bool] = MappingProxyType(
    {
        "commit_events": True,
        "push_events": True,
        "issues_events": True,
        "alert_events": True,
        "confidential_issues_events": True,
        "merge_requests_events": True,
        "tag_push_events": True,
        "deployment_events": False,
        "note_events": True,
        "confidential_note_events": True,
        "pipeline_events": False,
        "wiki_page_events": True,
        "job_events": False,
        "comment_on_event_enabled": True,
        "vulnerability_events": False,
    }
)
VULNERABILITY_EVENTS = "vulnerability_events"
GROUP_MENTION_EVENTS = ("group_mentions_events", "group_confidential_mentions_events")


def _text(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name) for name in names)


def _needed(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name, required=True) for name in names)


def _secret(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name, secret=True) for name in names)


def _needed_secret(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name, required=True, secret=True) for name in names)


def _flag(*names: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(name=name, type=ValueType.FLAG) for name in names)


def _notified(default: str) -> tuple[Parameter, ...]:
    allowed = ("all", "default", "protected", "default_and_protected")
    return (Parameter(name="branches_to_be_notified", allowed=allowed, default=default),)


_VERIFIED = (Parameter(name="enable_ssl_verification", type=ValueType.FLAG, default=True),)
_ALWAYS_VERIFIED = (Parameter(name="enable_ssl_verification", type=ValueType.FLAG, default=True, fixed=True),)
_CREDENTIALS = _text("username") + _secret("password")
_BRANCHES = _notified("default")
_PIPELINES = _flag("notify_only_broken_pipelines", "notify_only_default_branch")
_LABELS = (
    Parameter(name="labels_to_be_notified"),
    Parameter(name="labels_to_be_notified_behavior", allowed=("match_any", "match_all"), default="match_any"),
)
_TRACKER = _needed("new_issue_url", "issues_url", "project_url")
_SMALL_TRACKER = _needed("issues_url", "project_url")
_NOTIFICATION = _PIPELINES + _BRANCHES
_WEBHOOK = _needed_secret("webhook") + _NOTIFICATION
_CHANNELS = _text(
    "push_channel",
    "issue_channel",
    "confidential_issue_channel",
    "merge_request_channel",
    "note_channel",
    "confidential_note_channel",
    "tag_push_channel",
    "pipeline_channel",
    "wiki_page_channel",
    "deployment_channel",
    "group_mentions_channel",
    "group_confidential_mentions_channel",
)
_ADDRESSED = _text("channel") + _LABELS + _CHANNELS

_PUSH = ("push_events",)
_BUILD = ("push_events", "merge_requests_events")
_TAGGED_BUILD = (*_BUILD, "tag_push_events")
_CHAT = (
    *_TAGGED_BUILD,
    "issues_events",
    "confidential_issues_events",
    "note_events",
    "confidential_note_events",
    "pipeline_events",
    "wiki_page_events",
)
_EVERYTHING = (
    *_CHAT,
    "deployment_events",
    "alert_events",
    "incidents_events",
    VULNERABILITY_EVENTS,
    *GROUP_MENTION_EVENTS,
)


def _kind(slug: str, title: str, parameters: tuple[Parameter, ...], events: tuple[str, ...] = ()) -> IntegrationKind:
    return IntegrationKind(slug=slug, title=title, parameters=parameters, events=events)


_KINDS = (
    # Chat.
    _kind("slack", "Slack notifications", _WEBHOOK + _text("username") + _ADDRESSED, _EVERYTHING),
    _kind("mattermost", "Mattermost notifications", _WEBHOOK + _text("username") + _ADDRESSED, _CHAT),
    IntegrationKind(
        slug="gitlab-slack-application",
        title="GitLab for Slack app",
        parameters=_NOTIFICATION + _ADDRESSED,
        events=_EVERYTHING,
        creatable=False,
    ),
    _kind("discord", "Discord Notifications", _WEBHOOK, (*_CHAT, "deployment_events")),
    _kind("hangouts-chat", "Google Chat", _WEBHOOK, _CHAT),
    _kind("microsoft-teams", "Microsoft Teams notifications", _WEBHOOK, _CHAT),
    _kind("pumble", "Pumble", _WEBHOOK, _CHAT),
    _kind("unify-circuit", "Unify Circuit", _WEBHOOK, _CHAT),
    _kind("webex-teams", "Webex Teams", _WEBHOOK, _CHAT),
    _kind(
        "telegram",
        "Telegram",
        _needed_secret("token") + _needed("room") + _text("thread") + _NOTIFICATION,
        _CHAT,
    ),
    _kind(
        "matrix",
        "Matrix notifications",
        _needed_secret("token") + _needed("room") + _text("hostname") + _NOTIFICATION,
        _CHAT,
    ),
    _kind("campfire", "Campfire", _needed_secret("token") + _text("subdomain", "room"), _PUSH),
    _kind("slack-slash-commands", "Slack slash commands", _needed_secret("token")),
    _kind("mattermost-slash-commands", "Mattermost slash commands", _needed_secret("token") + _text("username")),
    _kind(
        "pushover",
        "Pushover",
        _needed_secret("api_key", "user_key") + _needed("priority") + _text("device", "sound"),
        _PUSH,
    ),
    _kind(
        "irker",
        "irker (IRC gateway)",
        _needed("recipients")
        + _text("default_irc_uri", "server_host")
        + (Parameter(name="server_port", type=ValueType.NUMBER),)
        + _flag("colorize_messages"),
        _PUSH,
    ),
    # Mail.
    _kind(
        "emails-on-push",
        "Emails on push",
        _needed("recipients") + _flag("disable_diffs", "send_from_committer_email") + _notified("all"),
        ("push_events", "tag_push_events"),
    ),
    _kind("pipelines-email", "Pipeline status emails", _needed("recipients") + _NOTIFICATION, ("pipeline_events",)),
    # Issue trackers.
    IntegrationKind(
        slug="jira",
        title="Jira issues",
        parameters=_needed("url")
        + _needed_secret("password")
        + _text("username", "api_url", "jira_issue_prefix", "jira_issue_regex", "jira_issue_transition_id")
        + _flag("jira_issue_transition_automatic"),
        events=("commit_events", "merge_requests_events", "comment_on_event_enabled"),
        switchable=True,
    ),
    _kind("bugzilla", "Bugzilla", _TRACKER),
    _kind("custom-issue-tracker", "Custom issue tracker", _TRACKER),
    _kind("ewm", "EWM", _TRACKER),
    _kind("redmine", "Redmine", _TRACKER),
    _kind("clickup", "ClickUp", _SMALL_TRACKER),
    _kind("phorge", "Phorge", _SMALL_TRACKER),
    _kind("youtrack", "YouTrack", _SMALL_TRACKER),
    _kind("linear", "Linear", _needed("workspace_url")),
    _kind("asana", "Asana", _needed_secret("api_key") + _text("restrict_to_branch"), _PUSH),
    _kind("assembla", "Assembla", _needed_secret("token") + _secret("subdomain"), _PUSH),
    _kind("pivotaltracker", "Pivotal Tracker", _needed_secret("token") + _text("restrict_to_branch"), _PUSH),
    _kind(
        "squash-tm",
        "Squash TM",
        _needed("url") + _secret("token"),
        ("issues_events", "confidential_issues_events"),
    ),
    _kind(
        "zentao",
        "ZenTao",
        _needed("url") + _needed_secret("api_token") + _needed("zentao_product_xid") + _text("api_url"),
    ),
    # Continuous integration, deployment and packages.
    _kind(
        "bamboo",
        "Atlassian Bamboo",
        _needed("bamboo_url", "build_key", "username") + _needed_secret("password") + _VERIFIED,
        _PUSH,
    ),
    _kind(
        "buildkite",
        "Buildkite",
        _needed_secret("token") + _needed("project_url") + _ALWAYS_VERIFIED,
        _TAGGED_BUILD,
    ),
    _kind(
        "datadog",
        "Datadog",
        _needed_secret("api_key")
        + _text("api_url", "datadog_env", "datadog_service", "datadog_site", "datadog_tags")
        + _flag("archive_trace_events"),
    ),
    _kind("drone-ci", "Drone", _needed_secret("token") + _needed("drone_url") + _VERIFIED, _TAGGED_BUILD),
    _kind(
        "jenkins",
        "Jenkins",
        _needed("jenkins_url", "project_name") + _CREDENTIALS + _VERIFIED,
        _TAGGED_BUILD,
    ),
    _kind("teamcity", "TeamCity", _needed("teamcity_url", "build_type") + _CREDENTIALS + _VERIFIED, _BUILD),
    _kind(
        "packagist",
        "Packagist",
        _needed("username") + _needed_secret("token") + _text("server"),
        _TAGGED_BUILD,
    ),
    _kind("harbor", "Harbor", _needed("url", "project_name", "username") + _needed_secret("password")),
    _kind(
        "google-play",
        "Google Play",
        _needed("package_name")
        + _needed_secret("service_account_key")
        + _needed("service_account_key_file_name")
        + _flag("google_play_protected_refs"),
    ),
    _kind(
        "apple-app-store",
        "Apple App Store Connect",
        _needed("app_store_issuer_id", "app_store_key_id")
        + _needed_secret("app_store_private_key")
        + _needed("app_store_private_key_file_name")
        + _flag("app_store_protected_refs"),
    ),
    # Others.
    _kind("confluence", "Confluence Workspace", _needed("confluence_url")),
    _kind("external-wiki", "External wiki", _needed("external_wiki_url")),
    _kind("git-guardian", "GitGuardian", _needed_secret("token")),
    _kind("github", "GitHub", _needed_secret("token") + _needed("repository_url") + _flag("static_context")),
)

#: All integrations by their identifier.
CATALOGUE: Mapping[str, IntegrationKind] = MappingProxyType({kind.slug: kind for kind in _KINDS})
