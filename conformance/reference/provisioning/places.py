"""Groups and projects: reading, creating and deleting them.

Specification: Versioning, row 16.1, for ci_job_token_scope_enabled of a project.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import ForbiddenError, NotFoundError, RejectedError
from conformance.reference.http import created, hidden, not_found, ok
from conformance.reference.identity import Kind, NewSubject, Role, Visibility
from conformance.reference.repositories import DEFAULT_BRANCH, NewCommit
from conformance.reference.routing import Route
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

from . import fields

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project, User
    from conformance.reference.presenters import Json

SCOPE_ENABLED_REMOVAL = Version(17, 0)
_OPENNESS = (Visibility.PRIVATE, Visibility.INTERNAL, Visibility.PUBLIC)
_DEEPEST = 20  # groups inside one another


class Places(Behaviour):
    """The groups and projects that can be made and unmade."""

    name = "places"

    def groups_seen_by(self, user: User) -> list[Group]:
        """Return the groups that exist for a user."""
        identities = self.service.identities
        return [g for g in identities.groups.values() if not g.personal and identities.can_see(user, g)]

    def projects_seen_by(self, user: User) -> list[Project]:
        """Return the projects that exist for a user."""
        identities = self.service.identities
        return [project for project in identities.projects.values() if identities.can_see(user, project)]

    def create_group(self, new: NewSubject, creator: User) -> Group:
        """Create a group that its creator owns. Raise DuplicateError, RejectedError or ForbiddenError."""
        identities = self.service.identities
        if new.within is not None:
            self._require_role(creator, new.within, Role.MAINTAINER)
            if sum(1 for _ in identities.lineage(new.within)) >= _DEEPEST:
                raise RejectedError("has too many levels of nesting", parameter="parent_id")
        elif identities.find_username(new.path):
            raise fields.DuplicateError("Path has already been taken")
        self._require_free(new)
        group = identities.create_group(new)
        if identities.role_in(creator, group) < Role.OWNER or not new.within:
            identities.add_member(group, creator, Role.OWNER)
        return group

    def create_project(self, new: NewSubject, creator: User) -> Project:
        """Create a project, in the creator's own namespace when `within` is None, as its maintainer."""
        identities = self.service.identities
        if new.within is None:
            new = NewSubject(**{**_values(new), "within": identities.personal_namespace(creator)})
        else:
            self._require_role(creator, new.within, Role.DEVELOPER)
        self._require_free(new)
        project = identities.create_project(new)
        if identities.role_in(creator, project) < Role.MAINTAINER:
            identities.add_member(project, creator, Role.MAINTAINER)
        return project

    def write_readme(self, project: Project, author: User, branch: str) -> None:
        """Give a new project its first commit."""
        first = NewCommit(branch=branch, author=author, file_path="README.md", message="Initial commit")
        self.service.repositories.commit(project, first)

    def delete_group(self, group: Group) -> None:
        """Delete a group with everything inside it."""
        self.service.identities.remove_group(group)

    def delete_project(self, project: Project) -> None:
        """Delete a project."""
        self.service.identities.remove_project(project)

    def namespace(self, number: int | None, caller: User) -> Group | None:
        """Find the group or own namespace something is to lie in. Raise NotFoundError or HiddenError."""
        if number is None:
            return None
        group = self.service.identities.groups.get(number)
        if group is None:
            raise not_found("Namespace")
        if not self.service.identities.can_see(caller, group):
            raise hidden("Namespace")
        return group

    def present_group(self, group: Group) -> Json:
        """Present a group on its own."""
        shown = self.service.present.group(group)
        shown["created_at"] = self.service.present.timestamp(group.created_at)
        return shown

    def present_project(self, project: Project) -> Json:
        """Present a project on its own, with the attribute that goes with 17.0."""
        choices = self.service.choices
        shown = self.service.present.limited_project(project)
        shown |= {
            "visibility": project.visibility.value,
            "empty_repo": project.default_branch is None,
            "archived": False,
        }
        if self.service.version < SCOPE_ENABLED_REMOVAL or choices.ci_job_token_scope_enabled_from_17_0:
            shown["ci_job_token_scope_enabled"] = choices.outbound_enabled
        return shown

    def _require_role(self, caller: User, within: Group, least: Role) -> None:
        if self.service.identities.role_in(caller, within) < least:
            raise ForbiddenError

    def _require_free(self, new: NewSubject) -> None:
        identities, within = self.service.identities, new.within
        if within is not None and _OPENNESS.index(new.visibility) > _OPENNESS.index(_limit_of(within)):
            raise RejectedError("is more open than that of the group around it", parameter="visibility")
        full_path = f"{within.full_path}/{new.path}" if within else new.path
        if identities.find_by_path(full_path) is not None:
            raise fields.DuplicateError("Path has already been taken")


def _values(new: NewSubject) -> dict[str, object]:
    return {name: getattr(new, name) for name in ("path", "name", "description", "visibility", "topics")}


def _limit_of(within: Group) -> Visibility:
    return Visibility.PUBLIC if within.personal else within.visibility
