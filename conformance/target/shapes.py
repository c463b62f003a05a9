"""Reads the records of a target: a value of another type than its name says counts as missing."""

from __future__ import annotations

from typing import Any

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
