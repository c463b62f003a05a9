"""
How long a whole run takes over the latency of the target and the number of workers, beside schemathesis' own runner.

Writes `reports/published/benchmarks.json` and the plot `docs/benchmarks.svg`. What would take longer than a few minutes
is bounded to a number of requests; its point says so, and its time is what the whole would take at that pace. Other
points: `python benchmarks/latency_curve.py 0,50 1,4`. Nothing is asserted: numbers depend on the machine.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from benchmarks.against_peers import EXAMPLES, VERSION, measured, suite
from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service, profile_of

LATENCIES, WORKERS = (0, 20, 50, 100, 500), (1, 4, 16)
#: About how many requests a whole run sends, and how long a point may take, in seconds.
_WHOLE, _BOUND = 20_000, 180
_COLOURS = {1: "#b3261e", 4: "#9a6700", 16: "#1a7f37"}
_WIDTH, _HEIGHT, _EDGE = 640, 360, 60


@dataclass(frozen=True)
class Point:
    """What one run took."""

    what: str
    latency_ms: int
    workers: int
    requests: int
    seconds: float
    """Of the whole run; where it was bounded, of what the whole would take at its pace."""
    memory_mb: int
    """The most that all of its processes had at a time."""
    bounded_to: int | None = None
    """How many requests it was bounded to."""


def measure(latency_ms: int, workers: int, folder: Path) -> tuple[Point, Point]:
    """Measure a whole run of the suite, and one of the peer, with so many workers."""
    folder.mkdir()
    service = prepared_service(version=VERSION, worlds=workers)
    with EmbeddedServer(service, latency_ms=latency_ms) as server:
        profile = profile_of(service, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        (folder / "openapi.json").write_text(json.dumps(Contract.load().as_of(VERSION)), encoding="utf-8")
        expected = _WHOLE * latency_ms / 1000 / workers
        bound = round(_WHOLE * _BOUND / expected) if expected > _BOUND else None
        bounded = ["--max-requests", str(bound)] if bound else []
        options = ["--workers", str(workers), "--corpus", "none", "--out", "whole", *bounded]
        ours = measured("suite", service, suite(*options), folder)
        peer = [str(Path(sys.executable).with_name("schemathesis")), "run", "openapi.json", "--workers", str(workers)]
        peer += ["--url", f"{server.base_url}/api/v4", "-n", str(EXAMPLES), "--seed", "1", "--continue-on-failure"]
        peer += ["-H", f"PRIVATE-TOKEN: {service.world.actors['maintainer'].token}"]
        theirs = measured("schemathesis", service, peer, folder)
    points = [
        Point(result.name, latency_ms, workers, len(result.times), result.ended - result.begun, round(result.memory_mb))
        for result in (ours, theirs)
    ]
    if bound and points[0].requests:
        whole = ours.first + (points[0].seconds - ours.first) * _WHOLE / points[0].requests
        points[0] = Point("suite", latency_ms, workers, points[0].requests, whole, points[0].memory_mb, bound)
    return points[0], points[1]


def plot(points: list[Point]) -> str:
    """Return the times of the suite as SVG: seconds over latency, one line for each number of workers."""
    ours = [point for point in points if point.what == "suite"]
    latencies = sorted({point.latency_ms for point in ours})
    top = math.ceil(math.log10(max(point.seconds for point in ours)))

    def place(point: Point) -> tuple[float, float]:
        x = _EDGE + (_WIDTH - 2 * _EDGE) * latencies.index(point.latency_ms) / max(len(latencies) - 1, 1)
        return x, _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * math.log10(max(point.seconds, 1)) / top

    def text(x: float, y: float, words: str, more: str = "") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" font-size="12" font-family="sans-serif" {more}>{words}</text>'

    lines = [text(_EDGE, 24, "A whole run against the reference: seconds over latency, by workers")]
    for exponent in range(top + 1):
        y = _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * exponent / top
        lines.append(f'<path d="M{_EDGE} {y:.0f}H{_WIDTH - _EDGE}" stroke="#d0d7de"/>')
        lines.append(text(8, y + 4, f"{10**exponent} s"))
    for workers in sorted({point.workers for point in ours}):
        line = [point for point in ours if point.workers == workers]
        colour = _COLOURS.get(workers, "#57606a")
        way = " ".join(f"{x:.0f},{y:.0f}" for x, y in map(place, line))
        lines.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in line:
            x, y = place(point)
            star = "*" if point.bounded_to else ""
            lines.append(text(x + 4, y - 6, f"{point.seconds:.0f}{star}", f'fill="{colour}"'))
            lines.append(text(x - 14, _HEIGHT - _EDGE + 20, f"{point.latency_ms} ms"))
        lines.append(text(_WIDTH - _EDGE + 4, place(line[-1])[1] + 12, f"{workers} workers", f'fill="{colour}"'))
    lines.append(text(_EDGE, _HEIGHT - 12, "* bounded to a number of requests, and what the whole takes at that pace"))
    inside = "\n".join(dict.fromkeys(lines))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 30} {_HEIGHT}" role="img">'
    return f'{head}\n<rect width="100%" height="100%" fill="white"/>\n{inside}\n</svg>\n'


def main() -> None:
    """Measure, print and write."""
    given = [tuple(map(int, words.split(","))) for words in sys.argv[1:3]]
    latencies = given[0] if given else LATENCIES
    workers = given[1] if len(given) > 1 else WORKERS
    points: list[Point] = []
    with tempfile.TemporaryDirectory() as name:
        for latency_ms in latencies:
            for number in workers:
                found = measure(latency_ms, number, Path(name) / f"{latency_ms}-{number}")
                points += found
                for point in found:
                    print(json.dumps(asdict(point)), flush=True)
    if given:
        return
    data = {"version": VERSION, "cores": os.cpu_count(), "points": [asdict(point) for point in points]}
    published = HOME / "reports" / "published" / "benchmarks.json"
    published.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (HOME / "docs" / "benchmarks.svg").write_text(plot(points), encoding="utf-8")


if __name__ == "__main__":
    main()
