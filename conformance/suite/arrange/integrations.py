"""Helpers of stories and request examples for integrations: how one is set up, read, and restored."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract, Version
from conformance.results.record import Reason
from conformance.suite.arrange.request_examples import Area, RequestExample, Values, left_to_the_next_call
from conformance.suite.context import NotTested, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    given,
    given_done,
    given_field,
    project_path,
)
from conformance.suite.per_run import PerRun
from conformance.suite.shown_records import values_under
from conformance.suite.steady import identity, of_records, of_the_contract
from conformance.target.provisioning.integrations import FEATURE_OF

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Listing
    from conformance.target import Fixture

Settings = dict[str, Any]

_USUAL_FLAG = "push_events"

#: The version since which integrations have that name; before, only the older name exists.
RENAMED = Version.parse("14.4")
NEWER_NAME, OLDER_NAME = "integrations", "services"

#: Fixtures that are special integrations, with parameters like all others.
_OTHER_KINDS = (
    *("chat_integration", "token_integration", "email_integration", "issue_tracker_integration"),
    *("emails_on_push_integration", "switchable_integration"),
)
#: What an entry of the list may have: its own fields, and settings.
_RECORDS = ("IntegrationListEntry", "IntegrationSettings")
#: By slug: what the entry of the list was seen to have.
_IN_ENTRIES: PerRun[dict[str, frozenset[str]]] = PerRun(dict)
#: The lists that showed the integration of the request examples when it was set up.
_SHOWN_WHEN_SET_UP: PerRun[set[Path]] = PerRun(set)


# -- where -------------------------------------------------------------------------------------------------------------


def integrations_path(caller: Caller, project: Fixture) -> Path:
    """Return the path of a project's integrations under the newest name that the target has."""
    return project_path(project) / (NEWER_NAME if has_both_names(caller, project) else OLDER_NAME)


def older_path(caller: Caller, project: Fixture) -> Path | None:
    """Return the path under the older name, if it is a separate name and the target has it."""
    is_there = has_both_names(caller, project) and "listServices" not in current_run().absences.found
    return project_path(project) / OLDER_NAME if is_there else None


def has_both_names(caller: Caller, project: Fixture) -> bool:
    """Tell whether the target serves the newer name as well; a target of unknown version is asked."""
    version, learnt = caller.target_version, current_run().learnt
    if version is not None:
        return version >= RENAMED
    if learnt.renamed_integrations is None:
        # One after the other: a target without the older name is not asked for it.
        is_refused = caller.get(project_path(project) / NEWER_NAME).exchange.is_refusal
        has_older_only = is_refused and caller.get(project_path(project) / OLDER_NAME).is_served
        learnt.renamed_integrations = not has_older_only
    return learnt.renamed_integrations


def slug_of(integration: Fixture) -> str:
    """Return the slug of an integration; raise NotTested when the profile does not give it."""
    return given_field(integration, "slug", str)


# -- what the profile says about an integration ------------------------------------------------------------------------


def settings_of(integration: Fixture) -> Settings:
    """Return the settings that the integration is known to accept; raise NotTested when the profile gives none."""
    return dict(given_field(integration, "settings", dict))


def least_settings(integration: Fixture) -> Settings:
    """Return only the required settings, and the one that activates the integration if it has such a parameter."""
    settings = settings_of(integration)
    required = integration.get("required")
    if not isinstance(required, list):
        return settings
    return {name: value for name, value in settings.items() if name in required or name == "active"}


def least_but(integration: Fixture, value: str) -> Settings:
    """Return only the required settings, without one that has a certain value: that of a required one is another."""
    return {name: sent for name, sent in least_settings(integration).items() if sent != value}


def shared_settings() -> Mapping[str, Any]:
    """Return the settings that several integrations share: by name, what the contract says about each."""
    found: Mapping[str, Any] = Contract.load().document["components"]["schemas"]["IntegrationSettings"]["properties"]
    return found


def settings_under(requirement: str) -> tuple[str, ...]:
    """Return the names of the shared settings that a requirement is about."""
    return tuple(name for name, schema in shared_settings().items() if schema["x-requirement"] == requirement)


def event_flags() -> tuple[str, ...]:
    """Return the names of the flags that every integration has, one for each kind of event."""
    return settings_under("integrations.parameters.event-flags.boolean")


def flag_to_switch(integrations: Sequence[Fixture]) -> str:
    """Return the event flag that stories switch: push_events, or another one of entries if no integration has that."""
    entry: Mapping[str, Any] = Contract.load().document["components"]["schemas"]["IntegrationListEntry"]["properties"]
    names = (_USUAL_FLAG, *(name for name in event_flags() if name in entry))
    return next((name for name in names if any(has(one, name) for one in integrations)), _USUAL_FLAG)


def without(settings: Settings, *names: str) -> Settings:
    """Return settings without some parameters."""
    return {name: value for name, value in settings.items() if name not in names}


def has(integration: Fixture, name: str) -> bool:
    """Tell whether an integration has a parameter or event flag, according to the profile."""
    return any(name in (integration.get(where) or ()) for where in ("parameters", "events", "settings"))


def every_integration(integrations: Sequence[Fixture]) -> list[Fixture]:
    """Return the integrations of the profile, including the special ones, each slug once."""
    profile = current_run().profile
    kinds = [entry for kind in _OTHER_KINDS for entry in profile.fixtures.get(kind, ()) if profile.declares(kind)]
    found: dict[Any, Fixture] = {}
    for entry in (*integrations, *kinds):
        found.setdefault(entry.get("slug"), entry)
    return list(found.values())


def offering(integrations: Sequence[Fixture], *names: str) -> Fixture:
    """Return the first integration that has all of some parameters.

    Raise NotTested when the profile names none, and say what to add: such an integration, or the names of these
    parameters if an integration has them and the profile does not list them.
    """
    found = [integration for integration in integrations if all(has(integration, name) for name in names)]
    if not found:
        raise NotTested(Reason.PREREQUISITE_MISSING, lacks(*names))
    return found[0]


def lacks(*names: str) -> str:
    """Say that no integration of the profile has some parameters or events, and what to write."""
    features = [f"{FEATURE_OF[name]}: false" for name in names if name in FEATURE_OF]
    instead = f"; if the service has none, write `{', '.join(features)}` below features" if features else ""
    return (
        f"no integration of the profile has {' and '.join(names)}: add one that has to the fixture integrations, "
        f"with its name among the parameters or events there{instead}"
    )


def is_channel(name: str) -> bool:
    """Tell whether a parameter names a channel: the default one, or that of a kind of events."""
    return name.endswith("channel")


def distinctive(integration: Fixture) -> tuple[str, str]:
    """Return an optional parameter with a value that reading shows; raise NotTested when the profile gives none."""
    return given_field(integration, "distinctive_name", str), given_field(integration, "distinctive_value", str)


# -- setting up and restoring ------------------------------------------------------------------------------------------


def set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> Answer:
    """Set an integration up with its settings, some of them changed; everything required is always sent."""
    return caller.put(path / slug_of(integration), {**settings_of(integration), **changes})


def given_set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> dict[str, Any]:
    """Set an integration up as a step of a story and return its entry; inconclusive when it is not listed then."""
    set_up(caller, path, integration, **changes).given_served()
    entry = caller.whole_list(path).the(slug=slug_of(integration))
    _IN_ENTRIES()[slug_of(integration)] = frozenset(entry)
    return entry


def given_disabled(caller: Caller, path: Path, integration: Fixture) -> None:
    """Disable an integration as a step of a story; if it is still listed, the requirement about disabling fails."""
    before = caller.whole_list(path)
    caller.delete(path / slug_of(integration)).given_served()
    must_have_gone(before, caller, path, integration)


def must_have_gone(before: Listing, caller: Caller, path: Path, integration: Fixture) -> None:
    """Go on only if an integration that was listed before is no longer listed after the call that disabled it."""
    if before.having(slug=slug_of(integration)):
        with given_done("integrations.disable.unlisted"):
            caller.whole_list(path).must_not_contain(slug=slug_of(integration), after=before)


def given_unlisted(caller: Caller, path: Path, integration: Fixture) -> None:
    """Go on only if an integration is not listed."""
    caller.whole_list(path).given_without(slug=slug_of(integration))


@contextmanager
def borrowed(caller: Caller, path: Path, *integrations: Fixture) -> Iterator[None]:
    """Begin with these integrations not set up, and restore them afterwards.

    An integration that was listed before is set up again with the settings of the profile, because its real settings
    cannot be read.
    """
    with current_run().known_reads.before_changes() as holds_again:
        before = caller.whole_list(path)
    for integration in integrations:
        if current_run().deletions.has(path, slug_of(integration)) and not before.having(slug=slug_of(integration)):
            continue
        if caller.delete(path / slug_of(integration)).is_served:
            must_have_gone(before, caller, path, integration)
        else:
            given(not before.having(slug=slug_of(integration)), f"{slug_of(integration)} cannot be disabled beforehand")
    try:
        yield
    finally:
        for integration in integrations:
            _bring_back(caller, path, integration, was_set_up=bool(before.having(slug=slug_of(integration))))
        holds_again()


def _bring_back(caller: Caller, path: Path, integration: Fixture, *, was_set_up: bool) -> None:
    if was_set_up:
        set_up(caller, path, integration)
    else:
        caller.delete(path / slug_of(integration))


# -- reading -----------------------------------------------------------------------------------------------------------


def entries(caller: Caller, path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of the list by slug, as their order does not matter, without times and other moving values."""
    listed = [entry for entry in caller.whole_list(path).entries if isinstance(entry, dict)]
    return {str(entry.get("slug")): comparable(of_records(entry, *_RECORDS)) for entry in listed}


def shown(caller: Caller, path: Path, slug: str, name: str) -> list[Any]:
    """Return every value that the service shows for a parameter; an empty list means that it is not shown.

    That is the value in the list entry, if entries have it, or all values under that name in the settings. In the
    settings, an object beside a plain value only describes the parameter, for example its type, and is no value.
    """
    known = _IN_ENTRIES()
    entry = entries(caller, path).get(slug, {}) if slug not in known or name in known[slug] else {}
    if name in entry:
        return [entry[name]]
    if entry:
        known[slug] = frozenset(entry)
    found = values_under(name, caller.read(path / slug))
    plain = [value for value in found if not isinstance(value, dict)]
    return plain or found


def shows_text(answer: Answer, text: str) -> bool:
    """Tell whether an answer contains a text anywhere in its body."""
    body = answer.exchange.body.decode("utf-8", "replace")
    try:
        return holds_text(text, json.loads(body))
    except (ValueError, RecursionError):
        return text in body


def holds_text(text: str, body: Any) -> bool:
    """Tell whether JSON contains a text anywhere among its values."""
    if isinstance(body, dict):
        return any(holds_text(text, value) for value in body.values())
    if isinstance(body, list):
        return any(holds_text(text, value) for value in body)
    return isinstance(body, str) and text in body


def comparable(body: Any) -> Any:
    """Return the part of JSON that the contract names, in no order, without times of creation or change."""
    return identity(of_the_contract(body), names=())


# -- request examples ------------------------------------------------------------------------------------------------


def _where(caller: Caller, place: Place) -> tuple[Path, Fixture]:
    return integrations_path(caller, place.fixture("project")), place.fixture("integration")


def _with_it(caller: Caller, place: Place) -> Values:
    """Set the first integration up."""
    given_set_up(caller, *_where(caller, place))
    return {}


def _without_it(caller: Caller, place: Place) -> Values:
    """Disable the first integration."""
    path, integration = _where(caller, place)
    listed = caller.whole_list(path)
    if listed.having(slug=slug_of(integration)):
        given_disabled(caller, path, integration)
    return {}


def _state(caller: Caller, place: Place) -> dict[str, dict[str, Any]]:
    return entries(caller, _where(caller, place)[0])


def _remember(caller: Caller, place: Place) -> dict[str, dict[str, Any]]:
    """Read the list; it must show an integration that is set up, because otherwise no answer proves anything.

    A service that breaks when an integration is set up is reported by the tests.
    """
    path, integration = _where(caller, place)
    before = entries(caller, path)
    shown = _SHOWN_WHEN_SET_UP()
    if slug_of(integration) not in before and path not in shown:
        try:
            answer = set_up(caller, path, integration)
            if answer.is_served:
                caller.whole_list(path).the(slug=slug_of(integration))
                shown.add(path)
            elif answer.exchange.is_refusal:
                answer.given_served()
        finally:
            caller.delete(path / slug_of(integration))
    return before


def _put_back(caller: Caller, place: Place, before: dict[str, dict[str, Any]]) -> None:
    path, integration = _where(caller, place)
    _bring_back(caller, path, integration, was_set_up=slug_of(integration) in before)


_READING = RequestExample(before=_with_it)
_SETTING_UP = RequestExample(before=_without_it, state=_state)
_DISABLING = RequestExample(before=_with_it, state=_state, undo=left_to_the_next_call)

AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    takes=lambda place, name: has(place.fixture("integration"), name),
    request_examples={
        "listIntegrations": _READING,
        "getIntegration": _READING,
        "setUpIntegration": _SETTING_UP,
        "disableIntegration": _DISABLING,
        "listServices": _READING,
        "getService": _READING,
        "setUpService": _SETTING_UP,
        "disableService": _DISABLING,
    },
)
