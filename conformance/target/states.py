"""The restorable state of a target: parts of projects, groups and merge requests, read and written as values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.http.bodies import ABSENT
from conformance.http.exchange import goes_on, next_page
from conformance.schema.response_validator import ResponseValidator
from conformance.target.spots import Spot, Spots, lies_in, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.contract import Operation, Restored
    from conformance.contract.side_effects import Part
    from conformance.http.client import Client
    from conformance.http.exchange import Exchange, Query
    from conformance.target.profile import Actor, Profile

#: Values of parameters by the key of an entry, or by RECORD for a part without entries.
Values = dict[Any, dict[str, Any]]
RECORD = ""
#: A service may shorten pages to any length, or refuse long ones.
_PAGE_LENGTHS = (100, 10)
#: A list with more is not kept: each page is compared with all entries before it.
_MOST_PAGES = 500
_ALL = "*"


@dataclass(frozen=True, slots=True)
class Thing:
    """A part of one project, group or merge request that can be restored."""

    part: Part
    restored: Restored
    spot: Spot

    def __str__(self) -> str:
        """Name it."""
        return f"{self.part.name} of {self.spot}"


@dataclass(frozen=True)
class States:
    """Reads and writes the restorable state of a target, by its profile and outside of the tests."""

    profile: Profile
    client: Client

    @cached_property
    def _operations(self) -> Mapping[str, Operation]:
        """The operations of the target's version; one that is removed, or not yet there, is found by its other name."""
        found: dict[str, Operation] = {}
        for operation in Contract.load().operations(self.profile.version):
            found[operation.id] = operation
            if operation.alias_of:
                found.setdefault(operation.alias_of, operation)
        return found

    @cached_property
    def _validator(self) -> ResponseValidator:
        return ResponseValidator.of(Contract.load(), self.profile.version)

    @cached_property
    def spots(self) -> Spots:
        """The spots that the profile names."""
        return Spots(self.profile)

    def operation(self, name: str) -> Operation | None:
        """Return an operation of the target's version."""
        return self._operations.get(name)

    def things(self, spot: Spot) -> list[Thing]:
        """Return all parts of a project, group or merge request, and of what the profile names inside it."""
        contract = Contract.load()
        others = (each for each in self.spots.all if each != spot)
        spots = [spot, *(each for each in others if lies_in(self.profile, each, spot))]
        return [
            Thing(part, restored, each)
            for restored in contract.restoring.parts
            if (part := contract.side_effects.parts[restored.part]).feature is None
            or self.profile.declares(part.feature)
            for each in spots
            if self._level(part) == each.level
        ]

    def _level(self, part: Part) -> str | None:
        operation = self.operation(part.operation)
        if operation is None:
            return None
        if "/merge_requests/" in operation.path:
            return "merge request"
        return "group" if operation.path.startswith("/groups/") else "project"

    def actors(self, thing: Thing, first: str | None = None) -> list[Actor]:
        """Return the actors who may read and write a thing, with `first` at the beginning."""
        return self.profile.known_actors(first or "", *thing.part.readers)

    # -- reading -------------------------------------------------------------------------------------------------------

    def read(self, thing: Thing, first: str | None = None) -> tuple[str, Values] | None:
        """Return the state of a thing, and the first actor who could read it; None when nobody could."""
        operation = self.operation(thing.part.operation)
        for actor in self.actors(thing, first) if operation else ():
            body = self._body(actor, thing, operation)
            found = None if body is None else self._state(actor, thing, body)
            if found is not None:
                return actor.name, found
        return None

    def _body(self, actor: Actor, thing: Thing, operation: Operation | None, entry: Any = None) -> Any:
        """Return the body of a read, with all pages of a list; None when it is refused or is not JSON."""
        if operation is None:
            return None
        path = self.path(thing, operation, entry)
        if thing.part.by is None or thing.part.within is not None or entry is not None:
            return self._json(self._answer(actor, path))
        walks = (self._walk(actor, path, length, is_paged=bool(operation.paginated)) for length in _PAGE_LENGTHS)
        return next((entries for entries in walks if entries is not None), None)

    def _walk(self, actor: Actor, path: str, length: int, *, is_paged: bool) -> list[Any] | None:
        """Return the entries of all pages up to one with nothing new.

        Return None when the first page is refused, or when a page that was announced is not shown: what is missing then
        is not gone. A list without stated pages may refuse a request for one, and is then whole without it.
        """
        entries: list[Any] = []
        has_more: bool | None = None
        # The first page has no number, so that targets which only know cursors answer too.
        answer = self._answer(actor, path, {"per_page": length})
        if answer.is_refusal and not is_paged:
            whole = self._json(self._answer(actor, path))
            return whole if isinstance(whole, list) else None
        for page in range(2, _MOST_PAGES + 2):
            body = self._json(answer)
            if not isinstance(body, list):
                is_unknown = has_more or answer.is_withheld or answer.is_broken
                return entries if page > 2 and not is_unknown else None  # noqa: PLR2004 - the first page was read
            fresh = [each for each in body if each not in entries]
            entries += fresh
            has_more, following = goes_on(answer.headers), next_page(answer.headers)
            if not fresh or has_more is False:
                return entries
            number = {"page": page, "per_page": length}
            answer = self._answer(actor, following or path, {} if following else number)
        return None

    def _answer(self, actor: Actor, path: str, query: Query | None = None) -> Exchange:
        """Return the answer to a read; ask once more where the service breaks, which may be an accident."""
        answer = self.client.send(actor, "GET", path, query=query)
        return self.client.send(actor, "GET", path, query=query) if answer.is_broken else answer

    def _json(self, exchange: Exchange) -> Any:
        """Return what a read shows, as values that the service takes: one that shows 1 for true may refuse 1."""
        return self._validator.meant_if_served(exchange) if exchange.status == HTTPStatus.OK else None

    def _state(self, actor: Actor, thing: Thing, body: Any) -> Values | None:
        part = thing.part
        if part.within is not None:
            body = body.get(part.within) if isinstance(body, dict) else None
        if part.by is None:
            return {RECORD: _values(thing.restored, body)} if isinstance(body, dict) else None
        if not isinstance(body, list):
            return None
        found: Values = {}
        for entry in body:
            key = value_at(entry, part.by)
            if not isinstance(key, int | str) or entry.get("active") is False:
                continue
            each = thing.restored.read_each
            whole = self._body(actor, thing, self.operation(each), key) if each else entry
            found[key] = _values(thing.restored, whole if isinstance(whole, dict) else entry)
        return found

    def path(self, thing: Thing, operation: Operation, entry: Any = None) -> str:
        """Return the path of an operation for a thing, or for one of its entries."""
        values = {"id": thing.spot.number, "merge_request_iid": thing.spot.iid, thing.restored.entry or "": entry}
        return operation.path_with(values)

    # -- writing -------------------------------------------------------------------------------------------------------

    def write(
        self, thing: Thing, name: str, body: Mapping[str, Any] | None, *, entry: Any = None, first: str | None = None
    ) -> str | None:
        """Call an operation for a thing as the first actor who is served; return why nobody was, or None on success."""
        operation = self.operation(name)
        if operation is None:
            return f"version {self.profile.version} has no {name}"
        problem = "the profile has nobody who may"
        for actor in self._writers(thing, entry, first):
            sent = ABSENT if body is None else dict(body)
            if thing.restored.by_caller:
                sent = {"approval_password": actor.password} if actor.password else {}
            path = self.path(thing, operation, entry)
            exchange = self.client.send(actor, operation.method, path, json_body=sent)
            if exchange.is_success:
                return None
            problem = f"{operation.label}: {exchange.problem or f'status {exchange.status}'}"
        return problem

    def _writers(self, thing: Thing, entry: Any, first: str | None) -> Iterator[Actor]:
        if thing.restored.by_caller:
            yield from (actor for actor in self.profile.actors.values() if actor.id == entry)
        else:
            yield from self.actors(thing, first)


def _values(restored: Restored, body: dict[str, Any]) -> dict[str, Any]:
    """Return the parameter values that would restore what was read."""
    found: dict[str, Any] = {}
    for parameter, place in restored.body.items():
        value = value_at(body, place)
        if parameter == _ALL:
            found |= value if isinstance(value, dict) else {}
        elif value is not None:
            found[parameter] = value
    return found
