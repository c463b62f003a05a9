"""Bodies of requests and answers as Python values."""

from __future__ import annotations

import json
from typing import Any

#: Above this, a number with a fraction point is not exact any more.
_LARGEST_EXACT = 2**53


def parsed(body: bytes | str) -> Any:
    """
    Return what a JSON text holds; raise ValueError or RecursionError when it is none.

    JSON has one kind of number, so that `1.0` and `1e0` are the integer 1 here, wherever they stand.
    """
    return json.loads(body, parse_float=_number)


def json_in(body: bytes | str | None) -> Any:
    """Return what a JSON text holds, as `parsed` does; None when it is none."""
    try:
        return parsed(body or b"")
    except (ValueError, RecursionError):
        return None


def object_in(body: bytes | str | None) -> dict[str, Any]:
    """Return the object that a JSON text holds; an empty one when it holds something else."""
    found = json_in(body)
    return found if isinstance(found, dict) else {}


def objects_in(body: bytes | str | None) -> list[dict[str, Any]]:
    """Return the objects of the array that a JSON text holds; none when it holds something else."""
    found = json_in(body)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
