"""Faults of integrations that show only after several steps, in a second project, or for one kind of integration."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import (
    afterwards,
    answering,
    around,
    beforehand,
    breaking,
    does_nothing,
    handling,
    names_nothing,
    refusing,
    remembering_lists,
    sent,
)
from conformance.proof.written.integration_parameters import set_up_key
from conformance.proof.written.integrations import name_at
from conformance.reference.areas import integration_catalogue
from conformance.reference.errors import ApiError, InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.reference import Service
    from conformance.reference.areas.integration_catalogue import IntegrationKind
    from conformance.reference.areas.integrations import Integration
    from conformance.reference.http import Request
    from conformance.reference.identity import Project

Values = dict[str, Any]
_CHOICES = ("branches_to_be_notified", "labels_to_be_notified_behavior")
_TRACKER = ("new_issue_url", "issues_url", "project_url")
_OTHER_TRACKER = "redmine"


def _keeping(service: Service, change: Callable[[Project, IntegrationKind, Values], Mapping[str, Any]]) -> None:
    """Let other values be kept than those that were sent: `change` gets the project, the kind, and all values."""

    def make(keep: Any) -> Any:
        def keeping(project: Project, kind: IntegrationKind, values: Values, *, active: bool) -> Any:
            return keep(project, kind, change(project, kind, dict(values)), active=active)

        return keeping

    around(service.integrations, "keep", make)


def _known(service: Service, project: Project, slug: str) -> Integration | None:
    return service.integrations.known.get((project.id, slug))


def _altered(service: Service, one: Integration, values: Values) -> None:
    service.integrations.known[one.project_id, one.slug] = replace(one, values=MappingProxyType(values))


# -- parameters --------------------------------------------------------------------------------------------------------


@fault("integrations.parameters.event-flags.boolean")
@fault("events.flags.incidents")
def flags_that_are_on_stay_on(service: Service) -> None:
    """A flag that was switched on cannot be switched off again."""

    def change(project: Project, kind: IntegrationKind, values: Values) -> Values:
        before = _known(service, project, kind.slug)
        stays = [name for name, value in (before.values.items() if before else ()) if value is True]
        return values | dict.fromkeys(stays, True)

    _keeping(service, change)


def _renamed(service: Service, names: Mapping[str, str]) -> None:
    def read(values: Values, *_: Any) -> Values:
        return {names.get(name, name): value for name, value in values.items()}

    afterwards(service.integrations, "read", read)


@fault("integrations.parameters.event-channels.text")
def channels_of_pushes_and_tags_change_places(service: Service) -> None:
    """The channel for pushes is taken for that of pushed tags, and the other way round."""
    _renamed(service, {"push_channel": "tag_push_channel", "tag_push_channel": "push_channel"})


@fault("integrations.parameters.event-channels.text")
def channel_of_pushes_is_that_of_tags(service: Service) -> None:
    """A channel for pushes is taken for that of pushed tags; several channels at once are refused."""
    many = {"push_channel", "tag_push_channel", "note_channel"}
    refusing(service, set_up_key(service), lambda q: len(many & {*sent(q)}) > 1, lambda: InvalidError("one at a time"))
    _renamed(service, {"push_channel": "tag_push_channel"})


@fault("integrations.parameters.event-channels.text")
def beside_a_default_channel_others_are_blank(service: Service) -> None:
    """The channels of single events are blank as soon as there is a default channel."""

    def shown(own: Values, _: Integration) -> Values:
        is_blank = bool(own.get("channel"))
        return {name: None if is_blank and name.endswith("_channel") else value for name, value in own.items()}

    afterwards(service.integrations, "shown_settings", shown)


def _is_no_choice(request: Request, name: str) -> bool:
    return sent(request).get(name) == "conformance-no-such-choice"


def _is_part(request: Request, name: str) -> bool:
    value = sent(request).get(name)
    kind = integration_catalogue.CATALOGUE.get(request.path["slug"])
    allowed = [word for one in (kind.parameters if kind else ()) if one.name == name for word in one.allowed]
    return isinstance(value, str) and value not in allowed and any(word.startswith(value) for word in allowed)


def _beginnings_stored(service: Service, name: str) -> None:
    stored: dict[Any, str] = {}

    def make(handler: Any) -> Any:
        def storing(request: Request) -> Any:
            place = request.project.id, request.path["slug"]
            stored.pop(place, None)
            if _is_part(request, name):
                stored[place] = str(sent(request)[name])
                request.body = request.body.replace(f'"{stored[place]}"'.encode(), b"null")
            return handler(request)

        return storing

    def shown(own: Values, one: Integration) -> Values:
        place = one.project_id, one.slug
        return own | {name: stored[place]} if place in stored else own

    handling(service, set_up_key(service), make)
    afterwards(service.integrations, "shown_settings", shown)


def _kept_behind_a_refusal(service: Service, name: str) -> None:
    def make(handler: Any) -> Any:
        def keeping(request: Request) -> Any:
            try:
                return handler(request)
            except ApiError:
                one = _known(service, request.project, request.path["slug"])
                if one is not None and _is_no_choice(request, name):
                    rest = {key: value for key, value in sent(request).items() if key != name}
                    _altered(service, one, {**one.values, **rest})
                raise

        return keeping

    handling(service, set_up_key(service), make)


for _name in _CHOICES:

    def _wrong_breaks(service: Service, name: str = _name) -> None:
        breaking(service, set_up_key(service), lambda request: _is_no_choice(request, name))

    def _part_breaks(service: Service, name: str = _name) -> None:
        breaking(service, set_up_key(service), lambda request: _is_part(request, name))

    def _part_stored(service: Service, name: str = _name) -> None:
        _beginnings_stored(service, name)

    def _rest_kept(service: Service, name: str = _name) -> None:
        _kept_behind_a_refusal(service, name)

    _closed = fault(f"integrations.parameters.{_name.replace('_', '-')}.closed")
    _closed(named(f"no_choice_as_{_name}_breaks", f"What is no choice breaks {_name}.", _wrong_breaks))
    _closed(named(f"part_of_a_choice_as_{_name}_breaks", f"The beginning of a choice breaks {_name}.", _part_breaks))
    _closed(
        named(
            f"part_of_a_choice_is_stored_as_{_name}", f"The beginning of a choice is stored as {_name}.", _part_stored
        )
    )
    _closed(
        named(
            f"what_stands_beside_a_wrong_{_name}_is_stored",
            f"A call with a wrong {_name} is refused, and stores the other values.",
            _rest_kept,
        )
    )


@fault("integrations.parameters.enable-ssl-verification.boolean")
def certificates_are_checked_by_all(service: Service) -> None:
    """Every integration goes on checking certificates when it is told not to."""
    _keeping(
        service, lambda _, __, values: {name: values[name] for name in values if name != "enable_ssl_verification"}
    )


# -- set-up and change -------------------------------------------------------------------------------------------------


@fault("integrations.update.followed")
def events_cannot_be_switched_off(service: Service) -> None:
    """A call that switches pushes off is refused."""
    refusing(
        service,
        set_up_key(service),
        lambda request: sent(request).get("push_events") is False,
        lambda: InvalidError(""),
    )


def _disabling_refusal(service: Service, name: str) -> None:
    """Let a call with a blank value be refused, and disable the integration."""

    def blank(request: Request) -> bool:
        if sent(request).get(name) == "":
            service.integrations.known.pop((request.project.id, request.path["slug"]), None)
        return False

    answering(service, set_up_key(service), blank, does_nothing)  # type: ignore[arg-type] # it never answers


for _name, _requirement in (
    ("webhook", "integrations.parameters.webhook.required"),
    ("token", "integrations.parameters.token.required"),
    ("recipients", "integrations.parameters.recipients.required"),
    ("issues_url", "integrations.parameters.issue-tracker-urls.required-together"),
):

    def _disables(service: Service, name: str = _name) -> None:
        _disabling_refusal(service, name)

    fault(_requirement)(
        named(
            f"refused_change_without_{_name}_disables",
            f"A change with a blank {_name} is refused, and the integration is disabled.",
            _disables,
        )
    )


def _lacks_an_address(request: Request) -> bool:
    return request.path["slug"] == _OTHER_TRACKER and not {*_TRACKER} <= {*sent(request)}


@fault("integrations.parameters.issue-tracker-urls.required-together")
def one_of_the_trackers_needs_no_address(service: Service) -> None:
    """One of several issue trackers is set up without an address."""
    require = service.integrations.require_settings

    def lenient(kind: IntegrationKind, values: Mapping[str, Any]) -> None:
        require(kind, {**dict.fromkeys(_TRACKER, "https://"), **values} if kind.slug == _OTHER_TRACKER else values)

    service.integrations.require_settings = lenient  # type: ignore[method-assign] # that is what a fault does


@fault("integrations.parameters.issue-tracker-urls.required-together")
def one_of_the_trackers_is_refused_and_listed(service: Service) -> None:
    """One of several issue trackers is refused without an address, and set up all the same."""

    def kept(request: Request) -> bool:
        if _lacks_an_address(request):
            kind = integration_catalogue.CATALOGUE[_OTHER_TRACKER]
            service.integrations.keep(request.project, kind, sent(request), active=True)
        return False

    answering(service, set_up_key(service), kept, does_nothing)  # type: ignore[arg-type] # it never answers


@fault("integrations.parameters.active.default")
def issue_trackers_are_never_active(service: Service) -> None:
    """An issue tracker stays inactive when it is told to be active."""
    becomes = service.integrations.becomes_active
    service.integrations.becomes_active = (  # type: ignore[method-assign] # that is what a fault does
        lambda kind, before, wanted: not kind.switchable and becomes(kind, before, wanted)
    )


@fault("integrations.chat-app.updated")
def changes_of_the_chat_app_are_lost(service: Service) -> None:
    """A change of the installed chat app is accepted, and not stored."""

    def change(project: Project, kind: IntegrationKind, values: Values) -> Mapping[str, Any]:
        before = _known(service, project, kind.slug)
        return values if before is None or kind.creatable else before.values

    _keeping(service, change)


@fault("integrations.single.shows-its-own")
def settings_of_one_name_are_shared(service: Service) -> None:
    """The recipients of an integration are those of the one that was set up last."""
    last: dict[int, str] = {}

    def change(project: Project, _: IntegrationKind, values: Values) -> Values:
        if "recipients" in values:
            last[project.id] = values["recipients"]
        return values

    def shown(own: Values, one: Integration) -> Values:
        return own | {"recipients": last[one.project_id]} if "recipients" in own and one.project_id in last else own

    _keeping(service, change)
    afterwards(service.integrations, "shown_settings", shown)


# -- disabling ---------------------------------------------------------------------------------------------------------


@fault("integrations.update.shows-to-everybody")
def disabled_ones_are_shown_to_others(service: Service) -> None:
    """A caller who has read the list is shown what another one disabled, until the next set-up."""
    name = name_at(service)
    remembering_lists(service, f"GET {name}", added=f"PUT {name}/:slug", removed=f"DELETE {name}/:slug")


@fault("integrations.unknown-slug.disabling")
def disabling_an_unknown_one_disables_the_newest(service: Service) -> None:
    """Disabling an unknown integration is refused, and disables the newest one."""

    def newest(project: Project, slug: str) -> None:
        mine = service.integrations.active(project)
        if slug not in integration_catalogue.CATALOGUE and mine:
            del service.integrations.known[project.id, mine[-1].slug]

    beforehand(service.integrations, "disable", newest)


@fault("integrations.unknown-project")
def disabling_in_an_unknown_project_breaks(service: Service) -> None:
    """Disabling an integration in a project that does not exist causes a server error."""

    def breaks(request: Request) -> None:
        if request.method == "DELETE" and "slug" in request.path and names_nothing(request, "id"):
            raise RuntimeError

    beforehand(service.access, "admit", breaks)


def _reading_breaks(service: Service, when: Callable[[Request], bool]) -> None:
    breaking(service, f"GET {name_at(service)}/:slug", when)


@fault("integrations.disable.settings-reset")
def reading_what_was_disabled_breaks(service: Service) -> None:
    """Reading an integration that is not set up causes a server error."""

    def is_off(request: Request) -> bool:
        one = _known(service, request.project, request.path["slug"])
        return one is None or not one.active

    _reading_breaks(service, is_off)


@fault("integrations.belong-to-their-project")
def reading_what_another_project_has_breaks(service: Service) -> None:
    """Reading an integration that is set up in another project alone causes a server error."""
    reading_what_was_disabled_breaks(service)


def _others(service: Service, project: Project, slug: str) -> list[Integration]:
    """Return this integration of other projects, as far as they have it."""
    known = service.integrations.known.values()
    return [one for one in known if one.slug == slug and one.project_id != project.id and one.active]


@fault("integrations.belong-to-their-project")
def reading_in_a_second_project_breaks(service: Service) -> None:
    """Reading an integration causes a server error if it was set up in another project before."""

    def is_second(request: Request) -> bool:
        one = _known(service, request.project, request.path["slug"])
        others = _others(service, request.project, request.path["slug"])
        return one is not None and any(other.id < one.id for other in others)

    _reading_breaks(service, is_second)


@fault("integrations.belong-to-their-project")
def what_is_not_sent_comes_from_another_project(service: Service) -> None:
    """An integration that is set up in a second project has the settings of the first one, unless others are sent."""

    def change(project: Project, kind: IntegrationKind, values: Values) -> Values:
        before, others = _known(service, project, kind.slug), _others(service, project, kind.slug)
        is_new = before is None or not before.active
        return {**others[0].values, **values} if is_new and others else values

    _keeping(service, change)


@fault("integrations.update.leaves-others")
def set_ups_switch_off_what_nobody_named(service: Service) -> None:
    """Setting one integration up switches off the events of those that were there before."""
    project = service.identities.projects[service.world.one("project").id]
    kind = integration_catalogue.CATALOGUE["pumble"]
    there = service.integrations.keep(project, kind, {"webhook": "https://chat.example.com"}, active=True)

    def then(_: object, __: Project, other: IntegrationKind, *___: Any) -> None:
        if other.slug != kind.slug:
            _altered(service, there, {**there.values, "push_events": False})

    afterwards(service.integrations, "set_up", then)
