"""The cases that one session draws, replays and shares with its workers."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.fuzzing.corpus import PHASES, Corpus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.contract import Contract, Version
    from conformance.fuzzing.corpus import Budget


class SessionCases:
    """The corpora of a session, by the version of the target.

    One process of a session draws, and its workers take the drawn cases from a folder.
    """

    def __init__(self, contract: Contract, budget: Budget, folder: Path | None) -> None:
        """Begin with nothing drawn; `folder` keeps cases from run to run, if given."""
        self.budget = budget
        self.folder = folder
        self.shared: Path | None = None
        """The folder from which workers take cases; it exists as long as the session that draws."""
        self._draws = True
        self._contract = contract
        self._corpora: dict[Version | None, Corpus] = {}

    def corpus(self, version: Version | None) -> Corpus:
        """Return the cases for targets of a version."""
        if version not in self._corpora:
            self._corpora[version] = Corpus(self._contract, version, self.folder)
            if self.shared is not None and not self._draws:
                self._corpora[version].take_from(self.shared)
        return self._corpora[version]

    def draw_ahead(self, operations: Iterable[str], version: Version | None) -> None:
        """Start drawing the cases for tests of these operations in another process; for workers, if shared."""
        known = {operation.id: operation for operation in self._contract.operations(version)}
        wanted = [(known[name], phase) for name in operations for phase in PHASES]
        self.corpus(version).draw_ahead(wanted, self.budget, self.shared)

    def share(self) -> Path:
        """Let workers have the cases drawn from now on, and return the folder in which they find them."""
        if self.shared is None:
            self.shared = Path(tempfile.mkdtemp(prefix="conformance-drawn-"))
        return self.shared

    def take_from(self, folder: Path) -> None:
        """Draw nothing: take all cases from a folder that another process fills."""
        self.shared, self._draws = folder, False

    @property
    def counts(self) -> Counter[str]:
        """Number of cases by sort."""
        return sum((corpus.counts for corpus in self._corpora.values()), Counter())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems with reading or storing the cases that are kept from run to run."""
        return tuple(corpus.warning for corpus in self._corpora.values() if corpus.warning)

    def close(self) -> None:
        """Stop drawing, and remove the shared folder."""
        for corpus in self._corpora.values():
            corpus.close()
        if self.shared is not None and self._draws:
            shutil.rmtree(self.shared, ignore_errors=True)
