"""`python -m conformance.contract`: check the contract and print what is wrong with it."""

from __future__ import annotations

import sys

from conformance.contract import Contract
from conformance.contract.lint import problems, untied
from conformance.errors import ConformanceError


def main() -> int:
    """Print every problem; return 1 when there is one."""
    try:
        contract = Contract.load()
        found = list(problems(contract))
    except ConformanceError as error:
        found = [str(error)]
    else:
        for name in untied(contract):
            print(f"note: {name} is stated by no place of the document")  # noqa: T201 - a command's output
        operations = len(contract.operations(None))
        print(f"{operations} operations, {len(contract.requirements)} requirements, {len(contract.changes)} changes")  # noqa: T201
    for problem in found:
        print(f"problem: {problem}")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
