"""Several integrations of a project, and one in several projects: none affects another."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import combinations, islice, takewhile
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite import Reason
from conformance.suite.arrange.integrations import (
    borrowed,
    distinctive,
    entries,
    every_integration,
    flag_to_switch,
    given_disabled,
    given_set_up,
    has,
    integrations_path,
    is_channel,
    least_but,
    least_settings,
    offering,
    set_up,
    shared_settings,
    shown,
    shows_text,
    slug_of,
    without,
)
from conformance.suite.arrange.places import projects_side_by_side
from conformance.suite.arrange.reviews import given_in_profile
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    observe,
    unchanged,
    verifies,
)
from conformance.suite.expectations.words import settles
from conformance.suite.load import ROUNDS, at_once
from conformance.suite.shown_records import values_under

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.suite import Fixture

#: The parameters of several integrations that have a default.
DEFAULTS = ("branches_to_be_notified", "labels_to_be_notified_behavior", "enable_ssl_verification")
#: How many integrations are set up at the same time, if the profile names so many.
MANY = 12


@pytest.fixture
def pair(maintainer: Caller, project: Fixture, integrations: tuple[Fixture, ...]) -> Iterator[tuple[Fixture, Fixture]]:
    """Two integrations that are not set up, and are restored afterwards; the first has the flag to switch.

    The second is the most similar one in the profile, because similar ones are most likely to be mixed up.
    """
    first = offering(integrations, flag_to_switch(integrations))
    others = [other for other in every_integration(integrations) if slug_of(other) != slug_of(first)]
    require_two((first, *others))
    second = max(others, key=partial(in_common, first))
    with borrowed(maintainer, integrations_path(maintainer, project), first, second):
        yield first, second


def require_two(integrations: Collection[Fixture]) -> None:
    """Raise NotTested when the profile names one integration only."""
    if len(integrations) < 2:
        raise NotTested(Reason.PREREQUISITE_MISSING, "the profile names one integration only: add another one")


def in_common(one: Fixture, other: Fixture) -> int:
    return sum(name in (one.get(where) or ()) for where in ("parameters", "events") for name in other.get(where) or ())


def test_two_who_set_up_at_the_same_time_both_have_set_up(
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    pair: tuple[Fixture, Fixture],
) -> None:
    """Both are told that it was done; a caller who was refused meanwhile shows nothing."""
    path, (first, second) = integrations_path(maintainer, project), pair
    with verifies("integrations.set-up.side-by-side"):
        for _ in range(ROUNDS):
            for answer in at_once(partial(set_up, maintainer, path, first), partial(set_up, owner, path, second)):
                answer.given_served()
            listed = maintainer.whole_list(path)
            listed.must_contain_once(slug=slug_of(first)).must_contain_once(slug=slug_of(second))
            for answer in at_once(
                *(partial(who.delete, path / slug_of(one)) for who, one in zip((maintainer, owner), pair, strict=True))
            ):
                answer.given_served()
            for one in pair:
                maintainer.whole_list(path).must_not_contain(slug=slug_of(one), after=listed)
            # Two calls that set up the same integration set up one.
            same = at_once(*(partial(set_up, who, path, first) for who in (maintainer, owner)))
            given(any(answer.is_served for answer in same), "neither of two who set up the same one at once is served")
            maintainer.whole_list(path).must_contain_once(slug=slug_of(first))
            given_disabled(maintainer, path, first)
            # One is set up while the other one is disabled.
            given_set_up(maintainer, path, second)
            come, gone = at_once(
                partial(set_up, maintainer, path, first), partial(owner.delete, path / slug_of(second))
            )
            for answer in (come, gone):
                answer.given_served()
            now = maintainer.whole_list(path).must_contain_once(slug=slug_of(first))
            now.must_not_contain(slug=slug_of(second), after=listed)
            given_disabled(maintainer, path, first)


def test_one_integration_set_up_in_two_projects_at_once_is_set_up_in_both(
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    sibling_project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """Each project shows the text that was sent to it, if the integration shows one, and none from a turn before."""
    integration = with_a_text(integrations)[0]
    left_to_others("integrations.disable.settings-stay-reset")  # unless it shows a text
    slug, name = slug_of(integration), integration.get("distinctive_name")
    both, earlier = [integrations_path(maintainer, each) for each in (project, sibling_project)], list[str]()
    with borrowed(maintainer, both[0], integration), borrowed(maintainer, both[1], integration):
        for turn in range(ROUNDS):
            texts = [f"{integration.get('distinctive_value')}-{each.id}-{turn}" for each in (project, sibling_project)]
            own: list[dict[str, object]] = [{name: text} if name else {} for text in texts]
            acts = [
                partial(set_up, who, path, integration, **settings)
                for who, path, settings in zip((maintainer, owner), both, own, strict=True)
            ]
            for answer in at_once(*acts):
                answer.given_served()
            with verifies("integrations.set-up.side-by-side"):
                for path in both:
                    maintainer.whole_list(path).must_contain_once(slug=slug)
            shown = [maintainer.get(path / slug).given_served() for path in both]
            for path, answer, former in zip(both, shown, earlier, strict=False):
                with verifies("integrations.disable.settings-stay-reset", go_on=True):
                    must_not_show_anew(maintainer, path / slug, former, answer)
            earlier = texts if name and all(map(shows_text, shown, texts)) else []
            if not any(shows_text(answer, text) for answer in shown for text in texts):  # they may be masked
                left_to_others("integrations.belong-to-their-project")
            else:
                with verifies("integrations.belong-to-their-project"):
                    for answer, strange in zip(shown, reversed(texts), strict=True):
                        must(not shows_text(answer, strange), f"no {strange}", strange, answer.exchange)
            for path in both:
                given_disabled(maintainer, path, integration)


def must_not_show_anew(caller: Caller, one: Path, former: str, answer: Answer) -> None:
    """Expect that an integration which is set up again with another text does not show the one from before."""
    is_former = shows_text(answer, former)
    is_so = is_former and not settles(lambda: not shows_text(caller.get(one), former))
    must(not is_so, "the text that was sent", f"{former}, as before it was disabled", answer.exchange)


def test_each_of_two_integrations_shows_its_own_settings(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """The earlier one is read after the later one was set up."""
    older, newer = two_distinctive(integrations)
    path = integrations_path(maintainer, project)
    texts = {slug_of(each): distinctive(each) for each in (older, newer)}
    with borrowed(maintainer, path, older, newer):
        for each in (older, newer):
            name, value = texts[slug_of(each)]
            given_set_up(maintainer, path, each, **{name: f"{value}-{slug_of(each)}"})
        with verifies("integrations.single.shows-its-own"):
            for each, other in ((older, newer), (newer, older)):
                answer = maintainer.get(path / slug_of(each)).given_served()
                own, strange = (f"{texts[slug_of(one)][1]}-{slug_of(one)}" for one in (each, other))
                must(not shows_text(answer, strange), f"no {strange}", "that of another integration", answer.exchange)
                given(
                    shows_text(answer, own), f"{slug_of(each)} does not show the {texts[slug_of(each)][0]} it was given"
                )


def two_distinctive(integrations: tuple[Fixture, ...]) -> tuple[Fixture, Fixture]:
    """Return two integrations that show a text; raise NotTested when the profile does not name so many."""
    require_two(integrations)
    found = with_a_text(integrations)
    if len(found) < 2:
        lacking = " or ".join(slug_of(each) for each in integrations if not each.get("distinctive_name"))
        given_in_profile(None, "distinctive_name", f"integration {lacking}")
    return found[0], found[1]


def with_a_text(integrations: tuple[Fixture, ...]) -> list[Fixture]:
    """Return the integrations that show a text; the first of all if the profile names no such text."""
    found = [each for each in integrations if each.get("distinctive_name") and each.get("distinctive_value")]
    return found or [integrations[0]]


def test_all_integrations_that_are_set_up_are_listed(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """As many as the profile names, up to twelve. There may be only one issue tracker at a time.

    Two of them need a setting of the same name, if the profile names two such integrations: each keeps its own.
    """
    path = integrations_path(maintainer, project)
    before = maintainer.whole_list(path)
    free = [each for each in integrations if not (is_tracker(each) or before.having(slug=slug_of(each)))]
    alike: tuple[Fixture, ...] = next((pair for pair in combinations(free, 2) if needed_by_both(*pair)), ())
    free = [*alike, *(each for each in free if each not in alike)][:MANY]
    with borrowed(maintainer, path, *free):
        slugs = [slug_of(each) for each in free if set_up(maintainer, path, each).is_served]
        with verifies("integrations.set-up.listed"):
            given(bool(slugs), "none of the integrations of the profile can be set up")
            listed = maintainer.whole_list(path)
            for slug in slugs:
                listed.must_contain(slug=slug)
        for own, strange in needed_by_both(*alike[:2]) if alike and {*map(slug_of, alike)} <= {*slugs} else ():
            answer = maintainer.get(path / slug_of(alike[0]))
            if shows_text(answer, own) or shows_text(answer, strange):  # it may be masked, or left out
                with verifies("integrations.single.shows-its-own"):
                    must(shows_text(answer, own), own, f"{strange}, as of another integration", answer.exchange)
            else:
                left_to_others("integrations.single.shows-its-own")
        if not alike:
            left_to_others("integrations.single.shows-its-own")


def test_integrations_of_several_kinds_have_the_defaults(
    maintainer: Caller, project: Fixture, integrations: tuple[Fixture, ...]
) -> None:
    """The last that has a parameter, for the first is looked at elsewhere; what mails may have a default of its own."""
    left_to_others()  # unless the profile names two integrations with one of these parameters
    path, found = integrations_path(maintainer, project), dict[str, tuple[str, object]]()
    known = [each for each in every_integration(integrations) if not has(each, "recipients")]
    having = {name: [each for each in known if has(each, name)] for name in DEFAULTS}
    last = {slug_of(each[-1]): each[-1] for each in having.values() if len(each) > 1}
    for slug, integration in last.items():
        with suppress(Unmet):
            found |= {name: (slug, value) for name, value in defaults_of(maintainer, path, integration).items()}
    if "branches_to_be_notified" in found:
        with verifies("integrations.parameters.branches-to-be-notified.default", go_on=True):
            must_be_unless_blank("branches_to_be_notified", "default", *found["branches_to_be_notified"])
    if "labels_to_be_notified_behavior" in found:
        with verifies("integrations.parameters.labels-to-be-notified-behavior.default", go_on=True):
            must_be_unless_blank(
                "labels_to_be_notified_behavior", "match_any", *found["labels_to_be_notified_behavior"]
            )
    if "enable_ssl_verification" in found:
        with verifies("integrations.parameters.enable-ssl-verification.default", go_on=True):
            must_be_unless_blank("enable_ssl_verification", True, *found["enable_ssl_verification"])


def must_be_unless_blank(name: str, wanted: str | bool, slug: str, value: object) -> None:  # noqa: FBT001 - a value
    """Expect a default; nothing may show until somebody sets it."""
    must(value in (wanted, None, ""), f"{name} = {as_json(wanted)} of {slug}", f"{name} = {as_json(value)}")


def defaults_of(caller: Caller, path: Path, integration: Fixture) -> dict[str, Any]:
    """Return what an integration shows, once it is set up, of the parameters with a default that were not sent."""
    least = without(least_settings(integration), *DEFAULTS)
    with borrowed(caller, path, integration):
        if not caller.follow(caller.put(path / slug_of(integration), least)).is_served:
            return {}
        settings = caller.read(path / slug_of(integration))
    found = {name: values_under(name, settings) for name in DEFAULTS if has(integration, name)}
    return {name: values[0] for name, values in found.items() if values and not isinstance(values[0], dict)}


def needed_by_both(one: Fixture, other: Fixture) -> list[tuple[str, str]]:
    """Return a text of each of two integrations that both require under one name and show; none if they are equal."""
    settings, others = (each.get("settings") or {} for each in (one, other))
    hidden = {*(one.get("never_shown") or ()), *(other.get("never_shown") or ())}
    both = [(settings[name], others[name]) for name in sorted(settings.keys() & others.keys() - hidden)]
    texts = [pair for pair in both if all(isinstance(text, str) for text in pair)]
    apart = [(own, strange) for own, strange in texts if own not in strange and strange not in own]
    return [(own, strange) for own, strange in apart if strange not in str(one)][:1]


def test_of_two_integrations_that_are_alike_the_named_one_is_disabled(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    """A name may be mistaken for one with the same beginning, and one issue tracker for all. Two may be exclusive."""
    left_to_others()
    path = integrations_path(maintainer, project)
    for older, newer in pairs_alike(every_integration(integrations)):
        with borrowed(maintainer, path, older, newer):
            are_served = all(set_up(maintainer, path, each).is_served for each in (older, newer))
            both = maintainer.whole_list(path)
            if not (are_served and all(both.having(slug=slug_of(each)) for each in (older, newer))):
                continue
            with verifies("integrations.update.leaves-others"):
                # The earlier one is disabled first: an id that is a position in the list would change.
                for gone, left in ((older, newer), (newer, older)):
                    known = {"id": both.the(slug=slug_of(left)).get("id")} if gone is older else {}
                    maintainer.delete(path / slug_of(gone)).given_served()
                    maintainer.whole_list(path).must_contain(slug=slug_of(left), **known)
                    set_up(maintainer, path, gone).given_served()


def pairs_alike(known: list[Fixture]) -> Iterator[tuple[Fixture, Fixture]]:
    """Yield the two integrations whose names have the longest common beginning, and two issue trackers."""
    trackers = [each for each in known if is_tracker(each)]
    others = combinations([each for each in known if not is_tracker(each)], 2)
    found = max(others, key=lambda pair: begin_alike(*pair), default=None)
    if found and begin_alike(*found):
        yield found
    yield from islice(combinations(trackers, 2), 1)


def begin_alike(one: Fixture, other: Fixture) -> int:
    """Return the length of the common beginning of two integrations' names."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(slug_of(one), slug_of(other), strict=False)))


def is_tracker(integration: Fixture) -> bool:
    return "issues_url" in (integration.get("parameters") or ())


def test_a_change_of_one_integration_leaves_the_others(
    maintainer: Caller,
    project: Fixture,
    pair: tuple[Fixture, Fixture],
) -> None:
    path, (moving, resting) = integrations_path(maintainer, project), pair
    flag = flag_to_switch(pair)
    mine, theirs = ({name: two[turn] for name, two in two_values_of_each(pair).items()} for turn in (0, 1))
    if not set_up(maintainer, path, resting, **theirs).is_served:  # perhaps a channel must exist
        mine, theirs = ({name: one[name] for name in one if not is_channel(name)} for one in (mine, theirs))
        given_set_up(maintainer, path, resting, **theirs)

    def others() -> dict[str, object]:
        found = entries(maintainer, path)
        return {slug: entry for slug, entry in found.items() if slug != slug_of(moving)}

    def settings() -> dict[str, object]:
        return {name: shown(maintainer, path, slug_of(resting), name) for name in theirs}

    with (
        verifies("integrations.update.leaves-others"),
        unchanged(others, "the entries of the other integrations"),
        unchanged(settings, f"the settings of {slug_of(resting)}"),
    ):
        with (
            unchanged(others, "the entries of the other integrations"),
            unchanged(settings, f"the settings of {slug_of(resting)}"),
        ):
            given_set_up(maintainer, path, moving, **{**mine, flag: True})
        with unchanged(others, "the entries of the other integrations"):
            given_set_up(maintainer, path, moving, **{flag: False})
        given_disabled(maintainer, path, moving)
    listed = maintainer.whole_list(path)
    given_disabled(maintainer, path, resting)
    given_set_up(maintainer, path, moving)
    with verifies("integrations.update.leaves-others"):
        maintainer.whole_list(path).must_not_contain(slug=slug_of(resting), after=listed)


def two_values_of_each(pair: tuple[Fixture, Fixture]) -> dict[str, tuple[Any, Any]]:
    """Return the parameters that two integrations share, each with two values: of closed lists, channels, and flags."""
    known = shared_settings()
    schemas = {name: known[name] for name in known if all(has(integration, name) for integration in pair)}
    listed = {name: (one["enum"][0], one["enum"][-1]) for name, one in schemas.items() if "enum" in one}
    channels = {name: (f"conformance-{name}", f"conformance-other-{name}") for name in schemas if is_channel(name)}
    events = [set(integration.get("events") or ()) for integration in pair]
    flags = ["notify_only_broken_pipelines", *sorted(set.intersection(*events))]
    # Some of the flags are on and some are off, so that one that goes back to its default is noticed.
    in_turns = [name for name in flags if name in schemas and name != "push_events"]
    return listed | channels | {name: (place % 2 == 0, place % 2 == 1) for place, name in enumerate(in_turns)}


def test_what_is_set_in_one_project_is_shown_in_no_other(
    maintainer: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
    sibling_project: Fixture,
) -> None:
    """Nothing is done in the other project, so that the service may know nothing about the integration there."""
    integration = with_a_text(integrations)[-1]
    slug, (name, value) = slug_of(integration), distinctive(integration)
    path, neighbour = (integrations_path(maintainer, one) for one in (project, sibling_project))
    others = [neighbour, *(integrations_path(maintainer, one) for one in untouched_projects())]
    for pair in islice(projects_side_by_side(current_run().profile), 1):
        # Data stored per namespace only shows in two projects of it.
        both = [integrations_path(maintainer, each) for each in pair]
        if all(maintainer.get(each).is_served for each in both):
            path, others = both[0], [both[1], *(each for each in others if each not in both)]
    given(not maintainer.whole_list(neighbour).having(slug=slug), f"{slug} is set up in the other project as well")
    with borrowed(maintainer, path, integration):
        given_set_up(maintainer, path, integration, **{name: value})
        shows = shows_text(maintainer.get(path / slug).given_served(), value)
        given(shows, f"{slug} does not show the {name} that it was given")
        with verifies("integrations.belong-to-their-project"):
            for other in others:
                elsewhere = maintainer.get(other / slug).must_not_break()
                leaks = elsewhere.is_served and shows_text(elsewhere, value)
                must(not leaks, f"no {name} of another project", f"{name} = {value} is shown", elsewhere.exchange)
            # One that is listed here and is not set up here could not be disabled below.
            also_listed = [other for other in others if is_listed(maintainer, other, slug)]
            if also_listed:
                given_disabled(maintainer, path, integration)
                for other in also_listed:  # what disappears with that of this project is not the other project's own
                    alone = is_listed(maintainer, other, slug)
                    must(alone, f"{slug} listed here alone", f"it is listed in {other} too")
                given_set_up(maintainer, path, integration, **{name: value})
            must_begin_anew(maintainer, others[0], integration)


def must_begin_anew(caller: Caller, path: Path, integration: Fixture) -> None:
    """Expect that an integration set up elsewhere too takes over no value that was not sent."""
    slug, (name, value) = slug_of(integration), distinctive(integration)
    with borrowed(caller, path, integration):
        if caller.put(path / slug, least_but(integration, value)).is_served:
            settings = caller.get(path / slug).must_not_break()
            leaks = settings.is_served and shows_text(settings, value)
            must(not leaks, f"no {name} of another project", f"{name} = {value} is shown", settings.exchange)


def is_listed(caller: Caller, path: Path, slug: str) -> bool:
    """Tell whether a list has an integration; an unreadable list counts as having none."""
    with suppress(Unmet):
        return bool(caller.whole_list(path).having(slug=slug))
    return False


def untouched_projects() -> list[Fixture]:
    """Return projects in which no other test has an integration meanwhile, as far as the profile has any."""
    fixtures = current_run().profile.fixtures
    names = ("fresh_project", "empty_project", "subgroup_project")
    return [entry for name in names for entry in fixtures.get(name, ())]


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
