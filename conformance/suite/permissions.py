"""What a call may change in the world, according to the table of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract
from conformance.suite.expectations.words import told_number
from conformance.target.spots import Spot, where

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.contract import Operation
    from conformance.contract.side_effects import Where
    from conformance.suite.arrange.request_examples import Prepared
    from conformance.suite.expectations import Caller
    from conformance.suite.world_parts import Difference, Reading, WorldPart
    from conformance.target import Profile

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
        return bool(told_number(change.entry) == self.call.path_values.get(name, body.get(name)))

    def _inherited(self) -> set[Any]:
        """Return the names of rules of projects."""
        lists = [reading for part, reading in self.before.items() if part.kind.name == "project-rules"]
        return {rule.get("name") for reading in lists for rule in reading.entries.values()}
