"""For which reasons a check may find a fault: a kill for another reason than the fault states does not count."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.contract.yaml_files import parse_yaml

if TYPE_CHECKING:
    from conformance.proof.faults import Fault
    from conformance.results.record import Check

_FILE = "reasons.yaml"
_SCHEMA = "schema"
#: How a survivor is described that was seen, but not as its fault states.
ANOTHER_REASON = "seen for another reason"


@cache
def reasons_table() -> Any:
    """Return the content of reasons.yaml: how a reason is recognized, and for which reasons a fault may be found."""
    return parse_yaml(files("conformance.proof").joinpath(_FILE).read_text(encoding="utf-8"), _FILE)


def is_one_of(name: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether a name fits one of several patterns, such as `integrations: *`."""
    return bool(patterns) and _any_of(patterns).match(name) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def reason_of(expected: str, actual: str) -> str:
    """Return in one word why a check failed, from what it expected and what it got."""
    return next(
        str(entry["reason"])
        for entry in reasons_table()["reasons"]
        if re.match(entry.get("expected", ""), expected, re.DOTALL)
        and re.match(entry.get("got", ""), actual, re.DOTALL)
    )


def reasons_for(fault: Fault) -> frozenset[str]:
    """Return for which reasons a fault may be found, according to its kind or its name."""
    if fault.seen_as:
        return fault.seen_as
    if fault.sort == _SCHEMA:
        return frozenset({_SCHEMA})
    stated = {reason for reason, names in reasons_table()["faults"].items() if is_one_of(fault.name, tuple(names))}
    return frozenset(stated or {"shows"})


def is_the_reason(fault: Fault, check: Check) -> bool:
    """Tell whether a check failed because of the fault; for a schema it must name the property that was altered."""
    if reason_of(check.expected or "", check.actual or "") not in reasons_for(fault):
        return False
    return fault.prop in f"{check.expected} {check.place}"
