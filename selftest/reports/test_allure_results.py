"""`allure-results/`, read back file by file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from allure_commons.model2 import TestResult as Result

from conformance.reports import render
from conformance.results.verdicts import Verdict, add_up
from selftest.reports.report_samples import BROKEN, CURL, HEADER, INCOMPLETE, NON_CONFORMANT, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


def _results(folder: Path) -> list[dict[str, Any]]:
    files = (folder / "allure-results").glob("*-result.json")
    return sorted((json.loads(file.read_text(encoding="utf-8")) for file in files), key=lambda data: data["start"])


def _labels(result: dict[str, Any], name: str) -> list[str]:
    return [label["value"] for label in result["labels"] if label["name"] == name]


def _by_name(folder: Path) -> dict[str, dict[str, Any]]:
    return {result["name"]: result for result in _results(folder)}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_totals_are_those_of_the_record(name: str, rendered: dict[str, Path]) -> None:
    results = [result for result in _results(rendered[name]) if _labels(result, "epic") != ["run"]]
    statuses = Counter(result["status"] for result in results)
    counts = add_up(SAMPLES[name]).counts
    assert statuses["passed"] == counts[Verdict.PASSED]
    assert statuses["failed"] == counts[Verdict.FAILED]
    assert sum(statuses.values()) == sum(counts.values())


@pytest.mark.parametrize("name", SAMPLES)
def test_no_result_hides_behind_another(name: str, rendered: dict[str, Path]) -> None:
    results = _results(rendered[name])
    for key in ("uuid", "historyId", "testCaseId", "fullName"):
        assert len({result[key] for result in results}) == len(results)


@pytest.mark.parametrize("name", SAMPLES)
def test_results_have_only_fields_of_the_allure_format(name: str, rendered: dict[str, Path]) -> None:
    known = {field.name for field in Result.__attrs_attrs__}
    for result in _results(rendered[name]):
        assert set(result) <= known
        assert result["start"] <= result["stop"]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_attachment_exists_and_no_other_file(name: str, rendered: dict[str, Path]) -> None:
    named = [
        part["source"]
        for result in _results(rendered[name])
        for step in result.get("steps", ())
        for part in step.get("attachments", ())
    ]
    files = [file.name for file in (rendered[name] / "allure-results").glob("*-attachment.*")]
    assert sorted(named) == sorted(files)


def test_statuses_show_what_was_not_verified(rendered: dict[str, Path]) -> None:
    statuses = {name: result["status"] for name, result in _by_name(rendered["incomplete"]).items()}
    assert statuses == {
        "scope.read": "passed",
        "scope.switch": "unknown",
        "scope.add": "skipped",
        "scope.remove": "unknown",
        "scope.seen-in-passing": "skipped",
        "scope.hint": "unknown",
        "export.start": "skipped",
        "export.status": "skipped",
    }
    assert len(statuses) == len(INCOMPLETE.plan)


def test_a_test_on_which_the_suite_broke_is_broken_and_not_failed(rendered: dict[str, Path]) -> None:
    results = _by_name(rendered["broken"])
    assert results["scope.switch"]["status"] == "broken"
    assert results[f"broken test: {BROKEN.tests[1].test}"]["status"] == "broken"
    late = _by_name(rendered["broken late"])
    assert Counter(result["status"] for result in late.values()) == {"broken": 2}


def test_a_failure_says_where_it_belongs_and_how_to_repeat_it(rendered: dict[str, Path]) -> None:
    result = _by_name(rendered["non-conformant"])["scope.switch"]
    assert (_labels(result, "epic"), _labels(result, "feature")) == (["scope"], ["transition"])
    assert _labels(result, "severity") == ["critical"]
    assert result["description"] == "The service does what scope.switch says."
    assert result["statusDetails"]["message"].startswith("expected 204 without a body; got 204 with 20 bytes")
    assert CURL in result["statusDetails"]["trace"]
    step = result["steps"][0]
    assert {"name": "place", "value": "/namespace/parent_id", "excluded": True} in step["parameters"]
    attachment = rendered["non-conformant"] / "allure-results" / step["attachments"][0]["source"]
    text = attachment.read_text()
    assert text.startswith(f"$ {CURL}\n\nPATCH /api/v4/projects/7/job_token_scope    as maintainer\n\n")
    assert text.endswith("204    after 12.5 ms\n\nan undue <b>body</b>\n")


def test_a_should_has_a_lower_severity_than_a_must(rendered: dict[str, Path]) -> None:
    assert _labels(_by_name(rendered["non-conformant"])["scope.hint"], "severity") == ["minor"]
    assert _labels(_by_name(rendered["conformant"])["scope.page-size"], "severity") == ["trivial"]


def test_history_follows_a_requirement_of_one_target_through_its_versions(tmp_path: Path) -> None:
    histories = {}
    for name, header in {
        "before": HEADER,
        "after": replace(HEADER, version="18.0", seed=1, started="2026-04-01T10:00:00+00:00"),
        "elsewhere": replace(HEADER, target="production"),
    }.items():
        render(replace(NON_CONFORMANT, header=header), ["allure"], tmp_path / name)
        histories[name] = {result["name"]: result["historyId"] for result in _results(tmp_path / name)}
    assert histories["before"] == histories["after"]
    assert not set(histories["before"].values()) & set(histories["elsewhere"].values())


def test_times_start_with_the_run(rendered: dict[str, Path]) -> None:
    first = _results(rendered["conformant"])[0]
    assert (first["start"], first["stop"] - first["start"]) == (1772359200000, 1000)
