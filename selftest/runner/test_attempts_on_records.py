"""Attempts to make a record claim more than the run saw: contradictions, also to the contract, are refused."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from conformance import cli
from conformance.cli.run import run_suite
from conformance.results.reading import digest_of
from conformance.runner.location import suite_arguments

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Row = dict[str, Any]
USAGE, INCOMPLETE = 4, 6


@pytest.fixture(scope="module")
def incomplete(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The lines of a run with most tests deselected."""
    out = tmp_path_factory.mktemp("run")
    options = ("-q", "--area=code-completion", "--corpus=none", "--max-examples=1", f"--out={out}", "-k", "role")
    with contextlib.redirect_stdout(io.StringIO()):
        assert run_suite(suite_arguments(*options)) == INCOMPLETE
    return [json.loads(line) for line in (out / "results.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], tuple[int, str]]:
    """Return the result of `conformance report` on some lines."""

    def report(lines: list[str]) -> tuple[int, str]:
        file = tmp_path / "results.jsonl"
        file.write_text("".join(lines), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["conformance", "report", str(file), "--format", "markdown"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(str(ended.value.code)), said.out + said.err

    return report


def written(rows: list[Row]) -> list[str]:
    return [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]


def sealed(rows: list[Row], **footer: Any) -> list[str]:
    """Return lines with a correct footer, as an informed forger writes them."""
    before = [row for row in rows if row["kind"] != "footer"]
    lines = written(before)
    end = next((row for row in rows if row["kind"] == "footer"), {})
    return [*lines, *written([{**end, "lines": len(lines), "digest": digest_of(lines), **footer}])]


def fewer_planned(rows: list[Row]) -> list[Row]:
    return [{**row, "requirements": row["requirements"][:300]} if row["kind"] == "plan" else row for row in rows]


def all_passed(rows: list[Row]) -> list[Row]:
    return [{**row, "outcome": "passed"} if row["kind"] == "test" else row for row in rows]


def checks_passed(rows: list[Row]) -> list[Row]:
    return [{**row, "outcome": "passed"} if row["kind"] == "check" else row for row in rows]


def without(kind: str) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if row["kind"] != kind]


def twice(kind: str) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        again = next(row for row in rows if row["kind"] == kind)
        return [*rows[:-1], again, rows[-1]]

    return change


def one_lost(rows: list[Row]) -> list[Row]:
    return [*rows[:5], *rows[6:]]


#: What is changed, and the message if the digest is made to fit.
CHANGES = {
    "300 rows of the plan": (fewer_planned, USAGE, "plan lacks"),
    "no plan": (without("plan"), USAGE, "plan lacks"),
    "every test passed": (all_passed, INCOMPLETE, "not verified"),
    "no line of a test": (without("test"), INCOMPLETE, "not verified"),
    "a line lost": (one_lost, INCOMPLETE, "not verified"),
    "no check": (without("check"), INCOMPLETE, "not verified"),
    "two plans": (twice("plan"), USAGE, "more than one plan"),
    "a test ended twice": (twice("test"), USAGE, "ended twice"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_record_with_a_fitting_digest_is_not_green(
    name: str, incomplete: list[Row], reported: Callable[[list[str]], tuple[int, str]]
) -> None:
    change, code, word = CHANGES[name]
    told = reported(sealed(change(incomplete)))
    assert told[0] == code, told[1]
    assert word in told[1]


@pytest.mark.parametrize("verdict", ["conformant", "selection holds"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_record_that_claims_to_be_green_is_refused(
    name: str, verdict: str, incomplete: list[Row], reported: Callable[[list[str]], tuple[int, str]]
) -> None:
    change, *_ = CHANGES[name]
    code, text = reported(sealed(change(incomplete), verdict=verdict, exit_code=0))
    assert code == USAGE, text
    assert "contradicts" in text


@pytest.mark.parametrize(
    "change", [fewer_planned, all_passed, checks_passed, one_lost, without("test")], ids=lambda change: change.__name__
)
def test_a_changed_record_with_the_old_digest_is_refused(
    change: Callable[[list[Row]], list[Row]],
    incomplete: list[Row],
    reported: Callable[[list[str]], tuple[int, str]],
) -> None:
    code, text = reported(written(change(incomplete)))
    assert code == USAGE, text
    assert "It was changed after the run" in text


def test_a_footer_that_claims_to_be_green_is_refused(
    incomplete: list[Row], reported: Callable[[list[str]], tuple[int, str]]
) -> None:
    code, text = reported(written([*incomplete[:-1], {**incomplete[-1], "verdict": "selection holds", "exit_code": 0}]))
    assert code == USAGE
    assert "its footer says 'selection holds', and its lines add up to 'incomplete'" in text


def test_a_truncated_or_damaged_record_is_incomplete(
    incomplete: list[Row], reported: Callable[[list[str]], tuple[int, str]]
) -> None:
    lines = written(incomplete)
    for kept, word in ((lines[:-1], "cut off"), ([*lines[:5], "{damaged\n", *lines[6:]], "cannot be read")):
        code, text = reported(kept)
        assert code == INCOMPLETE, text
        assert word in text


def test_the_unchanged_record_is_rendered_again(
    incomplete: list[Row], reported: Callable[[list[str]], tuple[int, str]]
) -> None:
    code, text = reported(sealed(incomplete))
    assert code == INCOMPLETE
    assert "contradicts" not in text
