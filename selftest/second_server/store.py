"""The state of the service, and who may see what."""

from __future__ import annotations

import datetime as dt
import hashlib
import heapq
import itertools
import random
import re
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from selftest.second_server.web import Header


GUEST, REPORTER, DEVELOPER, MAINTAINER, OWNER = 10, 20, 30, 40, 50


class RefusalError(Exception):
    """A refusal."""

    def __init__(self, status: int, text: str, headers: list[Header] | None = None, *, exact: bool = False) -> None:
        super().__init__(text)
        self.exact = exact  # the text names the status
        self.status, self.text, self.headers = status, text, headers or []


class Record:
    """Attributes by keyword."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    if TYPE_CHECKING:
        # The fields of a record are decided where it is created.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def is_personal(space: Record) -> bool:
    """Whether projects there belong to a user and not to a group."""
    return space.__dict__.get("kind") == "user"


class Store:
    def __init__(self, base_url: str, admin_token: str) -> None:
        self.lock = threading.RLock()
        self.base = base_url
        self.counts: dict[object, int] = {}
        self.users: dict[int, Record] = {}
        self.groups: dict[int, Record] = {}
        self.projects: dict[int, Record] = {}
        self.namespaces: dict[int, Record] = {}
        self.tokens: dict[str, Record] = {}  # by their secrets
        self.due: list[tuple[float, int, Callable[[], None]]] = []
        self.ticket = itertools.count()
        self.pace = 1.0
        self.rng = random.Random(4)  # noqa: S311 - numbers of stars
        self.flags = {"code_suggestions_completion_api": True, "approval_group_rules": True}
        self.powerless = False
        # by user: the window of time, and how many calls there were in it
        self.completions: dict[int, tuple[int, int]] = {}
        self.calls: dict[int, tuple[int, int]] = {}
        self.choices: set[str] = set()
        root = self.add_user("root", "The Keeper", "root@example.org", "keep-it-safe-0", admin=True)
        self.add_token(root, admin_token, "first", ["api"])

    # ids: the same sequence for each kind, so that kinds share ids; neither dense nor ascending
    def number(self, kind: object) -> int:
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        return 2011 + (n * 7919) % 104729

    def small_number(self, kind: object) -> int:
        n = self.counts[kind] = self.counts.get(kind, 0) + 1
        return 3 + (n * 37) % 997

    def rule_number(self, kind: str, place: Record) -> int:
        """Return the number of a new rule; projects and merge requests may number their own, and reuse free numbers.

        Numbers of groups, projects and merge requests differ, because lists show the rules of those around.
        """
        if "numbers-by-place" not in self.choices or self.groups.get(place.id) is place:
            return self.number(kind)
        first = 501 if kind == "own rule" else 1
        return next(n for n in itertools.count(first) if all(n != rule.id for rule in place.rules))

    # delayed work
    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self.due, (time.monotonic() + seconds / self.pace, next(self.ticket), act))

    def run_due(self) -> None:
        moment = time.monotonic()
        while self.due and self.due[0][0] <= moment:
            heapq.heappop(self.due)[2]()

    # people
    def add_user(
        self, username: str, name: str, email: str, password: str, bot: Record | None = None, *, admin: bool = False
    ) -> Record:
        user = Record(
            id=self.number("user"),
            username=username,
            name=name,
            email=email,
            password=password,
            admin=admin,
            bot=bot,
            created=now(),
            state="active",
        )
        self.users[user.id] = user
        space = Record(id=self.number("namespace") + 200000, kind="user", owner=user)
        user.namespace = space
        self.namespaces[space.id] = space
        return user

    def add_token(
        self, user: Record, secret: str | None, name: str, scopes: list[str], expires: str | None = None
    ) -> Record:
        token = Record(
            id=self.number("token"),
            user=user,
            secret=secret or "x-" + secrets.token_hex(14),
            name=name,
            scopes=scopes,
            expires=expires,
            created=now(),
            revoked=False,
            home=None,
            level=None,
        )
        self.tokens[token.secret] = token
        return token

    def user_named(self, username: str) -> Record | None:
        for user in self.users.values():
            if user.username.lower() == str(username).lower():
                return user
        return None

    # groups and projects
    def add_group(
        self,
        name: str,
        path: str,
        parent: Record | None,
        visibility: str,
        creator: Record,
        description: str | None = None,
    ) -> Record:
        group = Record(
            id=self.number("group"),
            name=name,
            path=path,
            parent=parent,
            visibility=visibility,
            description=description,
            members={},
            created=now(),
            rules=[],
            settings={},
            export=None,
            labels=[],
            milestones=[],
            bots=[],
            completion=False,
            branches=[],
            avatar=None,
            request_access=True,
        )
        self.groups[group.id] = group
        if (creator and not creator.admin) or (creator and not parent):
            group.members[creator.id] = OWNER
        if "no-default-rules" not in self.choices:
            group.rules.append(self.default_rule(group))
        return group

    def default_rule(self, place: Record) -> Record:
        return Record(
            id=self.rule_number("rule", place),
            name="Anybody who may",
            rule_type="any_approver",
            required=0,
            users=[],
            groups=[],
            all_branches=False,
            branches=[],
            report_type=None,
            system=False,
            source=None,
            overridden=False,
        )

    def add_project(
        self, name: str, path: str, space: Record, visibility: str, creator: Record, description: str | None = None
    ) -> Record:
        project = Record(
            id=self.number("project"),
            name=name,
            path=path,
            space=space,
            visibility=visibility,
            description=description,
            members={},
            created=now(),
            active=now(),
            rules=[],
            settings=self.first_settings(),
            config={},
            inbound=True,
            allowed=[],
            allowed_groups=[],
            branches={},
            default_branch=None,
            protected=[],
            merge_requests={},
            integrations={},
            gone_integrations=set(),
            bots=[],
            completion=False,
            gone_rules=set(),
            variables={},
            stars=self.rng.randrange(9),
            topics=[],
        )
        self.projects[project.id] = project
        if "no-default-rules" not in self.choices:
            project.rules.append(self.default_rule(project))
        if creator and (not creator.admin or is_personal(space)):
            project.members[creator.id] = OWNER if is_personal(space) else MAINTAINER
        return project

    def first_settings(self) -> dict[str, bool]:
        found = {}
        if "overrides-later" in self.choices:
            found["allow_overrides_to_approver_list_per_merge_request"] = False
        if "passwords-first" in self.choices:
            found["require_reauthentication_to_approve"] = True
        return found

    def full_path(self, group: Record) -> str:
        return f"{self.full_path(group.parent)}/{group.path}" if group.parent else str(group.path)

    def full_name(self, group: Record) -> str:
        return f"{self.full_name(group.parent)} / {group.name}" if group.parent else str(group.name)

    def project_path(self, project: Record) -> str:
        space = project.space
        above = space.owner.username if is_personal(space) else self.full_path(space)
        return f"{above}/{project.path}"

    def project_name(self, project: Record) -> str:
        space = project.space
        above = space.owner.name if is_personal(space) else self.full_name(space)
        return f"{above} / {project.name}"

    def chain(self, group: Record) -> Iterator[Record]:
        while group:
            yield group
            group = group.parent

    def project_groups(self, project: Record) -> list[Record]:
        return [] if is_personal(project.space) else list(self.chain(project.space))

    # roles
    def group_level(self, user: Record, group: Record) -> int:
        return max((int(g.members.get(user.id, 0)) for g in self.chain(group)), default=0)

    def project_level(self, user: Record, project: Record) -> int:
        homes = (project, *self.project_groups(project))
        return max(int(home.members.get(user.id, 0)) for home in homes)

    def sees_group(self, user: Record, group: Record) -> bool:
        if (user.admin and not self.powerless) or group.visibility in ("public", "internal"):
            return True
        if self.group_level(user, group):
            return True
        for project in self.projects.values():
            if user.id in project.members and group in self.project_groups(project):
                return True
        return any(user.id in other.members and group in self.chain(other) for other in self.groups.values())

    def sees_project(self, user: Record, project: Record) -> bool:
        return (
            (user.admin and not self.powerless)
            or project.visibility in ("public", "internal")
            or self.project_level(user, project) > 0
        )

    def find_group(self, user: Record, key: str) -> Record:
        group = None
        if re.fullmatch(r"[0-9]{1,18}", key):
            group = self.groups.get(int(key))
        else:
            for other in self.groups.values():
                if self.full_path(other).lower() == key.lower():
                    group = other
        if group is None or not self.sees_group(user, group):
            raise RefusalError(404, "there is no such group")
        return group

    def find_project(self, user: Record, key: str) -> Record:
        project = None
        if re.fullmatch(r"[0-9]{1,18}", key):
            project = self.projects.get(int(key))
        else:
            for other in self.projects.values():
                if self.project_path(other).lower() == key.lower():
                    project = other
        if project is None or not self.sees_project(user, project):
            raise RefusalError(404, "there is no such project")
        return project

    def need_project(self, user: Record, project: Record, level: int) -> None:
        if (not user.admin or self.powerless) and self.project_level(user, project) < level:
            raise RefusalError(403, "your role in the project does not reach this far")

    def need_group(self, user: Record, group: Record, level: int) -> None:
        if (not user.admin or self.powerless) and self.group_level(user, group) < level:
            raise RefusalError(403, "your role in the group does not reach this far")

    # repositories
    def new_sha(self, *parts: object) -> str:
        return hashlib.sha1(
            ("|".join(map(str, parts)) + secrets.token_hex(8)).encode(), usedforsecurity=False
        ).hexdigest()
