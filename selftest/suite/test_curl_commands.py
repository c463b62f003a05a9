"""The command by which a report lets its reader repeat a call: what the shell sends is what the suite sent."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from conformance.http.client import Client
from conformance.suite.evidence import evidence_of
from conformance.target.profile import Actor, profile_from
from selftest.proof.hostile import GOOD, Call, Line, serving, whole

if TYPE_CHECKING:
    from pathlib import Path

MAINTAINER = Actor("maintainer", "secret-token")
#: What a client says of itself and of its connection.
OF_CLIENTS = {"user-agent", "accept", "accept-encoding", "connection", "host"}


class Seen:
    """Answers well, and keeps what it was asked."""

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
        ("PUT", "/projects/1", {"json_body": {"name": 'it\'s a "name" with $HOME'}}),
        ("POST", "/projects/1", {"content": b"\x00\xff'%s\\", "headers": {"Content-Type": "text/plain"}}),
        ("POST", "/projects/1", {"content": b"@/etc/hostname"}),
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
            exchange = client.send(MAINTAINER, method, path, **given)
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
