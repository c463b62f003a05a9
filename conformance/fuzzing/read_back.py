"""Read your writes: what a served write was sent is what the resource then holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.suite.context import Violation
from conformance.suite.expectations import Answer, must

if TYPE_CHECKING:
    from conformance.suite.arrange import Arranged, Prepared, ReadBack


def must_be_stored(arranged: Arranged, call: Prepared, answer: Answer) -> None:
    """
    Read what a served write changed, as the area's keeper, and expect what was sent in it.

    A write that shows nowhere is left alone. Raise Violation when the resource holds something else, Unmet when it
    cannot be read.
    """
    read_back = arranged.request_example.read_back
    if read_back is None or not isinstance(call.body, dict) or not shown_by(read_back, call.body):
        return
    path = read_back.path(call, answer)
    for sent, shown in read_back.lists.items():
        if sent in call.body:
            arranged.keeper.list(path).must_contain(**{shown: call.body[sent]})
    wanted = {shown: call.body[sent] for sent, shown in read_back.shows.items() if sent in call.body}
    if wanted:
        found = arranged.keeper.get(path).given_served()
        try:
            found.must_hold(**wanted)
        except Violation as violation:
            raise Violation(violation.expected, violation.actual, answer.exchange, found.exchange) from violation
    must(True, "what was sent", "what was sent")


def shown_by(read_back: ReadBack, body: dict[str, Any]) -> bool:
    """Tell whether anything that a body sends shows when the resource is read."""
    return bool(body.keys() & {*read_back.shows, *read_back.lists})
