"""Records that are very large, of a newer suite, or invalid: one clear message, and everything that can be read."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.reports import render_all
from conformance.results import reading
from conformance.results.reading import read_record
from conformance.results.recorder import Recorder
from conformance.results.trust import record_in
from selftest.reports.report_samples import EXCHANGE, FOOTER, HEADER, failed, passed, planned

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.results.record import RunRecord


def _written(file: Path, bodies: list[str]) -> Path:
    recorder = Recorder(file)
    recorder.write(HEADER)
    recorder.write_plan([planned("scope.read")])
    for number, body in enumerate(bodies):
        exchange = replace(EXCHANGE, response_body=body)
        recorder.write(failed("scope.read", actual=f"status {number}", evidence=(exchange,)))
    recorder.close_with(replace(FOOTER, verdict="non-conformant"))
    return file


def _bodies(record: RunRecord) -> list[str | None]:
    return [check.evidence[0].response_body for check in record.checks]


def test_a_repeated_body_is_kept_once(tmp_path: Path) -> None:
    record = read_record(_written(tmp_path / "results.jsonl", ["x" * 4000] * 3))
    first, *others = _bodies(record)
    assert all(body is first for body in others)
    assert not record.warnings


def test_a_very_large_record_is_read_in_bounded_memory_and_says_what_it_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BODIES", 100_000)
    file = _written(tmp_path / "results.jsonl", [f"{number} " + "x" * 4000 for number in range(5000)])
    size = file.stat().st_size
    tracemalloc.start()
    record = read_record(file)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < size / 2
    whole = [body for body in _bodies(record) if body is not None and len(body) > 4000]
    assert 20 < len(whole) < 30
    assert str(_bodies(record)[-1]).endswith("xxx ... (4005 characters, see results.jsonl)")
    assert any("4976 bodies are shortened" in warning for warning in record.warnings)
    render_all(record, tmp_path)
    assert "bodies are shortened in the reports" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_unknown_fields_of_a_newer_suite_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    recorder = Recorder(file)
    recorder.write(HEADER)
    recorder.write_plan([planned("scope.read")])
    recorder.write(passed("scope.read"))
    recorder.close()
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    lines[0]["mood"], lines[1]["requirements"][0]["weight"], lines[2]["colour"] = "good", 7, "green"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"kind": "omen", "text": "?"}]), "utf-8")
    found = read_record(file)
    assert (found.header, found.plan, found.checks) == (HEADER, (planned("scope.read"),), (passed("scope.read"),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"kind": "header", "form": 9, "suite": "3.0.0"}\n', "has form 9; .* It was written by suite 3.0.0"),
        ('{"kind": "header", "form": 9}\n', "It was written by suite unknown"),
        ("", "is empty: the run ended before it wrote anything"),
        ("\x1f\x08\x00", "is packed. Unpack it first"),
        ("PK\x03\x04", "is packed. Unpack it first"),
        ("<html>\n", "its first line is no header"),
        ("[1, 2]\n", "its first line is no header"),
        ('{"kind": "header", "form": 2}\n', "is damaged: TypeError"),
        ("[" * 100_000 + "\n", "its first line is no header"),
    ],
    ids=["newer", "newer and silent", "empty", "of gzip", "of zip", "a page", "a list", "no header at all", "nested"],
)
def test_an_invalid_record_is_refused_with_one_message(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_record(file)


def test_a_file_without_lines_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LONGEST_LINE", 1000)
    file = tmp_path / "results.jsonl"
    file.write_text("x" * 5000, encoding="utf-8")
    with pytest.raises(UsageError, match="has a line of 1000 characters"):
        read_record(file)


def test_a_folder_without_a_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no record at .*results.jsonl. Name a results.jsonl, or the folder of a run"):
        record_in(tmp_path)
