"""Read your writes: the resource has the values that a served write sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.results.record import Reason
from conformance.suite.context import Unmet, Violation

if TYPE_CHECKING:
    from conformance.suite.arrange import Arranged, Prepared, ReadBack
    from conformance.suite.expectations import Answer


def must_be_stored(arranged: Arranged, call: Prepared, answer: Answer) -> None:
    """Read the changed resource as the area's keeper, and expect the sent values in it.

    A write that shows nowhere is skipped, and so is a switch that cannot be on beside another one. Raise Violation when
    the resource has other values, Unmet when it cannot be read or is locked.
    """
    read_back = arranged.request_example.read_back
    if read_back is None or not isinstance(call.body, dict) or not shown_by(read_back, call.body):
        return
    path = read_back.path(call, answer)
    for sent, shown in read_back.lists.items():
        if sent in call.body:
            arranged.keeper.list(path).must_contain(**{shown: call.body[sent]})
    if read_back.shows.keys() & call.body.keys():
        found = arranged.keeper.get(path).given_served()
        held = found.json if isinstance(found.json, dict) else {}
        try:
            found.must_be_an(dict).must_hold(**read_back.owed(call.body, held))
        except Violation as violation:
            if read_back.is_held(arranged.keeper, arranged.place):
                raise Unmet(Reason.PRECONDITION, f"what {path} shows is locked by something else") from violation
            raise Violation(violation.expected, violation.actual, answer.exchange, found.exchange) from violation


def shown_by(read_back: ReadBack, body: dict[str, Any]) -> bool:
    """Tell whether anything in a sent body shows when the resource is read."""
    return bool(body.keys() & {*read_back.shows, *read_back.lists})
