"""Several calls at the same time, many within a short time, and times without any."""

from __future__ import annotations

import time
from threading import Barrier
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.suite.context import current_run
from conformance.suite.expectations import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.suite.expectations import Caller

_AT_ONCE = 16
_WAIT_SECONDS = 10

T = TypeVar("T")

#: How time passes. Whoever serves the target and owns its clock puts another way in its place.
let_pass: Callable[[float], None] = time.sleep


def send_load(caller: Caller, path: str, body: Any, *, count: int = 1) -> list[Answer]:
    """
    POST the same body `count` times, several at once, and return all answers.

    A 429 is an answer here like any other: nothing waits for the target to have time again.
    """
    current_run().require_allowed("POST", f"POST {path}")

    def once(_: int) -> Answer:
        return Answer(current_run().client.send(caller.actor, "POST", path, json_body=body, patient=False))

    with current_run().threads(min(count, _AT_ONCE)) as pool:
        return list(pool.map(once, range(count)))


def idle(seconds: float) -> None:
    """Call nothing for as long as a window of time lasts that the specification speaks of."""
    let_pass(seconds)


def at_once(acts: Sequence[Callable[[], T]]) -> list[T]:
    """
    Do several things at the same time, each on a connection of its own, and return what came of each.

    They wait for each other before they begin, so that none is answered before the last is sent.
    """
    together = Barrier(len(acts))

    def begin(act: Callable[[], T]) -> T:
        together.wait(_WAIT_SECONDS)
        return act()

    with current_run().threads(len(acts)) as pool:
        return list(pool.map(begin, acts))
