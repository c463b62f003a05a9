"""The projects, groups and merge requests of a profile, how they lie in each other, and values at places in JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from conformance.contract.side_effects import Where
from conformance.target.names import FIXTURE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.target.profile import Fixture, Profile

_OWNER = re.compile(r"/(?P<level>project|group)s/(?P<id>[^/]+)(?:/merge_requests/(?P<iid>[^/]+))?")


@dataclass(frozen=True, slots=True)
class Spot:
    """A project, a group or a merge request."""

    level: str
    number: Any
    """The id of the project or group."""
    iid: Any = None
    """For a merge request."""

    def __str__(self) -> str:
        """Name it."""
        return (
            f"{self.level} {self.number}" if self.iid is None else f"merge request {self.iid} of project {self.number}"
        )


def spot_of(profile: Profile, name: str) -> Spot | None:
    """Return the project, group or merge request of a fixture; None when the profile does not name it fully."""
    entry = profile.first(name)
    if entry is None:
        return None
    if not name.endswith("merge_request"):
        return Spot("group" if name.endswith("group") else "project", entry.get("id"))
    number, iid = project_of(profile, entry), entry.get("iid")
    return None if number is None or iid is None else Spot("merge request", number, iid)


def project_of(profile: Profile, merge_request: Fixture) -> Any:
    """Return the number of the project of a merge request; None when the profile does not give it."""
    number = merge_request.get("project_id")
    return profile.value(FIXTURE_ROWS[merge_request.name].inside) if number is None else number


def where(profile: Profile, spot: Spot, about: Spot | None) -> Where:
    """Return how a spot lies relative to that of a call. If the profile gives no paths, it may lie in a group."""
    if about is None:
        return Where.ELSEWHERE
    if spot == about:
        return Where.OWN
    if lies_in(profile, spot, about):
        return Where.INSIDE
    return Where.AROUND if lies_in(profile, about, spot) else Where.ELSEWHERE


class Spots:
    """Every project, group and merge request that a profile names by number."""

    def __init__(self, profile: Profile) -> None:
        """Find them."""
        self.all = tuple(dict.fromkeys(_spots(profile)))
        self._named: dict[tuple[str, str], Spot] = {}
        for spot in self.all:
            for name in (str(spot.number), path_of(profile, spot)):
                if name is not None and spot.iid is None:
                    self._named[spot.level, name] = spot

    def called(self, path: str) -> Spot | None:
        """Return the spot that a call's path belongs to, named by number or full path; None for any other path."""
        match = _OWNER.search(path)
        owner = self._named.get((match["level"], unquote(match["id"]))) if match else None
        if owner is None or match is None or match["iid"] is None:
            return owner
        return Spot("merge request", owner.number, int(match["iid"])) if match["iid"].isdecimal() else None


def _spots(profile: Profile) -> Iterator[Spot]:
    for name, entries in profile.fixtures.items():
        level = next((level for level in ("project", "group") if name.endswith(level)), None)
        for entry in entries:
            number = entry.get("project_id") if level is None else entry.get("id")
            if number is not None:
                yield Spot(level or "project", number)
            if name.endswith("merge_request") and entry.get("iid") is not None:
                around = [each.get("id") for each in profile.fixtures.get(FIXTURE_ROWS[name].inside, ())]
                places = around if number is None else [number]
                yield from (Spot("merge request", each, entry.get("iid")) for each in places)


def lies_in(profile: Profile, inner: Spot, outer: Spot) -> bool:
    """Tell whether one spot lies in another; if the profile gives no paths, it may."""
    if outer.level == "merge request":
        return False
    if outer.level == "project":
        return inner.level == "merge request" and inner.number == outer.number
    inside, around = path_of(profile, inner), path_of(profile, outer)
    return inside is None or around is None or inside.startswith(f"{around}/")


def path_of(profile: Profile, spot: Spot) -> str | None:
    """Return the full path of a group, or of a project or a merge request's project."""
    level = "group" if spot.level == "group" else "project"
    known = (
        entry.get("path")
        for name, entries in profile.fixtures.items()
        if name.endswith(level)
        for entry in entries
        if entry.get("id") == spot.number
    )
    return next((path for path in known if isinstance(path, str)), None)


def value_at(value: Any, place: str) -> Any:
    """Return the JSON value at a place such as `user.id`; `users[].id` gives those of a whole list, in any order."""
    first, _, rest = place.partition(".")
    name = first.removesuffix("[]")
    inner = value.get(name) if isinstance(value, dict) else None
    if not rest:
        return inner
    if name == first:
        return value_at(inner, rest)
    return ordered([value_at(entry, rest) for entry in inner]) if isinstance(inner, list) else None


def ordered(values: list[Any]) -> list[Any]:
    """Return JSON values in an order that depends on the values only."""
    return sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
