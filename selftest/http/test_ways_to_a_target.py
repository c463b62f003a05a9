"""Proxies, certificates, extra headers and HTTP/2: what a profile may say about the connection to its target."""

from __future__ import annotations

import base64
import select
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance import __version__
from conformance.cli.provision import settings
from conformance.contract.yaml_files import first_problem
from conformance.errors import UsageError
from conformance.http.client import Client
from conformance.http.transport import NotSentError
from conformance.suite.evidence import evidence_of
from conformance.target.profile import Actor
from conformance.target.profile_file import load_profile, profile_from
from selftest.http.certificates import Authority
from selftest.proof.hostile import GOOD, Answer, Call, Line, redirects, says, serving, whole

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.http.exchange import Exchange
    from conformance.http.settings import ClientSettings

MAINTAINER = Actor("maintainer", "secret-token")
GATEWAY_KEY = "key-of-the-gateway"
REFUSED = whole(b"", status=b"403 Forbidden")


def data_of(base_url: str, **settings: Any) -> dict[str, Any]:
    actors = {MAINTAINER.name: {"token": MAINTAINER.token}}
    return {"base_url": base_url, "actors": actors, "fixtures": {}, "limits": {"timeout_seconds": 10}, **settings}


def settings_of(base_url: str, **settings: Any) -> ClientSettings:
    return profile_from(data_of(base_url, **settings), "target.yaml").client_settings()


def client_of(base_url: str, **settings: Any) -> Client:
    return Client(settings_of(base_url, **settings))


def asked(base_url: str, **settings: Any) -> Exchange:
    with client_of(base_url, **settings) as client:
        return client.follow(client.send(MAINTAINER, "GET", "/version"))


class Seen:
    """Answers well, and keeps the requests that it received."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, line: Line, call: Call) -> bool:
        self.calls.append(call)
        line.say(whole(GOOD))
        return True


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path)


# -- proxies -----------------------------------------------------------------------------------------------------------


def tunnel_to(base_url: str) -> Answer:
    """Forward what comes after CONNECT, without reading it."""
    port = int(base_url.rpartition(":")[2])

    def answer(line: Line, _: Call) -> None:
        with socket.create_connection(("127.0.0.1", port)) as far, suppress(OSError):
            line.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
            ends = {line.socket: far, far: line.socket}
            while line.goes_on():
                for ready in select.select([*ends], [], [], 0.1)[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    ends[ready].sendall(data)

    return answer


def test_every_call_goes_through_the_proxy() -> None:
    seen = Seen()
    with serving(seen) as proxy:
        address = proxy.base_url.replace("//", "//user:pass%40word@")
        assert asked("http://service.invalid", proxy=address).body == GOOD
    (call,) = seen.calls
    assert call.path == "http://service.invalid/api/v4/version"
    assert call.headers["proxy-authorization"] == f"Basic {base64.b64encode(b'user:pass@word').decode()}"
    assert call.headers["private-token"] == MAINTAINER.token


def test_an_https_target_is_reached_through_the_tunnel_of_a_proxy(authority: Authority) -> None:
    seen = Seen()
    with serving(seen, authority.server()) as target, serving(tunnel_to(target.base_url)) as proxy:
        answer = asked(target.base_url, proxy=proxy.base_url, certificates=str(authority.file))
        assert answer.body == GOOD, answer.problem
        assert [where.partition(" ")[0] for where in proxy.calls] == ["CONNECT"]
    assert seen.calls[0].headers["private-token"] == MAINTAINER.token


def test_a_tunnel_that_a_proxy_refuses_is_no_answer_of_the_target() -> None:
    with serving(says(REFUSED)) as proxy:
        answer = asked("https://service.invalid", proxy=proxy.base_url)
    assert answer.status is None
    assert "403" in str(answer.problem)


@pytest.mark.parametrize("tunnels", [True, False])
def test_a_silent_proxy_is_waited_for_as_long_as_a_silent_target(*, tunnels: bool) -> None:
    with serving(lambda line, _: line.closing.wait(20) and None) as proxy:
        target = "https://service.invalid" if tunnels else "http://service.invalid"
        answer = asked(target, proxy=proxy.base_url, limits={"timeout_seconds": 0.3})
    assert answer.problem == "no answer within 0.3 s"
    assert answer.seconds < 5


def test_proxies_in_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(Seen()) as target:
        assert asked(target.base_url).body == GOOD


# -- certificates ------------------------------------------------------------------------------------------------------


def test_a_target_that_asks_for_a_certificate_gets_the_one_of_the_profile(authority: Authority) -> None:
    known = {"certificates": str(authority.file)}
    with serving(Seen(), authority.server(asks_for_certificate=True)) as target:
        assert asked(target.base_url, **known).status is None
        shown = asked(target.base_url, **known, client_certificate={"file": str(authority.issue("client"))})
    assert shown.body == GOOD, shown.problem


def test_the_key_of_a_certificate_may_have_its_own_file_and_password(authority: Authority) -> None:
    certificate, key = authority.issue_apart("client", "open sesame")
    own = {"file": str(certificate), "key": str(key), "password": "open sesame"}
    with serving(Seen(), authority.server(asks_for_certificate=True)) as target:
        shown = asked(target.base_url, certificates=str(authority.file), client_certificate=own)
    assert shown.body == GOOD, shown.problem


@pytest.mark.parametrize("password", [None, "wrong"])
def test_a_key_that_cannot_be_opened_is_reported_before_the_first_call(
    authority: Authority, password: str | None
) -> None:
    certificate, key = authority.issue_apart("client", "open sesame")
    own = {"file": str(certificate), "key": str(key)} | ({"password": password} if password else {})
    with pytest.raises(UsageError, match=r"client\.pem cannot be read"):
        client_of("https://127.0.0.1:9", client_certificate=own)


def test_a_certificate_file_without_certificates_is_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none", encoding="ascii")
    with pytest.raises(UsageError, match=r"none\.pem cannot be read"):
        client_of("https://127.0.0.1:9", certificates=str(tmp_path / "none.pem"))


def test_what_prepares_a_target_reaches_it_as_its_profile_says(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a staging server with an authority of its own, behind a gateway; no other host gets the gateway's key."""
    monkeypatch.setenv("KEY", GATEWAY_KEY)
    file, seen = tmp_path / "target.yaml", Seen()
    with serving(seen, authority.server()) as target:
        keys = f'certificates: {authority.file}\nheaders: {{X-Gateway-Key: "${{KEY}}"}}\n'
        for address, is_reached in ((target.base_url, True), ("https://other.example", False)):
            file.write_text(f"base_url: {address}\n{keys}", encoding="utf-8")
            with Client(settings(target.base_url, None, 1, file)) as client:
                answer = client.send(MAINTAINER, "GET", "/version")
            assert (answer.status is not None) is is_reached
            assert is_reached or "certificates: FILE" in (answer.problem or "")
    assert len(seen.calls) == 1


def test_the_token_is_not_sent_to_a_target_with_an_untrusted_certificate(authority: Authority) -> None:
    seen = Seen()
    with serving(seen, authority.server()) as target:
        assert asked(target.base_url).status is None
        assert seen.calls == []
        assert asked(target.base_url, certificates=False).body == GOOD


def test_a_redirect_to_a_host_with_an_untrusted_certificate_is_not_followed(authority: Authority) -> None:
    seen = Seen()
    with serving(seen, authority.server()) as storage, serving(redirects(f"{storage.base_url}/file")) as target:
        assert asked(target.base_url, retries={"call_seconds": 0.5}).status is None
    assert seen.calls == []


# -- headers -----------------------------------------------------------------------------------------------------------


def test_headers_of_the_profile_are_sent_with_every_call_to_the_target_only() -> None:
    here, elsewhere = Seen(), Seen()

    def answer(line: Line, call: Call) -> bool | None:
        here.calls.append(call)
        return redirects(f"{storage.base_url}/file")(line, call)

    with serving(elsewhere) as storage, serving(answer) as target:
        headers = {"X-Gateway-Key": GATEWAY_KEY, "user-agent": "a gateway's friend"}
        assert asked(target.base_url, headers=headers).body == GOOD
    assert here.calls[0].headers["x-gateway-key"] == GATEWAY_KEY
    assert "project-automation-conformance" in here.calls[0].headers["user-agent"]
    assert not {"x-gateway-key", "private-token"} & elsewhere.calls[0].headers.keys()


def test_the_user_agent_names_suite_run_and_test() -> None:
    seen = Seen()
    with serving(seen) as target, Client(replace(settings_of(target.base_url), run="night-7")) as client:
        client.test = "tests/test_é.py::test_a[x\r\ny]" + "z" * 1000
        client.send(MAINTAINER, "GET", "/version")
    told = seen.calls[0].headers["user-agent"]
    assert told.startswith(f"project-automation-conformance/{__version__} (run night-7; test tests/test_?.py::test_a[")
    assert told.isascii()
    assert len(told) < 400


def test_a_client_that_only_reads_sends_no_writes() -> None:
    seen = Seen()
    with serving(seen) as target, Client(replace(settings_of(target.base_url), only_reads=True)) as client:
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            with pytest.raises(NotSentError, match="only to be read"):
                client.send(MAINTAINER, method, "/version")
        client.send(MAINTAINER, "HEAD", "/version")
        client.send(MAINTAINER, "GET", "/version")
    assert [call.method for call in seen.calls] == ["HEAD", "GET"]


def test_a_header_of_the_profile_is_in_no_report() -> None:
    with (
        serving(says(whole(f'{{"echo":"{GATEWAY_KEY}"}}'.encode()), stays=True)) as target,
        client_of(target.base_url, headers={"X-Gateway-Key": GATEWAY_KEY}) as client,
    ):
        shown = evidence_of(client.send(MAINTAINER, "GET", f"/version?key={GATEWAY_KEY}"), client)
    assert shown.status == 200
    assert GATEWAY_KEY not in str(shown)


@pytest.mark.parametrize("name", ["PRIVATE-TOKEN", "authorization", "Content-Length", "two words"])
def test_a_profile_may_not_name_headers_that_the_suite_sets_itself(name: str) -> None:
    assert first_problem(data_of("http://service.invalid", headers={"X-Key": "1"}), "target.schema.json") is None
    assert first_problem(data_of("http://service.invalid", headers={name: "1"}), "target.schema.json") is not None


# -- HTTP/2 ------------------------------------------------------------------------------------------------------------


AT_ONCE, LATER, HANGING_UP = "at once", "later", "hanging up"
MANY = b"[" + b",".join([GOOD] * 200) + b"]"


def speaks_http2(line: Line, seen: list[bool], ends: str = "", has_ended: threading.Event | None = None) -> None:
    """Answer every request of a connection that has negotiated HTTP/2.

    It may say with its answer, or in the next packet, that it handles no more calls, or just hang up, and tell that it
    has: until then, the next call may be lost.
    """
    h2_connection = pytest.importorskip("h2.connection")
    h2_config, h2_events = pytest.importorskip("h2.config"), pytest.importorskip("h2.events")
    state = h2_connection.H2Connection(h2_config.H2Configuration(client_side=False))
    state.initiate_connection()
    line.say(state.data_to_send())
    is_over = False
    while data := line.socket.recv(65536):
        for event in state.receive_data(data) if not is_over else ():
            if isinstance(event, h2_events.StreamEnded):
                seen.append(True)
                state.send_headers(event.stream_id, [(":status", "200"), ("content-type", "application/json")])
                state.send_data(event.stream_id, MANY, end_stream=True)
                line.say(state.data_to_send() if ends != AT_ONCE else b"")
                if ends in (AT_ONCE, LATER):
                    state.close_connection(last_stream_id=event.stream_id)
                is_over = bool(ends)
        line.say(state.data_to_send())
        if is_over and ends == HANGING_UP:
            line.socket.close()
            if has_ended is not None:
                has_ended.set()
            break


def test_http2_is_used_if_the_profile_says_so_and_the_target_offers_it(authority: Authority) -> None:
    pytest.importorskip("h2")
    seen: list[bool] = []
    context = authority.server()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        serving(Seen(), context, lambda line: speaks_http2(line, seen)) as target,
        client_of(target.base_url, certificates=str(authority.file), http2=True) as client,
    ):
        answers = [client.send(MAINTAINER, "GET", "/version") for _ in range(3)]
    assert [answer.body == MANY for answer in answers] == [True] * 3, answers[0].problem
    assert len(seen) == 3


@pytest.mark.parametrize("ends", [AT_ONCE, LATER, HANGING_UP])
def test_a_write_is_sent_once_more_where_http2_says_that_it_was_not_handled(authority: Authority, ends: str) -> None:
    """A server ends a connection after a number of calls, or when it has been idle."""
    pytest.importorskip("h2")
    seen: list[bool] = []
    context, has_ended = authority.server(), threading.Event()
    context.set_alpn_protocols(["h2"])
    with (
        serving(Seen(), context, lambda line: speaks_http2(line, seen, ends, has_ended)) as target,
        client_of(target.base_url, certificates=str(authority.file), http2=True) as client,
    ):
        for _ in range(4):
            has_ended.clear()
            assert client.send(MAINTAINER, "POST", "/version").problem is None
            assert ends != HANGING_UP or has_ended.wait(10)
    assert len(seen) == 4


def test_without_the_http2_library_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.http.settings.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"\[http2\]"):
        client_of("https://service.invalid", http2=True)


@pytest.mark.parametrize("proxy", ["http://[::1", "http://proxy:99999", "http://:3128"])
def test_a_proxy_that_is_no_address_is_refused(proxy: str) -> None:
    with pytest.raises(UsageError, match="names a proxy that is no address"):
        settings_of("http://127.0.0.1:1", proxy=proxy)


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 70}.example"])
def test_a_host_whose_name_cannot_be_is_told_of_and_reached_by_nobody(host: str) -> None:
    with Client(settings_of(f"http://{host}")) as client:
        assert "is no address" in str(client.send(None, "GET", "/version").problem)
    with serving(redirects(f"http://{host}/")) as target, Client(settings_of(target.base_url)) as client:
        followed = client.follow(client.send(MAINTAINER, "GET", "/version"))
    assert "is no address" in str(followed.problem)


def test_a_misspelled_key_of_a_fixture_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "target.yaml"
    start = "base_url: http://127.0.0.1:1\nactors: {}\nfixtures:\n  project: {id: 1, %s}\n"
    file.write_text(start % "paht: a/b")
    with pytest.raises(UsageError, match=r"at fixtures.project: 'paht' is unknown. Did you mean 'path'\?"):
        load_profile(file)
    file.write_text(start % "path: a/b, paths: of our own, team: ours")
    assert load_profile(file).fixtures["project"][0]["team"] == "ours"
