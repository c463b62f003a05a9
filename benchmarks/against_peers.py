"""
The suite beside schemathesis' own runner and a bare httpx loop: the same server, the same document, one sitting.

Every contender is a process of its own. Rates are those between its first request and its last; how long it takes to
the first one, and all in all, stands beside them. Requests are compared with the bare loop's, and cases with the
peer's: of the suite's requests some arrange, read back and undo, while all of the peer's are cases. Nothing is
asserted: numbers depend on the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from conformance.contract import Contract
from conformance.reference import EmbeddedServer, Service
from conformance.target.embedded import prepared_service, profile_data

VERSION = "17.7"
EXAMPLES = 20
BARE_REQUESTS = 3000
TIER = "tier"
AT_ONCE = 64
_LONGEST = 1800
_BETWEEN_LOOKS = 0.05  # seconds

_BARE_LOOP = """
import sys, httpx
base_url, token, path, count = sys.argv[1:]
with httpx.Client(base_url=base_url, headers={"PRIVATE-TOKEN": token}, trust_env=False) as client:
    for _ in range(int(count)):
        client.get(path)
"""


@dataclass
class Result:
    """What one contender did."""

    name: str
    begun: float
    times: list[float] = field(default_factory=list)
    """When each request was answered."""
    ended: float = 0.0
    memory_mb: float = 0.0
    """The most that it and the processes it started had at a time."""
    arranging: int = 0
    """How many of the requests are no cases."""

    @property
    def span(self) -> float:
        """Seconds between the first request and the last."""
        return self.times[-1] - self.times[0] if len(self.times) > 1 else float("nan")

    @property
    def rate(self) -> float:
        """Requests per second between the first and the last."""
        return len(self.times) / self.span

    @property
    def cases(self) -> int:
        """How many of the requests are cases of a schema."""
        return len(self.times) - self.arranging

    @property
    def first(self) -> float:
        """Seconds until the first request."""
        return self.times[0] - self.begun if self.times else float("nan")


def measured(name: str, service: Service, command: list[str], cwd: Path, told: Path | None = None) -> Result:
    """
    Run a contender, and note meanwhile what reaches the service and how much memory it takes.

    What it prints goes to the file `told`, or nowhere.
    """
    service.reset()
    result = Result(name, time.perf_counter())
    service.request_log = lambda _: result.times.append(time.perf_counter())
    with (
        (told or Path(os.devnull)).open("w", encoding="utf-8") as output,
        subprocess.Popen(command, cwd=cwd, stdout=output, stderr=subprocess.DEVNULL) as process,
    ):
        ended = threading.Event()
        threading.Thread(target=_look, args=(process.pid, result, ended), daemon=True).start()
        process.wait(_LONGEST)
        ended.set()
    result.ended = time.perf_counter()
    service.request_log = None
    report = cwd / TIER / "report.json"
    if TIER in command and report.exists():
        drawn = json.loads(report.read_text(encoding="utf-8"))["run"]["drawn"]
        result.arranging = len(result.times) - sum(drawn[sort] for sort in ("coverage", "fresh", "replayed"))
    return result


def _look(pid: int, result: Result, ended: threading.Event) -> None:
    """Note the largest sum of what a process and those it started have in memory; Linux shows it."""
    while not ended.wait(_BETWEEN_LOOKS):
        with suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
            result.memory_mb = max(result.memory_mb, sum(map(_memory_mb, [str(pid), *children])))


def _memory_mb(pid: str) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def suite(*options: str) -> list[str]:
    """Return the command of a run on the target in the folder."""
    return [sys.executable, "-m", "conformance", "run", "--target", "target.yaml", "--seed", "1", *options]


def tier(examples: int, *options: str) -> list[str]:
    """Return the command of a run of nothing but drawn calls."""
    drawn = ["--max-examples", str(examples), *options, "--out", TIER, "--", "-k", "test_fuzz"]
    return suite(*drawn)


def sitting(latency_ms: float, folder: Path) -> list[Result]:
    """Measure all contenders against one server each, one after the other."""
    folder.mkdir()
    service = prepared_service(version=VERSION)
    at_once = ("--concurrency", str(AT_ONCE))
    workers = "8" if latency_ms else "1"
    with EmbeddedServer(service, latency_ms=latency_ms) as server:
        profile = profile_data(service.world, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        (folder / "openapi.json").write_text(json.dumps(Contract.load().as_of(VERSION)), encoding="utf-8")
        api, token = f"{server.base_url}/api/v4", service.world.actors["maintainer"].token
        path = f"/projects/{service.world.one('project').id}/job_token_scope"
        bare = [sys.executable, "-c", _BARE_LOOP, api, token, path, str(100 if latency_ms else BARE_REQUESTS)]
        peer = [str(Path(sys.executable).with_name("schemathesis")), "run", "openapi.json", "--url", api]
        peer += ["-H", f"PRIVATE-TOKEN: {token}", "-n", str(EXAMPLES), "--seed", "1", "--continue-on-failure"]
        contenders = {
            "bare httpx loop": bare,
            "contract tier, cases drawn": tier(EXAMPLES, *at_once),
            "contract tier, cases replayed": tier(EXAMPLES, *at_once),
            "whole run": suite("--out", "whole", "--corpus", "none"),
            f"schemathesis run --workers {workers}": [*peer, "--workers", workers],
        }
        if latency_ms:  # of a whole run most is stories, whose calls wait for one another
            del contenders["whole run"]
        return [measured(name, service, command, folder) for name, command in contenders.items()]


def growth(folder: Path) -> list[Result]:
    """Measure how the cost grows with the examples, and with the operations."""
    folder.mkdir()
    service = prepared_service(version=VERSION)
    with EmbeddedServer(service) as server:
        profile = profile_data(service.world, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        kept_nowhere = ("--corpus", "none")
        few = ("--area", "integrations", "--area", "job-token-scope")
        return [
            *(
                measured(f"{number} examples", service, tier(number, *kept_nowhere), folder)
                for number in (10, 20, 40, 80)
            ),
            measured("20 examples, two areas", service, tier(20, *kept_nowhere, *few), folder),
        ]


def show(title: str, results: list[Result], *, ratios: bool = True) -> None:
    """Print a table, with ratios to the bare loop and to the peer."""
    print(f"\n{title}")
    compared = f"{'/ bare':>8}{'/ peer':>8}" if ratios else f"{'ms/case':>8}"
    print(
        f"{'':<32}{'requests':>9}{'cases':>7}{'start s':>9}{'span s':>8}{'all s':>7}"
        f"{'req/s':>7}{'cases/s':>9}{compared}{'MB':>6}"
    )
    bare, peer = results[0], results[-1]
    for result in results:
        pace = result.cases / result.span
        compared = f"{1000 / pace:>8.2f}"
        if ratios:
            compared = f"{result.rate / bare.rate:>8.2f}{pace / (peer.cases / peer.span):>8.1f}"
        print(
            f"{result.name:<32}{len(result.times):>9}{result.cases:>7}{result.first:>9.2f}{result.span:>8.2f}"
            f"{result.ended - result.begun:>7.2f}{result.rate:>7.0f}{pace:>9.0f}{compared}{result.memory_mb:>6.0f}"
        )


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        for latency_ms in (0.0, 50.0):
            show(f"{latency_ms:g} ms latency", sitting(latency_ms, Path(name) / f"{latency_ms:g}"))
        show("growth of the contract tier", growth(Path(name) / "growth"), ratios=False)


if __name__ == "__main__":
    main()
