"""The reference implementation of the service: in memory, at every version, with every legal choice.

It is written from the specification alone and shares nothing with the contract that it is held against.
"""

from __future__ import annotations

from .choices import Choices
from .server import EmbeddedServer
from .service import Service, create_service
from .versions import SUPPORTED_VERSIONS, UnknownVersionError, Version
from .world import ActorRecord, Fixture, World

__all__ = [
    "SUPPORTED_VERSIONS",
    "ActorRecord",
    "Choices",
    "EmbeddedServer",
    "Fixture",
    "Service",
    "UnknownVersionError",
    "Version",
    "World",
    "create_service",
]
