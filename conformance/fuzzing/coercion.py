"""Which values no service could convert to the type of a parameter.

Services convert: "1" to a number, 1 to a truth value, a number to text, a single value to a list of one, and a list to
text, with commas between its entries. If a service accepts a value that some service converts, that proves nothing, so
only values beyond all of that count against a service. Limits of length, size and form are no types and are ignored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.contract import Parameter

_SCALARS = ("integer", "number", "boolean", "string")
_WORDS_WITH_A_MEANING = frozenset(
    {"true", "false", "yes", "off", "null", "nil", "none", "nan", "inf", "infinity", "undefined", "enabled", "disabled"}
)
_SHORTEST_WORD = 3
_SEVERAL = 2

_WRONG: Mapping[str, tuple[Any, ...]] = {
    "integer": ("abc", {"conformance": "abc"}),
    "number": ("abc", {"conformance": "abc"}),
    "boolean": ("maybe", {"conformance": "maybe"}),
    "string": ({"conformance": "abc"},),
}


def kind_of(schema: Mapping[str, Any]) -> str | None:
    """Return the only JSON type of a schema besides null; None when it has several or none."""
    types = schema.get("type")
    listed = {types} if isinstance(types, str) else set(types or ())
    for word in ("anyOf", "oneOf"):
        for branch in schema.get(word, ()):
            listed.add(kind_of(branch) or ("null" if branch.get("type") == "null" else "several"))
    if not listed and "enum" in schema and all(isinstance(value, str) for value in schema["enum"]):
        return "string"
    listed.discard("null")
    return next(iter(listed)) if len(listed) == 1 and "several" not in listed else None


def is_beyond_coercion(schema: Mapping[str, Any], value: Any) -> bool:
    """Tell whether no service could convert a value to the type of a schema."""
    kind = kind_of(schema)
    if kind not in _SCALARS:
        return False
    if isinstance(value, dict):
        return bool(value)
    if isinstance(value, list):
        return kind != "string" and len(value) >= _SEVERAL
    return kind != "string" and isinstance(value, str) and _is_a_plain_word(value)


def _is_a_plain_word(text: str) -> bool:
    """Tell whether text is a word that means no number and no truth value."""
    letters = text.isascii() and text.isalpha() and len(text) >= _SHORTEST_WORD
    return letters and text.lower() not in _WORDS_WITH_A_MEANING


def wrong_values(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values to send if the type must be wrong beyond any conversion."""
    return _WRONG.get(kind_of(schema) or "", ())


def may_be_dropped(parameter: Parameter) -> bool:
    """Tell whether a service may ignore a wrong value of a parameter: it is optional, or the contract allows it."""
    return not parameter.required or "dropped" in parameter.schema.get("x-tolerates", ())


def shows_value(shown: Any, sent: Any) -> bool:
    """Tell whether a shown resource contains the wrong value that was sent, unchanged or as text."""
    if shown is None:
        return False
    if shown in (sent, json.dumps(sent)):
        return True
    inner = shown.values() if isinstance(shown, dict) else shown if isinstance(shown, list) else ()
    return any(shows_value(entry, sent) for entry in inner)
