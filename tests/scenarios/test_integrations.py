"""Integrations of a project: set up, changed, disabled, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite import Reason
from conformance.suite.arrange import ABSENT, INHERITED, UNUSED_ID
from conformance.suite.arrange.integration_values import must_take
from conformance.suite.arrange.integrations import (
    borrowed,
    distinctive,
    entries,
    event_flags,
    every_integration,
    flag_to_switch,
    given_disabled,
    given_set_up,
    has,
    integrations_path,
    offering,
    older_path,
    set_up,
    settings_of,
    shows_text,
    slug_of,
    without,
)
from conformance.suite.context import NotTested, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    named_otherwise,
    observe,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.expectations.words import settles
from conformance.suite.moments import is_later

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture

UNKNOWN_SLUG = "conformance-no-such-integration"
#: The settings that an issue tracker requires together.
ADDRESSES = ("new_issue_url", "issues_url", "project_url")


@pytest.fixture
def path(maintainer: Caller, project: Fixture, integration: Fixture) -> Iterator[Path]:
    """The project's integrations path; `integration` is not set up, and restored afterwards."""
    found = integrations_path(maintainer, project)
    with borrowed(maintainer, found, integration):
        yield found


# -- setting up, changing, disabling -----------------------------------------------------------------------------------


def test_an_integration_is_listed_from_being_set_up_until_it_is_disabled(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    """A disabled integration that stays active continues to send the project's events to a third party."""
    slug = slug_of(integration)
    first = set_up(maintainer, path, integration)
    listed = maintainer.whole_list(path)
    with verifies("integrations.set-up.accepted", go_on=True):
        first.must_be_served()
        listed.the(slug=slug)
    with verifies("integrations.set-up.listed"):
        first.given_served()
        listed.must_contain(slug=slug)
    disabled = maintainer.delete(path / slug)
    with verifies("integrations.disable.accepted", go_on=True):
        disabled.must_be_served()
    with verifies("integrations.disable.unlisted"):
        disabled.given_served()
        maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)
    with verifies("integrations.disable.set-up-again"):
        set_up(maintainer, path, integration).must_be_served()
        maintainer.whole_list(path).must_contain(slug=slug)
    with verifies("integrations.disable.unlisted"):
        maintainer.delete(path / slug).given_served()
        maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)


def test_a_second_reader_sees_what_was_set_up_and_disabled(
    maintainer: Caller,
    owner: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    """A caller who has read the list before must not get a cached one."""
    slug = slug_of(integration)
    given(not owner.whole_list(path).having(slug=slug), f"{slug} is listed before it was set up")
    given_set_up(maintainer, path, integration)
    with verifies("integrations.update.shows-to-everybody"):
        listed = owner.whole_list(path).must_contain_once(slug=slug)
        given_disabled(maintainer, path, integration)
        owner.whole_list(path).must_not_contain(slug=slug, after=listed)


def test_a_change_of_an_integration_shows_in_its_entry(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """Another flag is sent with the opposite value, and must not be mistaken for it."""
    flag = flag_to_switch(integrations)
    integration = offering(integrations, flag)
    path, slug = integrations_path(maintainer, project), slug_of(integration)
    others = [name for name in ("tag_push_events", "merge_requests_events") if name != flag and has(integration, name)]
    with borrowed(maintainer, path, integration):
        entry = given_set_up(maintainer, path, integration)
        with verifies("integrations.update.followed"):
            for wanted in (False, True, False):
                sent = {**dict.fromkeys(others, not wanted), flag: wanted}
                answer = set_up(maintainer, path, integration, **sent)
                must_take(maintainer, path, integration, (flag, wanted), answer, not wanted)
                maintainer.whole_list(path).must_contain(slug=slug, **{flag: wanted})
        with verifies("integrations.update.same-entry"):
            maintainer.whole_list(path).must_contain_once(slug=slug).must_contain(slug=slug, id=entry.get("id"))


def test_each_flag_of_an_entry_is_the_one_that_was_sent(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """No two flags have the same sequence of values, so that none can be shown in place of another.

    Each is switched on and off again. A flag that never changes may be fixed.
    """
    integration = max(integrations, key=lambda each: len(each.get("events") or ()))
    path, slug, flags = integrations_path(maintainer, project), slug_of(integration), integration.get("events") or []
    places = range((len(flags) + 1).bit_length())
    bits = {name: [bool(number >> place & 1) for place in places] for number, name in enumerate(flags, start=1)}
    sent = {name: [*values, not values[-1]] for name, values in bits.items()}
    found: dict[str, list[object]] = {name: [] for name in flags}

    def shown() -> dict[str, object]:
        entry = maintainer.whole_list(path).the(slug=slug)
        return {name: entry.get(name) for name in flags}

    def remember(now: dict[str, bool]) -> None:
        settles(lambda: shown() == now)  # if a target takes its time
        for name, value in shown().items():
            found[name].append(value)

    with borrowed(maintainer, path, integration):
        off = dict.fromkeys(flags, False)
        # An integration without any event is set up too, if a service accepts that.
        if flags and set_up(maintainer, path, integration, **off).is_served:
            with verifies("integrations.set-up.listed", go_on=True):
                maintainer.whole_list(path).must_contain(slug=slug)
                remember(off)
        set_up_off = [False] if any(found.values()) else []
        for place in range(len(places) + 1):
            now = {name: values[place] for name, values in sent.items()}
            set_up(maintainer, path, integration, **now).given_served()
            remember(now)
        # A set-up of what was disabled takes the same as a change.
        on = dict.fromkeys(flags, True)
        came_on = maintainer.delete(path / slug).is_served and set_up(maintainer, path, integration, **on).is_served
        if came_on:
            remember(on)
    moving = [name for name in flags if len(set(map(str, found[name]))) > 1]
    if not moving:
        left_to_others()  # the profile names no events, or no flags are shown: other tests check that
        return
    with verifies("integrations.update.followed"):
        for name in moving:
            wanted = [*set_up_off, *sent[name], *([True] if came_on else [])]
            must(
                found[name] == wanted,
                f"{name} = {as_json(wanted)}, one after the other",
                f"{name} = {as_json(found[name])}",
            )


def test_a_change_in_one_project_leaves_the_integrations_of_another(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
    sibling_project: Fixture,
) -> None:
    """The same integration is set up in the other project, so that a wrong change has something to hit."""
    neighbour = integrations_path(maintainer, sibling_project)
    with borrowed(maintainer, neighbour, integration):
        given_set_up(maintainer, neighbour, integration)

        def there() -> dict[str, object]:
            return dict(entries(maintainer, neighbour))

        with (
            verifies("integrations.belong-to-their-project"),
            unchanged(there, "the integrations of the other project"),
        ):
            before = given_set_up(maintainer, path, integration)
            if has(integration, "push_events"):
                given_set_up(maintainer, path, integration, push_events=not before.get("push_events"))
            with unchanged(there, "the integrations of the other project"):
                given_disabled(maintainer, path, integration)


# -- what an entry shows -----------------------------------------------------------------------------------------------


@pytest.mark.calls_area("integrations")
def test_the_entry_of_an_integration_has_its_times_and_a_flag_for_each_event_kind(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    entry = given_set_up(maintainer, path, integration)
    with verifies("integrations.entry.created-before-updated", go_on=True):
        times = {name: entry.get(name) for name in ("created_at", "updated_at")}
        later = is_later(*times.values())
        given(later is not None, f"{times} are no two moments")
        must(not later, "created_at not after updated_at", f"{times}")
    with verifies("events.flags.named-after-kind", go_on=True):
        for name in event_flags():
            must_have_flag(entry, name)
    with verifies("events.flags.job"):
        must_have_flag(entry, "job_events")


def must_have_flag(entry: dict[str, Any], name: str) -> None:
    must(isinstance(entry.get(name), bool), f"{name} as true or false", repr(entry.get(name, "no such property")))


def test_entries_tell_of_vulnerabilities_in_the_edition_that_has_them(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    entry = given_set_up(maintainer, path, integration)
    has_flag = "vulnerability_events" in entry
    observe(
        "integrations.entry.vulnerability-events.community",
        f"entries carry {'vulnerability_events' if has_flag else 'no vulnerability_events'}",
    )
    with verifies("integrations.entry.vulnerability-events.boolean"):
        flag = entry.get("vulnerability_events", False)
        must(isinstance(flag, bool), "vulnerability_events as true or false, if there is one", repr(flag))
    with verifies("integrations.entry.vulnerability-events.enterprise"):
        given(maintainer.target_declares("enterprise_edition"), "the target does not say it is the enterprise edition")
        given(has_flag or maintainer.target_version is not None, "the version is not known, and may be one without it")
        must(has_flag, "vulnerability_events", "no such property")


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unknown",
    [UNKNOWN_SLUG, INHERITED, ""],
    ids=["by-another-name", "by-an-inherited-name", "by-a-name-that-goes-on"],
)
def test_an_unknown_integration_is_neither_read_nor_set_up(
    unknown: str,
    maintainer: Caller,
    path: Path,
    project: Fixture,
    integration: Fixture,
) -> None:
    """The sent settings would be right for a known integration: nothing else is wrong with the call."""
    slug = unknown or f"{slug_of(integration)}-conformance-none"
    where = path if unknown else named_otherwise(path, project, maintainer)
    given_set_up(maintainer, path, integration)
    control = maintainer.get(path)
    # The list is read before the first of both calls: only that one may set up what stays from then on.
    with (
        verifies("integrations.unknown-slug.setting-up"),
        unchanged(lambda: entries(maintainer, path), "the list"),
    ):
        with verifies("integrations.unknown-slug.reading", go_on=True):
            maintainer.get(path / slug).must_be_refused(beside=control)
            if not unknown:  # the beginning of a name may be the name of another one
                own = slug_of(integration)
                whole, part = (maintainer.get(path / text) for text in (own, own[:-1]))
                is_same = whole.is_served and part.shows_json and part.json == whole.exchange.served_json
                must(not is_same, "not the integration whose name goes on", "its settings", part.exchange)
        maintainer.put(where / slug, settings_of(integration)).must_be_refused(beside=control)


def test_disabling_an_unknown_integration_changes_nothing(maintainer: Caller, path: Path, integration: Fixture) -> None:
    given_set_up(maintainer, path, integration)
    with (
        verifies("integrations.unknown-slug.disabling"),
        unchanged(lambda: entries(maintainer, path), "the list"),
    ):
        unknown = maintainer.delete(path / UNKNOWN_SLUG).must_not_break()
    observe(
        "integrations.unknown-slug.disabling-answer",
        f"disabling an integration that the service does not know answers {unknown.status}",
    )


def test_no_integration_is_read_or_set_up_in_a_project_that_does_not_exist(
    maintainer: Caller,
    path: Path,
    project: Fixture,
    integration: Fixture,
) -> None:
    """Disabling there may succeed too, because nothing is set up in it afterwards."""
    nowhere = Path(path.replace(project_path(project), f"/projects/{UNUSED_ID}"))
    slug = slug_of(integration)
    calls = (("PUT", slug, settings_of(integration)), ("GET", slug, ABSENT), ("GET", "", ABSENT))
    with verifies("integrations.unknown-project"):
        for method, below, body in calls:
            control = maintainer.call(method, path / below if below else path, json=body)
            unknown = maintainer.call(method, nowhere / below if below else nowhere, json=body)
            unknown.must_be_refused(beside=control)
        maintainer.delete(nowhere / slug).must_not_break()


@pytest.mark.parametrize(
    ("kind", "parameter", "required"),
    [
        ("chat_integration", "webhook", "integrations.parameters.webhook.required"),
        ("token_integration", "token", "integrations.parameters.token.required"),
        ("email_integration", "recipients", "integrations.parameters.recipients.required"),
    ],
    ids=["chat", "token", "email"],
)
def test_an_integration_is_not_set_up_without_what_it_requires(
    kind: str,
    parameter: str,
    required: str,
    maintainer: Caller,
    project: Fixture,
    request: pytest.FixtureRequest,
) -> None:
    """The integration is disabled first, because a value from an earlier set-up might be enough."""
    integration: Fixture = request.getfixturevalue(kind)
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, integration):
        with verifies(required, go_on=True):
            must_be_required(maintainer, project, integration, parameter)
        left_to_others("errors.refusal.changes-nothing")  # unless it sends a text that is shown again
        after = set_up_after_a_refusal(maintainer, path, integration, parameter)
        if after is not None:
            shown, value = after
            with verifies("errors.refusal.changes-nothing"):
                must(not shows_text(shown, value), "nothing of a call that was refused", value, shown.exchange)


def set_up_after_a_refusal(
    caller: Caller, path: Path, integration: Fixture, parameter: str
) -> tuple[Answer, str] | None:
    """Return an integration that was set up after a refused call, and the text that only this call had sent."""
    settings, text = settings_of(integration), integration.get("distinctive_name")
    if not text or text == parameter or text in settings:
        return None
    (name, value), one = distinctive(integration), path / slug_of(integration)
    if not caller.put(one, {**without(settings, parameter), name: value}).exchange.is_refusal:
        return None
    set_up(caller, path, integration).given_served()
    return caller.get(one).given_served(), value


def test_an_issue_tracker_is_not_set_up_with_two_of_its_three_addresses(
    maintainer: Caller,
    project: Fixture,
    issue_tracker_integration: Fixture,
) -> None:
    path = integrations_path(maintainer, project)
    with (
        borrowed(maintainer, path, issue_tracker_integration),
        verifies("integrations.parameters.issue-tracker-urls.required-together"),
    ):
        for address in ADDRESSES:
            must_be_required(maintainer, project, issue_tracker_integration, address)
    slug = slug_of(issue_tracker_integration)
    for other in every_integration(current_run().profile.fixtures.get("integration", ())):
        if slug_of(other) != slug and {*ADDRESSES} <= settings_of(other).keys() & {*(other.get("required") or ())}:
            with borrowed(maintainer, path, other):
                must_require_all_three(maintainer, path, other)


def must_require_all_three(caller: Caller, path: Path, tracker: Fixture) -> None:
    """Check this for another issue tracker, if it can be set up: each may store its settings separately."""
    slug, settings = slug_of(tracker), settings_of(tracker)
    control, listed = caller.put(path / slug, settings), caller.whole_list(path)
    if control.is_served and listed.having(slug=slug):
        given_disabled(caller, path, tracker)
        with verifies("integrations.parameters.issue-tracker-urls.required-together"):
            for address in ADDRESSES:
                caller.put(path / slug, without(settings, address)).must_be_refused(beside=control)
            caller.whole_list(path).must_not_contain(slug=slug, after=listed)


def must_be_required(caller: Caller, project: Fixture, integration: Fixture, parameter: str) -> None:
    """Expect that a set-up needs a parameter: without it, it is neither served nor listed, by either name or by path.

    A change that is refused because of it changes nothing: the earlier set-up stays listed.
    """
    slug, settings = slug_of(integration), settings_of(integration)
    path, older = integrations_path(caller, project), older_path(caller, project)
    if parameter not in settings:
        raise NotTested(Reason.PREREQUISITE_MISSING, f"the profile gives no '{parameter}' in the settings of {slug}")
    control = caller.put(path / slug, settings)
    listed = caller.whole_list(path)
    if caller.put(path / slug, {**settings, parameter: ""}).exchange.is_refusal and listed.having(slug=slug):
        caller.whole_list(path).must_contain(slug=slug)
    else:  # the effect of an accepted blank value is not stated
        caller.put(path / slug, settings)
    given_disabled(caller, path, integration)
    lacking = {name: value for name, value in settings.items() if name != parameter}
    # By the path beside the flag of an event, which makes nothing else right.
    flagged = {**lacking, **dict.fromkeys((integration.get("events") or ())[:1], True)}
    calls = [(path, lacking), *([(older, lacking)] if older else [])]
    if (by_path := (named_otherwise(path, project, caller), flagged)) not in calls:
        calls.append(by_path)
    for name, sent in calls:
        caller.follow(caller.put(name / slug, sent)).must_be_refused(beside=control)
    caller.whole_list(path).must_not_contain(slug=slug, after=listed)
