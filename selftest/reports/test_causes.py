"""Which requirements failed for the same cause, and which calls show it."""

from __future__ import annotations

from dataclasses import replace

from conformance.reports.facts import Facts
from conformance.results.record import Evidence, Outcome, Reason
from conformance.results.sequence import to_repeat
from selftest.reports.report_samples import EXCHANGE, failed, planned, record


def _call(request: str, status: int = 200) -> Evidence:
    return replace(EXCHANGE, request=request, status=status, curl=request)


def _groups(*checks: tuple[str, str, str]) -> list[list[str]]:
    """Return the ids that are grouped together, for checks given as id, request, actual."""
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


def test_answers_that_are_all_empty_or_wrapped_alike_are_one_cause() -> None:
    empty, wrapped, other, error = "{}", '{"data": [1]}', '{"number": 7}', '{"message": "404 Not found"}'
    told = [
        ("a.one", "GET /api/v4/things", empty, "/one"),
        ("a.two", "GET /api/v4/things", empty, "/two"),
        ("b.list", "GET /api/v4/others", empty, "/"),
        ("a.wrapped", "GET /api/v4/things", wrapped, "/name"),
        ("b.wrapped", "GET /api/v4/others", wrapped, "/"),
        ("a.kind-of-data", "GET /api/v4/things", wrapped, "/data"),
        ("a.inside", "GET /api/v4/things", wrapped, "/data/0"),
        ("a.few", "GET /api/v4/things", other, "/name"),
        ("a.fewer", "GET /api/v4/things", other, "/size"),
        ("a.undue", "GET /api/v4/things", empty, None),
        ("a.error", "GET /api/v4/things", error, "/name"),
        ("a.as-well", "GET /api/v4/things", error, "/size"),
    ]
    run = record(
        *(planned(name) for name, *_ in told),
        checks=tuple(
            failed(name, actual="it is missing", place=place, evidence=(replace(_call(call), response_body=body),))
            for name, call, body, place in told
        ),
    )
    causes = Facts.of(run).causes
    assert [[row.requirement.id for row in cause.rows] for cause in causes] == [
        ["a.one", "a.two", "b.list"],
        ["a.wrapped", "b.wrapped"],
        ["a.kind-of-data"],
        ["a.inside"],
        ["a.few"],
        ["a.fewer"],
        ["a.undue"],
        ["a.error", "a.as-well"],
    ]
    assert [cause.same for cause in causes[:2]] == [
        "The same, an answer of the form {},",
        'The same, an answer of the form {"data": ...},',
    ]
    assert {cause.same for cause in causes[2:-1]} == {"The same"}


def test_serving_a_wrong_caller_and_serving_wrongly_are_separate_causes() -> None:
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


def test_a_requirement_with_several_causes_is_listed_with_the_most_others() -> None:
    assert _groups(
        ("a.one", "GET /api/v4/a", "its own"),
        ("a.one", "GET /api/v4/b", "shared"),
        ("a.two", "GET /api/v4/b", "shared"),
    ) == [["a.one", "a.two"]]


def test_warnings_and_violations_are_never_one_cause() -> None:
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


def _repeated(*calls: Evidence) -> tuple[str, ...]:
    return to_repeat(failed("a.one", evidence=calls)).commands


def test_a_failure_is_repeated_with_the_changes_before_and_the_call_that_shows_it() -> None:
    made, gone = _call("POST /api/v4/projects/7/list", 201), _call("DELETE /api/v4/projects/a%2Fb/list/3", 204)
    look = _call("GET /api/v4/projects/7/list")
    assert _repeated(made, look, gone) == (made.curl, gone.curl)
    assert _repeated(look, made, gone, look) == (made.curl, gone.curl, look.curl)
    assert _repeated(made, replace(look, status=404)) == (made.curl, look.curl)
    assert _repeated(look) == (look.curl,)
    assert _repeated() == ()


def test_refused_calls_and_changes_of_other_things_are_not_repeated() -> None:
    shown = _call("PUT /api/v4/projects/7/integrations/chat")
    others = (_call("PUT /api/v4/projects/8/integrations/chat"), _call("PUT /api/v4/projects/7/integrations/mail"))
    refused = replace(shown, status=403)
    assert _repeated(*others, refused, shown) == (shown.curl,)
    look = _call("GET /api/v4/projects/7/integrations")
    assert _repeated(shown, refused, look) == (shown.curl, refused.curl, look.curl)


def test_creating_and_deleting_before_creating_again_is_not_repeated() -> None:
    made, gone = _call("POST /api/v4/projects/7/list", 201), _call("DELETE /api/v4/projects/7/list/3", 204)
    by_path, other = _call("DELETE /api/v4/projects/a%2Fb/list/3", 204), _call("PUT /api/v4/projects/7/switch")
    assert _repeated(made, by_path, other, made, gone) == (other.curl, made.curl, gone.curl)
    look = _call("GET /api/v4/projects/7/list")
    assert _repeated(gone, made, gone, made, look) == (made.curl, gone.curl, made.curl, look.curl)


def test_of_many_writes_the_last_are_repeated_and_the_others_counted() -> None:
    many = [_call(f"POST /api/v4/projects/7/list?{number}", 201) for number in range(9)]
    note, *commands = _repeated(*many)
    assert commands == [entry.curl for entry in many[-5:]]
    assert note == "# 4 earlier calls are left out; junit.xml and report.json have all that were kept"


def test_absent_operations_come_behind_what_is_there_and_wrong() -> None:
    """A half-built service lacks many, and one line names them all: otherwise the first ten hide every fault."""
    names = ("a.absent", "b.wrong", "c.absent", "d.wrong")
    reasons = {name: Reason.OPERATION_ABSENT for name in names if name.endswith("absent")}
    checks = tuple(failed(name, reason=reasons.get(name)) for name in names)
    shown = [row.requirement.id for row in Facts.of(record(*map(planned, names), checks=checks)).failed]
    assert shown == ["b.wrong", "d.wrong", "a.absent", "c.absent"]
