"""The world as it can be read at one time, what has changed in it since, and what a call may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.suite.context import current_run
from conformance.suite.expectations.words import settles
from conformance.suite.world_parts import (
    differences_between,
    first_reading,
    last_readings,
    operations_reading,
    read_again,
    read_whole,
    world_parts,
)
from conformance.target.spots import Spot, where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.contract import Operation
    from conformance.contract.side_effects import Where
    from conformance.suite.arrange.request_examples import Prepared
    from conformance.suite.expectations import Caller
    from conformance.suite.world_parts import Difference, Reading, WorldPart
    from conformance.target import Profile


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


# -- what may change ---------------------------------------------------------------------------------------------------


_OURS = "conformance-"


def spot_in(call: Prepared) -> Spot | None:
    """Return the project, group or merge request that a call is about; None if it names none."""
    values = call.path_values
    level = {"projects": "project", "groups": "group"}.get(call.operation.path.split("/")[1])
    if level is None or "id" not in values:
        return None
    iid = values.get("merge_request_iid")
    return Spot(level, values["id"]) if iid is None else Spot("merge request", values["id"], iid)


def requirements_that_something_stays(operation: Operation) -> frozenset[str]:
    """Return all requirements that something stays unchanged when an operation is called."""
    return Contract.load().side_effects.requirements(operation.id, operation.area)


@dataclass(frozen=True)
class Permission:
    """What a call may change in the world, according to the table of the contract."""

    profile: Profile
    call: Prepared
    caller: Caller
    before: Mapping[WorldPart, Reading]
    """The world before the call."""

    def where(self, part: WorldPart) -> Where:
        """Return the position of a part relative to the thing that the call is about."""
        return where(self.profile, part.spot, spot_in(self.call))

    def requirement(self, part: WorldPart, declared: frozenset[str]) -> str:
        """Return the requirement that a part stays; the general one if the test does not declare the specific one."""
        operation, table = self.call.operation, Contract.load().side_effects
        found = table.requirement(operation.id, operation.area, part.kind.name, self.where(part))
        return found if found in declared else table.rest[operation.area]

    def __call__(self, part: WorldPart, change: Difference) -> bool:
        """Tell whether the call may change a part in this way."""
        table = Contract.load().side_effects
        moves = table.may_move(self.call.operation.id, part.kind.name, self.where(part))
        return any(not move.entries or any(self._names(name, part, change) for name in move.entries) for move in moves)

    def _names(self, name: str, part: WorldPart, change: Difference) -> bool:
        """Tell whether the table names an entry in this way."""
        said = change.before or change.after or {}
        body = self.call.body if isinstance(self.call.body, dict) else {}
        number = self.caller.actor.id if self.caller.actor else None
        named: dict[str, Callable[[], bool]] = {
            "new": lambda: change.before is None,
            "itself": lambda: bool(change.entry == part.spot.number),
            "caller": lambda: number is None or change.entry == number,
            "any_approver": lambda: "any_approver" in ((change.before or {}).get("rule_type"), said.get("rule_type")),
            "inherited": lambda: not str(said.get("name")).startswith(_OURS) or said.get("name") in self._inherited(),
        }
        if name in named:
            return named[name]()
        return bool(change.entry == self.call.path_values.get(name, body.get(name)))

    def _inherited(self) -> set[Any]:
        """Return the names of rules of projects."""
        lists = [reading for part, reading in self.before.items() if part.kind.name == "project-rules"]
        return {rule.get("name") for reading in lists for rule in reading.entries.values()}
