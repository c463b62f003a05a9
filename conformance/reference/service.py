"""The service as one object: version, choices, memory, and the behaviour of every area."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from conformance.reference.access import Access
from conformance.reference.area import Behaviour
from conformance.reference.areas import AREAS
from conformance.reference.choices import Choices
from conformance.reference.clock import Clock
from conformance.reference.identity import Identities
from conformance.reference.planning import Planning
from conformance.reference.presenters import Presenter
from conformance.reference.repositories import Repositories
from conformance.reference.routing import Routes
from conformance.reference.store import Store
from conformance.reference.versions import DEFAULT_VERSION, Version, supported
from conformance.reference.world import World, build_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference.app import LogEntry
    from conformance.reference.areas.administration import Administration
    from conformance.reference.areas.approval_rules import ApprovalRules
    from conformance.reference.areas.approval_settings import ApprovalSettings
    from conformance.reference.areas.audit_events import AuditEvents
    from conformance.reference.areas.code_completion import CodeCompletion
    from conformance.reference.areas.group_approval_rules import GroupApprovalRules
    from conformance.reference.areas.group_relations_export import GroupRelationsExports
    from conformance.reference.areas.integrations import Integrations
    from conformance.reference.areas.job_token_scope import JobTokenScopes
    from conformance.reference.areas.merge_request_approval_rules import MergeRequestApprovalRules
    from conformance.reference.areas.merge_request_approvals import MergeRequestApprovals
    from conformance.reference.areas.meta import Meta
    from conformance.reference.areas.notes import Notes
    from conformance.reference.areas.project_approval_configuration import ProjectApprovalConfigurations
    from conformance.reference.areas.project_approval_rules import ProjectApprovalRules
    from conformance.reference.areas.project_content import ProjectContent
    from conformance.reference.areas.registration import Registration
    from conformance.reference.areas.subscriptions import Subscriptions
    from conformance.reference.http import Request, Response
    from conformance.reference.provisioning.members import Members
    from conformance.reference.provisioning.merge_requests import MergeRequests
    from conformance.reference.provisioning.people import People
    from conformance.reference.provisioning.places import Places
    from conformance.reference.provisioning.sources import Sources
    from conformance.reference.provisioning.tokens import AccessTokens
    from conformance.reference.routing import Route

    Transformer = Callable[[Route, Request, Response], Response]

B = TypeVar("B", bound=Behaviour)


class Service:
    """Everything the service is, apart from HTTP.

    Behaviour is methods of the objects held here, looked up on each call, so one service can be altered
    without touching another: replace a method of an area, of `access` or of `present`, change a route, or
    append to `transformers`, which see and may replace the response of every routed request.
    """

    # The areas' objects, for readers and type checkers; `__init__` sets whatever AREAS holds.
    meta: Meta
    job_token_scope: JobTokenScopes
    administration: Administration
    audit_events: AuditEvents
    notes: Notes
    project_content: ProjectContent
    registration: Registration
    subscriptions: Subscriptions
    people: People
    access_tokens: AccessTokens
    places: Places
    members: Members
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

    def __init__(self, version: Version, choices: Choices, seed: int = 0, clock: Clock | None = None) -> None:
        self.version = version
        self.choices = choices
        self.seed = seed
        self.clock = clock or Clock()
        self.store = Store(choices.first_id)
        self.identities = Identities(self.store, self.clock, seed)
        self.repositories = Repositories(self.store, self.clock, self.identities)
        self.planning = Planning(self.store)
        self.present = Presenter(self)
        self.access = Access(self)
        for area in AREAS:
            setattr(self, area.behaviour.name, area.behaviour(self))
        self.routes = Routes((route for area in AREAS for route in area.routes), version)
        self.transformers: list[Transformer] = []
        self.request_log: Callable[[LogEntry], None] | None = None
        self.world = World()
        self._beginning = self.store.snapshot()

    def area(self, kind: type[B]) -> B:
        """Return the object of an area, as it is now, by its class."""
        found: B = getattr(self, kind.name)
        return found

    def settle(self, world: World) -> None:
        """Let every area add its part to a seeded world, and remember this state as the beginning."""
        self.world = world
        for area in AREAS:
            world.fixtures.update(self.area(area.behaviour).seed(world))
        self._beginning = self.store.snapshot()

    def reset(self) -> None:
        """Make the memory as it was when the world had been seeded."""
        self.store.restore(self._beginning)


def create_service(
    version: str | Version = DEFAULT_VERSION,
    choices: Choices | None = None,
    seed: int = 0,
    clock: Clock | None = None,
    *,
    sets_aside: int = 1,
) -> Service:
    """
    Make a service with the seeded world, and several sets of things set aside for drawn calls if wanted.

    Raise UnknownVersionError for a version it cannot play.
    """
    service = Service(supported(version), choices or Choices(), seed, clock)
    service.settle(build_world(service, sets_aside=sets_aside))
    return service
