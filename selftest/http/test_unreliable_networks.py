"""What is repeated when a network fails, how often, and what does not count as an answer of the service."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.http import exchange as http
from conformance.http.bodies import is_cut
from conformance.http.circuit_breaker import CircuitBreaker
from conformance.http.client import Client, RequestsSpentError, TargetGoneError
from conformance.proof.chaos.kinds import Disturbed
from conformance.proof.chaos.proxy import Proxy
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service
from conformance.target.profile import Actor
from conformance.target.profile_file import profile_from
from selftest.proof.hostile import GOOD, Answer, Call, Line, falls_silent_after, only_at, resets, says, serving, whole

if TYPE_CHECKING:
    from conformance.http.exchange import Exchange

MAINTAINER = Actor("maintainer", "secret-token")
HTML = b"Content-Type: text/html\r\n"
AT_ONCE = b"Retry-After: 0\r\n"

good = says(whole(GOOD), stays=True)


def failing(status: bytes, headers: bytes = AT_ONCE) -> Answer:
    return says(whole(b"<html>", status=status, headers=headers), stays=True)


class Turns:
    """Answers each call in its own way, and all later ones well."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.calls = 0

    def __call__(self, line: Line, call: Call) -> bool | None:
        self.calls += 1
        return (self.answers.pop(0) if self.answers else good)(line, call)


def client_of(base_url: str, *, beside: bool = False, timeout: float = 10, **retries: Any) -> Client:
    limits = {"timeout_seconds": timeout}
    data = {"base_url": base_url, "actors": {}, "fixtures": {}, "limits": limits, "retries": retries}
    return Client(profile_from(data, "target.yaml").client_settings(), beside=beside)


def asked(
    turns: Turns, method: str = "GET", *, patient: bool = True, **retries: Any
) -> tuple[Exchange, dict[str, int]]:
    """Return the result of one call to a target that is otherwise well, and what was repeated."""
    with serving(turns) as server, client_of(server.base_url, **retries) as client:
        return client.send(MAINTAINER, method, "/version", patient=patient), dict(client.retries.counts)


CUT = says(b"HTTP/1.1 200 OK\r\nContent-Length: 48\r\n\r\n" + GOOD[:20])


@pytest.mark.parametrize("breaks", [resets, says(), CUT], ids=["reset", "hung up", "in the middle of the body"])
def test_a_read_is_repeated_once_after_a_broken_connection(breaks: Answer) -> None:
    turns = Turns(breaks)
    exchange, retries = asked(turns)
    assert exchange.body == GOOD, exchange.problem
    assert retries == {"connection broken": 1}


#: Without a stated length, the end of the connection ends the body, so nobody misses its second half.
HALF = says(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + GOOD[:20])


def test_a_read_is_repeated_if_its_json_is_truncated_and_has_no_length() -> None:
    exchange, retries = asked(Turns(HALF))
    assert exchange.body == GOOD, exchange.problem
    assert retries == {"JSON without its end": 1}


def test_json_that_is_truncated_every_time_is_the_answer_of_the_service() -> None:
    turns = Turns(*[HALF] * 4)
    exchange, _ = asked(turns)
    assert (exchange.status, exchange.body, turns.calls) == (200, GOOD[:20], 4)


def test_nobody_waits_for_an_operation_whose_json_never_has_an_end() -> None:
    turns = Turns(*[HALF] * 40)
    with serving(turns) as server, client_of(server.base_url) as client:
        answers = [client.send(MAINTAINER, "GET", f"/projects/{number}") for number in range(10)]
        assert client.retries.counts["JSON without its end"] <= 12
    assert all(answer.body == GOOD[:20] for answer in answers)


@pytest.mark.parametrize(
    "body", [b"Warning: no key\n" + GOOD, GOOD + b"1"], ids=["a notice before it", "more behind it"]
)
def test_a_read_that_is_no_beginning_of_json_is_not_repeated(body: bytes) -> None:
    """Such an answer is whole: it would come again each time, and a run would wait for each of them."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    exchange, retries = asked(Turns(says(head + body)))
    assert (exchange.body, retries) == (body, {})


@pytest.mark.parametrize("at", range(len(GOOD)))
def test_each_beginning_of_json_may_be_cut(at: int) -> None:
    assert is_cut(GOOD[:at])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"a": tru', True),
        ('{"a": -', True),
        (r'{"a": "\u00', True),
        ('{"a": "é"'.encode()[:-2], True),
        (r'{"a": "\u00zz", "b": 1}', False),
        ("[1] []", False),
        ("<br />", False),
        (b'{"a": "\xe4"}', False),
        ("[" * 100_000, False),
    ],
)
def test_what_may_be_cut_stops_where_more_must_follow(body: str | bytes, *, expected: bool) -> None:
    assert is_cut(body if isinstance(body, bytes) else body.encode()) is expected


#: The length says that nothing is missing.
BLANK = says(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")


def test_a_read_without_data_is_repeated() -> None:
    exchange, retries = asked(Turns(BLANK))
    assert exchange.body == GOOD, exchange.problem
    assert retries == {"status 200 without data": 1}


def test_a_read_that_has_no_data_every_time_is_the_answer_of_the_service() -> None:
    turns = Turns(*[BLANK] * 4)
    exchange, _ = asked(turns)
    assert (exchange.status, exchange.body, turns.calls) == (200, b"", 3)


def test_a_read_whose_repetition_breaks_too_is_unanswered() -> None:
    turns = Turns(resets, resets)
    exchange, _ = asked(turns)
    assert exchange.status is None
    assert turns.calls == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fails", [resets, failing(b"503 Service Unavailable")], ids=["reset", "503"])
def test_a_write_that_may_have_arrived_is_not_sent_twice(fails: Answer, method: str) -> None:
    turns = Turns(fails)
    exchange, retries = asked(turns, method)
    assert (exchange.status, turns.calls, retries) == (None, 1, {})


@pytest.mark.parametrize(("method", "calls"), [("GET", 4), ("PUT", 4), ("DELETE", 4), ("POST", 1)])
def test_outside_of_tests_an_idempotent_call_is_sent_until_it_is_answered(method: str, calls: int) -> None:
    turns = Turns(resets, resets, resets)
    with serving(turns) as server, client_of(server.base_url, beside=True) as client:
        exchange = client.send(MAINTAINER, method, "/version")
    assert (exchange.status, turns.calls) == (200 if calls > 1 else None, calls)


def in_vain(monkeypatch: pytest.MonkeyPatch, elsewhere: Answer) -> tuple[list[int], list[int | None]]:
    """Return how often each of four reads was sent, and its status: the first ones get 503, and the last is well."""
    monkeypatch.setattr("conformance.http.retries._LONG", 0.0)
    down = failing(b"503 Service Unavailable")
    with serving(good) as server, client_of(server.base_url, call_seconds=1) as client:
        client.send(MAINTAINER, "GET", "/version")
        calls, statuses = [], []
        for at_path, elsewhere_now in ((down, elsewhere), (down, good), (good, good), (good, good)):
            server.answer = only_at("/api/v4/groups/1", at_path, elsewhere_now)
            before = server.calls["GET /api/v4/groups/1"]
            statuses.append(client.send(MAINTAINER, "GET", "/groups/1").status)
            calls.append(server.calls["GET /api/v4/groups/1"] - before)
    return calls, statuses


def test_one_operation_that_a_gateway_always_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An area of a half-built service may answer 503 to everything; the other areas can be tested all the same."""
    calls, statuses = in_vain(monkeypatch, good)
    assert (calls, statuses) == ([3, 1, 1, 1], [None, None, 200, 200])


def test_a_gateway_that_answers_all_calls_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, _ = in_vain(monkeypatch, failing(b"503 Service Unavailable"))
    assert calls[0] > 3


def test_an_area_that_hangs_up_from_the_first_call_on_does_not_make_a_target_unreachable() -> None:
    """A worker may begin with the tests of an area that is not built yet."""
    with serving(only_at("/api/v4/version", good, says())) as server, client_of(server.base_url) as client:
        paths = [f"/projects/{number}/job_token_scope" for number in range(12)]
        assert {client.send(MAINTAINER, "GET", path).status for path in paths} == {None}
        assert client.send(MAINTAINER, "GET", "/version").status == 200


@pytest.mark.parametrize(
    ("slowest", "expected"),
    [(0.1, [20, 20, 20, 5, 5, 20]), (3.0, [20, 20, 20, 12, 12, 20]), (15.0, [20] * 6)],
    ids=["a quick service", "a slow one", "a very slow one"],
)
def test_after_two_timeouts_an_operation_that_never_answered_gets_less_time(
    slowest: float, expected: list[float]
) -> None:
    """Otherwise a dozen operations that a half-built service leaves unanswered take many minutes."""
    breaker = CircuitBreaker(20, lambda call: call.path)
    known, *silent = (http.Call(MAINTAINER, "GET", f"/{name}") for name in ("known", "a", "b", "c"))
    breaker.heard(known, slowest)
    seconds, now = [breaker.seconds_for(known)], 0.0
    for call in (*silent, silent[0]):
        seconds.append(breaker.seconds_for(call))
        now = times_out(breaker, call, now)
    assert [*seconds, breaker.seconds_for(known)] == expected


def test_what_a_test_waited_for_in_vain_is_not_waited_for_again_by_what_reads_beside_it() -> None:
    """The ledger reads what a test may change, from the same operations that a half-built service leaves unanswered."""
    with (
        serving(only_at("/api/v4/version", good, falls_silent_after())) as server,
        client_of(server.base_url, timeout=0.2) as client,
        Client(client.settings, beside=True, paced_with=client) as second,
    ):
        client.test = second.test = "a test"
        assert client.send(MAINTAINER, "GET", "/version").status == 200
        told = [client.send(MAINTAINER, "GET", "/projects/1/job_token_scope").trouble for _ in range(4)]
        assert told[0] is http.Trouble.READ_TIMEOUT
        assert told[-1] is http.Trouble.NOT_SENT
        assert second.send(MAINTAINER, "GET", "/projects/1/job_token_scope").trouble is http.Trouble.NOT_SENT


def times_out(breaker: CircuitBreaker, call: http.Call, now: float) -> float:
    """Let a call time out once and be given up; return when."""
    ended = now + breaker.seconds_for(call)
    breaker.waited_for(call, now, ended)
    breaker.missed(call, "test", "silence", now, ended)
    return ended


def test_a_read_that_is_sent_again_after_a_timeout_is_not_waited_for_in_full_twice_over() -> None:
    breaker = CircuitBreaker(20, lambda call: call.path)
    first, second = (http.Call(MAINTAINER, "GET", f"/{name}") for name in ("first", "second"))
    breaker.waited_for(first, 0, 20)
    breaker.waited_for(first, 20, 40)
    breaker.missed(first, "test", "silence", 0, 40)
    assert breaker.seconds_for(second) == 5


def test_what_several_calls_wait_for_at_the_same_time_counts_once() -> None:
    breaker = CircuitBreaker(20, lambda call: call.path)
    calls = [http.Call(MAINTAINER, "GET", f"/{number}") for number in range(12)]
    for call in calls:
        breaker.waited_for(call, 0, 20)
        breaker.missed(call, "test", "silence", 0, 20)
    assert breaker.seconds_for(calls[0]) == 20


def test_a_target_that_no_longer_answers_is_not_called_twice_each_time() -> None:
    turns = Turns(*[resets] * 5)
    with serving(turns) as server, client_of(server.base_url) as client:
        assert [client.send(MAINTAINER, "GET", "/version").status for _ in range(4)] == [None] * 4
    assert turns.calls == 5


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (b"502 Bad Gateway", AT_ONCE),
        (b"503 Service Unavailable", b""),
        (b"504 Gateway Timeout", AT_ONCE),
        (b"500 Internal Server Error", AT_ONCE),
        (b"520 Unknown", HTML),
        (b"500 Internal Server Error", HTML),
        (b"501 Not Implemented", HTML),
        (b"200 OK", HTML),
    ],
)
def test_an_error_of_a_gateway_is_waited_for_and_the_call_repeated(status: bytes, headers: bytes) -> None:
    exchange, retries = asked(Turns(failing(status, headers), failing(status, headers)))
    assert exchange.body == GOOD, exchange.problem
    assert retries == {f"status {status.decode()[:3]}": 2}
    assert not exchange.throttled


def test_a_lasting_error_of_a_gateway_is_no_answer_of_the_service() -> None:
    turns = Turns(*[failing(b"503 Service Unavailable")] * 9)
    exchange, _ = asked(turns, call_seconds=0.25)
    assert exchange.status is None
    assert exchange.problem == "status 503, which a gateway answers in the place of the service"
    assert exchange.body == b""
    assert 1 < turns.calls < 9  # as often as the machine managed until the time was over


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("fails", [resets, failing(b"503 Service Unavailable")], ids=["reset", "503"])
def test_an_idempotent_call_is_repeated_while_arranging(fails: Answer, method: str) -> None:
    turns = Turns(fails)
    with serving(turns) as server, client_of(server.base_url) as client, client.arranging():
        assert client.send(MAINTAINER, method, "/version").status == 200
        assert client.send(MAINTAINER, "POST", "/version").status == 200
    assert turns.calls == 3


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_target_that_cannot_be_reached_for_a_while_is_waited_for(method: str) -> None:
    with (
        EmbeddedServer(prepared_service()) as server,
        Proxy(server.port, Disturbed("none")) as proxy,
        client_of(proxy.base_url) as client,
    ):
        assert client.send(None, "GET", "/version").status is not None
        proxy.down()

        def returns_when_it_was_missed() -> None:
            deadline = time.monotonic() + 20
            while not client.retries.counts["connection refused"] and time.monotonic() < deadline:
                time.sleep(0.02)
            proxy.up()

        returning = threading.Thread(target=returns_when_it_was_missed)
        returning.start()
        assert client.send(None, method, "/version").status is not None
        returning.join()
        assert client.retries.counts["connection refused"] > 0
        assert not client.retries.unanswered


def test_a_target_that_stays_unreachable_is_gone_when_the_time_is_over() -> None:
    with serving(good) as server, client_of(server.base_url, call_seconds=0.3) as client:
        assert client.send(MAINTAINER, "GET", "/version").status == 200
        server.close()
        with pytest.raises(TargetGoneError, match="takes no connections"):
            client.send(MAINTAINER, "GET", "/version")


def test_after_the_last_allowed_request_a_test_may_only_clean_up() -> None:
    with serving(good) as server, client_of(server.base_url) as client:
        client.most_requests, client.test = 1, "the last"
        assert client.send(MAINTAINER, "GET", "/version").status == 200
        with pytest.raises(RequestsSpentError, match="the requests of --max-requests"):
            client.send(MAINTAINER, "GET", "/version")
        with pytest.raises(RequestsSpentError):
            client.send(MAINTAINER, "PUT", "/version")
        with client.arranging():
            assert client.send(MAINTAINER, "PUT", "/version").status == 200
        client.test = "one more"
        with pytest.raises(RequestsSpentError):
            client.send(MAINTAINER, "GET", "/version")


def test_lost_calls_are_counted_by_their_cause() -> None:
    turns = Turns(resets, failing(b"502 Bad Gateway"), says(whole(b"x", headers=b"Content-Encoding: gzip\r\n")))
    with serving(turns) as server, client_of(server.base_url) as client:
        for _ in range(3):
            client.send(MAINTAINER, "POST", "/version")
    found = {str(trouble): number for trouble, number in client.retries.unanswered.items()}
    assert found == {
        "connection broken": 1,
        "perhaps a gateway answered, and not the service": 1,
        "an answer that cannot be read, or is out of bounds": 1,
    }


def test_all_waiting_of_a_run_is_taken_from_one_budget() -> None:
    slow = failing(b"503 Service Unavailable", b"Retry-After: 1\r\n")
    turns = Turns(*[slow] * 9)
    started = time.monotonic()
    with serving(turns) as server, client_of(server.base_url, run_seconds=1) as client:
        assert [client.send(MAINTAINER, "GET", "/version").status for _ in range(4)] == [None] * 4
        assert client.retries.counts == {"status 503": 1}
    assert turns.calls == 5
    assert time.monotonic() - started < 9


def test_a_server_error_of_the_service_itself_is_its_answer() -> None:
    turns = Turns(failing(b"500 Internal Server Error", b"Content-Type: application/json\r\n"))
    exchange, retries = asked(turns)
    assert (exchange.status, retries) == (500, {})


@pytest.mark.parametrize(("method", "statuses"), [("GET", [500, 500]), ("POST", [None, None, 500])])
def test_an_error_page_that_always_comes_is_the_answer_of_the_service(method: str, statuses: list[int | None]) -> None:
    turns = Turns(*[failing(b"500 Internal Server Error", HTML)] * 4)
    with serving(turns) as server, client_of(server.base_url) as client:
        assert [client.send(MAINTAINER, method, f"/projects/{n}").status for n in range(len(statuses))] == statuses


def test_a_write_that_gets_the_same_page_twice_was_answered_by_the_service() -> None:
    page = failing(b"500 Internal Server Error", HTML)
    with serving(Turns(page, good, page)) as server, client_of(server.base_url) as client:
        found = [client.send(MAINTAINER, "POST", "/version", json_body={"n": n}).status for n in (1, 2, 1)]
    assert found == [None, 200, 500]


@pytest.mark.parametrize(("method", "calls"), [("GET", 2), ("POST", 1)])
def test_a_read_that_is_not_answered_in_time_is_repeated_once(method: str, calls: int) -> None:
    turns = Turns(falls_silent_after())
    with serving(turns) as server, client_of(server.base_url, timeout=0.4) as client:
        status = client.send(MAINTAINER, method, "/version").status
        assert (status, turns.calls) == (200 if calls > 1 else None, calls)
        assert client.retries.waited > 0.3 or calls == 1


def test_an_error_page_among_good_responses_is_never_that_of_the_service() -> None:
    page = failing(b"500 Internal Server Error", HTML)
    turns = Turns(page, good, page, good, page, good, page)
    with serving(turns) as server, client_of(server.base_url) as client:
        assert [client.send(MAINTAINER, "POST", "/version").status for _ in range(7)] == [None, 200] * 3 + [None]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_too_many_requests_are_waited_for_and_repeated(method: str) -> None:
    exchange, retries = asked(Turns(failing(b"429 Too Many Requests")), method)
    assert (exchange.status, exchange.throttled, retries) == (200, True, {"status 429": 1})


def test_a_test_of_a_rate_limit_gets_the_429_itself() -> None:
    exchange, retries = asked(Turns(failing(b"429 Too Many Requests")), patient=False)
    assert (exchange.status, retries) == (429, {})
