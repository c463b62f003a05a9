"""Redirects to a login, maintenance pages, 401 and 403 for everything, do not come from one that answered before."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING

import pytest

from conformance.http.exchange import Trouble
from conformance.target.profile import Actor
from selftest.http.test_unreliable_networks import MAINTAINER, client_of
from selftest.proof.hostile import GOOD, Answer, Call, Line, says, serving, whole

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = b"Content-Type: application/json\r\n"
IN_FRONT = {
    "a way to a login page": whole(b"", status=b"302 Found", headers=b"Location: /login\r\n"),
    "a page": whole(b"<html>Back soon</html>", headers=b"Content-Type: text/html\r\n"),
    "a page that forbids": whole(b"<html>No</html>", status=b"403 Forbidden", headers=b"Content-Type: text/html\r\n"),
}
UNKNOWN = whole(b"{}", status=b"401 Unauthorized", headers=JSON)
IN_FRONT["a question who is calling"] = UNKNOWN
FORBIDDEN = whole(b"{}", status=b"403 Forbidden", headers=JSON)
IN_FRONT["a refusal of everybody"] = FORBIDDEN
UPKEEP = whole(b'{"status":"maintenance"}', headers=JSON)
good = says(whole(GOOD, headers=JSON), stays=True)


class Service:
    """Answers calls well except those that `hides` picks by number and path, and counts the calls by path."""

    def __init__(self, hidden: bytes, hides: Callable[[int, str], bool]) -> None:
        self.hidden, self.hides = says(hidden, stays=True), hides
        self.calls: Counter[str] = Counter()

    def __call__(self, line: Line, call: Call) -> bool | None:
        path = call.path.removeprefix("/api/v4")
        self.calls[path] += 1
        answer: Answer = self.hidden if self.hides(self.calls.total(), path) else good
        return answer(line, call)


@pytest.mark.parametrize("hidden", IN_FRONT.values(), ids=IN_FRONT)
def test_a_page_that_hides_everything_for_a_moment_is_waited_for(hidden: bytes) -> None:
    service = Service(hidden, lambda number, _: 1 < number < 6)
    with serving(service) as server, client_of(server.base_url) as client:
        assert client.send(MAINTAINER, "GET", "/version").body == GOOD
        assert client.send(MAINTAINER, "GET", "/user").body == GOOD
        assert 0 < client.retries.counts.total() < 3


def test_a_write_is_refused_by_the_service_though_what_is_read_meanwhile_looks_new() -> None:
    """A read shows more than before when something was made since; that is no sign of a gateway."""
    answers = {"/version": [GOOD, b'{"version":"17.7","revision":"a"}'], "/user": [FORBIDDEN]}

    def service(line: Line, call: Call) -> bool | None:
        known = answers[call.path.removeprefix("/api/v4")]
        body = known.pop(0) if len(known) > 1 else known[0]
        return says(body if body is FORBIDDEN else whole(body, headers=JSON), stays=True)(line, call)

    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        exchange = client.send(MAINTAINER, "POST", "/user")
    assert exchange.status == 403
    assert not exchange.is_in_place_of_service


@pytest.mark.parametrize("hidden", IN_FRONT.values(), ids=IN_FRONT)
def test_a_write_that_got_such_a_page_is_unanswered(hidden: bytes) -> None:
    service = Service(hidden, lambda number, _: number > 1)
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        exchange = client.send(MAINTAINER, "POST", "/groups")
    assert exchange.status is None
    assert exchange.trouble in {Trouble.GATEWAY, Trouble.REFUSED_THROUGHOUT}
    assert service.calls["/groups"] == 1


def test_json_that_all_calls_get_for_a_moment_is_waited_for() -> None:
    """The first of them passes, because no such call was answered before."""
    service = Service(UPKEEP, lambda number, _: 2 < number < 12)
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        client.send(MAINTAINER, "GET", "/user")
        assert client.send(MAINTAINER, "POST", "/user").body != GOOD
        assert client.send(MAINTAINER, "POST", "/projects").trouble is Trouble.GATEWAY
        assert client.send(MAINTAINER, "GET", "/user").body == GOOD
        assert client.retries.counts == {"status 200": 1}


@pytest.mark.parametrize("body", [b'{"message":"no Route matched"}', b""])
def test_a_404_that_all_calls_get_for_a_moment_is_waited_for(body: bytes) -> None:
    service = Service(whole(body, status=b"404 Not Found", headers=JSON), lambda number, _: 1 < number < 6)
    with serving(service) as server, client_of(server.base_url) as client:
        client.tell_apart(lambda call: f"{call.method} {call.path}")
        client.send(MAINTAINER, "GET", "/version")
        assert client.send(MAINTAINER, "DELETE", "/user").trouble is Trouble.GATEWAY
        assert client.send(MAINTAINER, "GET", "/user").body == GOOD
        assert client.retries.counts == {"status 404": 1}


def test_a_wording_of_404_is_checked_once_for_all_paths() -> None:
    service = Service(whole(b"{}", status=b"404 Not Found", headers=JSON), lambda _, path: path.startswith("/no"))
    with serving(service) as server, client_of(server.base_url) as client:
        client.tell_apart(lambda call: f"{call.method} {call.path}")
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, "GET", path).status for path in ("/no/a", "/no/b", "/nowhere")] == [404] * 3
    assert service.calls == {"/version": 2, "/no/a": 2, "/no/b": 1, "/nowhere": 1}


def test_a_404_for_what_was_deleted_is_an_answer_of_the_service() -> None:
    gone = whole(b"{}", status=b"404 Not Found", headers=JSON)
    service = Service(gone, lambda number, path: number > 2 and "rules" in path)
    with serving(service) as server, client_of(server.base_url) as client:
        client.tell_apart(lambda call: f"{call.method} {call.path}")
        assert client.send(MAINTAINER, "GET", "/projects/1/rules/2").status == 200
        assert client.send(MAINTAINER, "GET", "/projects/1/rules/3").status == 200
        assert client.send(MAINTAINER, "GET", "/projects/1/rules/3").status == 404
    assert service.calls.total() == 3


@pytest.mark.parametrize("path", ["/user", "/projects/2000000001"])
def test_equal_json_is_an_answer_of_the_service_if_a_read_that_was_served_before_is_not_hidden(path: str) -> None:
    service = Service(UPKEEP, lambda number, called: called == path and number > 2)
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        client.send(MAINTAINER, "GET", "/user")
        answers = [client.send(MAINTAINER, method, path) for method in ("POST", "PUT", "GET", "GET")]
    assert {answer.status for answer in answers} == {200}
    assert client.retries.counts.total() == 0


def test_json_that_all_calls_get_from_the_beginning_is_an_answer_of_the_service() -> None:
    service = Service(UPKEEP, lambda *_: True)
    with serving(service) as server, client_of(server.base_url) as client:
        paths = ("/version", "/user", "/projects/1", "/version")
        assert {client.send(MAINTAINER, "GET", path).status for path in paths} == {200}
    assert service.calls.total() == len(paths)


def test_an_answer_that_looks_new_is_judged_itself_and_not_the_one_that_it_is_checked_by() -> None:
    """A fault may show in the first answer alone."""
    answers = {"/version": [GOOD], "/user": [b'{"id":1}', b'{"id":1,"name":"first"}', b'{"id":1,"name":"second"}']}

    def service(line: Line, call: Call) -> bool | None:
        known = answers.get(call.path.removeprefix("/api/v4"), [b"[]"])
        return says(whole(known.pop(0) if len(known) > 1 else known[0], headers=JSON), stays=True)(line, call)

    with serving(service) as server, client_of(server.base_url) as client:
        for path in ("/version", "/user"):
            client.send(MAINTAINER, "GET", path)
        assert client.send(MAINTAINER, "GET", "/user").body == b'{"id":1,"name":"first"}'
    assert len(answers["/user"]) == 1  # it was checked


def test_the_service_may_redirect_calls_of_one_kind() -> None:
    """The client checks this once, and then remembers it."""
    service = Service(IN_FRONT["a way to a login page"], lambda _, path: path.startswith("/own"))
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, "GET", f"/own/{number}").status for number in (1, 2, 3)] == [302] * 3
    assert service.calls == {"/version": 2, "/own/1": 2, "/own/2": 1, "/own/3": 1}


def test_a_redirected_read_that_was_served_before_does_not_prove_a_gateway() -> None:
    """What was served last cannot be the control for itself."""
    service = Service(IN_FRONT["a way to a login page"], lambda number, path: path == "/user" and number > 2)
    with serving(service) as server, client_of(server.base_url) as client:
        paths = ("/version", "/user", "/user")
        assert [client.send(MAINTAINER, "GET", path).status for path in paths] == [200, 200, 302]
        assert client.retries.counts.total() == 0


def test_401_for_some_calls_is_an_answer_of_the_service() -> None:
    """A path that was served to the same token before is still served; a write is sent once."""
    service = Service(UNKNOWN, lambda _, path: path == "/user")
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, method, "/user").status for method in ("PUT", "GET")] == [401, 401]
    assert service.calls == {"/version": 3, "/user": 2}


def test_403_for_some_calls_is_an_answer_of_the_service() -> None:
    service = Service(FORBIDDEN, lambda _, path: path == "/user")
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, method, "/user").status for method in ("PUT", "GET")] == [403, 403]
    assert service.calls["/user"] == 2


@pytest.mark.parametrize(("status", "refusal"), [(401, UNKNOWN), (403, FORBIDDEN)], ids=[401, 403])
def test_a_refusal_is_checked_once_until_the_token_is_served_again(status: int, refusal: bytes) -> None:
    """What is served once more may be followed by a refusal of everything.

    A token that has expired is refused in the words for any 401, so that each operation is checked.
    """
    service = Service(refusal, lambda _, path: path.startswith("/no"))
    with serving(service) as server, client_of(server.base_url) as client:
        client.tell_apart(lambda call: call.path.rpartition("/")[0])
        client.send(MAINTAINER, "GET", "/yes/1")
        assert [client.send(MAINTAINER, "PUT", f"/no/{number}").status for number in range(3)] == [status] * 3
        assert service.calls["/yes/1"] == 2
        assert client.send(MAINTAINER, "PUT", "/nowhere/1").status == status  # of another operation
        checks = 2 if status == HTTPStatus.UNAUTHORIZED else 1
        assert service.calls["/yes/1"] == 1 + checks
        assert client.send(MAINTAINER, "PUT", "/yes/2").status == 200
        assert client.send(MAINTAINER, "PUT", "/nowhere/2").status == status
    assert service.calls["/yes/1"] == 2 + checks


@pytest.mark.parametrize("refusal", [UNKNOWN, FORBIDDEN], ids=[401, 403])
def test_a_refusal_of_all_that_was_deleted_or_never_existed_is_an_answer_of_the_service(refusal: bytes) -> None:
    known = {"/projects/1/rules", "/projects/1/settings"}
    service = Service(refusal, lambda number, path: number > 3 and path not in known)
    with serving(service) as server, client_of(server.base_url) as client:
        client.tell_apart(lambda call: call.path.replace("/2", "/:id").replace("/3", "/:id"))
        for path in ("/projects/1/rules", "/projects/1/rules/2", "/projects/1/rules/3"):
            assert client.send(MAINTAINER, "GET", path).status == 200
        answers = [client.send(MAINTAINER, method, "/projects/1/other/5") for method in ("GET", "DELETE")]
    assert [answer.is_in_place_of_service for answer in answers] == [False, False]
    assert service.calls["/projects/1/other/5"] == 2
    assert not client.retries.counts


@pytest.mark.parametrize("refusal", [UNKNOWN, FORBIDDEN], ids=[401, 403])
def test_a_refusal_of_the_group_that_was_just_deleted_is_an_answer_of_the_service(refusal: bytes) -> None:
    """What a run puts back at its end belongs to no test, so nothing but the caller is known to last."""
    service = Service(refusal, lambda number, path: number > 1 and path != "/user")
    with serving(service) as server, client_of(server.base_url) as client:
        assert client.send(MAINTAINER, "GET", "/groups/1").status == 200
        answer = client.send(MAINTAINER, "GET", "/groups/2")
    assert not answer.is_in_place_of_service
    assert not client.retries.counts


def test_401_for_a_path_that_is_called_twice_is_an_answer_of_the_service() -> None:
    """A path that was never called before is answered differently."""
    service = Service(UNKNOWN, lambda _, path: service.calls[path] > 1)
    with serving(service) as server, client_of(server.base_url) as client:
        paths = ("/projects/1/a", "/projects/1/b", "/projects/1/b")
        assert [client.send(MAINTAINER, "GET", path).status for path in paths] == [200, 200, 401]


def test_401_for_a_token_that_was_never_served_is_an_answer_of_the_service() -> None:
    service = Service(UNKNOWN, lambda number, _: number > 1)
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert client.send(Actor("caller", "no-token-of-this-service"), "PUT", "/user").status == 401
    assert service.calls == {"/version": 1, "/user": 1}


@pytest.mark.parametrize(("status", "refusal"), [(401, UNKNOWN), (403, FORBIDDEN)], ids=[401, 403])
@pytest.mark.parametrize("caller", [MAINTAINER, None])
def test_a_token_that_nothing_takes_any_more_is_waited_for_once(
    caller: Actor | None, status: int, refusal: bytes
) -> None:
    """Also if it is sent in the other header."""
    service = Service(refusal, lambda number, _: number > 1)
    shown = {} if caller else {"Authorization": f"Bearer {MAINTAINER.token}"}
    with serving(service) as server, client_of(server.base_url, call_seconds=1) as client:
        client.send(MAINTAINER, "GET", "/version")
        answers = [client.send(caller, "GET", "/user", headers=shown) for _ in range(3)]
    assert {answer.trouble for answer in answers} == {Trouble.REFUSED_THROUGHOUT}
    assert {(answer.problem or "").partition(",")[0] for answer in answers} == {
        f"status {status} for every call with this token"
    }
    assert client.retries.counts == {f"status {status}": 2}


def test_after_one_token_was_waited_for_in_vain_no_other_one_is() -> None:
    """A service that has lost its memory knows none of a dozen tokens, and each would be waited for a minute."""
    other, is_lost = Actor("owner", "another-secret-token"), False
    service = Service(UNKNOWN, lambda *_: is_lost)
    with serving(service) as server, client_of(server.base_url, call_seconds=1) as client:
        for actor in (MAINTAINER, other):
            client.send(actor, "GET", "/version")
        is_lost = True
        answers = [client.send(actor, "GET", "/user") for actor in (MAINTAINER, other)]
    assert {answer.trouble for answer in answers} == {Trouble.REFUSED_THROUGHOUT}
    assert client.retries.counts == {"status 401": 2}


def test_a_token_that_works_again_is_waited_for_again() -> None:
    service = Service(UNKNOWN, lambda number, _: 1 < number < 18 or number > 19)
    with serving(service) as server, client_of(server.base_url, call_seconds=1) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, "GET", "/user").status for _ in range(3)] == [None, None, 200]
        client.send(MAINTAINER, "GET", "/version")
        assert client.send(MAINTAINER, "GET", "/user").status is None
    assert client.retries.counts == {"status 401": 4}


def test_error_pages_are_checked_once_for_all_paths() -> None:
    service = Service(IN_FRONT["a page that forbids"], lambda _, path: path.startswith("/no"))
    with serving(service) as server, client_of(server.base_url) as client:
        client.send(MAINTAINER, "GET", "/version")
        assert [client.send(MAINTAINER, "GET", path).status for path in ("/no/a", "/no/b", "/nowhere")] == [403] * 3
    assert service.calls == {"/version": 2, "/no/a": 2, "/no/b": 1, "/nowhere": 1}


def test_a_host_that_never_answered_differently_is_the_service() -> None:
    service = Service(IN_FRONT["a way to a login page"], lambda *_: True)
    with serving(service) as server, client_of(server.base_url) as client:
        assert client.send(MAINTAINER, "GET", "/user").status == 302
    assert service.calls.total() == 1
