"""Run the suite many times in one process: a new process for each of about fifty runs would take most of the time."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from conformance import reports
from conformance.contract import NEWEST, OLDEST, Contract, Version
from conformance.runner import collection_hooks
from conformance.runner import plugin as pytest_plugin
from conformance.runner.collection import suite_tests
from conformance.runner.location import suite_arguments
from conformance.target import embedded
from conformance.target.embedded import prepared_service
from conformance.versions.readiness import affected
from selftest.inside import inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.reference import Service
    from conformance.results.plan import SuiteTest

#: Generated calls show the same at every version; set WHOLE_SUITE=1 to run them nevertheless.
_DRAWN = "not model and not test_fuzz"


@dataclass(frozen=True)
class SuiteRun:
    """One run: the version of the reference, the version by which it is judged, and whose rows select the tests."""

    played: str
    judged: str
    after: str = str(OLDEST)
    up_to: str = str(NEWEST)
    only: str = _DRAWN
    """Which tests, as -k of pytest chooses them."""

    @property
    def name(self) -> str:
        return f"{self.played}-as-{self.judged}-{self.after}-{self.up_to}"

    def perform(self, folder: Path) -> int:
        options = [f"--target-version={self.played}", f"--as-of={self.judged}", f"--out={folder / self.name}", "-q"]
        if not os.environ.get("WHOLE_SUITE"):
            touched = affected(Contract.load(), Version.parse(self.after), Version.parse(self.up_to))
            options += [*(f"--requirement={name}" for name in touched), "-k", self.only, "--max-examples=3", "--seed=1"]
        # Runs at other versions collect all tests a second time, to see what their options leave out.
        collecting = contextlib.nullcontext() if self.after == str(OLDEST) else _collecting_once()
        with (folder / f"{self.name}.txt").open("w") as log, contextlib.redirect_stdout(log), collecting:
            return int(pytest.main(suite_arguments(*options), plugins=[pytest_plugin]))


@contextlib.contextmanager
def _collecting_once() -> Iterator[None]:
    """Let a run treat the tests that it collects as all tests."""
    found: dict[str, SuiteTest] = {}

    def read(items: Sequence[pytest.Item], contract: Contract) -> Mapping[str, SuiteTest]:
        found.update(suite_tests(items, contract))
        return found

    with (
        mock.patch.object(collection_hooks, "suite_tests", read),
        mock.patch.object(collection_hooks, "all_tests", return_value=found),
        # Which files hold the selected tests would be asked before any are known.
        mock.patch.object(collection_hooks, "_selects_few", return_value=False),
    ):
        yield


def described(runs: list[SuiteRun]) -> str:
    return json.dumps([asdict(run) for run in runs])


def main() -> None:
    # The records are sufficient, and rendering them takes as long as the runs.
    mock.patch.object(reports, "render_all", return_value=()).start()
    folder = Path(sys.argv[1])
    called: set[tuple[str, str]] = set()

    def remembering(version: str) -> Service:
        service = prepared_service(version)
        service.request_log = lambda entry: called.add((entry.method, entry.path.partition("?")[0]))
        return service

    mock.patch.object(embedded, "prepared_service", remembering).start()
    runs = [SuiteRun(**entry) for entry in json.loads(sys.argv[2])]
    with inside():
        codes = {run.name: run.perform(folder) for run in runs}
    (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")
    (folder / "called.json").write_text(json.dumps(sorted(called)), encoding="utf-8")


if __name__ == "__main__":
    main()
