"""
Fills a profile from what its actors' tokens may read, without an administrator.

Nothing is made or changed, but for integrations where the operator lets them be tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from conformance.target.names import PLURALS
from conformance.target.provisioning import inquiry
from conformance.target.provisioning.calls import RefusedError, segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.target.provisioning.calls import Calls, Entry

Data = dict[str, Any]

_OWNER, _MAINTAINER = 50, 40
#: The level that each actor needs in `project` and `group`.
_LEVELS = {"owner": 50, "maintainer": 40, "developer": 30, "approver": 30, "second_approver": 30, "author": 30} | {
    "reporter": 20,
    "guest": 10,
    "outsider": 0,
}
_LISTED = 5
#: How many places are asked for what any of them may have.
_MOST_ASKED = 20
_MERGE_REQUESTS = ("merge_request", "second_merge_request", "reset_merge_request")
_PROTECTED = ("protected_branch", "second_protected_branch")
_PATHS = {"group": "full_path", "project": "path_with_namespace"}


@dataclass(frozen=True, slots=True)
class Found:
    """Something that was found out, and where it goes in the profile."""

    place: str
    value: Any


@dataclass
class Discovery:
    """
    Looks at a target with the tokens of a profile.

    What the profile says already stays as it is. Places are chosen among those only of which `owner` or `maintainer` is
    a member: give these users nothing that anybody else works on.
    """

    calls: Calls
    tokens: Mapping[str, str]
    """By actor."""
    data: Data
    """The profile as its file holds it, without its secrets; it is filled."""
    base_url: str = ""
    may_write: bool = False
    """Whether integrations may be tried on the project that is set aside."""
    found: list[Found] = field(default_factory=list)
    perhaps: Data = field(default_factory=dict)
    """Fixtures that look unchanged. Whether they are cannot be seen, so they are not filled in."""

    def fill(self) -> Sequence[Found]:
        """Fill what can be found out, and return it. Raise RefusedError when no actor is known to the target."""
        self._actors()
        if not self._ids:
            raise RefusedError("GET /user is served to none of the actors: check base_url and the tokens")
        self._main_places()
        self._labels()
        self._other_places()
        self._complete_entries()
        self._merge_requests()
        self._protected_branches()
        self._special_merge_requests()
        self._untouched()
        self._ask()
        return self.found

    # -- who -----------------------------------------------------------------------------------------------------------

    @cached_property
    def _ids(self) -> dict[str, int]:
        users = {name: self.calls.get(token, "/user").entry for name, token in self.tokens.items()}
        return {name: int(user["id"]) for name, user in users.items() if "id" in user}

    def _actors(self) -> None:
        for name, token in self.tokens.items():
            user = self.calls.get(token, "/user").entry
            for key in ("id", "username"):
                if key in user and key not in self.data["actors"][name]:
                    self._keep(f"actors.{name}.{key}", self.data["actors"][name], key, user[key])

    def _keep(self, place: str, where: Data, key: str, value: Any) -> None:
        where[key] = value
        self.found.append(Found(place, value))

    def _name(self, name: str, entry: Any) -> None:
        if entry and name not in self._fixtures:
            self._keep(f"fixtures.{name}", self._fixtures, name, entry)

    @property
    def _fixtures(self) -> Data:
        fixtures: Data = self.data.setdefault("fixtures", {})
        return fixtures

    # -- where ---------------------------------------------------------------------------------------------------------

    def _as(self, *names: str) -> str:
        """Return the token of the first actor of a list that there is."""
        return next((self.tokens[name] for name in names if name in self._ids), next(iter(self.tokens.values())))

    def _listed(self, token: str, path: str, **query: Any) -> list[Entry]:
        try:
            return list(self.calls.walk(token, path, **query))
        except RefusedError:
            return []

    @cached_property
    def _levels(self) -> Callable[[str, Entry], dict[int, int]]:
        known: dict[tuple[str, int], dict[int, int]] = {}

        def levels(kind: str, entry: Entry) -> dict[int, int]:
            key = kind, int(entry["id"])
            if key not in known:
                path = f"/{kind}s/{entry['id']}/members/all"
                members = self._listed(self._as("owner", "maintainer"), path)
                known[key] = {member["id"]: member.get("access_level", 0) for member in members if "id" in member}
            return known[key]

        return levels

    def _has(self, kind: str, entry: Entry, name: str, least: int) -> bool:
        return self._levels(kind, entry).get(self._ids.get(name, -1), 0) >= least

    @cached_property
    def _groups(self) -> list[Entry]:
        listed = self._listed(self._as("owner"), "/groups", min_access_level=_OWNER)
        return [group for group in listed if self._has("group", group, "owner", _OWNER)]

    @cached_property
    def _projects(self) -> list[Entry]:
        listed = self._listed(self._as("maintainer"), "/projects", membership=True, min_access_level=_MAINTAINER)
        return [project for project in listed if self._has("project", project, "maintainer", _MAINTAINER)]

    def _main_places(self) -> None:
        """Choose the group and the project in which most actors have the level that they need."""

        def fit(project: Entry) -> int:
            levels = self._levels("project", project)
            fitting = sum(levels.get(self._ids[name], 0) == _LEVELS[name] for name in _LEVELS if name in self._ids)
            fitting += self._ids.get("project_bot") in levels
            return fitting + (project.get("visibility") == "private") + bool(project.get("default_branch"))

        def work(project: Entry) -> tuple[int, int]:
            return len(self._opened(project["id"])), len(self._protected(project["id"]))

        tops = {group["full_path"] for group in self._groups if "/" not in str(group["full_path"])}
        inside = [p for p in self._projects if str(p["path_with_namespace"]).rpartition("/")[0] in tops]
        if "project" not in self._fixtures and inside:
            # Of several alike the one with the most merge requests under way, which are what is hardest to come by.
            best = max(fit(project) for project in inside)
            self._name("project", _place("project", max((p for p in inside if fit(p) == best), key=work)))
        self._complete("project")
        path = str(self._fixtures.get("project", {}).get("path", "")).partition("/")[0]
        around = (group for group in self._groups if group["full_path"] == path)
        self._name("group", next((_place("group", group) for group in around), None))

    def _other_places(self) -> None:
        own = str(self._fixtures.get("group", {}).get("path", ""))
        used = {entry.get("id") for name, entry in self._entries("project")}
        projects = [p for p in self._projects if p["id"] not in used]
        inside = [p for p in projects if str(p["path_with_namespace"]).startswith(f"{own}/")]
        outside = [p for p in projects if p not in inside and p.get("default_branch")]
        below = [g for g in self._groups if str(g["full_path"]).startswith(f"{own}/")]
        tops = [g for g in self._groups if "/" not in str(g["full_path"]) and g["full_path"] != own]
        private = [g for g in tops if g.get("visibility") == "private"]
        self._name("subgroup", next((_place("group", g) for g in below), None))
        deep = [p for p in inside if str(p["path_with_namespace"]).count("/") > 1]
        self._name("subgroup_project", next((_place("project", p) for p in deep), None))
        public = [p for p in outside if p.get("visibility") == "public"]
        self._name("public_project", next((_place("project", p) for p in public), None))
        private_ones = [p for p in outside if p.get("visibility") == "private"]
        pairs = self._pairs(private_ones, private)
        for kind, what in (("sibling", next(pairs, None)), ("fuzz", next(pairs, None))):
            if what is not None:
                self._name(f"{kind}_project", _place("project", what[0]))
                self._name(f"{kind}_group", _place("group", what[1]))
        taken = {entry.get("id") for _, entry in self._entries("project")}
        self._list("project", [p for p in private_ones if p["id"] not in taken])
        taken = {entry.get("id") for _, entry in self._entries("group")}
        mine = [g for g in private if g["id"] not in taken and self._has("group", g, "maintainer", 10)]
        self._list("group", mine)
        open_ones = [g for g in tops if g.get("visibility") == "public" and g.get("description")]
        approvers = [g for g in open_ones if self._has("group", g, "approver", 10)]
        for name, group in zip(("approver_group", "second_approver_group"), approvers, strict=False):
            self._name(name, _place("group", group))
        hidden = [g for g in private if not self._has("group", g, "maintainer", 10)]
        self._name("hidden_group", next((_place("group", g) for g in hidden), None))

    def _pairs(self, projects: Iterable[Entry], groups: Iterable[Entry]) -> Iterator[tuple[Entry, Entry]]:
        """Yield projects of different top-level groups, each with its group."""
        by_path = {str(group["full_path"]): group for group in groups}
        for project in projects:
            group = by_path.pop(str(project["path_with_namespace"]).rpartition("/")[0], None)
            if group is not None:
                yield project, group

    def _list(self, kind: str, entries: Sequence[Entry]) -> None:
        if len(entries) >= 3:  # noqa: PLR2004 - what PLURALS asks for
            self._name(f"allowlist_{kind}s", [_place(kind, entry) for entry in entries[:_LISTED]])

    def _entries(self, kind: str) -> Iterator[tuple[str, Data]]:
        """Yield what the profile names of projects or groups."""
        for name, value in self._fixtures.items():
            if PLURALS.get(name, name).rpartition("_")[2] == kind:
                for entry in value if isinstance(value, list) else [value]:
                    yield name, entry

    # -- what lies there -----------------------------------------------------------------------------------------------

    def _complete_entries(self) -> None:
        for name in list(self._fixtures):
            self._complete(name)

    def _complete(self, name: str) -> None:
        """Add the id or path that an entry of the profile lacks."""
        kind = PLURALS.get(name, name).rpartition("_")[2]
        if kind not in _PATHS or name not in self._fixtures:
            return
        value = self._fixtures[name]
        for entry in value if isinstance(value, list) else [value]:
            known = entry.get("id") or entry.get("path")
            if known is None or {"id", "path"} <= entry.keys():
                continue
            shown = self.calls.find(self._as("owner", "maintainer"), f"/{kind}s/{segment(known)}") or {}
            for key, there in (("id", "id"), ("path", _PATHS[kind]), ("name", "name")):
                if key not in entry and there in shown:
                    self._keep(f"fixtures.{name}.{key}", entry, key, shown[there])

    def _opened(self, project: int) -> list[Entry]:
        path = f"/projects/{project}/merge_requests"
        return [entry for entry in self._listed(self._as("maintainer"), path, state="opened") if _is_open(entry)]

    def _protected(self, project: int) -> list[Entry]:
        return self._listed(self._as("maintainer"), f"/projects/{project}/protected_branches")

    def _merge_requests(self) -> None:
        author = self._ids.get("author")
        for place, names in (("project", _MERGE_REQUESTS), ("fuzz_project", ("fuzz_merge_request",))):
            project = self._fixtures.get(place)
            if not isinstance(project, dict) or "id" not in project:
                continue
            opened = [entry for entry in self._opened(project["id"]) if entry.get("description") and entry.get("sha")]
            opened = [entry for entry in opened if author in {None, (entry.get("author") or {}).get("id")}]
            given = {self._fixtures[name].get("iid") for name in names if name in self._fixtures}
            free = [entry for entry in opened if entry["iid"] not in given]
            for name, entry in zip([name for name in names if name not in self._fixtures], free, strict=False):
                self._name(name, {key: entry[key] for key in ("iid", "id", "sha", "title", "description")})
            by_iid = {entry["iid"]: entry for entry in opened}
            for name in names:
                known = self._fixtures.get(name, {})
                for key in ("id", "sha", "title", "description"):
                    if key not in known and known.get("iid") in by_iid:
                        self._keep(f"fixtures.{name}.{key}", known, key, by_iid[known["iid"]][key])

    def _protected_branches(self) -> None:
        project = self._fixtures.get("project", {})
        if "id" in project:
            for name, branch in zip(_PROTECTED, self._protected(project["id"]), strict=False):
                self._name(name, {"id": branch["id"], "name": branch["name"]})

    def _special_merge_requests(self) -> None:
        """Name merge requests that the rules of code owners, a password, or no rule of their own sets apart."""
        token, project = self._as("maintainer"), self._fixtures.get("project", {}).get("id")
        taken = {entry.get("iid") for name, entry in self._fixtures.items() if name in _MERGE_REQUESTS}
        for entry in self._opened(project) if project else ():
            if entry["iid"] in taken:
                continue
            state = self.calls.get(token, f"/projects/{project}/merge_requests/{entry['iid']}/approval_state").entry
            named = {key: entry[key] for key in ("iid", "id", "sha") if key in entry}
            if "code_owner" in {rule.get("rule_type") for rule in state.get("rules") or () if isinstance(rule, dict)}:
                self._name("code_owner_merge_request", named)
            elif state.get("approval_rules_overwritten") is False:
                self.perhaps.setdefault("untouched_merge_request", named)
        for other in self._projects if "password_merge_request" not in self._fixtures else ():
            opened = self._opened(other["id"]) if other["id"] != project else []
            if opened and inquiry.asks_for_password(self.calls, token, other["id"]):
                self._name("password_merge_request", {"iid": opened[0]["iid"], "project_id": other["id"]})
                self._declare("password_approval", value=True)
                break

    def _rules(self, kind: str, entry: Entry, who: str) -> list[Any] | None:
        """Return the approval rules of a project or group; None where they are not shown."""
        answer = self.calls.get(self._as(who), f"/{kind}s/{entry['id']}/approval_rules")
        return answer.body if answer.is_served and isinstance(answer.body, list) else None

    def _ask(self) -> None:
        """Ask for what shows itself by other calls, and try integrations where that is allowed."""
        owner, maintainer, fixtures = self._as("owner"), self._as("maintainer"), self._fixtures
        for name, value in inquiry.of_service(self.calls, owner, self.base_url):
            if name.startswith("fixtures."):
                self._name(name.partition(".")[2], value)
            elif name not in self.data:
                self._keep(name, self.data, name, value)
        for name, value in inquiry.completions(self.calls, owner, self._projects).items():
            self._name(name, value)
        has_rules = "group" in fixtures and self._rules("group", fixtures["group"], "owner") is not None
        self._declare("group_approval_rules", value=has_rules)
        self._declare("hidden_groups", value="hidden_group" in fixtures)
        self._declare("code_completion", value="enabled_project" in fixtures)
        if self.may_write and "integrations" not in fixtures and "fuzz_project" in fixtures:
            place = fixtures["fuzz_project"]
            number = (place[0] if isinstance(place, list) else place)["id"]
            found, features = inquiry.integrations(self.calls, maintainer, number)
            for name, value in found.items():
                self._name(name, value)
            for name, there in features.items():
                self._declare(name, value=there)

    def _declare(self, feature: str, *, value: bool) -> None:
        features = self.data.setdefault("features", {})
        if feature not in features and (value or feature.endswith(("_integration", "_events"))):
            self._keep(f"features.{feature}", features, feature, value)

    def _untouched(self) -> None:
        """Find a project and a group that nothing was done with which lists show, and a group whose rules do."""
        for kind, who, entries in (("project", "maintainer", self._projects), ("group", "owner", self._groups)):
            taken = {entry.get("id") for _, entry in self._entries(kind)}
            # What has rules that list branches is only read, so that it may be something else as well.
            for entry in [entry for entry in entries if kind == "group" or entry["id"] not in taken][:_MOST_ASKED]:
                rules = self._rules(kind, entry, who)
                if kind == "group" and any(_lists_branches(rule) for rule in rules or ()):
                    self._name("branch_rule_group", _place(kind, entry))
                elif entry["id"] not in taken and rules is not None and all(_is_default(rule) for rule in rules):
                    self.perhaps.setdefault(f"fresh_{kind}", _place(kind, entry))
        self.perhaps = {name: value for name, value in self.perhaps.items() if name not in self._fixtures}

    def _labels(self) -> None:
        """Find a group that has labels, whose titles show in its export."""
        taken = {entry.get("id") for _, entry in self._entries("group")}
        for group in (group for group in self._groups if "/" not in str(group["full_path"])):
            if "export_group" in self._fixtures or group["id"] in taken:
                continue
            for relation, key in (("labels", "name"), ("milestones", "title")):
                titles = [entry[key] for entry in self._listed(self._as("owner"), f"/groups/{group['id']}/{relation}")]
                if titles:
                    self._name("export_group", {**_place("group", group), "relation": relation, "objects": titles})
                    break


def _is_default(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("rule_type") == "any_approver"


def _lists_branches(rule: Any) -> bool:
    return isinstance(rule, dict) and bool(rule.get("protected_branches"))


def _is_open(entry: Entry) -> bool:
    return entry.get("state") == "opened" and "iid" in entry


def _place(kind: str, entry: Entry) -> Data:
    return {"id": entry["id"], "path": entry[_PATHS[kind]], "name": entry["name"]}
