"""The false-alarm proof: the suite finds no fault with any legal personality of the reference."""

from __future__ import annotations

import os
from dataclasses import fields

import pytest

from conformance.proof.combinations import LEGAL, NOT_DRAWN, undrawn
from conformance.proof.legal import VERSIONS
from conformance.proof.rounds import WITHOUT_DRAWN, Round, Told, told, told_by
from conformance.proof.variants import VARIANTS, rounds_of
from conformance.reference import Choices

WHOLE = bool(os.environ.get("WHOLE_SUITE"))


def wanted() -> list[Round]:
    """Every variant at one of the versions in turn; with WHOLE_SUITE set, at all of them."""
    at = {version: rounds_of(VARIANTS, version) for version in VERSIONS}
    if WHOLE:
        return [one for rounds in at.values() for one in rounds]
    return [at[VERSIONS[number % len(VERSIONS)]][number] for number in range(len(VARIANTS))]


@pytest.fixture(scope="module")
def rounds() -> dict[tuple[str, str], Told]:
    options = ("--max-examples=3",) if WHOLE else WITHOUT_DRAWN
    return {(run.name, run.version): run for run in told_by(2, wanted(), *options)}


@pytest.mark.parametrize("one", wanted(), ids=lambda one: f"{one.name}-{one.version}")
def test_a_legal_variant_violates_nothing(rounds: dict[tuple[str, str], Told], one: Round) -> None:
    run = rounds[one.name, one.version]
    assert (run.alarms, run.broken) == ((), ())
    assert run.verified > 400


def test_a_choice_that_the_text_rules_out_raises_an_alarm() -> None:
    """Without this, all of the above could be green because nothing is looked at."""
    illegal = Round("illegal", "17.7", Choices(approved_code=418))
    (run,) = told((illegal,), *WITHOUT_DRAWN, "--requirement=merge-request-approvals.approve.answer")
    assert not run.is_clean
    assert "merge-request-approvals.approve.answer" in [alarm.partition(" in ")[0] for alarm in run.alarms]


def test_every_choice_is_decided_otherwise_by_some_variant_or_named_as_unseen() -> None:
    own = Choices()
    varied = {
        field.name
        for field in fields(Choices)
        for variant in VARIANTS
        if getattr(variant.choices, field.name) != getattr(own, field.name)
    }
    assert {field.name for field in fields(Choices)} - varied - NOT_DRAWN.keys() == set()


def test_every_choice_is_drawn_or_named_as_unseen_and_its_own_value_is_legal() -> None:
    own = Choices()
    assert undrawn() == set()
    assert [name for name, values in LEGAL.items() if getattr(own, name) not in values] == []
