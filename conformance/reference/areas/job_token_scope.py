"""Which other projects and groups may use their job token to access a project.

Specification: Endpoints > Job token scope.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

import orjson

from conformance.reference.area import Area, Behaviour
from conformance.reference.choices import Repeat
from conformance.reference.errors import RejectedError, RepeatedError, hidden, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import Version
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project, User
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

INTRODUCED = Version(16, 1)
OUTBOUND_PLANNED_FOR_REMOVAL = Version(18, 0)
JWT_INTRODUCED = Version(19, 0)


@dataclass(frozen=True, slots=True)
class JobTokenScope:
    """The scope of one project: the inbound limit and who is let in, by id in the order of addition."""

    inbound_enabled: bool
    projects: tuple[int, ...] = ()
    groups: tuple[int, ...] = ()


class JobTokenScopes(Behaviour):
    """The job token scopes of all projects."""

    name = "job_token_scope"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.scopes: Table[int, JobTokenScope] = Table(service.store)

    def of(self, project: Project) -> JobTokenScope:
        """Return the scope of a project, also when nobody ever changed it."""
        known = self.scopes.get(project.id)
        return JobTokenScope(self.service.choices.inbound_enabled_initially) if known is None else known

    def settings(self, project: Project) -> Json:
        """Present the job token scope settings.

        Specification: Resources and their fields > Job token scope settings.
        """
        choices = self.service.choices
        shown: Json = {"inbound_enabled": self.of(project).inbound_enabled}
        if self.service.version < OUTBOUND_PLANNED_FOR_REMOVAL or choices.outbound_enabled_from_18_0:
            shown["outbound_enabled"] = choices.outbound_enabled
        return shown

    def limit_inbound(self, project: Project, *, enabled: bool) -> None:
        """Switch the inbound limit. Raise RejectedError when the instance forbids switching it off."""
        choices = self.service.choices
        enforced = choices.inbound_limit_enforced and self.service.version >= OUTBOUND_PLANNED_FOR_REMOVAL
        if enforced and not enabled:
            raise RejectedError("The job token allowlist is enforced for the instance.")
        scope = replace(self.of(project), inbound_enabled=enabled)
        if choices.allowlist_lost_when_limit_off and not enabled:
            scope = replace(scope, projects=(), groups=())
        self.scopes[project.id] = scope

    def projects(self, project: Project) -> list[Project]:
        """Return the projects of the allowlist."""
        known = self.service.identities.projects
        numbers = self.of(project).projects
        listed = [known[number] for number in numbers if number in known]
        if self.service.choices.project_in_own_allowlist and project.id not in numbers:
            listed.insert(0, project)
        return listed

    def groups(self, project: Project) -> list[Group]:
        """Return the groups of the allowlist."""
        known = self.service.identities.groups
        return [known[number] for number in self.of(project).groups if number in known]

    def add_project(self, project: Project, target: Project) -> bool:
        """
        Let a project in, and return whether it was not before.

        Raise RepeatedError when it already is and the choices refuse that.
        """
        scope = self.of(project)
        if target.id in scope.projects:
            self._repeated(self.service.choices.repeated_addition, "Target project is already listed")
            return False
        self.scopes[project.id] = replace(scope, projects=(*scope.projects, target.id))
        return True

    def add_group(self, project: Project, target: Group) -> bool:
        """
        Let a group in, and return whether it was not before.

        Raise RepeatedError when it already is and the choices refuse that.
        """
        scope = self.of(project)
        if target.id in scope.groups:
            self._repeated(self.service.choices.repeated_addition, "Target group is already listed")
            return False
        self.scopes[project.id] = replace(scope, groups=(*scope.groups, target.id))
        return True

    def remove_project(self, project: Project, target: Project) -> None:
        """Let a project in no longer. Raise RepeatedError when it was not and the choices refuse that."""
        scope = self.of(project)
        if target.id not in scope.projects:
            return self._repeated(self.service.choices.absent_removal, "Target project is not listed")
        remaining = tuple(number for number in scope.projects if number != target.id)
        self.scopes[project.id] = replace(scope, projects=remaining)
        return None

    def remove_group(self, project: Project, target: Group) -> None:
        """Let a group in no longer. Raise RepeatedError when it was not and the choices refuse that."""
        scope = self.of(project)
        if target.id not in scope.groups:
            return self._repeated(self.service.choices.absent_removal, "Target group is not listed")
        remaining = tuple(number for number in scope.groups if number != target.id)
        self.scopes[project.id] = replace(scope, groups=remaining)
        return None

    def target_project(self, number: int, caller: User | None = None) -> Project:
        """Find a target project by id. Raise NotFoundError, or HiddenError when the caller may not see it."""
        target = self.service.identities.projects.get(number)
        if target is None:
            raise not_found("Target Project")
        if caller and self._must_see() and not self.service.identities.can_see(caller, target):
            raise hidden("Target Project")
        return target

    def target_group(self, number: int, caller: User | None = None) -> Group:
        """Find a target group by id. Raise NotFoundError, or HiddenError when the caller may not see it."""
        target = self.service.identities.groups.get(number)
        if target is None or target.personal:
            raise not_found("Target Group")
        if caller and self._must_see() and not self.service.identities.can_see(caller, target):
            raise hidden("Target Group")
        return target

    def job_token(self, project: Project) -> str:
        """Return the token that jobs of a project carry; nothing but its form depends on the version.

        Specification: Versioning, row 19.0.
        """
        secret = self.service.identities.secret(f"job token {project.id}")
        if self.service.version < JWT_INTRODUCED:
            return f"job-{secret[:20]}"
        claims = {"iss": self.service.choices.web_url, "sub": f"job_of_project_{project.id}"}
        signed = b".".join(_base64url(orjson.dumps(part)) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
        signature = hmac.digest(secret.encode(), signed, hashlib.sha256)
        return b".".join((signed, _base64url(signature))).decode()

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Give the main project a job, whose token is known."""
        project = self.service.identities.projects[world.one("project").id]
        return {"job_token": Fixture(project.id, None, {"token": self.job_token(project)})}

    def present_group(self, group: Group) -> Json:
        """Present an allowlist group entry."""
        return {"id": group.id, "web_url": self.service.present.group_url(group), "name": group.name}

    def _must_see(self) -> bool:
        return self.service.choices.target_must_be_visible

    def _repeated(self, choice: Repeat, message: str) -> None:
        if choice is Repeat.REFUSE:
            raise RepeatedError(message)


def _base64url(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def _read_settings(request: Request) -> Response:
    return ok(request.area(JobTokenScopes).settings(request.project))


def _change_settings(request: Request) -> Response:
    enabled = request.parameters.boolean("enabled")
    request.area(JobTokenScopes).limit_inbound(request.project, enabled=enabled)
    return no_content()


def _list_projects(request: Request) -> Response:
    present = request.service.present
    projects = request.area(JobTokenScopes).projects(request.project)
    return request.collection(projects, present.limited_project, present.limited_project_text)


def _list_groups(request: Request) -> Response:
    scopes = request.area(JobTokenScopes)
    return request.collection(scopes.groups(request.project), scopes.present_group)


def _added(result: Json, request: Request, *, is_new: bool) -> Response:
    """Answer an addition with its result; one that changed nothing as the choices say."""
    code = request.choices.repeated_addition_code
    if is_new or code == HTTPStatus.CREATED:
        return created(result)
    return no_content() if code == HTTPStatus.NO_CONTENT else ok(result, code)


def _add_project(request: Request) -> Response:
    scopes = request.area(JobTokenScopes)
    target = scopes.target_project(request.parameters.integer("target_project_id"), request.caller)
    is_new = scopes.add_project(request.project, target)
    return _added({"source_project_id": request.project.id, "target_project_id": target.id}, request, is_new=is_new)


def _add_group(request: Request) -> Response:
    scopes = request.area(JobTokenScopes)
    target = scopes.target_group(request.parameters.integer("target_group_id"), request.caller)
    is_new = scopes.add_group(request.project, target)
    return _added({"source_project_id": request.project.id, "target_group_id": target.id}, request, is_new=is_new)


def _remove_project(request: Request) -> Response:
    scopes = request.area(JobTokenScopes)
    scopes.remove_project(request.project, scopes.target_project(request.path_id("target_project_id")))
    return no_content()


def _remove_group(request: Request) -> Response:
    scopes = request.area(JobTokenScopes)
    scopes.remove_group(request.project, scopes.target_group(request.path_id("target_group_id")))
    return no_content()


_SCOPE = "/projects/:id/job_token_scope"
_route = partial(Route, subject=Kind.PROJECT, least_role=Role.MAINTAINER, introduced=INTRODUCED)
_list = partial(_route, paginated=INTRODUCED)

AREA = Area(
    JobTokenScopes,
    (
        _route("GET", _SCOPE, _read_settings),
        _route("PATCH", _SCOPE, _change_settings),
        _list("GET", f"{_SCOPE}/allowlist", _list_projects),
        _route("POST", f"{_SCOPE}/allowlist", _add_project),
        _route("DELETE", f"{_SCOPE}/allowlist/:target_project_id", _remove_project),
        _list("GET", f"{_SCOPE}/groups_allowlist", _list_groups),
        _route("POST", f"{_SCOPE}/groups_allowlist", _add_group),
        _route("DELETE", f"{_SCOPE}/groups_allowlist/:target_group_id", _remove_group),
    ),
)
