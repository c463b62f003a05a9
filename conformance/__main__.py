"""The command line, as `conformance` and as `python -m conformance`."""

import gc
import signal
import sys

from conformance.errors import ExitCode

#: What is loaded stays, and looking through it for garbage again and again took a tenth of the time until a run begins.
_SELDOM = (50_000, 10, 10)


def main() -> None:
    """Run the command line; who interrupts it while it is being loaded sees no traceback either."""
    gc.set_threshold(*_SELDOM)
    try:
        from conformance.cli import main as command  # noqa: PLC0415 - what takes a moment is what may be interrupted
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    try:
        command()
    except KeyboardInterrupt:  # once more, while it was told that somebody interrupted
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is told: an interrupt could only take the exit code away
        gc.freeze()  # the process ends: there is nothing in it that anybody has to look for


if __name__ == "__main__":
    main()
