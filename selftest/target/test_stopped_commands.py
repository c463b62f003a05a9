"""Commands that somebody stops say what is there now and how to go on, and leave nothing set up."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from conformance.errors import ExitCode, TargetError
from conformance.target.provisioning.calls import Wanted
from conformance.target.provisioning.integrations import Trial, catalogue, described_by
from selftest.conftest import serving
from selftest.processes import started
from selftest.target.bench import Bench
from selftest.target.services import changed

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from conformance.target.provisioning import Order, Provisioned, Way
    from conformance.target.provisioning.calls import Answer, Body, Calls
    from selftest.conftest import Outcome


def preparing(base_url: str, folder: Path) -> subprocess.Popen[str]:
    """Start to prepare a service, and wait until a few things are made."""
    where = ("--base-url", base_url, "--admin-token-file", "admin.token")
    process, made = started("provision", *where, "--prefix", "stopped", cwd=folder), folder / "made.jsonl"
    deadline = time.monotonic() + 60
    while not (made.exists() and made.read_text(encoding="utf-8").count("\n") > 3):
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
    lines = (tmp_path / "made.jsonl").read_text(encoding="utf-8").splitlines()
    assert f"Calls to make something: {len(lines)}, see made.jsonl." in err


def test_a_service_that_ends_while_it_is_prepared_is_told_with_what_was_made(
    conformance: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ending(order: Order, calls: Calls, *_: object) -> None:
        body = {"name": "made", "path": "made", "visibility": "private"}
        calls.make(Wanted(what="group", path="/groups", tokens=[order.administrator], bodies=[body], look_up=dict))
        raise TargetError("The service is gone.")

    monkeypatch.setattr("conformance.cli.provision.provision", ending)
    with serving() as (service, base_url):
        (tmp_path / "admin.token").write_text(service.administrator.token)
        made = conformance("provision", "--base-url", base_url, "--admin-token-file", "admin.token")
    assert made.code == ExitCode.COULD_NOT_RUN, made.text
    assert "The service is gone. target.yaml was not written. Calls to make something: 1, see made.jsonl." in made.err
    assert "Run the same command again to go on where it stopped" in made.err


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
