"""
How long a whole run takes over the latency of the target and the number of workers, beside schemathesis' own runner.

Writes `reports/published/benchmarks.json` and the plot `docs/benchmarks.svg`. What would take longer than a few minutes
is bounded to a number of requests; its point says so, and its time is what the whole would take at that pace. Other
points: `python benchmarks/latency_curve.py 0:1,2 50:16`; with `--alone` the peer is left out, with `--add` the points
take the place of the same ones of the last time and the others stay. Each point says how busy the machine was before
it. Nothing is asserted: numbers depend on the machine.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from benchmarks.against_peers import EXAMPLES, VERSION, measured, suite
from conformance.contract import Contract
from conformance.contract.folders import HOME
from conformance.reference import EmbeddedServer
from conformance.target.embedded import prepared_service, profile_of

if TYPE_CHECKING:
    from benchmarks.against_peers import Result

LATENCIES, WORKERS = (0, 20, 50, 100, 500), (1, 4, 16)
#: About how many requests a whole run sends, and how long a point may take, in seconds.
_WHOLE, _BOUND = 12_500, 120
#: The goal of a point: so many times what its requests wait, shared by the workers, and so many seconds beside that.
_GOAL_FACTOR, _GOAL_SECONDS = 1.3, 15
_PUBLISHED = HOME / "reports" / "published" / "benchmarks.json"
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
    load: float
    """How many processes wanted to run on the machine in the minute before, on average."""
    bounded_to: int | None = None
    """How many requests it was bounded to."""
    goal: float | None = None
    """Within how many seconds a run of the suite is to end."""
    verdicts: str | None = None
    """A digest of the verdict of every requirement: the same for each number of workers."""
    left_told: float | None = None
    """How far the time left that was told, from the first minute on, was off at most, as a share of the whole."""


def measure(latency_ms: int, workers: int, folder: Path, *, alone: bool) -> list[Point]:
    """Measure a whole run of the suite, and unless it is to be alone one of the peer, with so many workers."""
    folder.mkdir()
    service = prepared_service(version=VERSION, worlds=workers)
    load = os.getloadavg()[0]
    with EmbeddedServer(service, latency_ms=latency_ms) as server:
        profile = profile_of(service, server.base_url, VERSION)
        (folder / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        (folder / "openapi.json").write_text(json.dumps(Contract.load().as_of(VERSION)), encoding="utf-8")
        expected = _WHOLE * latency_ms / 1000 / workers
        bound = round(_WHOLE * _BOUND / expected) if expected > _BOUND else None
        bounded = ["--max-requests", str(bound)] if bound else []
        options = ["--workers", str(workers), "--corpus", "none", "--out", "whole", *bounded]
        ours = measured("suite", service, suite(*options), folder, told=folder / "told.txt")
        points = [_point(ours, (latency_ms, workers), load, folder, bound)]
        if not alone:
            peer = [str(Path(sys.executable).with_name("schemathesis")), "run", "openapi.json"]
            peer += ["--workers", str(workers), "--url", f"{server.base_url}/api/v4", "-n", str(EXAMPLES)]
            peer += ["--seed", "1", "--continue-on-failure"]
            peer += ["-H", f"PRIVATE-TOKEN: {service.world.actors['maintainer'].token}"]
            theirs = measured("schemathesis", service, peer, folder)
            points.append(_point(theirs, (latency_ms, workers), load, folder))
    return points


def _point(result: Result, cell: tuple[int, int], load: float, folder: Path, bound: int | None = None) -> Point:
    latency_ms, workers = cell
    seconds, requests = result.ended - result.begun, len(result.times)
    point = Point(result.name, latency_ms, workers, requests, seconds, round(result.memory_mb), load, bound)
    if result.name != "suite":
        return point
    whole = _WHOLE if bound else requests
    goal = _GOAL_FACTOR * whole * latency_ms / 1000 / workers + _GOAL_SECONDS
    if bound and requests:
        seconds = result.first + (seconds - result.first) * _WHOLE / requests
        return replace(point, seconds=seconds, goal=goal)
    told = _off(folder / "told.txt", seconds)
    return replace(point, goal=goal, verdicts=_verdicts(folder / "whole" / "report.json"), left_told=told)


def _verdicts(report: Path) -> str | None:
    """Return a digest of the verdict of every requirement; None where there is no report."""
    with suppress(OSError, ValueError, KeyError):
        found = json.loads(report.read_text(encoding="utf-8"))["requirements"]
        pairs = sorted((entry["id"], entry["verdict"]) for entry in found)
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()[:16]
    return None


def _off(told: Path, whole: float) -> float | None:
    """Return how far the time left that was told after the first minute was off; None where none was told."""
    pairs = re.findall(r"(\d+):(\d\d), about (\d+):(\d\d) left", told.read_text(encoding="utf-8"))
    numbers = [[int(part) for part in pair] for pair in pairs]
    ends = [60 * a + b + 60 * c + d for a, b, c, d in numbers if a >= 1]
    return max((abs(end - whole) / whole for end in ends), default=None)


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


def _asked(words: list[str]) -> list[tuple[int, int]]:
    """Return latencies and workers of words such as `50:4,16`."""
    found: list[tuple[int, int]] = []
    for word in words:
        latency, _, numbers = word.partition(":")
        found += [(int(latency), int(number)) for number in numbers.split(",")]
    return found


def main() -> None:
    """Measure, print and write."""
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    cells = _asked(words) or [(latency, number) for latency in LATENCIES for number in WORKERS]
    points: list[Point] = []
    if "--add" in sys.argv and _PUBLISHED.exists():
        points = [Point(**entry) for entry in json.loads(_PUBLISHED.read_text(encoding="utf-8"))["points"]]
        points = [point for point in points if (point.latency_ms, point.workers) not in cells]
    with tempfile.TemporaryDirectory() as name:
        for latency_ms, number in cells:
            found = measure(latency_ms, number, Path(name) / f"{latency_ms}-{number}", alone="--alone" in sys.argv)
            points += found
            for point in found:
                print(json.dumps(asdict(point)), flush=True)
    points.sort(key=lambda point: (point.latency_ms, point.workers, point.what))
    measured_cells = {(point.latency_ms, point.workers) for point in points if point.what == "suite"}
    data = {
        "version": VERSION,
        "cores": os.cpu_count(),
        "points": [asdict(point) for point in points],
        "left_out": [
            {"latency_ms": latency, "workers": number}
            for latency in LATENCIES
            for number in WORKERS
            if (latency, number) not in measured_cells
        ],
    }
    _PUBLISHED.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (HOME / "docs" / "benchmarks.svg").write_text(plot(points), encoding="utf-8")


if __name__ == "__main__":
    main()
