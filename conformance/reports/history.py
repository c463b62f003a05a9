"""Many runs on one page: verdicts, areas, unstable requirements, duration and requests over time."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import first_problem
from conformance.errors import UsageError
from conformance.reports import small
from conformance.reports.facts import Facts
from conformance.reports.pages import template
from conformance.results.reading import read_record
from conformance.results.text import in_brief, one_line, plural
from conformance.results.verdicts import RunVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RECORD, TOTALS = "results.jsonl", "totals.json"
_SHOWN_RUNS = 60
_SHOWN_UNSTABLE = 20
_WIDTH, _HEIGHT = 720.0, 44.0


@dataclass(frozen=True, slots=True)
class Run:
    """The data of one run that the history needs."""

    folder: Path
    target: str
    started: str
    version: str
    suite: str
    verdict: str
    owed: int
    verified: int
    violated: int
    seconds: float | None
    requests: int | None
    areas: tuple[tuple[str, float | None], ...]
    """By area: the share of its owed requirements that was verified; None if nothing is owed."""
    failed: tuple[str, ...]
    unstable: tuple[str, ...]
    selection: tuple[str, ...] = ()
    """The selection of requirements; empty for a whole run."""

    @classmethod
    def of(cls, folder: Path, totals: Any) -> Run:
        """Read a run from a `totals.json`."""
        total = totals["total"]
        return cls(
            folder=folder,
            **{name: totals[name] for name in ("target", "started", "version", "suite", "verdict")},
            **{name: total[name] for name in ("owed", "verified", "violated")},
            **{name: totals[name] for name in ("seconds", "requests")},
            failed=tuple(totals["failed"]),
            unstable=tuple(totals["unstable"]),
            selection=tuple(totals.get("selection", ())),
            areas=tuple((name, _share(area["verified"], area["owed"])) for name, area in totals["areas"].items()),
        )

    @property
    def is_whole(self) -> bool:
        """Whether everything that is owed was tested, and not only a selection."""
        return not self.selection and self.verdict != RunVerdict.SELECTION_HOLDS

    @property
    def words(self) -> str:
        """The verdict, marked if it is that of a selection."""
        return self.verdict if self.is_whole or "selection" in self.verdict else f"selection {self.verdict}"

    @property
    def selected(self) -> str:
        """The selection, in one line."""
        return in_brief(self.selection)

    @property
    def share(self) -> float | None:
        """The share of all owed requirements that was verified."""
        return _share(self.verified, self.owed)


def _share(verified: int, owed: int) -> float | None:
    return verified / owed if owed else None


@dataclass(frozen=True, slots=True)
class Plot:
    """A small chart: one line over the runs."""

    name: str
    latest: str
    points: tuple[str, ...]
    """The points of each piece of the line, as in SVG; the line is interrupted where a run has no value."""
    top: str
    """The value at the upper edge."""


@dataclass(frozen=True, slots=True)
class Target:
    """The runs of one target, the oldest first."""

    name: str
    runs: tuple[Run, ...]

    @property
    def latest(self) -> tuple[Run, ...]:
        """The last runs, the newest first."""
        return self.runs[: -_SHOWN_RUNS - 1 : -1]

    @property
    def whole(self) -> tuple[Run, ...]:
        """The whole runs, without selections, the oldest first."""
        return tuple(run for run in self.runs if run.is_whole)

    @property
    def now(self) -> str:
        """The current state: the verdict of the latest whole run and, separately, that of a later selection."""
        last = self.runs[-1]
        of_selection = f"the latest of a selection: {last.words}"
        if not self.whole:
            return f"none of them whole, {of_selection}"
        stands = f"the latest{'' if last.is_whole else ' whole one'} {self.whole[-1].verdict}"
        return stands if last.is_whole else f"{stands} ({of_selection})"

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Verified share in total and by area, duration and number of calls, of the whole runs."""
        runs = self.whole
        areas = tuple(dict.fromkeys(name for run in runs for name, share in run.areas if share is not None))
        by_area = [dict(run.areas) for run in runs]
        return (
            _plot("all", [run.share for run in runs], share=True),
            *(_plot(name, [shares.get(name) for shares in by_area], share=True) for name in areas),
            _plot("seconds", [run.seconds for run in runs]),
            _plot("calls", [run.requests for run in runs]),
        )

    @property
    def unstable(self) -> tuple[tuple[str, int, str], ...]:
        """The most frequently unstable requirements: id, number of runs, and last time."""
        return _most_often(self.runs, "unstable")

    @property
    def failed(self) -> tuple[tuple[str, int, str], ...]:
        """The most frequently failed requirements: id, number of runs, and last time."""
        return _most_often(self.runs, "failed")


@dataclass(frozen=True, slots=True)
class History:
    """All runs below a folder."""

    targets: tuple[Target, ...]
    unreadable: tuple[str, ...]
    """A sentence for each run that could not be read."""

    @property
    def summary(self) -> str:
        """The history in one line."""
        told = [f"{target.name}: {plural(len(target.runs), 'run')}, {target.now}" for target in self.targets]
        return "; ".join([*told, *([f"{len(self.unreadable)} unreadable"] if self.unreadable else [])])


def read_history(folder: Path, last: int) -> History:
    """Read the last runs of each target below a folder; a run that cannot be read is reported and skipped.

    Raise UsageError when there is no folder, or no run that can be read.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder. Name the one that holds the folders of the runs, such as reports/.")
    found: dict[str, list[Run]] = {}
    unreadable = []
    for place in _run_folders(folder):
        try:
            run = _run(place)
        except UsageError as error:
            unreadable.append(one_line(error))
        else:
            found.setdefault(run.target, []).append(run)
    if not found:
        why = f" The first of {len(unreadable)} that could not be read: {unreadable[0]}" if unreadable else ""
        raise UsageError(f"There is no run below {folder} that can be read.{why}")
    targets = (
        Target(name, tuple(sorted(runs, key=lambda run: run.started)[-last:])) for name, runs in sorted(found.items())
    )
    return History(tuple(targets), tuple(unreadable))


def _run_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders of runs; folders inside one, such as hundreds of results of Allure, are not searched."""
    for place, folders, files in os.walk(folder):
        if TOTALS in files or RECORD in files:
            folders.clear()
            yield Path(place)
        # The two runs of a readiness check do not show the target at its own version.
        folders[:] = sorted(name for name in folders if not name.startswith("as-of-"))


def _run(folder: Path) -> Run:
    """Read a run from its totals, or from its record if it has no totals in a known format."""
    file = folder / TOTALS
    try:
        totals = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    except (OSError, ValueError):
        totals = None
    if totals is None or first_problem(totals, "totals.schema.json"):
        totals = json.loads(small.totals(Facts.of(read_record(folder / RECORD))))
    return Run.of(folder, totals)


def _most_often(runs: Sequence[Run], what: str) -> tuple[tuple[str, int, str], ...]:
    counts = Counter(name for run in runs for name in getattr(run, what))
    last = {name: run.started for run in runs for name in getattr(run, what)}
    return tuple((name, number, last[name]) for name, number in counts.most_common(_SHOWN_UNSTABLE))


def _plot(name: str, values: Sequence[float | None], *, share: bool = False) -> Plot:
    known = [value for value in values if value is not None]
    top = 1.0 if share else max(known, default=0) or 1.0
    step = _WIDTH / max(1, len(values) - 1)
    pieces: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{place * step:.1f},{_HEIGHT * (1 - value / top):.1f}")
    latest = values[-1] if values else None
    shown = "-" if latest is None else f"{latest:.1%}" if share else f"{latest:g}"
    # A single point is a line without length, whose round ends are visible.
    lines = tuple(" ".join(piece * 2 if len(piece) == 1 else piece) for piece in pieces if piece)
    return Plot(name, shown, lines, "100%" if share else f"{top:g}")


def as_html(history: History, folder: Path) -> str:
    """Return the history as one HTML page, to be stored in a folder; its links to the reports are relative to that."""
    return template("history.html.j2").render(
        history=history,
        link=lambda run: Path(os.path.relpath(run.folder / "index.html", folder)).as_posix(),
        width=_WIDTH,
        height=_HEIGHT,
    )
