"""What reading shows of a target, each thing read once, and what is found wrong with a profile by that."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.target.profile import Profile

_PAGE = {"per_page": 100}
UNAUTHORIZED = 401


class State(StrEnum):
    """What a look at one value of a profile came to."""

    CONTRADICTED = "contradicted"
    """The target shows something else: what would fail is not the service."""
    MISSING = "missing"
    """Something is to be added; without it, something is not tested."""
    NOTE = "note"
    """It could not be read, or is worth a second look."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One value of a profile that is not, or may not be, what it should be."""

    place: str
    """Where in the profile, such as `fixtures.project.path`."""
    state: State
    detail: str
    write: Any = None
    """What to write there, as far as that could be found out."""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"place": self.place, "state": str(self.state), "detail": self.detail, "write": self.write}


@dataclass
class Readings:
    """What can be read of a target, each thing once. Safe to use from several threads."""

    profile: Profile
    client: Client
    _read: dict[tuple[str, str], Exchange] = field(default_factory=dict)
    _reading: defaultdict[tuple[str, str], threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def answer(self, path: str, *actors: str, is_list: bool = False) -> Exchange | None:
        """Return the first served answer to one of the actors, otherwise the last; None when nobody can ask."""
        found = None
        for name in dict.fromkeys([*actors, "owner", "maintainer", "admin"]):
            if name not in self.profile.actors:
                continue
            found = self._once(name, path, _PAGE if is_list else None)
            if found.is_success:
                break
        return found

    def record(self, path: str, *actors: str) -> Mapping[str, Any]:
        """Return the object that a path shows; an empty one when it shows none."""
        answer = self.answer(path, *actors)
        return answer.served_object if answer is not None else {}

    def entries(self, path: str, *actors: str) -> list[Mapping[str, Any]] | None:
        """Return the objects of a whole list; None when there is none, or there may be more than is shown."""
        answer = self.answer(path, *actors, is_list=True)
        found = answer.served_json if answer is not None else None
        if answer is None or not isinstance(found, list) or len(found) >= _PAGE["per_page"]:
            return None
        goes_on = answer.headers.get("x-next-page") or 'rel="next"' in answer.headers.get("link", "")
        return None if goes_on else [entry for entry in found if isinstance(entry, dict)]

    def levels(self, path: str) -> dict[Any, int] | None:
        """Return the level of each member of a project or group; None when its list is not shown whole."""
        members = self.entries(f"{path}/members/all", "admin")
        if members is None or not all(isinstance(one.get("access_level"), int) for one in members):
            return None
        levels: dict[Any, int] = {}
        for one in members:
            levels[one.get("id")] = max(levels.get(one.get("id"), 0), one["access_level"])
        return levels

    def user(self, name: str) -> Mapping[str, Any]:
        """Return who an actor is, as far as the target says so."""
        return self.record_of(name, "/user")

    def refuses_token_of(self, name: str) -> bool:
        """
        Tell whether GET /user refuses an actor's token.

        Where it shows nobody at all, 401 may be how a target answers calls that it does not have.
        """
        others = (other for other in self.profile.actors if other != name)
        return self.status_of(name, "/user") == UNAUTHORIZED and any(map(self.user, others))

    def record_of(self, name: str, path: str) -> Mapping[str, Any]:
        """Return the object that a path shows to one actor and nobody else; an empty one when it shows none."""
        return self._once(name, path).served_object

    def status_of(self, name: str, path: str) -> int | None:
        """Return the status of the same."""
        return self._once(name, path).status

    def _once(self, name: str, path: str, query: Mapping[str, int] | None = None) -> Exchange:
        """Return what an actor is answered; who asks while another thread does waits for that answer."""
        with self._reading[name, path]:
            if (name, path) not in self._read:
                self._read[name, path] = self.client.send(self.profile.actors[name], "GET", path, query=query)
        return self._read[name, path]


def flat(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values of a record, at whatever depth: where an answer holds settings is open."""
    found = dict(shown)
    for value in shown.values():
        if isinstance(value, dict):
            found |= flat(value)
    return found
