"""Many runs on one page."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.errors import UsageError
from conformance.reports import render, small
from conformance.reports.facts import Facts
from conformance.reports.history import as_html, read_history
from selftest.reports.report_samples import FOOTER, HEADER, SAMPLES, record

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.results.record import RunRecord


def _at(run: RunRecord, started: str, target: str = "staging") -> RunRecord:
    return replace(run, header=replace(run.header, started=started, target=target))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with runs of two targets, one of them unreadable."""
    for day, name in enumerate(("conformant", "non-conformant", "unstable", "truncated", "odd"), start=1):
        render(
            _at(SAMPLES[name], f"2026-03-0{day}T10:00:00+00:00"), ["totals", "html"], tmp_path / "staging" / str(day)
        )
    render(_at(SAMPLES["conformant"], "2026-03-09T10:00:00+00:00", "other"), ["totals"], tmp_path / "other" / "1")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "results.jsonl").write_text("nothing of ours\n", encoding="utf-8")
    return tmp_path


def test_runs_are_ordered_by_target_and_time_and_unreadable_ones_are_named(runs: Path) -> None:
    found = read_history(runs, last=100)
    assert {target.name: [run.verdict for run in target.runs] for target in found.targets} == {
        "other": ["conformant"],
        "staging": ["conformant", "non-conformant", "incomplete", "incomplete", "non-conformant"],
    }
    (sentence,) = found.unreadable
    assert "is not the record of a run" in sentence
    assert found.summary == (
        "other: 1 run, the latest conformant; staging: 5 runs, the latest non-conformant; 1 unreadable"
    )


def test_a_run_of_a_selection_is_marked_and_never_counts_as_a_whole_run(tmp_path: Path) -> None:
    whole = _at(SAMPLES["non-conformant"], "2026-03-01T10:00:00+00:00")
    render(whole, ["totals"], tmp_path / "whole")
    part = _at(SAMPLES["conformant"], "2026-03-02T10:00:00+00:00")
    part = replace(part, header=replace(part.header, selection=("--requirement scope.switch",)))
    render(part, ["totals"], tmp_path / "part")
    (target,) = read_history(tmp_path, last=10).targets
    assert target.now == "the latest whole one non-conformant (the latest of a selection: selection holds)"
    assert [plot.latest for plot in target.plots] == [plot.latest for plot in replace(target, runs=target.whole).plots]
    text = as_html(read_history(tmp_path, last=10), tmp_path)
    assert text.count('<i class="selection"') == text.count('<i class="non-conformant"') == 1
    assert "(--requirement scope.switch)" in text
    assert replace(target, runs=target.runs[1:]).now == "none of them whole, the latest of a selection: selection holds"


def test_unstable_and_violated_requirements_are_counted(runs: Path) -> None:
    staging = read_history(runs, last=100).targets[1]
    assert staging.unstable == (
        ("scope.switch", 1, "2026-03-03T10:00:00+00:00"),
        ("scope.hint", 1, "2026-03-03T10:00:00+00:00"),
    )
    assert staging.failed[0] == ("scope.switch", 1, "2026-03-02T10:00:00+00:00")


def test_a_line_is_interrupted_where_a_run_has_no_value(runs: Path) -> None:
    plots = {plot.name: plot for plot in read_history(runs, last=100).targets[1].plots}
    assert len(plots["seconds"].points) == 2
    assert plots["seconds"].top == "65.25"
    assert plots["all"].points[0].startswith("0.0,0.0 ")


def test_the_page_links_to_the_reports_and_no_text_is_markup(runs: Path) -> None:
    text = as_html(read_history(runs, last=100), runs)
    assert 'href="staging/2/index.html"' in text
    assert "<script>alert" not in text


def test_totals_in_another_format_are_made_again_from_the_record(tmp_path: Path) -> None:
    (tmp_path / "totals.json").write_text('{"form": 99}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"no run below .* The first of 1 that could not be read: Cannot read"):
        read_history(tmp_path, last=10)


@pytest.mark.parametrize(("place", "message"), [("empty", "There is no run below"), ("missing", "is no folder")])
def test_a_folder_without_runs_is_refused(place: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=message):
        read_history(tmp_path / place, last=10)


def test_a_thousand_runs_make_one_small_page_quickly(tmp_path: Path) -> None:
    totals: Any = json.loads(small.totals(Facts.of(SAMPLES["unstable"])))
    totals["areas"] = {f"area-{number}": totals["total"] for number in range(16)}
    for number in range(1000):
        folder = tmp_path / f"{number:04}"
        folder.mkdir()
        (folder / "totals.json").write_text(json.dumps({**totals, "started": f"{number:04}"}), encoding="utf-8")
    begun = time.process_time()
    text = as_html(read_history(tmp_path, last=1000), tmp_path)
    assert time.process_time() - begun < 10
    assert text.count('<i class="incomplete"') == 1000
    assert len(text) < 1_000_000
    assert len(read_history(tmp_path, last=10).targets[0].runs) == 10


def test_the_command_writes_the_page_beside_the_runs(runs: Path) -> None:
    result = CliRunner().invoke(commands, ["history", str(runs)], standalone_mode=False)
    assert result.return_value == 0
    assert result.output.endswith(f"1 unreadable\n{runs / 'history.html'}\n")
    assert (runs / "history.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_runs_of_a_readiness_question_are_not_runs_of_the_target(runs: Path) -> None:
    before = read_history(runs, 1000)
    shutil.copytree(next(place.parent for place in runs.rglob("totals.json")), runs / "asked" / "as-of-18.0")
    assert read_history(runs, 1000) == before


def test_a_run_without_areas_has_a_history(tmp_path: Path) -> None:
    render(record(header=HEADER, footer=FOOTER, tests=()), ["totals"], tmp_path)
    assert "<polyline" in as_html(read_history(tmp_path, last=1), tmp_path)
