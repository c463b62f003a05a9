"""The guard of `own-only`: a write may only go to what the profile names, or to ids and names that cannot exist.

So a test with a bug, or a randomly drawn call, cannot change anybody else's project. The guard checks which project,
group or merge request a path belongs to, and which ones a body names.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from conformance.http.bodies import object_in, objects_in
from conformance.http.transport import NotSentError
from conformance.target.spots import Spots, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.http.exchange import Call, Exchange
    from conformance.target.profile import Profile

#: A number that nothing has, and the end of names that nothing has; larger numbers are unused too.
UNUSED_ID = 2_000_000_001
UNUSED_NAME = "-conformance-none"

_OWNER = re.compile(r"/(?P<level>project|group)s/(?P<id>[^/]+)")
_MERGE_REQUEST = re.compile(r"/projects/[^/]+/merge_requests/(?P<iid>[^/]+)")
_NUMBER = re.compile(r"\s*(?P<sign>[+-]?)0*(?P<digits>\d+)")
#: The form of a full path: that of a project has several parts, that of a group or a user has at least one.
_PATHS = {
    "project": re.compile(r"[\w.-]+(/[\w.-]+)+", re.ASCII),
    "group": re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII),
    "user": re.compile(r"@?[\w.-]+", re.ASCII),
}
#: The properties of a body that name things: those that always count, and those that count for random values only,
#: because tests may send back people and groups of a rule that the profile does not name.
_NAMED = {"target_project_id": "project", "target_group_id": "group"}
_BY_NAME = "usernames"
_NAMED_AT_RANDOM = {**_NAMED, "user_ids": "user", "usernames": "user", "group_ids": "group"}
_LISTED = {"allowlist": "project", "groups_allowlist": "group"}


class Ownership:
    """Which things on a target belong to a run, according to its profile and the target's answers."""

    def __init__(self, profile: Profile, operation_of: Callable[[str, str], Operation | None]) -> None:
        """Guard the world of a profile; `operation_of` finds the operation of a method and path."""
        self._operation_of = operation_of
        self._listed: set[tuple[str, Any]] = set()
        self.include(profile)

    def include(self, profile: Profile) -> None:
        """Also guard the things that this profile names."""
        self._profile, self._spots = profile, Spots(profile)
        self._known = self._names()

    def check(self, call: Call) -> None:
        """Raise NotSentError when a call would write outside the world of the run."""
        problem = self.problem(call)
        if problem is not None:
            raise NotSentError(f"{call.label} was not sent: {problem}. A run writes only to what its profile names.")

    def learn(self, exchange: Exchange) -> None:
        """Remember what is on an allowlist, whoever added it, because a test may remove it and add it again."""
        level = _LISTED.get(exchange.call.path.partition("?")[0].rpartition("/")[2])
        if level is not None and exchange.call.method == "GET" and exchange.status == HTTPStatus.OK:
            numbers = [entry.get("id") for entry in objects_in(exchange.body)]
            self._listed |= {(level, number) for number in numbers if isinstance(number, int | str)}

    def problem(self, call: Call, *, is_drawn: bool = False) -> str | None:
        """Say what a write would touch outside the world of the run; None when the call may be sent."""
        path = call.path.partition("?")[0]
        if call.is_elsewhere:
            if any(entry.get("url") == path for entry in self._profile.fixtures.get("oauth_token_endpoint", ())):
                return None
            if urlsplit(path)[:2] != urlsplit(self._profile.base_url)[:2]:
                return "it leads to another host"
            path = urlsplit(path).path
        operation = self._operation_of(call.method, path)
        if operation is not None and operation.unsafe:
            return f"nothing undoes it ({operation.unsafe})"
        owner = _OWNER.search(path)
        if owner is None:
            return None if operation is not None else "it is no operation that the contract knows"
        return next(self._strangers(path, owner, call, is_drawn=is_drawn), None)

    def _strangers(self, path: str, owner: re.Match[str], call: Call, *, is_drawn: bool) -> Iterator[str]:
        level, named = owner["level"], unquote(owner["id"])
        if self._may_be_foreign(level, named, by_name=True):
            yield f"{level} {named!r} is not in the profile"
        request = _MERGE_REQUEST.search(path)
        if request is not None and self._is_foreign_request(path, unquote(request["iid"])):
            yield f"the profile names no merge request {unquote(request['iid'])!r} there"
        body = object_in(call.body)
        sent = {**{name: value for name, value in call.query.items() if value is not None}, **body}
        for name, kind in (_NAMED_AT_RANDOM if is_drawn else _NAMED).items():
            values = sent.get(name)
            for value in values if isinstance(values, list | tuple) else (values,):
                if self._may_be_foreign(kind, value, by_name=name == _BY_NAME):
                    yield f"{name} = {value!r} is not in the profile"

    def _is_foreign_request(self, path: str, iid: str) -> bool:
        spot = self._spots.called(path.partition("/merge_requests/")[0])
        known = {each.iid for each in self._spots.all if spot is not None and each.number == spot.number}
        number = _number(iid)
        return spot is not None and number is not None and _exists(number) and number not in known

    def _may_be_foreign(self, kind: str, value: Any, *, by_name: bool) -> bool:
        """Tell whether a value may name something outside the run's world, however a service parses it."""
        if value is None or isinstance(value, bool | dict | list):
            return False
        known = self._known[kind]
        if value in known or str(value) in known or (kind, value) in self._listed:
            return False
        if by_name and isinstance(value, str) and not _NUMBER.fullmatch(value) and _PATHS[kind].fullmatch(value):
            return not value.endswith(UNUSED_NAME)
        number = _number(value)
        return number is not None and _exists(number) and number not in known and (kind, number) not in self._listed

    def _names(self) -> Mapping[str, set[Any]]:
        """Return numbers and names of the world, by kind."""
        profile, found = self._profile, {"project": set[Any](), "group": set[Any](), "user": set[Any]()}
        for spot in self._spots.all:
            if spot.level in found:
                found[spot.level] |= {spot.number, path_of(profile, spot)}
        for name, entries in profile.fixtures.items():
            kind = next((kind for kind in ("project", "group") if name.endswith(kind)), None)
            found[kind or ""] = found.get(kind or "", set()) | {entry.get("path") for entry in entries}
        for actor in profile.actors.values():
            found["user"] |= {actor.id, actor.username}
        return found


def _number(value: Any) -> int | None:
    """Return the number that a lenient service may read from a value: its leading digits."""
    if isinstance(value, int | float):
        return int(value) if abs(value) < UNUSED_ID else UNUSED_ID
    match = _NUMBER.match(str(value))
    # Without the leading space, because int() refuses some characters that \s matches.
    return int(match["sign"] + match["digits"]) if match and len(match["digits"]) <= len(str(UNUSED_ID)) else None


def _exists(number: int) -> bool:
    return 0 < number < UNUSED_ID
