"""Parameters that integrations share: what each takes, what it does not, and what holds unless it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.integrations import (
    borrowed,
    given_set_up,
    has,
    integrations_path,
    least_settings,
    offering,
    set_up,
    settings_of,
    shown,
    slug_of,
    without,
)
from conformance.suite.expectations import Caller, Path, given, must, must_settle, observe, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture

#: Values beyond any coercion to the type that a parameter has.
NO_TEXT: Any = {"conformance": ["no text"]}
NO_FLAG = "maybe"
NO_NUMBER = "abc"
NO_CHOICE = "conformance-no-such-choice"

FLAG = (False, True)
#: From the settings of the profile: a service may ask the other side whether these are good.
AS_IN_SETTINGS = ()


@dataclass(frozen=True)
class Kind:
    """Parameters that one requirement speaks of, values that they take, and one that they do not."""

    requirement: str
    names: tuple[str, ...]
    right: tuple[Any, ...]
    wrong: Any

    @property
    def keeps(self) -> bool:
        """Whether a value that is not taken must leave what is shown as it was."""
        return isinstance(self.wrong, str) and self.wrong != NO_CHOICE

    def __str__(self) -> str:
        return self.requirement


def _text(requirement: str, *names: str, right: tuple[str, ...] = ("conformance-a", "conformance-b")) -> Kind:
    return Kind(f"integrations.parameters.{requirement}.text", names, right, NO_TEXT)


def _flag(requirement: str, *names: str) -> Kind:
    return Kind(f"integrations.parameters.{requirement}.boolean", names, FLAG, NO_FLAG)


EVENTS = (
    "push_events",
    "tag_push_events",
    "merge_requests_events",
    "issues_events",
    "confidential_issues_events",
    "note_events",
    "confidential_note_events",
    "pipeline_events",
    "wiki_page_events",
    "deployment_events",
    "alert_events",
    "commit_events",
)
CHANNELS = (
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
KINDS = (
    _text("webhook", "webhook", right=AS_IN_SETTINGS),
    _text("token", "token", right=AS_IN_SETTINGS),
    _text("credentials", "username", "password", right=AS_IN_SETTINGS),
    _text("channel", "channel"),
    _text("labels-to-be-notified", "labels_to_be_notified", right=("~bug,~feature", "")),
    _text("issue-tracker-urls", "new_issue_url", "issues_url", "project_url", right=AS_IN_SETTINGS),
    _text("recipients", "recipients", right=AS_IN_SETTINGS),
    _text("event-channels", *CHANNELS),
    _text("restrict-to-branch", "restrict_to_branch", right=("main,stable", "")),
    _flag("enable-ssl-verification", "enable_ssl_verification"),
    _flag("notify-only-broken-pipelines", "notify_only_broken_pipelines"),
    _flag("event-flags", *EVENTS),
    _flag("comment-on-event-enabled", "comment_on_event_enabled"),
    _flag("active", "active"),
    _flag("disable-diffs", "disable_diffs"),
    _flag("send-from-committer-email", "send_from_committer_email"),
    _flag("colorize-messages", "colorize_messages"),
    Kind("integrations.parameters.server-port.integer", ("server_port",), (6659, 1234), NO_NUMBER),
    Kind("events.flags.incidents", ("incidents_events",), FLAG, NO_FLAG),
    Kind("events.flags.vulnerability", ("vulnerability_events",), FLAG, NO_FLAG),
    Kind("events.flags.group-mentions", ("group_mentions_events",), FLAG, NO_FLAG),
    Kind("events.flags.group-confidential-mentions", ("group_confidential_mentions_events",), FLAG, NO_FLAG),
)


@dataclass(frozen=True)
class Choice:
    """A parameter with a closed list of values."""

    requirement: str
    name: str
    allowed: tuple[str, ...]
    default: str


CHOICES = (
    Choice(
        "branches-to-be-notified",
        "branches_to_be_notified",
        ("all", "default", "protected", "default_and_protected"),
        "default",
    ),
    Choice("labels-to-be-notified-behavior", "labels_to_be_notified_behavior", ("match_any", "match_all"), "match_any"),
)

every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)


@pytest.fixture
def path(maintainer: Caller, project: Fixture) -> Path:
    return integrations_path(maintainer, project)


# -- types and values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_parameter_takes_values_of_its_type_and_no_others(
    kind: Kind,
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    """Everything that the integration requires is sent along: whether a stored value would do is not stated."""
    with verifies(kind.requirement):
        for integration, names in holders(kind, integrations):
            with borrowed(maintainer, path, integration):
                given_set_up(maintainer, path, integration)
                for name in names:
                    takes(maintainer, path, integration, name, kind)


def holders(kind: Kind, integrations: tuple[Fixture, ...]) -> Iterator[tuple[Fixture, tuple[str, ...]]]:
    """Yield integrations that together have as many of the parameters as the profile allows, each with its own."""
    left = [name for name in kind.names if any(has(integration, name) for integration in integrations)]
    if not left:
        offering(integrations, kind.names[0])
    while left:
        integration = offering(integrations, left[0])
        mine = tuple(name for name in left if has(integration, name))
        left = [name for name in left if name not in mine]
        yield integration, mine


def takes(caller: Caller, path: Path, integration: Fixture, name: str, kind: Kind) -> None:
    """Expect that a parameter takes each right value, shows no older one instead, and takes no wrong value."""
    earlier: list[Any] = []
    for value in kind.right or (settings_of(integration).get(name, f"conformance-{name}"),):
        set_up(caller, path, integration, **{name: value}).must_be_served()
        must_not_show_another(caller, path, integration, name, value, earlier)
        before = shown(caller, path, slug_of(integration), name)
        set_up(caller, path, integration, **{name: kind.wrong}).must_not_break()
        after = shown(caller, path, slug_of(integration), name)
        must(kind.wrong not in after, f"{name} refused or not stored", f"{name} = {kind.wrong!r} is shown")
        if kind.keeps:
            must(after == before, f"{name} as before: {before}", f"{name} = {after}")
        earlier.append(value)


def must_not_show_another(
    caller: Caller,
    path: Path,
    integration: Fixture,
    name: str,
    value: Any,
    earlier: list[Any],
) -> None:
    """
    Expect that a value that was taken is the one that is shown, if one is.

    Secrets may be masked or left out, so of a text only an older one is surely another. A flag that is off may be shown
    as nothing, and one that stays true may be the certificate check of the integration that always checks.
    """
    slug = slug_of(integration)

    def others() -> list[Any]:
        found = shown(caller, path, slug, name)
        tolerated = [value, *([True] if name == "enable_ssl_verification" else []), *([] if value else [None])]
        others = [other for other in found if other in earlier or isinstance(value, bool | int)]
        return [] if value in found else [other for other in others if other not in tolerated]

    must_settle(lambda: not others(), f"{name} = {value!r}, if it is shown", lambda: f"{name} = {others()}")


@every_choice
def test_a_parameter_with_a_closed_list_takes_each_of_its_values_and_no_others(
    choice: Choice,
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    integration, name = offering(integrations, choice.name), choice.name
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies(f"integrations.parameters.{choice.requirement}.values", go_on=True):
            for value in choice.allowed:
                set_up(maintainer, path, integration, **{name: value}).must_be_served()
                others = [other for other in choice.allowed if other != value]
                must_not_show_another(maintainer, path, integration, name, value, others)
        with verifies(f"integrations.parameters.{choice.requirement}.closed"):
            set_up(maintainer, path, integration, **{name: NO_CHOICE}).must_not_break()
            after = shown(maintainer, path, slug_of(integration), name)
            must(NO_CHOICE not in after, f"{name} refused or not stored", f"{name} = {NO_CHOICE} is shown")


def test_comments_on_events_are_switched_as_the_entry_says(
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    integration = offering(integrations, "comment_on_event_enabled")
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies("integrations.parameters.comment-on-event-enabled.followed"):
            for wanted in (False, True):
                set_up(maintainer, path, integration, comment_on_event_enabled=wanted).given_served()
                listed = maintainer.whole_list(path)
                listed.must_contain(slug=slug_of(integration), comment_on_event_enabled=wanted)


def test_the_deprecated_switch_to_the_default_branch_does_no_harm(
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    integration = offering(integrations, "notify_only_default_branch")
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration)
        with verifies("integrations.parameters.notify-only-default-branch.harmless"):
            answers = [
                set_up(maintainer, path, integration, notify_only_default_branch=value).must_not_break()
                for value in FLAG
            ]
        found = shown(maintainer, path, slug_of(integration), "notify_only_default_branch")
        taken = "is refused" if not answers[-1].is_served else "is taken and kept" if True in found else "is taken"
        observe("integrations.parameters.notify-only-default-branch.answer", f"notify_only_default_branch {taken}")


# -- defaults ----------------------------------------------------------------------------------------------------------


@every_choice
def test_a_parameter_with_a_closed_list_has_its_default_unless_it_is_sent(
    choice: Choice,
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    """Mails on push have a default of their own; they are known by their recipients."""
    others = tuple(integration for integration in integrations if not has(integration, "recipients"))
    integration = offering(others, choice.name)
    with verifies(f"integrations.parameters.{choice.requirement}.default"):
        must_default(maintainer, path, integration, choice.name, wanted=choice.default)


def test_mails_on_push_tell_of_all_branches_unless_told_otherwise(
    maintainer: Caller,
    path: Path,
    emails_on_push_integration: Fixture,
) -> None:
    with verifies("integrations.parameters.branches-to-be-notified.default-of-emails-on-push"):
        must_default(maintainer, path, emails_on_push_integration, "branches_to_be_notified", wanted="all")


def test_certificates_are_checked_unless_told_otherwise(
    maintainer: Caller,
    path: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    integration = offering(integrations, "enable_ssl_verification")
    with verifies("integrations.parameters.enable-ssl-verification.default"):
        must_default(maintainer, path, integration, "enable_ssl_verification", wanted=True)


def must_default(caller: Caller, path: Path, integration: Fixture, name: str, *, wanted: str | bool) -> None:
    """Expect that a parameter that was not sent shows its default, or nothing until somebody sets it."""
    slug = slug_of(integration)
    with borrowed(caller, path, integration):
        for _ in range(2):
            caller.put(path / slug, without(least_settings(integration), name)).given_served()
            caller.whole_list(path).the(slug=slug)
            found = shown(caller, path, slug, name)
            given(bool(found), f"{slug} does not show {name}")
            others = [value for value in found if value not in (wanted, None, "")]
            must(not others, f"{name} = {wanted!r}", f"{name} = {others}")
