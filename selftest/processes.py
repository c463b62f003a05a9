"""Commands in processes of their own, for what only these show: signals, streams, and the files that they leave."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start the command in a folder, as a process that can be interrupted as at a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "conformance", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
        preexec_fn=can_be_interrupted,  # noqa: PLW1509 - nothing else runs between fork and exec
    )


def can_be_interrupted() -> None:
    """Accept signals as at a terminal: background processes, such as tests, pass on that they ignore them."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def wait_for_checks(file: Path, process: subprocess.Popen[str], number: int = 1) -> None:
    """Wait until a run has written its first checks."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if file.exists() and file.read_text(encoding="utf-8").count('"kind": "check"') >= number:
            return
        time.sleep(0.02)
    raise AssertionError("the run wrote no check")


def unused_port() -> int:
    """Return a port at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
