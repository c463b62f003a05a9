"""Many calls within a short time, and times without any: what it takes to see a rate limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from conformance.suite.context import current_run
from conformance.suite.expectations import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.suite.expectations import Caller

_AT_ONCE = 16

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
