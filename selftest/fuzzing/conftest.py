"""Cases of every operation, drawn once for all tests of the drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Operation, Version
from conformance.fuzzing.cases import DrawnCase
from conformance.fuzzing.corpus import Budget, Corpus

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = Version.parse("17.7")

Drawn = dict[str, tuple[Operation, list[DrawnCase]]]


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Drawn]:
    """For each phase and operationId: the operation with its cases."""
    contract = Contract.load()
    corpus = Corpus(contract, VERSION, tmp_path_factory.mktemp("corpus"))
    return {
        phase: {
            operation.id: (operation, corpus.cases(operation, phase, Budget(5, 12, 60)))
            for operation in contract.operations(VERSION)
        }
        for phase in ("coverage", "fuzz")
    }
