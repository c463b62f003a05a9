"""Where in an answer a value stands whose place is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Mapping[str, bool] = {"true": True, "false": False}


def values_under(name: str, body: Any) -> list[Any]:
    """Return the values that JSON has under a name, however deep."""
    if isinstance(body, list):
        return [value for entry in body for value in values_under(name, entry)]
    if not isinstance(body, dict):
        return []
    own = [body[name]] if name in body else []
    # Settings may also be told one by one, as pairs of name and value.
    own += [body["value"]] if body.get("name") == name and "value" in body else []
    # In which form they are shown is open, so that a switch may be told in words.
    own = [_WORDS.get(value, value) if isinstance(value, str) else value for value in own]
    return own + [value for key, inner in body.items() if key != name for value in values_under(name, inner)]
