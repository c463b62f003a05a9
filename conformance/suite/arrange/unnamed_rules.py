"""Updates of approval rules that send no approvers, where a service may then have a rule that names nobody.

Whether lists that an update does not send are emptied is open, and so is whether a rule may name nobody: such an update
may be refused, or make the rule the one for any approver, which may have a name of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.suite.arrange.reviews import essences, naming
from conformance.suite.expectations import Path, given

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.suite.expectations import Answer, Caller

_FOR_ANYBODY = "any_approver"


@dataclass(frozen=True)
class ScalarUpdate:
    """An update of a rule's name or number alone, and what shows whether these are stored."""

    alone: Answer
    """The answer to the update that sent nothing else."""
    telling: Answer
    """The same answer, or that to the same update with an approver, if the first left nobody in the rule."""

    @property
    def left_nobody(self) -> bool:
        """Whether the update left, or would have left, a rule that names nobody."""
        return self.telling is not self.alone

    def given_owed(self) -> None:
        """Go on only if the update alone is owed: not if it was refused because the rule would name nobody."""
        reason = "an update without approvers is refused like one that removes them all"
        given(self.alone.is_served or not self.left_nobody, reason)


def update_alone(writer: Caller, rule: Path, change: Mapping[str, Any]) -> ScalarUpdate:
    """Update a rule's name or number alone; if that leaves nobody in it, do it again and name a member.

    Inconclusive if it was served, and the rule for any approver that it left takes no approver back.
    """
    alone, named = writer.put(rule, change), naming(writer)
    if not named or not leaves_nobody(writer, rule, change, alone):
        return ScalarUpdate(alone, alone)
    again = writer.put(rule, {**change, **named})
    given(again.is_served or not alone.is_served, "a rule that an update left without approvers takes none back")
    return ScalarUpdate(alone, again if again.is_served else alone)


def leaves_nobody(writer: Caller, rule: Path, change: Mapping[str, Any], answer: Answer) -> bool:
    """Tell whether an update without lists left nobody in a rule, or was refused as one that removes everybody is."""
    if not answer.exchange.is_refusal:
        return is_for_anybody(answer.json if answer.is_served else None)
    rules, _, number = rule.rpartition("/")
    known = essences(writer, Path(rules)).items()
    emptied = writer.put(rule, {**change, "user_ids": [], "group_ids": []})
    for before in (content for one, content in known if emptied.is_served and str(one) == number):
        # It was refused for another reason, such as a number that its approvers do not reach: they have to stay.
        values = {name: before[name] for name in ("name", "approvals_required")}
        writer.put(rule, {**values, "user_ids": before["users"], "group_ids": before["groups"]})
    return emptied.exchange.is_refusal


def is_for_anybody(rule: Any) -> bool:
    """Tell whether a rule is the one for any approver, whose name the service may choose."""
    return isinstance(rule, dict) and rule.get("rule_type") == _FOR_ANYBODY
