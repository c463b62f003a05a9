"""Answers with other types than their names say, or without what they usually show, end no command with a traceback."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import TargetError
from conformance.http.client import Client
from conformance.http.exchange import Exchange
from conformance.http.settings import ClientSettings
from conformance.reference import EmbeddedServer
from conformance.target.check import check_profile, doubted_roles
from conformance.target.marker import KEY, Marker, run_behind
from conformance.target.preflight import overstated, preflight
from conformance.target.profile_file import profile_from
from conformance.target.provisioning.accounts import UsersRefusedError
from conformance.target.provisioning.calls import Answer, Body, RefusedError, Way, by_http
from conformance.target.provisioning.discover import Discovery
from conformance.target.provisioning.profiles import by_value, profile_data
from conformance.target.provisioning.sweep import sweep
from conformance.target.readings import as_named
from conformance.target.states import States
from selftest.proof.hostile import says, serving, whole
from selftest.target.bench import Bench
from selftest.target.services import changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.http.exchange import Call
    from conformance.target import Profile

_NOTHING = object()


def _without(entry: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def odd(method: str, pattern: str, key: str, value: Any) -> Callable[[Way], Way]:
    """Alter a key in the answers to some calls, or leave it out."""

    def change(way: Way, token: str, sent: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, sent, path, query, body)
        if sent != method or not re.fullmatch(pattern, path.partition("?")[0]) or not answer.is_served:
            return answer
        more = {} if value is _NOTHING else {key: value}
        entries = answer.body if isinstance(answer.body, list) else [answer.body]
        altered = [_without(entry, key) | more for entry in entries]
        return replace(answer, body=altered if isinstance(answer.body, list) else altered[0])

    return changed(change)


def test_values_of_another_type_count_as_missing_and_numbers_as_texts_are_read() -> None:
    given = {
        "id": "12",
        "iid": True,
        "name": 5,
        "namespace": "a",
        "rules": {},
        "sha": None,
        "other": [0],
    }
    assert as_named([given, "x"]) == [{"id": 12, "other": [0]}, "x"]
    assert as_named({"id": "1" * 5000, "user_id": 10**30}) == {"user_id": 10**30}
    assert as_named([{"id": 12.0, "iid": 1.5}, {"id": float("inf")}]) == [{"id": 12}, {}]
    assert as_named(5) == 5


@pytest.mark.parametrize(
    ("method", "pattern", "key", "value"),
    [
        ("POST", "/groups", "full_path", _NOTHING),
        ("POST", "/groups", "full_path", "another/path"),
        ("POST", "/projects", "id", None),
        ("POST", "/projects", "path_with_namespace", 5),
        ("GET", "/groups/[0-9]+/members", "id", [None]),
        ("GET", "/projects/[0-9]+/merge_requests/[0-9]+", "sha", [None]),
    ],
)
def test_a_service_whose_answers_are_odd_can_be_prepared(method: str, pattern: str, key: str, value: Any) -> None:
    bench = Bench(patience=0, alter=odd(method, pattern, key, value))
    assert bench.profile(bench.provision())["actors"]


@pytest.mark.parametrize("value", [_NOTHING, None, "x", {}])
def test_users_without_a_number_are_told_of(value: Any) -> None:
    bench = Bench(patience=0, alter=odd("(GET|POST)", "/users", "id", value))
    bench.alter = lambda way: odd("GET", "/users", "id", value)(odd("POST", "/users", "id", value)(way))
    with pytest.raises(UsersRefusedError, match=r"POST /users .*does not show its id"):
        bench.provision()


@pytest.fixture(scope="module")
def prepared() -> tuple[Bench, dict[str, Any]]:
    bench = Bench(patience=0)
    return bench, profile_data(bench.order(), bench.provision(), by_value)


@pytest.mark.parametrize(
    ("pattern", "key", "value"),
    [
        ("/user", "id", "x"),
        ("/projects", "namespace", "a text"),
        ("/projects", "id", {}),
        ("/projects", "name", _NOTHING),
        ("/groups", "full_path", [None]),
        ("/groups/[0-9]+/labels", "name", _NOTHING),
        ("/(projects|groups)/[0-9]+/members/all", "access_level", "x"),
        ("/projects/[0-9]+/merge_requests", "author", "somebody"),
        ("/projects/[0-9]+/merge_requests", "title", _NOTHING),
        ("/projects/[0-9]+/merge_requests/[0-9]+/approval_state", "rules", 5),
        ("/projects/[0-9]+/protected_branches", "name", _NOTHING),
    ],
)
def test_odd_answers_only_leave_things_out_of_a_discovery(
    prepared: tuple[Bench, dict[str, Any]], pattern: str, key: str, value: Any
) -> None:
    bench, known = prepared
    tokens = {name: actor["token"] for name, actor in known["actors"].items()}
    altered = replace(bench, alter=odd("GET", pattern, key, value))
    discovery = Discovery(altered.calls, tokens, {"actors": {name: {} for name in tokens}})
    if key == "id" and pattern == "/user":
        with pytest.raises(RefusedError):
            discovery.fill()
    else:
        assert discovery.fill()


def test_what_has_the_mark_and_no_number_is_told_of_and_nothing_is_swept() -> None:
    bench = Bench(patience=0)
    bench.provision()
    before = bench.counts()
    for path in ("/projects", "/groups", "/users"):
        bench.alter = odd("GET", path, "id", _NOTHING)
        with pytest.raises(RefusedError, match=f"GET {path} shows no id of conformance "):
            sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
        assert bench.counts()["groups"] == before["groups"] or path == "/users"


def test_a_namespace_that_is_a_text_keeps_nothing_from_being_swept() -> None:
    bench = Bench(patience=0)
    bench.provision()
    bench.alter = odd("GET", "/projects", "namespace", "a text")
    removals = sweep(bench.calls, bench.administrator, "conformance", lambda _: None)
    assert not [removal for removal in removals if removal.problem]
    assert not bench.counts()["projects"]


@pytest.fixture(scope="module")
def served(prepared: tuple[Bench, dict[str, Any]]) -> Iterator[Profile]:
    bench, data = prepared
    with EmbeddedServer(bench.service) as server:
        yield profile_from({**data, "base_url": server.base_url, "version": "unknown"}, "a test")


@pytest.mark.parametrize(
    ("pattern", "key", "value"),
    [
        ("/metadata", "enterprise", [None]),
        (".*/members/all", "id", {}),
        ("/user", "id", ["x"]),
        (f".*/{KEY}", "value", 0),
    ],
)
def test_odd_answers_prove_nothing_about_a_profile(
    served: Profile, monkeypatch: pytest.MonkeyPatch, pattern: str, key: str, value: Any
) -> None:
    perform = Client.perform

    def altered(client: Client, call: Call) -> Exchange:
        exchange = perform(client, call)
        if not exchange.is_success or not re.fullmatch(pattern, call.path):
            return exchange
        shown = json.loads(exchange.body)
        odd_one = {} if value is _NOTHING else {key: value}
        rest = (
            [_without(one, key) | odd_one for one in shown]
            if isinstance(shown, list)
            else _without(shown, key) | odd_one
        )
        return replace(exchange, body=json.dumps(rest).encode())

    monkeypatch.setattr(Client, "perform", altered)
    with Client(served.client_settings()) as client:
        assert not [one for one in check_profile(served, client) if one.state == "contradicted"]
        assert not [*doubted_roles(served, client)]
        overstated(served, client)
    mark = Marker(served, "a-run")
    mark.claim()
    mark.release()


@pytest.mark.parametrize(("others", "is_accepted"), [(200, True), (403, True), (404, False), (500, False)])
def test_an_area_that_answers_401_to_everybody_is_not_taken_for_a_wrong_token(
    served: Profile,
    monkeypatch: pytest.MonkeyPatch,
    others: int,
    is_accepted: bool,  # noqa: FBT001 - data
) -> None:
    """It may be half built. A token is known where it is served or its role is refused, and not where nobody is."""

    def answers(self: Client, call: Call) -> Exchange:
        del self
        is_of_area = call.path.endswith("/merge_request_approval_setting")
        return Exchange(call, 401 if is_of_area else 200 if call.path == "/version" else others, {}, b"{}", 0.0)

    monkeypatch.setattr(Client, "perform", answers)
    with (
        Client(served.client_settings()) as client,
        nullcontext() if is_accepted else pytest.raises(TargetError, match="refuses the token"),
    ):
        preflight(served, client)


def test_a_mark_of_a_process_that_cannot_be_is_one_of_an_ended_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    assert run_behind(json.dumps({"run": "r", "host": "here", "pid": 10**30})) is None


@pytest.mark.parametrize(("seconds", "sent"), [(0.0, 5), (60.0, 1)])
def test_a_call_for_which_the_client_has_waited_long_is_not_sent_again(
    seconds: float, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, calls = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def silent(_: Way, *call: Any) -> Answer:
        calls.append(call)
        now[0] += seconds
        return Answer(None, problem="status 503, which a gateway answers in the place of the service")

    assert Bench(alter=changed(silent)).calls.get("token", "/metadata").status is None
    assert len(calls) == sent


def test_what_shows_its_ids_as_texts_is_put_back_as_well(served: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A half-built service may write ids so; an approval is taken back by whoever has that number."""
    shown = b'{"approved_by": [{"user": {"id": "7", "name": "7"}}]}'
    monkeypatch.setattr(Client, "perform", lambda _, call: Exchange(call, 200, {}, shown, 0.0))
    with Client(served.client_settings()) as client:
        states = States(served, client)
        things = (thing for spot in states.spots.all for thing in states.things(spot))
        read = states.read(next(thing for thing in things if thing.part.name == "approvals"))
    assert read is not None
    assert read[1] == {7: {"id": 7}}


def test_provisioning_does_not_wait_as_long_again_after_a_read_has_waited_in_vain() -> None:
    """A hundred steps that each wait for a minute would end after many minutes, and say nothing."""
    busy = says(whole(b"", status=b"503 Service Unavailable", headers=b"Retry-After: 0\r\n"), stays=True)
    with serving(busy) as server, Client(ClientSettings(base_url=server.base_url, call_wait_seconds=2.5)) as client:
        way = by_http(client)
        way("token", "POST", "/groups", {}, {})
        assert client.retries.call_seconds == 2.5
        client.retries.call_seconds = 0.2
        way("token", "GET", "/groups", {}, None)
        assert client.retries.call_seconds == 2
        server.answer = says(whole(b"[]"), stays=True)
        way("token", "GET", "/groups", {}, None)
        assert client.retries.call_seconds == 2.5


def test_the_page_of_a_front_end_is_no_sign_that_a_service_has_a_call(answering: Callable[..., str]) -> None:
    address = answering(200, b"<!doctype html><title>Forge</title>", "text/html")
    with Client(ClientSettings(base_url=address)) as client:
        way = by_http(client)
        found = [way("token", "GET", f"/groups/{number}/approval_rules", {}, None) for number in range(4)][-1]
    assert not found.is_served
    assert found.status == 404
    assert str(found) == "an HTML page, status 200"
