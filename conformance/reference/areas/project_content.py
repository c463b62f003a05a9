"""Feature flags and packages of a project.

Specification: Versioning, row 17.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.errors import InvalidError, RejectedError, RepeatedError, not_found
from conformance.reference.http import Route, created, no_content, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS, Version
from conformance.reference.world import Fixture

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project
    from conformance.reference.presenters import Json
    from conformance.reference.world import World

FLAG_VERSION_REMOVED = Version(17, 0)
PIPELINES_REMOVED = Version(17, 0)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_FLAG_VERSION = "new_version_flag"
_LONGEST_DESCRIPTION = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFlag:
    """A switch that a project's users can be given."""

    project_id: int
    name: str
    created_at: datetime
    updated_at: datetime
    description: str = ""
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package in a project's registry; `pipeline_id` is that of the pipeline which published it."""

    id: int
    project_id: int
    name: str
    version: str
    pipeline_id: int
    created_at: datetime


class ProjectContent(Behaviour):
    """The feature flags and packages of all projects."""

    name = "project_content"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.flags: Table[tuple[int, str], FeatureFlag] = Table(service.store)  # by project id and name
        self.packages: Table[int, Package] = Table(service.store)

    def seed(self, world: World) -> Mapping[str, Fixture | tuple[Fixture, ...]]:
        """Give the main project a feature flag and two packages."""
        project = self.service.identities.projects[world.one("project").id]
        self.create_flag(project, "dark_mode", "Shows the pages in dark colours", active=True)
        packages = [self._publish(project, version) for version in ("1.0.0", "1.1.0")]
        return {"package": Fixture(packages[0].id, None, {"name": packages[0].name, "project_id": project.id})}

    def flags_of(self, project: Project) -> list[FeatureFlag]:
        """Return the feature flags of a project."""
        return [flag for flag in self.flags.values() if flag.project_id == project.id]

    def flag(self, project: Project, name: str) -> FeatureFlag:
        """Find a feature flag. Raise NotFoundError."""
        flag = self.flags.get((project.id, name))
        if flag is None:
            raise not_found("Feature Flag")
        return flag

    def create_flag(self, project: Project, name: str, description: str, *, active: bool) -> FeatureFlag:
        """Create a feature flag. Raise RejectedError for a name that is none, RepeatedError for a taken one."""
        if not _NAME.fullmatch(name):
            raise RejectedError("can contain only lowercase letters, digits, '_' and '-'", parameter="name")
        if (project.id, name) in self.flags:
            raise RepeatedError("name has already been taken", parameter="name")
        now = self.service.clock.now()
        flag = FeatureFlag(
            project_id=project.id, name=name, created_at=now, updated_at=now, description=description, active=active
        )
        self.flags[project.id, name] = flag
        return flag

    def change_flag(self, flag: FeatureFlag, *, active: bool | None, description: str | None) -> FeatureFlag:
        """Change what is given of a feature flag."""
        changed = replace(
            flag,
            active=flag.active if active is None else active,
            description=flag.description if description is None else description,
            updated_at=self.service.clock.now(),
        )
        self.flags[flag.project_id, flag.name] = changed
        return changed

    def delete_flag(self, flag: FeatureFlag) -> None:
        """Delete a feature flag."""
        del self.flags[flag.project_id, flag.name]

    def present_flag(self, flag: FeatureFlag) -> Json:
        """Present a feature flag; its field `version` goes with 17.0."""
        timestamp = self.service.present.timestamp
        shown: Json = {
            "name": flag.name,
            "description": flag.description,
            "active": flag.active,
            "created_at": timestamp(flag.created_at),
            "updated_at": timestamp(flag.updated_at),
            "scopes": [],
            "strategies": [],
        }
        if self.service.version < FLAG_VERSION_REMOVED:
            shown["version"] = _FLAG_VERSION
        return shown

    def packages_of(self, project: Project) -> list[Package]:
        """Return the packages of a project."""
        return [package for package in self.packages.values() if package.project_id == project.id]

    def package(self, project: Project, number: int) -> Package:
        """Find a package. Raise NotFoundError."""
        package = self.packages.get(number)
        if package is None or package.project_id != project.id:
            raise not_found("Package")
        return package

    def delete_package(self, package: Package) -> None:
        """Delete a package."""
        del self.packages[package.id]

    def present_listed_package(self, package: Package) -> Json:
        """Present a package in a list, which carries `pipelines` no longer from 17.0 on."""
        shown = self.present_package(package)
        if self.service.version < PIPELINES_REMOVED:
            shown["pipelines"] = [self.present_pipeline(package)]
        return shown

    def present_package(self, package: Package) -> Json:
        """Present a package on its own."""
        return {
            "id": package.id,
            "name": package.name,
            "version": package.version,
            "package_type": "generic",
            "status": "default",
            "created_at": self.service.present.timestamp(package.created_at),
            "tags": [],
        }

    def present_pipeline(self, package: Package) -> Json:
        """Present the pipeline that published a package."""
        return {"id": package.pipeline_id, "project_id": package.project_id, "status": "success"}

    def _publish(self, project: Project, version: str) -> Package:
        store = self.service.store
        package = Package(
            id=store.next_id("packages"),
            project_id=project.id,
            name="toolbox",
            version=version,
            pipeline_id=store.next_id("pipelines"),
            created_at=self.service.clock.now(),
        )
        self.packages[package.id] = package
        return package


def _list_flags(request: Request) -> Response:
    content = request.area(ProjectContent)
    return request.collection(content.flags_of(request.project), content.present_flag)


def _flag(request: Request) -> FeatureFlag:
    return request.area(ProjectContent).flag(request.project, request.path["feature_flag_name"])


def _get_flag(request: Request) -> Response:
    return ok(request.area(ProjectContent).present_flag(_flag(request)))


def _create_flag(request: Request) -> Response:
    content, parameters = request.area(ProjectContent), request.parameters
    active = parameters.optional_boolean("active")
    flag = content.create_flag(
        request.project, parameters.string("name"), _description(request) or "", active=active is not False
    )
    return created(content.present_flag(flag))


def _change_flag(request: Request) -> Response:
    content, parameters = request.area(ProjectContent), request.parameters
    active, description = parameters.optional_boolean("active"), _description(request)
    return ok(content.present_flag(content.change_flag(_flag(request), active=active, description=description)))


def _delete_flag(request: Request) -> Response:
    content, flag = request.area(ProjectContent), _flag(request)
    content.delete_flag(flag)
    return ok(content.present_flag(flag))


def _description(request: Request) -> str | None:
    description = request.parameters.optional_string("description")
    if description is not None and len(description) > _LONGEST_DESCRIPTION:
        raise InvalidError("description is too long", parameter="description")
    return description


def _list_packages(request: Request) -> Response:
    content = request.area(ProjectContent)
    return request.collection(content.packages_of(request.project), content.present_listed_package)


def _package(request: Request) -> Package:
    return request.area(ProjectContent).package(request.project, request.path_id("package_id"))


def _get_package(request: Request) -> Response:
    return ok(request.area(ProjectContent).present_package(_package(request)))


def _list_pipelines(request: Request) -> Response:
    return request.collection([_package(request)], request.area(ProjectContent).present_pipeline)


def _delete_package(request: Request) -> Response:
    request.area(ProjectContent).delete_package(_package(request))
    return no_content()


_FLAGS = "/projects/:id/feature_flags"
_FLAG = f"{_FLAGS}/:feature_flag_name"
_PACKAGES = "/projects/:id/packages"
_PACKAGE = f"{_PACKAGES}/:package_id"
_developer = partial(Route, subject=Kind.PROJECT, least_role=Role.DEVELOPER)
_reporter = partial(Route, "GET", subject=Kind.PROJECT, least_role=Role.REPORTER)
_paged = SUPPORTED_VERSIONS.first

AREA = Area(
    ProjectContent,
    (
        _developer("GET", _FLAGS, _list_flags, paginated=_paged),
        _developer("POST", _FLAGS, _create_flag),
        _developer("GET", _FLAG, _get_flag),
        _developer("PUT", _FLAG, _change_flag),
        _developer("DELETE", _FLAG, _delete_flag),
        _reporter(_PACKAGES, _list_packages, paginated=_paged),
        _reporter(_PACKAGE, _get_package),
        _reporter(f"{_PACKAGE}/pipelines", _list_pipelines, paginated=_paged),
        Route("DELETE", _PACKAGE, _delete_package, subject=Kind.PROJECT, least_role=Role.MAINTAINER),
    ),
)
