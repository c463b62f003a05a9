"""Many calls within a short time, calls at the same moment, and periods without any call."""

from __future__ import annotations

import time
from functools import partial
from http import HTTPStatus
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any, TypeVar

from conformance.results.record import Reason
from conformance.suite.context import NotTested, current_run, current_test
from conformance.suite.expectations import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from conformance.suite.expectations import Caller

T = TypeVar("T")

#: How often two calls are made at once: the moments in which one could overwrite the other are short.
ROUNDS = 3
#: How often two calls are made in turns, each of them first in half of these.
_TURNS = 4
_AT_ONCE = 16
_LONGEST_START = 10  # seconds until all threads are there
#: What a service may answer to a call only because another one is being made.
_COLLISIONS = frozenset({HTTPStatus.CONFLICT, HTTPStatus.LOCKED})

#: Waits for time to pass. A test that serves the target and controls its clock replaces this.
let_pass: Callable[[float], None] = time.sleep


def send_load(
    caller: Caller, path: str, *bodies: Any, count: int = 1, headers: Mapping[str, str] | None = None
) -> list[Answer]:
    """POST these bodies in turn, `count` times in total, several at once, and return all answers.

    A 429 is an answer here like any other: the client does not wait and retry.
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
    """Do several things at the same moment, each in its own thread, and return the results.

    A service may answer 409 or 423 to one that collides with another. That one is repeated once afterwards, alone: a
    refusal because of the moment shows nothing. So is one of several calls whose last one collided. Raise NotTested
    when the operator allows only one call at a time.
    """
    return _repeated_alone(acts, _together(*acts))


def _together(*acts: Callable[[], T]) -> list[T]:
    start = Barrier(len(acts))

    def act(one: Callable[[], T]) -> T:
        start.wait(_LONGEST_START)
        return one()

    return _in_threads(*(partial(act, one) for one in acts))


def _repeated_alone(acts: Iterable[Callable[[], T]], results: list[T]) -> list[T]:
    return [act() if _has_collided(result) else result for act, result in zip(acts, results, strict=True)]


def _has_collided(result: object) -> bool:
    last = result[-1] if isinstance(result, list) and result else result
    return isinstance(last, Answer) and last.status in _COLLISIONS


def in_turns(*acts: Callable[[], T]) -> Iterator[list[T]]:
    """Do several things at the same moment, repeatedly, each time with another one first; yield the results.

    Which of them reaches the target first decides what is mixed up there. Raise NotTested as `at_once` does.
    """
    for turn in range(_TURNS):
        places = [(place + turn) % len(acts) for place in range(len(acts))]
        found = dict(zip(places, at_once(*(acts[place] for place in places)), strict=True))
        yield [found[place] for place in range(len(acts))]


def over_and_over(again: Callable[[], T], *, during: Sequence[Callable[[], T]]) -> list[T]:
    """Do `again` over and over while the acts of `during` are done at the same moment; return the results of both.

    If two acts only begin together, one may have ended before the other has reached the target. What collided is
    repeated alone when all have ended, as `at_once` does; of `again`, only if it was the last one. Raise NotTested when
    the operator allows only one call at a time.
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
            return _together(*during)
        finally:
            ended.set()

    (*earlier, last), results = _in_threads(repeated, once)
    served = [result for result in earlier if not _has_collided(result)]
    return [*served, *_repeated_alone([again, *during], [last, *results])]


def _in_threads(*acts: Callable[[], T]) -> list[T]:
    """Do each of these acts in its own thread; raise NotTested when fewer calls are allowed at once."""
    run = current_run()
    if run.client.settings.at_once < len(acts):
        detail = f"fewer than {len(acts)} calls may be under way at once (--concurrency)"
        raise NotTested(Reason.SWITCHED_OFF, detail)
    current_test().calls_at_once = True
    with run.threads(len(acts)) as pool:
        return [each.result() for each in [pool.submit(act) for act in acts]]


def idle(seconds: float) -> None:
    """Make no call during a window of time that the specification names."""
    let_pass(seconds)
    current_run().known_reads.forget()
