"""The totals are equal in every format, whatever the result of the run, and other tools can read their formats."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from conformance.contract.yaml_files import first_problem
from conformance.errors import UsageError
from conformance.reports import WRITTEN, printed, render
from conformance.reports.facts import Facts
from conformance.reports.terminal import summary
from conformance.results.record import KnownFailure
from conformance.results.verdicts import Verdict, add_up
from selftest.reports.report_samples import (
    CONFORMANT,
    HEADER,
    INCOMPLETE,
    SAMPLES,
    UNSTABLE,
    failed,
    passed,
    planned,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: What formats must agree on: requirements, verified, violated, and what else keeps the run from being conformant.
Totals = tuple[int, int, int, int]

_OPEN = ("unstable", "inconclusive", "not tested")


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _of_the_record(name: str) -> Totals:
    result = add_up(SAMPLES[name])
    of = result.counts
    return (len(result.rows), of[Verdict.PASSED], of[Verdict.FAILED], sum(of[Verdict(name)] for name in _OPEN))


def _of_json(folder: Path) -> Totals:
    rows = Counter(row["verdict"] for row in _json(folder / "report.json")["requirements"])
    counts = _json(folder / "report.json")["counts"]
    assert {name: number for name, number in counts.items() if number} == dict(rows)
    return rows.total(), rows["passed"], rows["failed"], sum(rows[name] for name in _OPEN)


def _of_totals(folder: Path) -> Totals:
    counts = _json(folder / "totals.json")["total"]["counts"]
    return sum(counts.values()), counts["passed"], counts["failed"], sum(counts[name] for name in _OPEN)


def _of_junit(folder: Path) -> Totals:
    root = ET.parse(folder / "junit.xml").getroot()  # noqa: S314 - ours
    cases = [case for case in root.iter("testcase") if case.get("classname") != "conformance.run"]
    tags = Counter(case.find("*[@message]").tag if case.find("*[@message]") is not None else "" for case in cases)  # type: ignore[union-attr]
    verdicts = Counter(
        entry.get("value") for case in cases for entry in case.iter("property") if entry.get("name") == "verdict"
    )
    assert tags[""] == verdicts["passed"]
    assert root.get("tests") == str(len(list(root.iter("testcase"))))
    return len(cases), tags[""], verdicts["failed"], sum(verdicts[name] for name in _OPEN)


def _of_allure(folder: Path) -> Totals:
    results = [_json(file) for file in (folder / "allure-results").glob("*-result.json")]
    rows = [result for result in results if result["labels"][0]["value"] != "run"]
    statuses = Counter(result["status"] for result in rows)
    tags = Counter(label["value"] for result in rows for label in result["labels"] if label["name"] == "tag")
    return len(rows), statuses["passed"], statuses["failed"], sum(tags[name] for name in _OPEN)


def _of_ctrf(folder: Path) -> Totals:
    results = _json(folder / "ctrf.json")["results"]
    statuses = Counter(test["status"] for test in results["tests"])
    raw = Counter(test["rawStatus"] for test in results["tests"])
    for name in ("passed", "failed", "skipped", "pending", "other"):
        assert results["summary"][name] == statuses[name]
    return results["summary"]["tests"], statuses["passed"], raw["failed"], sum(raw[name] for name in _OPEN)


def _of_earl(folder: Path) -> Totals:
    graph = _json(folder / "earl.jsonld")["@graph"]
    outcomes = Counter(entry["result"]["outcome"] for entry in graph if entry["@type"] == "earl:Assertion")
    open_ = outcomes["earl:cantTell"] + outcomes["earl:untested"]
    return outcomes.total(), outcomes["earl:passed"], outcomes["earl:failed"], open_


def _of_html(folder: Path) -> Totals:
    found = Counter(re.findall(r'<tr id="[^"]*" data-verdict="([^"]*)"', (folder / "index.html").read_text("utf-8")))
    return found.total(), found["passed"], found["failed"], sum(found[name] for name in _OPEN)


def _of_markdown(folder: Path) -> Totals:
    row = next(line for line in (folder / "summary.md").read_text("utf-8").splitlines() if line.startswith("| **all**"))
    verified, *numbers = (cell.strip() for cell in row.strip("|").split("|")[2:])
    failed_, *open_, noted, inapplicable = (int(number) for number in numbers)
    passed_ = _of_json(folder)[1]
    assert int(verified.split()[0]) <= passed_
    return passed_ + failed_ + sum(open_) + noted + inapplicable, passed_, failed_, sum(open_)


_FORMS: dict[str, Callable[[Path], Totals]] = {
    "json": _of_json,
    "totals": _of_totals,
    "junit": _of_junit,
    "allure": _of_allure,
    "ctrf": _of_ctrf,
    "earl": _of_earl,
    "html": _of_html,
    "markdown": _of_markdown,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_totals_are_equal_in_every_format(name: str, rendered: dict[str, Path]) -> None:
    folder = rendered[name]
    assert {form: count(folder) for form, count in _FORMS.items()} == dict.fromkeys(_FORMS, _of_the_record(name))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_counts_of_what_must_be_met_are_equal_everywhere(name: str, rendered: dict[str, Path]) -> None:
    folder, total = rendered[name], Facts.of(SAMPLES[name]).total
    owed = _json(folder / "report.json")["owed"]
    assert owed["verified"] + owed["violated"] + owed["open"] == owed["requirements"] == total.owed
    of_totals = _json(folder / "totals.json")["total"]
    assert {key: of_totals[key] for key in ("verified", "violated", "open")} == {
        key: owed[key] for key in ("verified", "violated", "open")
    }
    for page, word in (("index.html", "not verified"), ("compliance.html", "open")):
        bar = f'aria-label="{total.score}, {total.violated} violated, {total.open} {word}"'
        assert (bar in (folder / page).read_text("utf-8")) == bool(total.owed)
    assert f"**{total.score}.**" in (folder / "summary.md").read_text("utf-8")
    assert f"{total.verified} of {total.owed}" in (folder / "badge.svg").read_text("utf-8")
    assert total.score in summary(SAMPLES[name], add_up(SAMPLES[name]), folder)
    assert f"::{total.score}." in printed(SAMPLES[name], "github")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_counts_of_the_short_report_add_up_to_its_headline(name: str, rendered: dict[str, Path]) -> None:
    facts, page = Facts.of(SAMPLES[name]), (rendered[name] / "compliance.html").read_text("utf-8")
    table = page.partition('<table class="counts"')[2].partition("</table>")[0]
    *areas, total = [list(map(int, re.findall(r">(\d+)</td>", row))) for row in table.split("<tr")[3:]]
    assert total[:3] == [facts.total.verified, facts.total.violated, facts.total.open]
    assert total == ([sum(column) for column in zip(*areas, strict=True)] if areas else [0] * len(total))
    told = re.search(r"<dt>left out</dt><dd>(\d+) ", page)
    assert (int(told[1]) if told else 0) == total[3]
    beside = [int(found) for found in re.findall(r'<p class="quiet">(\d+) statements? [^<]* in no column', page)]
    assert sum(total) + sum(beside) == len(facts.result.rows)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_for_machines_is_valid_against_its_schema(name: str, rendered: dict[str, Path]) -> None:
    for form, file in (("totals", "totals.json"), ("ctrf", "ctrf.json"), ("earl", "earl.jsonld")):
        assert first_problem(_json(rendered[name] / file), f"{form}.schema.json") is None
    assert ET.parse(rendered[name] / "badge.svg").getroot().tag.endswith("svg")  # noqa: S314 - ours


def test_the_attestation_names_the_artifact_and_the_digest_of_every_report(rendered: dict[str, Path]) -> None:
    statement = _json(rendered["unstable"] / "attestation.json")
    assert first_problem(statement, "attestation.schema.json") is None
    assert statement["subject"] == [{"name": "service", "digest": {"sha256": "0f" * 32}}]
    predicate = statement["predicate"]
    assert (predicate["result"], predicate["passedTests"]) == ("WARNED", ["scope.read"])
    assert predicate["warnedTests"] == ["scope.switch", "scope.hint"]
    digests = {entry["name"]: entry["digest"]["sha256"] for entry in predicate["annotations"]["reports"]}
    assert digests.keys() >= {"report.json", "junit.xml", "index.html", "compliance.html", "ctrf.json"}
    for file, digest in digests.items():
        told = subprocess.run(["sha256sum", rendered["unstable"] / file], capture_output=True, text=True, check=True)  # noqa: S607 - of the machine
        assert told.stdout.startswith(digest)


@pytest.mark.parametrize(
    ("name", "result"), [("conformant", "PASSED"), ("non-conformant", "FAILED"), ("broken", "FAILED")]
)
def test_only_a_conformant_run_is_attested_as_passed(name: str, result: str, tmp_path: Path) -> None:
    named = replace(SAMPLES[name], header=replace(HEADER, subjects=("service=sha256:" + "0f" * 32,)))
    render(named, ["attestation"], tmp_path)
    assert _json(tmp_path / "attestation.json")["predicate"]["result"] == result


def test_an_attestation_has_the_digest_of_a_report_that_is_rendered_again(tmp_path: Path) -> None:
    named = replace(INCOMPLETE, header=replace(HEADER, subjects=("service=gitCommit:" + "a" * 40,)))
    render(named, ["junit"], tmp_path)
    assert not (tmp_path / "attestation.json").exists(), "nobody asked for one"
    render(named, WRITTEN, tmp_path)
    render(named, ["junit"], tmp_path, unverified_as="skipped")
    reports = _json(tmp_path / "attestation.json")["predicate"]["annotations"]["reports"]
    found = {report["name"]: report["digest"]["sha256"] for report in reports}
    assert found.keys() >= {"junit.xml", "index.html", "report.json"}
    assert all(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == digest for name, digest in found.items())


@pytest.mark.parametrize(("shown", "tag"), [("error", "error"), ("failure", "failure"), ("skipped", "skipped")])
def test_open_requirements_are_visible_in_test_views_by_default(shown: str, tag: str, tmp_path: Path) -> None:
    render(UNSTABLE, ["junit"], tmp_path, unverified_as=shown)
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "junit.xml").getroot().iter("testcase")}  # noqa: S314 - ours
    assert cases["scope.switch"].find(tag) is not None
    assert cases["scope.hint"].find("skipped") is not None


def test_annotations_are_few_and_their_text_ends_no_command() -> None:
    rows = [planned(f"scope.thing-{number}") for number in range(30)]
    many = record(*rows, checks=tuple(failed(row.id, actual=f"{row.id} fails\nin two lines, 100%") for row in rows))
    lines = printed(many, "github").splitlines()
    assert [line.split(" ", maxsplit=1)[0] for line in lines] == ["::error"] * 10 + ["::notice"]
    assert "%0A" in lines[0]
    assert "100%25" in lines[0]
    assert all(line.startswith("::") for line in printed(SAMPLES["odd"], "github").splitlines())


def test_a_new_failure_is_not_hidden_behind_known_ones(tmp_path: Path) -> None:
    known = KnownFailure("ticket 12", "team B", "2026-12-31")
    rows = [planned(f"scope.known-{number}", known_failure=known) for number in range(20)]
    checks = [failed(row.id, actual=row.id) for row in rows]
    run = record(*rows, planned("scope.new"), checks=(*checks, failed("scope.new", actual="scope.new")))
    lines = printed(run, "github").splitlines()
    assert [line.split(" ", maxsplit=1)[0] for line in lines] == ["::error", *["::warning"] * 9, "::notice"]
    for brief in (True, False):
        assert "scope.new" in summary(run, add_up(run), tmp_path, brief=brief)
    assert "`scope.new`" in printed(run, "markdown")
    assert "<code>scope.new</code>" in printed(run, "compliance")


def test_a_format_that_is_printed_needs_no_folder(tmp_path: Path) -> None:
    assert printed(CONFORMANT, "github").startswith("::notice title=staging%3A conformant::2 of 2 verified.")
    with pytest.raises(UsageError, match="There is no report format"):
        render(CONFORMANT, ["github-actions"], tmp_path)


def test_a_known_failure_is_no_alarm_if_only_new_ones_fail_the_run(tmp_path: Path) -> None:
    known = KnownFailure("ticket 12", "team B", "2026-12-31")
    run = record(
        planned("scope.known", known_failure=known),
        planned("scope.new"),
        checks=(failed("scope.known"), failed("scope.new")),
        header=replace(HEADER, fail_on="new"),
    )
    render(run, ["junit"], tmp_path)
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "junit.xml").getroot().iter("testcase")}  # noqa: S314 - ours
    assert cases["scope.known"].find("skipped") is not None
    assert cases["scope.new"].find("failure") is not None
    kinds = [line.split(" ", maxsplit=1)[0] for line in printed(run, "github").splitlines()]
    assert sorted(kinds) == ["::error", "::notice", "::warning"]


# -- the tools of others -----------------------------------------------------------------------------------------------

_VALIDATE = """
import { readFileSync } from 'node:fs';
import { validate } from 'ctrf';
for (const file of process.argv.slice(2)) {
  const found = validate(JSON.parse(readFileSync(file, 'utf-8')));
  if (!found.valid) { console.log(file, JSON.stringify(found)); process.exitCode = 1; }
}
"""


def test_the_validator_of_ctrf_accepts_every_report(tools: Path, rendered: dict[str, Path]) -> None:
    script = tools / "validate.mjs"
    script.write_text(_VALIDATE, encoding="utf-8")
    command = ["node", str(script), *(str(folder / "ctrf.json") for folder in rendered.values())]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (told.stdout, told.returncode) == ("", 0), told.stderr


def test_the_allure_command_reads_every_result(tools: Path, rendered: dict[str, Path]) -> None:
    folder = rendered["non-conformant"]
    program, results = tools / "node_modules/.bin/allure", folder / "allure-results"
    command = [str(program), "generate", str(results), "-o", str(tools / "allure")]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=tools)
    assert told.returncode == 0, told.stderr
    statistic = next(_json(file) for file in sorted((tools / "allure").rglob("statistic.json")))
    assert statistic["total"] == len(list((folder / "allure-results").glob("*-result.json")))


def test_a_run_of_recommendations_only_differs_from_one_that_tried_nothing() -> None:
    hint = planned("scope.hint", level="should")
    tried, nothing = record(hint, checks=(passed("scope.hint"),)), record(replace(hint, selected=False))
    assert add_up(tried).explanation.startswith("What was tried are recommendations and observations: ")
    assert add_up(nothing).explanation.startswith("Nothing was tested: ")
