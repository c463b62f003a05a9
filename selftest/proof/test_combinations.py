"""Random combinations of the reference's choices: what is legal alone raises no alarm together."""

from __future__ import annotations

import os

import pytest

from conformance.proof.combinations import LEGAL, drawn
from conformance.proof.legal import combined
from conformance.proof.variant_runs import WITHOUT_DRAWN, run_each

pytestmark = pytest.mark.usefixtures("inside_this_process")

#: How many are tried, and from which seed: COMBINATIONS=50 COMBINATIONS_SEED=7 tries others.
NUMBER = int(os.environ.get("COMBINATIONS", "3"))
SEED = int(os.environ.get("COMBINATIONS_SEED", "1"))


@pytest.mark.parametrize("number", range(NUMBER))
def test_no_combination_of_legal_choices_raises_an_alarm(number: int) -> None:
    (run,) = run_each([combined(NUMBER, SEED)[number]], *WITHOUT_DRAWN)
    assert run.is_clean, (run.version, run.name, run.alarms, run.broken)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_draws_the_same_combinations_again_and_each_differs_in_many_choices(seed: int) -> None:
    found = drawn(3, seed)
    assert found == drawn(3, seed)
    assert min(len(each.changed) for each in found) > len(LEGAL) / 5
    assert all(value in LEGAL[name] for each in found for name, value in each.changed.items())
