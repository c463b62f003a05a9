"""Several targets side by side, in the formats of a comparison."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conformance.errors import UsageError
from conformance.reports.comparison import (
    Comparison,
    compare_targets,
    comparison_as_html,
    comparison_as_json,
    comparison_as_markdown,
)
from conformance.reports.facts import Facts
from conformance.results.record import Latency, Outcome, Reason, RunRecord
from selftest.reports.report_samples import FOOTER, failed, left_open, observed, passed, planned, record


def _run(*checks: object, choice: str, milliseconds: float) -> RunRecord:
    rows = (planned("scope.reads"), planned("scope.writes"), planned("scope.chosen", level="note"))
    made = record(*rows, checks=(*checks, observed("scope.chosen", choice)))  # type: ignore[arg-type]
    return replace(made, latencies=(Latency("GET /things", 10, milliseconds, milliseconds * 2),))


SOUND = _run(passed("scope.reads"), passed("scope.writes"), choice="20 | entries", milliseconds=5)
FAULTY = _run(passed("scope.reads"), failed("scope.writes"), choice="<b>100</b> entries", milliseconds=50)


@pytest.fixture
def comparison() -> Comparison:
    return compare_targets({"staging": Facts.of(SOUND), "canary": Facts.of(FAULTY)})


def test_a_comparison_has_only_differences(comparison: Comparison) -> None:
    assert [(row.name, row.cells) for row in comparison.requirements] == [("scope.writes", ("passed", "failed"))]
    assert [row.name for row in comparison.observations] == ["scope.chosen"]
    assert [row.cells for row in comparison.speed] == [("5 / 10", "50 / 100")]
    assert comparison.alike == 2


def test_equal_runs_have_no_differences() -> None:
    comparison = compare_targets({"one": Facts.of(SOUND), "other": Facts.of(SOUND)})
    assert not comparison.requirements
    assert not comparison.observations


def test_what_an_incomplete_run_did_not_see_is_no_other_choice() -> None:
    not_run = left_open("scope.chosen", Reason.ANOTHER_SHARD, Outcome.NOT_TESTED)
    more = replace(SOUND, checks=(*SOUND.checks, observed("scope.chosen", "no totals")))
    less = replace(SOUND, checks=(*SOUND.checks, not_run))
    assert not compare_targets({"whole": Facts.of(more), "part": Facts.of(less)}).observations
    assert compare_targets({"whole": Facts.of(more), "other": Facts.of(SOUND)}).observations


def test_a_target_that_could_not_be_tested_causes_no_difference() -> None:
    gone = replace(record(planned("scope.reads"), planned("scope.writes")), footer=replace(FOOTER, could_not_run=True))
    runs = {"one": Facts.of(SOUND), "gone": Facts.of(gone), "other": Facts.of(SOUND)}
    comparison = compare_targets(runs)
    assert not comparison.requirements
    assert comparison.not_run == ("gone",)
    assert "gone could not be tested" in comparison.summary
    assert [row.name for row in compare_targets({**runs, "canary": Facts.of(FAULTY)}).requirements] == ["scope.writes"]


def test_every_format_of_a_comparison_names_targets_and_differences(comparison: Comparison) -> None:
    for text in (comparison_as_html(comparison), comparison_as_markdown(comparison)):
        assert all(word in text for word in ("staging", "canary", "scope.writes", "scope.chosen", "GET /things"))
        assert "<b>100</b>" not in text
    assert json.loads(comparison_as_json(comparison))["requirements"][0]["cells"] == ["passed", "failed"]


def test_a_single_run_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="at least two"):
        compare_targets({"one": Facts.of(SOUND)})
