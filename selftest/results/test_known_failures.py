"""What is known to fail: it fails no run, it makes none green either, and it does not stay on the list unnoticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract
from conformance.errors import ConformanceError, ExitCode
from conformance.results.known_failures import load_known_failures
from conformance.results.record import Reason
from conformance.results.verdicts import RunVerdict, Verdict, add_up
from selftest.reports.report_samples import failed, passed, planned, record

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = "Ticket 12: fixed in the next release."
ON_THE_LIST = planned("scope.switch", known_failure=KNOWN)
OTHER = planned("scope.read")


def test_a_known_failure_is_no_violation_and_leaves_the_run_incomplete() -> None:
    result = add_up(record(OTHER, ON_THE_LIST, checks=(passed("scope.read"), failed("scope.switch"))))
    row = result.rows[1]
    assert (row.verdict, row.reason, row.detail) == (Verdict.NOT_TESTED, Reason.KNOWN_FAILURE, KNOWN)
    assert row.evidence
    assert (result.verdict, result.exit_code) == (RunVerdict.INCOMPLETE, ExitCode.INCOMPLETE)
    assert "1 known failure" in result.explanation


def test_another_failure_beside_a_known_one_is_a_violation() -> None:
    result = add_up(record(OTHER, ON_THE_LIST, checks=(failed("scope.read"), failed("scope.switch"))))
    assert result.explanation == "1 requirement violated."
    assert result.exit_code is ExitCode.NON_CONFORMANT


def test_what_holds_again_and_is_still_on_the_list_keeps_the_run_from_being_conformant() -> None:
    result = add_up(record(OTHER, ON_THE_LIST, checks=(passed("scope.read"), passed("scope.switch"))))
    assert result.rows[1].verdict is Verdict.PASSED
    assert result.exit_code is ExitCode.INCOMPLETE
    assert "Take off the list of known failures what holds: scope.switch." in result.explanation


def test_what_does_not_apply_may_stay_on_a_list_for_several_versions() -> None:
    elsewhere = planned("scope.switch", known_failure=KNOWN, status="not applicable", reason=Reason.VERSION)
    assert add_up(record(OTHER, elsewhere, checks=(passed("scope.read"),))).exit_code is ExitCode.CONFORMANT


ENTRY = "  - requirement: job-token-scope.switch.on\n    reason: Ticket 12.\n"


def test_a_list_gives_the_reason_of_each_requirement(tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    file.write_text(f"known_failures:\n{ENTRY}", encoding="utf-8")
    assert load_known_failures(file, Contract.load()) == {"job-token-scope.switch.on": "Ticket 12."}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "Cannot read"),
        ("known_failures: all\n", "is not valid"),
        ("known_failures:\n  - requirement: job-token-scope.switch.on\n", "reason"),
        (
            "known_failures:\n  - {requirement: job-token-scope.swich.on, reason: Ticket 12.}\n",
            "job-token-scope.swich.on",
        ),
        (f"known_failures:\n{ENTRY}{ENTRY}", "twice"),
    ],
    ids=["no file", "no list", "no reason", "no such requirement", "twice"],
)
def test_a_list_that_cannot_be_meant_is_refused(text: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "known.yaml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConformanceError, match=said):
        load_known_failures(file, Contract.load())
