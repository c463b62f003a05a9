"""Bodies of answers as Python values."""

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


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _LARGEST_EXACT else value
