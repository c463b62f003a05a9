"""Faults of integrations: setting up, updating, disabling, and what their parameters take."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.reference.areas import integration_catalogue
from conformance.reference.errors import InvalidError
from conformance.reference.http import Response, ok
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service

NEWER, OLDER = "/projects/:id/integrations", "/projects/:id/services"


def registered(apply: Any, requirement: str) -> None:
    """Register a fault that is made for one of several parameters; its name says what the faulty service does."""
    apply.__doc__ = apply.__doc__ or f"{apply.__name__.strip('_').replace('_', ' ').capitalize()}."
    fault(requirement)(apply)


def answering(service: Service, key: str, alter, *, when=lambda response: response.status < 300) -> None:
    """Replace or alter the answers of one route."""

    def transform(route, request, response):
        if route.key == key and when(response):
            return alter(request, response) or response
        return response

    service.transformers.append(transform)


# -- life ----------------------------------------------------------------------------------------------------------


@fault("integrations.set-up.accepted")
def setting_up_is_redirected(service):
    """Setting up is redirected."""
    answering(service, f"PUT {NEWER}/:slug", lambda q, r: Response(303, headers={"location": "/"}))


@fault("integrations.set-up.listed")
def set_up_ones_stay_inactive(service):
    """Set up ones stay inactive."""
    service.integrations.becomes_active = lambda kind, before, wanted: bool(before and before.active)


@fault("integrations.update.followed")
def a_change_is_not_stored(service):
    """A change is not stored."""
    keep = service.integrations.keep

    def first_only(project, kind, values, *, active):
        found = service.integrations.known.get((project.id, kind.slug))
        return found if found and found.active else keep(project, kind, values, active=active)

    service.integrations.keep = first_only


@fault("integrations.update.same-entry")
def a_change_makes_a_new_number(service):
    """A change makes a new number."""
    keep = service.integrations.keep

    def anew(project, kind, values, *, active):
        made = keep(project, kind, values, active=active)
        service.integrations.known[project.id, kind.slug] = replace(made, id=service.store.next_id("integrations"))
        return service.integrations.known[project.id, kind.slug]

    service.integrations.keep = anew


@fault("integrations.update.leaves-others")
def a_change_switches_push_events_of_the_others(service):
    """A change switches push events of the others."""
    keep = service.integrations.keep

    def all_of_them(project, kind, values, *, active):
        for key, other in list(service.integrations.known.items()):
            if key[0] == project.id and key[1] != kind.slug and "push_events" in values:
                changed = {**other.values, "push_events": values["push_events"]}
                service.integrations.known[key] = replace(other, values=MappingProxyType(changed))
        return keep(project, kind, values, active=active)

    service.integrations.keep = all_of_them


@fault("integrations.update.leaves-others")
def disabling_one_disables_all_of_the_project(service):
    """Disabling one disables all of the project."""
    disable = service.integrations.disable

    def every(project, slug):
        for key in [key for key in service.integrations.known if key[0] == project.id]:
            disable(project, key[1])

    service.integrations.disable = every


@fault("integrations.belong-to-their-project")
def disabling_hits_every_project(service):
    """Disabling hits every project."""
    disable = service.integrations.disable

    def every(project, slug):
        for key, other in list(service.integrations.known.items()):
            if key[1] == slug and key[0] != project.id and slug in ("slack", "asana"):
                service.integrations.known[key] = replace(other, active=False)
        disable(project, slug)

    service.integrations.disable = every


@fault("integrations.belong-to-their-project")
def setting_up_hits_every_project(service):
    """Setting up hits every project."""
    keep = service.integrations.keep

    def every(project, kind, values, *, active):
        for key, other in list(service.integrations.known.items()):
            if key[1] == kind.slug and key[0] != project.id:
                service.integrations.known[key] = replace(other, values=MappingProxyType({**other.values, **values}))
        return keep(project, kind, values, active=active)

    service.integrations.keep = every


@fault("integrations.disable.accepted")
def disabling_answers_a_server_error(service):
    """Disabling answers a server error."""
    answering(service, f"DELETE {NEWER}/:slug", lambda q, r: ok({}, 500))


@fault("integrations.disable.unlisted")
def disabling_does_nothing(service):
    """Disabling does nothing."""
    service.integrations.disable = lambda project, slug: None


@fault("integrations.disable.settings-reset")
def disabling_keeps_the_settings(service):
    """Disabling keeps the settings."""

    def disable(project, slug):
        key = (project.id, slug)
        service.integrations.find(project, slug)
        service.integrations.known[key] = replace(service.integrations.known[key], active=False)

    service.integrations.disable = disable


@fault("integrations.disable.settings-stay-reset")
def settings_come_back(service):
    """Settings come back."""
    disable, keep = service.integrations.disable, service.integrations.keep
    attic: dict[Any, Any] = {}

    def away(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found and found.values:
            attic[project.id, slug] = found.values
        disable(project, slug)

    def back(project, kind, values, *, active):
        return keep(project, kind, {**attic.get((project.id, kind.slug), {}), **values}, active=active)

    service.integrations.disable, service.integrations.keep = away, back


@fault("integrations.disable.set-up-again")
def once_disabled_for_ever(service):
    """Once disabled for ever."""
    gone: set[Any] = set()
    disable, set_up = service.integrations.disable, service.integrations.set_up

    def away(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found and found.active and found.slug == "slack":
            gone.add((project.id, slug))
        disable(project, slug)

    def refused(project, kind, values, *, active=None):
        if (project.id, kind.slug) in gone:
            raise InvalidError("it is gone")
        return set_up(project, kind, values, active=active)

    service.integrations.disable, service.integrations.set_up = away, refused


@fault("integrations.disable.repeated")
def disabling_twice_breaks(service):
    """Disabling twice breaks."""
    disable = service.integrations.disable

    def once(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found is not None and not found.active and not found.values:
            raise RuntimeError
        disable(project, slug)

    service.integrations.disable = once


@fault("integrations.disable.repeated")
def disabling_what_is_off_disables_the_rest(service):
    """Disabling what is off disables the rest."""
    disable = service.integrations.disable

    def rest(project, slug):
        found = service.integrations.known.get((project.id, slug))
        if found is not None and not found.active:
            for key in [key for key in service.integrations.known if key[0] == project.id]:
                disable(project, key[1])
        disable(project, slug)

    service.integrations.disable = rest


# -- unknown things ------------------------------------------------------------------------------------------------


@fault("integrations.unknown-slug.reading")
def an_unknown_one_is_read_as_blank(service):
    """An unknown one is read as blank."""
    answering(service, f"GET {NEWER}/:slug", lambda q, r: ok({}), when=lambda r: r.status == 404)


@fault("integrations.unknown-slug.setting-up")
def an_unknown_one_is_set_up(service):
    """An unknown one is set up."""
    answering(service, f"PUT {NEWER}/:slug", lambda q, r: ok({}), when=lambda r: r.status == 404)


@fault("integrations.unknown-slug.setting-up")
def an_unknown_one_sets_up_another(service):
    """An unknown one sets up another."""
    kind = service.integrations.kind

    def any_kind(slug):
        try:
            return kind(slug)
        except Exception:
            project = service.identities.projects[service.world.one("project").id]
            service.integrations.keep(project, integration_catalogue.CATALOGUE["github"], {}, active=True)
            raise

    service.integrations.kind = any_kind


@fault("integrations.unknown-slug.disabling")
def disabling_an_unknown_one_breaks(service):
    """Disabling an unknown one breaks."""
    answering(
        service,
        f"DELETE {NEWER}/:slug",
        lambda q, r: ok({}, 500) if q.path["slug"] not in integration_catalogue.CATALOGUE else None,
        when=lambda r: r.status == 404,
    )


@fault("integrations.unknown-project")
def an_unknown_project_has_no_integrations(service):
    """An unknown project has no integrations."""
    answering(service, f"GET {NEWER}", lambda q, r: ok([]), when=lambda r: r.status == 404)


# -- the older name ------------------------------------------------------------------------------------------------


@fault("integrations.alias.list")
def the_older_name_lists_an_object(service):
    """The older name lists an object."""
    answering(service, f"GET {OLDER}", lambda q, r: ok({"integrations": r.content}))


@fault("integrations.alias.lists-the-same")
def the_older_name_forgets_the_last(service):
    """The older name forgets the last."""
    answering(service, f"GET {OLDER}", lambda q, r: ok(r.content[:-1]))


@fault("integrations.alias.read")
def the_older_name_reads_nothing(service):
    """The older name reads nothing."""
    answering(service, f"GET {OLDER}/:slug", lambda q, r: Response(204))


@fault("integrations.alias.reads-the-same")
def the_older_name_shows_less(service):
    """The older name shows less."""
    answering(service, f"GET {OLDER}/:slug", lambda q, r: ok({k: v for k, v in r.content.items() if k != "properties"}))


@fault("integrations.alias.set-up")
def the_older_name_sets_nothing_up(service):
    """The older name sets nothing up."""
    answering(service, f"PUT {OLDER}/:slug", lambda q, r: ok({}, 400))


@fault("integrations.alias.set-up-shows")
def the_older_name_pretends_to_set_up(service):
    """The older name pretends to set up."""
    service.routes.change(f"PUT {OLDER}/:slug", handler=lambda request: ok({}))


@fault("integrations.alias.set-up-shows")
def the_older_name_sets_up_for_anybody_who_reports(service):
    """The older name sets up for anybody who reports."""
    service.routes.change(f"PUT {OLDER}/:slug", least_role=Role.REPORTER)


@fault("integrations.alias.disable")
def the_older_name_breaks_at_disabling(service):
    """The older name breaks at disabling."""
    answering(service, f"DELETE {OLDER}/:slug", lambda q, r: ok({}, 500))


@fault("integrations.alias.disable-shows")
def the_older_name_pretends_to_disable(service):
    """The older name pretends to disable."""
    service.routes.change(f"DELETE {OLDER}/:slug", handler=lambda request: Response(204))


# -- particular ones -----------------------------------------------------------------------------------------------


@fault("integrations.chat-app.not-created")
def the_chat_app_is_created(service):
    """The chat app is created."""
    service.integrations.require_creatable = lambda kind: None


@fault("integrations.chat-app.updated")
def the_chat_app_is_never_changed(service):
    """The chat app is never changed."""
    set_up = service.integrations.set_up

    def refused(project, kind, values, *, active=None):
        if not kind.creatable:
            raise InvalidError("not through the API")
        return set_up(project, kind, values, active=active)

    service.integrations.set_up = refused


def _not_required(service, *names):
    require = service.integrations.require_settings
    service.integrations.require_settings = lambda kind, values: require(kind, {**dict.fromkeys(names, "x"), **values})


@fault("integrations.parameters.webhook.required")
def webhook_is_optional(service):
    """Webhook is optional."""
    _not_required(service, "webhook")


@fault("integrations.parameters.token.required")
def token_is_optional(service):
    """Token is optional."""
    _not_required(service, "token")


@fault("integrations.parameters.recipients.required")
def recipients_are_optional(service):
    """Recipients are optional."""
    _not_required(service, "recipients")


@fault("integrations.parameters.issue-tracker-urls.required-together")
def one_address_of_a_tracker_is_optional(service):
    """One address of a tracker is optional."""
    _not_required(service, "project_url")


@fault("integrations.parameters.webhook.required")
def refused_without_webhook_and_listed_all_the_same(service):
    """Refused without webhook and listed all the same."""
    set_up = service.integrations.set_up

    def half(project, kind, values, *, active=None):
        try:
            return set_up(project, kind, values, active=active)
        except InvalidError:
            service.integrations.keep(project, kind, values, active=True)
            raise

    service.integrations.set_up = half


@fault("integrations.parameters.active.default")
def an_issue_tracker_is_active_at_once(service):
    """An issue tracker is active at once."""
    service.integrations.becomes_active = lambda kind, before, wanted: wanted is not False


@fault("integrations.list.active-only")
def the_list_shows_inactive_ones(service):
    """The list shows inactive ones."""
    service.integrations.active = lambda project: [
        i for i in service.integrations.known.values() if i.project_id == project.id
    ]


@fault("integrations.list.active-only")
def inactive_ones_are_listed_as_active(service):
    """Inactive ones are listed as active."""
    present = service.integrations.present_entry
    service.integrations.active = lambda project: [
        i
        for i in service.integrations.known.values()
        if i.project_id == project.id and (i.active or (i.kind.switchable and i.values))
    ]
    service.integrations.present_entry = lambda integration: {**present(integration), "active": True}


# -- parameters ----------------------------------------------------------------------------------------------------

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


def _body(request) -> dict[str, Any]:
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _refuses(name):
    """A right value that is not in the settings of setting up is refused."""

    def breaks(service):
        handler = service.routes.get(f"PUT {NEWER}/:slug").handler

        def refuse(request):
            sent = _body(request)
            value = sent.get(name)
            required = any(
                p.name == name and p.required for p in service.integrations.kind(request.path["slug"]).parameters
            )
            if value is not None and not required:
                raise InvalidError(f"{name} is not taken", parameter=name)
            return handler(request)

        service.routes.change(f"PUT {NEWER}/:slug", handler=refuse)

    breaks.__name__ = f"{name}_is_refused"
    return breaks


def _breaks_on_wrong(name):
    """A wrong value is answered with a server error."""

    def breaks(service):
        handler = service.routes.get(f"PUT {NEWER}/:slug").handler

        def crash(request):
            wrong = _body(request).get(name)
            if isinstance(wrong, dict | list) or wrong in ("maybe", "abc"):
                return ok({}, 500)
            return handler(request)

        service.routes.change(f"PUT {NEWER}/:slug", handler=crash)

    breaks.__name__ = f"a_wrong_{name}_breaks"
    return breaks


def _stores_wrong(name):
    """A wrong value is stored and shown."""

    def breaks(service):
        handler = service.routes.get(f"PUT {NEWER}/:slug").handler
        kept: dict[Any, Any] = {}

        def store(request):
            sent = _body(request)
            wrong = sent.get(name)
            key = (request.project.id, request.path["slug"])
            if isinstance(wrong, dict | list) or wrong in ("maybe", "abc", "conformance-no-such-choice"):
                kept[key] = wrong
                return ok({})
            kept.pop(key, None)
            return handler(request)

        service.routes.change(f"PUT {NEWER}/:slug", handler=store)
        shown, flags = service.integrations.shown_settings, service.integrations.event_flags

        def settings(integration):
            own = shown(integration)
            key = (integration.project_id, integration.slug)
            return {**own, name: kept[key]} if key in kept and name not in integration_catalogue.EVENT_FLAGS else own

        def all_flags(integration):
            own = flags(integration)
            key = (integration.project_id, integration.slug)
            return {**own, name: kept[key]} if key in kept and name in own else own

        service.integrations.shown_settings, service.integrations.event_flags = settings, all_flags
        present = service.integrations.present_settings
        if name == "active":
            service.integrations.present_settings = lambda i: {
                **present(i),
                "active": kept.get((i.project_id, i.slug), i.active),
            }

    breaks.__name__ = f"a_wrong_{name}_is_stored"
    return breaks


def _truth(name, value):
    """Junk is taken for a truth value."""

    def breaks(service):
        read = service.integrations.read

        def take(kind, parameters):
            if parameters._values.get(name) == "maybe":
                parameters._values = {**parameters._values, name: value}
            return read(kind, parameters)

        service.integrations.read = take

    breaks.__name__ = f"{name}_takes_junk_for_{str(value).lower()}"
    return breaks


for _name, _requirement in _ALL.items():
    if _name not in ("webhook", "token", "issues_url", "recipients", "password", "active"):
        registered(_refuses(_name), _requirement)
    if _name not in ("branches_to_be_notified", "labels_to_be_notified_behavior"):
        registered(_breaks_on_wrong(_name), _requirement)
    registered(_stores_wrong(_name), _requirement.replace(".values", ".closed"))
for _name in ("push_events", "alert_events", "incidents_events", "disable_diffs"):
    for _value in (True, False):
        registered(_truth(_name, _value), _ALL.get(_name, "integrations.parameters.event-flags.boolean"))


def _ignores(name):
    """A parameter is taken and never stored."""

    def breaks(service):
        read = service.integrations.read
        service.integrations.read = lambda kind, parameters: {
            k: v for k, v in read(kind, parameters).items() if k != name
        }

    breaks.__name__ = f"{name}_is_passed_over"
    return breaks


for _name, _requirement in {
    **_EVENTS,
    "comment_on_event_enabled": _FOLLOWED,
    "tag_push_events": "integrations.parameters.event-flags.boolean",
    "push_events": "integrations.update.followed",
    "disable_diffs": _ALL["disable_diffs"],
    "server_port": _ALL["server_port"],
    "branches_to_be_notified": _ALL["branches_to_be_notified"],
    "labels_to_be_notified_behavior": _ALL["labels_to_be_notified_behavior"],
}.items():
    registered(_ignores(_name), _requirement)


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
    """Labels cannot be blanked."""
    read = service.integrations.read
    service.integrations.read = lambda kind, parameters: {k: v for k, v in read(kind, parameters).items() if v != ""}


@fault("integrations.parameters.notify-only-default-branch.harmless")
def the_deprecated_switch_breaks(service):
    """The deprecated switch breaks."""
    handler = service.routes.get(f"PUT {NEWER}/:slug").handler
    service.routes.change(
        f"PUT {NEWER}/:slug", handler=lambda q: ok({}, 500) if "notify_only_default_branch" in _body(q) else handler(q)
    )


def _default(name, value, requirement, slugs=None):
    def breaks(service):
        shown = service.integrations.shown_settings

        def settings(integration):
            own = shown(integration)
            unset = name in own and name not in integration.values and (slugs is None or integration.slug in slugs)
            return {**own, name: value} if unset else own

        service.integrations.shown_settings = settings

    breaks.__name__ = f"{name}_is_{value}_by_default".lower() + ("_in_mails" if slugs else "")
    registered(breaks, requirement)


_default("enable_ssl_verification", False, "integrations.parameters.enable-ssl-verification.default")
_default("branches_to_be_notified", "all", "integrations.parameters.branches-to-be-notified.default")
_default(
    "branches_to_be_notified",
    "default",
    "integrations.parameters.branches-to-be-notified.default-of-emails-on-push",
    ("emails-on-push",),
)
_default(
    "labels_to_be_notified_behavior", "match_all", "integrations.parameters.labels-to-be-notified-behavior.default"
)


# -- entries -------------------------------------------------------------------------------------------------------


def _entry(name, alter, requirement):
    def breaks(service):
        present = service.integrations.present_entry
        service.integrations.present_entry = lambda integration: alter(dict(present(integration)))

    breaks.__name__ = name
    registered(breaks, requirement)


def _drop(name):
    return lambda entry: {key: value for key, value in entry.items() if key != name}


_entry("an_entry_has_no_id", _drop("id"), "integrations.entry.fields")
_entry("a_title_is_null", lambda e: {**e, "title": None}, "integrations.entry.fields")
_entry("an_entry_has_a_date_for_a_time", lambda e: {**e, "updated_at": "2024-05-01"}, "integrations.entry.timestamps")
_entry("an_entry_has_no_alert_events", _drop("alert_events"), "integrations.entry.event-flags")
_entry("an_entry_has_no_alert_events_2", _drop("alert_events"), "events.flags.named-after-kind")
_entry("an_entry_has_no_job_events", _drop("job_events"), "events.flags.job")
_entry(
    "an_entry_has_no_comment_on_event_enabled",
    _drop("comment_on_event_enabled"),
    "integrations.entry.comment-on-event-enabled",
)
_entry(
    "an_entry_has_no_vulnerability_events",
    _drop("vulnerability_events"),
    "integrations.entry.vulnerability-events.enterprise",
)
_entry(
    "vulnerability_events_is_text",
    lambda e: {**e, "vulnerability_events": "false"},
    "integrations.entry.vulnerability-events.boolean",
)


@fault("integrations.list.read")
def the_list_is_an_object(service):
    """The list is an object."""
    answering(service, f"GET {NEWER}", lambda q, r: ok({"integrations": r.content}))


@fault("integrations.list.read")
def the_list_is_gone(service):
    """The list is gone."""
    answering(service, f"GET {NEWER}", lambda q, r: ok({}, 404))


@fault("integrations.list.read")
def the_list_breaks(service):
    """The list breaks."""
    answering(service, f"GET {NEWER}", lambda q, r: ok({}, 500))


@fault("integrations.list.read")
def the_list_comes_with_another_code(service):
    """The list comes with another code."""
    answering(service, f"GET {NEWER}", lambda q, r: ok(r.content, 206))


@fault("integrations.alias.list")
def the_older_list_breaks(service):
    """The older list breaks."""
    answering(service, f"GET {OLDER}", lambda q, r: ok({}, 500))


@fault("integrations.single.read")
def reading_one_breaks(service):
    """Reading one breaks."""
    answering(service, f"GET {NEWER}/:slug", lambda q, r: ok({}, 500))


@fault("integrations.set-up.accepted")
def setting_up_breaks(service):
    """Setting up breaks."""
    answering(service, f"PUT {NEWER}/:slug", lambda q, r: ok({}, 500))


@fault("integrations.set-up.accepted")
def nothing_is_ever_set_up(service):
    """Nothing is ever set up."""
    service.routes.change(f"PUT {NEWER}/:slug", handler=lambda q: ok({}, 404))


@fault("integrations.single.read")
def settings_come_with_another_code(service):
    """Settings come with another code."""
    answering(service, f"GET {NEWER}/:slug", lambda q, r: ok(r.content, 203))


@fault("integrations.single.object")
def settings_come_in_an_array(service):
    """Settings come in an array."""
    answering(service, f"GET {NEWER}/:slug", lambda q, r: ok([r.content]))
