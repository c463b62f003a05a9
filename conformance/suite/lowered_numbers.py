"""Services in which a rule requires no more approvals than it has possible approvers.

The text sets no bounds to the number of approvals. Some services refuse a number that a rule cannot reach, and some
store the largest one that it can reach. What a rule of such a service shows is compared with that number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.http.bodies import object_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.http.exchange import Exchange

#: The number, and the list of those who could give the approvals.
NUMBER, _POSSIBLE = "approvals_required", "eligible_approvers"
_REGULAR = "regular"
_IN_RULES, _WRITES = "/approval_rules", frozenset({"POST", "PUT"})
WHY = "a rule requires no more approvals here than it has possible approvers, so the number is left open"


class LoweredNumbers:
    """Observes what rules show of the numbers that they were sent with."""

    def __init__(self) -> None:
        """Begin without having seen a rule."""
        self._is_seen = False
        """Whether a number was stored as that of the possible approvers, and not as it was sent."""
        self._is_contradicted = False
        """Whether a rule showed a number that it would not show if all were lowered, and only as far as necessary."""

    @property
    def are_usual(self) -> bool:
        """Whether the service lowers all numbers that a rule cannot reach, and no others, as far as was seen."""
        return self._is_seen and not self._is_contradicted

    def see(self, exchange: Exchange) -> bool:
        """Learn from the answer to a write; tell whether it shows a number that was lowered."""
        call, rule = exchange.call, exchange.served_object
        if call.method not in _WRITES or _IN_RULES not in call.path or not rule:
            return False
        sent, shown = (_number(values.get(NUMBER)) for values in (object_in(call.body), rule))
        most = _possible(rule)
        if sent is None or shown is None or not most:
            return False
        is_lowered = sent > most and shown == most
        if _shows_all_approvers(rule):
            self._is_seen |= is_lowered
            self._is_contradicted |= shown != min(sent, most)
        return is_lowered

    def owed(self, name: str, wanted: Any, rule: Mapping[str, Any]) -> Any:
        """Return what a record must show under a name for a value that was sent."""
        number, most = _number(wanted), _possible(rule)
        if name != NUMBER or number is None or not most or not self.are_usual:
            return wanted
        lowered, shown = min(number, most), _number(rule.get(NUMBER))
        if _shows_all_approvers(rule) or shown is None:
            return lowered
        # How many approvers a rule for anybody has, and one with hidden groups, is not known.
        return shown if lowered <= shown <= number else wanted


def _possible(rule: Mapping[str, Any]) -> int:
    """Return how many could approve under a rule, as it shows them; 0 where it shows nobody."""
    found = rule.get(_POSSIBLE)
    return len(found) if isinstance(found, list) else 0


def _shows_all_approvers(rule: Mapping[str, Any]) -> bool:
    """Tell whether a rule is a regular one that has approvers of its own, and shows all of them."""
    is_regular = rule.get("rule_type") == _REGULAR and rule.get("contains_hidden_groups") is not True
    return is_regular and bool(rule.get("users") or rule.get("groups"))


def _number(value: Any) -> int | None:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return int(value) if is_whole else None
