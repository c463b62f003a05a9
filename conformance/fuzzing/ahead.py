"""Draws cases in a separate process while earlier ones are sent, because drawing takes longer than sending."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.contract import Contract, Version
from conformance.fuzzing.cases import DrawnCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.contract import Operation

#: Another process takes about a second to start; in this time some two hundred cases are drawn here.
_WORTH_A_PROCESS = 400
#: How long a worker waits for cases, in seconds, before it draws them itself, and how long between two checks.
_LONGEST_WAIT, _BETWEEN_LOOKS = 30.0, 0.02
_END = "end"


@dataclass(frozen=True, slots=True)
class Wish:
    """The cases of one operation and phase that will be requested."""

    operation: str
    phase: str


@dataclass
class Ahead:
    """Cases that another process draws, in the order in which they will be requested.

    They are the same as if they were drawn here. If the process fails, only the saved time is lost.
    """

    _process: subprocess.Popen[str]
    _found: dict[Wish, list[Any]] = field(default_factory=dict)
    _waiting: set[Wish] = field(default_factory=set)
    _news: threading.Condition = field(default_factory=threading.Condition)

    @classmethod
    def begin(
        cls, contract: Contract, version: Version | None, wishes: Sequence[Wish], budget: Mapping[str, Any]
    ) -> Ahead | None:
        """Start to draw; None if that is not worth it, or no process can be started."""
        number = sum(int(budget["max_examples"]) if wish.phase == "fuzz" else 1 for wish in wishes)
        if number < _WORTH_A_PROCESS or (os.cpu_count() or 1) == 1:
            return None
        order = {
            "contract": contract.digest,
            "version": str(version or "unknown"),
            "budget": dict(budget),
            "wishes": [[wish.operation, wish.phase] for wish in wishes],
        }
        command = [sys.executable, "-m", __name__, json.dumps(order)]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        try:
            # In its own session: a signal that interrupts the run does not reach it; the run ends it.
            process = subprocess.Popen(  # noqa: S603 - this module itself
                command, stdin=nothing, stdout=pipe, stderr=nothing, text=True, start_new_session=True
            )
        except OSError:
            return None
        ahead = cls(process, _waiting=set(wishes))
        threading.Thread(target=ahead._read, name="drawn ahead", daemon=True).start()
        return ahead

    def take(self, operation: Operation, phase: str) -> list[DrawnCase] | None:
        """Return the cases of an operation as soon as they are drawn; None when they must be drawn here."""
        wish = Wish(operation.id, phase)
        with self._news:
            self._news.wait_for(lambda: wish not in self._waiting)
            found = self._found.pop(wish, None)
        return None if found is None else [DrawnCase.restored(operation, data) for data in found]

    def share(self, folder: Path) -> None:
        """Write all cases to files in a folder, for workers that take them from there; nothing is kept here."""
        threading.Thread(target=self._share, args=(folder,), name="drawn for workers", daemon=True).start()

    def _share(self, folder: Path) -> None:
        part = (folder / _END).with_suffix(".part")
        with contextlib.suppress(OSError):
            try:
                while (found := self._next()) is not None:
                    wish, cases = found
                    part.write_text(json.dumps(cases), encoding="utf-8")
                    part.replace(_file_of(folder, wish.operation, wish.phase))
            finally:  # after any error, such as a full disk: so that nobody waits for cases that will not come
                share_nothing(folder)

    def _next(self) -> tuple[Wish, list[Any]] | None:
        with self._news:
            self._news.wait_for(lambda: self._found or not self._waiting)
            wish = next(iter(self._found), None)
            return None if wish is None else (wish, self._found.pop(wish))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        lines = self._process.stdout or ()
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            for line in lines:
                said = json.loads(line)
                wish = Wish(said["operation"], said["phase"])
                with self._news:
                    self._found[wish] = said["cases"]
                    self._waiting.discard(wish)
                    self._news.notify_all()
        with self._news:
            self._waiting.clear()
            self._news.notify_all()
        if self._process.stdout:
            self._process.stdout.close()


def share_nothing(folder: Path) -> None:
    """Mark in a folder that no more cases will come."""
    (folder / _END).touch()


@dataclass(frozen=True)
class Elsewhere:
    """Cases that one process draws for all workers, in a folder.

    The code that draws takes half of a worker's memory, and a second to load. If no cases come, a worker draws itself.
    """

    folder: Path

    def take(self, operation: Operation, phase: str) -> list[DrawnCase] | None:
        """Return the cases of an operation as soon as they are drawn; None when they must be drawn here."""
        file, deadline = _file_of(self.folder, operation.id, phase), time.monotonic() + _LONGEST_WAIT
        while not file.exists():
            is_over = (self.folder / _END).exists() or time.monotonic() > deadline
            if is_over and not file.exists():
                return None
            time.sleep(_BETWEEN_LOOKS)
        try:
            return [DrawnCase.restored(operation, data) for data in json.loads(file.read_text(encoding="utf-8"))]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def close(self) -> None:
        """Leave the folder to the process that draws."""


def _file_of(folder: Path, operation: str, phase: str) -> Path:
    return folder / f"{operation}-{phase}.json"


def main(order: Mapping[str, Any]) -> None:
    """Draw the requested cases and print them, a line for each wish."""
    from conformance.fuzzing import drawing  # noqa: PLC0415 - takes a second, which only this process needs to spend

    contract = Contract.load()
    version = Version.parse_known(order["version"])
    if contract.digest != order["contract"]:
        return
    source = drawing.load(contract, version)
    operations = {operation.id: operation for operation in contract.operations(version)}
    for name, phase in order["wishes"]:
        operation = operations[name]
        if phase == "coverage":
            cases = drawing.coverage_cases(source, operation)
        else:
            cases = drawing.fuzz_cases(source, operation, **order["budget"])
        print(  # noqa: T201 - standard output is the result
            json.dumps({"operation": name, "phase": phase, "cases": [case.stored() for case in cases]}), flush=True
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
