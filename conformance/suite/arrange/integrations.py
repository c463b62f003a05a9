"""What stories and request examples about integrations share: how one is set up, read, and left as it was found."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.contract import Version
from conformance.results.record import Reason
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.context import NotTested
from conformance.suite.expectations import Answer, Caller, Path, given, project_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.suite.arrange.places import Place
    from conformance.target import Fixture

Settings = dict[str, Any]

#: The version from which integrations go by that name; before, there is only the older one.
RENAMED = Version.parse("14.4")
OLDER_NAME = "services"


# -- where -------------------------------------------------------------------------------------------------------------


def integrations_path(caller: Caller, project: Fixture) -> Path:
    """Return the path of a project's integrations under the newest name that the target's version has."""
    return project_path(project) / ("integrations" if has_both_names(caller) else OLDER_NAME)


def has_both_names(caller: Caller) -> bool:
    """Tell whether the target answers to the newer name as well; an unknown version is taken to."""
    version = caller.target_version
    return version is None or version >= RENAMED


def slug_of(integration: Fixture) -> str:
    """Return the slug of an integration; inconclusive when the profile does not give it."""
    slug = integration.get("slug")
    given(isinstance(slug, str) and bool(slug), f"the profile does not give the slug of {integration.name}")
    return str(slug)


# -- what the profile says of an integration ---------------------------------------------------------------------------


def settings_of(integration: Fixture) -> Settings:
    """Return the settings that the integration is known to take; inconclusive when the profile gives none."""
    settings = integration.get("settings")
    given(isinstance(settings, dict), f"the profile does not give the settings of {slug_of(integration)}")
    return dict(settings or {})


def least_settings(integration: Fixture) -> Settings:
    """Return only what the integration cannot do without, and what makes it active where it has such a parameter."""
    settings = settings_of(integration)
    required = integration.get("required")
    if not isinstance(required, list):
        return settings
    return {name: value for name, value in settings.items() if name in required or name == "active"}


def without(settings: Settings, *names: str) -> Settings:
    """Return settings without some parameters."""
    return {name: value for name, value in settings.items() if name not in names}


def has(integration: Fixture, name: str) -> bool:
    """Tell whether an integration has a parameter or event flag, as the profile says."""
    return any(name in (integration.get(where) or ()) for where in ("parameters", "events", "settings"))


def first_with(integrations: Sequence[Fixture], *names: str) -> Fixture:
    """Return the first integration that has all of some parameters; inconclusive when the profile names none."""
    found = [integration for integration in integrations if all(has(integration, name) for name in names)]
    given(bool(found), f"no integration of the profile has {' and '.join(names)}")
    return found[0]


def offering(integrations: Sequence[Fixture], *names: str) -> Fixture:
    """
    Return the first integration that has all of some parameters.

    The integrations of a profile together have all that the target's have. Where each of them says what it has and none
    has these, the target does not offer them, and owes nothing about them: raise NotTested with that reason. Where one
    does not say, that is what is missing.
    """
    found = [integration for integration in integrations if all(has(integration, name) for name in names)]
    if found:
        return found[0]
    unsaid = [
        f"{where} of {slug_of(integration)}"
        for integration in integrations
        for where in ("parameters", "events")
        if not isinstance(integration.get(where), list)
    ]
    if unsaid:
        detail = f"the profile names no integration that has {' and '.join(names)}, and does not give {unsaid[0]}"
        raise NotTested(Reason.PREREQUISITE_MISSING, detail)
    raise NotTested(Reason.FEATURE_NOT_DECLARED, f"no integration of the profile has {' and '.join(names)}")


def distinctive(integration: Fixture) -> tuple[str, str]:
    """Return an optional parameter with a value that is shown again; inconclusive when the profile gives none."""
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    given(
        isinstance(name, str) and isinstance(value, str) and bool(value),
        f"the profile does not give distinctive_name and distinctive_value of {slug_of(integration)}",
    )
    return str(name), str(value)


# -- setting up and putting back ---------------------------------------------------------------------------------------


def set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> Answer:
    """Set an integration up with its settings, some of them changed; all that it requires is always sent along."""
    return caller.put(path / slug_of(integration), {**settings_of(integration), **changes})


def given_set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> dict[str, Any]:
    """Set an integration up as a step of a story and return its entry; inconclusive when it is not listed then."""
    set_up(caller, path, integration, **changes).given_served()
    return caller.whole_list(path).the(slug=slug_of(integration))


def given_disabled(caller: Caller, path: Path, integration: Fixture) -> None:
    """Disable an integration as a step of a story; inconclusive when it is still listed then."""
    caller.delete(path / slug_of(integration)).given_served()
    given_unlisted(caller, path, integration)


def given_unlisted(caller: Caller, path: Path, integration: Fixture) -> None:
    """Go on only if an integration is not listed."""
    caller.whole_list(path).given_without(slug=slug_of(integration))


@contextmanager
def borrowed(caller: Caller, path: Path, *integrations: Fixture) -> Iterator[None]:
    """
    Begin with these integrations not set up, and leave them as they were found.

    One that was listed before is set up again afterwards with the settings of the profile; those it really had cannot
    be read.
    """
    before = caller.whole_list(path)
    for integration in integrations:
        caller.delete(path / slug_of(integration))
    now = caller.whole_list(path)
    for integration in integrations:
        now.given_without(slug=slug_of(integration))
    try:
        yield
    finally:
        for integration in integrations:
            if before.having(slug=slug_of(integration)):
                set_up(caller, path, integration)
            else:
                caller.delete(path / slug_of(integration))


# -- reading -----------------------------------------------------------------------------------------------------------


def entries(caller: Caller, path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of the list by slug, so that their order is of no account."""
    listed = caller.whole_list(path).entries
    return {str(entry.get("slug")): entry for entry in listed if isinstance(entry, dict)}


def shown(caller: Caller, path: Path, slug: str, name: str) -> list[Any]:
    """
    Return every value that the service shows of a parameter; an empty list says that it is not shown.

    That is the value of the list entry, where entries have it, or all values under that name in the settings.
    """
    entry = entries(caller, path).get(slug, {})
    if name in entry:
        return [entry[name]]
    return values_under(name, caller.read(path / slug))


def values_under(name: str, body: Any) -> list[Any]:
    """Return the values that JSON has under a name, however deep."""
    if isinstance(body, list):
        return [value for entry in body for value in values_under(name, entry)]
    if not isinstance(body, dict):
        return []
    own = [body[name]] if name in body else []
    return own + [value for key, inner in body.items() if key != name for value in values_under(name, inner)]


def shows_text(answer: Answer, text: str) -> bool:
    """Tell whether an answer has a text anywhere in its body."""
    body = answer.exchange.body.decode("utf-8", "replace")
    try:
        return holds_text(text, json.loads(body))
    except ValueError:
        return text in body


def holds_text(text: str, body: Any) -> bool:
    """Tell whether JSON has a text anywhere among its values."""
    if isinstance(body, dict):
        return any(holds_text(text, value) for value in body.values())
    if isinstance(body, list):
        return any(holds_text(text, value) for value in body)
    return isinstance(body, str) and text in body


def without_timestamps(body: Any) -> Any:
    """Return JSON without the times of its making and changing."""
    if isinstance(body, dict):
        kept = {name: value for name, value in body.items() if name not in {"created_at", "updated_at"}}
        return {name: without_timestamps(value) for name, value in kept.items()}
    return [without_timestamps(value) for value in body] if isinstance(body, list) else body


# -- request examples ------------------------------------------------------------------------------------------------


def _where(caller: Caller, place: Place) -> tuple[Path, Fixture]:
    return integrations_path(caller, place.fixture("project")), place.fixture("integration")


def _with_it(caller: Caller, place: Place) -> Values:
    """Let the first integration be set up."""
    given_set_up(caller, *_where(caller, place))
    return {}


def _without_it(caller: Caller, place: Place) -> Values:
    """Let the first integration not be set up."""
    path, integration = _where(caller, place)
    listed = caller.whole_list(path)
    if listed.having(slug=slug_of(integration)):
        given_disabled(caller, path, integration)
    return {}


def _state(caller: Caller, place: Place) -> dict[str, dict[str, Any]]:
    return entries(caller, _where(caller, place)[0])


def _remember(caller: Caller, place: Place) -> dict[str, dict[str, Any]]:
    """
    Read the list; it must show an integration that is set up, or nothing that is answered proves anything.

    A service that breaks when one is set up is for the tests to find.
    """
    path, integration = _where(caller, place)
    before = entries(caller, path)
    if slug_of(integration) not in before:
        try:
            answer = set_up(caller, path, integration)
            if answer.is_served:
                caller.whole_list(path).the(slug=slug_of(integration))
            elif answer.exchange.is_refusal:
                answer.given_served()
        finally:
            caller.delete(path / slug_of(integration))
    return before


def _put_back(caller: Caller, place: Place, before: dict[str, dict[str, Any]]) -> None:
    path, integration = _where(caller, place)
    if slug_of(integration) in before:
        set_up(caller, path, integration)
    else:
        caller.delete(path / slug_of(integration))


_READING = RequestExample(before=_with_it)
_SETTING_UP = RequestExample(before=_without_it, state=_state)
_DISABLING = RequestExample(before=_with_it, state=_state)

AREA = Area(
    keeper="maintainer",
    remember=_remember,
    put_back=_put_back,
    takes=lambda place, name: has(place.fixture("integration"), name),
    unknown={
        "id": "integrations.unknown-project",
        "getIntegration.integration_slug": "integrations.unknown-slug.reading",
        "getService.integration_slug": "integrations.unknown-slug.reading",
        "setUpIntegration.integration_slug": "integrations.unknown-slug.setting-up",
        "setUpService.integration_slug": "integrations.unknown-slug.setting-up",
    },
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
