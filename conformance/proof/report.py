"""The proof as files: `proof.json` for programs, `proof.html` for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from conformance import __version__
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.proof.coverage import Coverage

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Proof of the conformance suite</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-bottom: 1px solid #8884; padding: .35rem .5rem; text-align: left; vertical-align: top; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
.bad {{ color: #b00020; font-weight: 600; }} .good {{ color: #0a7a3c; }}
small {{ color: #777; }} :root {{ color-scheme: light dark; }}
</style>
<h1>Proof of the conformance suite</h1>
<p class="{verdict}">{says}</p>
<p>Reference {version}, suite {suite}, contract <code>{contract}</code>, {ended}.</p>
<ul>{summary}</ul>
{gaps}
<h2>Faults</h2>
<table><thead><tr><th>Fault<th>Violates<th>Killed<th>Because<th>Collateral</thead><tbody>
{rows}
</tbody></table></html>
"""


@dataclass(frozen=True)
class Proof:
    """The result of trying faults."""

    contract: str
    """Digest of the contract."""
    version: str | None
    """The version that was asked for; None if each was tried at the reference's own or at the nearest that owes it."""
    rows: Sequence[Mapping[str, Any]]
    coverage: Coverage | None
    """Which requirements have a fault; None where single faults were selected."""
    unhealthy: tuple[str, ...]
    """Requirements that fail without any fault."""
    seconds: float

    @property
    def survivors(self) -> list[Mapping[str, Any]]:
        """The faults that no check of their requirement has found."""
        return [row for row in self.rows if not row["killed"]]

    @property
    def holds(self) -> bool:
        """Whether every fault was killed, and every judged requirement has a fault or an excuse."""
        return not (self.survivors or self.unhealthy or (self.coverage and self.coverage.without))

    def summary(self) -> list[str]:
        """Summarize the proof in a few lines."""
        total = len(self.rows)
        lines = [
            f"{total - len(self.survivors)} of {total} faults killed in {self.seconds:.0f} s (suite {__version__})"
        ]
        reach = self.coverage
        if reach is not None:
            lines.append(
                f"{reach.reached} requirements have a fault, {len(reach.without)} have none, "
                f"{len(reach.excused)} are excused"
            )
            lines.append(
                f"{len(reach.observed)} notes record what a target chose and assert nothing, so that no fault is owed"
            )
        return lines


def write_proof(folder: Path, proof: Proof) -> None:
    """Write both files; raise UsageError if the folder cannot be written."""
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "proof.json").write_text(json.dumps(_data(proof, ended), indent=1) + "\n", encoding="utf-8")
        (folder / "proof.html").write_text(_page(proof, ended), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write the proof to {folder}: {error.strerror or error}.") from error


def _data(proof: Proof, ended: str) -> dict[str, Any]:
    reach = proof.coverage
    return {
        "suite": __version__,
        "contract": proof.contract,
        "version": proof.version,
        "ended": ended,
        "seconds": round(proof.seconds, 1),
        "holds": proof.holds,
        "faults": len(proof.rows),
        "killed": len(proof.rows) - len(proof.survivors),
        "unhealthy": list(proof.unhealthy),
        "without_fault": list(reach.without) if reach else None,
        "excused": dict(reach.excused) if reach else None,
        "observed": list(reach.observed) if reach else None,
        "rows": [dict(row) for row in proof.rows],
    }


def _page(proof: Proof, ended: str) -> str:
    reach = proof.coverage
    gaps = _list("Survived", (row["fault"] for row in proof.survivors), bad=True)
    gaps += _list("Fails without any fault", proof.unhealthy, bad=True)
    if reach is not None:
        gaps += _list("Verified by tests, and without a fault", reach.without, bad=True)
        gaps += _list("Excused", (f"{name}: {reason}" for name, reason in reach.excused.items()))
    return _PAGE.format(
        verdict="good" if proof.holds else "bad",
        says="Every check was seen failing." if proof.holds else "Not every check was seen failing.",
        version=escape(proof.version or "17.7, and the nearest version for what is not owed there"),
        suite=__version__,
        contract=escape(proof.contract[:12]),
        ended=ended,
        summary="".join(f"<li>{escape(line)}" for line in proof.summary()),
        gaps=gaps,
        rows="\n".join(_row(row) for row in sorted(proof.rows, key=lambda row: bool(row["killed"]))),
    )


def _list(heading: str, entries: Iterable[str], *, bad: bool = False) -> str:
    lines = "".join(f"<li>{escape(entry)}" for entry in entries)
    kind = ' class="bad"' if bad else ""
    return f"<h2{kind}>{escape(heading)}</h2><ul>{lines}</ul>\n" if lines else ""


def _row(row: Mapping[str, Any]) -> str:
    verdict, kind = ("killed", "good") if row["killed"] else ("survived", "bad")
    because = row["reason"] or row["detail"] or ""
    collateral = "<br>".join(escape(name) for name in row["collateral"])
    return (
        f"<tr><td>{escape(row['fault'])}<br><small>{escape(row['says'])} At {escape(row['version'])}.</small>"
        f"<td><code>{escape(row['requirement'])}</code>"
        f'<td class="{kind}">{verdict}<br><small>{escape(row["by"] or "")}</small>'
        f"<td>{escape(because)}<td><small>{collateral}</small>"
    )
