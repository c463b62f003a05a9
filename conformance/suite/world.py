"""The world as it can be read at one time, and what has changed in it since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.contract import Contract
from conformance.suite.context import current_run
from conformance.suite.expectations.words import settles
from conformance.suite.permissions import spot_in
from conformance.suite.world_parts import (
    differences_between,
    first_reading,
    last_readings,
    operations_reading,
    read_again,
    read_whole,
    world_parts,
)
from conformance.target.spots import where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.suite.arrange.request_examples import Prepared
    from conformance.suite.world_parts import Difference, Reading, WorldPart


class WorldSnapshot:
    """Everything that can be read of the world, at one time."""

    def __init__(self, readings: Mapping[WorldPart, Reading]) -> None:
        """Hold readings; see `taken`."""
        self.readings = readings

    @classmethod
    def taken(cls, *, afresh: bool, area: str = "") -> WorldSnapshot:
        """Read every part of the world once, for the parts of an area also what is near.

        Unless `afresh`, parts that an earlier look showed and no call may have changed since are not read again. Left
        out are parts that the profile does not name, that the target does not declare, or that nobody may read. A
        target that takes time to show what was written is given that time first.
        """
        run = current_run()
        _let_settle()
        known = {} if afresh else cls.known().readings
        readings: dict[WorldPart, Reading] = {}
        for kind in Contract.load().side_effects.parts.values():
            if kind.feature is not None and not run.profile.declares(kind.feature):
                continue
            for part in world_parts(kind, run.profile, readings, area):
                found = None if part in readings else known.get(part) or first_reading(part)
                if found is not None:
                    readings[part] = found
        return cls(readings)

    @classmethod
    def known(cls) -> WorldSnapshot:
        """Return what earlier looks showed and no call may have changed since."""
        return cls(dict(last_readings()))

    def renewed(self, *, about: Prepared) -> WorldSnapshot:
        """Read again what the suite may have changed since, while it made a call right."""
        table, profile, spot = Contract.load().side_effects, current_run().profile, spot_in(about)
        changed = [
            part
            for part in self.readings
            if table.is_prepared(about.operation.id, part.kind.name, where(profile, part.spot, spot))
        ]
        if changed:
            _let_settle()
        known = self.known().readings
        again = {part: known.get(part) or read_again(part, self.readings[part]) for part in changed}
        kept = {part: again.get(part, reading) for part, reading in self.readings.items()}
        return WorldSnapshot({part: reading for part, reading in kept.items() if reading is not None})

    def holds_again(self) -> None:
        """Record that all changes have been undone, so that the next look need not read everything again."""
        last, table = last_readings(), Contract.load().restoring
        stays = {restored.part for restored in table.parts if restored.add and restored.remove is None}
        for part, reading in self.readings.items():
            if part.kind.name not in stays:
                last.setdefault(part, reading)

    def of_area(self, area: str) -> WorldSnapshot:
        """Return only the parts that operations of an area read."""
        own = {
            part: reading
            for part, reading in self.readings.items()
            if any(operation.area == area for operation in operations_reading(part.kind))
        }
        return WorldSnapshot(own)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read that could be lost."""
        return not any(reading.entries for reading in self.readings.values())

    def changes(self, may: Callable[[WorldPart, Difference], bool]) -> Iterator[tuple[WorldPart, list[Difference]]]:
        """Read everything again and yield for each part the forbidden changes; an empty list if there are none.

        A part that seems to have changed is read once more, as a whole: only stable differences count. Parts that can
        no longer be read are left out.
        """
        for part, before in self.readings.items():
            found = self._forbidden(part, read_again(part, before), may)
            if found:
                found = self._steady(part, before, may)
            if found is not None:
                yield part, found

    def _steady(
        self, part: WorldPart, before: Reading, may: Callable[[WorldPart, Difference], bool]
    ) -> list[Difference] | None:
        """Return the forbidden changes of a part, once it is read whole and the target had time to settle."""

        def found() -> list[Difference] | None:
            return self._forbidden(part, read_whole(part, before), may)

        first = found()
        if first and current_run().profile.limits.settle_seconds:
            settles(lambda: not found())
            return found()
        return first

    def _forbidden(
        self, part: WorldPart, after: Reading | None, may: Callable[[WorldPart, Difference], bool]
    ) -> list[Difference] | None:
        if after is None:
            return None
        return [change for change in differences_between(self.readings[part], after) if not may(part, change)]


def _let_settle() -> None:
    """Wait if a target takes time to show what was written."""
    if current_run().profile.limits.settle_seconds:
        settles(lambda: False)
