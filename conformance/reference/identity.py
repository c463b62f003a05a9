"""Who is who and who may see what: users, tokens, groups, projects, memberships and roles."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from conformance.reference.store import Table

if TYPE_CHECKING:
    from datetime import datetime

    from conformance.reference.clock import Clock
    from conformance.reference.store import Store

# Longer digit strings name nothing: ids are 64-bit numbers.
_LONGEST_ID = 18


class Role(IntEnum):
    """The access levels of a member, and NONE for somebody without a membership."""

    NONE = 0
    GUEST = 10
    REPORTER = 20
    DEVELOPER = 30
    MAINTAINER = 40
    OWNER = 50


class Visibility(StrEnum):
    """Who may see a group or project."""

    PRIVATE = "private"
    INTERNAL = "internal"
    PUBLIC = "public"


class Kind(StrEnum):
    """What a path parameter `:id` names, and what a member is a member of."""

    PROJECT = "project"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Bot:
    """What a bot user was made for: the one project or group whose token it stands for."""

    kind: Kind
    subject_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody who can call the service. `bot` is None for people."""

    id: int
    username: str
    name: str
    password: str
    created_at: datetime
    email: str = ""
    admin: bool = False
    bot: Bot | None = None
    state: str = "active"


@dataclass(frozen=True, slots=True)
class Token:
    """An access token. `scopes` are names such as "api" and "read_api"."""

    value: str
    user_id: int
    scopes: tuple[str, ...] = ("api",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group, or with `personal` the namespace of one user. `full_path` holds the paths of all ancestors."""

    id: int
    name: str
    path: str
    full_name: str
    full_path: str
    created_at: datetime
    description: str = ""
    visibility: Visibility = Visibility.PRIVATE
    parent_id: int | None = None
    personal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project. `default_branch` is None as long as the repository is empty."""

    id: int
    name: str
    path: str
    full_path: str
    namespace_id: int
    created_at: datetime
    last_activity_at: datetime
    description: str | None = None
    visibility: Visibility = Visibility.PRIVATE
    default_branch: str | None = None
    topics: tuple[str, ...] = ()
    star_count: int = 0


Subject = Project | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUser:
    """What is needed to create a user."""

    username: str
    name: str
    password: str
    email: str = ""
    admin: bool = False
    bot: Bot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubject:
    """What is needed to create a group or a project. `within` is the group or namespace it lies in."""

    path: str
    name: str = ""
    within: Group | None = None
    description: str | None = None
    visibility: Visibility = Visibility.PRIVATE
    topics: tuple[str, ...] = ()


def kind_of(subject: Subject) -> Kind:
    """Say whether this is a project or a group."""
    return Kind.PROJECT if isinstance(subject, Project) else Kind.GROUP


class Identities:
    """All users, tokens, groups, projects and memberships, and the questions asked about them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.users: Table[int, User] = Table(store)
        self.tokens: Table[str, Token] = Table(store)
        self.groups: Table[int, Group] = Table(store)
        self.projects: Table[int, Project] = Table(store)
        self.roles: Table[tuple[Kind, int, int], Role] = Table(store)  # by kind, subject and user
        self._user_names: Table[str, int] = Table(store)
        self._paths: Table[tuple[Kind, str], int] = Table(store)

    # -- making ---------------------------------------------------------------------------------------------

    def create_user(self, new: NewUser) -> User:
        """Create a user. The username must be free."""
        user = User(
            id=self._store.next_id("users"),
            username=new.username,
            name=new.name,
            password=new.password,
            email=new.email or f"{new.username}@example.com",
            admin=new.admin,
            bot=new.bot,
            created_at=self._clock.now(),
        )
        self.users[user.id] = user
        self._user_names[user.username.lower()] = user.id
        return user

    def create_bot(self, subject: Subject, name: str, role: Role) -> User:
        """Create the bot user of a project or group token, with that role in it."""
        kind = kind_of(subject)
        number = self._store.next_number("bots")
        username = f"{kind}_{subject.id}_bot_{number}"
        password = self.secret(username)
        user = self.create_user(NewUser(username=username, name=name, password=password, bot=Bot(kind, subject.id)))
        self.add_member(subject, user, role)
        return user

    def issue_token(self, user: User, scopes: tuple[str, ...] = ("api",)) -> Token:
        """Give the user one more access token; its value depends on the tokens before it."""
        number = self._store.next_number("tokens")
        token = Token(f"{user.username}-{self.secret(f'token {number} {user.id}')[:20]}", user.id, scopes)
        self.tokens[token.value] = token
        return token

    def create_group(self, new: NewSubject) -> Group:
        """Create a group; its full path must be free."""
        return self._add_group(new, personal=False)

    def personal_namespace(self, user: User) -> Group:
        """Return the namespace of a user's own projects; it is made when it is first needed."""
        known = next((g for g in self.groups.values() if g.personal and g.path == user.username), None)
        if known is not None:
            return known
        group = self._add_group(NewSubject(path=user.username, name=user.name), personal=True)
        self.add_member(group, user, Role.OWNER)
        return group

    def create_project(self, new: NewSubject) -> Project:
        """Create a project with an empty repository; `within` is required, the full path must be free."""
        if new.within is None:
            raise ValueError("a project lies in a group or namespace")
        now = self._clock.now()
        project = Project(
            id=self._store.next_id("projects"),
            name=new.name or new.path,
            path=new.path,
            full_path=f"{new.within.full_path}/{new.path}",
            namespace_id=new.within.id,
            created_at=now,
            last_activity_at=now,
            description=new.description,
            visibility=new.visibility,
            topics=new.topics,
        )
        self.projects[project.id] = project
        self._paths[Kind.PROJECT, project.full_path.lower()] = project.id
        return project

    def add_member(self, subject: Subject, user: User, role: Role) -> None:
        """Give a user a role in a project or group; a role given before is replaced."""
        self.roles[kind_of(subject), subject.id, user.id] = role

    def remove_project(self, project: Project) -> None:
        """Forget a project and its memberships."""
        self._forget(Kind.PROJECT, project)
        del self.projects[project.id]

    def remove_group(self, group: Group) -> None:
        """Forget a group with everything inside it."""
        for project in [p for p in self.projects.values() if p.namespace_id == group.id]:
            self.remove_project(project)
        for child in [g for g in self.groups.values() if g.parent_id == group.id]:
            self.remove_group(child)
        self._forget(Kind.GROUP, group)
        del self.groups[group.id]

    def remove_user(self, user: User) -> None:
        """Forget a user with tokens and memberships."""
        for key in [key for key in self.roles if key[2] == user.id]:
            del self.roles[key]
        for value in [token.value for token in self.tokens.values() if token.user_id == user.id]:
            del self.tokens[value]
        self._user_names.pop(user.username.lower(), None)
        del self.users[user.id]

    @staticmethod
    def secret(purpose: str) -> str:
        """Return 40 hexadecimal digits that depend on the purpose alone, so that every service has the same tokens."""
        return hashlib.sha256(f"0:{purpose}".encode()).hexdigest()[:40]

    # -- finding --------------------------------------------------------------------------------------------

    def find_project(self, reference: str) -> Project | None:
        """Find a project by its id in digits or by its full path."""
        number = self._number(Kind.PROJECT, reference)
        return None if number is None else self.projects.get(number)

    def find_group(self, reference: str) -> Group | None:
        """Find a group by its id in digits or by its full path; a personal namespace is no group."""
        number = self._number(Kind.GROUP, reference)
        group = None if number is None else self.groups.get(number)
        return None if group is None or group.personal else group

    def is_taken(self, full_path: str) -> bool:
        """Say whether a group, personal namespace or project has that full path, be it all digits."""
        return any((kind, full_path.lower()) in self._paths for kind in Kind)

    def find_username(self, username: str) -> User | None:
        """Find a user by name, in any case."""
        number = self._user_names.get(username.lower())
        return None if number is None else self.users.get(number)

    def namespace_of(self, project: Project) -> Group:
        """Return the group or personal namespace that a project lies in."""
        return self.groups[project.namespace_id]

    def lineage(self, subject: Subject) -> list[Group]:
        """Return the groups around a project or, for a group, itself and its ancestors: inner first."""
        groups, found = self.groups, []
        number: int | None = subject.namespace_id if isinstance(subject, Project) else subject.id
        while number is not None and (group := groups.get(number)) is not None:
            found.append(group)
            number = group.parent_id
        return found

    # -- judging --------------------------------------------------------------------------------------------

    def role_in(self, user: User, subject: Subject) -> Role:
        """Return the effective role: the highest of the direct one and those inherited from groups around."""
        if user.admin:
            return Role.OWNER
        role, roles, user_id = Role.NONE, self.roles, user.id
        if isinstance(subject, Project):
            role = roles.get((Kind.PROJECT, subject.id, user_id), role)
        # Asked several times for every request, so this goes along the lineage without making a list of it.
        number: int | None = subject.namespace_id if isinstance(subject, Project) else subject.id
        while number is not None and (group := self.groups.get(number)) is not None:
            inherited = roles.get((Kind.GROUP, number, user_id))
            if inherited is not None and inherited > role:
                role = inherited
            number = group.parent_id
        return role

    def members(self, subject: Subject) -> dict[int, Role]:
        """Return the effective role of every member by user id, inherited memberships included."""
        found: dict[int, Role] = {}
        around = {(Kind.GROUP, group.id) for group in self.lineage(subject)}
        if isinstance(subject, Project):
            around.add((Kind.PROJECT, subject.id))
        for (kind, subject_id, user_id), role in self.roles.items():
            if (kind, subject_id) in around:
                found[user_id] = max(role, found.get(user_id, Role.NONE))
        return found

    def can_see(self, user: User, subject: Subject) -> bool:
        """Say whether the subject exists for this authenticated user."""
        return subject.visibility is not Visibility.PRIVATE or self.role_in(user, subject) > Role.NONE

    # -- inner workings -------------------------------------------------------------------------------------

    def _add_group(self, new: NewSubject, *, personal: bool) -> Group:
        name = new.name or new.path
        group = Group(
            id=self._store.next_id("namespaces"),
            name=name,
            path=new.path,
            full_name=f"{new.within.full_name} / {name}" if new.within else name,
            full_path=f"{new.within.full_path}/{new.path}" if new.within else new.path,
            created_at=self._clock.now(),
            description=new.description or "",
            visibility=new.visibility,
            parent_id=new.within.id if new.within else None,
            personal=personal,
        )
        self.groups[group.id] = group
        self._paths[Kind.GROUP, group.full_path.lower()] = group.id
        return group

    def _number(self, kind: Kind, reference: str) -> int | None:
        if reference.isascii() and reference.isdigit():
            return int(reference) if len(reference) <= _LONGEST_ID else None
        return self._paths.get((kind, reference.lower()))

    def _forget(self, kind: Kind, subject: Subject) -> None:
        for key in [key for key in self.roles if key[0] is kind and key[1] == subject.id]:
            del self.roles[key]
        self._paths.pop((kind, subject.full_path.lower()), None)
