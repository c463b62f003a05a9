"""Tests in parallel: workers have the same verdicts as one process, and the same record except for its order."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.proof.chaos.kinds import Disturbed
from conformance.proof.chaos.proxy import Proxy
from conformance.reference import EmbeddedServer
from conformance.results.reading import read_record
from conformance.results.record import TestOutcome
from conformance.results.verdicts import add_up
from conformance.target.embedded import prepared_service, profile_of
from selftest.conftest import VERSION, run_conformance
from selftest.proof.test_caught import pages_are_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

#: Enough tests to distribute, and no more.
FEW = ("-q", "--area", "job-token-scope", "--max-examples", "2", "--seed", "1", "--corpus", "none")


def is_healthy(_: Service) -> None:
    """Change nothing."""


@pytest.mark.parametrize(
    ("alter", "code", "numbers"),
    [
        (is_healthy, ExitCode.CONFORMANT, ("1", "2")),
        (pages_are_whole, ExitCode.NON_CONFORMANT, ("1", "3")),
    ],
    ids=["the reference", "a reference with a fault"],
)
def test_workers_have_the_verdicts_of_one_process(
    tmp_path: Path, alter: Callable[[Service], None], code: ExitCode, numbers: tuple[str, ...]
) -> None:
    verdicts: dict[str, dict[str, Any]] = {}
    ends: dict[str, dict[str, TestOutcome]] = {}
    for workers in numbers:
        # Each run has its own service, so none finds what another left behind.
        service = prepared_service(version=VERSION, worlds=3)
        alter(service)
        with EmbeddedServer(service) as server:
            profile = profile_of(service, server.base_url, VERSION)
            (tmp_path / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
            options = ("--target", "target.yaml", *FEW, "--out", workers, "--workers", workers)
            outcome = run_conformance("run", *options, cwd=tmp_path)
        assert outcome.code == code, outcome.text
        record = read_record(tmp_path / workers / "results.jsonl")
        verdicts[workers] = {row.requirement.id: (row.verdict, row.reason) for row in add_up(record).rows}
        ends[workers] = {end.test: end.outcome for end in record.tests}
    assert [number for number in numbers if verdicts[number] != verdicts["1"]] == []
    assert [number for number in numbers if ends[number] != ends["1"]] == []


def test_network_errors_of_every_worker_are_in_the_record(tmp_path: Path) -> None:
    service = prepared_service(version=VERSION, worlds=2)
    with EmbeddedServer(service) as server, Proxy(server.port, Disturbed("reset-before", 1 / 10)) as proxy:
        profile = {**profile_of(service, proxy.base_url, VERSION), "retries": {"call_seconds": 20, "run_seconds": 60}}
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        options = ("--target", "target.yaml", *FEW, "--out", "out", "--workers", "2")
        outcome = run_conformance("run", *options, cwd=tmp_path)
    footer = read_record(tmp_path / "out" / "results.jsonl").footer
    assert footer, outcome.text
    assert footer.network, outcome.text
    found = Counter(footer.network.retries) + Counter(footer.network.unanswered)
    # The rest are reads outside of tests, for example of the ledger.
    assert proxy.done["reset-before"] / 2 < found["connection broken"] <= proxy.done["reset-before"]


def test_workers_share_the_number_of_requests_that_a_run_may_send(tmp_path: Path) -> None:
    most, sent = 200, Counter[str]()
    service = prepared_service(version=VERSION, worlds=2)

    def count(_: Route, request: Request, response: Response) -> Response:
        agent = request.header("user-agent") or ""
        sent["by tests" if "test tests/" in agent else "beside"] += 1
        return response

    service.transformers.append(count)
    with EmbeddedServer(service) as server:
        profile = profile_of(service, server.base_url, VERSION)
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        options = ("--target", "target.yaml", *FEW, "--out", "out", "--workers", "2", "--max-requests", str(most))
        outcome = run_conformance("run", *options, cwd=tmp_path)
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert "Nothing failed, but the requests of --max-requests were spent." in outcome.text
    # After the last allowed request, a test only cleans up.
    assert most / 2 <= sent["by tests"] < most * 1.2, sent


def test_a_killed_worker_is_reported_and_the_next_one_takes_its_world(tmp_path: Path) -> None:
    """The profile has no world for a third worker: with a number of its own, it would find none."""
    service = prepared_service(version=VERSION, worlds=2)
    with EmbeddedServer(service) as server:
        profile = profile_of(service, server.base_url, VERSION)
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        options = ("--target", "target.yaml", *FEW, "--out", "out", "--workers", "2")
        outcome = run_conformance("run", *options, "--", "-p", "selftest.runner.crashing", cwd=tmp_path)
    killed = (tmp_path / "killed").read_text(encoding="utf-8")
    record = read_record(tmp_path / "out" / "results.jsonl")
    assert outcome.code == ExitCode.SUITE_BROKE, outcome.text
    ended = {end.test: end for end in record.tests}
    broken = {name for name, end in ended.items() if end.outcome is TestOutcome.BROKEN}
    assert broken == {killed}
    assert "crashed, or was killed" in (ended[killed].detail or "")
    assert not [name for name, end in ended.items() if end.outcome is TestOutcome.NOT_BEGUN]
    assert any("another took its place" in text for text in record.warnings)
