"""The text sets no bounds to the number of approvals: if a larger number is refused, the call is tried with 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.http.bodies import json_in
from conformance.results.record import Reason
from conformance.suite.context import Unmet, current_run

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange

NUMBER = "approvals_required"
_FEWEST = 1
#: Statuses that refuse a value which a service does not accept.
_REFUSED = frozenset({400, 409, 422})
_IN_RULES = "/approval_rules"


def require_number_to_be_taken(exchange: Exchange) -> None:
    """Raise Unmet when a rule was refused only for its number of approvals, because the text sets no bounds to that."""
    call, wanted = exchange.call, json_in(exchange.call.body or b"")
    number = wanted.get(NUMBER) if isinstance(wanted, dict) else None
    if (
        exchange.status not in _REFUSED
        or not isinstance(number, int)
        or number <= _FEWEST
        or _IN_RULES not in call.path
    ):
        return
    with_fewer = _sent_again(exchange, {**wanted, NUMBER: _FEWEST})
    # If it is refused only now and then, the number is not the reason.
    if with_fewer.is_success and _sent_again(exchange, wanted).status in _REFUSED:
        raise Unmet(Reason.PRECONDITION, f"a rule for {number} approvals is refused, and one for 1 is not: left open")


def _sent_again(exchange: Exchange, body: dict[str, Any]) -> Exchange:
    """Send a call with another body, and remove what it makes."""
    client, call = current_run().client, exchange.call
    answer = client.send(call.actor, call.method, call.path, json_body=body)
    made = answer.served_object.get("id")
    if call.method == "POST" and made is not None:
        client.send(call.actor, "DELETE", f"{call.path}/{made}")
    return answer
