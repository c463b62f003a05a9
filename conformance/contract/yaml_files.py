"""Reads YAML data files and validates them against the JSON Schemas of the package."""

from __future__ import annotations

import json
import math
import re
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import jsonschema_rs
import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from conformance.contract.folders import SCHEMA_FOLDER
from conformance.errors import ContractError, UsageError, or_usage_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from jsonschema.exceptions import ValidationError

T = TypeVar("T")

#: A hundred nested collections; the C parser does not return from very deep nesting. Searched for one by one, because
#: one pattern for all of them is tried at each character, which took a tenth of the time to load the contract.
_TOO_DEEP_INSIDE = re.compile(r"(?:[\[{][^\[\]{}\n]{0,40}){100}")
_TOO_DEEP_IN_A_LINE = "- " * 100
_TOO_DEEP_BELOW = "\n" + " " * 200
#: More values than any of our files has.
_MOST_VALUES = 1_000_000
#: Fields that must not be quoted: the value may be a secret, or stand in the place of one.
_HIDDEN = re.compile(r"token|password|secret|webhook|key|headers|actors", re.IGNORECASE)
#: Names of YAML values in messages.
_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
#: Names of JSON Schema types in messages.
_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping (lines such as `name: value`)",
    "null": "nothing",
}
#: Names of values without contents, and the words of JSON Schema that refuse these.
_EMPTY: Mapping[object, str] = {dict: "an empty mapping", list: "an empty list", str: "an empty text"}
_OF_EMPTINESS = ("minItems", "minProperties", "minLength")
#: The tag of a text in YAML.
_TEXT = "tag:yaml.org,2002:str"
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SAFE_LOADER):  # type: ignore[misc]
    """A safe loader that also rejects duplicate keys in a mapping; YAML would silently drop the first value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the library's own
        """Return a mapping; raise ConstructorError at a duplicate key."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    problem = f"'{key.value}' occurs here a second time"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add((key.tag, key.value))
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return found

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - the library's own
        """Return the value of a node; most are texts, which need nothing that the library does for other values."""
        if node.tag == _TEXT and isinstance(node, yaml.ScalarNode):
            return node.value
        return super().construct_object(node, deep=deep)

    def construct_day(self, node: yaml.ScalarNode) -> Any:
        """Return a date or a time; one that does not exist in the calendar stays text, for others to refuse."""
        try:
            return self.construct_yaml_timestamp(node)
        except ValueError:
            return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_day)


def line_of(text: str, *path: str | int) -> int | None:
    """Return the line number of a value, given the keys and indexes that lead to it."""
    node = yaml.compose(text, Loader=_SAFE_LOADER)
    for step in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
        else:
            return None
    return None if node is None else int(node.start_mark.line) + 1


def read_text(file: Path, what: str = "", advice: str = "") -> str:
    """Return the text of a file; raise UsageError when it cannot be read.

    The message says `what` the file is, such as "the baseline", and gives the `advice` if it is not there.
    """
    name = f"{what} {file}".strip()
    try:
        with or_usage_error(f"Cannot read {name}", advice):
            return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"Cannot read {name}: it is not UTF-8 text, {error.reason} at byte {error.start}.") from error


def read_yaml(file: Path, what: str = "", advice: str = "") -> Any:
    """Read one YAML file; raise UsageError as `read_text` does, or that names the place that is not valid."""
    return parse_yaml(read_text(file, what, advice), str(file))


def parse_yaml(text: str, name: str) -> Any:
    """Parse YAML text; `name` is its source in messages."""
    if _TOO_DEEP_IN_A_LINE in text or _TOO_DEEP_BELOW in f"\n{text}" or _TOO_DEEP_INSIDE.search(text):
        raise UsageError(f"{name} is nested too deeply.")
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is the safe loader, in C where that exists
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        if mark and any("\t" in line[: mark.column + 1] for line in text.splitlines()[mark.line : mark.line + 1]):
            problem = "there is a tab, and YAML is indented by blanks"
        raise UsageError(f"{name}{place} is not valid YAML: {problem}.") from error
    except (ValueError, KeyError, AttributeError) as error:  # for a wrong tag
        raise UsageError(f"{name} has a value that cannot be read: {error}.") from error
    if "&" in text and "*" in text:
        _require_an_end(data, name)
    return data


def _require_an_end(data: Any, name: str) -> None:
    """Raise UsageError for data that contains itself, or that is too large when its aliases are written out."""
    sizes: dict[int, float] = {}

    def size(value: Any) -> float:
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = math.inf  # until its size is known, it may contain itself
            sizes[id(value)] = 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
        return sizes[id(value)]

    if size(data) > _MOST_VALUES:
        raise UsageError(f"{name} refers to itself, or is far too large once its aliases (*) are written out.")


@cache
def schema_validator(schema: str) -> Draft202012Validator:
    """Return the validator of one of the JSON Schemas in `conformance/contract/schemas/`."""
    return Draft202012Validator(_schema(schema))


@cache
def _quick_validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator(_schema(schema))


def schema_text(schema: str) -> str:
    """Return one of these schemas as it stands in its file."""
    return (SCHEMA_FOLDER / schema).read_text(encoding="utf-8")


def _schema(schema: str) -> Any:
    return json.loads(schema_text(schema))


def _is_faultless(data: Any, schema: str) -> bool:
    """Tell quickly that data are valid, as most are; finding the exact error takes much longer."""
    try:
        return bool(_quick_validator(schema).is_valid(data))
    except ValueError:
        return False  # YAML has values that JSON does not have, such as dates


def first_problem(data: Any, schema: str) -> str | None:
    """Describe the most serious error of data under a schema, with its place; None when there is none."""
    if _is_faultless(data, schema):
        return None
    return _told(best_match(schema_validator(schema).iter_errors(data)), "")


def problem_under(schema: Mapping[str, Any], data: Any, place: str) -> str | None:
    """Describe the most serious error of data at a place, under a schema that is built and not read from a file."""
    return _told(best_match(Draft202012Validator(schema).iter_errors(data)), place)


def _told(error: ValidationError | None, place: str) -> str | None:
    if error is None:
        return None
    parts = [place, *(str(part) for part in error.absolute_path)]
    return f"at {'.'.join(part for part in parts if part) or 'the file as a whole'}: {_in_words(error)}"


def _in_words(error: ValidationError) -> str:
    """Describe an error in YAML terms, not in Python terms; quote nothing that may be a secret."""
    given: Any = error.instance
    is_hidden = any(_HIDDEN.search(str(part)) for part in error.absolute_path)
    told = error.schema.get("description") if isinstance(error.schema, dict) else None
    if error.validator in ("anyOf", "oneOf") or (told and error.validator in ("pattern", "not")):
        return f"the value does not fit: {told}" if told else "the value here has none of the allowed forms"
    if error.validator == "type" or (error.validator in _OF_EMPTINESS and not given):
        return _without_contents(error)
    if error.validator == "additionalProperties" or not is_hidden:
        found = _with_contents(error)
        if found:
            return found
    return error.message.replace(repr(given), "what stands here") if given and is_hidden else error.message


def _without_contents(error: ValidationError) -> str:
    """Describe the error of a value without quoting it: it has another type, or is empty."""
    given: Any = error.instance
    if error.validator != "type":
        return f"{_EMPTY[type(given)]} stands here. Write what belongs there, or leave the whole entry out"
    wanted: Any = error.validator_value
    names = [wanted] if isinstance(wanted, str) else wanted
    needed = " or ".join(_TYPES[name] for name in names)
    if given is None:
        return f"nothing stands here, and {needed} is needed"
    quotes = ": write it in quotes" if "string" in names and isinstance(given, bool | int | float) else ""
    return f"{_KINDS.get(type(given), 'something else')} stands here, and {needed} is needed{quotes}"


def _with_contents(error: ValidationError) -> str | None:
    """Describe the error of a value, or a name, that is no secret; None for one that the library describes well."""
    given: Any = error.instance
    wanted: Any = error.validator_value
    properties = error.schema.get("properties", {}) if isinstance(error.schema, dict) else {}
    if error.validator == "uniqueItems":
        return f"'{next(one for one in given if given.count(one) > 1)}' stands here twice"
    if error.validator == "enum":
        return f"'{given}' is unknown. {_hint(str(given), wanted)}"
    if error.validator == "additionalProperties" and isinstance(given, dict) and properties:
        unknown = next(str(name) for name in given if name not in properties)
        return f"'{unknown}' is unknown. {_hint(unknown, properties)}"
    return None


def _hint(unknown: str, known: Iterable[Any]) -> str:
    names = [str(name) for name in known]
    near = get_close_matches(unknown, names, n=1)
    return f"Did you mean '{near[0]}'?" if near else f"Known are: {', '.join(names)}"


def row_of(kind: type[T], row: Mapping[str, Any], /, **otherwise: Any) -> T:
    """Return a row of a table of the contract, which its schema allows, as an object of a frozen class.

    Its lists become tuples, its mappings can no longer be changed, and its texts stand on one line. `otherwise` are the
    fields that the file writes in another way.
    """
    return kind(**{name: _frozen(value) for name, value in row.items() if name not in otherwise}, **otherwise)


def _frozen(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return MappingProxyType(value)
    return tuple(value) if isinstance(value, list) else value


def read_checked(file: Path, schema: str) -> Any:
    """Read a file of the contract and validate it against its schema; raise ContractError when it is invalid."""
    data = read_yaml(file)
    problem = first_problem(data, schema)
    if problem:
        raise ContractError(f"{file} breaks {schema} {problem}")
    return data
