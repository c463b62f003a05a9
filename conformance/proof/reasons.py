"""Why a check may see a fault: a kill for another reason than the fault states is none."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import parse_yaml

if TYPE_CHECKING:
    from conformance.proof.faults import Fault
    from conformance.results.record import Check

_FILE = "reasons.yaml"
_SCHEMA = "schema"


@cache
def _table() -> Any:
    return parse_yaml(files("conformance.proof").joinpath(_FILE).read_text(encoding="utf-8"), _FILE)


def reason_of(check: Check) -> str:
    """Return in one word what a failed check came to."""
    return next(
        str(entry["reason"])
        for entry in _table()["reasons"]
        if re.match(entry.get("expected", ""), check.expected or "", re.DOTALL)
        and re.match(entry.get("got", ""), check.actual or "", re.DOTALL)
    )


def reasons_for(fault: Fault) -> frozenset[str]:
    """Return for which reasons a fault may be seen, as its sort or its name states."""
    if fault.sort == _SCHEMA:
        return frozenset({_SCHEMA})
    stated = {
        reason
        for reason, names in _table()["faults"].items()
        if any(fnmatchcase(fault.name, pattern) for pattern in names)
    }
    return frozenset(stated or {"shows"})


def is_the_reason(fault: Fault, check: Check) -> bool:
    """Tell whether a check failed for what the fault does; of a schema it must name the property that was spoiled."""
    if reason_of(check) not in reasons_for(fault):
        return False
    return fault.prop in f"{check.expected} {check.place}"


def unused_patterns(faults: tuple[Fault, ...]) -> list[str]:
    """Return the entries of the table that no fault has the name of."""
    names = [fault.name for fault in faults]
    patterns = [pattern for several in _table()["faults"].values() for pattern in several]
    return [pattern for pattern in patterns if not any(fnmatchcase(name, pattern) for name in names)]
