"""Fills a profile with what its actors' tokens can read, without an administrator.

It creates and changes nothing, except integrations if the operator allows them to be tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.http.exchange import NOT_THERE
from conformance.target.names import FIXTURE_ROWS
from conformance.target.provisioning import inquiry
from conformance.target.provisioning.calls import RefusedError, segment
from conformance.target.provisioning.draft import PATHS, Data, ProfileDraft, as_fixture, kind_of
from conformance.target.provisioning.sight import Sight

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.target.provisioning.calls import Calls, Entry

#: The level that each actor needs in `project` and `group`.
_LEVELS = {"owner": 50, "maintainer": 40, "developer": 30, "approver": 30, "second_approver": 30, "author": 30} | {
    "reporter": 20,
    "guest": 10,
    "outsider": 0,
}
#: Any level at all.
_MEMBER = 10
_LISTED = 5
#: How many places are tried for something that any of them may have.
_MOST_ASKED = 20
_MERGE_REQUESTS = ("merge_request", "second_merge_request", "reset_merge_request")
_SHOWN = ("iid", "id", "sha", "title", "description")
_PROTECTED = ("protected_branch", "second_protected_branch")


@dataclass
class Discovery:
    """Reads a target with the tokens of a profile, and fills the profile.

    It only chooses places of which `owner` or `maintainer` is a member, so these users must not be members of anything
    that other people use.
    """

    calls: Calls
    tokens: Mapping[str, str]
    """By actor."""
    data: Data
    """The profile's data without its secrets; it gets the results."""
    base_url: str = ""
    may_write: bool = False
    """Whether integrations may be tried on the project that is set aside for random calls."""
    perhaps: Data = field(default_factory=dict)
    """Fixtures that look untouched. Reads cannot prove that, so they are not filled in."""

    def __post_init__(self) -> None:
        """Start with nothing read and nothing filled."""
        self._sight = Sight(self.calls, self.tokens)
        self._draft = ProfileDraft(self.data)

    def fill(self) -> Sequence[str]:
        """Fill what can be found out, and return the places. Raise RefusedError when the target accepts no token."""
        self._fill_actors()
        if not self._sight.ids:
            raise RefusedError(self._nobody_known())
        self._choose_project_and_group()
        self._choose_group_to_export()
        self._choose_other_places()
        for name in list(self._draft.fixtures):
            self._complete(name)
        self._choose_merge_requests()
        self._choose_protected_branches()
        self._choose_special_merge_requests()
        self._look_for_untouched()
        self._ask_the_service()
        self._declare_features()
        self._try_integrations()
        return self._draft.filled

    def _nobody_known(self) -> str:
        """Describe the answers to GET /user, with advice."""
        answers = self._sight.answers
        came_to = "; ".join(dict.fromkeys(f"{answer}" for answer in answers.values()))
        if answers and all(answer.status in NOT_THERE for answer in answers.values()):
            return (
                f"GET /user answers {came_to}. If base_url is the address above /api/v4, the service does not have "
                "this call, by which actors are known. Write the profile by hand then, from `conformance target "
                "--example`; docs/first-run.md says how"
            )
        return f"GET /user is served to none of the actors: {came_to}. Check base_url and the tokens"

    # -- actors, projects and groups -----------------------------------------------------------------------------------

    def _fill_actors(self) -> None:
        for name, user in self._sight.users.items():
            for key in ("id", "username"):
                if key in user:
                    self._draft.fill(f"actors.{name}.{key}", self.data["actors"][name], key, user[key])

    def _choose_project_and_group(self) -> None:
        """Choose the group and the project in which most actors have the level that they need."""
        sight, draft = self._sight, self._draft

        def fit(project: Entry) -> int:
            levels = sight.levels("project", project)
            fitting = sum(levels.get(sight.ids[name], 0) == _LEVELS[name] for name in _LEVELS if name in sight.ids)
            fitting += sight.ids.get("project_bot") in levels
            return fitting + (project.get("visibility") == "private") + bool(project.get("default_branch"))

        def work(project: Entry) -> tuple[int, int]:
            return len(sight.opened(project["id"])), len(sight.protected(project["id"]))

        tops = {group["full_path"] for group in sight.groups if _is_top(group)}
        inside = [project for project in sight.projects if _parent(project) in tops]
        if "project" not in draft.fixtures and inside:
            # Among equal projects, take the one with the most open merge requests, because these are hardest to find.
            best = max(fit(project) for project in inside)
            chosen = max((project for project in inside if fit(project) == best), key=work)
            draft.name_first("project", "project", [chosen])
        self._complete("project")
        path = str(draft.fixtures.get("project", {}).get("path", "")).partition("/")[0]
        draft.name_first("group", "group", (group for group in sight.groups if group["full_path"] == path))

    def _choose_group_to_export(self) -> None:
        """Choose a group with labels or milestones, because their titles appear in its export."""
        taken = self._draft.ids("group")
        for group in self._sight.groups:
            if "export_group" in self._draft.fixtures:
                return
            if not _is_top(group) or group["id"] in taken:
                continue
            for relation, key in (("labels", "name"), ("milestones", "title")):
                listed = self._sight.listed(self._sight.owner, f"/groups/{group['id']}/{relation}")
                if any(key in entry for entry in listed):
                    objects = {"relation": relation, "objects": [entry[key] for entry in listed if key in entry]}
                    self._draft.name("export_group", {**as_fixture("group", group), **objects})
                    inside = (one for one in self._sight.groups if _lies_in(group["full_path"], one["full_path"]))
                    self._draft.name_first("inner_export_group", "group", inside)
                    break

    def _choose_other_places(self) -> None:
        sight, draft = self._sight, self._draft
        own = str(draft.fixtures.get("group", {}).get("path", ""))
        used = draft.ids("project")
        projects = [project for project in sight.projects if project["id"] not in used]
        inside = [project for project in projects if _lies_in(own, project["path_with_namespace"])]
        # Prefer deeply nested places, because they inherit more.
        deep = [project for project in inside if _depth(project["path_with_namespace"]) > 1]
        deep.sort(key=lambda project: -_depth(project["path_with_namespace"]))
        draft.name_first("subgroup_project", "project", deep)
        inner = [group for group in sight.groups if _lies_in(own, group["full_path"])]
        around = [group for group in inner if deep and _lies_in(group["full_path"], deep[0]["path_with_namespace"])]
        around.sort(key=lambda group: _depth(group["full_path"]))
        draft.name_first("subgroup", "group", around or inner)
        draft.name_first("nested_subgroup", "group", around[1:])

        personal = [project for project in projects if (project.get("namespace") or {}).get("kind") == "user"]
        own_ones = (one for one in personal if sight.has("project", one, "maintainer", _LEVELS["maintainer"]))
        draft.name_first("personal_project", "project", own_ones)
        elsewhere = [project for project in projects if project not in inside and project not in personal]
        outside = [project for project in elsewhere if project.get("default_branch")]
        tops = [group for group in sight.groups if _is_top(group) and group["full_path"] != own]
        draft.name_first("public_project", "project", _visible("public", outside))
        private_projects, private_groups = _visible("private", outside), _visible("private", tops)
        pairs = _pairs(private_projects, private_groups)
        for name in ("sibling", "fuzz"):
            project, group = next(pairs, (None, None))
            if project is not None and group is not None:
                draft.name_first(f"{name}_project", "project", [project])
                draft.name_first(f"{name}_group", "group", [group])

        taken = draft.ids("project")
        self._choose_list("project", [project for project in private_projects if project["id"] not in taken])
        taken = draft.ids("group")
        shared = [group for group in private_groups if sight.has("group", group, "maintainer", _MEMBER)]
        self._choose_list("group", [group for group in shared if group["id"] not in taken])
        open_ones = [group for group in _visible("public", tops) if group.get("description")]
        approvers = [group for group in open_ones if sight.has("group", group, "approver", _MEMBER)]
        draft.name_first("approver_group", "group", approvers)
        draft.name_first("second_approver_group", "group", approvers[1:])
        draft.name_first("hidden_group", "group", (group for group in private_groups if group not in shared))

    def _choose_list(self, kind: str, entries: Sequence[Entry]) -> None:
        name = f"allowlist_{kind}s"
        if len(entries) >= FIXTURE_ROWS[name].least:
            self._draft.name(name, [as_fixture(kind, entry) for entry in entries[:_LISTED]])

    def _complete(self, name: str) -> None:
        """Add the missing id or path of a project or group of the profile."""
        kind = kind_of(name)
        if kind not in PATHS or name not in self._draft.fixtures:
            return
        value = self._draft.fixtures[name]
        for entry in value if isinstance(value, list) else [value]:
            known = entry.get("id") or entry.get("path")
            if known is None or {"id", "path"} <= entry.keys():
                continue
            shown = self.calls.find(self._sight.keeper, f"/{kind}s/{segment(known)}") or {}
            for key, there in (("id", "id"), ("path", PATHS[kind]), ("name", "name")):
                if there in shown:
                    self._draft.fill(f"fixtures.{name}.{key}", entry, key, shown[there])

    # -- what lies in them ---------------------------------------------------------------------------------------------

    def _choose_merge_requests(self) -> None:
        fixtures, author = self._draft.fixtures, self._sight.ids.get("author")
        for place, names in (("project", _MERGE_REQUESTS), ("fuzz_project", ("fuzz_merge_request",))):
            project = fixtures.get(place)
            if not isinstance(project, dict) or "id" not in project:
                continue
            opened = {
                entry["iid"]: entry
                for entry in self._sight.opened(project["id"])
                if entry.get("description") and entry.get("sha")
                if author in (None, (entry.get("author") or {}).get("id"))
            }
            given = {fixtures[name].get("iid") for name in names if name in fixtures}
            free = [entry for iid, entry in opened.items() if iid not in given]
            for name, entry in zip([name for name in names if name not in fixtures], free, strict=False):
                self._draft.name(name, {key: entry[key] for key in _SHOWN if key in entry})
            for name in names:
                known = fixtures.get(name, {})
                shown = opened.get(known.get("iid"), {})
                for key in (key for key in _SHOWN if key in shown):
                    self._draft.fill(f"fixtures.{name}.{key}", known, key, shown[key])

    def _choose_protected_branches(self) -> None:
        project = self._draft.fixtures.get("project", {})
        if "id" in project:
            for name, branch in zip(_PROTECTED, self._sight.protected(project["id"]), strict=False):
                self._draft.name(name, {"id": branch["id"], "name": branch["name"]})

    def _choose_special_merge_requests(self) -> None:
        """Find merge requests with code owner rules, with a password, or without rules of their own."""
        sight, draft = self._sight, self._draft
        project = draft.fixtures.get("project", {}).get("id")
        taken = {entry.get("iid") for name, entry in draft.fixtures.items() if name in _MERGE_REQUESTS}
        for entry in sight.opened(project) if project else ():
            if entry["iid"] in taken:
                continue
            path = f"/projects/{project}/merge_requests/{entry['iid']}/approval_state"
            state = self.calls.get(sight.maintainer, path).entry
            named = {key: entry[key] for key in ("iid", "id", "sha") if key in entry}
            rules = [rule for rule in state.get("rules") or () if isinstance(rule, dict)]
            if any(rule.get("rule_type") == "code_owner" for rule in rules):
                draft.name("code_owner_merge_request", named)
            elif state.get("approval_rules_overwritten") is False:
                self.perhaps.setdefault("untouched_merge_request", named)
        for other in sight.projects if "password_merge_request" not in draft.fixtures else ():
            opened = sight.opened(other["id"]) if other["id"] != project else []
            if opened and inquiry.asks_for_password(self.calls, sight.maintainer, other["id"]):
                draft.name("password_merge_request", {"iid": opened[0]["iid"], "project_id": other["id"]})
                draft.declare("password_approval", value=True)
                break

    def _look_for_untouched(self) -> None:
        """Find a project and a group that look untouched in lists, and a group whose rules list branches."""
        for kind, entries in (("project", self._sight.projects), ("group", self._sight.groups)):
            taken = self._draft.ids(kind)
            # Groups with rules that list branches are only read, so they may be used as another fixture too.
            for entry in [entry for entry in entries if kind == "group" or entry["id"] not in taken][:_MOST_ASKED]:
                rules = self._sight.rules(kind, entry)
                if kind == "group" and any(_lists_branches(rule) for rule in rules or ()):
                    self._draft.name_first("branch_rule_group", kind, [entry])
                elif entry["id"] not in taken and rules is not None and all(_is_default(rule) for rule in rules):
                    self.perhaps.setdefault(f"fresh_{kind}", as_fixture(kind, entry))
        self.perhaps = {name: value for name, value in self.perhaps.items() if name not in self._draft.fixtures}

    # -- the service ---------------------------------------------------------------------------------------------------

    def _ask_the_service(self) -> None:
        """Ask for what only calls outside this API show."""
        owner = self._sight.owner
        for name, value in inquiry.of_service(self.calls, owner, self.base_url):
            if name.startswith("fixtures."):
                self._draft.name(name.partition(".")[2], value)
            else:
                self._draft.fill(name, self.data, name, value)
        for name, value in inquiry.completions(self.calls, owner, self._sight.projects).items():
            self._draft.name(name, value)

    def _declare_features(self) -> None:
        fixtures = self._draft.fixtures
        has_rules = "group" in fixtures and self._sight.rules("group", fixtures["group"]) is not None
        self._draft.declare("group_approval_rules", value=has_rules)
        self._draft.declare("hidden_groups", value="hidden_group" in fixtures)
        completing = fixtures.get("enabled_project")
        has_any = completing is not None and inquiry.completes(self.calls, self._sight.maintainer, completing["path"])
        self._draft.declare("code_completion", value=has_any)

    def _try_integrations(self) -> None:
        fixtures = self._draft.fixtures
        if self.may_write and "integrations" not in fixtures and "fuzz_project" in fixtures:
            place = fixtures["fuzz_project"]
            number = (place[0] if isinstance(place, list) else place)["id"]
            found, features = inquiry.integrations(self.calls, self._sight.maintainer, number)
            for name, value in found.items():
                self._draft.name(name, value)
            for name, there in features.items():
                self._draft.declare(name, value=there)


def _is_top(group: Entry) -> bool:
    return "/" not in str(group["full_path"])


def _parent(project: Entry) -> str:
    return str(project["path_with_namespace"]).rpartition("/")[0]


def _depth(path: object) -> int:
    """Return how many groups contain something."""
    return str(path).count("/")


def _lies_in(group: str, path: object) -> bool:
    return str(path).startswith(f"{group}/")


def _visible(visibility: str, entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.get("visibility") == visibility]


def _pairs(projects: Iterable[Entry], groups: Iterable[Entry]) -> Iterator[tuple[Entry, Entry]]:
    """Yield projects of different top-level groups, each with its group."""
    by_path = {str(group["full_path"]): group for group in groups}
    for project in projects:
        group = by_path.pop(_parent(project), None)
        if group is not None:
            yield project, group


def _is_default(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("rule_type") == "any_approver"


def _lists_branches(rule: Any) -> bool:
    return isinstance(rule, dict) and bool(rule.get("protected_branches"))
