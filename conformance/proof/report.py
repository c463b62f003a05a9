"""The proof as files: `proof.json` for programs, `proof.html` for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from conformance import __version__
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.contract import Contract

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Proof of the conformance suite</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-bottom: 1px solid #8884; padding: .35rem .5rem; text-align: left; vertical-align: top; }}
code {{ font-size: .9em; overflow-wrap: anywhere; }}
.survived {{ color: #b00020; font-weight: 600; }} .killed {{ color: #0a7a3c; }}
small {{ color: #777; }} :root {{ color-scheme: light dark; }}
</style>
<h1>Proof of the conformance suite</h1>
<p><strong>{killed} of {total} faults killed</strong> by the requirement each violates; reference {version},
suite {suite}, {ended}.</p>
<table><thead><tr><th>Fault<th>Violates<th>Killed<th>Because<th>Collateral</thead><tbody>
{rows}
</tbody></table></html>
"""


def write_proof(
    folder: Path,
    contract: Contract,
    version: str,
    rows: Sequence[dict[str, Any]],
    seconds: float,
) -> None:
    """Write both files; raise UsageError when the folder cannot be written."""
    killed = sum(bool(row["killed"]) for row in rows)
    data = {
        "suite": __version__,
        "contract": contract.digest,
        "version": version,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "faults": len(rows),
        "killed": killed,
        "rows": list(rows),
    }
    page = _PAGE.format(
        killed=killed,
        total=len(rows),
        version=escape(version),
        suite=__version__,
        ended=data["ended"],
        rows="\n".join(_row(row) for row in sorted(rows, key=lambda row: bool(row["killed"]))),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "proof.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        (folder / "proof.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"Cannot write the proof to {folder}: {error.strerror or error}.") from error


def _row(row: dict[str, Any]) -> str:
    verdict = "killed" if row["killed"] else "survived"
    because = row["reason"] or row["detail"] or ""
    collateral = "<br>".join(escape(name) for name in row["collateral"])
    return (
        f"<tr><td>{escape(row['fault'])}<br><small>{escape(row['says'])}</small>"
        f"<td><code>{escape(row['requirement'])}</code>"
        f'<td class="{verdict}">{verdict}<br><small>{escape(row["by"] or "")}</small>'
        f"<td>{escape(because)}<td><small>{collateral}</small>"
    )
