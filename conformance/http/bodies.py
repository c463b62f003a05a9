"""Bodies of requests and answers as Python values."""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Stands for no body or value at all, where None would be `null`.
ABSENT: Any = object()
#: The deepest nesting that is read: Python parses more, and whatever walks through it would exceed its stack.
_DEEPEST = 200
#: Above this, a number with a decimal point is no longer exact.
_LARGEST_EXACT = 2**53
#: The properties that have the number of a thing, and such a number; no thing has a longer one.
_IDS = ("id", "iid", "parent_id", "project_id", "source_project_id", "target_group_id", "target_project_id")
#: The length of an escape such as \u00e9.
_ESCAPE = 6
#: What JSON has besides texts, numbers, lists and objects, and the beginning of a number.
_WORDS = ("true", "false", "null", "-")
_WHOLE = re.compile(r"[1-9][0-9]{0,29}")
_ID_AS_TEXT = re.compile(rf'"(?:{"|".join(_IDS)})"\s*:\s*"[1-9]')


def parsed(body: bytes | str) -> Any:
    """Parse a JSON text; raise ValueError or RecursionError when it cannot be parsed, or is nested too deeply.

    JSON has one kind of number, so `1.0` and `1e0` become the integer 1, wherever they stand. The number of a thing,
    such as its `id`, may be written as text: it becomes an integer too, because only the contract checks its type.
    """
    text = body if isinstance(body, str) else _in_utf8(body)
    found = json.loads(body, parse_float=_number) if text is None else _DECODER.decode(text)
    if text is None or text.count("[") + text.count("{") > _DEEPEST:
        _require_shallow(found)
    return found if text is None or _ID_AS_TEXT.search(text) is None else _with_numbers(found)


def _with_numbers(value: Any) -> Any:
    """Return a JSON value in which the numbers of things are integers."""
    if isinstance(value, list):
        return [_with_numbers(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {name: _number_of(entry) if name in _IDS else _with_numbers(entry) for name, entry in value.items()}


def _number_of(entry: Any) -> Any:
    is_number = isinstance(entry, str) and _WHOLE.fullmatch(entry) is not None
    return int(entry) if is_number else _with_numbers(entry)


def _require_shallow(found: Any) -> None:
    """Raise RecursionError for JSON that is nested too deeply."""
    level = [found]
    for _ in range(_DEEPEST + 1):
        inside = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        level = [entry for entries in inside for entry in entries]
        if not level:
            return
    raise RecursionError(f"JSON is nested more than {_DEEPEST} deep")


def written(value: Any, *, escaped: bool = False) -> bytes:
    """Return a value as JSON text in UTF-8; if `escaped`, all non-ASCII characters are escaped, as some clients do.

    If the value has a lone surrogate, which UTF-8 cannot encode, all non-ASCII characters are escaped too.
    """
    try:
        return (json.dumps(value) if escaped else _ENCODER.encode(value)).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def json_in(body: bytes | str | None) -> Any:
    """Parse a JSON text as `parsed` does; None when it is no JSON."""
    if not body:
        return None
    try:
        return parsed(body)
    except (ValueError, RecursionError):
        return None


def is_cut(body: bytes) -> bool:
    """Tell whether a body is the beginning of a JSON text: it stops where more must follow, or is empty."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if error.end < len(body) or "end of data" not in error.reason:
            return False
        text = body[: error.start].decode()  # a letter of several bytes is cut
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        rest = text[error.pos :].strip()
        is_open = error.msg.startswith("Unterminated string") or ("escape" in error.msg and len(rest) < _ESCAPE)
        return not rest or is_open or any(word.startswith(rest) for word in _WORDS)
    except (ValueError, RecursionError):
        return False
    return False


def object_in(body: bytes | str | None) -> dict[str, Any]:
    """Parse a JSON text; return its object, or an empty one when it is something else."""
    found = json_in(body)
    return found if isinstance(found, dict) else {}


def objects_in(body: bytes | str | None) -> list[dict[str, Any]]:
    """Parse a JSON text; return the objects of its array, or none when it is something else."""
    found = json_in(body)
    return records_of(found) if isinstance(found, list) else []


def listed_in(value: Any) -> list[Any] | None:
    """Return a JSON array; None for anything else. `null` is an empty one: only the contract checks its type."""
    return [] if value is None else value if isinstance(value, list) else None


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same; unlike in Python, `true` is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def records_of(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a JSON array, or the one object that the value is."""
    return [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]


def with_values(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return JSON in which every value that is neither a list nor a mapping is changed, at any depth."""
    if isinstance(node, dict):
        return {name: with_values(entry, change) for name, entry in node.items()}
    return [with_values(entry, change) for entry in node] if isinstance(node, list | tuple) else change(node)


def in_part(node: Any, most: int) -> Any:
    """Return JSON in which every list has at most so many entries, at any depth."""
    if isinstance(node, list):
        return [in_part(entry, most) for entry in node[:most]]
    return {name: in_part(entry, most) for name, entry in node.items()} if isinstance(node, dict) else node


def _in_utf8(body: bytes) -> str | None:
    """Decode a body; None when its encoding may be another one, which the library then detects."""
    if b"\0" in body[:4] or body.startswith(codecs.BOM_UTF8):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value


#: Created once, because the library creates one for each text that needs unusual settings.
_DECODER = json.JSONDecoder(parse_float=_number)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
