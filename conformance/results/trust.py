"""Decides whether a record from a file can be trusted: it must agree with itself and with the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.contract import Contract
from conformance.errors import UsageError
from conformance.results.plan import not_planned
from conformance.results.reading import read_record
from conformance.results.record import RECORD_FORM
from conformance.results.verdicts import add_up

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from conformance.results.record import RunRecord

_NAMED = 3


def record_in(place: Path) -> Path:
    """Return the record file for a path, which is the file or a run's folder; raise UsageError when there is none."""
    file = place / "results.jsonl" if place.is_dir() else place
    if not file.is_file():
        raise UsageError(f"There is no record at {file}. Name a results.jsonl, or the folder of a run.")
    return file


def require_unread(out: Path | None, earlier: Iterable[Path]) -> None:
    """Raise UsageError when output to a folder would overwrite a record that is read."""
    written = out / "results.jsonl" if out is not None else None
    for place in earlier:
        if written is not None and written.resolve() == record_in(place).resolve():
            raise UsageError(f"--out {out} would write over the record in {place}. Name another folder.")


def trusted_record(place: Path) -> RunRecord:
    """Read the record of a run, also of one that was cut off, given the file or the run's folder.

    Raise UsageError as `record_in` and `read_record` do, and when its lines add up to another verdict than its footer
    says, or when its plan lacks requirements of the contract that it was made with.
    """
    file = record_in(place)
    record = read_record(file)
    if not record.plan and record.footer is None:
        raise UsageError(f"{file} was cut off before a test could begin, and shows nothing. Run it anew.")
    lacking = not_planned(record, Contract.load())
    if lacking:
        named = ", ".join(lacking[:_NAMED])
        raise UsageError(
            f"{file} contradicts the contract: its plan lacks {len(lacking)} requirements, such as {named}. "
            "It was changed after the run, and shows nothing."
        )
    footer = record.footer
    # The first form has other rules for its verdict; a damaged record cannot be added up.
    if footer is None or record.damage or record.header.form != RECORD_FORM:
        return record
    verdict = add_up(record).verdict
    if footer.verdict != verdict:
        raise UsageError(
            f"{file} contradicts itself: its footer says '{footer.verdict}', and its lines add up to '{verdict}'. "
            "It was changed after the run, and shows nothing."
        )
    return record
