"""`conformance run --watch`: repeats a run on request, or when the profile or the target's version has changed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import click

from conformance.contract import Contract
from conformance.errors import ConformanceError
from conformance.http.client import Client
from conformance.runner.precautions import when_terminated
from conformance.target import load_profile
from conformance.target.profile_file import base_url_from
from conformance.target.version import Reported, ask_version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import FrameType

_LOOK_SECONDS, _ASK_SECONDS = 0.5, 5.0


@dataclass
class Watched:
    """The last known state of a profile and of its target's version."""

    profile: Path | None
    base_url: str | None = None
    """The address to ask, if it is not the one in the profile."""
    _changed: float | None = None
    _version: str | None = None
    _asked: float = field(default_factory=time.monotonic)

    def remember(self) -> None:
        """Store the current state."""
        self._changed, self._version = self._time(), self.told_version()

    def news(self) -> str | None:
        """Say what has changed since; None when nothing has."""
        changed = self._time()
        if changed != self._changed:
            self._changed = changed
            return "the profile has changed"
        if time.monotonic() - self._asked < _ASK_SECONDS:
            return None
        before, self._version = self._version, self.told_version()
        is_other = self._version is not None and self._version != before
        return f"the target says that it is {self._version}" if is_other else None

    def _time(self) -> float | None:
        try:
            return self.profile.stat().st_mtime if self.profile is not None else None
        except OSError:
            return None  # while an editor puts another file in its place

    def told_version(self) -> str | None:
        """Ask the target for its version; None when it does not report one, or cannot be asked now."""
        self._asked = time.monotonic()
        if self.profile is None:
            return None
        try:
            profile = load_profile(self.profile)
            if self.base_url is not None:
                profile = replace(profile, base_url=base_url_from(self.base_url, "--base-url"))
            with Client(profile.client_settings()) as client:
                said = ask_version(profile, client)
        except ConformanceError:
            return None  # a profile that is being written, which the run will say more about
        return said.text if isinstance(said, Reported) else None


def watch(arguments: Sequence[str], profile: Path | None, base_url: str | None = None) -> int:
    """Run with these arguments of `conformance run` again and again, each time in a process of its own.

    `profile` and `base_url` are those in these arguments, if any.
    A line of input starts the next run: an empty line repeats it, the name of an area runs that area. A change of the
    profile, or of the version that the target reports, repeats it too. When input ends, return the last exit code.
    """
    lines: SimpleQueue[str | None] = SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    watched = Watched(profile, base_url)
    wanted = [*arguments]
    while True:
        command = [sys.executable, "-m", "conformance", "run", *wanted]
        code, is_over = _ended(command)
        if is_over:
            return code
        watched.remember()
        click.echo("\nWatching: Enter runs it again, the name of an area runs that area; Ctrl-C ends.")
        asked = _next(lines, watched)
        if asked is None:
            return code
        others = [argument for argument in arguments if not argument.startswith("--area=")]
        wanted = [f"--area={asked}", *others] if asked else [*arguments]


def _ended(command: Sequence[str]) -> tuple[int, bool]:
    """Run a command to its end, also after Ctrl-C, which reaches it too; return its code, and whether Ctrl-C came."""
    is_over = False
    # --watch may come from the environment; the run must not inherit it.
    others = {name: value for name, value in os.environ.items() if name != "CONFORMANCE_RUN_WATCH"}
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=others)  # noqa: S603 - our own command

    def pass_on(number: int, _: FrameType | None) -> None:
        nonlocal is_over
        is_over = True
        process.send_signal(number)

    end_again = when_terminated(pass_on)
    while True:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            is_over = True
        else:
            end_again()
            return code, is_over


def _read(lines: SimpleQueue[str | None]) -> None:
    for line in sys.stdin:
        lines.put(line.strip())
    lines.put(None)


def _next(lines: SimpleQueue[str | None], watched: Watched) -> str | None:
    """Wait for the next run: return an area, an empty text to repeat the run, or None when input ends."""
    areas = Contract.load().areas
    while True:
        try:
            line = lines.get(timeout=_LOOK_SECONDS)
        except Empty:
            news = watched.news()
            if news is not None:
                click.echo(f"Running again: {news}.")
                return ""
            continue
        if not line or line in areas:
            return line
        click.echo(f"There is no area '{line}'. Areas are: {', '.join(areas)}.")
