"""Reads from a target, each of them once, and the findings about a profile that come from them."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.http.exchange import goes_on, next_page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.client import Client
    from conformance.http.exchange import Exchange
    from conformance.target.profile import Profile

_NUMBERS = frozenset({"access_level", "id", "iid", "project_id", "user_id"})
_TEXTS = frozenset({"default_branch", "source_branch", "target_branch", "full_path", "path", "path_with_namespace"}) | {
    *("description", "name", "rule_type", "sha", "slug", "state", "title", "username", "visibility")
}
_RECORDS = frozenset({"author", "commit", "namespace"})
_LISTS = frozenset({"batches", "groups", "parent_ids", "protected_branches", "rules", "users"})
_LONGEST_NUMBER = 18  # digits


def as_named(body: Any) -> Any:
    """Return an answer, one record or a list of them, without the values that cannot be what their names say.

    Whoever reads it then only has to expect that something is missing, which each service may leave out.
    """
    if isinstance(body, list):
        return [_record(entry) if isinstance(entry, dict) else entry for entry in body]
    return _record(body) if isinstance(body, dict) else body


def _record(entry: dict[str, Any]) -> dict[str, Any]:
    values = ((name, _value(name, value)) for name, value in entry.items())
    return {name: value for name, value in values if value is not None or name not in _NAMED}


def _value(name: str, value: Any) -> Any:
    """Return a value, or None if it has another type than its name says; some send "1", or 1.0."""
    if name in _NUMBERS:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        is_number = isinstance(value, str) and value.isdecimal() and len(value) <= _LONGEST_NUMBER
        return int(value) if is_number else value if type(value) is int else None
    kind = next((kind for names, kind in _KINDS if name in names), object)
    return value if isinstance(value, kind) else None


_KINDS: tuple[tuple[frozenset[str], type], ...] = ((_TEXTS, str), (_RECORDS, dict), (_LISTS, list))
_NAMED = _NUMBERS | _TEXTS | _RECORDS | _LISTS


# -- readings ----------------------------------------------------------------------------------------------------------


#: The keys beside `value` under which a service that lists settings one by one writes the name of each.
NAMES_IN_PAIRS = ("name", "key")
_PAGE_LENGTH = 100
_MOST_PAGES = 100


class State(StrEnum):
    """The result of checking one value of a profile."""

    CONTRADICTED = "contradicted"
    """The target shows something else, so a failure would not be the service's fault."""
    GONE = "gone"
    """The target shows nothing of it, to nobody: it may have been deleted since the profile was written."""
    MISSING = "missing"
    """A value must be added; without it, something is not tested."""
    NOTE = "note"
    """It could not be read, or it should be checked by hand."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One value of a profile that is, or may be, wrong."""

    place: str
    """Its place in the profile, such as `fixtures.project.path`."""
    state: State
    detail: str
    write: Any = None
    """The right value, if it could be found out."""


@dataclass
class Readings:
    """Reads from a target; each is done once. Safe to use from several threads."""

    profile: Profile
    client: Client
    _read: dict[tuple[str, str, int | None], Exchange] = field(default_factory=dict)
    _reading: defaultdict[tuple[str, str], threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def answer(self, path: str, *actors: str, page: int | None = None) -> Exchange | None:
        """Return the first served answer to one of the actors, or else the last answer; None when no actor can ask."""
        found = None
        for actor in self.profile.known_actors(*actors, "owner", "maintainer", "admin"):
            found = self._once(actor.name, path, page)
            if found.is_success:
                break
        return found

    def record(self, path: str, *actors: str) -> Mapping[str, Any]:
        """Return the object at a path; an empty one when none is served."""
        answer = self.answer(path, *actors)
        return _object(answer) if answer is not None else {}

    def entries(self, path: str, *actors: str) -> list[Mapping[str, Any]] | None:
        """Return all objects of a list; None when there is none, or when it cannot be read to its end.

        Pages may be shorter than requested, and need not name the next one: a list ends at a page that has nothing new
        or is refused, unless the page before named a next one.
        """
        entries: list[Mapping[str, Any]] = []
        has_more: bool | None = None
        following: str | None = None
        for page in range(1, _MOST_PAGES + 1):
            answer = self.answer(following, *actors) if following else self.answer(path, *actors, page=page)
            found = as_named(answer.served_json) if answer is not None else None
            if answer is None or not isinstance(found, list):
                return entries if page > 1 and not has_more else None
            fresh = [entry for entry in found if isinstance(entry, dict) and entry not in entries]
            if not fresh:
                return None if has_more else entries
            entries += fresh
            has_more, following = goes_on(answer.headers), next_page(answer.headers)
            if has_more is False:
                return entries
        return None

    def whole(self, path: str, *actors: str) -> list[Mapping[str, Any]] | None:
        """Return all objects of a list without stated pages, which may refuse a request for one; None as above."""
        answer = self.answer(path, *actors, page=1)
        if answer is None or not answer.is_refusal:
            return self.entries(path, *actors)
        plain = self.answer(path, *actors)
        found = as_named(plain.served_json) if plain is not None and not goes_on(plain.headers) else None
        return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else None

    def levels(self, path: str, *actors: str) -> dict[Any, int] | None:
        """Return the level of each member of a project or group; None when the list cannot be read completely.

        After those who may usually read it, these actors are asked.
        """
        members = self.entries(f"{path}/members/all", "admin", "owner", "maintainer", *actors)
        if members is None or not all(isinstance(one.get("access_level"), int) for one in members):
            return None
        levels: dict[Any, int] = {}
        for one in members:  # whoever has no id is nobody of the profile
            levels[one.get("id")] = max(levels.get(one.get("id"), 0), one["access_level"])
        return levels

    def user(self, name: str) -> Mapping[str, Any]:
        """Return the user behind an actor, as far as the target shows it."""
        return self.record_of(name, "/user")

    def refuses_token_of(self, name: str) -> bool:
        """Tell whether GET /user refuses an actor's token.

        If every actor gets 401, that may be the target's answer to calls that it does not have.
        """
        if self.status_of(name, "/user") != HTTPStatus.UNAUTHORIZED:
            return False
        others = (other for other in self.profile.actors if other != name)
        return any(self.user(other) or self.status_of(other, "/user") == HTTPStatus.NOT_FOUND for other in others)

    def record_of(self, name: str, path: str) -> Mapping[str, Any]:
        """Return the object at a path as this actor sees it; an empty one when none is served to the actor."""
        return _object(self._once(name, path))

    def status_of(self, name: str, path: str) -> int | None:
        """Return the status of GET on a path as this actor; None when no answer came."""
        return self._once(name, path).status

    def _once(self, name: str, path: str, page: int | None = None) -> Exchange:
        """Return the answer to an actor; if another thread sends the same call, wait for that answer."""
        # The first page has no number, so that targets which only know cursors answer too.
        number = {} if page in {None, 1} else {"page": page}
        query = None if page is None else {"per_page": _PAGE_LENGTH, **number}
        with self._reading[name, path]:
            if (name, path, page) not in self._read:
                self._read[name, path, page] = self.client.send(self.profile.actors[name], "GET", path, query=query)
        return self._read[name, path, page]


def _object(answer: Exchange) -> dict[str, Any]:
    """Return the object of a served answer; an empty one when there is none."""
    found: dict[str, Any] = as_named(answer.served_object)
    return found


def flat(shown: Any) -> dict[str, Any]:
    """Return all values of a record, at any depth and in pairs of name and value: settings may stand anywhere.

    A value may also be one of several things that are said of a setting. What a record says itself counts more than
    what stands in it: settings may repeat whatever was sent.
    """
    if isinstance(shown, list):
        return {name: value for entry in shown for name, value in flat(entry).items()}
    if not isinstance(shown, dict):
        return {}
    names = [shown[key] for key in NAMES_IN_PAIRS if isinstance(shown.get(key), str) and "value" in shown]
    own = {names[0]: shown["value"]} if names else shown
    own = {name: one["value"] if isinstance(one, dict) and "value" in one else one for name, one in own.items()}
    return {name: value for inner in shown.values() for name, value in flat(inner).items()} | own
