"""`summary.md`: short, complete, and safe in a comment."""

from __future__ import annotations

from conformance.reports import markdown
from conformance.reports.facts import Facts
from conformance.results.verdicts import add_up
from selftest.reports.report_samples import CURL, INCOMPLETE, SAMPLES, failed, planned, record


def _summary(name: str) -> str:
    return markdown.render(Facts.of(SAMPLES[name]))


def test_a_conformant_run_is_named_in_the_first_lines() -> None:
    why = add_up(SAMPLES["conformant"]).explanation
    assert _summary("conformant").startswith(f"## staging: CONFORMANT\n\n**2 of 2 verified.** {why}\n")


def test_a_failure_has_what_is_needed_to_repeat_it() -> None:
    text = _summary("non-conformant")
    assert "### Failed (2)\n\n#### `scope.switch`\n\nThe service does what scope.switch says." in text
    assert "expected: 204 without a body\nactual:   204 with 20 bytes\nplace:    /namespace/parent_id\n" in text
    assert f"```sh\n{CURL}\n```\n\n1 more check of it failed." in text
    assert "#### `scope.hint` (a warning, no violation: should)" in text


def test_gaps_are_counted_by_reason() -> None:
    text = _summary("incomplete")
    assert "### Not verified (6)\n\n- 2 no test yet\n  - 2: `no test` (`export.start` and others)\n" in text
    assert "- 1 precondition not met\n  - 1: `precondition not met in this sample` (`scope.switch`)\n" in text


def test_areas_are_a_table_that_adds_up() -> None:
    lines = _summary("incomplete").splitlines()
    assert (
        "| area | verdict | verified | failed | unstable | inconclusive | not tested | noted | not applicable |"
        in lines
    )
    assert "| scope | incomplete | 1 of 5 | 0 | 0 | 3 | 2 | 0 | 0 |" in lines
    assert "| export | incomplete | 0 of 2 | 0 | 0 | 0 | 2 | 0 | 0 |" in lines
    assert "| **all** | incomplete | 1 of 7 | 0 | 0 | 3 | 4 | 0 | 0 |" in lines
    assert len(INCOMPLETE.plan) == 1 + 3 + 4


def test_problems_of_the_run_are_reported() -> None:
    assert "- **cut off**: `the run`: " in _summary("truncated")
    assert "and cut off." in _summary("truncated")
    assert "- **broken test**: " in _summary("broken")
    assert "- **nothing planned**: `the plan`: " in _summary("empty")


def test_observations_are_listed() -> None:
    assert "- `scope.page-size`: `20 entries without per_page`" in _summary("conformant")


def test_markup_from_the_target_is_inside_code() -> None:
    text = _summary("odd")
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert fences[0] == "````text"
    assert len(fences) % 2 == 0
    outside, inside = [], False
    for line in text.splitlines():
        inside ^= line.startswith("````")
        if not inside and not line.startswith("`"):
            outside.append(line)
    assert not [line for line in outside if "<script>" in line and "`` " not in line and "\\<script\\>" not in line]


def test_the_worst_run_fits_into_a_comment() -> None:
    long = "ü" * 5_000
    plan = [
        planned(f"scope.rule-{number}", statement=long, section="Endpoints > " + "x" * 100) for number in range(500)
    ]
    checks = [failed(entry.id, expected=long, actual=long, place=f"/{entry.id}" + "y" * 3_000) for entry in plan]
    text = markdown.render(Facts.of(record(*plan, checks=tuple(checks))))
    assert len(text) < 60_000
    assert "... and 485 more; the report has them all." in text
