"""Integrations that differ from the others: the chat app, and issue trackers with switches of their own."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.suite.accepted import DONE_WITHIN_SECONDS
from conformance.suite.arrange.integration_values import must_take
from conformance.suite.arrange.integrations import (
    NEWER_NAME,
    OLDER_NAME,
    borrowed,
    every_integration,
    given_unlisted,
    has,
    has_both_names,
    integrations_path,
    offering,
    older_path,
    set_up,
    settings_of,
    shows_text,
    slug_of,
)
from conformance.suite.context import current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    given_field,
    left_to_others,
    must,
    must_settle,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture

#: Integrations that a call can set up and that are active by default.
SPECIAL = ("email_integration", "emails_on_push_integration", "issue_tracker_integration", "chat_integration")


def test_the_chat_app_integration_is_not_set_up_by_a_call(
    maintainer: Caller,
    project: Fixture,
    chat_app_integration: Fixture,
) -> None:
    """It is never disabled first: if it is installed after all, no call could restore it."""
    path, slug = integrations_path(maintainer, project), slug_of(chat_app_integration)
    control = maintainer.get(path)
    given_unlisted(maintainer, path, chat_app_integration)
    for where in filter(None, (path, older_path(maintainer, project))):
        created = maintainer.follow(set_up(maintainer, where, chat_app_integration))
        listed = maintainer.whole_list(path).having(slug=slug)
        if created.is_served:
            maintainer.delete(path / slug)
        with verifies("integrations.chat-app.not-created"):
            created.must_be_refused(beside=control)
            must(not listed, f"no entry with slug = {slug}", "it is listed")


def test_a_slug_of_several_words_is_listed_as_it_is_called(maintainer: Caller, project: Fixture) -> None:
    """The character between the words is part of the slug."""
    fixtures = current_run().profile.fixtures
    known = [one for name in ("integration", *SPECIAL) for one in fixtures.get(name, ())]
    path, is_set_up = integrations_path(maintainer, project), False
    before = maintainer.whole_list(path)
    of_words = [one for one in known if not (slug_of(one).isalnum() or before.having(slug=slug_of(one)))]
    joined = next(iter(of_words), None)
    if joined is not None:
        with borrowed(maintainer, path, joined):
            # Other tests check whether the settings can be saved.
            is_set_up = set_up(maintainer, path, joined).is_served
            listed = maintainer.whole_list(path)
    if joined is None or not is_set_up:
        left_to_others("integrations.set-up.listed")
        return
    with verifies("integrations.set-up.listed"):
        must(bool(listed.having(slug=slug_of(joined))), f"an entry with slug = {slug_of(joined)}", "none")


def test_an_installed_chat_app_integration_can_be_changed(
    maintainer: Caller,
    project: Fixture,
    installed_chat_app_integration: Fixture,
) -> None:
    installed, slug = installed_chat_app_integration, slug_of(installed_chat_app_integration)
    offering((installed,), "push_events")
    number = given_field(installed, "project_id", int)
    path = Path(f"/projects/{number}") / (NEWER_NAME if has_both_names(maintainer, project) else OLDER_NAME)
    before = maintainer.whole_list(path).the(slug=slug).get("push_events")
    given(isinstance(before, bool), f"the entry of {slug} does not show push_events")
    try:
        with verifies("integrations.chat-app.updated"):
            answer = set_up(maintainer, path, installed, push_events=not before)
            must_take(maintainer, path, installed, ("push_events", not before), answer, before)
            maintainer.whole_list(path).must_contain(slug=slug, push_events=not before)
        elsewhere = integrations_path(maintainer, project)
        control = maintainer.whole_list(elsewhere)
        if number == project.id or control.having(slug=slug):
            left_to_others("integrations.chat-app.not-created")
            return
        # That it exists does not mean that a call can create it.
        created = set_up(maintainer, elsewhere, installed)
        if created.is_served:
            maintainer.delete(elsewhere / slug)
        with verifies("integrations.chat-app.not-created"):
            created.must_be_refused(beside=maintainer.get(elsewhere))
    finally:
        set_up(maintainer, path, installed, push_events=before)


def test_a_switchable_issue_tracker_is_off_unless_it_is_told_to_be_active(
    maintainer: Caller,
    project: Fixture,
    switchable_integration: Fixture,
) -> None:
    path, slug = integrations_path(maintainer, project), slug_of(switchable_integration)
    settings = {name: value for name, value in settings_of(switchable_integration).items() if name != "active"}
    older = older_path(maintainer, project)
    left_to_others("integrations.alias.lists-the-same")  # unless it can be switched off
    with borrowed(maintainer, path, switchable_integration):
        silent = maintainer.put(path / slug, settings)
        untold = maintainer.whole_list(path)
        told = maintainer.put(path / slug, {**settings, "active": True})
        listed = maintainer.whole_list(path)
        was_under_it = older is not None and slug in slugs_under(maintainer, older)
        # Settings that cannot be saved either way show nothing; those saved with active must be saved without it too.
        given(silent.is_served or told.is_served, f"the settings of {slug} are refused with active and without it")
        with verifies("integrations.parameters.active.default", go_on=True):
            silent.must_be_served()
            told.must_be_served()
            listed.must_contain(slug=slug)
            must(not untold.having(slug=slug), f"no entry with slug = {slug} before active true", "it is listed")
        with verifies("integrations.list.active-only"):
            beside = text_beside(switchable_integration)
            maintainer.put(path / slug, {**settings, **beside, "active": False}).given_served()
            maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)
        if older is not None and was_under_it:
            with verifies("integrations.alias.lists-the-same", go_on=True):
                still = slug in slugs_under(maintainer, older)
                must(not still, f"no entry with slug = {slug}, as under the newer name", "it is listed")
        with verifies("integrations.parameters.active.default", go_on=True):
            # With its stored value and its default it stays off.
            again = maintainer.put(path / slug, {**settings, **beside}).is_served
            later = maintainer.whole_list(path).having(slug=slug) if again else []
            must(not later, f"no entry with slug = {slug} after a change that says nothing of active", "it is listed")
        # An inactive one has settings too; whether there is anything to disable is open.
        gone = maintainer.delete(path / slug) if beside else None
        if gone is not None and gone.is_served:
            with verifies("integrations.disable.settings-reset"):
                # It was in no list before, so only its settings show when accepted work is done.
                must_settle(
                    lambda: not still_shown(maintainer, path / slug, beside),
                    f"{', '.join(beside)} reset",
                    lambda: f"{still_shown(maintainer, path / slug, beside)} is still shown",
                    within=DONE_WITHIN_SECONDS if gone.status == HTTPStatus.ACCEPTED else 0,
                )
        else:
            left_to_others("integrations.disable.settings-reset")
        maintainer.delete(path / slug)
        older = older_path(maintainer, project)
        if older is not None and told.is_served:
            must_be_switched_by_the_older_name(maintainer, path, older / slug, settings)


def slugs_under(caller: Caller, path: Path) -> list[object]:
    """Return the slugs of a list under the older name; none if it is not served, or is no list."""
    answer = caller.follow(caller.get(path))
    entries = answer.given_json() if answer.is_served else []
    return [entry.get("slug") for entry in entries if isinstance(entry, dict)]


def must_be_switched_by_the_older_name(caller: Caller, path: Path, older: Path, settings: dict[str, Any]) -> None:
    """Expect the same of an integration that is not set up yet if it is called by the older name."""
    slug = older.rpartition("/")[2]
    before = caller.whole_list(path)
    silent = caller.follow(caller.put(older, settings))
    untold = caller.whole_list(path)
    if silent.is_served and not before.having(slug=slug):
        with verifies("integrations.parameters.active.default", go_on=True):
            must(not untold.having(slug=slug), f"no entry with slug = {slug} before active true", "it is listed")
    on = caller.follow(caller.put(older, {**settings, "active": True}))
    listed = caller.whole_list(path)
    off = caller.follow(caller.put(older, {**settings, "active": False}))
    if on.is_served and listed.having(slug=slug) and off.is_served:
        with verifies("integrations.list.active-only", go_on=True):
            caller.whole_list(path).must_not_contain(slug=slug, after=listed)


def still_shown(reader: Caller, one: Path, texts: dict[str, str]) -> dict[str, str]:
    """Return the texts that an integration still shows."""
    left = reader.get(one).must_not_break()
    return {name: value for name, value in texts.items() if left.is_served and shows_text(left, value)}


def text_beside(integration: Fixture) -> dict[str, str]:
    """Return an optional text that an integration shows; None if none is known."""
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    return {name: value} if isinstance(name, str) and isinstance(value, str) else {}


def test_comments_on_events_are_switched_as_the_entry_says(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """Whether commits are told of is another switch, which is set the other way round meanwhile."""
    path = integrations_path(maintainer, project)
    integration = offering(every_integration(integrations), "comment_on_event_enabled")
    with (
        borrowed(maintainer, path, integration),
        verifies("integrations.parameters.comment-on-event-enabled.followed"),
    ):
        beside = {"merge_requests_events": True} if has(integration, "merge_requests_events") else {}
        for wanted in (False, True, False):  # once when it is set up, and then when it is changed
            if beside and has(integration, "commit_events"):
                beside["commit_events"] = not wanted
            set_up(maintainer, path, integration, comment_on_event_enabled=wanted, **beside).given_served()
            listed = maintainer.whole_list(path)
            listed.must_contain(slug=slug_of(integration), comment_on_event_enabled=wanted)
