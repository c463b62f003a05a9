"""Commands that somebody stops say what is there now and how to go on, and leave nothing set up."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ExitCode
from conformance.target.provisioning.integrations import Trial, catalogue, described_by
from selftest.conftest import serving
from selftest.processes import started, unused_port
from selftest.target.bench import Bench
from selftest.target.services import changed

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from conformance.target.provisioning import Provisioned, Way
    from conformance.target.provisioning.calls import Answer, Body


def preparing(base_url: str, folder: Path, calls: int = 3) -> subprocess.Popen[str]:
    """Start to prepare a service, and wait until a few things are made."""
    where = ("--base-url", base_url, "--admin-token-file", "admin.token")
    process, made = started("provision", *where, "--prefix", "stopped", cwd=folder), folder / "made.jsonl"
    deadline = time.monotonic() + 60
    while not (made.exists() and made.read_text(encoding="utf-8").count("\n") > calls):
        assert time.monotonic() < deadline, process.communicate(timeout=1)
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(
    ("sent", "code", "word"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED, "Interrupted"),
        (signal.SIGTERM, ExitCode.TERMINATED, "Terminated"),
        (signal.SIGHUP, ExitCode.TERMINATED, "Terminated"),
    ],
)
def test_a_stopped_provision_tells_what_it_made_and_how_to_go_on(
    tmp_path: Path, sent: signal.Signals, code: ExitCode, word: str
) -> None:
    with serving(latency_ms=30) as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        process = preparing(base_url, tmp_path)
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert err.startswith(f"{word}. target.yaml was not written."), err
    assert "Traceback" not in err
    assert f"conformance sweep --base-url {base_url} --admin-token-file FILE --prefix stopped" in err
    assert f"{(tmp_path / 'made.jsonl').read_text(encoding='utf-8').count(chr(10))} calls to make something" in err


def test_a_service_that_ends_while_it_is_prepared_is_told_with_what_was_made(tmp_path: Path) -> None:
    port, token = str(unused_port()), tmp_path / "admin.token"
    server = started("serve", "--port", port, "--latency", "30", "--admin-token-out", str(token), cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (token.exists() and token.read_text(encoding="utf-8").endswith("\n")):
        assert time.monotonic() < deadline, server.communicate(timeout=1)
        time.sleep(0.01)
    process = preparing(f"http://127.0.0.1:{port}", tmp_path, calls=40)
    server.kill()
    server.communicate(timeout=60)
    _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.COULD_NOT_RUN, err
    assert "target.yaml was not written." in err
    assert "Run the same command again to go on where it stopped" in err


def test_an_integration_that_is_being_tried_is_removed_on_interrupt(whole: tuple[Bench, Provisioned]) -> None:
    bench, done = whole
    kind, project = catalogue()[0], done.worlds[0].projects["workbench"]["id"]
    path = f"/projects/{project}/integrations/{kind.slug}"

    def interrupted(way: Way, token: str, method: str, path: str, query: Body, body: Body | None) -> Answer:
        answer = way(token, method, path, query, body)
        if method == "PUT":
            raise KeyboardInterrupt
        return answer

    token = done.worlds[0].people["maintainer"].token
    calls = Bench(service=bench.service, alter=changed(interrupted)).calls
    with pytest.raises(KeyboardInterrupt):
        described_by(Trial.on(calls, token, project), [kind])
    assert bench.calls.get(token, path).entry.get("active") is not True
