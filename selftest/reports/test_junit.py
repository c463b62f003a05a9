"""`junit.xml`, parsed as build servers do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from conformance.errors import ExitCode
from conformance.reports import junit
from conformance.reports.facts import Facts
from conformance.results.record import KnownFailure, Reason, TestOutcome
from conformance.results.verdicts import Verdict, add_up
from selftest.reports.report_samples import (
    BROKEN,
    CONFORMANT,
    CURL,
    EMPTY,
    HEADER,
    INCOMPLETE,
    NON_CONFORMANT,
    SAMPLES,
    STOPPED,
    STORY,
    failed,
    left_open,
    planned,
    record,
)

if TYPE_CHECKING:
    from conformance.results.record import RunRecord

CONTRADICTORY = replace(CONFORMANT, tests=(replace(CONFORMANT.tests[0], outcome=TestOutcome.FAILED),))


def _root(record: RunRecord) -> ET.Element:
    return ET.fromstring(junit.render(Facts.of(record)))  # noqa: S314 - our own document


def _cases(record: RunRecord) -> dict[str, ET.Element]:
    return {case.get("name", ""): case for case in _root(record).iter("testcase")}


def _outcome(case: ET.Element) -> str:
    outcomes = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    assert len(outcomes) <= 1
    return outcomes[0] if outcomes else "passed"


def _outcomes(record: RunRecord) -> dict[str, str]:
    return {name: _outcome(case) for name, case in _cases(record).items()}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_count_is_the_number_of_elements(name: str) -> None:
    root = _root(SAMPLES[name])
    for element in (root, *root.iter("testsuite")):
        outcomes = [_outcome(case) for case in element.iter("testcase")]
        for attribute, outcome in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            assert int(element.get(attribute, "-1")) == outcomes.count(outcome)
        assert int(element.get("tests", "-1")) == len(outcomes)


@pytest.mark.parametrize("name", SAMPLES)
def test_there_is_one_case_per_requirement_and_only_verified_ones_are_green(name: str) -> None:
    result = add_up(SAMPLES[name])
    cases = [case for case in _root(SAMPLES[name]).iter("testcase") if case.get("classname") != "conformance.run"]
    assert len(cases) == len(result.rows)
    for case, row in zip(cases, result.rows, strict=True):
        assert (_outcome(case) == "passed") == (row.verdict is Verdict.PASSED)
        assert (_outcome(case) == "failure") == row.is_violation


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "conformant"])
def test_only_a_conformant_run_has_no_failures_errors_or_skips(name: str) -> None:
    root = _root(SAMPLES[name])
    assert sum(int(root.get(attribute, "0")) for attribute in ("failures", "errors", "skipped")) > 0


def test_a_violation_is_a_failure_with_everything_needed_to_repeat_it() -> None:
    case = _cases(NON_CONFORMANT)["scope.switch"]
    failure = case.find("failure")
    assert case.get("classname") == "conformance.scope"
    assert failure is not None
    assert failure.get("type") == "must"
    assert failure.get("message") == (
        "expected 204 without a body; got 204 with 20 bytes (at /namespace/parent_id), and 1 more failed check"
    )
    assert CURL in str(failure.text)
    assert "204 an undue <b>body</b>" in str(failure.text)
    assert "Specification: Endpoints > Job token scope" in str(failure.text)


def test_a_should_that_is_not_met_does_not_fail_a_build_and_is_not_green() -> None:
    skipped = _cases(NON_CONFORMANT)["scope.hint"].find("skipped")
    assert skipped is not None
    assert skipped.get("type") == "warning"
    assert str(skipped.get("message")).startswith("a warning, no violation: should: expected a hint")


def test_gaps_are_errors_with_their_reason_and_those_of_a_should_are_skipped() -> None:
    cases = _cases(INCOMPLETE)
    shown = {name: case.find("*[@message]") for name, case in cases.items()}
    assert shown.pop("scope.read") is None
    assert {name: (element.tag, element.get("message")) for name, element in shown.items() if element is not None} == {
        "scope.switch": ("error", "not verified: precondition not met: precondition not met in this sample"),
        "scope.add": ("error", "not verified: prerequisite missing: prerequisite missing in this sample"),
        "scope.remove": ("error", "not verified: no answer: no answer in this sample"),
        "scope.seen-in-passing": ("error", "not verified: not reached: its tests did not look at it"),
        "scope.hint": ("skipped", "inconclusive: nothing to look at: nothing to look at in this sample"),
        "export.start": ("error", "not verified: no test yet: no test"),
        "export.status": ("error", "not verified: no test yet: no test"),
    }


@pytest.mark.parametrize(("fail_on", "shown"), [("any", ["failure", "error"]), ("new", ["skipped", "skipped"])])
def test_what_waits_for_a_known_failure_is_as_red_as_the_exit_code(fail_on: str, shown: list[str]) -> None:
    known = KnownFailure("It is late.", "a team", "2030-12-31")
    waiting = replace(left_open("scope.read", Reason.PRECONDITION), waits_for="scope.switch")
    plan = (planned("scope.switch", known_failure=known), planned("scope.read"))
    header = replace(HEADER, fail_on=fail_on)
    found = record(*plan, checks=(failed("scope.switch"), waiting), header=header)
    assert list(_outcomes(found).values()) == shown
    assert (add_up(found).exit_code == ExitCode.CONFORMANT) == (set(shown) == {"skipped"})


def test_what_does_not_apply_or_is_only_noted_is_skipped() -> None:
    assert _outcomes(CONFORMANT) == {
        "scope.read": "passed",
        "scope.switch": "passed",
        "scope.page-size": "skipped",
        "export.start": "skipped",
    }


def test_a_test_on_which_the_suite_broke_is_an_error_and_no_failure() -> None:
    outcomes = _outcomes(BROKEN)
    assert outcomes["scope.switch"] == "error"
    assert outcomes["tests/contract/test_operations.py::test_answers[GET /projects/{id}]"] == "error"
    assert _root(BROKEN).get("failures") == "0"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (SAMPLES["broken late"], "broken test: in its teardown: OSError: no space left"),
        (SAMPLES["truncated"], "cut off: The record ends before the run did"),
        (STOPPED, "stopped early: the operator interrupted the run"),
        (EMPTY, "nothing planned: The record names no requirement"),
        (CONTRADICTORY, f"contradiction: {STORY} failed, and names no requirement that did"),
    ],
)
def test_a_problem_that_no_requirement_shows_is_an_error_of_the_run(record: RunRecord, said: str) -> None:
    errors = [
        case.find("error") for case in _root(record).iter("testcase") if case.get("classname") == "conformance.run"
    ]
    assert [str(error.get("message")).startswith(said) for error in errors if error is not None] == [True]


def test_a_complete_run_has_no_extra_suite() -> None:
    assert [suite.get("name") for suite in _root(CONFORMANT)] == ["conformance.scope", "conformance.export"]


def test_the_suite_says_what_was_tested() -> None:
    properties = {
        entry.get("name"): entry.get("value") for entry in _root(CONFORMANT).iterfind("testsuite/properties/*")
    }
    assert (
        properties.items()
        >= {
            "verdict": "conformant",
            "target": "staging",
            "version": "17.7",
            "seed": "4711",
            "digest": "3f9ac1d27b60",
            "truncated": "false",
        }.items()
    )


def test_times_add_up_to_those_of_the_tests() -> None:
    assert _root(CONFORMANT).get("time") == "3.000"
    assert [suite.get("time") for suite in _root(CONFORMANT)] == ["3.000", "0.000"]
