"""Watches that a record has the same content wherever it is shown, to any reader, and by any form of the id.

A rule is shown in the answer to its creation, in a list and on its own; each test looks at one of these places. While
nobody changes anything, two of them must agree. This costs no call.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.http.bodies import records_of
from conformance.results.text import each_as_json
from conformance.target.readings import NAMES_IN_PAIRS
from conformance.target.spots import Spots, ordered, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.contract.records import Record
    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import ResponseValidator
    from conformance.target import Profile

_SWITCHES: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two answers with different content for one record."""

    requirement: str
    expected: str
    actual: str
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class _Shown:
    says: Mapping[str, Any]
    caller: str
    exchange: Exchange


class ShownRecords:
    """The content of each record in the answers since the last write. For one thread."""

    def __init__(self, profile: Profile, validator: ResponseValidator, records: Iterable[Record]) -> None:
        """Begin with none. If a target takes time to show what was written, the client waits before it reads."""
        self._kinds = {operation: record for record in records for operation in record.operations}
        self._spots = Spots(profile)
        self._validator = validator
        self._known: dict[tuple[Any, ...], list[_Shown]] = {}
        self._age = -1
        self.compared: Counter[str] = Counter()
        """By requirement: how many records were seen in a second answer."""

    def contradicted_by(self, exchange: Exchange, age: int) -> list[Contradiction]:
        """Return the parts of an answer that contradict an earlier answer about the same record.

        `age` changes as soon as something may have changed.
        """
        if age != self._age:
            self._known.clear()
            self._age = age
        call = exchange.call
        operation = self._validator.operation_of(call.method, call.path)
        if operation is None or operation.id not in self._kinds or not exchange.is_success or exchange.problem:
            return []
        return list(self._contradictions(self._kinds[operation.id], exchange))

    def _contradictions(self, kind: Record, exchange: Exchange) -> Iterator[Contradiction]:
        spot = self._spots.called(exchange.call.path)
        caller = exchange.call.actor.name if exchange.call.actor else ""
        records = self._records(exchange, are_listed=kind.by is not None) if spot else []
        # A list may also hold rules of its surroundings (F10), which may have their own numbers.
        times = Counter(name for record in records if isinstance(name := record.get(kind.by or ""), int | str))
        for record in records:
            name = record.get(kind.by) if kind.by else None
            if kind.by is not None and (not isinstance(name, int | str) or times[name] > 1):
                continue
            shown = _Shown(_said(kind, record), caller, exchange)
            known = self._known.setdefault((kind.operations, spot, name), [])
            self.compared[kind.requirement] += bool(known)
            found = next((one for one in (_difference(kind, other, shown) for other in known) if one), None)
            known.append(shown)
            if found:
                yield Contradiction(kind.requirement, *found, (known[0].exchange, exchange))

    def _records(self, exchange: Exchange, *, are_listed: bool) -> list[dict[str, Any]]:
        """Return the records of an answer; none if it is a list where only one record can exist."""
        found = self._validator.meant_if_served(exchange)
        return records_of(found) if are_listed or not isinstance(found, list) else []


def _difference(kind: Record, before: _Shown, now: _Shown) -> tuple[str, str] | None:
    """Return the difference between two answers about a record, as it was and as it is; None when they agree."""
    same_caller = before.caller == now.caller
    names = [
        name
        for name in (*kind.says, *(kind.to_each if same_caller else ()))
        if name in before.says and name in now.says and before.says[name] != now.says[name]
        if name not in kind.follows or _is_same(kind.follows[name], before.says, now.says)
    ]
    if not names:
        return None
    was, is_now = (each_as_json({name: one.says[name] for name in names}) for one in (before, now))
    return f"as in the answer to {before.caller or 'nobody'}: {was}", f"{now.caller or 'nobody'} is shown {is_now}"


def _is_same(place: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return place in before and place in now and before[place] == now[place]


def _said(kind: Record, record: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a record that must be the same everywhere; missing ones are not compared."""
    silent = {place for place, flag in kind.unless.items() if record.get(flag) is True}
    places = [place for place in (*kind.says, *kind.to_each, *kind.follows.values()) if place not in silent]
    return {
        place: _comparable(value_at(record, place)) for place in places if place.split("[")[0].split(".")[0] in record
    }


def _comparable(value: Any) -> Any:
    return ordered(list({json.dumps(one): one for one in value}.values())) if isinstance(value, list) else value


def values_under(name: str, body: Any) -> list[Any]:
    """Return the values that JSON has under a name, at any depth."""
    if isinstance(body, list):
        return [value for entry in body for value in values_under(name, entry)]
    if not isinstance(body, dict):
        return []
    own = [body[name]] if name in body else []
    # The value may be one of several properties of a setting, as in the approval settings.
    own = [one["value"] if isinstance(one, dict) and "value" in one else one for one in own]
    # Settings may also be listed one by one, as pairs of name and value.
    own += [body["value"]] if "value" in body and name in map(body.get, NAMES_IN_PAIRS) else []
    # The form of shown settings is open, so a switch may be shown as a word.
    own = [_SWITCHES.get(value, value) if isinstance(value, str) else value for value in own]
    return own + [value for key, inner in body.items() if key != name for value in values_under(name, inner)]
