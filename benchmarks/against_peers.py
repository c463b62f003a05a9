"""
The suite beside schemathesis' own runner and a bare httpx loop: the same server, the same document, one sitting.

Prints requests per second and ratios, at no latency and at 50 ms. Nothing is asserted: numbers depend on the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import yaml

from conformance.contract import Contract
from conformance.embedded import profile_data
from conformance.reference import EmbeddedServer, Service, create_service

if TYPE_CHECKING:
    from collections.abc import Callable

VERSION = "17.7"
EXAMPLES = 20
BARE_REQUESTS = 3000


@dataclass(frozen=True)
class Result:
    """What one contender did."""

    name: str
    requests: int
    seconds: float

    @property
    def rate(self) -> float:
        """Requests per second, start-up included."""
        return self.requests / self.seconds


@dataclass
class Counter:
    """Counts what a service answers."""

    answered: int = 0

    def __call__(self, _: object) -> None:
        """Count one answer."""
        self.answered += 1


def measured(name: str, service: Service, act: Callable[[], None]) -> Result:
    """Let a contender act, and count what reaches the service meanwhile."""
    counter = Counter()
    service.request_log = counter
    started = time.perf_counter()
    act()
    seconds = time.perf_counter() - started
    service.request_log = None
    return Result(name, max(counter.answered, 1), seconds)


def command(*arguments: str, cwd: Path) -> Callable[[], None]:
    """Return an act that runs a command; what it says of the service does not matter here."""

    def act() -> None:
        subprocess.run(arguments, cwd=cwd, capture_output=True, check=False, timeout=1800)

    return act


def bare_loop(base_url: str, token: str, path: str, count: int) -> Callable[[], None]:
    """Return an act that reads one path again and again, one call after the other."""

    def act() -> None:
        with httpx.Client(base_url=f"{base_url}/api/v4", headers={"PRIVATE-TOKEN": token}, trust_env=False) as client:
            for _ in range(count):
                client.get(path)

    return act


def sitting(latency_ms: float, folder: Path) -> list[Result]:
    """Measure all contenders against one server each, one after the other."""
    results = []
    service = create_service(version=VERSION)
    with EmbeddedServer(service, latency_ms=latency_ms) as server:
        profile = profile_data(service.world, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        (folder / "openapi.json").write_text(json.dumps(Contract.load().as_of(VERSION)), encoding="utf-8")
        token = service.world.actors["maintainer"].token
        path = f"/projects/{service.world.one('project').id}/job_token_scope"
        count = BARE_REQUESTS if not latency_ms else 100
        results.append(measured("bare httpx loop", service, bare_loop(server.base_url, token, path, count)))
        suite = [sys.executable, "-m", "conformance", "run", "--target", "target.yaml", "--seed", "1"]
        drawn = ["--max-examples", str(EXAMPLES), "--", "-k", "test_coverage or test_fuzz"]
        for name in ("contract tier, cases drawn", "contract tier, cases replayed"):
            service.reset()
            results.append(measured(name, service, command(*suite, "--out", "tier", *drawn, cwd=folder)))
        service.reset()
        results.append(measured("whole run", service, command(*suite, "--out", "whole", cwd=folder)))
        peer = [str(Path(sys.executable).with_name("schemathesis")), "run", "openapi.json"]
        peer += ["--url", f"{server.base_url}/api/v4", "-H", f"PRIVATE-TOKEN: {token}", "-n", str(EXAMPLES)]
        peer += ["--seed", "1", "--continue-on-failure"]
        service.reset()
        workers = "8" if latency_ms else "1"
        name = f"schemathesis run --workers {workers}"
        results.append(measured(name, service, command(*peer, "--workers", workers, cwd=folder)))
    return results


def show(latency_ms: float, results: list[Result]) -> None:
    """Print a table with ratios to the bare loop and to the peer."""
    bare, peer = results[0], results[-1]
    print(f"\n{latency_ms:g} ms latency")
    print(f"{'':<32}{'requests':>9}{'seconds':>9}{'req/s':>9}{'/ bare':>8}{'/ peer':>8}")
    for result in results:
        ratios = f"{result.rate / bare.rate:>8.2f}{result.rate / peer.rate:>8.1f}"
        print(f"{result.name:<32}{result.requests:>9}{result.seconds:>9.1f}{result.rate:>9.0f}{ratios}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for latency_ms in (0.0, 50.0):
            show(latency_ms, sitting(latency_ms, Path(folder)))


if __name__ == "__main__":
    main()
