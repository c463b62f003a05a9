"""Parallel processes of a proof; none of them outlives the proof."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection


def processes(number: int) -> ProcessPoolExecutor:
    """Return a pool of new processes; each ends when this one does, however that ends."""
    return ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_proof)


def _end_with_the_proof() -> None:
    """End with the process that started this one: a killed one sends no message, and this one would wait forever."""
    proof = multiprocessing.parent_process()
    if proof is not None:
        threading.Thread(target=_end_behind, args=(proof.sentinel,), daemon=True).start()


def _end_behind(sentinel: int) -> None:
    connection.wait([sentinel])
    signal.raise_signal(signal.SIGKILL)  # SIGKILL cannot be ignored
