"""The service as one object: version, choices, memory, and the behaviour of every area."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from .access import Access
from .area import Behaviour
from .areas import AREAS
from .choices import Choices
from .clock import Clock
from .identity import Identities
from .planning import Planning
from .presenters import Presenter
from .repositories import Repositories
from .routing import Routes
from .store import Store
from .versions import DEFAULT_VERSION, Version, supported
from .world import World, build_world

if TYPE_CHECKING:
    from collections.abc import Callable

    from .app import LogEntry
    from .areas.job_token_scope import JobTokenScopes
    from .areas.meta import Meta
    from .http import Request, Response
    from .routing import Route

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
) -> Service:
    """Make a service with the seeded world. Raise UnknownVersionError for a version it cannot play."""
    service = Service(supported(version), choices or Choices(), seed, clock)
    service.settle(build_world(service))
    return service
