"""How approval works in a project, apart from its rules.

Specification: Endpoints > Project approval configuration.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING

from conformance.reference.area import Area, Behaviour
from conformance.reference.areas.approval_rules import ApprovalRules, answer
from conformance.reference.areas.approval_settings import ApprovalSettings, Setting
from conformance.reference.choices import Unfit
from conformance.reference.errors import NoRouteError, RejectedError
from conformance.reference.http import Route, ok
from conformance.reference.identity import Kind, Role
from conformance.reference.store import Table
from conformance.reference.versions import Version

if TYPE_CHECKING:
    from conformance.reference.core import Core
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Project, User
    from conformance.reference.parameters import Parameters
    from conformance.reference.presenters import Json

CHANGING_REMOVED = Version(16, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectApprovalConfiguration:
    """The configuration of one project, under the names that the specification gives its fields."""

    approvals_before_merge: int = 0
    reset_approvals_on_push: bool = True
    selective_code_owner_removals: bool = False
    disable_overriding_approvers_per_merge_request: bool = False
    merge_requests_author_approval: bool = False
    merge_requests_disable_committers_approval: bool = False
    require_password_to_approve: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationChange:
    """What a caller wants to change. None: as it is."""

    approvals_before_merge: int | None = None
    reset_approvals_on_push: bool | None = None
    selective_code_owner_removals: bool | None = None
    disable_overriding_approvers_per_merge_request: bool | None = None
    merge_requests_author_approval: bool | None = None
    merge_requests_disable_committers_approval: bool | None = None
    require_password_to_approve: bool | None = None

    def on(self, before: ProjectApprovalConfiguration) -> ProjectApprovalConfiguration:
        """Return a configuration with this change made."""
        changes = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(before, **{name: value for name, value in changes.items() if value is not None})


@cache  # records are never changed, and there are eight of these
def _initial(*flags: bool) -> ProjectApprovalConfiguration:
    reset, authors, committers_barred = flags
    return ProjectApprovalConfiguration(
        reset_approvals_on_push=reset,
        merge_requests_author_approval=authors,
        merge_requests_disable_committers_approval=committers_barred,
    )


class ProjectApprovalConfigurations(Behaviour):
    """The approval configurations of all projects."""

    name = "project_approval_configurations"

    def __init__(self, service: Core) -> None:
        super().__init__(service)
        self.configurations: Table[int, ProjectApprovalConfiguration] = Table(service.store)

    def configuration(self, project: Project) -> ProjectApprovalConfiguration:
        """Return the configuration of a project, also when nobody ever changed it."""
        own = self.own_configuration(project)
        approval = self.author_approval(project, own)
        if approval == own.merge_requests_author_approval:
            return own
        return replace(own, merge_requests_author_approval=approval)

    def own_configuration(self, project: Project) -> ProjectApprovalConfiguration:
        """Return what was set here, without regard to the approval settings."""
        known = self.configurations.get(project.id)
        return self.initial_configuration() if known is None else known

    def author_approval(self, project: Project, own: ProjectApprovalConfiguration) -> bool:
        """Say whether authors may approve: here or in the approval settings, if the choices make these one."""
        settings = self.shared_settings()
        shared = settings.stored(project, Setting.ALLOW_AUTHOR_APPROVAL) if settings else None
        return own.merge_requests_author_approval if shared is None else shared

    def shared_settings(self) -> ApprovalSettings | None:
        """Return the approval settings if author approval is one setting with theirs."""
        if not self.service.choices.author_approval_is_one_setting:
            return None
        # A service may be put together without the settings.
        settings: ApprovalSettings | None = getattr(self.service, ApprovalSettings.name, None)
        return settings

    def initial_configuration(self) -> ProjectApprovalConfiguration:
        """Return what projects begin with."""
        choices = self.service.choices
        return _initial(
            choices.reset_approvals_initially, choices.author_approval_initially, choices.committers_barred_initially
        )

    def change_configuration(self, project: Project, change: ConfigurationChange) -> ProjectApprovalConfiguration:
        """Change what the caller sent and keep the rest. Raise RejectedError when that cannot be."""
        changed = self.without_conflict(change.on(self.configuration(project)))
        if changed.approvals_before_merge < 0:
            raise RejectedError("must not be negative", parameter="approvals_before_merge")
        settings = self.shared_settings()
        if settings is not None and change.merge_requests_author_approval is not None:
            settings.change(project, {Setting.ALLOW_AUTHOR_APPROVAL: change.merge_requests_author_approval})
        self.configurations[project.id] = changed
        return self.configuration(project)

    def without_conflict(self, wanted: ProjectApprovalConfiguration) -> ProjectApprovalConfiguration:
        """Never let code owner removals be selective while pushes reset all approvals.

        Raise RejectedError, or switch the former off when the choices say so.
        """
        if not (wanted.selective_code_owner_removals and wanted.reset_approvals_on_push):
            return wanted
        if self.service.choices.conflicting_removals is Unfit.REFUSE:
            raise RejectedError(
                "can be enabled only when reset_approvals_on_push is disabled",
                parameter="selective_code_owner_removals",
            )
        return replace(wanted, selective_code_owner_removals=False)

    def require_readable(self) -> None:
        """Raise NoRouteError when reading went away together with changing."""
        later = self.service.version >= CHANGING_REMOVED
        if later and not self.service.choices.configuration_read_from_16_0:
            raise NoRouteError

    def require_writer(self, caller: User, project: Project) -> None:
        """Require that a user may change the configuration of a project. Raise ForbiddenError."""
        role = Role(self.service.choices.configuration_writer)
        self.service.access.require_role(caller, project, role)

    def present(self, configuration: ProjectApprovalConfiguration) -> Json:
        """Present the configuration to readers: approvers are always empty, as rules name them."""
        return {"approvers": [], "approver_groups": [], **self.present_changed(configuration)}

    def present_changed(self, configuration: ProjectApprovalConfiguration) -> Json:
        """Present the configuration as the answer to a change, which has no approvers."""
        return asdict(configuration)


def _read(request: Request) -> Response:
    configurations = request.area(ProjectApprovalConfigurations)
    configurations.require_readable()
    request.area(ApprovalRules).require_reader(request.caller, request.project)
    return ok(configurations.present(configurations.configuration(request.project)))


def _change(request: Request) -> Response:
    configurations = request.area(ProjectApprovalConfigurations)
    configurations.require_writer(request.caller, request.project)
    changed = configurations.change_configuration(request.project, _wanted(request.parameters))
    return answer(configurations.present_changed(changed), request.choices.created_code)


def _wanted(parameters: Parameters) -> ConfigurationChange:
    flag = parameters.optional_boolean
    return ConfigurationChange(
        approvals_before_merge=parameters.optional_integer("approvals_before_merge"),
        reset_approvals_on_push=flag("reset_approvals_on_push"),
        selective_code_owner_removals=flag("selective_code_owner_removals"),
        disable_overriding_approvers_per_merge_request=flag("disable_overriding_approvers_per_merge_request"),
        merge_requests_author_approval=flag("merge_requests_author_approval"),
        merge_requests_disable_committers_approval=flag("merge_requests_disable_committers_approval"),
        require_password_to_approve=flag("require_password_to_approve"),
    )


_route = partial(Route, subject=Kind.PROJECT)

AREA = Area(
    ProjectApprovalConfigurations,
    (
        _route("GET", "/projects/:id/approvals", _read),
        _route("POST", "/projects/:id/approvals", _change, removed=CHANGING_REMOVED),
    ),
)
