"""Other fixtures of a world, which replace those that cannot be brought to a clean start.

A setting may be locked, an integration permanently set up, a list closed: what cannot be tested there may be
testable on another thing of the same kind.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from conformance.target.names import FIXTURE_ROWS, FIXTURES, OWN_GROUPS, SET_ASIDE
from conformance.target.readings import Readings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.http.client import Client
    from conformance.target.profile import Fixture, Profile

#: Fixtures of the same kind that may be exchanged.
_BESIDE = (
    ("merge_request", "second_merge_request"),
    ("protected_branch", "second_protected_branch"),
    ("approver_group", "second_approver_group"),
)
#: Lists whose first entry most tests use.
_LISTS = ("integration", "allowlist_project", "allowlist_group")
#: Fixtures that lie in `project` or `group`, and have no counterpart among those set aside for random calls.
_INSIDE = (
    *("subgroup", "subgroup_project", "second_merge_request", "reset_merge_request", "untouched_merge_request"),
    *("code_owner_merge_request", "report_approver_merge_request", "protected_branch", "second_protected_branch"),
)

#: After so many tests of an area that other fixtures did not help, no more are tried with them.
_IN_VAIN = 3


@dataclass(frozen=True, slots=True)
class StandIn:
    """A replacement of some fixtures of a world by others."""

    what: str
    """A short description."""
    profile: Callable[[Client], Profile]
    """Returns the profile with the replacement; it may read who has which role there."""


@dataclass
class StandIns:
    """The replacements for fixtures, and the areas in which they did not help."""

    all: Sequence[StandIn] = ()
    _of_use: set[tuple[str, str]] = field(default_factory=set)
    _in_vain: Counter[tuple[str, str]] = field(default_factory=Counter)

    def of(self, area: str) -> list[StandIn]:
        """Return the replacements for a test of an area."""
        known = [(one, (area, one.what)) for one in self.all]
        return [one for one, key in known if key in self._of_use or self._in_vain[key] < _IN_VAIN]

    def learn(self, area: str, stand_in: StandIn, *, is_better: bool) -> None:
        """Record whether a replacement helped a test of an area; if it did, it may help others too."""
        key = area, stand_in.what
        if is_better:
            self._of_use.add(key)
        self._in_vain[key] += 1


def stand_ins(profile: Profile) -> Sequence[StandIn]:
    """Return the possible replacements of a world, the most similar first."""
    return tuple(_found(profile))


def _found(profile: Profile) -> Iterator[StandIn]:
    fixtures = profile.fixtures
    changed: dict[str, tuple[Fixture, ...]] = {}
    for one, other in _BESIDE:
        if one in fixtures and other in fixtures:
            changed |= {one: fixtures[other], other: fixtures[one]}
    changed |= {name: (*fixtures[name][1:], fixtures[name][0]) for name in _LISTS if len(fixtures.get(name, ())) > 1}
    if changed:
        next_ones = replace(profile, fixtures={**fixtures, **changed})
        yield StandIn("the next fixtures of the same kinds", lambda _: next_ones)
    if "fuzz_project" in fixtures or "fuzz_group" in fixtures:
        yield StandIn("what is set aside", cache(partial(_aside, profile)))


def _aside(profile: Profile, client: Client) -> Profile:
    """Return the profile with fixtures set aside for random calls instead of project, group and merge request.

    Actors are left out unless they are seen to have the roles there that tests need.
    """
    out = {*SET_ASIDE, *SET_ASIDE.values(), *_INSIDE}
    # A run's own groups have no fixture name, and are replacements already.
    fixtures = {name: entries for name, entries in profile.fixtures.items() if name in FIXTURES and name not in out}
    fixtures |= {name: profile.fixtures[spare][:1] for name, spare in SET_ASIDE.items() if spare in profile.fixtures}
    if OWN_GROUPS["fuzz_group"] in profile.fixtures:
        fixtures[OWN_GROUPS["group"]] = profile.fixtures[OWN_GROUPS["fuzz_group"]]
    target = Readings(profile, client)
    if "merge_request" in fixtures and not _is_by_author(target, fixtures):
        del fixtures["merge_request"]
    actors = {name: actor for name, actor in profile.actors.items() if _fits(target, name, fixtures)}
    return replace(profile, actors=actors, fixtures=fixtures)


def _fits(target: Readings, who: str, fixtures: dict[str, tuple[Fixture, ...]]) -> bool:
    """Tell whether an actor is seen to have the needed role in the replacements of project and group."""
    number = target.profile.actors[who].id or target.user(who).get("id")
    for name in ("project", "group"):
        low, high = FIXTURE_ROWS[name].roles.get(who, (0, 60))
        if name not in fixtures or (low, high) == (0, 60):
            continue
        levels = target.levels(f"/{name}s/{fixtures[name][0].id}")
        if levels is None or not low <= levels.get(number, 0) <= high:
            return False
    return True


def _is_by_author(target: Readings, fixtures: dict[str, tuple[Fixture, ...]]) -> bool:
    """Tell whether the author of a merge request is seen to be the profile's `author`."""
    number = target.profile.actors["author"].id if "author" in target.profile.actors else None
    if number is None or "project" not in fixtures:
        return False
    path = f"/projects/{fixtures['project'][0].id}/merge_requests/{fixtures['merge_request'][0].get('iid')}"
    author = target.record(path).get("author")
    return isinstance(author, dict) and author.get("id") == number
