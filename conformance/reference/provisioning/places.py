"""Groups and projects: reading, creating and deleting them.

Specification: Versioning, row 16.1, for ci_job_token_scope_enabled of a project.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.audit_events import AuditEvents
from conformance.reference.areas.code_completion import CodeCompletion
from conformance.reference.errors import ForbiddenError, InvalidError, RejectedError, hidden, not_found
from conformance.reference.http import Route, created, ok
from conformance.reference.identity import Kind, NewSubject, Role, Visibility
from conformance.reference.provisioning import fields
from conformance.reference.repositories import DEFAULT_BRANCH, NewCommit
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project, Subject, User
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
            new = replace(new, within=identities.personal_namespace(creator))
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

    def switch_completions(self, subject: Subject, enabled: bool | None) -> None:  # noqa: FBT001 - as sent
        """Switch code completion on or off for a project or group; None leaves it."""
        if enabled is not None:
            self.service.area(CodeCompletion).switch(subject, enabled=enabled)

    def delete_group(self, group: Group) -> None:
        """Delete a group with everything inside it."""
        self.service.identities.remove_group(group)
        self._forget_events()

    def delete_project(self, project: Project) -> None:
        """Delete a project."""
        self.service.identities.remove_project(project)
        self._forget_events()

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

    def _forget_events(self) -> None:
        """Forget what was recorded of groups and projects that are no more."""
        events, identities = self.service.area(AuditEvents).events, self.service.identities
        known = {Kind.GROUP: identities.groups.keys(), Kind.PROJECT: identities.projects.keys()}
        for number in [event.id for event in events.values() if event.subject_id not in known[event.kind]]:
            del events[number]

    def _require_role(self, caller: User, within: Group, least: Role) -> None:
        if self.service.identities.role_in(caller, within) < least:
            raise ForbiddenError

    def _require_free(self, new: NewSubject) -> None:
        identities, within = self.service.identities, new.within
        if within is not None and _OPENNESS.index(new.visibility) > _OPENNESS.index(_limit_of(within)):
            raise RejectedError("is more open than that of the group around it", parameter="visibility")
        full_path = f"{within.full_path}/{new.path}" if within else new.path
        if identities.is_taken(full_path):
            raise fields.DuplicateError("Path has already been taken")


def _limit_of(within: Group) -> Visibility:
    return Visibility.PUBLIC if within.personal else within.visibility


def _list_groups(request: Request) -> Response:
    places = request.area(Places)
    return request.collection(places.groups_seen_by(request.caller), places.present_group)


def _get_group(request: Request) -> Response:
    return ok(request.area(Places).present_group(request.group))


def _create_group(request: Request) -> Response:
    places, parameters = request.area(Places), request.parameters
    within = places.namespace(parameters.optional_integer("parent_id"), request.caller)
    if within is not None and within.personal:
        raise RejectedError("must be a group", parameter="parent_id")
    new = NewSubject(
        path=fields.path(parameters, "path"),
        name=fields.text(parameters, "name"),
        description=fields.prose(parameters, "description"),
        visibility=fields.visibility(parameters),
        within=within,
    )
    return created(places.present_group(places.create_group(new, request.caller)))


def _change_group(request: Request) -> Response:
    places = request.area(Places)
    places.switch_completions(request.group, request.parameters.optional_boolean("duo_features_enabled"))
    return ok(places.present_group(request.group))


def _delete_group(request: Request) -> Response:
    request.area(Places).delete_group(request.group)
    return ok({"message": "202 Accepted"}, request.choices.deletion_code)


def _list_projects(request: Request) -> Response:
    places = request.area(Places)
    return request.collection(places.projects_seen_by(request.caller), places.present_project)


def _get_project(request: Request) -> Response:
    return ok(request.area(Places).present_project(request.project))


def _create_project(request: Request) -> Response:
    places, parameters = request.area(Places), request.parameters
    if not parameters.any_given(("name", "path")):
        raise InvalidError("name, path are missing, at least one parameter must be provided", parameter="name")
    path = fields.path(parameters, "path" if parameters.given("path") else "name")
    new = NewSubject(
        path=path,
        name=fields.text(parameters, "name") if parameters.given("name") else path,
        description=fields.prose(parameters, "description"),
        visibility=fields.visibility(parameters),
        topics=parameters.optional_strings("topics") or (),
        within=places.namespace(parameters.optional_integer("namespace_id"), request.caller),
    )
    with_readme = parameters.optional_boolean("initialize_with_readme")
    branch = fields.branch_name(parameters, "default_branch") if parameters.given("default_branch") else DEFAULT_BRANCH
    project = places.create_project(new, request.caller)
    if with_readme:
        places.write_readme(project, request.caller, branch)
    return created(places.present_project(request.service.identities.projects[project.id]))


def _change_project(request: Request) -> Response:
    places = request.area(Places)
    places.switch_completions(request.project, request.parameters.optional_boolean("duo_features_enabled"))
    return ok(places.present_project(request.project))


def _delete_project(request: Request) -> Response:
    request.area(Places).delete_project(request.project)
    return ok({"message": "202 Accepted"}, request.choices.deletion_code)


_list = partial(Route, "GET", paginated=SUPPORTED_VERSIONS.first)
_delete = partial(Route, "DELETE", least_role=Role.OWNER)

AREA = Area(
    Places,
    (
        _list("/groups", _list_groups),
        Route("POST", "/groups", _create_group),
        Route("GET", "/groups/:id", _get_group, subject=Kind.GROUP),
        Route("PUT", "/groups/:id", _change_group, subject=Kind.GROUP, least_role=Role.OWNER),
        _delete("/groups/:id", _delete_group, subject=Kind.GROUP),
        _list("/projects", _list_projects),
        Route("POST", "/projects", _create_project),
        Route("GET", "/projects/:id", _get_project, subject=Kind.PROJECT),
        Route("PUT", "/projects/:id", _change_project, subject=Kind.PROJECT, least_role=Role.MAINTAINER),
        _delete("/projects/:id", _delete_project, subject=Kind.PROJECT),
    ),
)
