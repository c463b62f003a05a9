"""Ends a command that somebody stops with a message that says what is there now, and how to go on."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from conformance.errors import ExitCode, StoppedError
from conformance.runner.precautions import when_terminated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def told_when_stopped(say: Callable[[], str]) -> Iterator[None]:
    """While the context lasts, let Ctrl-C, SIGTERM and SIGHUP end it with StoppedError and what `say` returns.

    What cleans up in the context does so before.
    """
    received = signal.SIGINT

    def stop(number: int, _: object) -> NoReturn:
        nonlocal received
        received = signal.Signals(number)
        raise KeyboardInterrupt

    end_again = when_terminated(stop)
    try:
        yield
    except KeyboardInterrupt as interrupt:
        is_by_key = received is signal.SIGINT
        code, how = (ExitCode.INTERRUPTED, "Interrupted") if is_by_key else (ExitCode.TERMINATED, "Terminated")
        raise StoppedError(code, f"{how}. {say()}") from interrupt
    finally:
        end_again()
