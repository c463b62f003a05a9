"""The reference implementation of the service: in memory, at every version, with every legal choice.

It is written from the specification alone and shares nothing with the contract that it is held against.
"""

from __future__ import annotations

from conformance.reference.choices import Choices
from conformance.reference.server import EmbeddedServer
from conformance.reference.service import Service, create_service
from conformance.reference.versions import SUPPORTED_VERSIONS, UnknownVersionError, Version
from conformance.reference.world import ActorRecord, Fixture, World

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
