"""What everything else stands on: version, choices, clock, and the memory with the records in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.reference.clock import Clock
from conformance.reference.identity import Identities
from conformance.reference.planning import Planning
from conformance.reference.repositories import Repositories
from conformance.reference.store import Store

if TYPE_CHECKING:
    from conformance.reference.choices import Choices
    from conformance.reference.versions import Version


class Foundation:
    """The version and choices of a service, its clock, and its memory; `clock` is that of the machine by default."""

    def __init__(self, version: Version, choices: Choices, clock: Clock | None = None) -> None:
        self.version = version
        self.choices = choices
        self.clock = clock or Clock()
        self.store = Store(choices.first_id)
        self.identities = Identities(self.store, self.clock)
        self.repositories = Repositories(self.store, self.clock, self.identities)
        self.planning = Planning(self.store)
