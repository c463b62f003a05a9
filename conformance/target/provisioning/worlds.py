"""Creates one world on a target: users with tokens, groups, projects, merge requests and the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.target.ownership import UNUSED_ID
from conformance.target.provisioning.accounts import Accounts, Person, UsersRefusedError, require_ours
from conformance.target.provisioning.blueprint import OWNER_LEVEL, Blueprint
from conformance.target.provisioning.calls import (
    MOMENTARY,
    NOT_OFFERED,
    OF_GATEWAYS,
    Calls,
    Entry,
    RefusedError,
    Wanted,
    segment,
)
from conformance.target.provisioning.contents import SIGNS, Contents
from conformance.target.provisioning.draft import PATHS
from conformance.target.provisioning.inquiry import exported_relations, is_on

if TYPE_CHECKING:
    from conformance.target.provisioning.blueprint import BotToken, Names, Place, Protection
    from conformance.target.provisioning.calls import Answer
    from conformance.target.provisioning.files import Secrets

Step = Callable[[], None]

_REAUTHENTICATION = "require_reauthentication_to_approve"
#: How the reason ends why a thing was not made that needs another one.
NOT_MADE = ", which could not be made"
#: For each visibility, what is tried in turn: some targets offer fewer, and inner places may not exceed outer ones.
_VISIBILITIES = {
    "private": ("private",),
    "internal": ("internal", "public", "private"),
    "public": ("public", "internal", "private"),
}


@dataclass
class World:
    """A world, as far as it has been created.

    What a target refuses is left out and recorded in `refused`, together with all that depends on it.
    """

    calls: Calls
    names: Names
    administrator: str
    """The token of an administrator."""
    secrets: Secrets
    people: dict[str, Person] = field(default_factory=dict)
    groups: dict[str, Entry] = field(default_factory=dict)
    projects: dict[str, Entry] = field(default_factory=dict)
    merge_requests: dict[str, Entry] = field(default_factory=dict)
    protected_branches: dict[str, Entry] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    inner_labels: list[str] = field(default_factory=list)
    milestones: list[str] = field(default_factory=list)
    exported: Mapping[str, int | None] | None = None
    """How many objects each relation in an export of the export group has, or that it did not finish; None if none did.
    """
    completions: dict[str, str] = field(default_factory=dict)
    """By fixture, the path of the project whose code completion is in the state that the fixture needs."""
    rules_shown: dict[str, bool] = field(default_factory=dict)
    """By feature, whether its rules appear where they should; features that cannot be checked are missing."""
    asks_for_password: bool = False
    second_token: str = ""
    """Another token of the developer; empty where the target lets a user have one only."""
    refused: dict[str, str] = field(default_factory=dict)
    accounts: Accounts = field(init=False)
    """Creates its people."""
    contents: Contents = field(init=False)
    """Creates the contents of its projects."""
    _new: set[str] = field(default_factory=set)
    """The names of places that are new and empty."""

    def __post_init__(self) -> None:
        """Use the same calls and names for people and contents."""
        self.accounts = Accounts(self.calls, self.names, self.administrator, self.secrets)
        self.contents = Contents(self.calls, self.names, self.administrator, self.people)

    @property
    def lacks_public_projects(self) -> bool:
        """Whether the public project was created, but is not public."""
        return self.projects.get("public_project", {}).get("visibility") in ("private", "internal")

    @cached_property
    def hides_a_group(self) -> bool:
        """Whether the hidden group was created, and somebody but its owner and administrators cannot see it."""
        group = self.groups.get("hidden_group")
        others = [person.token for name, person in self.people.items() if name not in ("admin", "owner")]
        return group is not None and not all(
            self.calls.get(token, f"/groups/{group['id']}").is_served for token in others
        )

    def stages(self) -> Sequence[tuple[str, Sequence[Step]]]:
        """Return the stages in their order; the steps of a stage may run in any order."""
        plan = Blueprint.load()
        opened: dict[bool, list[Step]] = {True: [], False: []}
        for name, project in plan.merge_requests.items():
            opened[project == "project"].append(self._step(name, self._merge_request, name, project))
        return (
            *(("users", [partial(self._user, name) for name in names]) for names in plan.users_by_age()),
            *(
                ("groups", [self._step(one.name, self._group, one) for one in level])
                for level in plan.groups_by_depth()
            ),
            (
                "projects",
                [
                    partial(_one_by_one, [self._step(one.name, self._project, one) for one in places])
                    for places in plan.projects_by_age()
                ],
            ),
            ("merge requests", opened[False]),
            ("code owners", [self._step(name, self._code_owners, name) for name in plan.code_owners]),
            # The merge requests of one project are created one after the other, so that their numbers follow their
            # order.
            ("merge requests", [partial(_one_by_one, opened[True])]),
            ("code owners", [self._step(name, self._require_code_owners, name) for name in plan.code_owners]),
            (
                "branches and bots",
                [
                    self._have_second_token,
                    *(self._step(bot.name, self._bot, bot) for bot in plan.bots),
                    *(self._step(f"{each.project} branch", self._protected_branch, each) for each in plan.protections),
                ],
            ),
            (
                "labels and settings",
                [
                    *(
                        self._step(title, self._label, "export_group", self.labels, title, colour)
                        for title, colour in plan.labels.items()
                    ),
                    *(
                        self._step(title, self._label, "inner_export_group", self.inner_labels, title, colour)
                        for title, colour in plan.inner_labels.items()
                    ),
                    *(self._step(title, self._milestone, title) for title in plan.milestones),
                    self._step("password_merge_request", self._ask_for_password),
                    self._step("branch_rule_group", self._branch_rule),
                    *(self._step(name, self._completion, name, place) for name, place in plan.completions.items()),
                ],
            ),
        )

    def look_at_export(self) -> None:
        """Export the export group, and keep the relations that it has there."""
        if "export_group" in self.groups:
            owner, group = self.people["owner"].token, self.groups["export_group"]["id"]
            self.exported = exported_relations(self.calls, owner, int(group))

    def _step(self, name: str, make: Callable[..., None], *arguments: Any) -> Step:
        """Return a step that records a refusal and continues without the thing."""

        def run() -> None:
            try:
                make(*arguments)
            except RefusedError as error:
                self.refused[name] = str(error)
            except KeyError as error:
                # If the missing thing was refused itself, its reason is recorded already.
                self.refused.setdefault(name, f"needs {error.args[0]}{NOT_MADE}")

        return run

    # -- people --------------------------------------------------------------------------------------------------------

    def _user(self, name: str) -> None:
        try:
            self.people[name] = self.accounts.user(name)
        except RefusedError as error:
            if name != "admin":
                raise UsersRefusedError(str(error)) from error
            self.refused[name] = str(error)

    def _have_second_token(self) -> None:
        with suppress(RefusedError):
            self.second_token = self.accounts.token("developer", self.people["developer"].id, kind="second_token")

    def _bot(self, bot: BotToken) -> None:
        place = (self.projects if bot.kind == "project" else self.groups)[bot.place]
        self.people[bot.name] = self.accounts.bot(bot, int(place["id"]), self.people[bot.by])

    # -- places --------------------------------------------------------------------------------------------------------

    def _full_path(self, place: Place) -> str:
        if place.personal:
            return f"{self.people[place.by].username}/{place.name.replace('_', '-')}"
        if not place.within:
            digits = f"{UNUSED_ID}-" if place.numbered else ""
            return f"{digits}{self.names.path(place.name)}"
        end = (place.namesake or place.name).replace("_", "-")
        return f"{self.groups[place.within]['full_path']}/{end.capitalize() if place.capital else end}"

    def _find_place(self, kind: str, full_path: str) -> Entry | None:
        found = self.calls.find(self.administrator, f"/{kind}s/{segment(full_path)}")
        return None if found is None else require_ours(found, f"The {kind} {full_path}")

    def _place(self, kind: str, place: Place, more: Mapping[str, Any], wished: Mapping[str, Any]) -> Entry:
        full_path = self._full_path(place)
        base = {"name": self.names.shown(place.namesake or place.name), "path": full_path.rpartition("/")[2], **more}
        levels = _VISIBILITIES[place.visibility]
        described = {"description": f"{place.name.replace('_', ' ').capitalize()} of a conformance run: {SIGNS}"}
        ways = [*({**wished, "visibility": level} for level in levels), wished, {}]
        told = [described, {}] if place.described else [{}]
        bodies = [{**base, **way, **more_told} for way in ways for more_told in told]
        wanted = Wanted(
            what=f"{kind} {full_path}",
            path=f"/{kind}s",
            # An administrator would create a personal project in their own namespace.
            tokens=[self.people[place.by].token, *(() if place.personal else (self.administrator,))],
            bodies=bodies,
            look_up=partial(self._find_place, kind, full_path),
            # What is made on top names nothing that was made just before, and that might not be known yet.
            waits_after=MOMENTARY if place.within else MOMENTARY - NOT_OFFERED,
            has_name=True,
            shows=("id", PATHS[kind]),
            keeps_body=place.visibility == "public",  # only administrators may be allowed to create public places
        )
        if place.within not in self._new and (found := wanted.look_up()) is not None:
            return wanted.whole(found)
        self._new.add(place.name)
        made = self.calls.make(wanted)
        # The target may have changed the path, for example to lower case.
        self.calls.see_lag(partial(self._find_place, kind, made.get(PATHS[kind], full_path)))
        return made

    def _group(self, place: Place) -> None:
        more = {"parent_id": self.groups[place.within]["id"]} if place.within else {}
        try:
            usual = replace(place, numbered=False, capital=False)
            group = self._unusual(place, usual, more) or self._place("group", usual, more, {})
        except RefusedError:
            if not place.or_on_top:
                raise
            group = self._place("group", replace(place, within="", namesake=""), {}, {})
        if not all(self._is_seen(group, name) for name in place.seen_by):
            place = replace(place, members={**place.seen_by, **place.members})
        self._members(f"/groups/{group['id']}/members", place)
        self.groups[place.name] = group

    def _is_seen(self, group: Entry, person: str) -> bool:
        """Tell whether somebody sees a group: what it says of its visibility need not be what the target applies."""
        return self.calls.find(self.people[person].token, f"/groups/{group['id']}") is not None

    def _unusual(self, place: Place, usual: Place, more: Mapping[str, Any]) -> Entry | None:
        """Create a group with an unusual path; None when it exists with the usual one, or such a path is refused."""
        if place == usual or self._find_place("group", self._full_path(usual)):
            return None
        with suppress(RefusedError):
            return self._place("group", place, more, {})
        return None

    def _members(self, path: str, place: Place) -> None:
        owner = self.people[place.by]
        known = {entry.get("id"): entry.get("access_level") for entry in self.calls.walk(self.administrator, path)}
        levels = {place.by: OWNER_LEVEL, **place.members}
        for name, level in levels.items():
            person = self.people[name]
            if person.id in known:
                if known[person.id] != level:
                    self.calls.put(self.administrator, f"{path}/{person.id}", {"access_level": level})
                continue
            self.calls.make(
                Wanted(
                    what=f"member {person.username}",
                    path=path,
                    tokens=[owner.token, self.administrator],
                    bodies=[{"user_id": person.id, "access_level": level}],
                    look_up=partial(self.calls.find, self.administrator, f"{path}/{person.id}"),
                )
            )

    def _project(self, place: Place) -> None:
        more = {} if place.personal else {"namespace_id": self.groups[place.within]["id"]}
        wished = {} if place.empty else {"initialize_with_readme": True}
        project = self._on_branch(place, {**more, **wished}) or self._place("project", place, more, wished)
        if place.members:
            self._members(f"/projects/{project['id']}/members", place)
        if not place.empty and not project.get("default_branch"):
            project = self._first_commit(place, project)
        self.projects[place.name] = project

    def _on_branch(self, place: Place, body: Mapping[str, Any]) -> Entry | None:
        """Make a project with the default branch that its place names; None without one, or if that is refused."""
        if place.branch:
            with suppress(RefusedError):
                return self._place("project", place, {**body, "default_branch": place.branch}, {})
        return None

    def _first_commit(self, place: Place, project: Entry) -> Entry:
        """Wait for the first commit of a new project, or create it; return the project after that."""
        path = f"/projects/{project['id']}"

        def begun() -> Entry | None:
            now = self.calls.find(self.administrator, path)
            return now if now and now.get("default_branch") else None

        found = begun()
        if found is None:
            file = {"branch": "main", "content": "# A project\n", "commit_message": "Begin"}
            tokens = [self.people[place.by].token, self.administrator]
            target = f"{path}/repository/files/README.md"
            self.calls.make(Wanted(what="first commit", path=target, tokens=tokens, bodies=[file], look_up=begun))
            found = self.calls.until(begun)
        if found is None:
            raise RefusedError(f"{path} has no default branch after its first commit")
        return found

    # -- what lies in projects -----------------------------------------------------------------------------------------

    def _merge_request(self, name: str, place: str) -> None:
        self.merge_requests[name] = self.contents.merge_request(name, self.projects[place])

    def _code_owners(self, name: str) -> None:
        self.contents.code_owners(name, self.projects[Blueprint.load().merge_requests[name]])

    def _require_code_owners(self, name: str) -> None:
        """Drop a merge request whose rules do not name its code owners."""
        opened = self.merge_requests.pop(name)
        shown = self.contents.has_code_owners(opened)
        if shown is not None:
            self.rules_shown["code_owner_rules"] = shown
        if shown:
            self.merge_requests[name] = opened

    def _protected_branch(self, wanted: Protection) -> None:
        found = self.contents.protected_branch(wanted, self.projects[wanted.project])
        if wanted.fixture:
            self.protected_branches[wanted.fixture] = found

    # -- what lies in groups, and settings -----------------------------------------------------------------------------

    def _in_group(self, name: str, kind: str, key: str, title: str, *ways: Mapping[str, Any]) -> str:
        path, owner = f"/groups/{self.groups[name]['id']}/{kind}", self.people["owner"].token
        shown = self.names.title(title)
        wanted = Wanted(
            what=f"{kind} {shown}",
            path=path,
            tokens=[owner, self.administrator],
            bodies=[{key: shown, **more} for more in ways],
            look_up=partial(self.calls.first, owner, path, key, shown),
            waits_after=OF_GATEWAYS,
        )
        make = self.calls.make if name in self._new else self.calls.ensure
        make(wanted)
        return shown

    def _label(self, group: str, titles: list[str], title: str, colour: str) -> None:
        titles.append(self._in_group(group, "labels", "name", title, {"color": colour}))

    def _milestone(self, title: str) -> None:
        # A text of two lines must stay on one line of the export file.
        text = {"description": 'Made for a "conformance" run.\nIt holds nothing.'}
        self.milestones.append(self._in_group("export_group", "milestones", "title", title, text, {}))

    def _ask_for_password(self) -> None:
        """Make a project ask approvers for their passwords, with whichever call and name the target has."""
        path = f"/projects/{self.projects['guarded_project']['id']}"
        # A service may serve only the role that is documented for a call, and refuse higher ones.
        tokens = [self.people[name].token for name in ("owner", "maintainer")]
        ways = (
            ("POST", f"{path}/approvals", "require_password_to_approve"),
            ("PUT", f"{path}/merge_request_approval_setting", _REAUTHENTICATION),
            ("PUT", f"{path}/merge_request_approval_setting", "require_password_to_approve"),
        )
        tried = [(token, *way) for way in ways for token in tokens]
        told = [way for way in tried if way[-1] != _REAUTHENTICATION]
        self.asks_for_password = any(is_on(self.calls, token, place, name) for token, _, place, name in told)
        for token, method, place, name in () if self.asks_for_password else tried:
            answer = self.calls.send(token, method, place, {name: True})
            if (answer.is_served and answer.entry.get(name) is True) or is_on(self.calls, token, place, name):
                # A service may ask approvers to log in again without asking for a password.
                self.asks_for_password = name != _REAUTHENTICATION or self._refuses_without_password(path)
            if self.asks_for_password:
                return

    def _refuses_without_password(self, path: str) -> bool:
        """Approve without a password; return whether that was refused, and withdraw an approval that worked."""
        opened = f"{path}/merge_requests/{self.merge_requests['password_merge_request']['iid']}"
        approver = self.people["approver"].token
        answer = self.calls.send(approver, "POST", f"{opened}/approve", {})
        if answer.is_served:
            self.calls.send(approver, "POST", f"{opened}/unapprove", {})
        return answer.status is not None and not answer.is_served

    def _branch_rule(self) -> None:
        """Give a group a rule, and check whether it lists the protected branches of the group."""
        path, name = f"/groups/{self.groups['branch_rule_group']['id']}/approval_rules", self.names.title("branches")
        # Either owners or only administrators of the installation may manage groups.
        tokens = (self.people["owner"].token, self.administrator)
        keeper = next((token for token in tokens if self.calls.get(token, path).is_served), None)
        if keeper is None:
            return
        find = partial(self.calls.first, keeper, path, "name", name)
        body = {"name": name, "approvals_required": 1, "user_ids": [self.people["approver"].id]}
        self.calls.ensure(Wanted(what=f"rule {name}", path=path, tokens=[keeper], bodies=[body], look_up=find))
        if "branch_rule_project branch" not in self.refused:
            rules = self.calls.walk(keeper, path)
            self.rules_shown["group_branch_rules"] = any(rule.get("protected_branches") for rule in rules)

    def _completion(self, name: str, place: str) -> None:
        """Switch code completion on or off for a project, and check whether the target shows that."""
        project, owner = self.projects[place], self.people["owner"].token
        path, wanted = project["path_with_namespace"], name != "disabled_project"

        def asked() -> Answer:
            return self.calls.ask(owner, "/code_suggestions/enabled", {"project_path": path})

        first = asked()
        if first.is_refusal and first.status != HTTPStatus.FORBIDDEN:
            # Another refusal than the stated one may have any reason, unless the project is served once it is on.
            self.calls.put(owner, f"/projects/{project['id']}", {"duo_features_enabled": True})
            first = asked()

        def is_so() -> bool:
            answer = asked()
            is_off = answer.status == HTTPStatus.FORBIDDEN or (first.is_served and answer.is_refusal)
            return answer.is_served if wanted else is_off

        is_through_group = name.startswith("group_")
        if is_through_group:  # what the project itself has on would show nothing of its group
            self.calls.put(owner, f"/projects/{project['id']}", {"duo_features_enabled": False})
        if not is_so():
            # The namespace of a project may have another id than its group.
            above = path.rpartition("/")[0].casefold()
            of_group = [f"/groups/{one['id']}" for one in self.groups.values() if one["full_path"].casefold() == above]
            of_project = [f"/projects/{project['id']}"]
            targets = of_group if is_through_group else of_project if wanted else [*of_project, *of_group]
            for target in targets:
                self.calls.put(owner, target, {"duo_features_enabled": wanted})
                if is_so():
                    break
        if is_so():
            self.completions[name] = path
        elif is_through_group:
            self.calls.put(owner, f"/projects/{project['id']}", {"duo_features_enabled": True})


def _one_by_one(steps: Sequence[Step]) -> None:
    for step in steps:
        step()
