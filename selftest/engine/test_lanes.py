"""Drawn calls of several operations at once: as many as are set aside, none in the way of another, nothing lost."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import yaml

from conformance.errors import ExitCode
from conformance.http.client import Client
from conformance.reference import EmbeddedServer, Service, create_service
from conformance.reference.areas.approval_rule_records import RuleType, home_of
from conformance.results.record import read_record
from conformance.target.embedded import profile_data
from conformance.target.profile import profile_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

SETS = 4
LATENCY_MS = 5
TIER = ("--max-examples", "4", "--seed", "1", "--corpus", "none")
DRAWN = ("--", "-k", "test_coverage or test_fuzz")
AREAS = ("project-approval-rules", "job-token-scope", "group-relations-export")


@dataclass
class Watched:
    """A reference with several things set aside, and when each test touched which of them."""

    service: Service
    server: EmbeddedServer
    aside: dict[str, str]
    """Address of a thing -> its name."""
    touched: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    """Thing -> test -> when."""

    def note(self, _: Route, request: Request, response: Response) -> Response:
        found = re.match(r"/(projects|groups)/([^/]+)", request.raw_path.decode().removeprefix("/api/v4"))
        name = self.aside.get(f"{found[1]}/{found[2]}") if found else None
        test = re.search(r"\((.+)\)", request.header("user-agent"))
        if name and test:
            self.touched[name][test[1]].append(time.monotonic())
        return response

    @property
    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """From when until when one test after the other had each thing."""
        return {name: sorted((times[0], times[-1]) for times in tests.values()) for name, tests in self.touched.items()}

    def left_behind(self) -> list[tuple[object, ...]]:
        """What the service keeps of lists and rules of the projects set aside; a default rule gives way for good."""
        scopes, rules = self.service.job_token_scope, self.service.approval_rules
        found = [self.service.identities.projects[entry.id] for entry in self.service.world.many("fuzz_project")]
        return [
            (
                scopes.of(project),
                [entry.id for entry in scopes.projects(project)],
                [entry.id for entry in scopes.groups(project)],
                [rule for rule in rules.rules_of(home_of(project)) if rule.rule_type is not RuleType.ANY_APPROVER],
            )
            for project in found
        ]


@pytest.fixture
def watched() -> Iterator[Watched]:
    service = create_service(version="17.7", sets_aside=SETS)
    aside = {
        f"{kind}s/{named}": f"{kind} {number}"
        for kind in ("project", "group")
        for number, entry in enumerate(service.world.many(f"fuzz_{kind}"))
        for named in (entry.id, quote(entry.path or "", safe=""))
    }
    with EmbeddedServer(service, latency_ms=LATENCY_MS) as server:
        found = Watched(service, server, aside)
        service.transformers.append(found.note)
        yield found


@pytest.fixture
def profile_with(watched: Watched, tmp_path: Path) -> Callable[[int], None]:
    """Write the profile of the reference with so many sets of what is set aside."""

    def write(number: int) -> None:
        data = profile_data(watched.service.world, watched.server.base_url, "17.7")
        for name in ("fuzz_project", "fuzz_group", "fuzz_merge_request"):
            data["fixtures"][name] = data["fixtures"][name][:number]
        (tmp_path / "target.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")

    return write


def rows_of(folder: Path) -> dict[str, Any]:
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return {row["id"]: row["verdict"] for row in report["requirements"]}


def selected(*areas: str) -> list[str]:
    return [part for area in areas for part in ("--area", area)]


def test_side_by_side_they_come_to_the_same_and_no_two_have_the_same_thing(
    conformance: Callable[..., Any], watched: Watched, profile_with: Callable[[int], None], tmp_path: Path
) -> None:
    found, before = {}, watched.left_behind()
    for number in (1, SETS):
        watched.touched.clear()
        profile_with(number)
        out = f"with-{number}"
        outcome = conformance("run", "--target", "target.yaml", "--out", out, *selected(*AREAS), *TIER, *DRAWN)
        assert outcome.code == ExitCode.INCOMPLETE, outcome.text
        found[number] = rows_of(tmp_path / out)
        for name, spans in watched.spans.items():
            overlap = [pair for pair in pairwise(spans) if pair[0][1] >= pair[1][0]]
            assert not overlap, f"{name} was had by two tests at once"
    assert found[1] == found[SETS]
    assert "passed" in found[1].values()
    assert {f"project {number}" for number in range(SETS)} <= watched.spans.keys()
    every = sorted(span for name, spans in watched.spans.items() for span in spans if name.startswith("project"))
    assert any(first[1] > second[0] for first, second in pairwise(every)), "never two at once"
    assert watched.left_behind() == before


def test_what_is_wrong_is_found_side_by_side_too(
    conformance: Callable[..., Any], watched: Watched, profile_with: Callable[[int], None], tmp_path: Path
) -> None:
    def without_name(route: Route, _: Request, response: Response) -> Response:
        if route.path.endswith("/approval_rules/:approval_rule_id") and isinstance(response.content, dict):
            response.content.pop("name", None)
        return response

    watched.service.transformers.append(without_name)
    failed = []
    for number in (1, SETS):
        profile_with(number)
        outcome = conformance("run", "--target", "target.yaml", *selected(AREAS[0]), "--out", "out", *TIER, *DRAWN)
        assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
        failed.append({name for name, verdict in rows_of(tmp_path / "out").items() if verdict == "failed"})
    assert failed[0] == failed[1] != set()


def running(cwd: Path) -> subprocess.Popen[str]:
    options = ("--target", "target.yaml", "--out", "out", "--max-examples", "40", "--corpus", "none")
    return subprocess.Popen(
        [sys.executable, "-m", "conformance", "run", *options, *selected(*AREAS[:2]), *DRAWN],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - as at a terminal
    )


def wait_until_several_are_under_way(watched: Watched, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len(watched.touched) < SETS and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    assert len(watched.touched) >= SETS, "they were never under way"


def test_an_interrupted_run_puts_back_what_is_under_way_in_every_lane(
    watched: Watched, profile_with: Callable[[int], None], tmp_path: Path
) -> None:
    profile_with(SETS)
    before = watched.left_behind()
    process = running(tmp_path)
    wait_until_several_are_under_way(watched, process)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, said
    assert "Traceback" not in said
    assert watched.left_behind() == before
    record = read_record(tmp_path / "out" / "results.jsonl")
    assert record.footer is not None
    assert "interrupted" in str(record.footer.detail)


def test_a_target_that_goes_away_ends_every_lane_with_a_report(
    watched: Watched, profile_with: Callable[[int], None], tmp_path: Path
) -> None:
    profile_with(SETS)
    process = running(tmp_path)
    wait_until_several_are_under_way(watched, process)
    watched.server.stop()
    said, _ = process.communicate(timeout=120)
    assert process.returncode == ExitCode.INCOMPLETE, said
    assert "Traceback" not in said
    assert read_record(tmp_path / "out" / "results.jsonl").footer is not None
    assert (tmp_path / "out" / "index.html").exists()


def test_a_call_that_must_be_alone_has_no_other_beside_it(
    watched: Watched, profile_with: Callable[[int], None]
) -> None:
    profile_with(1)
    answered: list[str] = []
    watched.service.request_log = lambda entry: answered.append(entry.path)
    data = profile_data(watched.service.world, watched.server.base_url, "17.7")
    ended = threading.Event()
    with Client(profile_from(data, "test"), at_once=4) as client:
        actor = client.profile.actors["maintainer"]

        def keep_calling(path: str) -> None:
            while not ended.is_set():
                client.send(actor, "GET", path)

        with ThreadPoolExecutor(4) as threads:
            threads.map(keep_calling, ["/version"] * 4)
            try:
                wait_for(lambda: len(answered) > 20)
                with client.alone():
                    before = len(answered)
                    for _ in range(5):
                        assert client.send(actor, "GET", "/metadata").status == 200
                    alone = answered[before:]
                wait_for(lambda: len(answered) > before + 20)
            finally:
                ended.set()
    assert [path.partition("?")[0] for path in alone] == ["/api/v4/metadata"] * 5


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)
