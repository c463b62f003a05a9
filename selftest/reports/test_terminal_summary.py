"""The end of the terminal's output."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.reports import render
from conformance.reports.facts import Facts
from conformance.reports.terminal import summary
from conformance.results.baseline import reason_from
from conformance.results.record import KnownFailure, Outcome, Reason, TestEnd, TestOutcome
from conformance.results.verdicts import add_up
from selftest.reports.report_samples import (
    CONFORMANT,
    CURL,
    FUZZ,
    HEADER,
    SAMPLES,
    STOPPED,
    STORY,
    failed,
    left_open,
    passed,
    planned,
    record,
)


def _summary(name: str, *, colour: bool = False) -> str:
    return summary(SAMPLES[name], add_up(SAMPLES[name]), Path("reports/staging"), colour=colour)


def test_it_begins_with_verdict_and_score() -> None:
    lines = _summary("incomplete").splitlines()
    assert lines[0] == "INCOMPLETE  1 of 7 verified  (staging, version 17.7)"
    assert add_up(SAMPLES["incomplete"]).explanation in " ".join(" ".join(lines).split())
    assert "8 requirements: 3 inconclusive (1 of them should or note), 4 not tested, 1 passed" in lines


def test_requirements_that_count_and_those_that_do_not_add_up() -> None:
    whole = Facts.of(record(planned("a.duty"), planned("a.hint", level="should"), planned("a.note", level="note")))
    assert whole.counts_in_words == "3 not tested (2 of them should or note)"
    part = Facts.of(record(planned("a.duty"), replace(planned("a.other"), selected=False), checks=(passed("a.duty"),)))
    assert "1 not tested (1 of them not selected or not a must)" in part.counts_in_words


def test_a_baseline_reason_that_repeats_the_failure_is_not_shown_twice() -> None:
    failure = failed("a.duty")
    known = KnownFailure(reason_from(failure), "team-x", "2099-01-01")
    run = record(replace(planned("a.duty"), known_failure=known), checks=(failure,))
    (line,) = [
        line for line in summary(run, add_up(run), Path("out"), brief=True).splitlines() if line.startswith("  a.duty")
    ]
    assert "(in the baseline: team-x, until 2099-01-01): expected" in line
    assert line.lower().count("expected") == 1
    other = replace(run, plan=(replace(run.plan[0], known_failure=replace(known, reason="ours")),))
    assert "baseline: ours (team-x, until 2099-01-01)" in summary(other, add_up(other), Path("out"), brief=True)


def test_what_depends_on_a_known_failure_is_counted_with_it() -> None:
    known = planned("a.duty", known_failure=KnownFailure("ours", "team-x", "2099-01-01"))
    waiting = replace(left_open("a.other", Reason.PRECONDITION), waits_for="a.duty")
    run = record(known, planned("a.other"), planned("a.third"), checks=(failed("a.duty"), waiting, passed("a.third")))
    run = replace(run, header=replace(run.header, fail_on="new"))
    text = " ".join(summary(run, add_up(run), Path("out")).split())
    assert "Without them, and 1 requirement waiting for them, the verdict is: conformant (exit code 0)." in text


def test_it_shows_what_failed_and_how_to_repeat_it() -> None:
    text = _summary("non-conformant")
    assert "Failed (2)\n  scope.switch\n    The service does what scope.switch says.\n    Endpoints > Job" in text
    assert "      expected  204 without a body\n      actual    204 with 20 bytes\n" in text
    assert f"      {CURL}\n      1 more check of it failed\n" in text
    assert "  scope.hint  (a warning, no violation: should)" in text


def test_it_counts_gaps_by_reason() -> None:
    text = _summary("incomplete")
    assert "Not verified (6)\n      2 no test yet\n          2: no test (export.start and others)\n" in text


def test_it_shows_problems_of_the_run() -> None:
    assert "  cut off: the run: The record ends before the run did" in _summary("truncated")
    assert "  broken test: " in _summary("broken late")
    assert "  stopped early: the run: the operator interrupted the run" in _summary("stopped")
    assert "0 requirements: none was planned" in _summary("empty")


def test_it_ends_with_the_report_that_exists(tmp_path: Path) -> None:
    assert "Report:" not in _summary("empty")
    sample = SAMPLES["empty"]
    render(sample, ["markdown"], tmp_path)
    assert summary(sample, add_up(sample), tmp_path).endswith(f"\n\nReport: {tmp_path}")
    render(sample, ["html"], tmp_path)
    assert summary(sample, add_up(sample), tmp_path).endswith(f"\n\nReport: {tmp_path / 'index.html'}")


def test_at_most_ten_failures_are_shown() -> None:
    plan = tuple(planned(f"scope.rule-{number:02}") for number in range(13))
    sample = record(*plan, checks=tuple(failed(entry.id, place=f"/{entry.id}") for entry in plan))
    text = summary(sample, add_up(sample), Path("reports"))
    assert text.count("expected  ") == 10
    assert "scope.rule-09" in text
    assert "scope.rule-10" not in text
    assert "  ... and 3 more, see the report" in text


@pytest.mark.parametrize("name", SAMPLES)
def test_colour_changes_no_word(name: str) -> None:
    plain, coloured = _summary(name), _summary(name, colour=True)
    assert "\x1b" not in plain
    assert coloured != plain
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain


def test_text_of_the_target_is_no_control_sequence_for_the_terminal() -> None:
    text = _summary("odd")
    assert "\\x1b[31mred" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)
    assert len(text) < 30_000


def test_one_cause_is_shown_once_with_all_that_it_violates() -> None:
    names = ("scope.read", "scope.switch", "errors.status")
    sample = record(*map(planned, names), checks=tuple(failed(name, expected=f"what {name} says") for name in names))
    text = summary(sample, add_up(sample), Path("reports"))
    assert "Failed (3, by 1 cause)\n  scope.read\n" in text
    assert "      The same violates 2 more requirements:\n      scope.switch\n      errors.status\n" in text
    assert text.count(CURL) == 1


def test_the_counts_by_area_say_that_they_are_not_of_tests() -> None:
    said = "Requirements by area (not tests: a test can fail a requirement of another area)\n  scope  "
    assert said in _summary("non-conformant")
    assert "Requirements by area" not in _summary("conformant")


def _brief(name: str) -> list[str]:
    return summary(SAMPLES[name], add_up(SAMPLES[name]), Path("reports/staging"), brief=True).splitlines()


def test_the_brief_form_has_the_verdict_and_one_line_for_each_failure() -> None:
    assert _brief("non-conformant") == [
        "NON-CONFORMANT  1 of 3 verified  (staging, version 17.7)",
        "1 requirement violated.",
        "  warning: The run ended as ; its checks add up to non-conformant.",
        "  scope.switch: expected 204 without a body; got 204 with 20 bytes (at /namespace/parent_id)",
        "  scope.hint  (a warning, no violation: should): expected a hint followed; got a hint ignored",
    ]


def test_the_brief_form_says_what_took_tests_out_of_the_run() -> None:
    ends = (TestEnd(STORY, TestOutcome.DESELECTED, detail="-k role"), TestEnd(FUZZ, TestOutcome.NOT_BEGUN, detail="-x"))
    run = record(planned("scope.read"), tests=ends)
    lines = summary(run, add_up(run), Path("reports"), brief=True).splitlines()
    assert "  deselected: 1 test (-k role)" in lines
    assert "  not begun: 1 test (-x)" in lines


def test_a_command_to_copy_is_on_one_line_however_long_it_is() -> None:
    command = f"conformance run --out={'a-long-name-' * 20} --max-examples=3"
    run = replace(STOPPED, header=replace(HEADER, command=command))
    lines = summary(run, add_up(run), Path("reports/my run")).splitlines()
    assert f"to repeat: {command}" in lines
    assert "to go on: conformance run --resume 'reports/my run'" in lines


def test_an_open_requirement_without_weight_for_the_verdict_is_named() -> None:
    run = record(
        planned("scope.read"),
        planned("scope.hint", level="should"),
        checks=(passed("scope.read"), left_open("scope.hint", Reason.PREREQUISITE_MISSING)),
    )
    assert "without weight for the verdict: scope.hint" in summary(run, add_up(run), Path("reports")).splitlines()


def test_many_results_that_differ_are_told_with_their_most_frequent_cause() -> None:
    """Reads that lag behind writes let some tests fail and others not, differently in each run."""
    for number, is_told in ((4, False), (5, True)):
        names = [f"scope.read-{at}" for at in range(number)]
        unstable = tuple(replace(failed(name), outcome=Outcome.UNSTABLE) for name in names)
        run = record(*(planned(name) for name in names), checks=unstable)
        for brief in (False, True):
            text = " ".join(summary(run, add_up(run), Path("reports"), brief=brief).split())
            assert ("settle_seconds: 5" in text) is is_told


def test_the_brief_form_shows_one_warning_and_counts_the_others() -> None:
    run = replace(CONFORMANT, warnings=("the corpus could not be stored", "another"))
    lines = summary(run, add_up(run), Path("reports"), brief=True).splitlines()
    assert "  warning: the corpus could not be stored" in lines
    assert any(line.startswith("  ... and ") for line in lines)


def test_the_brief_form_shows_problems_of_the_run() -> None:
    assert any(line.startswith("  broken test: ") for line in _brief("broken late"))
    assert any(line.startswith("  cut off: ") for line in _brief("truncated"))
