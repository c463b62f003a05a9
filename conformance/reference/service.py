"""The service as one object: its core, and the behaviour of every area. A new area is one import and two lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.reference.areas import (
    approval_rules,
    approval_settings,
    audit_events,
    code_completion,
    group_approval_rules,
    group_relations_export,
    integrations,
    job_token_scope,
    member_roles,
    merge_request_approval_rules,
    merge_request_approvals,
    meta,
    project_approval_configuration,
    project_approval_rules,
    project_content,
    registration,
)
from conformance.reference.choices import Choices
from conformance.reference.core import Core
from conformance.reference.identity import NewUser
from conformance.reference.provisioning import (
    members,
    merge_requests,
    people,
    places,
    plans,
    sources,
    tokens,
    variables,
)
from conformance.reference.routing import Routes
from conformance.reference.versions import DEFAULT_VERSION, Version, supported
from conformance.reference.world import ActorRecord, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from conformance.reference.areas.approval_rules import ApprovalRules
    from conformance.reference.areas.approval_settings import ApprovalSettings
    from conformance.reference.areas.audit_events import AuditEvents
    from conformance.reference.areas.code_completion import CodeCompletion
    from conformance.reference.areas.group_approval_rules import GroupApprovalRules
    from conformance.reference.areas.group_relations_export import GroupRelationsExports
    from conformance.reference.areas.integrations import Integrations
    from conformance.reference.areas.job_token_scope import JobTokenScopes
    from conformance.reference.areas.member_roles import MemberRoles
    from conformance.reference.areas.merge_request_approval_rules import MergeRequestApprovalRules
    from conformance.reference.areas.merge_request_approvals import MergeRequestApprovals
    from conformance.reference.areas.meta import Meta
    from conformance.reference.areas.project_approval_configuration import ProjectApprovalConfigurations
    from conformance.reference.areas.project_approval_rules import ProjectApprovalRules
    from conformance.reference.areas.project_content import ProjectContent
    from conformance.reference.areas.registration import Registration
    from conformance.reference.clock import Clock
    from conformance.reference.http import Request, Response, Route
    from conformance.reference.provisioning.members import Members
    from conformance.reference.provisioning.merge_requests import MergeRequests
    from conformance.reference.provisioning.people import People
    from conformance.reference.provisioning.places import Places
    from conformance.reference.provisioning.plans import Plans
    from conformance.reference.provisioning.sources import Sources
    from conformance.reference.provisioning.tokens import AccessTokens
    from conformance.reference.provisioning.variables import Variables
    from conformance.reference.store import Snapshot

    Transformer = Callable[[Route, Request, Response], Response]

AREAS = (
    meta.AREA,
    job_token_scope.AREA,
    member_roles.AREA,
    audit_events.AREA,
    project_content.AREA,
    registration.AREA,
    people.AREA,
    tokens.AREA,
    places.AREA,
    plans.AREA,
    members.AREA,
    variables.AREA,
    sources.AREA,
    merge_requests.AREA,
    approval_rules.AREA,
    group_approval_rules.AREA,
    project_approval_configuration.AREA,
    project_approval_rules.AREA,
    merge_request_approval_rules.AREA,
    merge_request_approvals.AREA,
    approval_settings.AREA,
    code_completion.AREA,
    group_relations_export.AREA,
    integrations.AREA,
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One answered request, for a log. `caller` is the username, or empty."""

    method: str
    path: str
    status: int
    seconds: float
    caller: str


class Service(Core):
    """Everything the service is, apart from HTTP.

    Behaviour is methods of the objects held here, looked up on each call, so one service can be altered
    without touching another: replace a method of an area, of `access` or of `present`, change a route, or
    append to `transformers`, which see and may replace the response of every routed request.
    """

    # The areas' objects, for readers and type checkers; `__init__` sets whatever AREAS holds.
    meta: Meta
    job_token_scope: JobTokenScopes
    member_roles: MemberRoles
    audit_events: AuditEvents
    project_content: ProjectContent
    registration: Registration
    people: People
    access_tokens: AccessTokens
    places: Places
    plans: Plans
    members: Members
    variables: Variables
    sources: Sources
    merge_requests: MergeRequests
    approval_rules: ApprovalRules
    group_approval_rules: GroupApprovalRules
    project_approval_configurations: ProjectApprovalConfigurations
    project_approval_rules: ProjectApprovalRules
    merge_request_approval_rules: MergeRequestApprovalRules
    merge_request_approvals: MergeRequestApprovals
    approval_settings: ApprovalSettings
    code_completion: CodeCompletion
    group_relations_export: GroupRelationsExports
    integrations: Integrations

    def __init__(self, version: Version, choices: Choices, clock: Clock | None = None) -> None:
        super().__init__(version, choices, clock)
        for area in AREAS:
            setattr(self, area.behaviour.name, area.behaviour(self))
        self.routes = Routes((route for area in AREAS for route in area.routes), version)
        self.transformers: list[Transformer] = []
        self.request_log: Callable[[LogEntry], None] | None = None
        # What happens between reading a request and acting on it: nothing, unless callers are to meet there.
        self.interruption: Callable[[Request], Awaitable[None]] | None = None
        self.worlds: list[World] = []
        self.administrator = self._begin()
        self._beginning = self.store.snapshot()

    def _begin(self) -> ActorRecord:
        """Make the administrator whom an installation begins with."""
        password = self.identities.secret("password root")
        root = self.identities.create_user(
            NewUser(username="root", name="Administrator", password=password, admin=True)
        )
        return ActorRecord(root.id, root.username, self.identities.issue_token(root).value, password, "admin")

    def settle(self, *worlds: World) -> None:
        """Let every area add to prepared worlds what no call makes, and remember this state as the beginning."""
        for world in worlds:
            for area in AREAS:
                world.fixtures.update(self.area(area.behaviour).seed(world))
        self.begin_with(self.store.snapshot(), worlds)

    def begin_with(self, beginning: Snapshot, worlds: Iterable[World]) -> None:
        """Begin as another service of the same version and choices did, with worlds that are prepared there."""
        self.worlds = [World(dict(world.actors), dict(world.fixtures)) for world in worlds]
        self.world = self.worlds[0] if self.worlds else World()
        self._beginning = beginning
        self.reset()

    @property
    def beginning(self) -> Snapshot:
        """The memory as it was when the service began."""
        return self._beginning

    def reset(self) -> None:
        """Make the memory as it was when the worlds had been prepared."""
        self.store.restore(self._beginning)


def create_service(
    version: str | Version = DEFAULT_VERSION,
    choices: Choices | None = None,
    clock: Clock | None = None,
) -> Service:
    """Make a service with nobody but its administrator. Raise UnknownVersionError for a version it cannot play."""
    return Service(supported(version), choices or Choices(), clock)
