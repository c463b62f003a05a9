"""What reading shows of a target, each thing read once, and what is found wrong with a profile by that."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.exchange import next_page, pages_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.target.profile import Profile

_PAGE_LENGTH = 100
_MOST_PAGES = 100


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
    _read: dict[tuple[str, str, int | None], Exchange] = field(default_factory=dict)
    _reading: defaultdict[tuple[str, str], threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def answer(self, path: str, *actors: str, page: int | None = None) -> Exchange | None:
        """Return the first served answer to one of the actors, otherwise the last; None when nobody can ask."""
        found = None
        for name in dict.fromkeys([*actors, "owner", "maintainer", "admin"]):
            if name not in self.profile.actors:
                continue
            found = self._once(name, path, page)
            if found.is_success:
                break
        return found

    def record(self, path: str, *actors: str) -> Mapping[str, Any]:
        """Return the object that a path shows; an empty one when it shows none."""
        answer = self.answer(path, *actors)
        return answer.served_object if answer is not None else {}

    def entries(self, path: str, *actors: str) -> list[Mapping[str, Any]] | None:
        """
        Return the objects of a whole list; None when there is none, or when it is not shown to its end.

        Pages may be shorter than was asked for, and need not tell of a next one: a list ends where a page has nothing
        new or is refused, unless the page before named a next one.
        """
        entries: list[Mapping[str, Any]] = []
        goes_on: bool | None = None
        following: str | None = None
        for page in range(1, _MOST_PAGES + 1):
            answer = self.answer(following, *actors) if following else self.answer(path, *actors, page=page)
            found = answer.served_json if answer is not None else None
            if answer is None or not isinstance(found, list):
                return entries if page > 1 and not goes_on else None
            fresh = [entry for entry in found if isinstance(entry, dict) and entry not in entries]
            if not fresh:
                return None if goes_on else entries
            entries += fresh
            goes_on, following = _goes_on(answer), next_page(answer.headers)
            if goes_on is False:
                return entries
        return None

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
        return self.status_of(name, "/user") == HTTPStatus.UNAUTHORIZED and any(map(self.user, others))

    def record_of(self, name: str, path: str) -> Mapping[str, Any]:
        """Return the object that a path shows to one actor and nobody else; an empty one when it shows none."""
        return self._once(name, path).served_object

    def status_of(self, name: str, path: str) -> int | None:
        """Return the status of the same."""
        return self._once(name, path).status

    def _once(self, name: str, path: str, page: int | None = None) -> Exchange:
        """Return what an actor is answered; who asks while another thread does waits for that answer."""
        # The first page has no number, so that a target which knows cursors only answers too.
        number = {} if page in {None, 1} else {"page": page}
        query = None if page is None else {"per_page": _PAGE_LENGTH, **number}
        with self._reading[name, path]:
            if (name, path, page) not in self._read:
                self._read[name, path, page] = self.client.send(self.profile.actors[name], "GET", path, query=query)
        return self._read[name, path, page]


def _goes_on(answer: Exchange) -> bool | None:
    """Tell whether a page says by its headers that another follows; None where it says nothing of that."""
    following = answer.headers.get("x-next-page")
    if following is None and "link" not in answer.headers:
        return None
    return bool(following) or "next" in pages_in(answer.headers)


def flat(shown: Any) -> dict[str, Any]:
    """Return all values of a record, at whatever depth or in pairs of name and value: where settings stand is open."""
    if isinstance(shown, list):
        return {name: value for entry in shown for name, value in flat(entry).items()}
    if not isinstance(shown, dict):
        return {}
    found = dict(shown)
    if isinstance(shown.get("name"), str) and "value" in shown:
        found = {shown["name"]: shown["value"]}
    for value in shown.values():
        found |= flat(value)
    return found
