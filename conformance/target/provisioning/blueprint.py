"""Describes as data what a world consists of, and the names of everything in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Part of the name of every user, token, group and project that is created, so that nothing else is ever removed.
MARK = "made by conformance provision"
OWNER_LEVEL = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A group or a project. `within` is the group that it lies in; a group without one is a top-level group."""

    name: str
    within: str = ""
    or_on_top: bool = False
    """For a group in another one: whether it becomes a top-level group when the target does not nest groups."""
    namesake: str = ""
    """Another place, whose name and end of path this one shares."""
    numbered: bool = False
    """Whether its path begins with digits."""
    capital: bool = False
    """Whether its part of the path begins with a capital letter."""
    by: str = "owner"
    visibility: str = "private"
    members: Mapping[str, int] = field(default_factory=dict)
    seen_by: Mapping[str, int] = field(default_factory=dict)
    """Who become members as well if the target only allows it to be private."""
    empty: bool = False
    branch: str = ""
    """For a project: its default branch, if that is not the one that the target chooses."""
    described: bool = True
    personal: bool = False
    """For a project: whether it lies in its creator's namespace instead of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotToken:
    """An access token with a bot user; `kind` is project or group, `place` its name."""

    name: str
    kind: str
    place: str
    by: str = "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """A protected branch of a project; without `branch` the default one."""

    project: str
    push: int
    merge: int
    unprotect: int
    fixture: str | None = None
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Blueprint:
    """Everything that a world is made of; see blueprint.yaml."""

    users: Sequence[str]
    username_begins_with: Mapping[str, str]
    groups: Mapping[str, Place]
    projects: Mapping[str, Place]
    merge_requests: Mapping[str, str]
    opened_by: Mapping[str, str]
    pushed_to_later: Sequence[str]
    renamed_later: Sequence[str]
    same_source: Mapping[str, str]
    code_owners: Mapping[str, str]
    completions: Mapping[str, str]
    bots: Sequence[BotToken]
    protections: Sequence[Protection]
    labels: Mapping[str, str]
    inner_labels: Mapping[str, str]
    milestones: Sequence[str]

    def groups_by_depth(self) -> list[list[Place]]:
        """Return the groups at the top, then those within these, and so on."""
        levels: list[list[Place]] = []
        within = {""}
        while level := [place for place in self.groups.values() if place.within in within]:
            levels.append(level)
            within = {place.name for place in level}
        return levels

    def users_by_age(self) -> list[list[str]]:
        """Return the users, then those whose user names others begin with, who must be younger."""
        younger = {*self.username_begins_with.values()}
        return [[name for name in self.users if (name in younger) is later] for later in (False, True)]

    def projects_by_age(self) -> list[list[Place]]:
        """Return the projects in rows: within a row each is younger than the one before; rows have no order."""
        alike = {name for one in self.projects.values() if one.namesake for name in (one.name, one.namesake)}
        row = [one for name, one in self.projects.items() if name in alike]
        return [row, *([one] for name, one in self.projects.items() if name not in alike)]

    def opener_of(self, merge_request: str) -> str:
        """Return the user who opens a merge request."""
        return self.opened_by.get(merge_request, "author")

    @classmethod
    @cache
    def load(cls) -> Blueprint:
        """Read the blueprint that ships with the package."""
        data = data_file("blueprint.yaml")
        staff, _ = data.pop("staff"), data.pop("guests")  # those who use the latter refer to it
        protections = tuple(Protection(**entry) for entry in data.pop("protected_branches"))
        data |= {
            "groups": {name: Place(**{"name": name, "members": staff, **row}) for name, row in data["groups"].items()},
            "projects": {name: Place(name=name, **row) for name, row in data["projects"].items()},
            "bots": tuple(_bot(name, row) for name, row in data["bots"].items()),
        }
        plain: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        return cls(**plain, protections=protections)


def _bot(name: str, entry: Mapping[str, str]) -> BotToken:
    kind = "project" if "project" in entry else "group"
    return BotToken(name=name, kind=kind, place=entry[kind], by=entry.get("by", "owner"))


def data_file(name: str) -> Any:
    """Read a YAML file of this package."""
    return parse_yaml(files("conformance.target.provisioning").joinpath(name).read_text(encoding="utf-8"), name)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the things of one world on the target."""

    prefix: str
    world: int

    def path(self, name: str) -> str:
        """Return a user name or the path of a top-level group; on some targets these share one namespace."""
        return f"{self.prefix}-{self.world}-{name.replace('_', '-')}"

    def shown(self, name: str) -> str:
        """Return a display name, with the mark."""
        return f"{self.prefix} {self.world} {name.replace('_', ' ')} ({MARK})"

    def title(self, name: str) -> str:
        """Return a title that occurs nowhere else on the target."""
        return f"{self.prefix}-{self.world} {name}"

    def secret(self, name: str, what: str) -> str:
        """Return the name of the variable for somebody's secret."""
        return re.sub(r"[^A-Z0-9]", "_", f"{self.path(name)}-{what}".upper())


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Tell whether something that a target shows carries the mark."""
    return MARK in str(entry.get("name", ""))
