"""
Other fixtures of a world, which take the place of those of which a clean start cannot be had.

A setting may be locked, an integration set up for good, a list closed: what that keeps from being looked at may be seen
on another thing of the same kind.
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

#: Fixtures that lie beside each other, and may change places.
_BESIDE = (
    ("merge_request", "second_merge_request"),
    ("protected_branch", "second_protected_branch"),
    ("approver_group", "second_approver_group"),
)
#: Lists whose first entry most tests take.
_LISTS = ("integration", "allowlist_project", "allowlist_group")
#: What lies in `project` or `group`, and has no like in what is set aside.
_INSIDE = (
    *("subgroup", "subgroup_project", "second_merge_request", "reset_merge_request", "untouched_merge_request"),
    *("code_owner_merge_request", "report_approver_merge_request", "protected_branch", "second_protected_branch"),
)

#: How many tests of an area were no better off with other fixtures until no more are tried with them.
_IN_VAIN = 3


@dataclass(frozen=True, slots=True)
class StandIn:
    """What of a world takes the place of what."""

    what: str
    """In a few words."""
    profile: Callable[[Client], Profile]
    """Returns the profile that says so; it may read who has which role there."""


@dataclass
class Elsewhere:
    """The fixtures that may take the place of others, and where that was of no use."""

    all: Sequence[StandIn] = ()
    _of_use: set[tuple[str, str]] = field(default_factory=set)
    _in_vain: Counter[tuple[str, str]] = field(default_factory=Counter)

    def of(self, area: str) -> list[StandIn]:
        """Return what a test of an area may be tried with."""
        known = [(one, (area, one.what)) for one in self.all]
        return [one for one, key in known if key in self._of_use or self._in_vain[key] < _IN_VAIN]

    def learn(self, area: str, stand_in: StandIn, *, is_better: bool) -> None:
        """Remember whether a test of an area was better off: then others may be, too."""
        key = area, stand_in.what
        if is_better:
            self._of_use.add(key)
        self._in_vain[key] += 1


def stand_ins(profile: Profile) -> Sequence[StandIn]:
    """Return what may take the place of what in a world, what is most alike first."""
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
    """
    Return the profile with what is set aside in the place of the project, the group and the merge request.

    Whoever is not seen to have the role there that the tests count on is left out.
    """
    out = {*SET_ASIDE, *SET_ASIDE.values(), *_INSIDE}
    # What a run made for itself has no name of a fixture, and stands in for others already.
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
    """Tell whether an actor is seen to have the role that is needed in the place of project and group."""
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
    """Tell whether a merge request is seen to be by the author whom the profile names."""
    number = target.profile.actors["author"].id if "author" in target.profile.actors else None
    if number is None or "project" not in fixtures:
        return False
    path = f"/projects/{fixtures['project'][0].id}/merge_requests/{fixtures['merge_request'][0].get('iid')}"
    author = target.record(path).get("author")
    return isinstance(author, dict) and author.get("id") == number
