"""The seeded world: everybody and everything that a run against the service needs, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.reference.identity import Group, NewSubject, NewUser, Project, Role, User, Visibility, kind_of
from conformance.reference.repositories import DEFAULT_BRANCH, NewCommit, NewMergeRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.foundation import Foundation
    from conformance.reference.repositories import MergeRequest

# The people, with the role they hold in every place of the staff.
_STAFF = {
    "owner": Role.OWNER,
    "maintainer": Role.MAINTAINER,
    "developer": Role.DEVELOPER,
    "reporter": Role.REPORTER,
    "guest": Role.GUEST,
    "approver": Role.DEVELOPER,
    "second_approver": Role.DEVELOPER,
    "author": Role.DEVELOPER,
}
_ALLOWLIST_SIZE = 5
_MERGE_REQUESTS = {
    # name of the fixture: name of the project. Those of other projects come first, so that the ids of the
    # main project's merge requests are nobody's iid there.
    "fuzz_merge_request": "fuzz_project",
    "sibling_merge_request": "sibling_project",
    "password_merge_request": "guarded_project",
    "public_merge_request": "public_project",
    "merge_request": "project",
    "second_merge_request": "project",
    "reset_merge_request": "project",
}


@dataclass(frozen=True)
class ActorRecord:
    """Somebody a run can act as. `role` is the one in the main project, "none", or "admin"."""

    id: int
    username: str
    token: str
    password: str
    role: str


@dataclass(frozen=True)
class Fixture:
    """Something that exists in the world: its id, its full path where it has one, and what else is known."""

    id: int
    path: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass
class World:
    """The names of everybody and everything."""

    actors: dict[str, ActorRecord] = field(default_factory=dict)
    fixtures: dict[str, Fixture | tuple[Fixture, ...]] = field(default_factory=dict)

    def one(self, name: str) -> Fixture:
        """Return the fixture of that name. Raise KeyError when there is none, TypeError when it is many."""
        found = self.fixtures[name]
        if isinstance(found, tuple):
            raise TypeError(f"{name} names {len(found)} fixtures")
        return found

    def many(self, name: str) -> tuple[Fixture, ...]:
        """Return the fixtures of that name."""
        found = self.fixtures[name]
        return found if isinstance(found, tuple) else (found,)


def build_world(service: Foundation, suffix: str = "") -> World:
    """Fill the memory of a service and return the names of what was made.

    Worlds with different suffixes, which usernames and top-level paths end in, stand beside each other.
    """
    return _Builder(service, suffix).build()


class _Builder:
    """Builds the world step by step; every step names what it made."""

    def __init__(self, service: Foundation, suffix: str) -> None:
        self._service = service
        self._suffix = suffix
        self._identities = service.identities
        self._repositories = service.repositories
        self._world = World()
        self._people: dict[str, User] = {}
        self._places: dict[str, Project | Group] = {}

    def build(self) -> World:
        self._make_people()
        self._make_groups()
        self._make_projects()
        self._make_allowlist_targets()
        self._make_merge_requests()
        self._make_bots()
        self._protect_branches()
        self._fill_export_group()
        self._make_untouched_places()
        # Named last, when projects have their repositories.
        for name, place in self._places.items():
            self._world.fixtures[name] = self._fixture(place)
        return self._world

    def _make_people(self) -> None:
        roles = {name: role.name.lower() for name, role in _STAFF.items()}
        for name, role in {**roles, "outsider": "none", "admin": "admin"}.items():
            new = NewUser(
                username=name.replace("_", ".") + self._suffix,
                name=name.replace("_", " ").title(),
                password=f"pass-{self._identities.secret(f'password {name}')[:16]}",
                admin=name == "admin",
            )
            self._people[name] = self._identities.create_user(new)
            self._name_actor(name, self._people[name], role)

    def _make_groups(self) -> None:
        self._staffed_group("group", "automation", "Where the work under test happens")
        group = self._group("group")
        self._places["subgroup"] = self._identities.create_group(
            NewSubject(path="tools", name="Tools", within=group, description="A group inside a group")
        )
        self._staffed_group("sibling_group", "neighbours", "Never touched by work in other groups")
        self._staffed_group("fuzz_group", "playground", "Set aside for drawn writes")
        self._staffed_group("export_group", "moving", "Holds something of each relation that is exported")
        self._staffed_group("public_group", "commons", "Open to everybody", Visibility.PUBLIC)
        self._staffed_group("allowlist_namespace", "consumers", "Projects that want access")
        approvers = {"approver_group": "reviewers", "second_approver_group": "auditors"}
        for name, path in approvers.items():
            made = self._make_group(path, "People who approve", Visibility.PUBLIC)
            self._places[name] = made
            self._join(made, {"owner": Role.OWNER, "approver": Role.DEVELOPER, "second_approver": Role.DEVELOPER})
        self._places["hidden_group"] = self._make_group("board", "Seen by its members only")
        self._join(self._places["hidden_group"], {"owner": Role.OWNER, "second_approver": Role.DEVELOPER})
        self._places["outsider_group"] = self._make_group("elsewhere", "The staff has no role here")
        self._join(self._places["outsider_group"], {"outsider": Role.OWNER})

    def _make_projects(self) -> None:
        self._make_project("project", "group", "pipeline")
        self._make_project("subgroup_project", "subgroup", "linter")
        self._make_project("sibling_project", "sibling_group", "mirror")
        self._make_project("guarded_project", "sibling_group", "vault")
        self._make_project("fuzz_project", "fuzz_group", "sandbox")
        self._make_project("outsider_project", "outsider_group", "island")
        self._make_project("public_project", "public_group", "handbook", Visibility.PUBLIC)
        self._places["empty_project"] = self._identities.create_project(
            NewSubject(path="vacant", name="Vacant", within=self._group("group"), description="No commits yet")
        )

    def _make_allowlist_targets(self) -> None:
        projects: list[Fixture] = []
        groups: list[Fixture] = []
        for number in range(1, _ALLOWLIST_SIZE + 1):
            name = f"allowlist_project_{number}"
            self._make_project(name, "allowlist_namespace", f"consumer-{number}")
            projects.append(self._fixture(self._places.pop(name)))
            self._staffed_group(name, f"client-{number}", "A group that wants access")
            groups.append(self._fixture(self._places.pop(name)))
        self._world.fixtures["allowlist_projects"] = tuple(projects)
        self._world.fixtures["allowlist_groups"] = tuple(groups)

    def _make_merge_requests(self) -> None:
        author = self._people["author"]
        for name, place in _MERGE_REQUESTS.items():
            project = self._project(place)
            branch = name.replace("_", "-")
            self._repositories.create_branch(project, branch, DEFAULT_BRANCH)
            self._repositories.commit(
                project, NewCommit(branch=branch, author=author, file_path=f"changes/{branch}.md")
            )
            new = NewMergeRequest(
                source_branch=branch,
                title=f"Add the {name.replace('_', ' ')}",
                author=author,
                description="Ready for review.",
            )
            merge_request = self._repositories.open_merge_request(project, new)
            self._world.fixtures[name] = self._merge_request_fixture(project, merge_request)

    def _make_bots(self) -> None:
        bots = {"project_bot": "project", "group_bot": "group", "foreign_bot": "outsider_project"}
        for name, place in bots.items():
            bot = self._identities.create_bot(self._places[place], name.replace("_", " ").title(), Role.MAINTAINER)
            self._name_actor(name, bot, "none" if name == "foreign_bot" else "maintainer")

    def _protect_branches(self) -> None:
        project = self._project("project")
        self._repositories.create_branch(project, "stable", DEFAULT_BRANCH)
        names = {"protected_branch": DEFAULT_BRANCH, "second_protected_branch": "stable"}
        for fixture, branch in names.items():
            protected = self._repositories.protect(
                project, branch, push=Role.DEVELOPER, merge=Role.DEVELOPER, unprotect=Role.MAINTAINER
            )
            extra: dict[str, str | int] = {"name": branch, "project_id": project.id}
            self._world.fixtures[fixture] = Fixture(protected.id, None, extra)
        for place in ("fuzz_project", "sibling_project"):
            self._repositories.protect(
                self._project(place),
                DEFAULT_BRANCH,
                push=Role.MAINTAINER,
                merge=Role.DEVELOPER,
                unprotect=Role.MAINTAINER,
            )

    def _fill_export_group(self) -> None:
        group = self._group("export_group")
        planning = self._service.planning
        colours = {
            "bug": "#d9534f",
            "feature": "#428bca",
            "chore": "#999999",
            "question": "#5cb85c",
            "late": "#ff0000",
        }
        for title, colour in colours.items():
            planning.add_label(group, title, colour)
        for title in ("First", "Second", "Third"):
            planning.add_milestone(group, title, f"{title} stage of the move")
        planning.add_board(group, "Development")

    def _make_untouched_places(self) -> None:
        self._staffed_group("fresh_group", "newcomers", "As it was made: nobody has changed anything")
        self._make_project("fresh_project", "fresh_group", "clean-slate")

    # -- small steps ----------------------------------------------------------------------------------------

    def _staffed_group(
        self, name: str, path: str, description: str, visibility: Visibility = Visibility.PRIVATE
    ) -> None:
        self._places[name] = self._make_group(path, description, visibility)
        self._join(self._places[name], _STAFF)

    def _make_group(self, path: str, description: str, visibility: Visibility = Visibility.PRIVATE) -> Group:
        path += self._suffix
        new = NewSubject(path=path, name=path.title(), description=description, visibility=visibility)
        return self._identities.create_group(new)

    def _make_project(self, name: str, within: str, path: str, visibility: Visibility = Visibility.PRIVATE) -> None:
        new = NewSubject(
            path=path,
            name=path.title(),
            within=self._group(within),
            description=f"The {name.replace('_', ' ')} of the seeded world",
            visibility=visibility,
            topics=("automation", "seeded"),
        )
        project = self._identities.create_project(new)
        self._places[name] = project
        first = NewCommit(branch=DEFAULT_BRANCH, author=self._people["owner"], file_path="README.md")
        self._repositories.commit(project, first)

    def _join(self, place: Project | Group, roles: Mapping[str, Role]) -> None:
        for name, role in roles.items():
            self._identities.add_member(place, self._people[name], role)

    def _name_actor(self, name: str, user: User, role: str) -> None:
        token = self._identities.issue_token(user)
        self._world.actors[name] = ActorRecord(user.id, user.username, token.value, user.password, role)

    def _project(self, name: str) -> Project:
        project = self._identities.find_project(str(self._places[name].id))
        if project is None:
            raise LookupError(name)
        return project

    def _group(self, name: str) -> Group:
        return self._identities.groups[self._places[name].id]

    def _fixture(self, place: Project | Group) -> Fixture:
        extra: dict[str, str | int] = {"name": place.name, "kind": kind_of(place).value}
        if isinstance(place, Project):
            current = self._identities.projects[place.id]
            extra |= {"namespace_id": current.namespace_id, "default_branch": current.default_branch or ""}
        return Fixture(place.id, place.full_path, extra)

    def _merge_request_fixture(self, project: Project, merge_request: MergeRequest) -> Fixture:
        extra: dict[str, str | int] = {
            "iid": merge_request.iid,
            "sha": self._repositories.head_of(merge_request),
            "project_id": project.id,
            "project_path": project.full_path,
            "source_branch": merge_request.source_branch,
            "target_branch": merge_request.target_branch,
            "author_id": merge_request.author_id,
            "title": merge_request.title,
            "description": merge_request.description or "",
        }
        return Fixture(merge_request.id, None, extra)
