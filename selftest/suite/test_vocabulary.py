"""What the suite's vocabulary makes of a response: failed, inconclusive, or held; and never held without a check."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.results.record import Check, Outcome, Reason
from conformance.suite.context import MisuseError, Unmet, Violation, current_run, current_test
from conformance.suite.evidence import evidence_of
from conformance.suite.expectations import Answer, Caller, given, left_to_others, must, observe, unchanged, verifies
from conformance.suite.expectations import Path as ApiPath
from conformance.target.profile_file import profile_from
from selftest.conftest import in_a_test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.results.recorder import Line
    from conformance.suite.context import Run

ON = "job-token-scope.switch.on"
OFF = "job-token-scope.switch.off"
NOTE = "job-token-scope.allowlist.add.repeated-answer"
SCOPE = ApiPath("/projects/1/job_token_scope")


@pytest.fixture
def lines() -> list[Line]:
    """The lines that the test of the suite writes."""
    return []


@pytest.fixture
def start(lines: list[Line]) -> Iterator[Callable[[str], Run]]:
    """Begin a run against an address, inside a test that declares three requirements."""
    with ExitStack() as stack:

        def begin(base_url: str) -> Run:
            data = {"base_url": base_url, "version": "17.7", "actors": {"maintainer": {"token": "secret-token"}}}
            profile = profile_from({**data, "fixtures": {"project": {"id": 1}}}, "test")
            return stack.enter_context(in_a_test(profile, ON, OFF, NOTE, lines=lines)).run

        yield begin


@pytest.fixture
def maintainer(start: Callable[[str], Run], answering: Callable[..., str]) -> Callable[..., Caller]:
    """A maintainer of a target that answers every call alike."""

    def of(status: int, body: object = None, content_type: str = "application/json") -> Caller:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        run = start(answering(status, sent, content_type))
        return Caller(run, run.profile.actors["maintainer"])

    return of


def checks(lines: list[Line]) -> dict[str, list[tuple[Outcome, Reason | None]]]:
    found: dict[str, list[tuple[Outcome, Reason | None]]] = {}
    for check in lines:
        if isinstance(check, Check):
            found.setdefault(check.requirement, []).append((check.outcome, check.reason))
    return found


def test_what_is_left_to_others_counts_all_the_same_where_it_is_seen_to_hold(
    maintainer: Any, lines: list[Line]
) -> None:
    """The other tests may not be planned: then nobody else would say so."""
    maintainer(200, {})
    left_to_others()
    for _ in range(2):
        with verifies(ON):
            must(True, "anything", "nothing")
    assert checks(lines) == {ON: [(Outcome.PASSED, None)]}


def test_a_block_whose_expectations_hold_passes_its_requirement(maintainer: Any, lines: list[Line]) -> None:
    caller = maintainer(200, {"inbound_enabled": True, "outbound_enabled": False})
    with verifies(ON):
        caller.get(SCOPE).must_be(200).must_hold(inbound_enabled=True)
    assert checks(lines)[ON] == [(Outcome.PASSED, None)]


def test_a_violation_fails_its_requirement_and_ends_the_test(maintainer: Any, lines: list[Line]) -> None:
    caller = maintainer(200, {"inbound_enabled": False, "outbound_enabled": False})
    with pytest.raises(Violation, match="inbound_enabled = true"), verifies(ON):
        caller.get(SCOPE).must_hold(inbound_enabled=True)
    assert checks(lines)[ON] == [(Outcome.FAILED, None)]


def test_a_test_continues_after_a_violation_only_where_it_says_so(maintainer: Any, lines: list[Line]) -> None:
    caller = maintainer(200, {"inbound_enabled": False, "outbound_enabled": False})
    with verifies(ON, go_on=True):
        caller.get(SCOPE).must_hold(inbound_enabled=True)
    with verifies(OFF):
        caller.get(SCOPE).must_hold(inbound_enabled=False)
    found = checks(lines)
    assert (found[ON], found[OFF]) == ([(Outcome.FAILED, None)], [(Outcome.PASSED, None)])


@pytest.mark.parametrize("go_on", [True, False])
def test_what_a_block_inside_another_one_fails_is_held_against_that_one_alone(
    maintainer: Any,
    lines: list[Line],
    go_on: bool,  # noqa: FBT001 - a value
) -> None:
    caller = maintainer(200, {"inbound_enabled": False, "outbound_enabled": False})
    with ExitStack() as ending:
        if not go_on:
            ending.enter_context(pytest.raises(Violation))
        with verifies(OFF, go_on=go_on):
            caller.get(SCOPE).must_hold(inbound_enabled=False)
            with verifies(ON):
                caller.get(SCOPE).must_hold(inbound_enabled=True)
    found = checks(lines)
    assert (found[ON], found[OFF]) == ([(Outcome.FAILED, None)], [(Outcome.INCONCLUSIVE, Reason.PRECONDITION)])
    assert [check.waits_for for check in lines if isinstance(check, Check) and check.requirement == OFF] == [ON]
    assert bool(current_test().soft_failures) == go_on, "a test that goes on after a violation fails at its end"


def test_a_block_without_a_check_is_a_mistake_of_the_suite(maintainer: Any) -> None:
    caller = maintainer(200, {"inbound_enabled": True, "outbound_enabled": False})
    with pytest.raises(MisuseError, match="looks at nothing"), verifies(ON):
        caller.get(SCOPE)


def test_what_an_earlier_step_left_nothing_of_is_open_and_no_mistake(maintainer: Any, lines: list[Line]) -> None:
    maintainer(200, {})
    found: list[Answer] = []
    with verifies(OFF, go_on=True):
        given(False, "there is no answer to look at")
    with verifies(ON):
        for answer in found:
            answer.must_be(200)
    assert checks(lines)[ON] == [(Outcome.INCONCLUSIVE, Reason.PRECONDITION)]


def test_a_test_cannot_verify_a_requirement_that_it_does_not_declare(maintainer: Any) -> None:
    maintainer(200, {})
    with pytest.raises(MisuseError, match="without declaring"), verifies("job-token-scope.allowlist.list"):
        must(True, "nothing", "nothing")


@pytest.mark.parametrize("status", [403, 404, 401, 422])
def test_any_4xx_is_a_refusal_if_the_right_actor_was_served(maintainer: Any, lines: list[Line], status: int) -> None:
    control = maintainer(200, {}).get(SCOPE)
    refused = maintainer(status, {}).get(SCOPE)
    with verifies(ON):
        refused.must_be_refused(beside=control)
    assert checks(lines)[ON] == [(Outcome.PASSED, None)]


@pytest.mark.parametrize("status", [200, 204, 302, 500])
def test_neither_a_success_nor_a_server_error_is_a_refusal(maintainer: Any, status: int) -> None:
    answer = maintainer(status, {}).get(SCOPE)
    with pytest.raises(Violation, match="a refusal"):
        answer.must_be_refused(beside=None)


def test_a_refusal_is_inconclusive_if_the_control_is_refused_too(maintainer: Any, lines: list[Line]) -> None:
    caller = maintainer(404, {})
    control = caller.get(SCOPE)
    with pytest.raises(Unmet, match="a refusal proves nothing"), verifies(ON):
        caller.get(SCOPE).must_be_refused(beside=control)
    assert checks(lines)[ON] == [(Outcome.INCONCLUSIVE, Reason.PRECONDITION)]


def test_a_wrong_call_that_is_served_fails_although_its_control_is_refused_now(maintainer: Any) -> None:
    caller = maintainer(200, {})
    wrong = caller.get(SCOPE)
    too_late = Answer(replace(wrong.exchange, status=404))
    with pytest.raises(Violation, match="a refusal"):
        wrong.must_be_refused(beside=too_late)


def test_a_wrong_call_that_is_served_is_open_if_nobody_was_ever_served(maintainer: Any) -> None:
    caller = maintainer(200, {})
    wrong = Caller(current_run(), None).get(SCOPE)
    never = Answer(replace(caller.get(ApiPath("/nowhere")).exchange, status=404))
    with pytest.raises(Unmet, match="a refusal proves nothing"):
        wrong.must_be_refused(beside=never)


def test_too_many_requests_is_never_a_verdict(maintainer: Any, lines: list[Line]) -> None:
    caller = maintainer(429, {})
    caller._run.client.retries.waited = 1e9  # noqa: SLF001 - as if all waiting had been done
    with pytest.raises(Unmet, match="429"), verifies(ON):
        caller.get(SCOPE).must_be_refused(beside=None)
    assert checks(lines)[ON] == [(Outcome.INCONCLUSIVE, Reason.NO_ANSWER)]


def test_an_absence_proves_nothing_if_the_entry_was_never_there(maintainer: Any) -> None:
    caller = maintainer(200, [])
    empty = caller.list(SCOPE / "allowlist")
    with pytest.raises(Unmet, match="could have gone"):
        caller.list(SCOPE / "allowlist").must_not_contain(id=1, after=empty)


def test_a_missing_entry_cannot_be_checked(maintainer: Any) -> None:
    caller = maintainer(200, [])
    with pytest.raises(Unmet, match="no entry"):
        caller.list(SCOPE / "allowlist").the(id=1)


def test_a_state_that_cannot_be_read_is_not_unchanged(maintainer: Any) -> None:
    caller = maintainer(404, {})
    with pytest.raises(Unmet), verifies(ON), unchanged(lambda: caller.read(SCOPE), "the settings"):
        caller.patch(SCOPE, {"enabled": True})


@pytest.mark.parametrize(
    ("before", "after", "expected", "actual"),
    [
        (
            {number: {"name": f"rule {number}", "users": [number]} for number in range(40)},
            {number: {"name": f"rule {number}", "users": [number % 39]} for number in range(40)},
            '{"39": {"users": [39]}}',
            '{"39": {"users": [0]}}',
        ),
        ({"kept": 1, "gone": 2}, {"kept": 1, "new": 3}, '{"gone": 2}', '{"new": 3}'),
        (list(range(1000, 1200)), list(range(1000, 1201)), "196, 1197, 1198, 1199]", "196, 1197, 1198, 1199, 1200]"),
        ({"one": 1}, None, '{"one": 1}', "null"),
    ],
)
def test_of_a_state_that_changed_what_differs_is_shown_however_long_it_is(
    maintainer: Any, before: object, after: object, expected: str, actual: str
) -> None:
    maintainer(200, {})
    states = iter((before, after))
    with pytest.raises(Violation) as told, verifies(ON), unchanged(lambda: next(states), "the state"):
        pass
    assert told.value.expected.startswith("the state as before: ")
    assert told.value.expected.endswith(expected)
    assert told.value.actual.endswith(actual)
    assert max(len(told.value.expected), len(told.value.actual)) < 400


def test_true_is_not_one(maintainer: Any) -> None:
    """JSON distinguishes truth values from numbers; Python's `==` does not."""
    caller = maintainer(200, {"inbound_enabled": True, "beyond_the_text": 1})
    with pytest.raises(Violation):
        caller.get(SCOPE).must_hold(beyond_the_text=True)


@pytest.mark.parametrize("text", [b'{"id": 7.0}', b'{"id": 7e0}'])
def test_a_number_without_a_fraction_is_an_integer_in_every_notation(maintainer: Any, text: bytes) -> None:
    body = maintainer(200, text).get(SCOPE).must_hold(id=7).json
    assert isinstance(body["id"], int)


def test_a_precondition_that_does_not_hold_makes_the_rest_inconclusive(maintainer: Any, lines: list[Line]) -> None:
    maintainer(200, {})
    with pytest.raises(Unmet), verifies(ON):
        given(False, "the moon is not full")
    assert checks(lines)[ON] == [(Outcome.INCONCLUSIVE, Reason.PRECONDITION)]


def test_an_observation_is_recorded_once_and_judges_nothing(maintainer: Any, lines: list[Line]) -> None:
    maintainer(200, {})
    for _ in range(3):
        observe(NOTE, "answers 400")
    assert checks(lines)[NOTE] == [(Outcome.OBSERVED, None)]


def test_a_204_that_announces_a_body_counts_as_having_one(start: Any) -> None:
    """HTTP libraries treat a 204 as complete, and would read its body as the next response."""
    with raw_server(b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}") as base_url:
        run = start(base_url)
        caller = Caller(run, run.profile.actors["maintainer"])
        for _ in range(2):
            with pytest.raises(Violation, match="no body"):
                caller.patch(SCOPE, {"enabled": True}).must_be(204).without_body()


def test_a_token_is_in_no_report(maintainer: Any) -> None:
    caller = maintainer(200, {"echo": "secret-token"})
    answer = caller.call("POST", SCOPE, json={"password": "secret-token"})
    shown = str(evidence_of(answer.exchange, caller._run.client))  # noqa: SLF001 - what a report gets
    assert "secret-token" not in shown
    assert "$TOKEN_MAINTAINER" in shown


def raw_server(answer: bytes) -> Any:
    """Serve the same bytes to every request, without closing the connection."""
    import socket  # noqa: PLC0415 - only here
    import threading  # noqa: PLC0415
    from contextlib import contextmanager  # noqa: PLC0415

    @contextmanager
    def serve() -> Iterator[str]:
        listener = socket.create_server(("127.0.0.1", 0))

        def talk(connection: socket.socket) -> None:
            try:
                while connection.recv(65536):
                    connection.sendall(answer)
            except OSError:
                return  # the client closed the connection, as it should

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.close()

    return serve()
