"""What differs between two runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.contract.yaml_files import first_problem
from conformance.reports.diff import Difference, Sort, as_html, as_json, as_markdown, as_text, compare
from conformance.reports.facts import Facts
from conformance.results.record import Latency, Outcome, Reason, RunRecord
from selftest.reports.report_samples import (
    HEADER,
    SAMPLES,
    failed,
    left_open,
    observed,
    passed,
    planned,
    record,
    written,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("scope.breaks", "scope.mends", "scope.fades", "scope.comes", "scope.shakes", "scope.stays")
OLD = record(
    *(planned(name) for name in NAMES),
    planned("scope.chosen", level="note"),
    planned("scope.gone"),
    checks=(
        passed("scope.breaks"),
        failed("scope.mends"),
        passed("scope.fades"),
        left_open("scope.comes", Reason.NO_ANSWER),
        passed("scope.shakes"),
        failed("scope.stays"),
        observed("scope.chosen", "20 entries"),
        passed("scope.gone"),
    ),
)
NEW = record(
    *(planned(name) for name in NAMES),
    planned("scope.chosen", level="note"),
    planned("scope.new"),
    checks=(
        failed("scope.breaks"),
        passed("scope.mends"),
        left_open("scope.fades", Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED),
        passed("scope.comes"),
        failed("scope.shakes", outcome=Outcome.UNSTABLE),
        failed("scope.stays"),
        observed("scope.chosen", "100 entries"),
        passed("scope.new"),
    ),
)


def _found(old: RunRecord, new: RunRecord) -> Difference:
    return compare(Facts.of(old), Facts.of(new))


def test_every_kind_of_change_is_found_and_named() -> None:
    found = {change.sort: change.name for change in _found(OLD, NEW).changes}
    assert found == {
        Sort.FAILING: "scope.breaks",
        Sort.PASSING: "scope.mends",
        Sort.LOST: "scope.fades",
        Sort.GAINED: "scope.comes",
        Sort.UNSTABLE: "scope.shakes",
        Sort.OBSERVED: "scope.chosen",
        Sort.ADDED: "scope.new",
        Sort.GONE: "scope.gone",
    }
    assert _found(OLD, NEW).still_failing == ("scope.stays",)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_run_does_not_differ_from_itself(name: str) -> None:
    found = _found(SAMPLES[name], SAMPLES[name])
    assert not found.changes
    assert as_text(found, ()).splitlines()[2].startswith("no regression: ")


def test_a_new_requirement_that_fails_is_newly_failing() -> None:
    found = _found(record(planned("scope.old")), record(planned("scope.new"), checks=(failed("scope.new"),)))
    assert [(change.sort, change.name) for change in found.changes] == [
        (Sort.FAILING, "scope.new"),
        (Sort.GONE, "scope.old"),
    ]


def test_what_a_run_did_not_come_to_see_is_no_changed_choice() -> None:
    entry = planned("scope.chosen", level="note")
    whole = record(entry, checks=(observed("scope.chosen", "a"), observed("scope.chosen", "b")))
    not_run = left_open("scope.chosen", Reason.ANOTHER_SHARD, Outcome.NOT_TESTED)
    part = record(entry, checks=(observed("scope.chosen", "a"), not_run))
    assert [change.sort for change in _found(whole, part).changes] == [Sort.LOST]
    assert [change.sort for change in _found(part, whole).changes] == []
    other = record(entry, checks=(observed("scope.chosen", "c"), not_run))
    assert [change.sort for change in _found(whole, other).changes] == [Sort.LOST, Sort.OBSERVED]
    fewer = record(entry, checks=(observed("scope.chosen", "a"),))
    assert [change.sort for change in _found(whole, fewer).changes] == [Sort.OBSERVED]


def test_what_no_longer_applies_is_no_loss_but_an_undeclared_feature_is() -> None:
    old = record(planned("scope.read"), checks=(passed("scope.read"),))

    def dropped(reason: Reason) -> RunRecord:
        return record(planned("scope.read", status="not applicable", reason=reason, detail="d", tests=()))

    assert not _found(old, dropped(Reason.VERSION)).changes
    assert [change.sort for change in _found(old, dropped(Reason.FEATURE_NOT_DECLARED)).changes] == [Sort.LOST]


def test_a_requirement_that_was_not_selected_is_no_loss() -> None:
    old = record(planned("scope.read"), checks=(passed("scope.read"),))
    assert not _found(old, record(planned("scope.read", selected=False))).changes


def test_a_violation_seen_in_passing_is_newly_failing_though_not_selected() -> None:
    seen = record(planned("scope.read", selected=False), checks=(failed("scope.read"),))
    for selected in (True, False):
        old = record(planned("scope.read", selected=selected), checks=(passed("scope.read"),))
        assert [change.sort for change in _found(old, seen).changes] == [Sort.FAILING]
    assert not _found(seen, seen).changes
    assert not _found(record(planned("scope.read", selected=False)), seen).changes  # nobody knows how it was before


def test_a_should_that_is_no_longer_met_is_shown_and_is_no_regression() -> None:
    hint = planned("scope.hint", level="should")
    found = _found(record(hint, checks=(passed("scope.hint"),)), record(hint, checks=(failed("scope.hint"),)))
    assert [change.sort for change in found.changes] == [Sort.FAILING]
    assert not found.regressions(("failing",))


def test_the_numbers_of_the_summary_add_up() -> None:
    hint, must = planned("scope.hint", level="should"), planned("scope.must")
    old = record(hint, must, checks=(passed("scope.hint"), passed("scope.must")))
    found = _found(old, record(hint, must, checks=(failed("scope.hint"), failed("scope.must"))))
    said = as_text(found, found.regressions(("failing",)))
    assert "1 regression: 1 newly failing; besides: 1 newly failing (no must)" in said


@pytest.mark.parametrize(("median", "is_slower"), [(100.0, True), (64.0, False), (30.0, False)])
def test_an_operation_is_slower_if_its_median_grows_by_half_and_by_more_than_noise(
    median: float, *, is_slower: bool
) -> None:
    old = replace(OLD, latencies=(Latency("GET /things", 10, 45.0, 90.0), Latency("GET /gone", 10, 1.0, 2.0)))
    new = replace(OLD, latencies=(Latency("GET /things", 12, median, 200.0), Latency("GET /new", 10, 900.0, 900.0)))
    names = [change.name for change in _found(old, new).changes]
    assert names == (["GET /things"] if is_slower else [])


def test_runs_of_different_versions_are_alike_only_in_what_both_looked_at() -> None:
    run = SAMPLES["conformant"]
    other = replace(run, header=replace(run.header, version="18.0"))
    assert "no regression: nothing changed of what both runs looked at" in as_text(_found(run, other), ())
    assert "no regression: nothing changed\n" in as_text(_found(run, run), ()) + "\n"


def test_other_differences_between_the_runs_come_first() -> None:
    other = replace(NEW, header=replace(HEADER, suite="0.2.0", version="18.0", contract="ab" * 32), footer=None)
    text = as_text(_found(OLD, other), ())
    assert "note: the version of the target differs: 17.7 before, 18.0 now" in text
    assert "note: the version of the suite differs: 0.1.0 before, 0.2.0 now" in text
    assert "note: the contract differs: 3f9ac1d27b60 before, abababababab... now" in text
    assert "note: the newer run is not whole: cut off" in text


def test_the_same_reason_is_written_once() -> None:
    rows = tuple(planned(f"scope.thing-{number}") for number in range(4))
    old = record(*rows, checks=tuple(passed(row.id) for row in rows))
    new = record(*rows, checks=tuple(left_open(row.id, Reason.NO_ANSWER) for row in rows))
    assert as_text(_found(old, new), ()).count("no answer: no answer in this sample") == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_works_for_every_sample(name: str) -> None:
    found = _found(OLD, SAMPLES[name])
    regressions = found.regressions(("failing", "lost"))
    data = json.loads(as_json(found, regressions))
    assert first_problem(data, "diff.schema.json") is None
    assert data["regressions"] == len(regressions)
    for text in (as_text(found, regressions), as_markdown(found, regressions), as_html(found, regressions)):
        assert "no regression" in text if not regressions else "regression" in text
    assert "<script>alert" not in as_html(found, regressions)


def _diff(*arguments: Any) -> tuple[int, str]:
    result = CliRunner().invoke(commands, ["diff", *map(str, arguments)], standalone_mode=False)
    return int(result.return_value or 0), result.output


def test_the_command_ends_with_1_on_the_kinds_in_fail_on(tmp_path: Path) -> None:
    old, new = written(OLD, tmp_path / "old").parent, written(NEW, tmp_path / "new").parent
    code, text = _diff(old, new / "results.jsonl")
    assert code == 1
    assert "2 regressions: 1 newly failing, 1 lost coverage; besides: 1 newly unstable, 1 changed observation" in text
    assert _diff(old, new, "--fail-on", "slower")[0] == 0
    assert _diff(old, new, "--fail-on", "nothing")[0] == 0
    assert _diff(old, new, "--fail-on", "unstable")[0] == 1
    assert _diff(new, new)[0] == 0
