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
    flag_to_switch,
    has,
    has_both_names,
    integrations_path,
    offering,
    settings_of,
    slug_of,
)
from conformance.suite.context import current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    given,
    left_to_others,
    must,
    must_be_as_before,
    project_path,
    verifies,
)

if TYPE_CHECKING:
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
    flag = flag_to_switch(integrations)
    first = offering(integrations, flag)
    others = [other for other in integrations if has(other, flag) and slug_of(other) != slug_of(first)]
    if not others:
        left_to_others("integrations.update.leaves-others")  # each other move can be made with only one
    moved = (first, *others[:2])
    path = integrations_path(maintainer, project)
    with borrowed(maintainer, path, *moved):
        aliased = has_both_names(maintainer, project)
        older = project_path(project) / OLDER_NAME if aliased else None
        explore(suite, lambda: Integrations(path, older, moved, (maintainer, owner)))


class Integrations(Model):
    """A state machine for the integrations of one project, moved by several callers in turns."""

    def __init__(
        self, path: Path, older: Path | None, moved: tuple[Fixture, ...], callers: tuple[Caller, Caller]
    ) -> None:
        """Begin an example; `older` is the path by the older name, where the target serves it."""
        super().__init__()
        self.path, self.older, self.integrations, self.callers = path, older, moved, callers
        self.flag = flag_to_switch(moved)
        self.pushes: dict[str, bool] = {}
        self.others: dict[str, dict[str, Any]] = {}

    @initialize()
    def start(self) -> None:
        """Disable everything that moves; other listed integrations must stay."""
        slugs = [slug_of(integration) for integration in self.integrations]
        for slug in slugs:
            if not current_run().deletions.has(self.path, slug):
                self.callers[0].delete(self.path / slug)
        self.others = entries(self.callers[0], self.path)
        given(not self.others.keys() & {*slugs}, "an integration could not be disabled beforehand")

    def tour(self) -> None:
        """Make every move once, and disable one between two others, so that no requirement depends on chance."""
        self.start()
        for aliased in (False, True) if self.older else (False,):
            for pushes in (True, False):
                self.put(0, self.callers[not pushes], pushes=pushes, aliased=aliased)
            self.delete(0, self.callers[1], aliased=aliased)
        for place in range(len(self.integrations)):
            self.put(place, self.callers[0], pushes=True, aliased=False)
        self.delete(1, self.callers[0], aliased=False)

    @rule(place=st.integers(0, 2), pushes=st.booleans(), who=st.integers(0, 1), aliased=st.booleans())
    def set_up(self, place: int, pushes: bool, who: int, aliased: bool) -> None:  # noqa: FBT001 - drawn
        self.put(place, self.callers[who], pushes=pushes, aliased=aliased)

    @rule(place=st.integers(0, 2), who=st.integers(0, 1), aliased=st.booleans())
    def disable(self, place: int, who: int, aliased: bool) -> None:  # noqa: FBT001 - drawn
        self.delete(place, self.callers[who], aliased=aliased)

    def put(self, place: int, caller: Caller, *, pushes: bool, aliased: bool) -> None:
        moved = self.integrations[place % len(self.integrations)]
        slug, settings = slug_of(moved), settings_of(moved)
        answer = caller.put(self.named(aliased=aliased) / slug, {**settings, self.flag: pushes})
        caller.follow(answer).given_served()
        newer = "integrations.update.followed" if slug in self.pushes else "integrations.set-up.listed"
        self.pushes[slug] = pushes
        self.compare(slug, "integrations.alias.set-up-shows" if aliased and self.older else newer)

    def delete(self, place: int, caller: Caller, *, aliased: bool) -> None:
        slug = slug_of(self.integrations[place % len(self.integrations)])
        answer = caller.follow(caller.delete(self.named(aliased=aliased) / slug))
        if slug in self.pushes:
            answer.given_served()
        self.pushes.pop(slug, None)
        by_older_name = aliased and self.older
        self.compare(slug, "integrations.alias.disable-shows" if by_older_name else "integrations.disable.unlisted")

    def named(self, *, aliased: bool) -> Path:
        """Return the path of the integrations; by the older name only where that is served."""
        return self.older if aliased and self.older else self.path

    def compare(self, changed: str, requirement: str) -> None:
        """Compare the whole list with the model; each difference fails the requirement that it breaks."""
        now = entries(self.callers[0], self.path)
        with verifies(requirement):
            self.must_be_alike(now, changed)
        with verifies("integrations.update.leaves-others"):
            for slug in {slug_of(integration) for integration in self.integrations} - {changed}:
                self.must_be_alike(now, slug)
            others = {slug: entry for slug, entry in now.items() if slug in self.others}
            must_be_as_before("what nobody here set up", self.others, others)

    def must_be_alike(self, now: dict[str, dict[str, Any]], slug: str) -> None:
        """Expect one integration in the list as in the model."""
        wanted = f"{self.flag} = {self.pushes[slug]}" if slug in self.pushes else "not listed"
        actual = f"{self.flag} = {now[slug].get(self.flag)}" if slug in now else "not listed"
        must(actual == wanted, f"{slug}: {wanted}", f"{slug}: {actual}")
