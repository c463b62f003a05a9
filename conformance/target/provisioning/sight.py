"""What the actors of a profile can see on a target: who they are, and the places that are theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from conformance.target.provisioning.calls import RefusedError, segment
from conformance.target.provisioning.draft import PATHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.target.provisioning.calls import Answer, Calls, Entry

_OWNER, _MAINTAINER = 50, 40


def _named(kind: str, entries: list[Entry]) -> Iterator[Entry]:
    """Yield the projects or groups of which a profile can say all that it must."""
    return (entry for entry in entries if entry.keys() >= {"id", "name", PATHS[kind]})


@dataclass
class Sight:
    """Reads from a target with the tokens of a profile. What is refused counts as absent."""

    calls: Calls
    tokens: Mapping[str, str]
    """By actor."""
    _levels: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)

    @cached_property
    def answers(self) -> dict[str, Answer]:
        """The target's answers to GET /user, by actor."""
        return {name: self.calls.get(token, "/user") for name, token in self.tokens.items()}

    @cached_property
    def users(self) -> dict[str, Entry]:
        """The users behind the actors, according to the target."""
        return {name: answer.entry for name, answer in self.answers.items()}

    @cached_property
    def ids(self) -> dict[str, int]:
        """The user ids of the actors that the target knows."""
        return {name: user["id"] for name, user in self.users.items() if "id" in user}

    @cached_property
    def owner(self) -> str:
        """The token of the actor who sees most groups."""
        return self._first("owner")

    @cached_property
    def maintainer(self) -> str:
        """The token of the actor who sees most projects."""
        return self._first("maintainer")

    @cached_property
    def keeper(self) -> str:
        """The token of the actor who sees the members of groups and projects."""
        return self._first("owner", "maintainer")

    def _first(self, *names: str) -> str:
        """Return the token of the first of these actors whom the target knows, or else any token."""
        return next((self.tokens[name] for name in names if name in self.ids), next(iter(self.tokens.values())))

    def listed(self, token: str, path: str, **query: Any) -> list[Entry]:
        """Return the entries of a list."""
        try:
            return list(self.calls.walk(token, path, **query))
        except RefusedError:
            return []

    @cached_property
    def groups(self) -> list[Entry]:
        """The groups that `owner` owns."""
        listed = self.listed(self.owner, "/groups", min_access_level=_OWNER)
        return [group for group in _named("group", listed) if self.has("group", group, "owner", _OWNER)]

    @cached_property
    def projects(self) -> list[Entry]:
        """The projects that `maintainer` maintains."""
        listed = self.listed(self.maintainer, "/projects", membership=True, min_access_level=_MAINTAINER)
        return [
            project for project in _named("project", listed) if self.has("project", project, "maintainer", _MAINTAINER)
        ]

    def levels(self, kind: str, entry: Entry) -> dict[int, int]:
        """Return the level of each member of a project or group."""
        key = kind, entry["id"]
        if key not in self._levels:
            place = f"/{kind}s/{entry['id']}/members"
            members = self.listed(self.keeper, f"{place}/all")
            found = {} if members else dict(self._levels_around(kind, entry))
            for member in members or self.listed(self.keeper, place):
                if "id" in member:
                    found[member["id"]] = max(found.get(member["id"], 0), member.get("access_level", 0))
            self._levels[key] = found
        return self._levels[key]

    def _levels_around(self, kind: str, entry: Entry) -> Mapping[int, int]:
        """Return the levels in the group around a project or group, for a target that lists no inherited members."""
        path = str(entry.get("path_with_namespace" if kind == "project" else "full_path", "")).rpartition("/")[0]
        around = self.calls.find(self.keeper, f"/groups/{segment(path)}") if path else None
        return self.levels("group", around) if around and "id" in around else {}

    def has(self, kind: str, entry: Entry, actor: str, least: int) -> bool:
        """Tell whether an actor has at least this level in a project or group."""
        return self.levels(kind, entry).get(self.ids.get(actor, -1), 0) >= least

    def opened(self, project: int) -> list[Entry]:
        """Return the open merge requests of a project."""
        listed = self.listed(self.maintainer, f"/projects/{project}/merge_requests", state="opened")
        return [entry for entry in listed if entry.get("state") == "opened" and "iid" in entry]

    def protected(self, project: int) -> list[Entry]:
        """Return the protected branches of a project."""
        listed = self.listed(self.maintainer, f"/projects/{project}/protected_branches")
        return [entry for entry in listed if {"id", "name"} <= entry.keys()]

    def rules(self, kind: str, entry: Entry) -> list[Any] | None:
        """Return the approval rules of a project or group; None where they are not shown."""
        token = self.owner if kind == "group" else self.maintainer
        answer = self.calls.get(token, f"/{kind}s/{entry['id']}/approval_rules")
        return answer.body if answer.is_served and isinstance(answer.body, list) else None
