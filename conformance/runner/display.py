"""Where progress is shown: a moving display on a terminal, plain lines in a log."""

from __future__ import annotations

import io
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Display
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable

#: After this many silent seconds, a log gets a line that says how far the run is.
SILENCE_SECONDS = 15.0
_BAR = 20


@dataclass(frozen=True, slots=True)
class State:
    """How far a run is."""

    area: str
    """The area of the test that started last, with how many of its tests have ended."""
    done: int
    total: int
    rest: str
    """Failures, elapsed time and time left, in words."""

    @property
    def words(self) -> str:
        """The text after the area; before the first test it has no counts."""
        return f"{self.done}/{self.total} in all  {self.rest}" if self.total else self.rest


class Screen(Protocol):
    """Where progress is shown."""

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Show a line that stays; `result` is the middle part, which may be coloured."""

    def status(self, state: State) -> None:
        """Show how far the run is; this line may be overwritten."""


class Live:
    """A terminal: one line moves below the lines that stay."""

    def __init__(self, console: Console) -> None:
        """Draw on a console between `__enter__` and `__exit__` of `display`."""
        columns = (TextColumn("{task.description}"), BarColumn(_BAR), TextColumn("{task.fields[rest]}"))
        # pytest captures what tests print, so nothing is redirected here.
        self.display = Display(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
        self._task = self.display.add_task("", rest="", visible=False)

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Write a line above the moving one."""
        style = "green" if result.strip() == "ok" else "red" if "failed" in result else "yellow"
        self.display.console.print(Text.assemble(line, (result, style), more))

    def status(self, state: State) -> None:
        """Change the text of the moving line."""
        counted: dict[str, Any] = {"completed": state.done, "total": state.total or None}
        self.display.update(self._task, description=state.area, rest=state.words, visible=True, **counted)


@dataclass
class Log:
    """A file or pipe: whole lines without control characters, and a status line after a silence."""

    console: Console
    clock: Callable[[], float] = time.monotonic
    _at: float = field(default_factory=time.monotonic)

    def say(self, line: str, result: str = "", more: str = "") -> None:
        """Write a line."""
        self.console.print(f"{line}{result}{more}")
        self._at = self.clock()

    def status(self, state: State) -> None:
        """Write a line when nothing has been written for a while."""
        if self.clock() - self._at >= SILENCE_SECONDS:
            self.say(f"{state.area}  {state.words}")


class _Forgiving(io.TextIOBase):
    """A stream that ignores a reader who goes away; only the code that writes results has to notice that."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return not self._stream.closed and self._stream.isatty()


def forgiving(stream: TextIO) -> TextIO:
    """Return a stream that writes to another one while somebody reads that, and discards text afterwards."""
    return cast("TextIO", _Forgiving(stream))


def screen_on(stream: TextIO, *, colour: bool, may_move: bool) -> Live | Log:
    """Return a progress display for a stream: a moving one only where somebody watches a terminal."""
    file = forgiving(stream)
    plain = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = Console(file=file, no_color=not colour, **plain)  # type: ignore[arg-type]
    if may_move and file.isatty() and console.is_interactive:
        return Live(console)
    return Log(Console(file=file, force_terminal=False, color_system=None, **plain))  # type: ignore[arg-type]


def minutes_of(seconds: float) -> str:
    """Return a time as minutes and seconds, such as 2:05."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
