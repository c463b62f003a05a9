"""Job token scope, explored: both allowlists and the limit follow a model, in any order of moves."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from conformance.fuzzing.models import Model, explore
from conformance.suite import Version
from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.job_token_scope import (
    ALLOWLISTS,
    GROUPS,
    PROJECTS,
    Allowlist,
    limit_kept,
    limit_of,
    limit_on,
    listed_if_readable,
    scope_path,
)
from conformance.suite.expectations import Caller, as_json, given, must, unchanged, verifies
from conformance.suite.expectations.words import settles

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.suite import Fixture, SuiteSession


#: One of two lists or callers, by its place.
PAIR = st.integers(0, 1)


@dataclass(frozen=True)
class Ids:
    """The requirements that the moves of one list are checked against."""

    present: str
    gone: str
    leaves_others: str


IDS = {
    PROJECTS: Ids(
        "job-token-scope.allowlist.add.present",
        "job-token-scope.allowlist.remove.gone",
        "job-token-scope.allowlist.change.leaves-others",
    ),
    GROUPS: Ids(
        "job-token-scope.groups-allowlist.add.present",
        "job-token-scope.groups-allowlist.remove.gone",
        "job-token-scope.groups-allowlist.change.leaves-others",
    ),
}


@pytest.mark.requirements(
    "job-token-scope.switch.on",
    "job-token-scope.switch.off",
    "job-token-scope.allowlists.are-separate",
    "job-token-scope.allowlist.add.present",
    "job-token-scope.allowlist.remove.gone",
    "job-token-scope.allowlist.change.leaves-others",
    "job-token-scope.groups-allowlist.add.present",
    "job-token-scope.groups-allowlist.remove.gone",
    "job-token-scope.groups-allowlist.change.leaves-others",
    "job-token-scope.leaves-the-rest",
)
def test_lists_and_limit_follow_the_model_in_any_order_of_moves(
    suite: SuiteSession,
    maintainer: Caller,
    owner: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    """A list that cannot be read at all is left out, so that it leaves nothing open about the rest."""
    fixtures = {PROJECTS: allowlist_projects[:3], GROUPS: allowlist_groups[:3]}
    targets = {
        allowlist: tuple(target.id for target in fixtures[allowlist])
        for allowlist in ALLOWLISTS
        if listed_if_readable(maintainer, allowlist, project) is not None
    }
    with limit_kept(maintainer, project):
        explore(suite, lambda: JobTokenScope(project, targets, (maintainer, owner)))


class JobTokenScope(Model):
    """A state machine for one project, whose moves several callers make in turns.

    Lists are changed while the limit is on: nothing says whether entries survive without it, or come back with it.
    """

    def __init__(
        self, project: Fixture, targets: Mapping[Allowlist, tuple[int, ...]], callers: tuple[Caller, Caller]
    ) -> None:
        """Begin an example; `targets` are the ids of three targets of each list that can be read."""
        super().__init__()
        self.project, self.targets, self.callers = project, targets, callers
        self.reader = callers[0]
        self.limit = False
        self.model: dict[Allowlist, set[int]] = {}

    @initialize()
    def start(self) -> None:
        if not limit_of(self.reader, self.project):
            self.reader.patch(scope_path(self.project), {"enabled": True}).given_served()
        self.limit = limit_of(self.reader, self.project)
        given(self.limit, "the limit cannot be switched on")
        for allowlist, ids in self.targets.items():
            allowlist.given_removed(self.reader, self.project, *ids)
        self.model = {allowlist: allowlist.ids(self.reader, self.project) for allowlist in self.targets}

    def tour(self) -> None:
        """Fill each list, take out the one in the middle, and switch the limit, whatever is drawn later."""
        self.start()
        for which in range(len(self.targets)):
            for place in range(3):
                self.add(which, place, place % 2)
            self.remove(which, 1, 0)
        for enabled in (True, False, True):
            self.switch(enabled, 1)

    @precondition(lambda self: self.limit and self.targets)
    @rule(which=PAIR, place=st.integers(0, 2), who=PAIR)
    def add(self, which: int, place: int, who: int) -> None:
        allowlist, target = self.chosen(which, place)
        self.go_on_at(allowlist)
        answer = self.callers[who].post(allowlist.of(self.project), allowlist.body(target))
        if target not in self.model[allowlist]:
            answer.given_served()
        self.model[allowlist].add(target)
        self.compare(allowlist, IDS[allowlist].present, target)

    @precondition(lambda self: self.limit and self.targets)
    @rule(which=PAIR, place=st.integers(0, 2), who=PAIR)
    def remove(self, which: int, place: int, who: int) -> None:
        allowlist, target = self.chosen(which, place)
        self.go_on_at(allowlist)
        answer = self.callers[who].delete(allowlist.of(self.project) / target)
        if target in self.model[allowlist]:
            answer.given_served()
        self.model[allowlist].discard(target)
        self.compare(allowlist, IDS[allowlist].gone, target)

    @rule(enabled=st.booleans(), who=PAIR)
    def switch(self, enabled: bool, who: int) -> None:  # noqa: FBT001 - drawn
        self.go_on_at("limit")
        caller, before = self.callers[who], self.limit
        answer = caller.patch(scope_path(self.project), {"enabled": enabled})
        version = caller.target_version
        enforced = version is None or version >= Version.parse("18.0")
        if not (enforced and not enabled and answer.exchange.is_refusal):
            answer.given_served()
            self.limit = enabled
        self.compare_limit()
        if self.limit and before:
            self.compare_lists("job-token-scope.leaves-the-rest", self.model)
        elif self.limit:
            self.look_again()

    def chosen(self, which: int, place: int) -> tuple[Allowlist, int]:
        """Return a list and one of its targets; if only one list can be read, it is that one."""
        allowlist = tuple(self.targets)[which % len(self.targets)]
        return allowlist, self.targets[allowlist][place]

    def look_again(self) -> None:
        """Take over the current lists, but without entries that were removed before or never added."""
        for allowlist, wanted in self.model.items():
            shown = allowlist.ids(self.reader, self.project)
            back = shown & set(self.targets[allowlist]) - wanted
            with verifies(IDS[allowlist].gone):
                must(not back, f"{sorted(back)} not in {allowlist.segment}", f"{sorted(shown, key=str)}")
            self.model[allowlist] = shown

    def compare(self, changed: Allowlist, requirement: str, target: int) -> None:
        """Compare a list with the model; each difference fails the requirement that it breaks."""
        shown, wanted = changed.ids(self.reader, self.project), self.model[changed]
        actual = f"{changed.segment} = {sorted(shown, key=str)}"
        with verifies(requirement):
            expected = f"{target} {'in' if target in wanted else 'not in'} {changed.segment}"
            must((target in shown) == (target in wanted), expected, actual)
        with verifies(IDS[changed].leaves_others):
            must(shown == wanted, f"{changed.segment} = {sorted(wanted, key=str)}", actual)
        self.moved = changed

    def look_around(self, moved: Allowlist) -> None:
        self.compare_limit()
        others = [allowlist for allowlist in self.model if allowlist is not moved]
        self.compare_lists("job-token-scope.allowlists.are-separate", others)

    def compare_lists(self, requirement: str, lists: Iterable[Allowlist]) -> None:
        """Compare whole lists with the model."""
        for allowlist in lists:
            shown, wanted = allowlist.ids(self.reader, self.project), self.model[allowlist]
            actual = f"{allowlist.segment} = {sorted(shown, key=str)}"
            with verifies(requirement):
                must(shown == wanted, f"{allowlist.segment} = {sorted(wanted, key=str)}", actual)

    def compare_limit(self) -> None:
        shown = limit_of(self.reader, self.project)
        with verifies("job-token-scope.switch.on" if self.limit else "job-token-scope.switch.off"):
            must(shown == self.limit, f"inbound_enabled = {as_json(self.limit)}", f"inbound_enabled = {as_json(shown)}")


def test_the_limit_stays_whoever_comes_to_the_lists_or_goes_as_the_last_one(
    maintainer: Caller,
    project: Fixture,
    allowlist_projects: tuple[Fixture, ...],
    allowlist_groups: tuple[Fixture, ...],
) -> None:
    """With the limit on or off.

    Whether entries are accepted while it is off is open, and so is whether it can be switched off from 18.0 on.
    """
    limit, settings = partial(limit_of, maintainer, project), scope_path(project)
    lists = {PROJECTS: allowlist_projects[:1], GROUPS: allowlist_groups[:1]}
    with ExitStack() as stack:
        for allowlist, targets in lists.items():
            stack.enter_context(allowlist.borrowed(maintainer, project, targets))
        with (
            limit_on(maintainer, project),
            verifies("job-token-scope.leaves-the-rest"),
            unchanged(limit, "the limit"),
        ):
            for allowlist, (target,) in lists.items():
                allowlist.given_added(maintainer, project, target.id)
                maintainer.delete(allowlist.of(project) / target.id).given_served()
                maintainer.post(allowlist.of(project), allowlist.body(UNUSED_ID))  # a refusal changes nothing either
        stack.enter_context(limit_kept(maintainer, project))
        if maintainer.patch(settings, {"enabled": False}).is_served and limit():
            settles(lambda: not limit())
        with verifies("job-token-scope.leaves-the-rest"):
            for allowlist, (target,) in lists.items():
                with unchanged(limit, "the limit"):
                    maintainer.post(allowlist.of(project), allowlist.body(target.id)).must_not_break()
                with unchanged(limit, "the limit"):
                    maintainer.delete(allowlist.of(project) / target.id).must_not_break()
