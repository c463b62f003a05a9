"""Cases that another process draws in advance are those that would be drawn here; nothing depends on that process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Operation, Version
from conformance.fuzzing import ahead, drawing
from conformance.fuzzing.corpus import Budget, Corpus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = Version.parse("17.7")
BUDGET = Budget(seed=5, max_examples=6, seconds=60)
WANTED = (("updateJobTokenScope", "coverage"), ("addProjectToJobTokenAllowlist", "fuzz"))


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load()


@pytest.fixture(scope="module")
def wanted(contract: Contract) -> list[tuple[Operation, str]]:
    operations = {operation.id: operation for operation in contract.operations(VERSION)}
    return [(operations[name], phase) for name, phase in WANTED]


@pytest.fixture
def corpus(contract: Contract, monkeypatch: pytest.MonkeyPatch) -> Iterator[Corpus]:
    """A corpus that keeps nothing and starts another process already for a few cases."""
    monkeypatch.setattr(ahead, "_WORTH_A_PROCESS", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = Corpus(contract, VERSION, None)
    yield found
    found.close()


def wires(contract: Contract, operation: Operation, phase: str) -> list[object]:
    return [case.wire for case in Corpus(contract, VERSION, None).cases(operation, phase, BUDGET)]


def test_another_process_draws_the_same_cases_as_this_one(
    contract: Contract, corpus: Corpus, wanted: list[tuple[Operation, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [wires(contract, operation, phase) for operation, phase in wanted]
    monkeypatch.setattr(drawing, "coverage_cases", None)
    monkeypatch.setattr(drawing, "fuzz_cases", None)
    corpus.draw_ahead(wanted, BUDGET)
    found = [[case.wire for case in corpus.cases(operation, phase, BUDGET)] for operation, phase in wanted]
    assert found == here
    assert all(found)


def test_if_a_process_dies_the_missing_cases_are_drawn_here(
    contract: Contract, corpus: Corpus, wanted: list[tuple[Operation, str]]
) -> None:
    corpus.draw_ahead(wanted, BUDGET)
    corpus.close()
    for operation, phase in wanted:
        assert [case.wire for case in corpus.cases(operation, phase, BUDGET)] == wires(contract, operation, phase)


def test_cases_that_were_not_announced_are_drawn_here(corpus: Corpus, wanted: list[tuple[Operation, str]]) -> None:
    corpus.draw_ahead(wanted[:1], BUDGET)
    operation, phase = wanted[1]
    assert corpus.cases(operation, phase, BUDGET)


def test_for_a_few_cases_no_process_is_started(contract: Contract, wanted: list[tuple[Operation, str]]) -> None:
    wishes = [ahead.Wish(operation.id, phase) for operation, phase in wanted]
    budget = {"seed": 5, "max_examples": 6, "seconds": 60}
    assert ahead.Ahead.begin(contract, VERSION, wishes, budget) is None


def test_workers_take_from_a_folder_the_cases_of_one_process(
    contract: Contract, corpus: Corpus, wanted: list[tuple[Operation, str]], tmp_path: Path
) -> None:
    corpus.draw_ahead(wanted[:1], BUDGET, tmp_path)
    worker = ahead.Elsewhere(tmp_path)
    (operation, phase), (other, other_phase) = wanted
    found = worker.take(operation, phase)
    assert found is not None
    assert [case.wire for case in found] == wires(contract, operation, phase)
    assert worker.take(other, other_phase) is None


def test_a_worker_draws_by_itself_if_no_process_does(
    contract: Contract, wanted: list[tuple[Operation, str]], tmp_path: Path
) -> None:
    one, worker = Corpus(contract, VERSION, None), Corpus(contract, VERSION, None)
    one.draw_ahead(wanted, BUDGET, tmp_path)
    worker.take_from(tmp_path)
    operation, phase = wanted[0]
    assert [case.wire for case in worker.cases(operation, phase, BUDGET)] == wires(contract, operation, phase)
