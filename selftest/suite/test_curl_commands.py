"""The curl command in a report: the shell sends exactly what the suite sent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from conformance.http import exchange as http
from conformance.http.client import Client
from conformance.suite.evidence import evidence_of
from conformance.target.fit_secrets import shell_variables
from conformance.target.profile import Actor
from conformance.target.profile_file import profile_from
from selftest.proof.hostile import GOOD, Call, Line, serving, whole

if TYPE_CHECKING:
    from pathlib import Path

MAINTAINER = Actor("maintainer", "secret-token")
JSON = {"Content-Type": "application/json"}
#: Headers about the client itself and its connection.
OF_CLIENTS = {"user-agent", "accept", "accept-encoding", "connection", "host"}


class Seen:
    """Answers well, and keeps the requests that it received."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, line: Line, call: Call) -> bool:
        self.calls.append(call)
        line.say(whole(b"" if call.method == "HEAD" else GOOD))
        return True


def shown(call: Call) -> tuple[Any, ...]:
    headers = {name: value for name, value in call.headers.items() if name not in OF_CLIENTS}
    return call.method, call.path, headers, call.body


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        ("PUT", "/projects/1", {"body": b'{"name": "it\'s a \\"name\\" with $HOME"}', "headers": JSON}),
        ("POST", "/projects/1", {"body": b"\x00\xff'%s\\", "headers": {"Content-Type": "text/plain"}}),
        ("POST", "/projects/1", {"body": b"@/etc/hostname"}),
        ("GET", "/projects?ids[]={1}&search=[a-z]", {}),
        ("GET", "/projects/a/../b", {}),
        ("HEAD", "/projects/1", {}),
        ("GET", "/user", {"headers": {"Private-Token": "another"}}),
        ("GET", "/user", {"headers": {"Authorization": f"Bearer {MAINTAINER.token}"}}),
        ("GET", "/user", {"headers": {"X-Empty": ""}}),
    ],
    ids=["quotes", "bytes", "no file", "brackets", "dots", "head", "its own token", "bearer", "empty header"],
)
def test_a_command_sends_what_the_suite_sent(tmp_path: Path, method: str, path: str, given: dict[str, Any]) -> None:
    seen = Seen()
    with serving(seen) as target:
        profile = {
            "base_url": target.base_url.replace("//", "//gate:pass%2Fword@"),
            "actors": {MAINTAINER.name: {"token": MAINTAINER.token}},
            "fixtures": {},
            "headers": {"X-Gateway-Key": "key-of-the-gateway", "X-Zone": "two"},
        }
        with Client(profile_from(profile, "target.yaml").client_settings()) as client:
            exchange = client.perform(http.Call(MAINTAINER, method, path, **given))
            command = evidence_of(exchange, client).curl
        assert "secret-token" not in command
        assert "redacted" not in command
        variables = {"TOKEN_MAINTAINER": MAINTAINER.token, "HEADER_X_GATEWAY_KEY": "key-of-the-gateway"}
        variables |= {"BASE_URL_PASSWORD": "pass/word"}
        subprocess.run(  # noqa: S602 - a command for a shell, from this test
            command, shell=True, check=True, capture_output=True, cwd=tmp_path, env={**os.environ, **variables}
        )
    sent, repeated = seen.calls
    assert shown(repeated) == shown(sent)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl on this machine")
@pytest.mark.parametrize("webhook", ["https://chat.example.com/it's/1", 'a "quoted" hook'])
def test_a_secret_in_a_body_or_address_is_a_variable(tmp_path: Path, webhook: str) -> None:
    seen = Seen()
    body = {"webhook": webhook, "other": f"{webhook}/$HOME'", "password": "second-hidden"}
    with serving(seen) as target:
        entries = [{"slug": "chat", "settings": {"webhook": webhook, "password": "second-hidden"}}]
        profile = {"base_url": target.base_url, "fixtures": {"integrations": entries}}
        profile["actors"] = {MAINTAINER.name: {"token": MAINTAINER.token}}
        with Client(profile_from(profile, "target.yaml").client_settings()) as client:
            path = "/projects/1?private_token=secret-token&job=second-hidden"
            command = evidence_of(client.send(MAINTAINER, "PUT", path, json_body=body), client).curl
        assert "redacted" not in command
        assert not any(secret in command for secret in (webhook, "second-hidden", "secret-token"))
        variables = {"TOKEN_MAINTAINER": MAINTAINER.token, "PASSWORD": "second-hidden", "WEBHOOK": webhook}
        variables["WEBHOOK_AS_SENT"] = json.dumps(webhook)[1:-1]
        subprocess.run(  # noqa: S602 - a command for a shell, from this test
            command, shell=True, check=True, capture_output=True, cwd=tmp_path, env={**os.environ, **variables}
        )
    sent, repeated = seen.calls
    assert shown(repeated) == shown(sent)


def test_several_secrets_of_one_key_are_numbered() -> None:
    places = {
        "0.maintainer.token": "one",
        "1.maintainer.token": "two",
        "0.maintainer.password": "three",
        "0.integration.0.settings.webhook": "four",
        "0.integration.1.settings.webhook": "five",
        "1.integration.0.settings.webhook": "four",
        "headers.X-Key": "six",
        "proxy": "seven",
    }
    assert shell_variables(places) == {
        "one": "$TOKEN_MAINTAINER",
        "two": "$TOKEN_MAINTAINER",
        "three": "$PASSWORD_MAINTAINER",
        "four": "$WEBHOOK",
        "five": "$WEBHOOK_2",
        "six": "$HEADER_X_KEY",
        "seven": "$PROXY_PASSWORD",
    }
