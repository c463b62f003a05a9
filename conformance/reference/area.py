"""What an area module hands to the service: its behaviour and its route table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.reference.core import Core
    from conformance.reference.http import Route
    from conformance.reference.world import Fixture, World


class Behaviour:
    """The domain behaviour of one area: methods that handlers call, on one object per service.

    `name` is the attribute of the service that holds this object. Tables are made in `__init__`, where the
    other areas may not exist yet; they are looked up when a method runs.
    """

    name: ClassVar[str]

    def __init__(self, service: Core) -> None:
        self.service = service

    def seed(self, world: World) -> Mapping[str, Fixture | tuple[Fixture, ...]]:  # noqa: ARG002 - for areas
        """Add what this area needs to the seeded world, and return fixtures to be named in it."""
        return {}


@dataclass(frozen=True)
class Area:
    """An area: the class of its behaviour and its routes."""

    behaviour: type[Behaviour]
    routes: tuple[Route, ...]
