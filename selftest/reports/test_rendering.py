"""What is true for every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from conformance.errors import UsageError
from conformance.reports import FORMATS, WRITTEN, render, render_all
from conformance.reports.facts import Facts, Standing, failure_in_words, standing
from conformance.reports.terminal import summary
from conformance.results.record import Reason
from conformance.results.text import clip, together
from conformance.results.verdicts import Verdict, add_up
from selftest.reads import report_of
from selftest.reports.report_samples import (
    CONFORMANT,
    EMPTY,
    INCOMPLETE,
    NON_CONFORMANT,
    SAMPLES,
    VERDICTS,
    failed,
    planned,
    record,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_a_text_is_cut_if_that_saves_much_and_at_the_end_of_a_word() -> None:
    text = "word " * 40
    assert clip(text, 90) == text
    assert clip(text, 63) == f"{'word ' * 11}word… [141 more characters in report.json]"
    assert clip(text, 64) == f"{'word ' * 12}word… [136 more characters in report.json]"
    assert clip("x" * 300, 50) == f"{'x' * 50}… [250 more characters in report.json]"
    assert clip(f"{text}{'y' * 5000}", 100).endswith("word… [5101 more characters in report.json]")


def test_a_long_expectation_does_not_push_what_came_out_of_the_line() -> None:
    told = failure_in_words(failed("scope.read", expected="what was " * 60, actual="what came " * 60))
    assert "; got what came what came" in told
    assert len(told) < 500


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_has_the_same_verdict(name: str, rendered: dict[str, Path]) -> None:
    folder, verdict = rendered[name], VERDICTS[name]
    assert report_of(folder)["verdict"] == verdict
    properties = ET.parse(folder / "junit.xml").getroot().iterfind("testsuite/properties/property")  # noqa: S314 - ours
    assert {entry.get("value") for entry in properties if entry.get("name") == "verdict"} == {verdict}
    assert f'<span class="word">{verdict}</span>' in (folder / "index.html").read_text(encoding="utf-8")
    assert f": {verdict.upper()}\n" in (folder / "summary.md").read_text(encoding="utf-8")
    assert f"verdict = {verdict}: " in (folder / "allure-results" / "environment.properties").read_text()
    assert summary(SAMPLES[name], add_up(SAMPLES[name]), folder).startswith(f"{verdict.upper()}  ")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_record_gives_the_same_bytes(name: str, rendered: dict[str, Path], tmp_path: Path) -> None:
    render_all(SAMPLES[name], tmp_path)
    assert _files(tmp_path) == _files(rendered[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_every_file_is_readable_utf_8(name: str, rendered: dict[str, Path]) -> None:
    for file, content in _files(rendered[name]).items():
        text = content.decode("utf-8")
        if not file.endswith(("report.json", "attestation.json")):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\uffff]", text), file


def test_tokens_are_variables_in_every_format(rendered: dict[str, Path]) -> None:
    folder = rendered["non-conformant"]
    for file in ("report.json", "junit.xml", "index.html", "summary.md"):
        assert "PRIVATE-TOKEN: $TOKEN_MAINTAINER" in (folder / file).read_text(encoding="utf-8"), file
    attachments = [file.read_text() for file in (folder / "allure-results").glob("*-attachment.txt")]
    assert len(attachments) == 3
    assert all("$TOKEN_MAINTAINER" in text for text in attachments)
    assert "$TOKEN_MAINTAINER" in summary(NON_CONFORMANT, add_up(NON_CONFORMANT), folder)


def test_only_requested_formats_are_written(tmp_path: Path) -> None:
    written = render(CONFORMANT, ["junit", "json"], tmp_path)
    assert written == (tmp_path / "report.json", tmp_path / "junit.xml")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["junit.xml", "report.json"]


def test_every_file_that_is_reported_as_written_exists(tmp_path: Path) -> None:
    written = render_all(EMPTY, tmp_path)
    # Nobody named the tested artifact, so there is nothing to attest.
    assert [path.name for path in written] == [FORMATS[name].file for name in WRITTEN if name != "attestation"]
    assert all(path.exists() for path in written)


def test_an_unknown_format_is_named_with_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no report format 'pdf'. Formats are: json, junit, allure, html, compliance, markdown, ctrf"
    ):
        render(CONFORMANT, ["json", "pdf"], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "attestation"])
def test_a_folder_that_cannot_be_written_is_a_usage_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"Cannot write reports to .*file/reports: Not a directory"):
        render(CONFORMANT, [name], tmp_path / "file" / "reports")


def test_rendering_again_removes_former_reports_and_no_other_files(tmp_path: Path) -> None:
    results = tmp_path / "allure-results"
    render_all(NON_CONFORMANT, tmp_path)
    (results / "foreign-result.json").write_text("{}")
    render_all(CONFORMANT, tmp_path)
    names = {json.loads(file.read_text()).get("name") for file in results.glob("*-result.json")}
    assert names == {"scope.read", "scope.switch", "scope.page-size", "export.start", None}
    assert not list(results.glob("*-attachment.txt"))


def test_a_requirement_that_is_not_verified_never_looks_verified() -> None:
    for sample in SAMPLES.values():
        for row in add_up(sample).rows:
            assert (standing(row) is Standing.VERIFIED) == (row.verdict is Verdict.PASSED)


def test_the_score_counts_only_what_the_service_must_meet() -> None:
    total = Facts.of(CONFORMANT).total
    assert total.score == "2 of 2 verified"
    total = Facts.of(INCOMPLETE).total
    assert (total.score, total.violated, total.open) == ("1 of 7 verified", 0, 6)
    total = Facts.of(NON_CONFORMANT).total
    assert (total.score, total.violated, total.open) == ("1 of 3 verified", 1, 1)


def test_gaps_are_counted_by_reason_and_only_if_they_count() -> None:
    facts = Facts.of(INCOMPLETE)
    assert facts.gaps == {
        Reason.NO_TEST_YET: 2,
        Reason.PRECONDITION: 1,
        Reason.PREREQUISITE_MISSING: 1,
        Reason.NO_ANSWER: 1,
        Reason.NOT_REACHED: 1,
    }
    assert sum(facts.gaps.values()) == facts.total.open
    assert [row.requirement.id for row in facts.unverified[Reason.VACUOUS]] == ["scope.hint"]


def test_the_time_of_a_test_is_divided_among_its_requirements() -> None:
    assert Facts.of(CONFORMANT).seconds == {"scope.read": 1, "scope.switch": 1, "scope.page-size": 1, "export.start": 0}


def test_a_footer_that_contradicts_the_checks_is_a_warning() -> None:
    assert CONFORMANT.footer is not None
    contradicting = replace(CONFORMANT, footer=replace(CONFORMANT.footer, verdict="incomplete"))
    assert "The run ended as incomplete; its checks add up to conformant." in Facts.of(contradicting).warnings


def test_checks_that_belong_to_no_planned_requirement_are_named() -> None:
    warnings = Facts.of(record(planned("scope.read"), checks=NON_CONFORMANT.checks)).warnings
    assert "Checks of requirements that the plan does not name are left out: scope.hint, scope.switch." in warnings


def test_what_is_left_of_a_kind_is_told_in_one_text() -> None:
    """A run leaves a scheduled export in half a dozen groups, and the same sentence for each hides what else stays."""
    left = ["the export of group 20", "rules of group 3", "the export of group 5", "everything in a/b: no answer"]
    assert together(left) == ["the export of group 5, 20", "rules of group 3", "everything in a/b: no answer"]
