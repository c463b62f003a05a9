"""Drawn cases, kept: what was drawn for a contract, version, seed and budget is replayed, not drawn again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.fuzzing.cases import DrawnCase

if TYPE_CHECKING:
    from conformance.contract import Contract, Operation, Version
    from conformance.fuzzing.drawing import Source

FOLDER = Path("reports") / ".corpus"
PHASES = ("coverage", "fuzz")

_FORM = 1
_KEPT = 20


@dataclass
class Corpus:
    """The cases of one contract at one version; reads and writes files below `folder`, draws what is not there."""

    contract: Contract
    version: Version | None
    folder: Path = FOLDER
    _source: Source | None = field(default=None, repr=False)

    def cases(
        self,
        operation: Operation,
        phase: str,
        *,
        seed: int = 0,
        max_examples: int = 0,
        seconds: float = 0,
    ) -> list[DrawnCase]:
        """
        Return the cases of an operation: `coverage` needs no budget and no seed, `fuzz` takes `seconds` at most.

        The same arguments give the same cases. A folder that cannot be written to is no reason to fail.
        """
        random = phase == "fuzz"
        budget = (seed, max_examples, seconds) if random else ()
        file = self._file(operation, phase, budget)
        stored = _read(file, operation.id)
        if stored is not None:
            return stored
        drawn = self._draw(operation, phase, seed=seed, max_examples=max_examples, seconds=seconds)
        with contextlib.suppress(OSError):
            self._store(file, drawn)
        return drawn

    def _draw(
        self, operation: Operation, phase: str, *, seed: int, max_examples: int, seconds: float
    ) -> list[DrawnCase]:
        from conformance.fuzzing import drawing  # noqa: PLC0415 - costs a second that a replay can do without

        if self._source is None:
            self._source = drawing.load(self.contract, self.version)
        if phase == "coverage":
            return drawing.coverage_cases(self._source, operation)
        return drawing.fuzz_cases(self._source, operation, seed=seed, max_examples=max_examples, seconds=seconds)

    def _file(self, operation: Operation, phase: str, budget: tuple[float, ...]) -> Path:
        name = "-".join((phase, *(str(part) for part in budget)))
        version = str(self.version or "unknown")
        return self.folder / f"{self.contract.digest[:16]}-{version}" / name / f"{operation.id}.json"

    def _store(self, file: Path, cases: list[DrawnCase]) -> None:
        is_new = not file.parent.exists()
        file.parent.mkdir(parents=True, exist_ok=True)
        content = {"form": _FORM, "cases": [case.stored() for case in cases]}
        scratch = file.with_suffix(f".{hashlib.sha256(str(file).encode()).hexdigest()[:8]}.tmp")
        scratch.write_text(json.dumps(content), encoding="utf-8")
        scratch.replace(file)
        if is_new:
            self._forget_the_oldest(file.parent)

    def _forget_the_oldest(self, newest: Path) -> None:
        """Keep the draws of the latest seeds; every run without a given seed would leave one for ever."""
        for level in (newest, newest.parent):
            kept = sorted((entry for entry in level.parent.iterdir() if entry.is_dir()), key=_age, reverse=True)
            for old in kept[_KEPT:]:
                shutil.rmtree(old, ignore_errors=True)


def _age(folder: Path) -> float:
    return folder.stat().st_mtime


def _read(file: Path, operation: str) -> list[DrawnCase] | None:
    """Return the stored cases of a file; None when there are none that can be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if content["form"] != _FORM:
            return None
        return [DrawnCase.restored(operation, data) for data in content["cases"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
