"""A run that a signal ends, or that somebody interrupts again and again, tells its result and what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.reference import EmbeddedServer
from conformance.results.reading import read_record
from conformance.runner.workers import interrupts_held
from conformance.target import load_profile
from conformance.target.embedded import prepared_service, profile_of
from selftest.conftest import VERSION, run_conformance
from selftest.processes import started, wait_for_checks
from selftest.reads import everything_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.reference import Service

OPTIONS = ("-q", "--max-examples", "2", "--seed", "1", "--corpus", "none", "--target", "target.yaml", "--out", "out")


@contextmanager
def begun_run(folder: Path, workers: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], bool]]]:
    """Begin a run on two worlds; yield its process, and a function that says whether these are as they were before."""
    service = prepared_service(version=VERSION, worlds=2)
    with EmbeddedServer(service, latency_ms=20) as server:
        data = profile_of(service, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
        profile = load_profile(folder / "target.yaml")

        def read() -> list[Any]:
            return [everything_read(profile.in_world(number)) for number in range(2)]

        before = read()
        process = started("run", *OPTIONS, "--area", "job-token-scope", "--workers", workers, cwd=folder)
        wait_for_checks(folder / "out" / "results.jsonl", process)
        yield process, lambda: read() == before


@pytest.mark.parametrize(
    ("signal_sent", "code", "word", "workers"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED, "interrupted", "1"),
        (signal.SIGINT, ExitCode.INTERRUPTED, "interrupted", "2"),
        (signal.SIGTERM, ExitCode.TERMINATED, "terminated", "1"),
        (signal.SIGTERM, ExitCode.TERMINATED, "terminated", "2"),
        (signal.SIGHUP, ExitCode.TERMINATED, "terminated", "2"),
    ],
)
def test_a_signal_ends_a_run_with_its_report_and_all_changes_undone(
    tmp_path: Path, signal_sent: signal.Signals, code: ExitCode, word: str, workers: str
) -> None:
    with begun_run(tmp_path, workers) as (process, is_as_before):
        os.killpg(process.pid, signal_sent)  # like a terminal or a service manager: the workers get the signal too
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, out + err
        assert is_as_before()
    footer = read_record(tmp_path / "out" / "results.jsonl").footer
    assert footer is not None
    assert word in str(footer.detail)
    assert word in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_is_interrupted_again_and_again_still_tells_what_it_left(tmp_path: Path, workers: str) -> None:
    with begun_run(tmp_path, workers) as (process, is_as_before):
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.03)
        out, err = process.communicate(timeout=120)
        assert process.returncode == ExitCode.INTERRUPTED, out + err
        assert "Plugg" not in err  # as pytest warns of exceptions in plugins
        assert "Report: out" in out
        footer = read_record(tmp_path / "out" / "results.jsonl").footer
        assert footer is not None
        assert all("conformance restore" in text for text in footer.left)
        run_conformance("restore", "out", cwd=tmp_path)
        assert is_as_before()


def test_an_interrupt_while_the_version_is_asked_again_costs_no_result(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gateway may answer by then, so that the call is repeated for a minute."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.runner.session.upgraded", interrupted)
    write_profile(*reference, version="auto")
    outcome = conformance("run", *OPTIONS, "--workers", "1", "--requirement", "job-token-scope.settings.read")
    footer = read_record(tmp_path / "out" / "results.jsonl").footer
    assert footer is not None, outcome.text
    assert (tmp_path / "out" / "index.html").is_file()
    assert outcome.code == ExitCode.CONFORMANT, outcome.text


def test_a_worker_that_starts_gets_no_interrupt_and_the_run_gets_it_later() -> None:
    """It would show a traceback of the library that starts it."""
    waits = "import sys; print('begun', flush=True); sys.stdin.read()"

    def interrupt() -> None:
        with interrupts_held():
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # another thread may not hold it back
            worker.send_signal(signal.SIGINT)
            seen.append("held")

    seen: list[str] = []
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run side by side, it is ignored
    with interrupts_held():
        worker = subprocess.Popen(
            [sys.executable, "-c", waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    assert worker.stdout
    assert worker.stdout.readline() == "begun\n"
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    signal.signal(signal.SIGINT, usual)
    assert seen == ["held"]
    worker.communicate(timeout=60)
    assert worker.returncode == 0


def test_interrupts_after_the_last_test_take_neither_the_report_nor_the_exit_code(tmp_path: Path) -> None:
    chosen = ("run", "-q", "--requirement", "job-token-scope.settings.read", "--out", "out")
    run = run_conformance(*chosen, "--", "-p", "selftest.runner.impatient", cwd=tmp_path)
    assert run.code == 0, run.text
    assert "Report: out" in run.out
    assert read_record(tmp_path / "out" / "results.jsonl").footer is not None
