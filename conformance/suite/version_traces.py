"""What began or ended with a version, and whether the target shows a trace of it.

Used only if the version of the target is unknown: missing things that the target may not have yet, or no longer have,
are no violation as long as nothing shows that the target has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.contract import OLDEST, ChangeKind
from conformance.http.bodies import object_in, objects_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.contract import Contract, Operation, Requirement, Version
    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import ResponseValidator
    from conformance.target import Profile

_CAME = (ChangeKind.INTRODUCED, ChangeKind.RENAMED)
_PAGES = frozenset({"page", "per_page"})


@dataclass
class _Item:
    """Things that one row of the version table adds or removes under one name: operations, a parameter, a field."""

    version: Version
    name: str
    """Name of the parameter or field; empty for whole operations."""
    is_removal: bool
    what: str
    areas: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)
    parameters: set[str] = field(default_factory=set)
    """Operations that have the parameter."""
    records: set[str] = field(default_factory=set)
    """Names of the schemas that have the field."""
    is_seen: bool = False
    was_asked_for: bool = False

    def concerns(self, operation: Operation, exchange: Exchange) -> bool:
        """Tell whether a call is of one of the operations, or sends the parameter."""
        if operation.id in self.operations:
            return True
        if operation.id not in self.parameters:
            return False
        names = _PAGES if self.name in _PAGES else {self.name}
        return bool(names & {*exchange.call.query, *object_in(exchange.call.body)})


class VersionTraces:
    """Watches the exchanges of a run for things that began with a version, and says what their absence excuses."""

    def __init__(
        self, contract: Contract, profile: Profile, validator: ResponseValidator, ask: Callable[[str, str], None]
    ) -> None:
        """Begin with nothing seen; `ask` reads a path as an actor, so that a trace can be seen."""
        self._contract = contract
        self._profile = profile
        self._validator = validator
        self._ask = ask
        self._items = _items(contract)
        self._served: set[str] = set()
        self._refused: set[str] = set()
        self._longest: dict[str, int] = {}

    # -- what is seen ------------------------------------------------------------------------------------------------

    def see(self, exchange: Exchange) -> None:
        """Search an exchange for traces of things that began with a version."""
        operation = self._validator.operation_of(exchange.call.method, exchange.call.path)
        if operation is None or exchange.status is None:
            return
        if exchange.is_success:
            self._served.add(operation.id)
            if not operation.is_read:
                self._longest.clear()  # a write may have made any list shorter
        elif exchange.is_refusal and exchange.call.actor in self._profile.actors.values():
            self._refused.add(operation.id)
        for item in self._items:
            if not item.is_seen and not item.is_removal and exchange.is_success:
                item.is_seen = self._shows(item, operation, exchange)

    def _shows(self, item: _Item, operation: Operation, exchange: Exchange) -> bool:
        if operation.id in item.operations:
            return True
        if operation.is_read and any(operation.answers(record) for record in item.records):
            return f'"{item.name}"'.encode() in exchange.body
        if operation.id not in item.parameters:
            return False
        if item.name in _PAGES:
            return self._is_shorter_page(exchange)
        return item.name == "usernames" and exchange.call.method == "POST" and _took_usernames(exchange)

    def _is_shorter_page(self, exchange: Exchange) -> bool:
        """Tell whether a page is as short as requested, of a list that was seen to be longer."""
        asked = str(exchange.call.query.get("per_page", ""))
        length = len(objects_in(exchange.body))
        longest = max(length, self._longest.get(exchange.call.path, 0))
        self._longest[exchange.call.path] = longest
        return asked.isdecimal() and 0 < length <= int(asked) < longest

    # -- what a missing trace excuses --------------------------------------------------------------------------------

    def excuse(self, requirement: Requirement, exchanges: Sequence[Exchange]) -> str | None:
        """Return in a sentence why another version may excuse a violation; None when it cannot.

        `exchanges` are those that show the violation. A server error is never excused.
        """
        if any(exchange.is_broken for exchange in exchanges):
            return None
        concerned = [*self._of(requirement), *self._called(exchanges)]
        for item in concerned:
            if item.is_removal and self._is_gone(item):
                return f"the version is unknown, and the target refuses {item.what}, which went in {item.version}"
            if not item.is_removal and not self._is_there(item):
                return _older(item)
        introduced = requirement.introduced
        if introduced is not None and introduced > OLDEST and not any(item.version == introduced for item in concerned):
            return f"the version is unknown, and this is owed from {introduced} on"
        return None

    def removed(self, requirement: Requirement) -> str | None:
        """Return what ended with the version that ends a requirement, if the target refuses it; None otherwise."""
        if requirement.removed is None:
            return None
        gone = [item for item in self._of(requirement) if item.is_removal and self._is_gone(item)]
        return f"the target refuses {gone[0].what}, as from {gone[0].version} on" if gone else None

    def absent(self, operation: Operation) -> str | None:
        """Return in a sentence why an operation may be missing; None if the target shows it, or always owed it."""
        for item in self._items:
            if operation.id in item.operations and not item.is_removal and not self._is_there(item):
                return _older(item)
        return None

    def is_bound(self, operation: Operation) -> bool:
        """Tell whether an operation began or ended with a version, so that its absence shows how old the target is."""
        return any(operation.id in item.operations for item in self._items)

    def is_gone(self, operation: Operation) -> bool:
        """Tell whether the target refuses an operation that ended with some version."""
        return any(item.is_removal and operation.id in item.operations and self._is_gone(item) for item in self._items)

    def _of(self, requirement: Requirement) -> list[_Item]:
        """Return the items of the version with which a requirement begins or ends."""
        found = [
            item
            for item in self._items
            if item.version == (requirement.removed if item.is_removal else requirement.introduced)
        ]
        for narrower in (
            [item for item in found if requirement.area in item.areas],
            [item for item in found if item.name and item.name.replace("_", "-") in requirement.id],
        ):
            found = narrower or found
        return found

    def _called(self, exchanges: Sequence[Exchange]) -> list[_Item]:
        """Return the items whose operation is called, or whose parameter is sent."""
        found = []
        for exchange in exchanges:
            operation = self._validator.operation_of(exchange.call.method, exchange.call.path)
            if operation is not None:
                found += [item for item in self._items if item.concerns(operation, exchange)]
        return found

    def _is_gone(self, item: _Item) -> bool:
        return bool(item.operations & self._refused) and not item.operations & self._served

    def _is_there(self, item: _Item) -> bool:
        """Tell whether a trace of an item was seen; readable items are requested once."""
        if not item.is_seen and not item.was_asked_for:
            item.was_asked_for = True
            for actor, path in self._readable(item):
                self._ask(actor, path)
        return item.is_seen

    def _readable(self, item: _Item) -> Iterator[tuple[str, str]]:
        """Yield who may read what shows an item, and where, if the fixtures fill the path."""
        for operation in self._validator.operations:
            is_shown = operation.id in item.operations or any(operation.answers(record) for record in item.records)
            actor = next((name for name in operation.served if name in self._profile.actors), None)
            path = self._path(operation)
            if operation.is_read and is_shown and actor and path:
                yield actor, path

    def _path(self, operation: Operation) -> str | None:
        values = {entry.name: self._profile.value(entry.fixture or "") for entry in operation.path_parameters}
        return None if None in values.values() else operation.path_with(values)


def _items(contract: Contract) -> list[_Item]:
    """Return what began and ended, one item for each version and name."""
    known = {operation.id for operation in contract.operations(None)}
    found: dict[tuple[Version, str, bool], _Item] = {}
    for change in contract.changes:
        removal = change.kind is ChangeKind.REMOVED
        if change.version is None or not change.described or not (removal or change.kind in _CAME):
            continue
        for place in change.places:
            owner, _, name = place.partition(".")
            what = "" if not name else "per_page" if name in _PAGES else name
            item = found.setdefault(
                (change.version, what, removal), _Item(change.version, what, removal, what or change.item)
            )
            item.areas.add(contract.requirements[change.requirement].area)
            kept = item.records if owner not in known else item.parameters if name else item.operations
            kept.add(owner)
    return list(found.values())


def _older(item: _Item) -> str:
    return f"the version is unknown, and nothing shows that it is {item.version} or newer: {item.what}"


def _took_usernames(exchange: Exchange) -> bool:
    """Tell whether a new rule names somebody whom the call gave only by username."""
    sent, answer = object_in(exchange.call.body), object_in(exchange.body)
    users = answer.get("users")
    by_name, by_id = sent.get("usernames"), sent.get("user_ids") or []
    if not isinstance(users, list) or not isinstance(by_name, list) or not isinstance(by_id, list):
        return False
    return any(
        isinstance(user, dict) and user.get("username") in by_name and user.get("id") not in by_id for user in users
    )
