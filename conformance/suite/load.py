"""Many calls within a short time, calls at the same moment, and times without any call."""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.results.record import Reason
from conformance.suite.context import NotTested, current_run
from conformance.suite.expectations import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.suite.expectations import Caller

T = TypeVar("T")

#: How often two calls are made at once: the moments in which one could overwrite the other are short.
ROUNDS = 3
_AT_ONCE = 16
_LONGEST_START = 10  # seconds until all threads are there

#: How time passes. Whoever serves the target and owns its clock puts another way in its place.
let_pass: Callable[[float], None] = time.sleep


def send_load(
    caller: Caller, path: str, *bodies: Any, count: int = 1, headers: Mapping[str, str] | None = None
) -> list[Answer]:
    """
    POST these bodies in turn, `count` times in all, several at once, and return all answers.

    A 429 is an answer here like any other: nothing waits for the target to have time again.
    """
    current_run().require_allowed("POST", f"POST {path}")

    def once(number: int) -> Answer:
        body = bodies[number % len(bodies)]
        return Answer(
            current_run().client.send(caller.actor, "POST", path, json_body=body, headers=headers, patient=False)
        )

    with current_run().threads(min(count, _AT_ONCE)) as pool:
        return list(pool.map(once, range(count)))


def at_once(*acts: Callable[[], T]) -> list[T]:
    """
    Do several things at the same moment, each in a thread of its own, and return what came of each.

    A service may answer 409 to one that is in the way of another. That one is done once more afterwards, alone: what
    was refused for its moment shows nothing.
    Raise NotTested when the operator lets calls go only one after the other.
    """
    start = Barrier(len(acts))

    def act(one: Callable[[], T]) -> T:
        start.wait(_LONGEST_START)
        return one()

    results = _in_threads(*(partial(act, one) for one in acts))
    return [one() if _is_conflict(result) else result for one, result in zip(acts, results, strict=True)]


def _is_conflict(result: object) -> bool:
    return isinstance(result, Answer) and result.status == HTTPStatus.CONFLICT


def in_turns(*acts: Callable[[], T]) -> Iterator[list[T]]:
    """
    Do several things at the same moment, again and again, each time another one in front; yield what came of each.

    Which of them reaches the target first decides what is mixed up there. Raise NotTested as `at_once` does.
    """
    for turn in range(2 * ROUNDS):
        places = [(place + turn) % len(acts) for place in range(len(acts))]
        found = dict(zip(places, at_once(*(acts[place] for place in places)), strict=True))
        yield [found[place] for place in range(len(acts))]


def over_and_over(again: Callable[[], T], *, during: Callable[[], list[T]]) -> list[T]:
    """
    Do `again` once at least, and until `during` has ended, which begins with the first; return what came of all.

    Of two acts that only begin together, one may have ended before the other has reached the target.
    Raise NotTested when the operator lets calls go only one after the other.
    """
    begun, ended = Event(), Event()

    def repeated() -> list[T]:
        done: list[T] = []
        while not (done and ended.is_set()):
            begun.set()
            done.append(again())
        return done

    def once() -> list[T]:
        begun.wait(_LONGEST_START)
        try:
            return during()
        finally:
            ended.set()

    return [result for results in _in_threads(repeated, once) for result in results]


def _in_threads(*acts: Callable[[], T]) -> list[T]:
    """Do each of these acts in a thread of its own; raise NotTested when fewer calls may be under way."""
    run = current_run()
    if run.client.settings.at_once < len(acts):
        detail = f"fewer than {len(acts)} calls may be under way at once (--concurrency)"
        raise NotTested(Reason.SWITCHED_OFF, detail)
    with run.threads(len(acts)) as pool:
        return [each.result() for each in [pool.submit(act) for act in acts]]


def idle(seconds: float) -> None:
    """Call nothing for as long as a window of time lasts that the specification speaks of."""
    let_pass(seconds)
    current_run().known_reads.forget()
