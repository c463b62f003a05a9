"""The parameters of a request, from query, form and JSON body, read as the type that is asked for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import orjson

from conformance.reference.choices import Coercion
from conformance.reference.errors import InvalidError, UnsupportedMediaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from conformance.reference.choices import Choices

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_LARGEST = 2**63 - 1
_BRACKETS = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
_WORDS = {
    **dict.fromkeys(("true", "t", "1", "on", "yes"), True),
    **dict.fromkeys(("false", "f", "0", "off", "no"), False),
}
_JSON = ("application/json", "text/json", "")
_FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class Text(str):
    """A value that came as text, from a query or form, and so carries no type of its own."""

    __slots__ = ()


class Parameters:
    """Named values, read by type. Every reader raises InvalidError for a value that is not of its type.

    The plain readers require the parameter; the `optional_` ones answer None when it is absent or null.
    """

    __slots__ = ("_choices", "_lenient", "_prefix", "_values")

    def __init__(self, values: Mapping[str, object], choices: Choices, prefix: str = "") -> None:
        self._values = values
        self._choices = choices
        self._lenient = choices.coercion is Coercion.LENIENT
        self._prefix = prefix

    def given(self, name: str) -> bool:
        """Say whether the parameter was sent with a value other than null."""
        return self._values.get(name) is not None

    def any_given(self, names: Iterable[str]) -> bool:
        """Say whether at least one of the parameters was sent with a value."""
        return any(self.given(name) for name in names)

    def integer(self, name: str) -> int:
        """Read a required integer of at most 64 bits."""
        return self._integer(name, self._required(name))

    def optional_integer(self, name: str) -> int | None:
        """Read an integer that may be missing."""
        value = self._values.get(name)
        return None if value is None else self._integer(name, value)

    def boolean(self, name: str) -> bool:
        """Read a required boolean."""
        return self._boolean(name, self._required(name))

    def optional_boolean(self, name: str) -> bool | None:
        """Read a boolean that may be missing."""
        value = self._values.get(name)
        return None if value is None else self._boolean(name, value)

    def string(self, name: str) -> str:
        """Read a required string; the empty one is a string too."""
        return self._string(name, self._required(name))

    def optional_string(self, name: str) -> str | None:
        """Read a string that may be missing."""
        value = self._values.get(name)
        return None if value is None else self._string(name, value)

    def optional_choice(self, name: str, allowed: Collection[str]) -> str | None:
        """Read a string that may be missing, and otherwise must be one of the allowed ones."""
        value = self.optional_string(name)
        if value is not None and value not in allowed:
            raise InvalidError(f"{self._prefix}{name} does not have a valid value", parameter=name)
        return value

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """Read an array of integers that may be missing. Text may list them with commas."""
        value = self._values.get(name)
        return None if value is None else tuple(self._integer(name, item) for item in self._items(name, value))

    def optional_strings(self, name: str) -> tuple[str, ...] | None:
        """Read an array of strings that may be missing. Text may list them with commas."""
        value = self._values.get(name)
        return None if value is None else tuple(self._string(name, item) for item in self._items(name, value))

    def nested(self, name: str) -> Parameters:
        """Read a required object as parameters of its own."""
        value = self._required(name)
        if not isinstance(value, dict):
            raise self._invalid(name)
        return Parameters(value, self._choices, f"{self._prefix}{name}.")

    def _required(self, name: str) -> object:
        value = self._values.get(name)
        if value is None:
            raise InvalidError(f"{self._prefix}{name} is missing", parameter=name)
        return value

    def _invalid(self, name: str) -> InvalidError:
        return InvalidError(f"{self._prefix}{name} is invalid", parameter=name)

    def _is_text(self, value: object) -> bool:
        return isinstance(value, Text) or (self._lenient and isinstance(value, str))

    def _integer(self, name: str, value: object) -> int:
        number = None
        if isinstance(value, int) and not isinstance(value, bool):
            number = value
        elif self._is_text(value) and _INTEGER.fullmatch(str(value)):
            number = int(str(value))
        if number is None or abs(number) > _LARGEST:
            raise self._invalid(name)
        return number

    def _boolean(self, name: str, value: object) -> bool:
        if isinstance(value, bool):
            return value
        if self._is_text(value):
            meant = _WORDS.get(str(value).lower())
        elif self._lenient and isinstance(value, int):
            meant = _WORDS.get(str(value))
        else:
            meant = None
        if meant is None:
            raise self._invalid(name)
        return meant

    def _string(self, name: str, value: object) -> str:
        if self._lenient and isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str) or "\0" in value:
            raise self._invalid(name)
        return str(value)

    def _items(self, name: str, value: object) -> list[object]:
        if isinstance(value, list):
            return value
        if self._is_text(value):
            return [Text(item.strip()) for item in str(value).split(",") if item.strip()]
        raise self._invalid(name)


def read_query(query: bytes) -> dict[str, object]:
    """Read a query string or a URL-encoded form. Raise InvalidError when it is not UTF-8."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise InvalidError("The parameters are not valid UTF-8.") from error
    return collect(pairs)


def collect(pairs: Iterable[tuple[str, str]]) -> dict[str, object]:
    """Turn name and text pairs into parameters: `a[]=1&a[]=2` is an array, `a[b]=1` an object."""
    values: dict[str, object] = {}
    for name, text in pairs:
        match = _BRACKETS.fullmatch(name)
        if match is None:
            values[name] = Text(text)
            continue
        outer, inner = match.groups()
        known = values.setdefault(outer, {} if inner else [])
        if inner and isinstance(known, dict):
            known[inner] = Text(text)
        elif not inner and isinstance(known, list):
            known.append(Text(text))
        else:
            raise InvalidError(f"{outer} is invalid", parameter=outer)
    return values


def read_body(body: bytes, content_type: str, choices: Choices) -> Mapping[str, object]:
    """Read a JSON or form body that is not empty.

    Raise InvalidError for what cannot be read or is no object, UnsupportedMediaError for other content types.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == _FORM and choices.parameters_in_forms:
        return read_query(body)
    if media_type not in _JSON:
        raise UnsupportedMediaError
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidError("The request body is not valid JSON.") from error
    if not isinstance(value, dict):
        raise InvalidError("The request body is not a JSON object.")
    return value
