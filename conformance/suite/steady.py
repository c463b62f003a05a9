"""Tells whether two consecutive answers have the same content, apart from values that change by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformance.suite.context import current_run
from conformance.target.spots import ordered

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from conformance.suite.expectations import Answer

#: Properties that identify a thing. Every other property of a record may change between two answers.
_IDENTITY = ("id", "iid", "slug", "relation", "path", "name", "username")
#: How often a value that seems stable is read: with two machines, every second read may come from the same one.
_LOOKS = 5


def says_the_same(seen: Any, wanted: Any, again: Callable[[], Any]) -> bool:
    """Tell whether two bodies have the same content, apart from properties that change by themselves.

    A service may show more than the text names, such as the time of the answer or a counter of reads. Only if the
    bodies differ, `again` reads `wanted` again: a property whose value differs between two of these reads changes by
    itself, and is then ignored everywhere.
    """
    if seen == wanted:
        return True
    moving: set[str] = set()
    for _ in range(_LOOKS):
        moving |= set(_moving(wanted, again()))
        if moving and _without(moving, seen) == _without(moving, wanted):
            return True
    return False


def identity(node: Any, names: Collection[str] = _IDENTITY) -> Any:
    """Return the part of a body that must be the same in the next answer: the things it shows, in any order.

    For things without one of these names, such as settings, that is everything except the times.
    """
    if isinstance(node, list):
        return ordered([identity(entry, names) for entry in node])
    if not isinstance(node, dict):
        return node
    kept = {name: node[name] for name in names if name in node}
    return kept or {name: identity(value, names) for name, value in node.items() if not name.endswith("_at")}


def shows_the_same(seen: Answer, wanted: Answer, again: Callable[[], Answer]) -> bool:
    """Tell whether two answers show the same things, as far as the contract names them; `again` rereads `wanted`."""

    def shown(answer: Answer) -> Any:
        return identity(of_the_contract(answer.json))

    return says_the_same(shown(seen), shown(wanted), lambda: shown(again()))


def of_the_contract(body: Any) -> Any:
    """Remove values of properties that the contract does not name from JSON; records below other names are kept.

    A service may show more than the text names, such as the time of the answer, and that may change by itself.
    """
    names = current_run().contract.property_names

    def kept(body: Any) -> Any:
        if isinstance(body, dict):
            return {name: kept(value) for name, value in body.items() if name in names or _has_records(value)}
        return [kept(entry) for entry in body] if isinstance(body, list) else body

    return kept(body)


def of_records(body: Any, *records: str) -> Any:
    """Remove from a record with a stated form every property that none of these records of the contract has.

    Any other property may change by itself, also below a name that the text uses elsewhere, or below one of its own,
    such as a record of the last event.
    """
    schemas = current_run().contract.document["components"]["schemas"]
    names = {name for record in records for name in schemas[record]["properties"]}
    return {name: value for name, value in body.items() if name in names} if isinstance(body, dict) else body


def _moving(first: Any, second: Any) -> Iterator[str]:
    """Yield the names of properties whose values differ; entries of lists are compared by position."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name in first.keys() & second.keys():
            if _is_nested(first[name]) and _is_nested(second[name]):
                yield from _moving(first[name], second[name])
            elif first[name] != second[name]:
                yield name
    elif _is_list(first) and _is_list(second) and len(first) == len(second):
        for one, other in zip(first, second, strict=True):
            yield from _moving(one, other)


def _without(names: Collection[str], body: Any) -> Any:
    if isinstance(body, dict):
        return {name: _without(names, value) for name, value in body.items() if name not in names}
    return [_without(names, entry) for entry in body] if _is_list(body) else body


def _has_records(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_records, value)))


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or _is_list(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
