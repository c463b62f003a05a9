"""Integrations, explored: several of a project follow a model, whatever the order of moves and the name used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite.arrange.integrations import (
    OLDER_NAME,
    borrowed,
    entries,
    has,
    has_both_names,
    integrations_path,
    offering,
    settings_of,
    slug_of,
)
from conformance.suite.context import current_run
from conformance.suite.expectations import Caller, Path, given, left_to_others, must, project_path, verifies

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.suite import Fixture, SuiteSession


@pytest.mark.requirements(
    "integrations.set-up.listed",
    "integrations.update.followed",
    "integrations.disable.unlisted",
    "integrations.alias.set-up-shows",
    "integrations.alias.disable-shows",
    "integrations.update.leaves-others",
)
def test_integrations_follow_the_model_in_any_order_of_moves(
    suite: SuiteSession,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    integrations: tuple[Fixture, ...],
) -> None:
    first = offering(integrations, "push_events")
    others = [other for other in integrations if has(other, "push_events") and slug_of(other) != slug_of(first)]
    if not others:
        left_to_others("integrations.update.leaves-others")  # each other move can be made with only one
    moved = (first, *others[:2])
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, *moved):
        aliased = has_both_names(maintainer, project)
        make = machine(path, project_path(project) / OLDER_NAME if aliased else None, moved, (maintainer, owner))
        make_each_move(make, (maintainer, owner), aliased=aliased)
        explore(suite, make)


def make_each_move(make: Callable[..., Any], callers: tuple[Caller, ...], *, aliased: bool) -> None:
    """Make every move once, so that no requirement depends on chance."""
    model = make()
    model.start()
    for by_older_name in (False, True) if aliased else (False,):
        for pushes in (True, False):
            model.set_up(place=0, pushes=pushes, caller=callers[0], aliased=by_older_name)
        model.disable(place=0, caller=callers[-1], aliased=by_older_name)


def machine(path: Path, older: Path | None, moved: tuple[Fixture, ...], callers: tuple[Caller, ...]) -> type[Model]:
    """Make a state machine for the integrations of one project, moved by several callers in turns."""
    places = st.integers(0, len(moved) - 1)
    people = st.sampled_from(callers)
    by_older_name = st.just(value=False) if older is None else st.booleans()

    class Integrations(Model):
        @initialize()
        def start(self) -> None:
            """Disable everything that moves; other listed integrations must stay."""
            for slug in map(slug_of, moved):
                if not current_run().deletions.has(path, slug):
                    callers[0].delete(path / slug)
            self.pushes: dict[str, bool] = {}
            self.others = entries(callers[0], path)
            slugs = {slug_of(integration) for integration in moved}
            given(not slugs & self.others.keys(), "an integration could not be disabled beforehand")

        @rule(place=places, pushes=st.booleans(), caller=people, aliased=by_older_name)
        def set_up(self, place: int, pushes: bool, caller: Caller, aliased: bool) -> None:  # noqa: FBT001 - drawn
            slug, settings = slug_of(moved[place]), settings_of(moved[place])
            answer = caller.put((older if older and aliased else path) / slug, {**settings, "push_events": pushes})
            caller.follow(answer).given_served()
            newer = "integrations.update.followed" if slug in self.pushes else "integrations.set-up.listed"
            self.pushes[slug] = pushes
            self.compare(slug, "integrations.alias.set-up-shows" if aliased else newer)

        @rule(place=places, caller=people, aliased=by_older_name)
        def disable(self, place: int, caller: Caller, aliased: bool) -> None:  # noqa: FBT001 - drawn
            slug = slug_of(moved[place])
            answer = caller.follow(caller.delete((older if older and aliased else path) / slug))
            if slug in self.pushes:
                answer.given_served()
            self.pushes.pop(slug, None)
            self.compare(slug, "integrations.alias.disable-shows" if aliased else "integrations.disable.unlisted")

        def compare(self, changed: str, requirement: str) -> None:
            """Compare the whole list with the model; each difference fails the requirement that it breaks."""
            now = entries(callers[0], path)
            with verifies(requirement):
                must_be_alike(self.pushes, now, changed)
            with verifies("integrations.update.leaves-others"):
                for slug in {slug_of(integration) for integration in moved} - {changed}:
                    must_be_alike(self.pushes, now, slug)
                others = {slug: entry for slug, entry in now.items() if slug in self.others}
                must(others == self.others, f"the entries of {sorted(self.others)} as before", f"{sorted(others)}")

    return Integrations


def must_be_alike(pushes: dict[str, bool], now: dict[str, dict[str, Any]], slug: str) -> None:
    """Expect one integration in the list as in the model."""
    wanted = f"push_events = {pushes[slug]}" if slug in pushes else "not listed"
    actual = f"push_events = {now[slug].get('push_events')}" if slug in now else "not listed"
    must(actual == wanted, f"{slug}: {wanted}", f"{slug}: {actual}")
