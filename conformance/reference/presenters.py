"""How the records that several areas share look in a response.

Specification: Resources and their fields. What a record has beyond that is sent by choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, TypeVar

import orjson

from conformance.reference.choices import TimestampStyle

if TYPE_CHECKING:
    from datetime import datetime

    from conformance.reference.choices import Choices
    from conformance.reference.foundation import Foundation
    from conformance.reference.identity import Group, Project, User
    from conformance.reference.repositories import AccessLevel, ProtectedBranch

K = TypeVar("K")
V = TypeVar("V")
Json = dict[str, object]

_ELSEWHERE = timezone(timedelta(hours=2))
_MOST_REMEMBERED = 10_000


@dataclass(slots=True)
class _ShownProject:
    """How a project was shown, after what that was made of: as long as all of it stays, so does the answer."""

    project: Project
    namespace: Group
    choices: Choices
    fields: Json
    namespace_fields: Json
    text: bytes | None = None


class Presenter:
    """Turns records into JSON objects."""

    _moments: dict[tuple[datetime, TimestampStyle], str]
    _projects: dict[int, _ShownProject]

    def __init__(self, service: Foundation) -> None:
        self._service = service
        self._forget()

    def __setattr__(self, name: str, value: object) -> None:
        """Replace a method or field; what was remembered may look different from then on, and is forgotten."""
        object.__setattr__(self, name, value)
        self._forget()

    def __delattr__(self, name: str) -> None:
        """Take back a replacement."""
        object.__delattr__(self, name)
        self._forget()

    def _forget(self) -> None:
        # The same moments and projects are shown over and over, and that takes longer than looking them up.
        vars(self)["_moments"] = {}
        vars(self)["_projects"] = {}

    @property
    def _web(self) -> str:
        return self._service.choices.web_url

    def timestamp(self, moment: datetime) -> str:
        """Write a moment as an ISO 8601 timestamp."""
        style = self._service.choices.timestamps
        written = self._moments.get((moment, style))
        if written is None:
            _make_room(self._moments)
            written = self._moments[moment, style] = _write(moment, style)
        return written

    def user(self, user: User) -> Json:
        """Present a user reference."""
        shown: Json = {
            "id": user.id,
            "name": user.name,
            "username": user.username,
            "state": user.state,
            "avatar_url": f"{self._web}/uploads/-/system/user/avatar/{user.id}/avatar.png",
            "web_url": f"{self._web}/{user.username}",
        }
        if self._service.choices.extra_fields:
            shown |= {"locked": False, "public_email": None}
        return shown

    def users(self, ids: tuple[int, ...]) -> list[Json]:
        """Present the users of these ids, without those that no longer exist."""
        if not ids:
            return []
        known = self._service.identities.users
        return [self.user(known[number]) for number in ids if number in known]

    def group(self, group: Group) -> Json:
        """Present a group reference."""
        return {
            "id": group.id,
            "name": group.name,
            "path": group.path,
            "description": group.description,
            "visibility": group.visibility.value,
            "lfs_enabled": True,
            "avatar_url": None,
            "web_url": self.group_url(group),
            "request_access_enabled": True,
            "full_name": group.full_name,
            "full_path": group.full_path,
            "parent_id": group.parent_id,
            "ldap_cn": None,
            "ldap_access": None,
        }

    def group_url(self, group: Group) -> str:
        """Return the page of a group."""
        return f"{self._web}/groups/{group.full_path}"

    def limited_project(self, project: Project) -> Json:
        """Present an allowlist project entry. The answer is the caller's own, to be changed at will."""
        known = self._shown_project(project)
        # Whatever can be changed in place is given away as a copy.
        shown = known.fields.copy()
        shown["tag_list"], shown["topics"] = [*project.topics], [*project.topics]
        shown["namespace"] = known.namespace_fields.copy()
        return shown

    def limited_project_text(self, project: Project) -> bytes:
        """Return an allowlist project entry as the JSON text that is sent."""
        known = self._shown_project(project)
        if known.text is None:
            known.text = orjson.dumps(self.limited_project(project))
        return known.text

    def _shown_project(self, project: Project) -> _ShownProject:
        service, number = self._service, project.id
        namespace, choices = service.identities.groups[project.namespace_id], service.choices
        known = self._projects.get(number)
        if (
            known is None
            or known.project is not project
            or known.namespace is not namespace
            or known.choices is not choices
        ):
            _make_room(self._projects)
            fields = self._limited_project(project, namespace)
            known = _ShownProject(project, namespace, choices, fields, self.namespace(namespace))
            self._projects[number] = known
        return known

    def _limited_project(self, project: Project, namespace: Group) -> Json:
        web, host, path = self._web, self._web.partition("://")[2], project.full_path
        topics = list(project.topics)
        shown: Json = {
            "id": project.id,
            "description": project.description,
            "name": project.name,
            "name_with_namespace": f"{namespace.full_name} / {project.name}",
            "path": project.path,
            "path_with_namespace": path,
            "created_at": self.timestamp(project.created_at),
            "default_branch": project.default_branch,
            "tag_list": topics,
            "topics": topics,
            "ssh_url_to_repo": f"git@{host}:{path}.git",
            "http_url_to_repo": f"{web}/{path}.git",
            "web_url": f"{web}/{path}",
            "avatar_url": None,
            "star_count": project.star_count,
            "last_activity_at": self.timestamp(project.last_activity_at),
            "namespace": self.namespace(namespace),
        }
        if self._service.choices.extra_fields:
            shown |= {
                "readme_url": f"{web}/{path}/-/blob/main/README.md",
                "forks_count": 0,
                "visibility": project.visibility.value,
            }
        return shown

    def namespace(self, group: Group) -> Json:
        """Present the namespace of a project."""
        return {
            "id": group.id,
            "name": group.name,
            "path": group.path,
            "kind": "user" if group.personal else "group",
            "full_path": group.full_path,
            "parent_id": group.parent_id,
            "avatar_url": None,
            "web_url": f"{self._web}/{group.full_path}" if group.personal else self.group_url(group),
        }

    def group_protected_branch(self, branch: ProtectedBranch) -> Json:
        """Present a protected branch reference as group-level rules carry it."""
        return {
            "id": branch.id,
            "name": branch.name,
            "push_access_levels": [_long_level(level, key=True) for level in branch.push_access_levels],
            "merge_access_levels": [_long_level(level, key=False) for level in branch.merge_access_levels],
            "unprotect_access_levels": [_long_level(lv, key=True) for lv in branch.unprotect_access_levels],
            "code_owner_approval_required": branch.code_owner_approval_required,
            "allow_force_push": branch.allow_force_push,
            "inherited": False,
        }

    def project_protected_branch(self, branch: ProtectedBranch) -> Json:
        """Present a protected branch reference as project-level rules carry it: one flag is a string."""
        return {
            "id": branch.id,
            "name": branch.name,
            "push_access_levels": [_short_level(level) for level in branch.push_access_levels],
            "merge_access_levels": [_short_level(level) for level in branch.merge_access_levels],
            "unprotect_access_levels": [_short_level(level) for level in branch.unprotect_access_levels],
            "code_owner_approval_required": "true" if branch.code_owner_approval_required else "false",
        }


def _make_room(remembered: dict[K, V]) -> None:
    if len(remembered) >= _MOST_REMEMBERED:
        remembered.clear()


def _write(moment: datetime, style: TimestampStyle) -> str:
    if style is TimestampStyle.OFFSET:
        return moment.astimezone(_ELSEWHERE).isoformat(timespec="microseconds")
    precision = "milliseconds" if style is TimestampStyle.MILLISECONDS else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _short_level(level: AccessLevel) -> Json:
    return {"access_level": level.access_level, "access_level_description": level.description}


def _long_level(level: AccessLevel, *, key: bool) -> Json:
    shown = {"id": level.id, **_short_level(level)}
    if key:
        shown["deploy_key_id"] = level.deploy_key_id
    return {**shown, "user_id": level.user_id, "group_id": level.group_id}
