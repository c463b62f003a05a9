"""Which requirements failed for the same cause, and which calls show it."""

from __future__ import annotations

from dataclasses import replace

from conformance.reports.causes import to_repeat
from conformance.reports.facts import Facts
from conformance.results.record import Evidence, Outcome
from selftest.reports.report_samples import EXCHANGE, failed, planned, record


def _call(request: str, status: int = 200) -> Evidence:
    return replace(EXCHANGE, request=request, status=status, curl=request)


def _groups(*checks: tuple[str, str, str]) -> list[list[str]]:
    """Return the ids that stand together, of checks that each say: id, request, actual."""
    run = record(
        *(planned(name) for name in dict.fromkeys(name for name, _, _ in checks)),
        checks=tuple(failed(name, actual=actual, evidence=(_call(call),)) for name, call, actual in checks),
    )
    return [[row.requirement.id for row in cause.rows] for cause in Facts.of(run).causes]


def test_the_same_answer_of_the_same_operation_is_one_cause() -> None:
    assert _groups(
        ("a.one", "GET /api/v4/projects/7/things", "status 500"),
        ("a.two", "GET /api/v4/projects/12/things?page=2", "status 500"),
        ("b.three", "GET /api/v4/projects/group%2Fproject/things", "status 500"),
    ) == [["a.one", "a.two", "b.three"]]


def test_another_operation_or_another_answer_is_another_cause() -> None:
    assert _groups(
        ("a.one", "GET /api/v4/projects/7/things", "status 500"),
        ("a.two", "PUT /api/v4/projects/7/things", "status 500"),
        ("a.three", "GET /api/v4/projects/7/things", "no entry"),
        ("a.four", "GET /api/v4/projects/7/others", "status 500"),
    ) == [["a.one"], ["a.two"], ["a.three"], ["a.four"]]


def test_who_is_served_unduly_and_what_is_served_wrongly_are_causes_of_their_own() -> None:
    undue = {"expected": "a refusal (any 4xx)", "actual": "status 200"}
    run = record(
        planned("a.no-content"),
        planned("a.below-maintainer"),
        planned("a.must-be-given"),
        planned("a.also-no-content"),
        checks=(
            failed("a.no-content", "status 204", "status 200", evidence=(_call("PATCH /api/v4/a"),)),
            failed("a.below-maintainer", **undue, evidence=(replace(_call("PATCH /api/v4/a"), actor="guest"),)),
            failed("a.must-be-given", **undue, evidence=(_call("PATCH /api/v4/a"),)),
            failed("a.also-no-content", "no body", "status 200", evidence=(_call("PATCH /api/v4/a"),)),
        ),
    )
    assert [[row.requirement.id for row in cause.rows] for cause in Facts.of(run).causes] == [
        ["a.no-content", "a.also-no-content"],
        ["a.below-maintainer"],
        ["a.must-be-given"],
    ]


def test_a_requirement_that_failed_for_several_reasons_stands_with_most_others() -> None:
    assert _groups(
        ("a.one", "GET /api/v4/a", "its own"),
        ("a.one", "GET /api/v4/b", "shared"),
        ("a.two", "GET /api/v4/b", "shared"),
    ) == [["a.one", "a.two"]]


def test_a_warning_never_hides_below_a_violation_nor_the_other_way_round() -> None:
    run = record(
        planned("a.hint", level="should"),
        planned("a.duty"),
        planned("a.shaky"),
        checks=(failed("a.hint"), failed("a.duty"), failed("a.shaky", outcome=Outcome.UNSTABLE)),
    )
    assert [[row.requirement.id for row in cause.rows] for cause in Facts.of(run).causes] == [
        ["a.duty"],
        ["a.hint"],
        ["a.shaky"],
    ]


def test_a_wrong_state_is_repeated_by_the_change_and_the_look_and_a_refusal_by_itself() -> None:
    change, look = _call("PATCH /things", 204), _call("GET /things")
    assert to_repeat(failed("a.one", evidence=(look, change, look))) == (change, look)
    assert to_repeat(failed("a.one", evidence=(change, _call("GET /things", 403))))[0].status == 403
    assert to_repeat(failed("a.one", evidence=(look, change))) == (change,)
    assert to_repeat(failed("a.one", evidence=())) == ()
