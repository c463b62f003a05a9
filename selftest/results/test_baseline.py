"""A known failure stays a violation, need not fail the run, and does not stay in the baseline unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from conformance.cli import commands
from conformance.contract import Contract
from conformance.errors import ConformanceError, ExitCode
from conformance.results.baseline import baseline_of, load_baseline
from conformance.results.record import KnownFailure, Outcome, Reason, RunRecord
from conformance.results.verdicts import RunVerdict, Verdict, add_up
from selftest.reports.report_samples import FOOTER, failed, left_open, passed, planned, record, written

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.results.record import Check, PlannedRequirement

TODAY = date(2026, 11, 22)
KNOWN = KnownFailure("Fixed in the next release.", "team A", "2026-12-31", "https://example.com/12")
OLD = replace(KNOWN, expires="2026-11-21", expired=True)
OTHER = planned("scope.read")
BOTH_FAILED = (failed("scope.read"), failed("scope.switch"))
ONE_FAILED = (passed("scope.read"), failed("scope.switch"))


def listed(known: KnownFailure = KNOWN) -> PlannedRequirement:
    return planned("scope.switch", known_failure=known)


def run(entry: PlannedRequirement, checks: tuple[Check, ...], fail_on: str = "new") -> RunRecord:
    found = record(OTHER, entry, checks=checks)
    return replace(found, header=replace(found.header, fail_on=fail_on))


def test_a_known_failure_is_a_violation_and_is_counted_separately() -> None:
    result = add_up(run(listed(), ONE_FAILED, fail_on="any"))
    assert (result.verdict, result.exit_code) == (RunVerdict.NON_CONFORMANT, ExitCode.NON_CONFORMANT)
    assert result.explanation == "1 requirement violated, of which 1 in the baseline."
    assert result.rows[1].is_known


def test_if_only_new_failures_count_a_known_one_fails_no_run() -> None:
    result = add_up(run(listed(), ONE_FAILED))
    assert (result.verdict, result.exit_code) == (RunVerdict.NON_CONFORMANT, ExitCode.CONFORMANT)


def test_a_run_of_only_known_failures_finds_nothing_new() -> None:
    found = record(listed(), checks=(failed("scope.switch"),))
    assert add_up(replace(found, header=replace(found.header, fail_on="new"))).exit_code is ExitCode.CONFORMANT


@pytest.mark.parametrize("checks", [BOTH_FAILED, (failed("scope.read"), passed("scope.switch"))])
def test_a_new_failure_fails_the_run(checks: tuple[Check, ...]) -> None:
    assert add_up(run(listed(), checks)).exit_code is ExitCode.NON_CONFORMANT


def test_open_requirements_beside_known_failures_leave_the_run_incomplete() -> None:
    assert add_up(run(listed(), (failed("scope.switch"),))).exit_code is ExitCode.INCOMPLETE


WAITING = replace(left_open("scope.read", Reason.PRECONDITION), waits_for="scope.switch")
LACKING = replace(WAITING, reason=Reason.OPERATION_ABSENT, outcome=Outcome.NOT_TESTED)


@pytest.mark.parametrize(
    ("checks", "exit_code"),
    [
        ((WAITING,), ExitCode.CONFORMANT),
        ((LACKING,), ExitCode.CONFORMANT),
        ((passed("scope.read"), WAITING), ExitCode.CONFORMANT),
        ((WAITING, left_open("scope.read", Reason.PRECONDITION)), ExitCode.INCOMPLETE),
        ((replace(WAITING, waits_for="scope.other"),), ExitCode.INCOMPLETE),
    ],
    ids=[
        "waits alone",
        "needs an absent operation",
        "holds elsewhere",
        "is open for another reason too",
        "waits for what is not known",
    ],
)
def test_what_depends_only_on_a_known_failure_fails_no_run(checks: tuple[Check, ...], exit_code: ExitCode) -> None:
    result = add_up(run(listed(), (failed("scope.switch"), *checks)))
    assert (result.verdict, result.exit_code) == (RunVerdict.NON_CONFORMANT, exit_code)


def test_an_expired_entry_does_not_count_and_is_named() -> None:
    result = add_up(run(listed(OLD), ONE_FAILED))
    assert result.exit_code is ExitCode.NON_CONFORMANT
    assert result.explanation == "1 requirement violated. Expired in the baseline: scope.switch."


def test_a_known_failure_that_holds_again_is_named_and_fails_no_run() -> None:
    result = add_up(run(listed(), (passed("scope.read"), passed("scope.switch"))))
    assert (result.rows[1].verdict, result.exit_code) == (Verdict.PASSED, ExitCode.CONFORMANT)
    assert result.beside_known is None  # there is no failure for it to be counted with
    assert "Take out of the baseline what holds: scope.switch." in result.explanation


def test_entries_that_do_not_apply_at_a_version_may_stay_in_a_baseline() -> None:
    elsewhere = planned("scope.switch", known_failure=KNOWN, status="not applicable", reason=Reason.VERSION)
    assert add_up(record(OTHER, elsewhere, checks=(passed("scope.read"),))).exit_code is ExitCode.CONFORMANT


ENTRY = """\
  - requirement: job-token-scope.switch.on
    reason: The switch is slow.
    owner: team A
    link: https://example.com/12
    expires: 2026-12-31
"""
OF_ENTRY = KnownFailure("The switch is slow.", "team A", "2026-12-31", "https://example.com/12")


def read(tmp_path: Path, text: str, today: date = TODAY) -> dict[str, KnownFailure]:
    file = tmp_path / "baseline.yaml"
    file.write_text(text, encoding="utf-8")
    return dict(load_baseline(file, Contract.load(), today))


@pytest.mark.parametrize(("today", "expired"), [(date(2026, 12, 31), False), (date(2027, 1, 1), True)])
def test_an_entry_counts_on_its_last_day_and_not_after_it(today: date, expired: bool, tmp_path: Path) -> None:  # noqa: FBT001
    found = read(tmp_path, f"baseline:\n{ENTRY}", today)
    assert found == {"job-token-scope.switch.on": replace(OF_ENTRY, expired=expired)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("baseline: all\n", "is not valid at baseline: .*--schema"),
        ("", "is not valid"),
        ("known_failures: []\n", "is not valid"),
        (f"baseline:\n{ENTRY.replace('team A', '')}", "owner"),
        (f"baseline:\n{ENTRY.replace('    owner: team A', '')}", "owner"),
        (f"baseline:\n{ENTRY.replace('2026-12-31', 'soon')}", "'soon' is no date such as 2030-12-31"),
        (f"baseline:\n{ENTRY.replace('2026-12-31', '31.12.2030')}", "'31.12.2030' is no date such as 2030-12-31"),
        (f"baseline:\n{ENTRY.replace('2026-12-31', '2030-13-45')}", "line 6, entry job-token-scope.switch.on: '2030-"),
        (f"baseline:\n{ENTRY.replace('2026-12-31', '2026-02-30')}", "'2026-02-30' is no date"),
        (f"baseline:\n{ENTRY.replace('2026-12-31', '!!str 2026-02-30')}", "'2026-02-30' is no date"),
        (f"baseline:\n{ENTRY.replace('https://example.com/12', 'ticket 12')}", "link"),
        (
            f"baseline:\n{ENTRY.replace('switch.on', 'swich.on')}",
            "not valid at job-token-scope.swich.on: There is",
        ),
        (f"baseline:\n{ENTRY}{ENTRY}", "twice"),
        ("baseline: [\n", "not valid YAML"),
    ],
)
def test_an_invalid_baseline_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match=said):
        read(tmp_path, text)


def test_a_missing_baseline_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match="Cannot read the baseline"):
        load_baseline(tmp_path / "none.yaml", Contract.load(), TODAY)


def test_a_baseline_is_written_from_a_run_and_keeps_former_entries(tmp_path: Path) -> None:
    names = ("job-token-scope.switch.on", "job-token-scope.switch.off")
    rows = (planned(names[0], known_failure=OF_ENTRY), planned(names[1]))
    result = add_up(record(*rows, checks=tuple(map(failed, names))))
    found = read(tmp_path, baseline_of(result, "team B", date(2027, 2, 1)))
    assert found[names[0]] == OF_ENTRY
    assert (found[names[1]].owner, found[names[1]].expires) == ("team B", "2027-02-01")
    assert "204 without a body" in found[names[1]].reason


def test_an_entry_stays_until_a_run_saw_that_it_holds(tmp_path: Path) -> None:
    names = [f"job-token-scope.switch.{name}" for name in ("on", "off", "no-content")]
    shaky, open_, holds = (planned(name, known_failure=OF_ENTRY) for name in names)
    elsewhere = planned("job-token-scope.settings.read", known_failure=OF_ENTRY, selected=False)
    gap = left_open(open_.id, Reason.PRECONDITION)
    checks = (failed(shaky.id, outcome=Outcome.UNSTABLE), gap, passed(holds.id))
    result = add_up(record(shaky, open_, holds, elsewhere, checks=checks))
    found = read(tmp_path, baseline_of(result, "team B", date(2027, 2, 1)))
    assert found == dict.fromkeys((shaky.id, open_.id, elsewhere.id), OF_ENTRY)


def test_a_written_baseline_can_be_read_whatever_the_target_answered(tmp_path: Path) -> None:
    odd = "\ud800\x00\x1b[31m\x85\ufeff\u202e: '\"# \U0001f600"
    name = next(iter(Contract.load().requirements))
    result = add_up(record(planned(name), checks=(failed(name, actual=odd),)))
    reason = read(tmp_path, baseline_of(result, "team B", date(2027, 2, 1)))[name].reason
    assert r"got \ud800\x00\x1b[31m\x85\ufeff\u202e: '" in reason
    assert reason.isprintable()


@pytest.mark.parametrize(("stopped", "is_warned"), [(None, False), ("the requests of --max-requests were spent", True)])
def test_of_a_run_that_was_stopped_there_is_a_warning(
    stopped: str | None,
    is_warned: bool,  # noqa: FBT001 - a column
    tmp_path: Path,
) -> None:
    ended = replace(FOOTER, detail=stopped)
    file = written(record(OTHER, checks=(failed("scope.read"),), footer=ended), tmp_path)
    told = CliRunner().invoke(commands, ["baseline", str(file)])
    assert ("is not whole" in told.output) is is_warned, told.output


def test_the_schema_of_the_file_is_printed() -> None:
    asked = CliRunner().invoke(commands, ["baseline", "--schema"])
    assert json.loads(asked.output)["title"] == "Baseline"
