"""What stories and request examples about integrations share: how one is set up, read, and left as it was found."""

from __future__ import annotations

import html
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from conformance.contract import Version
from conformance.results.record import Reason
from conformance.suite.arrange.request_examples import Area, RequestExample, Values, left_to_the_next_call
from conformance.suite.context import NotTested, Run, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    given,
    given_done,
    given_field,
    must,
    must_settle,
    project_path,
)
from conformance.suite.shown_records import values_under
from conformance.suite.steady import of_records, of_the_contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.suite.arrange.places import Place
    from conformance.suite.expectations import Listing
    from conformance.target import Fixture

Settings = dict[str, Any]

_UNUSUAL = "R&D's Prüfung"
#: More than a usual column of a table takes.
_LONG = "conformance-" * 25
#: What becomes of it where it is written for a page, or is read in another encoding than it was written in.
_GARBLED = frozenset(
    {
        html.escape(_UNUSUAL),
        html.escape(_UNUSUAL, quote=False),
        _UNUSUAL.encode().decode("latin-1"),
        _UNUSUAL.encode("ascii", "replace").decode(),
    }
)

#: The version from which integrations go by that name; before, there is only the older one.
RENAMED = Version.parse("14.4")
NEWER_NAME, OLDER_NAME = "integrations", "services"

#: Kinds of events that the entry of every integration has a flag for.
EVENT_KINDS = (
    "push",
    "tag_push",
    "commit",
    "issues",
    "confidential_issues",
    "merge_requests",
    "note",
    "confidential_note",
    "pipeline",
    "wiki_page",
    "deployment",
    "alert",
)
EVENTS = tuple(f"{kind}_events" for kind in EVENT_KINDS)
#: Kinds of events that have a destination of their own.
CHANNELS = tuple(
    f"{kind}_channel"
    for kind in (
        "push",
        "issue",
        "confidential_issue",
        "merge_request",
        "note",
        "confidential_note",
        "tag_push",
        "pipeline",
        "wiki_page",
        "deployment",
        "group_mentions",
        "group_confidential_mentions",
    )
)
#: Parameters with a closed list of values, and these.
CLOSED_LISTS = {
    "branches_to_be_notified": ("all", "default", "protected", "default_and_protected"),
    "labels_to_be_notified_behavior": ("match_any", "match_all"),
}
#: Fixtures that are integrations of a kind of their own, and have parameters like all others.
_OTHER_KINDS = (
    "chat_integration",
    "token_integration",
    "email_integration",
    "issue_tracker_integration",
    "emails_on_push_integration",
    "switchable_integration",
)
_has_newer_name: WeakKeyDictionary[Run, bool] = WeakKeyDictionary()
#: What an entry of the list may have: its own fields, and settings.
_RECORDS = ("IntegrationListEntry", "IntegrationSettings")
#: By run and slug: what the entry of the list was seen to have.
_in_entries: WeakKeyDictionary[Run, dict[str, frozenset[str]]] = WeakKeyDictionary()
#: By run: the lists that were seen to show the integration of the request examples when it was set up.
_shown_when_set_up: WeakKeyDictionary[Run, set[Path]] = WeakKeyDictionary()


# -- where -------------------------------------------------------------------------------------------------------------


def integrations_path(caller: Caller, project: Fixture) -> Path:
    """Return the path of a project's integrations under the newest name that the target has."""
    return project_path(project) / (NEWER_NAME if has_both_names(caller, project) else OLDER_NAME)


def older_path(caller: Caller, project: Fixture) -> Path | None:
    """Return the path under the older name, where that is a second one and the target has it."""
    is_there = has_both_names(caller, project) and "listServices" not in current_run().absences.found
    return project_path(project) / OLDER_NAME if is_there else None


def has_both_names(caller: Caller, project: Fixture) -> bool:
    """Tell whether the target answers to the newer name as well; one of unknown version is asked."""
    version, run = caller.target_version, current_run()
    if version is not None:
        return version >= RENAMED
    if run not in _has_newer_name:
        # One after the other: a target that has no older name is not asked for it.
        is_refused = caller.get(project_path(project) / NEWER_NAME).exchange.is_refusal
        _has_newer_name[run] = not (is_refused and caller.get(project_path(project) / OLDER_NAME).is_served)
    return _has_newer_name[run]


def slug_of(integration: Fixture) -> str:
    """Return the slug of an integration; raise NotTested when the profile does not give it."""
    return given_field(integration, "slug", str)


# -- what the profile says of an integration ---------------------------------------------------------------------------


def settings_of(integration: Fixture) -> Settings:
    """Return the settings that the integration is known to take; raise NotTested when the profile gives none."""
    return dict(given_field(integration, "settings", dict))


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


def every_integration(integrations: Sequence[Fixture]) -> list[Fixture]:
    """Return the integrations of the profile, those of a kind of their own among them, each slug once."""
    profile = current_run().profile
    kinds = [entry for kind in _OTHER_KINDS for entry in profile.fixtures.get(kind, ()) if profile.declares(kind)]
    found: dict[Any, Fixture] = {}
    for entry in (*integrations, *kinds):
        found.setdefault(entry.get("slug"), entry)
    return list(found.values())


def offering(integrations: Sequence[Fixture], *names: str) -> Fixture:
    """
    Return the first integration that has all of some parameters.

    Raise NotTested when the profile names none, and say what to add: an integration that has them, or their names where
    one has them and does not say so.
    """
    found = [integration for integration in integrations if all(has(integration, name) for name in names)]
    if not found:
        detail = (
            f"no integration of the profile has {' and '.join(names)}: add one that has to the fixture integrations, "
            f"with its name among the parameters or events there"
        )
        raise NotTested(Reason.PREREQUISITE_MISSING, detail)
    return found[0]


def distinctive(integration: Fixture) -> tuple[str, str]:
    """Return an optional parameter with a value that is shown again; raise NotTested when the profile gives none."""
    return given_field(integration, "distinctive_name", str), given_field(integration, "distinctive_value", str)


# -- setting up and putting back ---------------------------------------------------------------------------------------


def set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> Answer:
    """Set an integration up with its settings, some of them changed; all that it requires is always sent along."""
    return caller.put(path / slug_of(integration), {**settings_of(integration), **changes})


def given_set_up(caller: Caller, path: Path, integration: Fixture, **changes: Any) -> dict[str, Any]:
    """Set an integration up as a step of a story and return its entry; inconclusive when it is not listed then."""
    set_up(caller, path, integration, **changes).given_served()
    entry = caller.whole_list(path).the(slug=slug_of(integration))
    _in_entries.setdefault(current_run(), {})[slug_of(integration)] = frozenset(entry)
    return entry


def given_disabled(caller: Caller, path: Path, integration: Fixture) -> None:
    """Disable an integration as a step of a story; one that is still listed then fails what is stated of that."""
    before = caller.whole_list(path)
    caller.delete(path / slug_of(integration)).given_served()
    must_have_gone(before, caller, path, integration)


def must_have_gone(before: Listing, caller: Caller, path: Path, integration: Fixture) -> None:
    """Go on only if an integration that was listed before is listed no longer, after a call that disabled it."""
    if before.having(slug=slug_of(integration)):
        with given_done("integrations.disable.unlisted"):
            caller.whole_list(path).must_not_contain(slug=slug_of(integration), after=before)


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
            if before.having(slug=slug_of(integration)):
                set_up(caller, path, integration)
            else:
                caller.delete(path / slug_of(integration))
        holds_again()


# -- reading -----------------------------------------------------------------------------------------------------------


def entries(caller: Caller, path: Path) -> dict[str, dict[str, Any]]:
    """Return the entries of the list by slug, as their order is of no account, without times and what may move else."""
    listed = [entry for entry in caller.whole_list(path).entries if isinstance(entry, dict)]
    return {str(entry.get("slug")): comparable(of_records(entry, *_RECORDS)) for entry in listed}


def shown(caller: Caller, path: Path, slug: str, name: str) -> list[Any]:
    """
    Return every value that the service shows of a parameter; an empty list says that it is not shown.

    That is the value of the list entry, where entries have it, or all values under that name in the settings. There, an
    object beside a plain value describes the parameter, such as by its type, and is none.
    """
    known = _in_entries.setdefault(current_run(), {})
    entry = entries(caller, path).get(slug, {}) if slug not in known or name in known[slug] else {}
    if name in entry:
        return [entry[name]]
    if entry:
        known[slug] = frozenset(entry)
    found = values_under(name, caller.read(path / slug))
    plain = [value for value in found if not isinstance(value, dict)]
    return plain or found


def must_not_show_another(
    caller: Caller,
    path: Path,
    integration: Fixture,
    taken: tuple[str, Any],
    earlier: list[Any],
) -> None:
    """
    Expect that a value that was taken is the one that is shown, if one is; `taken` is the parameter's name and value.

    Secrets may be masked or left out, so of a text only an older one, one of another parameter, the same in other
    letters, or the first of a list, is surely another. A flag that is off may be shown as nothing, and one that stays
    true may be the certificate check of the integration that always checks.
    """
    slug, (name, value) = slug_of(integration), taken

    def is_recased(other: Any) -> bool:
        """Tell whether a text comes back in capitals or without; hosts of addresses have neither."""
        are_texts = isinstance(other, str) and isinstance(value, str) and not {":", "@"} & {*value}
        return are_texts and other != value and other.casefold() == value.casefold()

    first = value.partition(",")[0] if isinstance(value, str) and "," in value else None

    def others() -> list[Any]:
        found = shown(caller, path, slug, name)
        # In which form a setting is shown is open: a number may be told as text.
        tolerated = [
            value,
            str(value),
            *([True] if name == "enable_ssl_verification" else []),
            *([] if value else [None]),
        ]
        stale = [*earlier, *([first] if first else [])]
        others = [other for other in found if other in stale or isinstance(value, bool | int) or is_recased(other)]
        return [] if value in found else [other for other in others if other not in tolerated]

    must_settle(lambda: not others(), f"{name} = {value!r}, if it is shown", lambda: f"{name} = {others()}")


def must_not_garble(caller: Caller, path: Path, integration: Fixture, names: Sequence[str]) -> None:
    """
    Expect of an unusual text, and of a long one, that they are not shown as what bad handling makes of them.

    A service may refuse either, and need not show what it took.
    """
    for text in (_UNUSUAL, _LONG):
        if not set_up(caller, path, integration, **dict.fromkeys(names, text)).is_served:
            continue
        settings = caller.get(path / slug_of(integration))
        for name in names if settings.is_served else ():
            shown = {value for value in values_under(name, settings.json) if isinstance(value, str)}
            spoiled = _GARBLED & shown if text is _UNUSUAL else {value for value in shown if _is_cut(value, text)}
            must(not spoiled, f"{name} = {text}, if it is shown", f"{name} = {', '.join(spoiled)}", settings.exchange)


def _is_cut(shown: str, text: str) -> bool:
    """Tell whether a text ends too soon; a few characters may stand for a secret."""
    return len(text) > len(shown) > len(text) // 2 and text.startswith(shown)


def shows_text(answer: Answer, text: str) -> bool:
    """Tell whether an answer has a text anywhere in its body."""
    body = answer.exchange.body.decode("utf-8", "replace")
    try:
        return holds_text(text, json.loads(body))
    except (ValueError, RecursionError):
        return text in body


def holds_text(text: str, body: Any) -> bool:
    """Tell whether JSON has a text anywhere among its values."""
    if isinstance(body, dict):
        return any(holds_text(text, value) for value in body.values())
    if isinstance(body, list):
        return any(holds_text(text, value) for value in body)
    return isinstance(body, str) and text in body


def comparable(body: Any) -> Any:
    """Return what the contract names of JSON, in no order, without the times at which it was made or changed."""

    def without(body: Any) -> Any:
        if isinstance(body, dict):
            return {name: without(value) for name, value in body.items() if not name.endswith("_at")}
        if isinstance(body, list):
            return sorted(map(without, body), key=lambda value: json.dumps(value, sort_keys=True))
        return body

    return without(of_the_contract(body))


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
    shown = _shown_when_set_up.setdefault(current_run(), set())
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
    if slug_of(integration) in before:
        set_up(caller, path, integration)
    else:
        caller.delete(path / slug_of(integration))


_READING = RequestExample(before=_with_it)
_SETTING_UP = RequestExample(before=_without_it, state=_state)
_DISABLING = RequestExample(before=_with_it, state=_state, undo=left_to_the_next_call)

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
