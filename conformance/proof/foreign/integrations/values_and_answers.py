"""What settings of an integration accept, what is stored, and what responses and versions show."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import with_parameters
from conformance.proof.foreign.dimensions import COUNT, FORM_SENT, MOMENT_OR_ADDRESS, NEIGHBOUR, STORY, VERSIONS
from conformance.proof.foreign.paths import BOTH_NAMES, SERVICES
from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.areas.integration_catalogue import CATALOGUE, EVENT_FLAGS
from conformance.reference.errors import StatedError
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference import Service

_LARGEST_PORT = 32_767


def _reading_otherwise(service: Service, change: Any) -> None:
    """Alter the values that were read from an update of an integration with `change`."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        change(values)
        return values


# -- the list ----------------------------------------------------------------------------------------------------------


@foreign(STORY, "Integration list entry")
def integrations_have_the_title_of_another(service: Service) -> None:
    """Integrations are listed with their own slug and the title of another one."""

    @handling(service, "GET /projects/:id/integrations", "GET /projects/:id/services")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        titles = [entry["title"] for entry in answer.content]
        for entry, title in zip(answer.content, titles[1:] + titles[:1], strict=True):
            entry["title"] = title
        return answer


@foreign(MOMENT_OR_ADDRESS, "Integration list entry: timestamps")
def integrations_are_of_a_month_that_is_none(service: Service) -> None:
    """updated_at of integrations has a thirteenth month."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "updated_at": "2024-13-45T99:99:99Z"}


@foreign(COUNT, "Integrations: list")
def two_integrations_are_listed_at_most(service: Service) -> None:
    """The list shows only the two newest integrations of a project."""

    @instead(service.integrations, "active")
    def _(active: Any, project: Any) -> Any:
        return active(project)[-2:]


@foreign(MOMENT_OR_ADDRESS, "Integration list entry: timestamps")
def integrations_were_made_on_day_zero(service: Service) -> None:
    """created_at of integrations has the day 0 of a month."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "created_at": "2024-02-00T00:00:00Z"}


@foreign(VERSIONS, "Integrations: vulnerability_events since 16.4", version="16.10")
def versions_are_compared_as_texts(service: Service) -> None:
    """Whether a list entry has vulnerability_events depends on a comparison of texts, where 16.10 comes before 16.4."""

    @instead(service.integrations, "has_vulnerability_events")
    def _(has: Any) -> bool:
        return has() and str(service.version) >= "16.4"


@foreign(VERSIONS, "Integrations: the alias lists active ones only")
def the_alias_lists_disabled_ones(service: Service) -> None:
    """The older path also lists disabled integrations."""

    @handling(service, f"GET {SERVICES}")
    def _(_handler: Any, request: Any) -> Any:
        area = service.integrations
        mine = [one for key, one in area.known.items() if key[0] == request.project.id]
        return request.collection(mine, area.present_entry)


@foreign(VERSIONS, "Versioning: 16.4, vulnerability_events")
def vulnerabilities_are_never_notified(service: Service) -> None:
    """vulnerability_events is shown and can be sent, but stays false."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, integration: Any) -> Any:
        return {**flags(integration), "vulnerability_events": False}


@foreign(STORY, "Integration list entry: slug")
def slugs_are_shown_with_underscores(service: Service) -> None:
    """The list shows slugs with underscores where calls need dashes."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        return {**present(integration), "slug": integration.slug.replace("-", "_")}


# The slug of an entry is the identifier in the path of the integration.
@foreign(STORY, "Integrations: slug of list entries")
def slugs_are_listed_with_underscores(service: Service) -> None:
    """The list has the internal name of an integration: emails_on_push for emails-on-push."""

    @handling(service, *(f"GET {path}" for path in BOTH_NAMES))
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        for entry in answer.content:
            entry["slug"] = entry["slug"].replace("-", "_")
        return answer


# Nothing is updated before it is created.
@foreign(MOMENT_OR_ADDRESS, "Integration list entry: created_at")
def integrations_are_created_in_another_time_zone(service: Service) -> None:
    """created_at is local time marked as UTC, two hours after updated_at."""

    @instead(service.integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        moment = integration.created_at + timedelta(hours=2)
        return {**present(integration), "created_at": service.present.timestamp(moment)}


# The list uses the index for sending notifications.
@foreign(COUNT, "Integrations: GET /projects/:id/integrations, active integrations")
def an_integration_that_is_told_of_nothing_is_not_listed(service: Service) -> None:
    """An active integration disappears from the list when all its kinds of events are switched off."""
    integrations = service.integrations

    def listens(integration: Any) -> bool:
        kinds = integrations.event_parameters(integration.kind)
        return not kinds or any(integration.values.get(name, True) for name in kinds)

    @instead(integrations, "active")
    def _(active: Any, project: Any) -> Any:
        return [integration for integration in active(project) if listens(integration)]


# A project without integrations has an empty list of them.
@foreign(COUNT, "Integrations: GET")
def a_list_that_became_empty_is_not_found(service: Service) -> None:
    """Once the last integration is disabled, the list is answered with 404."""
    integrations = service.integrations

    @handling(service, "GET /projects/:id/integrations", "GET /projects/:id/services")
    def _(handler: Any, request: Any) -> Any:
        known = any(key[0] == request.project.id for key in integrations.known)
        if known and not integrations.active(request.project):
            raise StatedError(404, "404 Not Found")
        return handler(request)


# 16.10 came after 16.4.
@foreign(VERSIONS, "Integration list entry: vulnerability_events, 16.4", version="16.10")
def releases_are_compared_as_texts(service: Service) -> None:
    """Version 16.10 counts as older than 16.4, and has no vulnerability_events."""
    service.integrations.has_vulnerability_events = lambda: (  # type: ignore[method-assign]
        service.choices.enterprise and str(service.version) >= "16.4"
    )


# Nothing is changed before it exists.
@foreign(MOMENT_OR_ADDRESS, "Integration list entry: created_at, updated_at")
def integrations_are_made_in_local_time(service: Service) -> None:
    """created_at is local time, two hours ahead, but marked as UTC like updated_at."""
    integrations = service.integrations

    @instead(integrations, "present_entry")
    def _(present: Any, integration: Any) -> Any:
        local = integration.created_at + timedelta(hours=2)
        return {**present(integration), "created_at": service.present.timestamp(local)}


@foreign(COUNT, "Integrations: GET, two whose titles begin alike", version="16.4")
def of_two_integrations_of_one_maker_one_is_listed(service: Service) -> None:
    """If two active integrations have titles with the same first word, only the older one is listed."""

    @instead(service.integrations, "active")
    def _(active: Any, project: Any) -> Any:
        found: dict[str, Any] = {}
        for integration in active(project):
            found.setdefault(integration.kind.title.split()[0], integration)
        return list(found.values())


# -- setting up --------------------------------------------------------------------------------------------------------


# A text is stored as it was sent.
@foreign(NEIGHBOUR, "Integrations: channels")
def channels_lose_their_capitals(service: Service) -> None:
    """The names of channels are stored in lower case."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        channels = {name: value for name, value in values.items() if "channel" in name and isinstance(value, str)}
        small = {name: value.lower() for name, value in channels.items()}
        return keep(project, kind, {**values, **small}, **more)


# Both values are allowed wherever the parameter exists.
@foreign(NEIGHBOUR, "Integrations: labels_to_be_notified_behavior, match_all")
def one_chat_matches_any_label_whatever_it_is_told(service: Service) -> None:
    """The second chat with labels stores match_any when match_all is sent."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if kind.slug == "mattermost" and "labels_to_be_notified_behavior" in found:
            found["labels_to_be_notified_behavior"] = "match_any"
        return found


# The longest of the four values is allowed too.
@foreign(NEIGHBOUR, "Integrations: branches_to_be_notified, default_and_protected")
def mail_about_pipelines_knows_no_two_sorts_of_branches(service: Service) -> None:
    """Pipeline emails store default when default_and_protected is sent."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if kind.slug == "pipelines-email" and found.get("branches_to_be_notified") == "default_and_protected":
            found["branches_to_be_notified"] = "default"
        return found


# The older name is an alias of the newer one, for all parameters.
@foreign(FORM_SENT, "Integrations: the alias")
def the_older_name_takes_no_flags(service: Service) -> None:
    """Event flags are ignored when an integration is set up by the older name."""

    @handling(service, "PUT /projects/:id/services/:slug")
    def _(handler: Any, request: Any) -> Any:
        with_parameters(request, dict.fromkeys(EVENT_FLAGS))
        return handler(request)


@foreign(STORY, "Integrations: issues_url, string")
def ampersands_of_settings_are_escaped(service: Service) -> None:
    """Texts are HTML-escaped before they are stored: an address with two query parameters changes."""

    @instead(service.integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        safe = {
            name: html.escape(value, quote=False) if isinstance(value, str) else value for name, value in values.items()
        }
        return set_up(project, kind, safe, active=active)


# Each kind of event has its own channel, named after the kind.
@foreign(NEIGHBOUR, "Integrations: pipeline_channel")
def pipelines_go_where_notes_go(service: Service) -> None:
    """The channel that is sent for pipelines is stored as that of notes."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        kept = dict(values)
        if kept.get("pipeline_channel"):
            kept["note_channel"] = kept.pop("pipeline_channel")
        return keep(project, kind, kept, **more)


@foreign(VERSIONS, "Integrations: the alias; the chat app cannot be created")
def the_alias_creates_the_chat_app(service: Service) -> None:
    """The chat app, which must be installed elsewhere, can be created by the older path."""

    @handling(service, f"PUT {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        area = service.integrations
        kind = area.kind(request.path["slug"])
        if not kind.creatable and (request.project.id, kind.slug) not in area.known:
            area.keep(request.project, kind, {}, active=True)
        return handler(request)


@foreign(COUNT, "Integrations: new_issue_url, issues_url and project_url are required together")
def the_last_required_setting_is_not_required(service: Service) -> None:
    """The last of several required settings can be left out."""

    @instead(service.integrations, "require_settings")
    def _(require: Any, kind: Any, values: Any) -> None:
        needed = [one.name for one in kind.parameters if one.required]
        if len(needed) > 1:
            values = {needed[-1]: "set", **values}
        require(kind, values)


# A regular expression whose dot does not match a line end.
@foreign(COUNT, "Integrations: recipients")
def recipients_end_with_the_first_line(service: Service) -> None:
    """Of recipients on separate lines, only the first one is stored."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        lines = str(values.get("recipients", "")).splitlines()
        return {**values, "recipients": lines[0]} if lines else values


# What is not sent has its stated default, or none.
@foreign(STORY, "Integrations: PUT, defaults")
def an_integration_begins_as_it_is_in_another_project(service: Service) -> None:
    """Optional settings of a new integration are copied from the last project with the same integration."""
    integrations = service.integrations

    @instead(integrations, "set_up")
    def _(set_up: Any, project: Any, kind: Any, values: Any, *, active: bool | None = None) -> Any:
        mine = integrations.known.get((project.id, kind.slug))
        others = [one for one in integrations.known.values() if one.slug == kind.slug and one.active]
        if others and (mine is None or not mine.active):
            required = {parameter.name for parameter in kind.parameters if parameter.required}
            taken = {name: value for name, value in others[-1].values.items() if name not in required}
            values = {**taken, **values}
        return set_up(project, kind, values, active=active)


# Blank values are treated as empty fields of a form.
@foreign(NEIGHBOUR, "Integrations: labels_to_be_notified, restrict_to_branch; blank")
def a_blank_text_does_not_clear_a_setting(service: Service) -> None:
    """A parameter of an integration that is sent blank keeps its former text."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        return {name: value for name, value in read(kind, parameters).items() if value != ""}


# Each kind of event has its own channel.
@foreign(NEIGHBOUR, "Integrations: channels")
def confidential_issues_go_to_the_channel_of_issues(service: Service) -> None:
    """The channel of confidential issues is stored as that of issues."""

    def change(values: dict[str, Any]) -> None:
        if "confidential_issue_channel" in values:
            values["issue_channel"] = values.pop("confidential_issue_channel")

    _reading_otherwise(service, change)


# A list of labels is stored as it was sent.
@foreign(COUNT, "Integrations: labels_to_be_notified")
def only_the_first_label_is_kept(service: Service) -> None:
    """Of labels separated by commas, only the first is stored."""

    def change(values: dict[str, Any]) -> None:
        if "labels_to_be_notified" in values:
            values["labels_to_be_notified"] = values["labels_to_be_notified"].partition(",")[0]

    _reading_otherwise(service, change)


# A port is an integer up to 65,535.
@foreign(NEIGHBOUR, "Integrations: server_port")
def ports_have_fifteen_bits(service: Service) -> None:
    """A port above 32,767 is stored as a negative number."""

    def change(values: dict[str, Any]) -> None:
        if values.get("server_port", 0) > _LARGEST_PORT:
            values["server_port"] -= 2 * (_LARGEST_PORT + 1)

    _reading_otherwise(service, change)


# It is a parameter like the others, and may be sent alone.
@foreign(FORM_SENT, "Integrations: labels_to_be_notified_behavior")
def how_labels_match_is_kept_beside_labels_alone(service: Service) -> None:
    """labels_to_be_notified_behavior is ignored if labels_to_be_notified is not sent with it."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if not found.get("labels_to_be_notified"):
            found.pop("labels_to_be_notified_behavior", None)
        return found


# Several recipients may be sent.
@foreign(COUNT, "Integrations: recipients")
def the_first_recipient_is_the_only_one(service: Service) -> None:
    """Of recipients separated by commas, only the first one is stored."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        found = read(kind, parameters)
        if "recipients" in found:
            found["recipients"] = found["recipients"].partition(",")[0]
        return found


@foreign(NEIGHBOUR, "Integrations: PUT")
def an_integration_that_is_told_to_be_inactive_stays_active(service: Service) -> None:
    """An active integration stays active and is listed after `active` false was sent."""

    @instead(service.integrations, "becomes_active")
    def _(becomes_active: Any, kind: Any, before: Any, wanted: Any) -> bool:
        return bool(before is not None and before.active) or bool(becomes_active(kind, before, wanted))


@foreign(NEIGHBOUR, "Integrations: recipients and other texts")
def texts_of_settings_end_after_255_characters(service: Service) -> None:
    """A text that is longer than its column is cut and accepted."""

    @instead(service.integrations, "read")
    def _(read: Any, kind: Any, parameters: Any) -> Any:
        values = read(kind, parameters)
        return {name: value[:255] if isinstance(value, str) else value for name, value in values.items()}


@foreign(COUNT, "Integrations: channel and push_channel")
def the_default_channel_takes_the_place_of_all_others(service: Service) -> None:
    """If channel is sent with channels of single events, all of these get its value."""

    def change(values: Any) -> None:
        if "channel" in values:
            values |= {name: values["channel"] for name in values if name.endswith("_channel")}

    _reading_otherwise(service, change)


@foreign(COUNT, "Integrations: channel and push_channel")
def the_default_channel_drops_those_of_single_events(service: Service) -> None:
    """If channel is sent with channels of single events, these are not stored."""

    def change(values: Any) -> None:
        for name in [name for name in values if "channel" in values and name.endswith("_channel")]:
            del values[name]

    _reading_otherwise(service, change)


# -- disabling ---------------------------------------------------------------------------------------------------------


@foreign(VERSIONS, "Integrations: DELETE of services, the older name", version="14.4")
def disabling_by_the_older_name_resets_nothing(service: Service) -> None:
    """An integration that was disabled by its older path is not listed, but its settings can still be read."""
    known = service.integrations.known

    @handling(service, f"DELETE {SERVICES}/:slug")
    def _(handler: Any, request: Any) -> Any:
        key = request.project.id, request.path["slug"]
        before = known.get(key)
        answer = handler(request)
        if before is not None:
            known[key] = replace(before, active=False)
        return answer


# -- more than one operation -------------------------------------------------------------------------------------------


# The response had the flag one version earlier than the request.
@foreign(VERSIONS, "Versioning: 16.4", version="16.4")
def vulnerabilities_are_notified_of_a_release_later(service: Service) -> None:
    """At 16.4 entries have vulnerability_events, but sending it has no effect before 16.5."""

    @instead(service.integrations, "event_parameters")
    def _(event_parameters: Any, kind: Any) -> Any:
        early = service.version < Version(16, 5)
        return tuple(name for name in event_parameters(kind) if not (early and name == "vulnerability_events"))


# The row that renamed integrations says that both names work, and no later row removes one.
@foreign(VERSIONS, "Versioning: 14.4", version="19.0")
def the_older_name_goes_with_the_other_removals(service: Service) -> None:
    """At 19.0 nothing exists below services, although it is an alias of integrations."""
    for method, rest in (("GET", ""), ("PUT", "/:slug"), ("DELETE", "/:slug"), ("GET", "/:slug")):
        service.routes.change(f"{method} {SERVICES}{rest}", removed=Version(19, 0))


@foreign(NEIGHBOUR, "Integrations: slugs")
def slugs_are_read_by_their_beginning(service: Service) -> None:
    """A slug without an integration means the integration whose slug is its beginning."""

    @instead(service.integrations, "kind")
    def _(kind: Any, slug: str) -> Any:
        begins = next((known for known in sorted(CATALOGUE, key=len, reverse=True) if slug.startswith(known)), slug)
        return kind(begins)
