"""Feature flags and packages of a project, as they are listed.

Specification: Versioning, row 17.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.http import Route
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import SUPPORTED_VERSIONS, Version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project
    from conformance.reference.presenters import Json
    from conformance.reference.world import Fixture, World

FLAG_VERSION_REMOVED = Version(17, 0)
PIPELINES_REMOVED = Version(17, 0)
_FLAG_VERSION = "new_version_flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureFlag:
    """A switch that a project's users can be given."""

    project_id: int
    name: str
    created_at: datetime


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
    """The feature flags and packages of all projects, which no call makes."""

    name = "project_content"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.flags: Table[tuple[int, str], FeatureFlag] = Table(service.store)  # by project id and name
        self.packages: Table[int, Package] = Table(service.store)

    def seed(self, world: World) -> Mapping[str, Fixture]:
        """Give the main project a feature flag and two packages."""
        project, store, now = world.one("project").id, self.service.store, self.service.clock.now()
        flag = FeatureFlag(project_id=project, name="dark_mode", created_at=now)
        self.flags[project, flag.name] = flag
        for version in ("1.0.0", "1.1.0"):
            package = Package(
                id=store.next_id("packages"),
                project_id=project,
                name="toolbox",
                version=version,
                pipeline_id=store.next_id("pipelines"),
                created_at=now,
            )
            self.packages[package.id] = package
        return {}

    def flags_of(self, project: Project) -> list[FeatureFlag]:
        """Return the feature flags of a project."""
        return [flag for flag in self.flags.values() if flag.project_id == project.id]

    def packages_of(self, project: Project) -> list[Package]:
        """Return the packages of a project."""
        return [package for package in self.packages.values() if package.project_id == project.id]

    def present_flag(self, flag: FeatureFlag) -> Json:
        """Present a feature flag; its field `version` goes with 17.0."""
        shown: Json = {
            "name": flag.name,
            "active": True,
            "created_at": self.service.present.timestamp(flag.created_at),
            "strategies": [],
        }
        if self.service.version < FLAG_VERSION_REMOVED:
            shown["version"] = _FLAG_VERSION
        return shown

    def present_package(self, package: Package) -> Json:
        """Present a package in a list, which carries `pipelines` no longer from 17.0 on."""
        shown: Json = {
            "id": package.id,
            "name": package.name,
            "version": package.version,
            "package_type": "generic",
            "created_at": self.service.present.timestamp(package.created_at),
        }
        if self.service.version < PIPELINES_REMOVED:
            pipeline = {"id": package.pipeline_id, "project_id": package.project_id, "status": "success"}
            shown["pipelines"] = [pipeline]
        return shown


def _list_flags(request: Request) -> Response:
    content = request.area(ProjectContent)
    return request.collection(content.flags_of(request.project), content.present_flag)


def _list_packages(request: Request) -> Response:
    content = request.area(ProjectContent)
    return request.collection(content.packages_of(request.project), content.present_package)


_list = partial(Route, "GET", subject=Kind.PROJECT, paginated=SUPPORTED_VERSIONS.first)

AREA = Area(
    ProjectContent,
    (
        _list("/projects/:id/feature_flags", _list_flags, least_role=Role.DEVELOPER),
        _list("/projects/:id/packages", _list_packages, least_role=Role.REPORTER),
    ),
)
