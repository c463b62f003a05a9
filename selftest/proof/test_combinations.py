"""Random combinations of the reference's choices: choices that are legal alone raise no alarm together."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from conformance.proof.variants.combinations import LEGAL, drawn
from conformance.proof.variants.false_alarms import combined
from conformance.proof.variants.running import WITHOUT_DRAWN, run_side_by_side

#: How many are tried, and with which seed: COMBINATIONS=50 COMBINATIONS_SEED=7 tries others.
NUMBER = int(os.environ.get("COMBINATIONS", "3"))
SEED = int(os.environ.get("COMBINATIONS_SEED", "1"))
#: A run mostly waits here, so there may be more processes than processors.
PROCESSES = 3
#: How long to wait for what never comes; a real target gets more time.
LIMITS = {"timeout_seconds": 20, "deadline_seconds": 3}


def test_no_combination_of_legal_choices_raises_an_alarm() -> None:
    runs = [replace(run, limits=LIMITS) for run in combined(NUMBER, SEED)]
    found = run_side_by_side(PROCESSES, runs, *WITHOUT_DRAWN)
    assert len(found) == NUMBER
    assert [(run.version, run.name, run.alarms, run.broken) for run in found if not run.is_clean] == []


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_draws_the_same_combinations_which_differ_in_many_choices(seed: int) -> None:
    found = drawn(3, seed)
    assert found == drawn(3, seed)
    assert min(len(each.changed) for each in found) > len(LEGAL) / 5
    assert all(value in LEGAL[name] for each in found for name, value in each.changed.items())
