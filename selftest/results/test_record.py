"""The record of a run: written with number and digest of its lines, and read back only as far as it can be trusted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.errors import UsageError
from conformance.results.reading import FIRST_FORM, read_record
from conformance.results.record import Reason, TestEnd, TestOutcome
from conformance.results.recorder import Recorder, add_readiness, encoded
from conformance.results.verdicts import RunVerdict, Verdict, add_up
from selftest.reports.report_samples import CONFORMANT, NON_CONFORMANT, STORY, written

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The record of a conformant run."""
    return written(CONFORMANT, tmp_path)


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines(keepends=True)


def change(file: Path, number: int, *instead: str) -> None:
    """Replace one line by others."""
    lines = lines_of(file)
    lines[number : number + 1 or None] = instead
    file.write_text("".join(lines), encoding="utf-8")


def altered(line: str, **changes: Any) -> str:
    return json.dumps({**json.loads(line), **changes}) + "\n"


def test_the_footer_counts_the_lines_before_it_and_has_their_digest(file: Path) -> None:
    *before, last = lines_of(file)
    footer = json.loads(last)
    assert footer["lines"] == len(before)
    assert footer["digest"] == hashlib.sha256("".join(before).encode()).hexdigest()


def test_a_record_is_read_back_completely(file: Path) -> None:
    found = read_record(file)
    assert (found.header, found.plan, found.checks, found.tests) == (
        CONFORMANT.header,
        CONFORMANT.plan,
        CONFORMANT.checks,
        CONFORMANT.tests,
    )
    assert (found.damage, found.truncated) == ((), False)
    assert add_up(found).verdict is RunVerdict.CONFORMANT


def test_a_removed_check_is_a_contradiction(file: Path) -> None:
    change(file, 2)
    with pytest.raises(UsageError, match="contradicts itself: its footer counts 6 lines"):
        read_record(file)


def test_a_changed_check_is_a_contradiction(file: Path) -> None:
    change(file, 2, altered(lines_of(file)[2], requirement="scope.switch"))
    with pytest.raises(UsageError, match="do not have the digest"):
        read_record(file)


@pytest.mark.parametrize("line", [encoded(CONFORMANT.checks[0]), encoded(CONFORMANT.tests[0])], ids=["check", "test"])
def test_a_line_after_the_footer_is_a_contradiction(file: Path, line: str) -> None:
    change(file, 99, line)
    with pytest.raises(UsageError, match="contradicts itself"):
        read_record(file)


def test_a_test_that_ended_twice_is_a_contradiction_even_without_a_footer(file: Path) -> None:
    end = lines_of(file)[-2]
    change(file, -1)
    change(file, 99, end)
    with pytest.raises(UsageError, match="a test ended twice"):
        read_record(file)


def test_a_second_footer_is_a_contradiction(file: Path) -> None:
    change(file, 99, lines_of(file)[-1])
    with pytest.raises(UsageError, match="more than one footer"):
        read_record(file)


def test_a_damaged_line_is_named_and_keeps_the_run_from_being_conformant(file: Path) -> None:
    change(file, 3, "\x00\x00 not a line\n")
    found = read_record(file)
    assert found.damage == ("line 4 of the record cannot be read",)
    assert found.checks == (CONFORMANT.checks[0], CONFORMANT.checks[2])
    assert add_up(found).verdict is RunVerdict.INCOMPLETE


@pytest.mark.parametrize(
    "line",
    ["{damaged\n", '{"kind": "check", "requirement": "scope.read"}\n', '{"kind": "check", "outcome": "odd"}\n'],
    ids=["no JSON", "without its outcome", "an outcome that nobody knows"],
)
def test_a_failure_that_cannot_be_read_is_no_fault_of_the_suite(tmp_path: Path, line: str) -> None:
    file = written(NON_CONFORMANT, tmp_path)
    for number, content in enumerate(lines_of(file)):
        row = json.loads(content)
        if (row["kind"], row.get("outcome")) == ("check", "failed"):
            change(file, number, line)
    result = add_up(read_record(file))
    assert result.verdict is RunVerdict.NON_CONFORMANT, result.explanation  # when the run ended
    change(file, len(lines_of(file)) - 1)  # and without its footer
    assert add_up(read_record(file)).verdict is RunVerdict.INCOMPLETE
    assert "What can be read of the record shows no violation, but line" in result.explanation


def test_a_truncated_last_line_means_a_truncated_run(file: Path) -> None:
    last = lines_of(file)[-1]
    change(file, -1, last[: len(last) // 2])
    found = read_record(file)
    assert (found.truncated, found.damage) == (True, ())
    assert add_up(found).verdict is RunVerdict.INCOMPLETE


def test_readiness_may_follow_the_footer(file: Path) -> None:
    add_readiness(file, {"verdict": "ready"})
    assert read_record(file).readiness == {"verdict": "ready"}


def test_a_record_in_the_first_format_is_read_without_digest(file: Path) -> None:
    rows = [json.loads(line) for line in lines_of(file)]
    rows[0]["form"] = FIRST_FORM
    for name in ("command", "scope", "undeclared", "selection"):
        rows[0].pop(name, None)
    for name in ("could_not_run", "lines", "digest"):
        del rows[-1][name]
    for entry in rows[1]["requirements"]:
        del entry["selected"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = read_record(file)
    assert found.header.form == FIRST_FORM
    assert add_up(found).verdict is RunVerdict.CONFORMANT


@pytest.mark.parametrize("form", [0, 3, "2", None])
def test_another_format_is_refused(file: Path, form: object) -> None:
    change(file, 0, altered(lines_of(file)[0], form=form))
    with pytest.raises(UsageError, match=r"form|header"):
        read_record(file)


def test_two_runs_do_not_write_to_one_record_at_once(tmp_path: Path) -> None:
    first = Recorder(tmp_path / "results.jsonl")
    with pytest.raises(UsageError, match="Another run is writing"):
        Recorder(tmp_path / "results.jsonl")
    first.close()
    Recorder(tmp_path / "results.jsonl").close()


@pytest.mark.parametrize("outcome", [TestOutcome.INCONCLUSIVE, TestOutcome.NOT_TESTED])
def test_an_interrupted_test_verifies_nothing(outcome: TestOutcome) -> None:
    """One of its steps held; the run ended before the others."""
    end = TestEnd(STORY, outcome, 3.0, 30, "the run was interrupted", reason=Reason.INTERRUPTED)
    cut = replace(CONFORMANT, tests=(end,))
    result = add_up(cut)
    assert result.verdict is RunVerdict.INCOMPLETE
    verdicts = {row.requirement.id: row.verdict for row in result.rows}
    assert verdicts["scope.read"] is Verdict.INCONCLUSIVE


def test_a_record_that_waits_takes_the_place_of_an_earlier_one_at_once(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text("earlier\n", encoding="utf-8")
    recorder = Recorder(file, waits=True)
    recorder.append("first\n")
    assert file.read_text(encoding="utf-8") == "earlier\n"
    recorder.take_its_place()
    recorder.append("second\n")
    assert file.read_text(encoding="utf-8") == "first\nsecond\n"
    with pytest.raises(UsageError, match="Another run is writing"):
        Recorder(file, waits=True)
    recorder.close()
    assert [place.name for place in tmp_path.iterdir()] == ["results.jsonl"]
