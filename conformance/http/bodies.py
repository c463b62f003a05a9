"""Bodies of requests and answers as Python values."""

from __future__ import annotations

import codecs
import json
from typing import Any

#: Above this, a number with a fraction point is not exact any more.
_LARGEST_EXACT = 2**53


def parsed(body: bytes | str) -> Any:
    """
    Return what a JSON text holds; raise ValueError or RecursionError when it is none.

    JSON has one kind of number, so that `1.0` and `1e0` are the integer 1 here, wherever they stand.
    """
    text = body if isinstance(body, str) else _in_utf8(body)
    return json.loads(body, parse_float=_number) if text is None else _DECODER.decode(text)


def written(value: Any, *, escaped: bool = False) -> bytes:
    """
    Return a value as a JSON text in UTF-8; `escaped`, all of it that is not ASCII is, as some clients do.

    A half of a pair of surrogates, which UTF-8 does not know, is escaped, and all else beside it.
    """
    try:
        return (json.dumps(value) if escaped else _ENCODER.encode(value)).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def json_in(body: bytes | str | None) -> Any:
    """Return what a JSON text holds, as `parsed` does; None when it is none."""
    if not body:
        return None
    try:
        return parsed(body)
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


def _in_utf8(body: bytes) -> str | None:
    """Return a body as text; None where it may be written in another way than JSON is, which the library finds out."""
    if b"\0" in body[:4] or body.startswith(codecs.BOM_UTF8):
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value


#: Made once: the library makes one for each text that is not read or written in the usual way.
_DECODER = json.JSONDecoder(parse_float=_number)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
