"""`report.json` and the schemas of what the suite writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from conformance.contract.folders import SCHEMA_FOLDER
from conformance.contract.requirements import Kind, Level
from conformance.reports import json_report
from conformance.reports.facts import Facts
from conformance.results.reading import read_record
from conformance.results.record import Outcome, Reason, RunRecord, TestOutcome
from conformance.results.verdicts import EXIT_CODES, RunVerdict, Verdict
from selftest.reads import report_of
from selftest.reports.report_samples import CONFORMANT, CURL, INCOMPLETE, NON_CONFORMANT, SAMPLES, written

if TYPE_CHECKING:
    from pathlib import Path

REPORT_SCHEMA = json.loads((SCHEMA_FOLDER / "report.schema.json").read_text(encoding="utf-8"))
RESULTS_SCHEMA = json.loads((SCHEMA_FOLDER / "results.schema.json").read_text(encoding="utf-8"))


def _problems(schema: dict[str, Any], document: object) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(document)]


def _document(facts: Facts) -> dict[str, Any]:
    document: dict[str, Any] = json.loads("".join(json_report.render(facts)))
    return document


def _row(record: RunRecord, name: str) -> dict[str, Any]:
    rows = _document(Facts.of(record))["requirements"]
    return next(row for row in rows if row["id"] == name)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "odd"])
def test_every_report_is_valid_against_its_schema(name: str, rendered: dict[str, Path]) -> None:
    document = report_of(rendered[name])
    assert not _problems(REPORT_SCHEMA, document)


def test_a_record_with_unusual_content_is_complete_and_valid(rendered: dict[str, Path]) -> None:
    document = report_of(rendered["odd"])
    assert not _problems(REPORT_SCHEMA, document)
    huge = next(row for row in document["requirements"] if row["id"] == "scope.huge")
    assert len(huge["failures"]) == 41
    assert huge["failures"][1]["actual"] == "x" * 300_000
    assert document["run"]["profile"]["limit"] == "inf"
    assert "\x00" in document["requirements"][0]["statement"]


@pytest.mark.parametrize("schema", [REPORT_SCHEMA, RESULTS_SCHEMA], ids=["report", "results"])
def test_the_schemas_are_schemas(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)


def test_the_schemas_contain_the_enumerations_of_the_code() -> None:
    places = REPORT_SCHEMA["$defs"]
    assert set(places["reason"]["enum"]) == set(Reason)
    assert set(places["verdict"]["enum"]) == set(Verdict)
    assert set(places["counts"]["required"]) == set(Verdict)
    assert set(REPORT_SCHEMA["properties"]["verdict"]["enum"]) == set(RunVerdict)
    assert set(REPORT_SCHEMA["properties"]["exit_code"]["enum"]) == set(EXIT_CODES.values())
    assert set(places["requirement"]["properties"]["level"]["enum"]) == set(Level)
    assert set(places["requirement"]["properties"]["kind"]["enum"]) == set(Kind)
    lines = RESULTS_SCHEMA["$defs"]
    assert set(lines["reason"]["enum"]) == set(Reason)
    assert set(lines["outcome"]["enum"]) == set(Outcome)
    assert set(lines["footer"]["properties"]["verdict"]["enum"]) == set(RunVerdict)
    assert set(lines["footer"]["properties"]["exit_code"]["enum"]) == set(EXIT_CODES.values())
    assert set(lines["test"]["properties"]["outcome"]["enum"]) == set(TestOutcome)
    assert set(lines["planned"]["properties"]["kind"]["enum"]) == set(Kind)


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ("verdict", "passed"),
        ("exit_code", 2),
        ("gaps", {"some reason of mine": 1}),
        ("requirements", [{**_row(CONFORMANT, "scope.read"), "reason": "did not feel like it"}]),
        ("requirements", [{**_row(CONFORMANT, "scope.read"), "checks_passed": 0}]),
        ("requirements", [{**_row(NON_CONFORMANT, "scope.switch"), "failures": []}]),
        ("extra", True),
    ],
)
def test_the_schema_rejects_what_no_report_may_contain(place: str, wrong: object) -> None:
    assert _problems(REPORT_SCHEMA, {**_document(Facts.of(CONFORMANT)), place: wrong})


def test_a_failed_requirement_has_all_its_evidence() -> None:
    row = _row(NON_CONFORMANT, "scope.switch")
    assert (row["verdict"], row["level"], row["kind"], row["checks_passed"]) == ("failed", "must", "transition", 1)
    first, second = row["failures"]
    assert (first["expected"], first["actual"]) == ("204 without a body", "204 with 20 bytes")
    assert first["place"] == "/namespace/parent_id"
    assert first["evidence"][0]["curl"] == CURL
    assert first["evidence"][0]["status"] == 204
    assert (second["expected"], second["actual"]) == ("404", "200")


def test_gaps_have_reason_and_detail() -> None:
    row = _row(INCOMPLETE, "scope.switch")
    assert (row["verdict"], row["reason"]) == ("inconclusive", "precondition not met")
    assert row["detail"] == "precondition not met in this sample"
    passing = _row(INCOMPLETE, "scope.seen-in-passing")
    assert (passing["verdict"], passing["reason"], passing["checks_passed"]) == ("not tested", "not reached", 1)


def test_counts_and_header_are_those_of_the_record() -> None:
    document = _document(Facts.of(NON_CONFORMANT))
    assert document["counts"] == {
        "failed": 2,
        "unstable": 0,
        "inconclusive": 0,
        "not tested": 1,
        "passed": 1,
        "noted": 0,
        "not applicable": 0,
    }
    assert document["owed"] == {"requirements": 3, "verified": 1, "violated": 1, "open": 1}
    assert [area["area"] for area in document["areas"]] == ["scope", "export"]
    assert document["exit_code"] == 1
    run = document["run"]
    assert (run["seed"], run["contract"], run["version"], run["requests"]) == (4711, "3f9ac1d27b60", "17.7", 340)


def test_a_truncated_report_says_so() -> None:
    document = _document(Facts.of(SAMPLES["truncated"]))
    assert document["truncated"] is True
    assert document["verdict"] == "incomplete"
    assert (document["run"]["ended"], document["run"]["requests"]) == (None, 30)
    assert [problem["kind"] for problem in document["problems"]] == ["cut off"]


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "odd"])
def test_every_line_of_a_record_is_valid_and_renders_like_the_record(name: str, tmp_path: Path) -> None:
    record = SAMPLES[name]
    file = written(record, tmp_path)
    for line in file.read_text(encoding="utf-8").splitlines():
        assert not _problems(RESULTS_SCHEMA, json.loads(line))
    again = _document(Facts.of(read_record(file)))
    assert again["requirements"] == _document(Facts.of(record))["requirements"]
    assert again["warnings"] == []


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "note"},
        {"kind": "footer", "verdict": "fine", "exit_code": 0, "ended": "now", "requests": 1, "seconds": 1},
        {"kind": "check", "requirement": "scope.read", "outcome": "inconclusive", "test": "t", "claimed": True},
        {"kind": "test", "test": "t", "outcome": "passed", "seconds": 1},
        {"kind": "test", "test": "t", "outcome": "broken", "seconds": 1, "requests": 0, "detail": "KeyError"},
        {"kind": "test", "test": "t", "outcome": "not begun", "seconds": 0, "requests": 0},
    ],
)
def test_the_schema_of_the_record_rejects_invalid_lines(line: dict[str, Any]) -> None:
    assert _problems(RESULTS_SCHEMA, line)
