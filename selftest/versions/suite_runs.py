"""Runs the suite many times in one process: a new process for each of some fifty runs would take most of the time."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from conformance import pytest_plugin, session
from conformance.cli.run import suite_arguments
from conformance.contract import NEWEST, OLDEST, Contract, Version
from conformance.readiness import affected

#: What draws many cases holds at one version as at another; set WHOLE_SUITE=1 to run it all the same.
_DRAWN = "not model and not test_fuzz and not test_coverage"


@dataclass(frozen=True)
class SuiteRun:
    """One run: the version that the reference plays, and the one it is judged by."""

    played: str
    judged: str

    @property
    def name(self) -> str:
        return f"{self.played}-as-{self.judged}"

    def perform(self, folder: Path) -> int:
        options = [f"--target-version={self.played}", f"--as-of={self.judged}", f"--out={folder / self.name}", "-q"]
        if not os.environ.get("WHOLE_SUITE") or self.played != self.judged:
            touched = self._touched(Contract.load())
            options += [*(f"--requirement={name}" for name in touched), "-k", _DRAWN, "--max-examples=3", "--seed=1"]
        with (folder / f"{self.name}.txt").open("w") as log, contextlib.redirect_stdout(log):
            return int(pytest.main(suite_arguments(*options), plugins=[pytest_plugin]))


    def _touched(self, contract: Contract) -> tuple[str, ...]:
        """Return what the rows between the two versions touch; at one version, what any row does."""
        if self.played == self.judged:
            return affected(contract, OLDEST, NEWEST)
        older, newer = sorted((Version.parse(self.played), Version.parse(self.judged)))
        return affected(contract, older, newer)


def described(runs: list[SuiteRun]) -> str:
    return json.dumps([asdict(run) for run in runs])


def main() -> None:
    session.render_all = lambda *_: ()  # the records are enough, and rendering them takes as long as the runs
    folder = Path(sys.argv[1])
    runs = [SuiteRun(**entry) for entry in json.loads(sys.argv[2])]
    (folder / "codes.json").write_text(json.dumps({run.name: run.perform(folder) for run in runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
