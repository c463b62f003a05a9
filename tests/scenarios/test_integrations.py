"""Integrations of a project: set up, changed, disabled, each on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.integrations import (
    borrowed,
    distinctive,
    entries,
    first_with,
    given_disabled,
    given_set_up,
    given_unlisted,
    has,
    integrations_path,
    least_settings,
    set_up,
    settings_of,
    shows_text,
    slug_of,
    without,
)
from conformance.suite.expectations import Caller, Path, given, must, observe, project_path, unchanged, verifies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Fixture

UNKNOWN_SLUG = "conformance-no-such-integration"
UNUSED_ID = 2_000_000_001
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


@pytest.fixture
def path(maintainer: Caller, project: Fixture, integration: Fixture) -> Iterator[Path]:
    """Where the project has its integrations; `integration` is not set up, and left as it was found."""
    found = integrations_path(maintainer, project)
    with borrowed(maintainer, found, integration):
        yield found


@pytest.fixture
def pair(maintainer: Caller, project: Fixture, integrations: tuple[Fixture, ...]) -> Iterator[tuple[Fixture, Fixture]]:
    """Two integrations that are not set up, and are left as they were found; the first takes push_events."""
    first = first_with(integrations, "push_events")
    second = next(other for other in integrations if slug_of(other) != slug_of(first))
    with borrowed(maintainer, integrations_path(maintainer, project), first, second):
        yield first, second


# -- setting up, changing, disabling -----------------------------------------------------------------------------------


def test_an_integration_is_listed_from_being_set_up_until_it_is_disabled(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    """A disabled integration that stays active goes on telling a third party what happens in the project."""
    slug = slug_of(integration)
    first = set_up(maintainer, path, integration)
    listed = maintainer.whole_list(path)
    with verifies("integrations.set-up.accepted", go_on=True):
        first.must_be_served()
        listed.the(slug=slug)
    with verifies("integrations.set-up.listed"):
        first.given_served()
        listed.must_contain(slug=slug)
    with verifies("integrations.disable.accepted", go_on=True):
        disabled = maintainer.delete(path / slug).must_be_served()
    with verifies("integrations.disable.unlisted"):
        disabled.given_served()
        maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)
    with verifies("integrations.disable.set-up-again"):
        set_up(maintainer, path, integration).must_be_served()
        maintainer.whole_list(path).must_contain(slug=slug)
    with verifies("integrations.disable.unlisted"):
        maintainer.delete(path / slug).given_served()
        maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)


def test_a_change_of_an_integration_shows_in_its_entry(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    integration = first_with(integrations, "push_events")
    path, slug = integrations_path(maintainer, project), slug_of(integration)
    with borrowed(maintainer, path, integration):
        entry = given_set_up(maintainer, path, integration)
        with verifies("integrations.update.followed"):
            for wanted in (False, True, False):
                set_up(maintainer, path, integration, push_events=wanted).must_be_served()
                maintainer.whole_list(path).must_contain(slug=slug, push_events=wanted)
        with verifies("integrations.update.same-entry"):
            maintainer.whole_list(path).must_contain_once(slug=slug).must_contain(slug=slug, id=entry.get("id"))


def test_a_change_of_one_integration_leaves_the_others(
    maintainer: Caller,
    project: Fixture,
    pair: tuple[Fixture, Fixture],
) -> None:
    path, (moving, resting) = integrations_path(maintainer, project), pair
    given_set_up(maintainer, path, resting)

    def others() -> dict[str, object]:
        found = entries(maintainer, path)
        return {slug: entry for slug, entry in found.items() if slug != slug_of(moving)}

    with verifies("integrations.update.leaves-others"), unchanged(others, "the entries of the other integrations"):
        given_set_up(maintainer, path, moving, push_events=True)
        with unchanged(others, "the entries of the other integrations"):
            given_set_up(maintainer, path, moving, push_events=False)
        given_disabled(maintainer, path, moving)
    listed = maintainer.whole_list(path)
    given_disabled(maintainer, path, resting)
    given_set_up(maintainer, path, moving)
    with verifies("integrations.update.leaves-others"):
        maintainer.whole_list(path).must_not_contain(slug=slug_of(resting), after=listed)


def test_a_change_in_one_project_leaves_the_integrations_of_another(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
    fuzz_project: Fixture,
) -> None:
    """The same integration is set up in the other project, so that a slip to the neighbour has something to hit."""
    neighbour = integrations_path(maintainer, fuzz_project)
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


def test_disabling_an_integration_forgets_its_settings(maintainer: Caller, path: Path, integration: Fixture) -> None:
    """An address that survives its integration may come back with the next one who sets it up."""
    slug, (name, value) = slug_of(integration), distinctive(integration)
    given_set_up(maintainer, path, integration, **{name: value})
    before = maintainer.get(path / slug).given_served()
    given(shows_text(before, value), f"{slug} does not show the {name} that it was given")
    given_disabled(maintainer, path, integration)
    with verifies("integrations.disable.settings-reset", go_on=True):
        left = maintainer.get(path / slug).must_not_break()
        still = left.is_served and shows_text(left, value)
        must(not still, f"{name} reset", f"{name} = {value} is still shown", left.exchange)
    answered = "answers 200 with blank settings" if left.is_served else f"is refused with {left.status}"
    observe("integrations.disable.reading-answer", f"reading an integration that is not set up {answered}")
    with verifies("integrations.disable.settings-stay-reset"):
        maintainer.put(path / slug, without(least_settings(integration), name)).given_served()
        again = maintainer.get(path / slug).given_served()
        must(not shows_text(again, value), f"{name} reset", f"{name} = {value} has come back", again.exchange)


def test_disabling_what_is_not_set_up_changes_nothing(
    maintainer: Caller,
    project: Fixture,
    pair: tuple[Fixture, Fixture],
) -> None:
    path, (gone, resting) = integrations_path(maintainer, project), pair
    given_set_up(maintainer, path, resting)
    given_set_up(maintainer, path, gone)
    given_disabled(maintainer, path, gone)
    with (
        verifies("integrations.disable.repeated"),
        unchanged(lambda: entries(maintainer, path), "the list"),
    ):
        again = maintainer.delete(path / slug_of(gone)).must_not_break()
    observe(
        "integrations.disable.repeated-answer",
        f"disabling an integration that is not set up answers {again.status}",
    )


# -- what an entry shows -----------------------------------------------------------------------------------------------


def test_the_entry_of_an_integration_names_a_flag_after_each_event_kind(
    maintainer: Caller,
    path: Path,
    integration: Fixture,
) -> None:
    entry = given_set_up(maintainer, path, integration)
    with verifies("events.flags.named-after-kind", go_on=True):
        for kind in EVENT_KINDS:
            must_have_flag(entry, f"{kind}_events")
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
        must(has_flag, "vulnerability_events", "no such property")


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_an_unknown_integration_is_neither_read_nor_set_up(maintainer: Caller, project: Fixture) -> None:
    path = integrations_path(maintainer, project)
    control = maintainer.get(path)
    with verifies("integrations.unknown-slug.reading", go_on=True):
        maintainer.get(path / UNKNOWN_SLUG).must_be_refused(beside=control)
    with (
        verifies("integrations.unknown-slug.setting-up"),
        unchanged(lambda: entries(maintainer, path), "the list"),
    ):
        maintainer.put(path / UNKNOWN_SLUG, {"push_events": True}).must_be_refused(beside=control)


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


def test_no_operation_reads_or_sets_up_an_integration_of_a_project_that_does_not_exist(
    maintainer: Caller,
    path: Path,
    project: Fixture,
    integration: Fixture,
) -> None:
    """Disabling there may succeed as well: nothing is set up in it afterwards."""
    nowhere = Path(path.replace(project_path(project), f"/projects/{UNUSED_ID}"))
    slug = slug_of(integration)
    calls = (("PUT", slug, settings_of(integration)), ("GET", slug, None), ("GET", "", None))
    with verifies("integrations.unknown-project"):
        for method, below, body in calls:
            sent = {} if body is None else {"json": body}
            control = maintainer.call(method, path / below if below else path, **sent)
            unknown = maintainer.call(method, nowhere / below if below else nowhere, **sent)
            unknown.must_be_refused(beside=control)
        maintainer.delete(nowhere / slug).must_not_break()


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [("chat", "webhook"), ("token", "token"), ("email", "recipients")],
)
def test_an_integration_is_not_set_up_without_what_it_requires(
    kind: str,
    parameter: str,
    maintainer: Caller,
    project: Fixture,
    request: pytest.FixtureRequest,
) -> None:
    """A value from an earlier set-up might do, so the integration is disabled first."""
    integration: Fixture = request.getfixturevalue(f"{kind}_integration")
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, integration), verifies(f"integrations.parameters.{parameter}.required"):
        must_be_required(maintainer, path, integration, parameter)


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
        for address in ("new_issue_url", "issues_url", "project_url"):
            must_be_required(maintainer, path, issue_tracker_integration, address)


def must_be_required(caller: Caller, path: Path, integration: Fixture, parameter: str) -> None:
    """Expect that an integration is set up with a parameter, and neither served nor listed without it."""
    slug, settings = slug_of(integration), settings_of(integration)
    given(parameter in settings, f"the profile gives no {parameter} for {slug}")
    control = caller.put(path / slug, settings)
    listed = caller.whole_list(path)
    given_disabled(caller, path, integration)
    lacking = {name: value for name, value in settings.items() if name != parameter}
    caller.put(path / slug, lacking).must_be_refused(beside=control)
    caller.whole_list(path).must_not_contain(slug=slug, after=listed)


# -- particular integrations -------------------------------------------------------------------------------------------


def test_the_chat_app_integration_is_not_set_up_by_a_call(
    maintainer: Caller,
    project: Fixture,
    chat_app_integration: Fixture,
) -> None:
    """It is never disabled beforehand: where it is installed after all, no call could bring it back."""
    path, slug = integrations_path(maintainer, project), slug_of(chat_app_integration)
    control = maintainer.get(path)
    given_unlisted(maintainer, path, chat_app_integration)
    created = set_up(maintainer, path, chat_app_integration)
    listed = maintainer.whole_list(path).having(slug=slug)
    if created.is_served:
        maintainer.delete(path / slug)
    with verifies("integrations.chat-app.not-created"):
        created.must_be_refused(beside=control)
        must(not listed, f"no entry with slug = {slug}", "it is listed")


def test_an_installed_chat_app_integration_can_be_changed(
    maintainer: Caller,
    installed_chat_app_integration: Fixture,
) -> None:
    installed, slug = installed_chat_app_integration, slug_of(installed_chat_app_integration)
    number = installed.get("project_id")
    given(isinstance(number, int), "the profile does not give the project_id of installed_chat_app_integration")
    given(has(installed, "push_events"), f"the profile does not give push_events among the events of {slug}")
    older = "services" in integrations_path(maintainer, installed)
    path = Path(f"/projects/{number}") / ("services" if older else "integrations")
    before = maintainer.whole_list(path).the(slug=slug).get("push_events")
    given(isinstance(before, bool), f"the entry of {slug} does not show push_events")
    try:
        with verifies("integrations.chat-app.updated"):
            set_up(maintainer, path, installed, push_events=not before).must_be_served()
            maintainer.whole_list(path).must_contain(slug=slug, push_events=not before)
    finally:
        set_up(maintainer, path, installed, push_events=before)


def test_a_switchable_issue_tracker_is_off_unless_it_is_told_to_be_active(
    maintainer: Caller,
    project: Fixture,
    switchable_integration: Fixture,
) -> None:
    path, slug = integrations_path(maintainer, project), slug_of(switchable_integration)
    settings = {name: value for name, value in settings_of(switchable_integration).items() if name != "active"}
    with borrowed(maintainer, path, switchable_integration):
        silent = maintainer.put(path / slug, settings)
        untold = maintainer.whole_list(path)
        told = maintainer.put(path / slug, {**settings, "active": True})
        listed = maintainer.whole_list(path)
        # Settings that save neither way say nothing; those that save with active must save without it as well.
        given(silent.is_served or told.is_served, f"the settings of {slug} are refused with active and without it")
        with verifies("integrations.parameters.active.default", go_on=True):
            silent.must_be_served()
            told.must_be_served()
            listed.must_contain(slug=slug)
            must(not untold.having(slug=slug), f"no entry with slug = {slug} before active true", "it is listed")
        with verifies("integrations.list.active-only"):
            maintainer.put(path / slug, {**settings, "active": False}).given_served()
            maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)
