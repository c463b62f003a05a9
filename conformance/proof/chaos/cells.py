"""Sessions of the whole suite through a disturbed network, and their results."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import quote

import httpx
import pytest
import yaml

from conformance.contract import Contract, Version
from conformance.errors import ContractError
from conformance.proof.chaos.kinds import OF_A_TIME, Disturbed
from conformance.proof.chaos.proxy import Outages, Proxy
from conformance.reference import Choices, EmbeddedServer
from conformance.results.reading import read_record
from conformance.results.verdicts import Verdict, add_up
from conformance.runner.location import suite_arguments
from conformance.target.embedded import DEFAULT_VERSION, prepared_service, profile_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from conformance.reference import Service
    from conformance.results.verdicts import RequirementVerdict

_PAGE = 100
_NUMBERS = frozenset({"id", "merge_request_iid"})


@dataclass(frozen=True, slots=True)
class Subject:
    """The service behind the network."""

    name: str = "reference"
    choices: Choices = field(default_factory=Choices)
    limits: Mapping[str, float] = field(default_factory=dict)
    """Its limits in the profile: how long the suite waits."""
    alter: tuple[Callable[[Service], None], ...] = ()
    """What is put on the service: the alterations of a variant, or a fault."""
    version: str = DEFAULT_VERSION
    features: Mapping[str, bool] = field(default_factory=dict)
    """Where it declares other features than the reference does by itself."""

    def made(self) -> Service:
        """Return the service in its initial state."""
        service = prepared_service(version=self.version, choices=self.choices)
        for alter in self.alter:
            alter(service)
        return service


@dataclass(frozen=True, slots=True)
class Cell:
    """One session of the suite, through one kind of network at one rate."""

    kind: str
    rate: float
    """The share of calls that is disturbed; 0 where disturbances come at certain times."""
    subject: Subject = field(default_factory=Subject)
    options: tuple[str, ...] = ()
    """For the suite, such as `--area`."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of one cell."""

    kind: str
    rate: float
    subject: str
    options: tuple[str, ...]
    seed: int
    verdict: str
    exit_code: int
    failures: tuple[str, ...]
    """The requirements that failed; on a healthy service each is a false alarm."""
    unstable: tuple[str, ...]
    verified: int
    owed: int
    leftovers: tuple[str, ...]
    """What reads differently after the run."""
    disturbed: Mapping[str, int]
    """How many calls passed, and how many were disturbed, by the kind of disturbance."""
    network: Mapping[str, Any]
    """What the run says of the network."""
    requests: int
    seconds: float
    open: tuple[str, ...]
    """What was not verified, and why."""
    explanation: str

    @property
    def share(self) -> float:
        """The share of the requirements that must be met that was verified."""
        return round(self.verified / self.owed, 4) if self.owed else 0.0


def run_cell(cell: Cell) -> CellResult:
    """Run the suite through a network; raise ContractError if it cannot be run."""
    output = io.StringIO()
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"CONFORMANCE_STATE": folder}):
        out = Path(folder)
        given = ("-q", f"--target={out / 'target.yaml'}", f"--seed={cell.seed}", f"--out={out}", *cell.options)
        with _served(cell, out / "target.yaml") as behind:
            started = time.perf_counter()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                code = pytest.main(suite_arguments("-q", "--corpus=none", *given))
            seconds = time.perf_counter() - started
        if not (out / "results.jsonl").is_file():
            raise ContractError(f"The suite cannot be run ({cell.kind}):\n{output.getvalue().strip()[-2000:]}")
        record = read_record(out / "results.jsonl")
    result = add_up(record)
    owed = [row for row in result.rows if row.is_owed]
    return CellResult(
        kind=cell.kind,
        rate=cell.rate,
        subject=cell.subject.name,
        options=cell.options,
        seed=cell.seed,
        verdict=str(result.verdict),
        exit_code=int(code),
        failures=tuple(_told(row) for row in result.rows_with(Verdict.FAILED)),
        unstable=tuple(_told(row) for row in result.rows_with(Verdict.UNSTABLE)),
        verified=sum(row.verdict is Verdict.PASSED for row in owed),
        owed=len(owed),
        leftovers=behind.leftovers,
        disturbed=dict(behind.disturbed),
        network=asdict(record.footer.network) if record.footer and record.footer.network else {},
        requests=record.footer.requests if record.footer else 0,
        seconds=round(seconds, 1),
        open=tuple(f"{row.requirement.id}: {row.reason}: {row.detail}" for row in owed if row.is_gap),
        explanation=result.explanation,
    )


def _told(row: RequirementVerdict) -> str:
    check = row.failures[0]
    shown = "; ".join(f"{one.status} {one.request} {one.request_body or ''}" for one in check.evidence)
    return f"{row.requirement.id} in {check.test}: expected {check.expected}; got {check.actual}: {shown}"


@dataclass
class _Behind:
    """What is known about a service after the run."""

    leftovers: tuple[str, ...] = ()
    disturbed: Mapping[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def _served(cell: Cell, file: Path) -> Iterator[_Behind]:
    """Serve a service behind a network and write its profile; at the end, find out which reads differ."""
    subject, behind = cell.subject, _Behind()
    service = subject.made()
    with EmbeddedServer(service) as server:
        before = readings(service, server.base_url)
        with Proxy(server.port, Disturbed(cell.kind, cell.rate), cell.seed) as proxy, _outages(cell, proxy, server):
            data = profile_data(service.world, proxy.base_url, subject.version)
            data["limits"] = {**data["limits"], **subject.limits}
            data["features"] = {**data["features"], **subject.features}
            file.write_text(yaml.safe_dump(data), encoding="utf-8")
            yield behind
        after = readings(server.service, server.base_url)
    behind.disturbed = proxy.done
    behind.leftovers = tuple(sorted(path for path in before if before[path] != after[path]))


def _outages(cell: Cell, proxy: Proxy, server: EmbeddedServer) -> contextlib.AbstractContextManager[object]:
    span = OF_A_TIME.get(cell.kind)
    if span is None or span.says is not None:
        return contextlib.nullcontext()

    def come_back() -> None:
        if span.forgets:
            server.serve(cell.subject.made())
            # Rules of the service get their ids when they are first read, so read them in the same order again.
            readings(server.service, server.base_url)

    return Outages(proxy, span.every, span.lasting, come_back)


def readings(service: Service, base_url: str) -> dict[str, Any]:
    """Return by path what an administrator reads of every project, group and merge request in the service's world."""
    data = profile_data(service.world, base_url, DEFAULT_VERSION)
    token = data["actors"]["admin"]["token"]
    with httpx.Client(base_url=f"{base_url}/api/v4", headers={"PRIVATE-TOKEN": token}, trust_env=False) as client:
        return {path: _read(client, path) for path in sorted(_paths(data["fixtures"]))}


def _read(client: httpx.Client, path: str) -> Any:
    """Return status and body, with lists sorted, because the order of entries is open. A fault may break answers."""
    found: list[Any] = []
    for page in range(1, _PAGE):
        try:
            answer = client.get(path, params={"page": page, "per_page": _PAGE})
        except httpx.HTTPError as error:
            return 0, type(error).__name__
        try:
            body = answer.json()
        except ValueError:
            body = answer.text
        if not isinstance(body, list):
            return answer.status_code, body
        found += body
        if len(body) < _PAGE:
            break
    return answer.status_code, sorted(json.dumps(entry, sort_keys=True) for entry in found)


def _paths(fixtures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of reads that need only the ids of fixtures."""
    contract = Contract.load()
    reads = [
        operation.path
        for operation in contract.operations(Version.parse(DEFAULT_VERSION))
        if operation.method == "GET"
        and {part.name for part in operation.parameters if part.place == "path"} <= _NUMBERS
    ]
    for level, number, iid in set(_things(fixtures)):
        for path in reads:
            if path.startswith(f"/{level}/") and ("{merge_request_iid}" in path) == (iid is not None):
                yield path.replace("{id}", quote(str(number), safe="")).replace("{merge_request_iid}", str(iid))


def _things(fixtures: Mapping[str, Any]) -> Iterator[tuple[str, int, int | None]]:
    around = {"fuzz_merge_request": "fuzz_project"}
    for name, value in fixtures.items():
        for entry in value if isinstance(value, list) else [value]:
            if name.endswith("merge_request") and "iid" in entry:
                number = entry.get("project_id") or fixtures[around.get(name, "project")]["id"]
                yield "projects", number, entry["iid"]
            for level in ("project", "group"):
                if name.rstrip("s").endswith(level) and "id" in entry:
                    yield f"{level}s", entry["id"], None
