"""What disabling an integration resets: its texts, flags, switches and numbers."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.integrations import (
    borrowed,
    distinctive,
    every_integration,
    given_disabled,
    given_set_up,
    has,
    integrations_path,
    least_but,
    least_settings,
    older_path,
    shows_text,
    slug_of,
)
from conformance.suite.arrange.places import by_full_path
from conformance.suite.context import Unmet, suspects
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    given_field,
    left_to_others,
    must,
    named_otherwise,
    observe,
    verifies,
)
from conformance.suite.shown_records import values_under

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.suite import Exchange, Fixture

FLAG = (False, True)
#: Parameters whose values do not matter to a service, with two values of each; not the one that activates it.
RESETTABLE: Mapping[str, tuple[bool | int, bool | int]] = {
    **dict.fromkeys(
        (
            "colorize_messages",
            "comment_on_event_enabled",
            "disable_diffs",
            "enable_ssl_verification",
            "jira_issue_transition_automatic",
            "notify_only_broken_pipelines",
            "notify_only_default_branch",
            "send_from_committer_email",
        ),
        FLAG,
    ),
    "server_port": (60001, 60002),
}
#: Texts that say where a service tells of an event.
CHANNELS = tuple(f"{kind}_channel" for kind in ("push", "note", "tag_push", "pipeline", "group_mentions"))
#: Special ones: a number, and a flag that is no event.
STANDING_ALONE = frozenset({"server_port", "comment_on_event_enabled"})


def test_disabling_an_integration_forgets_its_switches_and_numbers(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """Whatever the reset value is, it cannot depend on the former one, for both of two former values.

    If none is shown there is nothing to check, and the texts of an integration show enough.
    """
    path, moved = integrations_path(maintainer, project), set[str]()
    for integration, names in holders_of_resettable(every_integration(integrations)):
        with suppress(Unmet):  # the others are checked anyway
            found = after_disabling(maintainer, path, integration, names)
            moved |= found.moved
            if found.moved:
                with verifies("integrations.disable.settings-reset", go_on=True):
                    still = f"{', '.join(found.left)} still shown"
                    must(not found.left, f"{', '.join(found.moved)} reset", still, *found.while_disabled)
                with verifies("integrations.disable.settings-stay-reset", go_on=True):
                    back = f"{', '.join(found.back)} as before it was disabled"
                    must(not found.back, f"{', '.join(found.moved)} reset", back, *found.set_up_again)
    if not moved:
        left_to_others("integrations.disable.settings-reset", "integrations.disable.settings-stay-reset")


def holders_of_resettable(known: list[Fixture]) -> Iterator[tuple[Fixture, set[str]]]:
    """Yield the integration with most of these parameters, and others with special ones."""
    offered = {slug_of(one): {name for name in RESETTABLE if has(one, name)} - {*least_settings(one)} for one in known}
    most = max(offered.values(), key=len, default=set())
    left = most | (STANDING_ALONE & set().union(*offered.values()))
    while left:
        integration = max(known, key=lambda one: len(offered[slug_of(one)] & left))
        yield integration, offered[slug_of(integration)]
        left -= offered[slug_of(integration)]


@dataclass(frozen=True)
class Forgotten:
    """The parameters that an integration showed as sent, both times, and those that survived."""

    moved: set[str]
    left: set[str]
    """Those that still have their values while it is disabled."""
    back: set[str]
    """Those that have their values after it is set up again without them."""
    while_disabled: tuple[Exchange, ...]
    """The calls that show the former."""
    set_up_again: tuple[Exchange, ...]
    """The calls that show the latter."""


def after_disabling(caller: Caller, path: Path, integration: Fixture, names: set[str]) -> Forgotten:
    """Set an integration up with each of two values of its parameters, disable it, and set it up without them."""
    slug, least = slug_of(integration), least_settings(integration)
    moved, left, back = set(names), set(names), set(names)
    with borrowed(caller, path, integration):
        for number in (0, 1):
            values = {name: RESETTABLE[name][number] for name in names}
            caller.put(path / slug, {**least, **values}).given_served()
            moved &= shown_as(caller.read(path / slug), values)
            given_disabled(caller, path, integration)
            disabled = caller.get(path / slug)
            while_disabled = suspects()
            left &= shown_as(disabled.json, values) if disabled.is_served else set()
            caller.put(path / slug, least).given_served()
            back &= shown_as(caller.read(path / slug), values)
            set_up_again = suspects()
            given_disabled(caller, path, integration)
    return Forgotten(moved, moved & left, moved & back, while_disabled, set_up_again)


def shown_as(settings: Any, values: Mapping[str, bool | int]) -> set[str]:
    """Return the parameters that settings show with these values; a number may be told as text."""
    return {
        name
        for name, value in values.items()
        if any(found is value or str(found) == str(value) for found in values_under(name, settings))
    }


# -- texts and flags ---------------------------------------------------------------------------------------------------


@pytest.fixture
def path(maintainer: Caller, project: Fixture, integration: Fixture) -> Iterator[Path]:
    """The project's integrations path; `integration` is not set up, and restored afterwards."""
    found = integrations_path(maintainer, project)
    with borrowed(maintainer, found, integration):
        yield found


def test_disabling_an_integration_forgets_its_settings(maintainer: Caller, path: Path, integration: Fixture) -> None:
    """A stored address may come back for the next person who sets the integration up.

    It is disabled by the path of its project, and read by both; the switches and numbers above are disabled by the
    number.
    """
    slug, (name, value) = slug_of(integration), distinctive(integration)
    given_set_up(maintainer, path, integration, **{name: value})
    before = maintainer.get(path / slug).given_served()
    given(shows_text(before, value), f"{slug} does not show the {name} that it was given")
    named = by_full_path(path, maintainer)
    by_path = shows_text(maintainer.get(named / slug), value)
    given_disabled(maintainer, named, integration)
    left = maintainer.get(path / slug)
    with verifies("integrations.disable.settings-reset", go_on=True):
        left.must_not_break()
        still = left.is_served and shows_text(left, value)
        must(not still, f"{name} reset", f"{name} = {value} is still shown", left.exchange)
        again = maintainer.get(named / slug) if by_path else left
        still = again.is_served and shows_text(again, value)
        must(not still, f"{name} reset", f"{name} = {value} is still shown by the path", again.exchange)
    answered = "answers 200 with blank settings" if left.is_served else f"is refused with {left.status}"
    observe("integrations.disable.reading-answer", f"reading an integration that is not set up {answered}")
    with verifies("integrations.disable.settings-stay-reset"):
        maintainer.put(path / slug, least_but(integration, value)).given_served()
        again = maintainer.get(path / slug).given_served()
        must(not shows_text(again, value), f"{name} reset", f"{name} = {value} has come back", again.exchange)


def test_disabling_an_integration_switches_its_flags_back(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """A flag that is not sent at the second set-up is as after the first set-up, or all flags are off.

    One flag that is on at first stays on, so that a kept value differs from a switched-off one.
    """
    left_to_others("integrations.disable.settings-stay-reset")  # unless it shows channels of events
    integration = max(integrations, key=lambda each: len(each.get("events") or ()))
    slug, least = slug_of(integration), least_settings(integration)
    flags = [name for name in given_field(integration, "events", list) if name not in least]
    given(bool(flags), f"the profile names no event of {slug}")
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, integration):
        first = shown_flags(maintainer, path, slug, least, flags)
        turned = {name: not value for name, value in first.items()}
        changed = shown_flags(maintainer, path, slug, {**least, **turned}, flags)
        moved = [name for name in first if changed.get(name) != first[name]]
        left_on = next((name for name in moved if first[name]), None)
        if left_on is not None:
            moved.remove(left_on)
            shown_flags(maintainer, path, slug, {**least, **turned, left_on: True}, flags)
        given(bool(moved), f"no flag of {slug} moves that is shown")
        given_disabled(maintainer, path, integration)
        with verifies("integrations.disable.flags-reset", go_on=True):
            must_be_back(shown_flags(maintainer, path, slug, least, flags), first, moved, left_on)
        # Disabling it by the older name and the path of the project resets as much, and the channels of the events.
        older, on = older_path(maintainer, project), {left_on: True} if left_on is not None else {}
        told = {name: f"conformance-{name}-47" for name in CHANNELS if has(integration, name)}
        bodies = ({**least, **turned, **on, **more} for more in (told, {}))
        if older is not None and any(maintainer.put(path / slug, body).is_served for body in bodies):
            channels = shown_texts(maintainer, path / slug, told.values())
            named = named_otherwise(older, project, maintainer) / slug
            maintainer.follow(maintainer.call("DELETE", named)).given_served()
            with verifies("integrations.disable.flags-reset", go_on=True):
                must_be_back(shown_flags(maintainer, path, slug, least, flags), first, moved, left_on)
            if channels:
                with verifies("integrations.disable.settings-stay-reset"):
                    back = shown_texts(maintainer, path / slug, channels)
                    must(not back, "the channels reset", f"{', '.join(back)} as before it was disabled")


def shown_texts(caller: Caller, integration: Path, texts: Iterable[str]) -> list[str]:
    """Return those of some texts that an integration shows."""
    answer = caller.get(integration)
    return [text for text in texts if answer.is_served and shows_text(answer, text)]


def must_be_back(again: dict[str, bool], first: dict[str, bool], moved: list[str], left_on: str | None) -> None:
    """Expect that flags which moved are as after the first set-up, or that all are off."""
    are_off = not any(again.get(name) for name in filter(None, (*moved, left_on)))
    kept = [name for name in moved if again.get(name) != first[name] and not are_off]
    must(not kept, f"{', '.join(moved)} as at first", f"{', '.join(kept)} as before it was disabled")


def test_a_flag_that_is_not_sent_does_not_follow_one_that_is(
    maintainer: Caller, project: Fixture, integrations: tuple[Fixture, ...]
) -> None:
    """Whether a service keeps a flag that is not sent or sets it back: each is as after a set-up without any flag.

    For any two flags, there is a call that sends one of them and not the other. A service may regard a flag for
    confidential things as part of the flag for all of them.
    """
    integration = max(integrations, key=lambda each: len(each.get("events") or ()))
    slug, least = slug_of(integration), least_settings(integration)
    flags = [name for name in given_field(integration, "events", list) if name not in least]
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, integration):
        maintainer.put(path / slug, least).given_served()  # a first set-up may treat what is not sent in another way
        usual = shown_flags(maintainer, path, slug, least, flags)
        given(len(usual) > 1, f"no two flags of {slug} are shown")
        for place, bit in product(range(len(usual).bit_length()), (0, 1)):
            sent = [name for number, name in enumerate(usual) if number >> place & 1 == bit]
            free = {*sent, *(name for name in usual if name.replace("confidential_", "") in sent)}
            shown = shown_flags(maintainer, path, slug, {**least, **{name: not usual[name] for name in sent}}, flags)
            with verifies("integrations.update.followed"):
                followed = [name for name in usual if name not in free and shown.get(name, usual[name]) != usual[name]]
                must(not followed, f"only {', '.join(sent)} changed", f"{', '.join(followed)} changed, not sent")
            maintainer.put(path / slug, {**least, **{name: usual[name] for name in sent}}).given_served()


def shown_flags(caller: Caller, path: Path, slug: str, settings: dict[str, Any], flags: list[str]) -> dict[str, bool]:
    """Set an integration up and return those of some flags that it then shows."""
    caller.put(path / slug, settings).given_served()
    entry, single = caller.whole_list(path).the(slug=slug), caller.read(path / slug)
    found = {name: entry.get(name, next(iter(values_under(name, single)), None)) for name in flags}
    return {name: value for name, value in found.items() if isinstance(value, bool)}
