"""Try the faults: in one process or in several, each with its own session of the suite and its own server."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import conformance
from conformance.contract import Contract
from conformance.errors import ContractError
from conformance.proof import all_faults
from conformance.proof.matrix import Kill, Matrix
from conformance.proof.processes import processes
from conformance.runner.location import SUITE_FOLDER, suite_arguments

if TYPE_CHECKING:
    from conformance.proof.faults import Fault

Row = dict[str, Any]
Tell = Callable[[Row], None]

#: Faults per session: neighbouring faults are found by the same tests, and collecting takes a second.
_HANDFUL = 150


class Journal:
    """One line per tried fault, so that an interrupted proof can be continued."""

    def __init__(self, file: Path, contract: Contract, *, resume: bool) -> None:
        """Begin a journal; with `resume`, keep the content of one for the same contract, suite and faults."""
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
        """Append the result for a fault."""
        self.known[_key(row)] = row
        self._write(row)

    def has(self, fault: Fault) -> bool:
        """Tell whether a fault was already tried, at the required version."""
        return f"{fault.name} {fault.version}" in self.known

    def rows(self, faults: Sequence[Fault]) -> list[Row]:
        """Return the results for these faults, in their order, if they were tried."""
        names = [f"{fault.name} {fault.version}" for fault in faults]
        return [self.known[name] for name in names if name in self.known]

    def _write(self, row: Row) -> None:
        self._stream.write(json.dumps(row) + "\n")
        self._stream.flush()


def _key(row: Row) -> str:
    return f"{row['fault']} {row['version']}"


def _digest_of_code() -> str:
    """Return a digest of the engine, the reference, the faults and the suite: a proof is valid only for one of them."""
    content = hashlib.sha256()
    for folder in (Path(conformance.__file__).parent, SUITE_FOLDER):
        for file in sorted(file for file in folder.rglob("*") if file.suffix in {".py", ".yaml"}):
            content.update(file.read_bytes())
    return content.hexdigest()


# -- sessions ----------------------------------------------------------------------------------------------------------


def try_all(faults: Sequence[Fault], tell: Tell, *, version: str | None, jobs: int) -> set[str]:
    """Try faults in a number of processes, and return the requirements that fail without any fault.

    `tell` gets a row for each at once. Survivors are tried once more when nothing else runs, because the result of
    concurrent calls depends on time; the row says so. `version` is the requested one. Raise ContractError if the suite
    cannot be run.
    """
    survivors: list[Row] = []

    def sift(row: Row) -> None:
        if row["killed"]:
            tell(row)
        else:
            survivors.append(row)

    unhealthy = _try_once(faults, sift, version=version, jobs=jobs)
    known = {(fault.version, fault.name): fault for fault in faults}
    again = [known[row["version"], row["fault"]] for row in survivors]

    def tell_again(row: Row) -> None:
        tell({**row, "detail": "seen when it was tried once more, alone"} if row["killed"] else row)

    return unhealthy | _try_once(again, tell_again, version=version, jobs=1)


def _try_once(faults: Sequence[Fault], tell: Tell, *, version: str | None, jobs: int) -> set[str]:
    groups = _by_version(faults)
    if jobs <= 1 or len(faults) <= _HANDFUL:
        return set().union(*(_try_at(place, group, tell) for place, group in groups.items()))
    unhealthy: set[str] = set()
    with processes(jobs) as pool:
        waiting = [
            pool.submit(_try_by_name, version, place, [fault.name for fault in handful])
            for place, group in groups.items()
            for handful in (group[start : start + _HANDFUL] for start in range(0, len(group), _HANDFUL))
        ]
        try:
            for done in as_completed(waiting):
                rows, failing = done.result()
                unhealthy |= failing
                for row in rows:
                    tell(row)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return unhealthy


def _try_by_name(wanted: str | None, version: str, names: Collection[str]) -> tuple[list[Row], set[str]]:
    """Try some faults in another process, by name, because functions cannot be passed to it."""
    rows: list[Row] = []
    known = {(fault.version, fault.name): fault for fault in all_faults(Contract.load(), wanted)}
    return rows, _try_at(version, [known[version, name] for name in names], rows.append)


def _by_version(faults: Sequence[Fault]) -> dict[str, list[Fault]]:
    groups: dict[str, list[Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.version, []).append(fault)
    return groups


def _try_at(version: str, faults: Sequence[Fault], tell: Tell) -> set[str]:
    """Try faults at one version in one session of the suite; return which requirements fail without any."""
    matrix = Matrix(version, faults, lambda kill: tell(_row(kill)))
    output = io.StringIO()
    # Other installed plugins are not wanted here, and some of them take long to import.
    options = ("-q", "--disable-plugin-autoload", f"--target-version={version}", "--include=slow")
    drawn = ("--max-examples=6", "--seed=1")
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        code = pytest.main(suite_arguments(*options, *drawn), plugins=[matrix])
    if code not in _RAN:
        raise ContractError(f"The suite cannot be proved:\n{output.getvalue().strip()[-2000:]}")
    return matrix.unhealthy


#: The exit codes of a session in which tests ran; some tests are expected to fail.
_RAN = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def _row(kill: Kill) -> Row:
    return {
        "fault": kill.fault.name,
        "version": kill.fault.version,
        "requirement": kill.fault.requirement,
        "says": kill.fault.says,
        "sort": kill.fault.sort,
        "crossing": kill.fault.crossing,
        "killed": kill.killed,
        "by": kill.by,
        "reason": kill.reason,
        "collateral": list(kill.collateral),
        "seconds": kill.seconds,
        "detail": kill.detail,
    }
