"""The proof: every check can fail, and fails for the reason given."""

from __future__ import annotations

from conformance.contract import Contract, Version
from conformance.proof import written  # noqa: F401 - registers its faults
from conformance.proof.faults import WRITTEN, Fault
from conformance.proof.generated import generated

__all__ = ["Fault", "all_faults"]


def all_faults(contract: Contract, version: str) -> tuple[Fault, ...]:
    """Return the faults written by hand, and those that follow from the contract at a version."""
    by_hand = [
        fault
        for fault in WRITTEN.values()
        if (requirement := contract.requirements.get(fault.requirement)) and requirement.tested
    ]
    return (*by_hand, *generated(contract, Version.parse(version)))
