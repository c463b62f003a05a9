"""What counts for a test that failed and ran once more."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from conformance.errors import ExitCode
from conformance.proof.written.merge_request_approvals import unapproval_changes_nothing
from conformance.results.reading import read_record
from conformance.results.record import Check, Evidence, Outcome, Reason, TestEnd, TestOutcome
from conformance.runner.reruns import Reruns
from conformance.runner.session import Session
from conformance.target.stand_ins import StandIn, StandIns
from selftest.altering import altering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.results.recorder import Line

TEST, REQUIREMENT = "tests/test_it.py::test_it", "merge-request-approvals.rules.code-owner.cannot-be-deleted"
HELD = Check(REQUIREMENT, Outcome.PASSED, TEST)
GONE = Check(REQUIREMENT, Outcome.INCONCLUSIVE, TEST, Reason.VACUOUS, "there is no such rule")
KEPT = Check(REQUIREMENT, Outcome.INCONCLUSIVE, TEST, Reason.PRECONDITION, "POST /approve was refused with 401")


def failed_by(request: str, status: int, body: str | None = None) -> Check:
    shown = Evidence("maintainer", request, None, status, body, 1.0, f"curl {request}")
    return Check(REQUIREMENT, Outcome.FAILED, TEST, expected="a refusal", actual=f"status {status}", evidence=(shown,))


def ended_test(*, is_unmet: bool = False, failures: int = 0, calls_at_once: bool = False) -> Any:
    results = SimpleNamespace(is_unmet=is_unmet, failures=failures)
    return cast("Any", SimpleNamespace(spoiled_by=None, calls_at_once=calls_at_once, results=results))


DELETED, READ = failed_by("DELETE /api/v4/rules/1", 204), failed_by("GET /api/v4/rules/1", 200)
PAGE = failed_by("DELETE /api/v4/rules/1", 200, "<!doctype html><title>Sign in</title>")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (DELETED, DELETED, Outcome.FAILED),
        (DELETED, HELD, Outcome.UNSTABLE),
        (DELETED, GONE, Outcome.FAILED),
        (READ, GONE, Outcome.UNSTABLE),
        (PAGE, GONE, Outcome.UNSTABLE),
    ],
    ids=["failed-twice", "held-then", "took-away-what-it-was-sent-to", "read-what-is-gone", "a-page-of-a-gateway"],
)
def test_a_failure_counts_unless_it_can_be_observed_again_and_then_holds(
    first: Check, second: Check, expected: Outcome
) -> None:
    reruns = Reruns(confirms=True, most=0, area="merge-request-approvals", stand_ins=StandIns())
    test = ended_test(is_unmet=False, failures=1)
    assert reruns.lines_after([first, TestEnd(TEST, TestOutcome.FAILED)], test) is None
    ended = TestOutcome.FAILED if second.outcome is Outcome.FAILED else TestOutcome.INCONCLUSIVE
    lines: list[Line] = [second, TestEnd(TEST, ended)]
    counted = reruns.lines_after(lines, test) or ()
    assert expected in [line.outcome for line in counted if isinstance(line, Check)]
    assert [line.outcome for line in counted if isinstance(line, TestEnd)] == [TestOutcome(expected.value)]


@pytest.mark.parametrize(
    ("third", "expected"), [(KEPT, Outcome.FAILED), (HELD, Outcome.UNSTABLE), (READ, Outcome.FAILED)]
)
def test_a_failure_counts_that_twice_cannot_be_checked_because_of_an_earlier_step(
    third: Check, expected: Outcome
) -> None:
    """What was not taken back cannot be given again, so that no later attempt comes to the step that failed."""
    reruns = Reruns(confirms=True, most=0, area="merge-request-approvals", stand_ins=StandIns())
    counted: Any = None
    for check in (READ, KEPT, third):
        assert counted is None
        ended = TestOutcome.FAILED if check.outcome is Outcome.FAILED else TestOutcome.INCONCLUSIVE
        test = ended_test(is_unmet=check is KEPT, failures=check.outcome is Outcome.FAILED)
        counted = reruns.lines_after([check, TestEnd(TEST, ended)], test)
    outcomes = [line.outcome for line in counted if isinstance(line, Check)]
    assert expected in outcomes
    assert [line.outcome for line in counted if isinstance(line, TestEnd)] == [TestOutcome(expected.value)]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [([READ, HELD, HELD, READ], Outcome.FAILED), ([READ, HELD, HELD, HELD, HELD], Outcome.UNSTABLE)],
    ids=["lost-twice", "lost-once"],
)
def test_what_is_lost_between_calls_at_the_same_moment_counts_if_it_is_lost_twice(
    attempts: list[Check], expected: Outcome
) -> None:
    reruns = Reruns(confirms=True, most=0, area="merge-request-approvals", stand_ins=StandIns())
    counted: Any = None
    for check in attempts:
        assert counted is None
        test = ended_test(failures=check.outcome is Outcome.FAILED, calls_at_once=True)
        counted = reruns.lines_after([check, TestEnd(TEST, TestOutcome(check.outcome.value))], test)
    assert expected in [line.outcome for line in counted if isinstance(line, Check)]
    assert [line.outcome for line in counted if isinstance(line, TestEnd)] == [TestOutcome(expected.value)]


def test_an_attempt_with_other_fixtures_counts_only_if_it_ran() -> None:
    """With what is set aside, an actor may be missing, and a report would ask for an actor whom the profile has."""
    unmet = ended_test(is_unmet=True)
    broken = replace(GONE, detail="GET /projects/10/job_token_scope was not served: status 500", claimed=True)
    lacking = replace(broken, outcome=Outcome.NOT_TESTED, reason=Reason.PREREQUISITE_MISSING, detail="no maintainer")
    ran: list[Line] = [
        replace(broken, outcome=Outcome.PASSED, reason=None, detail=None),
        TestEnd(TEST, TestOutcome.PASSED),
    ]
    not_run: list[Line] = [lacking, TestEnd(TEST, TestOutcome.NOT_TESTED)]
    for second, expected in ((not_run, broken), (ran, ran[0])):
        stand_ins = StandIns([StandIn("what is set aside", cast("Any", None))])
        reruns = Reruns(confirms=True, most=0, area="job-token-scope", stand_ins=stand_ins)
        other = replace(broken, requirement="job-token-scope.settings.read")
        assert reruns.lines_after([broken, other, TestEnd(TEST, TestOutcome.PASSED)], unmet) is None
        counted = reruns.lines_after(second, unmet) or ()
        assert expected in counted
        assert lacking not in counted
        assert not any("because: None" in str(line) for line in counted)


@pytest.mark.parametrize("ended", [TestOutcome.INCONCLUSIVE, TestOutcome.FAILED], ids=["within", "in its teardown"])
def test_what_failed_in_the_last_attempt_of_a_run_alone_is_unstable(ended: TestOutcome) -> None:
    reruns = Reruns(confirms=True, most=0, area="merge-request-approvals", stand_ins=StandIns())
    once = Reruns(confirms=False, most=0, area="merge-request-approvals", stand_ins=StandIns())
    for attempts, expected in ((reruns, Outcome.UNSTABLE), (once, Outcome.FAILED)):
        lines = attempts.lines_at_last([DELETED, TestEnd(TEST, ended)])
        assert [line.outcome for line in lines if isinstance(line, Check)] == [expected]
        # A test that failed without a requirement that did would be a fault of the suite.
        is_unstable = attempts is reruns and ended is TestOutcome.FAILED
        assert [line.outcome for line in lines if isinstance(line, TestEnd)] == [
            TestOutcome.UNSTABLE if is_unstable else ended
        ]


def test_what_failed_is_told_although_the_run_was_interrupted_before_the_test_ran_once_more(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before another attempt, the run may wait a minute for a target that does not answer."""
    service, base_url = reference

    def alter(_: Request, response: Response) -> None:
        response.content = {"inbound_enabled": "perhaps", "outbound_enabled": False}

    def interrupted(_: Session) -> None:
        raise KeyboardInterrupt

    altering(service, "GET /projects/:id/job_token_scope", alter)
    monkeypatch.setattr(Session, "await_answers", interrupted)
    write_profile(service, base_url)
    options = ("-q", "--workers", "1", "--corpus", "none", "--target", "target.yaml", "--out", "out")
    outcome = conformance("run", *options, "--requirement", "job-token-scope.settings.read")
    assert outcome.code == ExitCode.INTERRUPTED, outcome.text
    record = read_record(tmp_path / "out" / "results.jsonl")
    ended = {end.test: end.outcome for end in record.tests}
    failed = [check for check in record.checks if check.outcome is Outcome.UNSTABLE]
    assert {ended[check.test] for check in failed} == {TestOutcome.UNSTABLE}
    assert all(check.evidence for check in failed)


def test_a_withdrawal_that_does_nothing_fails_although_nobody_can_approve_again(
    conformance: Callable[..., Any], reference: tuple[Service, str], write_profile: Callable[..., Path]
) -> None:
    """A second approval may be refused: then neither another attempt nor another run begins without one."""
    unapproval_changes_nothing(reference[0])
    write_profile(*reference)
    name = "merge-request-approvals.unapprove.caller-is-gone"
    for number in range(2):
        options = ("-q", "--workers", "1", "--corpus", "none", "--target", "target.yaml", "--out", f"out-{number}")
        outcome = conformance("run", *options, "--requirement", name)
        assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
        assert name in outcome.text
