"""The baseline: a list of known failures, each with reason, owner and expiry date, kept outside the suite."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import yaml

from conformance.contract.yaml_files import first_problem, line_of, parse_yaml, read_text
from conformance.errors import UsageError
from conformance.http.bodies import with_values
from conformance.results.record import KnownFailure
from conformance.results.text import visible
from conformance.results.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.contract import Contract
    from conformance.results.record import Check
    from conformance.results.verdicts import RequirementVerdict, RunResult

#: The schema of the file, one of those that ship with the package.
SCHEMA = "baseline.schema.json"
_LONGEST_REASON = 300
_HEAD = """\
# Known failures. From the day after `expires` on, an entry has no effect.
# `conformance run --baseline FILE --fail-on new` fails only because of other failures.
"""


def load_baseline(file: Path, contract: Contract, today: date) -> Mapping[str, KnownFailure]:
    """Read a baseline: for each requirement that is known to fail, the reason, the owner and the expiry date.

    Raise UsageError when the file cannot be read, is no baseline, has an invalid date, or names a requirement that is
    listed twice or that the contract does not state.
    """
    text = read_text(file, "the baseline")
    # The dates that YAML parses are text again.
    dated = parse_yaml(text, str(file))
    data = with_values(dated, lambda value: value.isoformat() if hasattr(value, "isoformat") else value)
    _require_days(data, text, file)
    problem = first_problem(data, SCHEMA)
    if problem:
        raise UsageError(
            f"The baseline {file} is not valid {problem}. `conformance baseline --schema` says what an entry has."
        )
    found: dict[str, KnownFailure] = {}
    for entry in data["baseline"]:
        name = entry.pop("requirement")
        if name in found:
            raise UsageError(f"The baseline {file} names {name} twice. Keep one of the two entries.")
        try:
            contract.requirement(name)
        except UsageError as error:
            raise UsageError(f"The baseline {file} is not valid at {name}: {error}") from None
        found[name] = KnownFailure(**entry, expired=date.fromisoformat(entry["expires"]) < today)
    return MappingProxyType(found)


def _require_days(data: Any, text: str, file: Path) -> None:
    """Raise UsageError for an entry whose `expires` is no date; the schema reports all other errors."""
    entries = data.get("baseline") if isinstance(data, dict) else None
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        day = entry.get("expires") if isinstance(entry, dict) else None
        if isinstance(day, str) and not _is_day(day):
            raise UsageError(
                f"The baseline {file} is not valid in line {line_of(text, 'baseline', number, 'expires')}, entry "
                f"{entry.get('requirement', number + 1)}: '{day}' is no date such as 2030-12-31, and expires: must be "
                "one."
            )


def _is_day(text: str) -> bool:
    with suppress(ValueError):
        return date.fromisoformat(text).isoformat() == text
    return False


def baseline_of(result: RunResult, owner: str, expires: date) -> str:
    """Return the text of a baseline that lists the failures of a run, and what its own baseline lists.

    Entries from the run's own baseline stay unchanged, also expired ones, unless the run saw that they hold again: a
    run of one area, or one that was stopped, shows nothing of the others. New entries get this owner and date.
    """
    entries = [_entry(row, owner, expires) for row in result.rows if row.is_violation or _stays(row)]
    return _HEAD + str(yaml.safe_dump({"baseline": entries}, sort_keys=False, allow_unicode=True, width=110))


def reason_from(check: Check) -> str:
    """Return the reason for a new entry: what a failed check saw.

    Unprintable characters are escaped: YAML has no way to write half a surrogate pair, which JSON may contain.
    """
    return " ".join(visible(f"Expected {check.expected}; got {check.actual}.").split())[:_LONGEST_REASON]


def _stays(row: RequirementVerdict) -> bool:
    return row.requirement.known_failure is not None and row.verdict is not Verdict.PASSED


def _entry(row: RequirementVerdict, owner: str, expires: date) -> dict[str, Any]:
    known = row.requirement.known_failure
    if known is None:
        known = KnownFailure(reason_from(row.failures[0]), owner, expires.isoformat())
    kept = {name: value for name, value in asdict(known).items() if name != "expired" and value is not None}
    return {"requirement": row.requirement.id, **kept}
