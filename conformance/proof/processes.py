"""The processes in which a proof runs side by side; none of them outlives the proof."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import connection


def processes(number: int) -> ProcessPoolExecutor:
    """Return a pool of so many processes, begun afresh; each ends when this one does, however that is ended."""
    return ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn"), initializer=_end_with_the_proof)


def _end_with_the_proof() -> None:
    """End with the process that began this one: if that is killed it tells nobody, and this one would wait for ever."""
    proof = multiprocessing.parent_process()
    if proof is not None:
        threading.Thread(target=_end_behind, args=(proof.sentinel,), daemon=True).start()


def _end_behind(sentinel: int) -> None:
    connection.wait([sentinel])
    signal.raise_signal(signal.SIGKILL)  # which nobody ignores
