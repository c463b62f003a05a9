"""Writes the findings of a check into a profile, and keeps everything else in it."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML

from conformance.errors import or_usage_error
from conformance.target.readings import State
from conformance.target.whole_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.target.readings import Finding

_STEP = re.compile(r"[^.\[\]]+")


def mend(file: Path, findings: Iterable[Finding]) -> tuple[str, ...]:
    """Write found values into a profile, keep its comments, and return the places that were changed.

    Notes, and findings without a value, are skipped. Raise UsageError when the file cannot be written.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    data = yaml.load(file.read_text(encoding="utf-8"))
    written = []
    for finding in findings:
        if finding.write is None or finding.state is State.NOTE:
            continue
        *steps, last = [int(step) if step.isdecimal() else step for step in _STEP.findall(finding.place)]
        entry: Any = data
        try:
            for step in steps:
                entry = entry[step]
        except (KeyError, IndexError):  # another world may share the actors of the first one, which is fixed itself
            continue
        entry[last] = finding.write
        written.append(finding.place)
    if not written:  # writing would change the layout
        return ()
    stream = StringIO()
    yaml.dump(data, stream)
    with or_usage_error(f"Cannot write {file}"):
        write_whole(file, stream.getvalue())
    return tuple(written)
