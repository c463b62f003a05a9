"""The list of known failures: what an operator knows to fail, and why, kept beside the suite and not inside it."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.contract.yaml_files import first_problem, parse_yaml
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.contract import Contract


def load_known_failures(file: Path, contract: Contract) -> Mapping[str, str]:
    """
    Read a list of known failures: for each requirement the reason why its failure is known.

    Raise UsageError when the file cannot be read, is not such a list, or names a requirement twice or one that the
    contract does not state.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the list of known failures {file}: {error}.") from error
    data = parse_yaml(text, str(file))
    problem = first_problem(data, "known-failures.schema.json")
    if problem:
        raise UsageError(f"The list of known failures {file} is not valid {problem}.")
    found: dict[str, str] = {}
    for entry in data["known_failures"]:
        name = contract.requirement(entry["requirement"]).id
        if name in found:
            raise UsageError(f"The list of known failures {file} names {name} twice.")
        found[name] = entry["reason"]
    return MappingProxyType(found)
