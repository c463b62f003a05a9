"""`python -m conformance.contract.open_places [FILE]`: write the page of open places, by default into docs/."""

from __future__ import annotations

import sys
from pathlib import Path

from conformance.contract import Contract, Level
from conformance.contract.open_places import PAGE, page
from conformance.errors import ConformanceError


def main() -> int:
    """Write the page; return 1 when the contract is broken or the file cannot be written."""
    file = Path(sys.argv[1]) if sys.argv[1:] else PAGE
    try:
        contract = Contract.load()
        notes = frozenset(name for name, entry in contract.requirements.items() if entry.level is Level.NOTE)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(contract.open_places, notes), encoding="utf-8")
    except (ConformanceError, OSError) as error:
        print(f"problem: {error}")  # noqa: T201 - a command's output
        return 1
    print(f"{file}: {len(contract.open_places)} open places")  # noqa: T201 - a command's output
    return 0


if __name__ == "__main__":
    sys.exit(main())
