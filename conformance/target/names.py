"""The names that a profile may use: actors, fixtures and features, with their descriptions and values."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.contract import OLDEST, Version
from conformance.contract.versions import holds
from conformance.contract.yaml_files import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence


#: How near two names are, of at most 1, when one of them is probably misspelled.
_NEARLY = 0.75


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a fixture."""

    name: str
    type: str | tuple[str, ...]
    """Its JSON types."""
    what: str
    """What it is; for an optional value, also which tests need it."""
    is_required: bool


@dataclass(frozen=True, slots=True)
class Named:
    """An actor, a fixture or a feature: a row of the table."""

    name: str
    what: str
    example: Any = None
    is_core: bool = False
    """Whether most of the suite needs it."""
    core_of: Sequence[str] = ()
    """The areas that mostly need it, if it is not needed in all areas."""
    kind: str = ""
    """For a fixture: its kind, which defines its values."""
    each: str | None = None
    """For the name of a list: the name of each entry."""
    least: int = 1
    """For the name of a list: its least number of entries."""
    apart: Sequence[str] = ()
    """For a fixture: the groups of things that must all be different."""
    roles: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """For a fixture: the lowest and the highest level that each actor may have in it."""
    inside: str = ""
    """For a fixture: the one in which it lies."""
    visibility: Sequence[str] = ()
    """For a fixture: the visibility that it may have, if the target shows it."""
    presumed_in: str = ""
    """For a feature that a target has unless its profile says false: the area of the tests that need it."""
    part_of: str = ""
    """For such a feature: the feature without which a target cannot have it."""
    shows_more_in: Sequence[str] = ()
    """For a fixture that no requirement depends on: the areas in which more is tested when a profile has it."""
    dispensable_from: str = str(OLDEST)
    """For such a feature: the version before which every target has it."""
    fields: tuple[Field, ...] = field(default=())

    @property
    def is_given_up(self) -> bool:
        """Whether every target once had this feature, and may have removed it."""
        return Version.parse(self.dispensable_from) > OLDEST

    def is_dispensable(self, version: Version | None) -> bool:
        """Tell whether a target of a version may declare that it does not have this feature."""
        return holds(version, Version.parse(self.dispensable_from), None)


def _rows() -> Mapping[str, tuple[Named, ...]]:
    text = files("conformance.target").joinpath("names.yaml").read_text(encoding="utf-8")
    table = parse_yaml(text, "names.yaml")
    kinds = {name: tuple(_fields(entries)) for name, entries in table.pop("kinds").items()}
    return {
        sort: tuple(Named(name, **row, fields=kinds.get(row.get("kind", ""), ())) for name, row in entries.items())
        for sort, entries in table.items()
    }


def _fields(entries: Mapping[str, Mapping[str, Any]]) -> Iterable[Field]:
    for name, entry in entries.items():
        kind = entry["type"]
        yield Field(name, tuple(kind) if isinstance(kind, list) else kind, entry["what"], entry.get("required", False))


#: The table itself, `names.yaml`: rows by actors, fixtures and features.
TABLE: Mapping[str, tuple[Named, ...]] = MappingProxyType(dict(_rows()))


def _what(sort: str) -> Mapping[str, str]:
    return MappingProxyType({row.name: row.what for row in TABLE[sort]})


#: The actors a profile may name, with their descriptions.
ACTORS = _what("actors")

#: The fixtures a profile may name, with their descriptions.
FIXTURES = _what("fixtures")

#: The features a profile may declare, with their descriptions.
FEATURES = _what("features")

#: Features that a target has unless its profile says false.
PRESUMED: Mapping[str, Named] = MappingProxyType({row.name: row for row in TABLE["features"] if row.presumed_in})

#: The plural names of fixtures that hold a list.
PLURALS: Mapping[str, str] = MappingProxyType({row.name: row.each for row in TABLE["fixtures"] if row.each})

#: The fixtures by name, with the values that they have.
FIXTURE_ROWS: Mapping[str, Named] = MappingProxyType({row.name: row for row in TABLE["fixtures"]})

#: Fixtures that no requirement depends on, by the areas in which more is tested when a profile has them.
SHOWING_MORE: Mapping[str, Sequence[str]] = MappingProxyType(
    {row.name: row.shows_more_in for row in TABLE["fixtures"] if row.shows_more_in}
)

#: The fixtures for random calls, by the fixture that each of them resembles.
SET_ASIDE: Mapping[str, str] = MappingProxyType(
    {"project": "fuzz_project", "group": "fuzz_group", "merge_request": "fuzz_merge_request"}
)


@cache
def fixtures_schema() -> Mapping[str, Any]:
    """Return the JSON Schema for the `fixtures:` of a profile, with all known names."""
    return {"type": "object", "properties": {row.name: _schema_of(row) for row in TABLE["fixtures"]}}


def misspelled_in(fixtures: Mapping[str, Any]) -> str | None:
    """Say which key of a fixture is probably misspelled; None when none is. Other keys may say more of it.

    A key is misspelled if it is unknown, and nearly one that is known and not given.
    """
    known = {row.name: [field.name for field in row.fields] for row in TABLE["fixtures"]}
    for name, value in fixtures.items():
        for entry in value if isinstance(value, list) else [value]:
            lacking = [key for key in known.get(name, ()) if key not in entry]
            for key in entry.keys() - {*known.get(name, ())}:
                if near := get_close_matches(str(key), lacking, n=1, cutoff=_NEARLY):
                    return f"at fixtures.{name}: '{key}' is unknown. Did you mean '{near[0]}'?"
    return None


def _schema_of(row: Named) -> dict[str, Any]:
    one = {
        "type": "object",
        "description": row.what,
        "required": [entry.name for entry in row.fields if entry.is_required],
        "properties": {entry.name: _schema_of_field(entry) for entry in row.fields},
    }
    several = {"type": "array", "minItems": 1, "items": one}
    return {"if": {"type": "array"}, "then": several, "else": one}


def _schema_of_field(entry: Field) -> dict[str, Any]:
    kinds = [entry.type] if isinstance(entry.type, str) else [*entry.type]
    limits: dict[str, Any] = {"minLength": 1} if "string" in kinds else {}
    limits |= {"items": {"type": "string"}} if kinds == ["array"] else {}
    limits |= {"minimum": 0} if kinds == ["integer"] else {}
    return {"type": kinds if len(kinds) > 1 else kinds[0], "description": entry.what, **limits}


# -- groups that a run makes for itself --------------------------------------------------------------------------------

#: The area of the operations whose effects cannot be undone.
LEAVING = "group-approval-rules"
#: What the name of the rule begins with by which a run checks that a group of its own is as good as the profile's.
CHECKED = "checked-by-"
#: By fixture of the profile, the run's own group that replaces it in that area.
OWN_GROUPS: Mapping[str, str] = MappingProxyType(
    {"group": "rules_group", "subgroup": "inner_rules_group", "fuzz_group": "spare_rules_group"}
)


def in_place_of(fixture: str, area: str, known: Container[str]) -> str:
    """Return the fixture that calls of an area use: the run's own group, if it is among the known names."""
    own = OWN_GROUPS.get(fixture, "") if area == LEAVING else ""
    return own if own in known else fixture
