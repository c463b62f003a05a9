"""Faults of the parameters of integrations: what they accept, what they store, and their defaults."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, bodies, breaking, handling, refusing, sent
from conformance.proof.written.integrations import name_at, registered
from conformance.reference.areas import integration_catalogue
from conformance.reference.errors import InvalidError
from conformance.reference.http import Response, ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.proof.faults import Apply
    from conformance.reference import Service
    from conformance.reference.areas.integrations import Integration
    from conformance.reference.http import Request

_PARAMETERS = {
    "webhook": "webhook.text",
    "token": "token.text",
    "username": "credentials.text",
    "password": "credentials.text",
    "channel": "channel.text",
    "labels_to_be_notified": "labels-to-be-notified.text",
    "issues_url": "issue-tracker-urls.text",
    "recipients": "recipients.text",
    "wiki_page_channel": "event-channels.text",
    "restrict_to_branch": "restrict-to-branch.text",
    "enable_ssl_verification": "enable-ssl-verification.boolean",
    "notify_only_broken_pipelines": "notify-only-broken-pipelines.boolean",
    "alert_events": "event-flags.boolean",
    "commit_events": "event-flags.boolean",
    "comment_on_event_enabled": "comment-on-event-enabled.boolean",
    "active": "active.boolean",
    "disable_diffs": "disable-diffs.boolean",
    "send_from_committer_email": "send-from-committer-email.boolean",
    "colorize_messages": "colorize-messages.boolean",
    "server_port": "server-port.integer",
    "branches_to_be_notified": "branches-to-be-notified.values",
    "labels_to_be_notified_behavior": "labels-to-be-notified-behavior.values",
}
_EVENTS = {
    "incidents_events": "events.flags.incidents",
    "vulnerability_events": "events.flags.vulnerability",
    "group_mentions_events": "events.flags.group-mentions",
    "group_confidential_mentions_events": "events.flags.group-confidential-mentions",
}
_ALL = {name: f"integrations.parameters.{rest}" for name, rest in _PARAMETERS.items()} | _EVENTS
_FOLLOWED = "integrations.parameters.comment-on-event-enabled.followed"


def set_up_key(service: Service) -> str:
    """Return the key of the operation that sets integrations up."""
    return f"PUT {name_at(service)}/:slug"


def is_wrong(value: Any) -> bool:
    """Tell whether the tests send a value that no service could accept as valid."""
    return isinstance(value, dict | list) or value in ("maybe", "abc", "conformance-no-such-choice")


# -- accepted values ---------------------------------------------------------------------------------------------------


def refuses(name: str) -> Apply:
    """Refuse a valid value of a setting that the integration does not require."""

    def is_optional(service: Service, request: Request) -> bool:
        kind = service.integrations.kind(request.path["slug"])
        return not any(one.name == name and one.required for one in kind.parameters)

    def breaks(service: Service) -> None:
        refusing(
            service,
            set_up_key(service),
            lambda request: sent(request).get(name) is not None and is_optional(service, request),
            lambda: InvalidError(f"{name} is not taken", parameter=name),
        )

    return breaks


def breaks_on_wrong(name: str) -> Apply:
    """Answer an invalid value with a server error."""
    return lambda service: breaking(service, set_up_key(service), lambda request: is_wrong(sent(request).get(name)))


def stores_wrong(name: str) -> Apply:
    """Store an invalid value, and show it."""
    is_flag = name in integration_catalogue.EVENT_FLAGS

    def breaks(service: Service) -> None:
        kept: dict[Any, Any] = {}

        def make(handler: Any) -> Any:
            def store(request: Request) -> Response:
                value, place = sent(request).get(name), (request.project.id, request.path["slug"])
                if is_wrong(value):
                    kept[place] = value
                    return ok({})
                kept.pop(place, None)
                return handler(request)

            return store

        def shown(own: Any, integration: Any) -> Any:
            place = integration.project_id, integration.slug
            return {**own, name: kept[place]} if place in kept and (not is_flag or name in own) else None

        handling(service, set_up_key(service), make)
        afterwards(service.integrations, "event_flags" if is_flag else "shown_settings", shown)
        if name == "active":
            afterwards(service.integrations, "present_settings", shown)

    return breaks


def refuses_and_stores(name: str, value: bool) -> Apply:
    """Refuse a word that is not boolean, but store true or false."""

    def breaks(service: Service) -> None:
        def make(handler: Any) -> Any:
            def lenient(request: Request) -> Response:
                if sent(request).get(name) != "maybe":
                    return handler(request)
                request.body = json.dumps({**sent(request), name: value}).encode()
                handler(request)
                return Response(400)

            return lenient

        handling(service, set_up_key(service), make)

    return breaks


def ignores(name: str, *, only_in: str = "") -> Apply:
    """Accept a parameter, but never store it; `only_in` names the one integration that does so."""

    def stored(values: Any, kind: Any, _: object) -> Any:
        is_meant = only_in in ("", kind.slug)
        return {other: value for other, value in values.items() if other != name} if is_meant else None

    return lambda service: afterwards(service.integrations, "read", stored)


for _name, _requirement in _ALL.items():
    if _name not in ("webhook", "token", "issues_url", "recipients", "password", "active"):
        registered(refuses(_name), f"{_name}_is_refused", _requirement)
    if _name not in ("branches_to_be_notified", "labels_to_be_notified_behavior"):
        registered(breaks_on_wrong(_name), f"a_wrong_{_name}_breaks", _requirement)
    registered(stores_wrong(_name), f"a_wrong_{_name}_is_stored", _requirement.replace(".values", ".closed"))
for _name in ("push_events", "alert_events", "incidents_events", "disable_diffs"):
    for _value in (True, False):
        registered(
            refuses_and_stores(_name, _value),
            f"a_wrong_{_name}_is_refused_and_stored_as_{str(_value).lower()}",
            _ALL.get(_name, "integrations.parameters.event-flags.boolean"),
        )
for _name, _requirement in {
    **_EVENTS,
    "comment_on_event_enabled": _FOLLOWED,
    "tag_push_events": "integrations.parameters.event-flags.boolean",
    "push_events": "integrations.update.followed",
    "disable_diffs": _ALL["disable_diffs"],
    "server_port": _ALL["server_port"],
    "branches_to_be_notified": _ALL["branches_to_be_notified"],
    "labels_to_be_notified_behavior": _ALL["labels_to_be_notified_behavior"],
    "channel": _ALL["channel"],
    "labels_to_be_notified": _ALL["labels_to_be_notified"],
    "note_channel": "integrations.parameters.event-channels.text",
}.items():
    registered(ignores(_name), f"{_name}_is_passed_over", _requirement)
for _name, _requirement in {
    "push_events": "integrations.parameters.event-flags.boolean",
    "note_events": "integrations.parameters.event-flags.boolean",
    "channel": _ALL["channel"],
    "note_channel": "integrations.parameters.event-channels.text",
}.items():
    registered(ignores(_name, only_in="mattermost"), f"{_name}_is_passed_over_by_mattermost", _requirement)


# -- required settings -------------------------------------------------------------------------------------------------


def not_required(service, *names):
    """Let an integration work without some settings."""
    require = service.integrations.require_settings
    service.integrations.require_settings = lambda kind, values: require(kind, {**dict.fromkeys(names, "x"), **values})


@fault("integrations.parameters.webhook.required")
def webhook_is_optional(service):
    """Webhook is optional."""
    not_required(service, "webhook")


@fault("integrations.parameters.token.required")
def token_is_optional(service):
    """Token is optional."""
    not_required(service, "token")


@fault("integrations.parameters.recipients.required")
def recipients_are_optional(service):
    """Recipients are optional."""
    not_required(service, "recipients")


@fault("integrations.parameters.issue-tracker-urls.required-together")
def one_address_of_a_tracker_is_optional(service):
    """One address of a tracker is optional."""
    not_required(service, "project_url")


@fault("integrations.parameters.webhook.required")
def refused_without_webhook_and_listed_all_the_same(service):
    """A set-up without webhook is refused, but listed."""
    set_up = service.integrations.set_up

    def half(project, kind, values, *, active=None):
        try:
            return set_up(project, kind, values, active=active)
        except InvalidError:
            service.integrations.keep(project, kind, values, active=True)
            raise

    service.integrations.set_up = half


def _optional_beside_a_flag(name: str, requirement: str) -> None:
    """Register a fault: a required setting may be missing where a flag of an event is sent."""

    def breaks(service: Service) -> None:
        require = service.integrations.require_settings

        def lenient(kind: Any, values: Any) -> None:
            has_flag = any(each.endswith("_events") for each in values)
            require(kind, {**({name: "x"} if has_flag else {}), **values})

        service.integrations.require_settings = lenient  # type: ignore[method-assign] # that is what a fault does

    registered(breaks, f"{name}_may_be_missing_beside_a_flag", requirement)


for _name in ("webhook", "token", "recipients"):
    _optional_beside_a_flag(_name, f"integrations.parameters.{_name}.required")


@fault("integrations.parameters.issue-tracker-urls.text")
def addresses_end_with_their_path(service):
    """What follows the path of an address, a query or a fragment, is cut off."""
    read = service.integrations.read

    def cut(kind, parameters):
        return {
            name: value.partition("?")[0].partition("#")[0] if name.endswith("_url") else value
            for name, value in read(kind, parameters).items()
        }

    service.integrations.read = cut


@fault("integrations.parameters.issue-tracker-urls.text")
def addresses_lose_their_fragment(service):
    """The fragment of an address is cut off."""
    read = service.integrations.read

    def cut(kind, parameters):
        return {
            name: value.partition("#")[0] if name.endswith("_url") else value
            for name, value in read(kind, parameters).items()
        }

    service.integrations.read = cut


# -- stored values and defaults ----------------------------------------------------------------------------------------


@fault("integrations.update.followed")
def flags_that_are_on_are_lost_at_the_set_up(service):
    """Flags that are sent on when an integration is set up are dropped, and those sent by a change are not."""
    set_up = service.integrations.set_up

    def without_flags(project, kind, values, *, active=None):
        before = service.integrations.known.get((project.id, kind.slug))
        if before is None or not before.active:
            values = {name: value for name, value in values.items() if value is not True}
        return set_up(project, kind, values, active=active)

    service.integrations.set_up = without_flags


@fault("integrations.parameters.recipients.text")
def the_first_recipient_is_the_only_one(service):
    """Of several recipients the first is kept."""

    def first_alone(values, *_):
        recipients = str(values.get("recipients", "")).replace(",", " ").split()
        return {**values, "recipients": recipients[0]} if recipients else values

    afterwards(service.integrations, "read", first_alone)


@fault("integrations.parameters.channel.text")
def a_channel_is_never_changed(service):
    """A channel is never changed."""
    keep = service.integrations.keep

    def first(project, kind, values, *, active):
        before = service.integrations.known.get((project.id, kind.slug))
        kept = {k: v for k, v in (before.values if before else {}).items() if k == "channel"}
        return keep(project, kind, {**values, **kept}, active=active)

    service.integrations.keep = first


@fault("integrations.parameters.labels-to-be-notified.text")
def labels_cannot_be_blanked(service):
    """Labels cannot be cleared by a blank value."""
    read = service.integrations.read
    service.integrations.read = lambda kind, parameters: {k: v for k, v in read(kind, parameters).items() if v != ""}


def texts_kept(service: Service, name: str, altered: Callable[[str], str]) -> None:
    """Keep a text that is sent for a setting in another form."""
    afterwards(
        service.integrations,
        "read",
        lambda values, *_: {**values, name: altered(values[name])} if values.get(name) else values,
    )


@fault("integrations.parameters.channel.text")
def channels_lose_what_is_between_their_words(service):
    """The spaces within a channel are lost."""
    texts_kept(service, "channel", lambda text: text.replace(" ", ""))


@fault("integrations.parameters.labels-to-be-notified.text")
def labels_lose_their_foreign_letters(service):
    """Letters beyond ASCII are left out of labels."""
    texts_kept(service, "labels_to_be_notified", lambda text: text.encode("ascii", "ignore").decode())


@fault("integrations.parameters.channel.text")
def channels_end_before_a_rare_sign(service):
    """A channel ends before the first sign beyond the first 65536."""
    texts_kept(service, "channel", lambda text: "".join(takewhile(lambda sign: ord(sign) < 1 << 16, text)))


@fault("integrations.parameters.restrict-to-branch.text")
def branches_are_parted_by_spaces(service):
    """The commas between several branches become spaces."""
    texts_kept(service, "restrict_to_branch", lambda text: text.replace(",", " "))


@fault("integrations.parameters.notify-only-default-branch.harmless")
def the_deprecated_switch_breaks(service):
    """Sending notify_only_default_branch, which is deprecated, causes a server error."""
    breaking(service, set_up_key(service), lambda request: "notify_only_default_branch" in sent(request))


def default(name, value, requirement, slugs=None, where="in_mails"):
    """Register a fault: a parameter that was never sent shows another value than the default."""

    def breaks(service):
        def other(shown, integration):
            unset = name in shown and name not in integration.values and (slugs is None or integration.slug in slugs)
            return {**shown, name: value} if unset else None

        afterwards(service.integrations, "shown_settings", other)

    registered(breaks, f"{name}_is_{value}_by_default".lower() + (f"_{where}" if slugs else ""), requirement)


default("enable_ssl_verification", False, "integrations.parameters.enable-ssl-verification.default")
default("branches_to_be_notified", "all", "integrations.parameters.branches-to-be-notified.default")
default(
    "branches_to_be_notified",
    "default",
    "integrations.parameters.branches-to-be-notified.default-of-emails-on-push",
    ("emails-on-push",),
)
default("labels_to_be_notified_behavior", "match_all", "integrations.parameters.labels-to-be-notified-behavior.default")
# The first of those that have such a parameter is as it should be.
default(
    "labels_to_be_notified_behavior",
    "match_all",
    "integrations.parameters.labels-to-be-notified-behavior.default",
    ("mattermost",),
    "in_one_of_the_chats",
)
default(
    "enable_ssl_verification",
    False,
    "integrations.parameters.enable-ssl-verification.default",
    ("teamcity",),
    "in_one_of_the_builders",
)


def _of_mails(slug: str) -> bool:
    return slug in ("emails-on-push", "pipelines-email")


@fault("integrations.parameters.branches-to-be-notified.closed")
def mails_take_any_choice_of_branches(service: Service) -> None:
    """Integrations that send mail store any text as branches_to_be_notified; those for chats refuse it."""
    stored: dict[Any, str] = {}

    def make(handler: Any) -> Any:
        def storing(request: Request) -> Response:
            body, place = sent(request), (request.project.id, request.path["slug"])
            stored.pop(place, None)
            if _of_mails(place[1]) and isinstance(choice := body.pop("branches_to_be_notified", None), str):
                stored[place] = choice
                request.body = json.dumps(body).encode()
            return handler(request)

        return storing

    def shown(own: Any, integration: Any) -> Any:
        place = integration.project_id, integration.slug
        return {**own, "branches_to_be_notified": stored[place]} if place in stored else None

    handling(service, set_up_key(service), make)
    afterwards(service.integrations, "shown_settings", shown)


@fault("integrations.parameters.restrict-to-branch.text")
def restriction_to_branches_is_lost(service: Service) -> None:
    """What is sent as restrict_to_branch is accepted, and stored as a blank text."""
    bodies(
        service,
        set_up_key(service),
        lambda body: {**body, "restrict_to_branch": ""} if isinstance(body.get("restrict_to_branch"), str) else body,
    )


@fault(_FOLLOWED)
def comments_are_off_when_commits_are(service: Service) -> None:
    """Comments on events are switched off together with the event for commits."""
    bodies(
        service,
        set_up_key(service),
        lambda body: {**body, "comment_on_event_enabled": False} if body.get("commit_events") is False else body,
    )


def _is_set_up(before: Integration | None) -> bool:
    """Tell whether an integration has settings: one that was disabled has none, and may still be known."""
    return before is not None and bool(before.values)


@fault("integrations.parameters.active.default")
def an_issue_tracker_needs_to_be_told_whether_it_is_active(service):
    """An issue tracker that was not set up before can be set up only with active."""
    becomes_active = service.integrations.becomes_active

    def required(kind, before, wanted):
        if kind.switchable and wanted is None and not _is_set_up(before):
            raise InvalidError("active is missing", parameter="active")
        return becomes_active(kind, before, wanted)

    service.integrations.becomes_active = required


@fault("integrations.parameters.active.default")
def setting_up_an_issue_tracker_without_active_breaks(service):
    """Setting up a new issue tracker without active causes a server error."""
    becomes_active = service.integrations.becomes_active

    def crashing(kind, before, wanted):
        if kind.switchable and wanted is None and not _is_set_up(before):
            raise RuntimeError("nothing says whether it is active")
        return becomes_active(kind, before, wanted)

    service.integrations.becomes_active = crashing
