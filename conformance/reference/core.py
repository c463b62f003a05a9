"""What every area of the service can use: the memory, who may do what, how records look, and the other areas."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from conformance.reference.access import Access
from conformance.reference.foundation import Foundation
from conformance.reference.presenters import Presenter
from conformance.reference.world import World

if TYPE_CHECKING:
    from conformance.reference.choices import Choices
    from conformance.reference.clock import Clock
    from conformance.reference.versions import Version


class Named(Protocol):
    """A class whose one object a service holds as the attribute of that name."""

    name: ClassVar[str]


N = TypeVar("N", bound=Named)


class Core(Foundation):
    """A service as its areas see it. They find each other by class, so none has to know the service as a whole."""

    def __init__(self, version: Version, choices: Choices, clock: Clock | None = None) -> None:
        super().__init__(version, choices, clock)
        self.present = Presenter(self)
        self.access = Access(self)
        self.world = World()

    def area(self, kind: type[N]) -> N:
        """Return the object of an area, as it is now, by its class."""
        found: N = getattr(self, kind.name)
        return found
