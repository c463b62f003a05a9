"""The command line, as `conformance` and as `python -m conformance`."""

import sys

from conformance.errors import ExitCode


def main() -> None:
    """Run the command line; who interrupts it while it is being loaded sees no traceback either."""
    try:
        from conformance.cli import main as command  # noqa: PLC0415 - what takes a moment is what may be interrupted
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    command()


if __name__ == "__main__":
    main()
