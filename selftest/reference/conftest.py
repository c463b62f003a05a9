"""What the tests of the reference share: servers with a seeded world, and clients for its actors."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from conformance.reference import Choices, EmbeddedServer, Service
from conformance.target.embedded import prepared_service
from selftest.conftest import NO_AUTHORITIES
from selftest.reference.reviews import Review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass
class Served:
    """A running service."""

    service: Service
    server: EmbeddedServer
    clients: ExitStack

    def anonymous(self) -> httpx.Client:
        """Return a client without a token."""
        client = httpx.Client(base_url=f"{self.server.base_url}/api/v4", timeout=10, verify=NO_AUTHORITIES)
        return self.clients.enter_context(client)

    def acting_as(self, actor: str) -> httpx.Client:
        """Return a client with the actor's token."""
        client = self.anonymous()
        client.headers["PRIVATE-TOKEN"] = self.service.world.actors[actor].token
        return client

    def id_of(self, fixture: str) -> int:
        """Return the id of a fixture."""
        return self.service.world.one(fixture).id


@contextmanager
def running(version: str = "17.7", choices: Choices | None = None) -> Iterator[Served]:
    service = prepared_service(version, choices)
    with ExitStack() as clients, EmbeddedServer(service) as server:
        yield Served(service, server, clients)


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start services of any version and choices; they stop at the end of the test."""
    with ExitStack() as stack:
        yield lambda version="17.7", choices=None: stack.enter_context(running(version, choices))


@pytest.fixture(scope="module")
def module_server() -> Iterator[Served]:
    with running() as served:
        yield served


@pytest.fixture
def served(module_server: Served) -> Served:
    """One server for all tests of a module; its seeded world is restored before each of them."""
    module_server.service.reset()
    return module_server


@pytest.fixture
def review(served: Served) -> Review:
    """A merge request of that server."""
    return Review(served)
