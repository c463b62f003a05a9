"""The two names of integrations, of which services is the older: both lead to the same things."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.integrations import (
    NEWER_NAME,
    OLDER_NAME,
    borrowed,
    comparable,
    entries,
    event_flags,
    flag_to_switch,
    given_disabled,
    given_set_up,
    has,
    integrations_path,
    least_but,
    offering,
    set_up,
    settings_of,
    shows_text,
    slug_of,
)
from conformance.suite.arrange.places import projects_side_by_side
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    given,
    left_to_others,
    must,
    must_settle,
    named_otherwise,
    observe,
    project_path,
    verifies,
)
from conformance.suite.steady import says_the_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.suite import Fixture


@pytest.fixture
def path(maintainer: Caller, project: Fixture, integration: Fixture) -> Iterator[Path]:
    """The project's integrations path by the newer name; `integration` is restored afterwards."""
    found = integrations_path(maintainer, project)
    with borrowed(maintainer, found, integration):
        yield found


@pytest.fixture
def older(project: Fixture) -> Path:
    return project_path(project) / OLDER_NAME


def through(caller: Caller, method: str, path: Path, **body: Any) -> Answer:
    """Call by the older name; if that redirects to the newer one, return the final answer."""
    return caller.follow(caller.call(method, path, **body))


# -- each name alone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("segment", "who", "is_served"),
    [
        (NEWER_NAME, "maintainer", "integrations.authorization.maintainer-is-served"),
        (NEWER_NAME, "owner", "integrations.authorization.owner-is-served"),
        (OLDER_NAME, "maintainer", "integrations.alias.authorization.maintainer-is-served"),
        (OLDER_NAME, "owner", "integrations.alias.authorization.owner-is-served"),
    ],
    ids=["integrations-maintainer", "integrations-owner", "services-maintainer", "services-owner"],
)
def test_whoever_maintains_or_owns_the_project_may_do_everything(
    segment: str,
    who: str,
    is_served: str,
    project: Fixture,
    integration: Fixture,
    request: pytest.FixtureRequest,
) -> None:
    """No other actor prepares anything here, so that a refused actor fails and leaves nothing open."""
    caller: Caller = request.getfixturevalue(who)
    path, slug = project_path(project) / segment, slug_of(integration)
    try:
        with verifies(is_served):
            first = through(caller, "PUT", path / slug, json=settings_of(integration))
            given_name_exists(caller, segment, first)
            first.must_be_served()
            listed = through(caller, "GET", path).must_be_served()
            through(caller, "GET", path / slug).must_be_served()
            given(
                shows_text(listed, slug), f"{slug} is not listed after it was set up, so that no answer proves anything"
            )
            through(caller, "DELETE", path / slug).must_be_served()
    finally:
        through(caller, "DELETE", path / slug)


@pytest.mark.parametrize(
    ("segment", "listing"),
    [(NEWER_NAME, "integrations.list.read"), (OLDER_NAME, "integrations.alias.list")],
    ids=["integrations", "services"],
)
def test_the_list_is_an_array(
    segment: str,
    listing: str,
    maintainer: Caller,
    project: Fixture,
    integration: Fixture,
) -> None:
    path, slug = project_path(project) / segment, slug_of(integration)
    try:
        through(maintainer, "PUT", path / slug, json=settings_of(integration))
        with verifies(listing):
            answer = through(maintainer, "GET", path)
            given_name_exists(maintainer, segment, answer)
            listed = answer.must_be(200).must_be_an(list)
            given(
                shows_text(listed, slug), f"{slug} is not listed after it was set up, so that no list proves anything"
            )
    finally:
        through(maintainer, "DELETE", path / slug)


def given_name_exists(caller: Caller, segment: str, answer: Answer) -> None:
    """Go on unless the version is unknown and may be older than the newer name."""
    may_be_older = segment == NEWER_NAME and caller.target_version is None and answer.exchange.is_refusal
    given(not may_be_older, f"the version is not known, and may be one without {NEWER_NAME}")


# -- both names together -----------------------------------------------------------------------------------------------


def test_both_names_show_the_same_integrations(
    maintainer: Caller,
    project: Fixture,
    path: Path,
    older: Path,
    integration: Fixture,
) -> None:
    """The owner, who changes nothing, reads as well: what is remembered for a caller must be forgotten by a change."""
    slug, reader = slug_of(integration), caller_named("owner") if is_known("owner") else maintainer
    given_set_up(maintainer, path, integration)
    by_path = named_otherwise(older, project, reader)
    with verifies("integrations.alias.lists-the-same", go_on=True):
        answer = through(maintainer, "GET", older)
        slugs, wanted = (slugs_in(one.given_served()) for one in (answer, maintainer.get(path)))
        must(slugs == wanted, f"the slugs {wanted}", f"the slugs {slugs}", answer.exchange)
    with verifies("integrations.alias.reads-the-same"):
        must_read_the_same(maintainer, path / slug, older / slug)
        # What was read by the older name must follow a change, and disabling, by the newer one.
        name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
        if not (name and value and set_up(maintainer, path, integration, **{name: value}).is_served):
            return
        must_read_the_same(maintainer, path / slug, older / slug)
        looks = shown_to(reader, (path / slug, by_path / slug), value)
        looks += [look for look in (partial(lists, reader, by_path, slug),) if look()]
        is_shown = shows_text(maintainer.get(path / slug), value)
        given_disabled(maintainer, path, integration)
        if is_shown and not shows_text(maintainer.get(path / slug), value):
            for look in (partial(shows_setting, maintainer, older / slug, value), *looks):
                must_settle_without(look, f"{name} = {value}")


def shown_to(reader: Caller, paths: tuple[Path, Path], value: str) -> list[partial[bool]]:
    """Return those of two looks that show a value; if the first does and the second is served, it must as well."""
    looks = [partial(shows_setting, reader, at, value) for at in paths]
    answers = [through(reader, "GET", at) for at in paths]
    shows = [shows_text(answer, value) for answer in answers]
    if shows == [True, False] and answers[1].is_served:
        must_settle(looks[1], f"{value}, as by the newer name", lambda: "something else")
    return [look for look, is_so in zip(looks, shows, strict=True) if is_so]


def shows_setting(caller: Caller, path: Path, value: str) -> bool:
    """Tell whether a caller is shown a value among the settings at a path, by whatever name."""
    return shows_text(through(caller, "GET", path), value)


def lists(caller: Caller, path: Path, slug: str) -> bool:
    """Tell whether a caller is shown a slug in the list at a path, by whatever name."""
    answer = through(caller, "GET", path)
    listed = answer.json if answer.is_served else None
    return isinstance(listed, list) and any(isinstance(one, dict) and one.get("slug") == slug for one in listed)


def must_settle_without(is_shown: Callable[[], bool], what: str) -> None:
    """Expect that what was disabled is no longer shown, within the time that the target has to settle."""
    must_settle(lambda: not is_shown(), "nothing of it, as by the newer name", lambda: f"{what} is shown")


def must_read_the_same(caller: Caller, newer: Path, older: Path) -> None:
    answer = through(caller, "GET", older)
    shown = comparable(answer.must_be(200).must_be_an(dict).json)
    is_same = says_the_same(shown, comparable(caller.read(newer)), lambda: comparable(caller.get(newer).json))
    must(is_same, "the settings as the newer name shows them", "others", answer.exchange)


def slugs_in(answer: Answer) -> list[str]:
    listed = answer.must_be_an(list).json
    return sorted(str(entry.get("slug")) for entry in listed if isinstance(entry, dict))


def must_have_flags(caller: Caller, path: Path, slug: str, flags: dict[str, bool]) -> None:
    """Expect these flags in the entry of an integration, by whatever name the list is read."""

    def shown() -> dict[str, Any]:
        entry = entry_in(through(caller, "GET", path).given_served(), slug)
        return {name: entry.get(name) for name in flags}

    must_settle(lambda: shown() == flags, f"the flags {flags} in {path}", lambda: f"the flags {shown()}")


def entry_in(answer: Answer, slug: str) -> dict[str, Any]:
    """Return the entry of an integration in a list; an empty one if it has none."""
    listed = answer.must_be_an(list).json
    return next((dict(one) for one in listed if isinstance(one, dict) and one.get("slug") == slug), {})


def switched(caller: Caller, path: Path, integration: Fixture) -> list[str]:
    """Return the flags that can be switched on and off by the newer name, all of them together."""
    flags = [name for name in (*event_flags(), "vulnerability_events") if has(integration, name)]
    for wanted in (True, False):
        answer = set_up(caller, path, integration, **dict.fromkeys(flags, wanted))
        listed = entries(caller, path).get(slug_of(integration), {}) if answer.is_served else {}
        flags = [name for name in flags if listed.get(name) is wanted]
    return flags


def test_what_is_done_by_the_older_name_shows_by_the_newer_one(
    maintainer: Caller,
    project: Fixture,
    older: Path,
    integrations: tuple[Fixture, ...],
) -> None:
    """An integration that is disabled by the older name must not stay active, or set, by the newer one."""
    flag = flag_to_switch(integrations)
    integration = offering(integrations, flag)
    slug, path = slug_of(integration), integrations_path(maintainer, project)
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    settings = {**settings_of(integration), **({name: value} if name and value else {})}
    with borrowed(maintainer, path, integration):
        flags = [flag, *switched(maintainer, path, integration)]
        with verifies("integrations.alias.set-up-shows"):
            by_path = named_otherwise(older, project, maintainer)
            for wanted, way in ((True, older), (False, by_path), (True, older)):
                sent = dict.fromkeys(flags, wanted)
                through(maintainer, "PUT", way / slug, json={**settings, **sent}).given_served()
                maintainer.whole_list(path).must_contain(slug=slug, **sent)
                # In a list that shows what was sent at first, each flag was on; in one of defaults, some are off.
                at = named_otherwise(path, project, maintainer) if wanted else older
                must_have_flags(maintainer, at, slug, sent)
        texts = [value, f"{value}-again"]
        other = caller_named("owner") if is_known("owner") else maintainer
        ways = dict.fromkeys((older, by_path))
        for one, text, who in zip(ways, texts, (maintainer, other), strict=False):
            anew = {name: text} if name and isinstance(value, str) else {}
            through(maintainer, "PUT", one / slug, json={**settings, **sent, **anew}).given_served()
            listed, before = maintainer.whole_list(path), maintainer.get(path / slug)
            with verifies("integrations.alias.set-up-shows", go_on=True):
                listed.must_contain(slug=slug, **sent)  # the second time, it was disabled before
            if text != value and anew and before.is_served and shows_text(before, value):
                with verifies("integrations.disable.settings-stay-reset", go_on=True):
                    must(shows_text(before, text), f"{name} = {text}", f"{value}, as before it was disabled")
            with verifies("integrations.alias.disable-shows"):
                through(who, "DELETE", one / slug).given_served()
                maintainer.whole_list(path).must_not_contain(slug=slug, after=listed)
            if before.is_served and name and value and shows_text(before, value):
                left = maintainer.get(path / slug)
                with verifies("integrations.disable.settings-reset", go_on=True):
                    still = left.is_served and shows_text(left, value)
                    must(not still, f"{name} reset", f"{name} = {value} is still shown", left.exchange)
            else:
                left_to_others("integrations.disable.settings-reset")
        left_to_others("integrations.disable.settings-stay-reset")
        if name and value:
            maintainer.put(path / slug, least_but(integration, value)).given_served()
            with verifies("integrations.disable.settings-stay-reset", go_on=True):
                again = maintainer.get(path / slug).given_served()
                must(not shows_text(again, value), f"{name} reset", f"{name} = {value} has come back", again.exchange)
        with verifies("integrations.alias.lists-the-same"):
            slugs, others = (slugs_in(through(maintainer, "GET", at).given_served()) for at in (older, path))
            must(slugs == others, f"the slugs {others}", f"the slugs {slugs}")


def test_a_change_and_a_disabling_leave_the_project_beside_it(maintainer: Caller, integration: Fixture) -> None:
    """Data stored per namespace only shows in two projects of it; the integration is disabled by the older name."""
    slug = slug_of(integration)
    name, value = integration.get("distinctive_name"), integration.get("distinctive_value")
    for one, other in islice(projects_side_by_side(current_run().profile), 1):
        paths = [integrations_path(maintainer, each) for each in (one, other)]
        if all(maintainer.get(path).is_served for path in paths):
            with borrowed(maintainer, paths[0], integration), borrowed(maintainer, paths[1], integration):
                for path in paths:
                    given_set_up(maintainer, path, integration)
                looked = name and value and not shows_text(maintainer.get(paths[1] / slug), value)
                if looked and set_up(maintainer, paths[0], integration, **{name: value}).is_served:
                    with verifies("integrations.belong-to-their-project"):
                        beside = maintainer.get(paths[1] / slug).must_not_break()
                        leaks = beside.is_served and shows_text(beside, value)
                        must(not leaks, f"no {name} of another project", f"{name} = {value}", beside.exchange)
                if through(maintainer, "DELETE", project_path(one) / OLDER_NAME / slug).is_served:
                    with verifies("integrations.belong-to-their-project"):
                        maintainer.whole_list(paths[1]).must_contain(slug=slug)
                    return
    left_to_others()


def test_what_the_older_name_answers_with(
    maintainer: Caller,
    path: Path,
    older: Path,
    integration: Fixture,
) -> None:
    given_set_up(maintainer, path, integration)
    status = maintainer.get(older).status
    answers = f"redirects with {status}" if 300 <= status < 400 else "answers itself"
    observe("integrations.alias.redirect", f"the older name services {answers}")
    given_disabled(maintainer, path, integration)
