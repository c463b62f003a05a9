"""Parallel processes of a proof; none of them outlives the proof."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import connection
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


def processes(number: int) -> ProcessPoolExecutor:
    """Return a pool of new processes; each ends when this one does, however that ends."""
    return ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_proof)


def done_side_by_side(
    work: Callable[[_Given], _Found], things: Iterable[_Given], number: int, seconds: float | None
) -> Iterator[_Found]:
    """Yield what a function returns for each thing, as it comes from a number of processes.

    None is begun after the given seconds; None means no limit. The function must be found by the name of its module.
    """
    started, left = time.monotonic(), iter(things)
    with processes(number) as pool:
        running = {pool.submit(work, thing) for thing in islice(left, number)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for one in ended:
                yield one.result()
            if seconds is None or time.monotonic() - started < seconds:
                running |= {pool.submit(work, thing) for thing in islice(left, number - len(running))}


def _end_with_the_proof() -> None:
    """End with the process that started this one: a killed one sends no message, and this one would wait forever."""
    proof = multiprocessing.parent_process()
    if proof is not None:
        threading.Thread(target=_end_behind, args=(proof.sentinel,), daemon=True).start()


def _end_behind(sentinel: int) -> None:
    connection.wait([sentinel])
    signal.raise_signal(signal.SIGKILL)  # SIGKILL cannot be ignored
