"""Trying the faults: one process after another or several at once, each with a suite and a server of its own."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import multiprocessing
import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import conformance
from conformance.contract import Contract
from conformance.errors import ContractError
from conformance.proof import all_faults
from conformance.proof.matrix import Kill, Matrix
from conformance.runner import plugin as pytest_plugin
from conformance.runner.location import SUITE_FOLDER, suite_arguments

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess
    from multiprocessing.queues import Queue

    from conformance.proof.faults import Fault

Row = dict[str, Any]
Tell = Callable[[Row], None]

#: Faults that are handed to one process together: neighbours are seen by the same tests.
_HANDFUL = 20
_LOOK_AFTER_SECONDS = 5


class Journal:
    """One line per fault as it is tried, so that an interrupted proof can go on."""

    def __init__(self, file: Path, contract: Contract, *, resume: bool) -> None:
        """Begin a journal; with `resume` keep what one of the same contract, suite and faults holds already."""
        self.known: dict[str, Row] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        key = f"{contract.digest} {_digest_of_code()}"
        lines = file.read_text(encoding="utf-8").splitlines() if resume and file.is_file() else []
        rows = [json.loads(line) for line in lines if line.endswith("}")]
        if rows and rows[0].get("key") == key:
            self.known = {_key(row): row for row in rows[1:]}
        self._stream = file.open("w", encoding="utf-8")
        self._write({"key": key})
        for row in self.known.values():
            self._write(row)

    def add(self, row: Row) -> None:
        """Write down what became of a fault."""
        self.known[_key(row)] = row
        self._write(row)

    def has(self, fault: Fault) -> bool:
        """Tell whether a fault was tried already, at the version at which it is to be tried."""
        return f"{fault.name} {fault.version}" in self.known

    def rows(self, faults: Sequence[Fault]) -> list[Row]:
        """Return what became of these faults, in their order, as far as they were tried."""
        names = [f"{fault.name} {fault.version}" for fault in faults]
        return [self.known[name] for name in names if name in self.known]

    def _write(self, row: Row) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


def _key(row: Row) -> str:
    return f"{row['fault']} {row['version']}"


def _digest_of_code() -> str:
    """Return a digest of the engine, the reference, the faults and the suite: what one proved, another has not."""
    content = hashlib.sha256()
    for folder in (Path(conformance.__file__).parent, SUITE_FOLDER):
        for file in sorted(folder.rglob("*.py")):
            content.update(file.read_bytes())
    return content.hexdigest()


# -- in this process ---------------------------------------------------------------------------------------------------


def try_all(faults: Sequence[Fault], tell: Tell, *, version: str | None, jobs: int) -> set[str]:
    """
    Try faults in so many processes, and return the requirements that fail without any fault.

    `tell` gets a row for each as it is known. `version` is the one that the faults were asked for with. Raise
    ContractError when the suite cannot be run at all.
    """
    handfuls = [
        _Handful(place, [fault.name for fault in faults[start : start + _HANDFUL]])
        for place, faults in _by_version(faults).items()
        for start in range(0, len(faults), _HANDFUL)
    ]
    jobs = min(jobs, len(handfuls))
    if jobs > 1:
        return _Crew(handfuls, version, jobs).work(tell)
    unhealthy: set[str] = set()
    for place, group in _by_version(faults).items():
        unhealthy |= _try_at(place, group, tell)
    return unhealthy


def _by_version(faults: Sequence[Fault]) -> dict[str, list[Fault]]:
    groups: dict[str, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.version, []).append(fault)
    return groups


def _try_at(version: str, faults: Iterator[Fault] | list[Fault], tell: Tell) -> set[str]:
    """Try faults at one version in this process; return what fails without any."""
    matrix = Matrix(version, faults, lambda kill: tell(_row(kill)))
    output = io.StringIO()
    # Nothing of what other installed plugins do is wanted here, and some of them take long to import.
    options = ("-q", "--disable-plugin-autoload", f"--target-version={version}", "--include=slow")
    drawn = ("--max-examples=6", "--seed=1")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(suite_arguments(*options, *drawn), plugins=[pytest_plugin, matrix])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise ContractError(f"The suite cannot be proved:\n{output.getvalue().strip()[-2000:]}")
    return matrix.unhealthy


def _row(kill: Kill) -> Row:
    return {
        "fault": kill.fault.name,
        "version": kill.fault.version,
        "requirement": kill.fault.requirement,
        "says": kill.fault.says,
        "killed": kill.killed,
        "by": kill.by,
        "reason": kill.reason,
        "collateral": list(kill.collateral),
        "seconds": kill.seconds,
        "detail": kill.detail,
    }


# -- in several processes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Handful:
    """Some faults of one version, by name: functions do not travel between processes."""

    version: str
    names: list[str]


@dataclass
class _Crew:
    """Processes that fetch handfuls of faults until none is left."""

    handfuls: list[_Handful]
    version: str | None
    jobs: int
    _context: Any = field(default_factory=lambda: multiprocessing.get_context("spawn"))

    def work(self, tell: Tell) -> set[str]:
        """Hand everything out, pass on each row as it comes, and return what fails without any fault."""
        results: Queue[tuple[str, Any]] = self._context.Queue()
        tasks = self._tasks()
        crew = [
            self._context.Process(target=_fetch_and_try, args=(self.version, tasks, results), daemon=True)
            for _ in range(self.jobs)
        ]
        for process in crew:
            process.start()
        unhealthy: set[str] = set()
        try:
            for _ in crew:
                unhealthy |= self._until_one_is_done(results, crew, tell)
        finally:
            for process in crew:
                process.terminate()
                process.join()
        return unhealthy

    def _tasks(self) -> dict[str, Queue[list[str] | None]]:
        """Put the handfuls of each version into a queue of its own, with one end for each process."""
        tasks: dict[str, Queue[list[str] | None]] = {}
        for handful in self.handfuls:
            tasks.setdefault(handful.version, self._context.Queue()).put(handful.names)
        for waiting in tasks.values():
            for _ in range(self.jobs):
                waiting.put(None)
        return tasks

    @staticmethod
    def _until_one_is_done(results: Queue[tuple[str, Any]], crew: Sequence[SpawnProcess], tell: Tell) -> set[str]:
        while True:
            try:
                kind, content = results.get(timeout=_LOOK_AFTER_SECONDS)
            except queue.Empty:
                if any(process.exitcode for process in crew):
                    raise ContractError("A process of the proof broke; --jobs 1 shows why.") from None
                continue
            if kind == "row":
                tell(content)
            elif kind == "error":
                raise ContractError(content)
            else:
                return set(content)


def _fetch_and_try(
    wanted: str | None,
    tasks: dict[str, Queue[list[str] | None]],
    results: Queue[tuple[str, Any]],
) -> None:
    """Do the work of one process: fetch and try faults of one version after another."""
    known = {(fault.version, fault.name): fault for fault in all_faults(Contract.load(), wanted)}

    def fetched(version: str) -> Iterator[Fault]:
        for names in iter(tasks[version].get, None):
            for name in names:
                _give_up_alone(results)
                yield known[version, name]

    unhealthy: set[str] = set()
    try:
        for version in tasks:
            unhealthy |= _try_at(version, fetched(version), lambda row: results.put(("row", row)))
    except ContractError as error:
        results.put(("error", str(error)))
    else:
        results.put(("done", sorted(unhealthy)))


def _give_up_alone(results: Queue[tuple[str, Any]]) -> None:
    """End the process when the one that started it is gone: nobody is there to be told."""
    whose = multiprocessing.parent_process()
    if whose is not None and not whose.is_alive():
        results.cancel_join_thread()
        raise KeyboardInterrupt
