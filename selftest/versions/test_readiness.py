"""What an upgrade would meet, concluded only from what the target does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from conformance.cli.versions import Comparison
from conformance.contract import Contract, Version
from conformance.contract.folders import SCHEMA_FOLDER
from conformance.errors import ExitCode, StoppedError, UsageError
from conformance.reports import html
from conformance.reports.facts import Facts
from conformance.results.reading import read_record
from conformance.results.record import (
    Check,
    ItemSeen,
    ItemState,
    Outcome,
    Reason,
    RunRecord,
    TableItem,
    TestEnd,
    TestOutcome,
)
from conformance.runner.options import Options
from conformance.versions.readiness import Ready, affected, assess, by_cause, in_words, interval
from selftest.conftest import run_conformance, serving
from selftest.reads import report_of
from selftest.reports.report_samples import FOOTER, HEADER, STORY, failed, left_open, passed, planned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selftest.conftest import Outcome as CommandOutcome

pytestmark = pytest.mark.usefixtures("inside_this_process")

SCHEMA = json.loads((SCHEMA_FOLDER / "report.schema.json").read_text(encoding="utf-8"))
OLD, NEW = Version(17, 1), Version(18, 0)
ENDED = TestEnd(STORY, TestOutcome.PASSED, 3.0, 30)


def problems(readiness: object) -> list[str]:
    schema = {"$ref": "#/$defs/readiness", "$defs": SCHEMA["$defs"]}
    return [error.message for error in Draft202012Validator(schema).iter_errors(readiness)]


# -- computed from two records -----------------------------------------------------------------------------------------


def item(name: str, kind: str, version: str = "17.7", **more: Any) -> TableItem:
    return TableItem(name, version, kind, f"the {name}", f"What becomes of the {name}.", f"versions.{name}", **more)


def record(version: str, *checks: Check, items: tuple[ItemSeen, ...] = (), table: tuple[TableItem, ...]) -> RunRecord:
    plan = tuple(planned(entry.requirement) for entry in table)
    return RunRecord(replace(HEADER, version=version), plan, checks, (ENDED,), FOOTER, table=table, items=items)


TREE = item("tree", "changed")
FIELD = item("field", "deprecated", "15.0", replacement="another field")
GOING = item("going", "removed", "17.7")
TABLE = (FIELD, TREE, GOING)


def seen(entry: TableItem, state: ItemState) -> ItemSeen:
    return ItemSeen(entry.id, state, f"{entry.id} was seen", STORY)


def test_what_fails_only_from_the_newer_version_on_becomes_a_violation() -> None:
    before = record("17.1", passed("versions.tree"), failed("versions.going"), table=TABLE)
    after = record(
        "18.0",
        failed("versions.tree", expected="404", actual="200"),
        failed("versions.going"),
        passed("versions.field"),
        items=(seen(TREE, ItemState.NOT_MADE), seen(GOING, ItemState.NOT_MADE), seen(FIELD, ItemState.STILL_SERVED)),
        table=TABLE,
    )
    found = assess(before, after, OLD, NEW)
    assert found.verdict is Ready.NOT_READY
    assert [(entry.requirement, entry.expected, entry.actual) for entry in found.violations] == [
        ("versions.tree", "404", "200")
    ]
    assert [entry.id for entry in found.not_made] == ["tree", "going"]
    assert [(entry.id, entry.replacement) for entry in found.still_served] == [("field", "another field")]
    assert not problems(json.loads(json.dumps(found.as_data())))
    assert "2 documented changes are not made yet" in found.explanation
    assert found.standing == ("versions.going",)
    assert "1 requirement is violated as of both versions" in found.explanation
    text = in_words(found)
    assert "NOT READY  for an upgrade from 17.1 to 18.0" in text
    assert "use another field" in text


def test_changes_that_are_made_and_items_that_are_gone_are_no_obstacle() -> None:
    after = record(
        "18.0",
        *(passed(entry.requirement) for entry in TABLE),
        items=(seen(TREE, ItemState.MADE), seen(GOING, ItemState.MADE), seen(FIELD, ItemState.GONE)),
        table=TABLE,
    )
    found = assess(None, after, OLD, NEW)
    assert (found.verdict, found.not_made, found.still_served, found.unseen) == (Ready.READY, (), (), ())
    assert [entry.id for entry in found.made] == ["tree", "going"]
    assert [entry.id for entry in found.gone] == ["field"]
    assert "Deprecated and already gone (1)" in in_words(found)


def test_the_headline_says_that_changes_are_not_made_yet() -> None:
    """The text does not require each of them, so the exit code is still 0."""
    after = record(
        "18.0",
        *(passed(entry.requirement) for entry in TABLE),
        items=(seen(TREE, ItemState.NOT_MADE),),
        table=TABLE,
    )
    found = assess(None, after, OLD, NEW)
    assert found.verdict is Ready.UNCHANGED
    assert in_words(found).startswith("READY, WITH CHANGES NOT MADE YET  for an upgrade from 17.1 to 18.0")
    assert not problems(json.loads(json.dumps(found.as_data())))


def test_what_could_not_be_verified_is_grouped_by_its_cause() -> None:
    causes = {"versions.tree": "404", "versions.going": "404", "versions.field": "no token"}
    after = record(
        "18.0",
        *(
            replace(left_open(name, Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED), detail=cause)
            for name, cause in causes.items()
        ),
        table=TABLE,
    )
    assert by_cause(assess(None, after, OLD, NEW).unverified) == [
        ("404", ["versions.tree", "versions.going"]),
        ("no token", ["versions.field"]),
    ]


def test_each_of_the_three_questions_has_an_answer_even_if_it_is_nothing() -> None:
    found = assess(None, record("18.0", *(passed(entry.requirement) for entry in TABLE), table=()), OLD, NEW)
    text = in_words(found)
    page = html.render(Facts.of(replace(record("18.0", table=TABLE), readiness=found.as_data())))
    for question in ("Becomes a violation", "Not made yet", "Deprecated and still served"):
        assert f"{question}: nothing that was seen" in text
        assert f"<h3>{question}</h3>" in page
    assert page.count("Nothing that was seen.") == 3


def test_a_future_requirement_that_could_not_be_verified_keeps_the_answer_open() -> None:
    after = record(
        "18.0",
        left_open("versions.tree", Reason.PREREQUISITE_MISSING, Outcome.NOT_TESTED),
        passed("versions.going"),
        passed("versions.field"),
        table=TABLE,
    )
    found = assess(None, after, OLD, NEW)
    assert found.verdict is Ready.OPEN
    assert [gap.requirement for gap in found.unverified] == ["versions.tree"]
    assert {entry.id for entry in found.unseen} == {"field", "tree"}
    assert [entry.id for entry in found.made] == ["going"]


def test_rows_outside_the_interval_are_left_out() -> None:
    table = (item("early", "removed", "17.1"), item("late", "removed", "19.0"), item("some-day", "announced", "future"))
    checks = (failed("versions.early"), passed("versions.late"), passed("versions.some-day"))
    after = record("18.0", *checks, table=table)
    found = assess(after, after, OLD, NEW)
    assert (found.verdict, found.not_made, found.made, found.unseen) == (Ready.READY, (), (), ())
    assert [entry.id for entry in found.announced] == ["some-day"]
    assert "Announced for a release that is not named (1)" in in_words(found)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        (None, "18.0", "--from"),
        (Version(17, 1), "unknown", "must be known"),
        (Version(17, 1), "17.1", "nothing to be ready for"),
        (Version(18, 0), "17.1", "nothing to be ready for"),
        (Version(17, 1), "21.0", "12.3 to 19.0"),
    ],
)
def test_an_interval_without_rows_is_refused(start: Version | None, end: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        interval(start, end, "--to")


def test_an_upgrade_affects_what_its_rows_name_and_what_is_deprecated() -> None:
    found = affected(Contract.load(), OLD, NEW)
    assert {"versions.repository-tree.missing-path", "versions.audit-events.keyset-only"} <= set(found)
    assert "project-approval-configuration.record.approvers" in found
    assert "job-token-scope.available" not in found
    assert not [name for name in found if Contract.load().requirements[name].not_testable]


# -- asked of a target -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandOutcome, Path]:
    folder = tmp_path_factory.mktemp("readiness")
    return run_conformance("readiness", "--from", "17.1", "--to", "18.0", "--out", "out", cwd=folder), folder / "out"


def test_the_command_names_what_prevents_the_newer_version(asked: tuple[CommandOutcome, Path]) -> None:
    outcome, folder = asked
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    found = json.loads((folder / "readiness.json").read_text(encoding="utf-8"))
    assert not problems(found)
    assert [entry["requirement"] for entry in found["violations"]] == ["versions.repository-tree.missing-path"]
    assert {entry["id"] for entry in found["not_made"]} == {"17.7-repository-tree", "18.0-audit-event-pagination"}
    assert "18.0-outbound-enabled" in {entry["id"] for entry in found["still_served"]}
    assert "Becomes a violation (1)" in outcome.out
    assert "removal planned for 18.0" in outcome.out


def test_its_report_shows_it(asked: tuple[CommandOutcome, Path]) -> None:
    _, folder = asked
    report = report_of(folder / "as-of-18.0")
    assert report["readiness"] == json.loads((folder / "readiness.json").read_text(encoding="utf-8"))
    page = (folder / "as-of-18.0" / "index.html").read_text(encoding="utf-8")
    assert "What an upgrade from 17.1 to 18.0 would meet: not ready" in page


def test_a_run_reports_beside_its_own_verdict_what_an_upgrade_would_meet(
    conformance: Callable[..., Any],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    with serving() as (service, base_url):
        write_profile(service, base_url, version="auto")
        options = ("--requirement", "versions.repository-tree.missing-path", "--ready-for", "18.0", "--out", "out")
        outcome = conformance("run", "--target", "target.yaml", *options)
    assert outcome.code == 0, outcome.text
    assert "READY, WITH CHANGES NOT MADE YET  for an upgrade from 17.7 to 18.0" in outcome.out
    found = read_record(tmp_path / "out" / "results.jsonl").readiness
    assert found == json.loads((tmp_path / "out" / "readiness.json").read_text(encoding="utf-8"))
    assert found is not None
    assert found["verdict"] == "ready, with changes not made yet"
    assert "Upgrade to 18.0" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_another_version_than_the_target_reports_is_warned_of(
    conformance: Callable[..., Any], write_profile: Callable[..., Path]
) -> None:
    """With a mistaken version the wrong rows of the table are compared, and the result looks like any other."""
    with serving() as (service, base_url):
        write_profile(service, base_url, version="auto")
        outcome = conformance("readiness", "--target", "target.yaml", "--from", "17.1", "--to", "17.4", "--out", "out")
    assert "version: 17.1" in outcome.err, outcome.text
    assert "the target says 17.7.0" in outcome.err


BRIEF = ("run", "--requirement", "versions.repository-tree.missing-path", "--ready-for", "18.0", "--out", "out")


def test_limits_of_a_run_apply_to_each_run_that_is_compared(conformance: Callable[..., Any], tmp_path: Path) -> None:
    outcome = conformance(*BRIEF, "--read-only", "--max-requests", "500", "--max-rps", "400")
    assert "for an upgrade from 17.7 to 18.0" in outcome.out, outcome.text
    first, *others = (read_record(place) for place in sorted((tmp_path / "out").rglob("results.jsonl"))[::-1])
    assert len(others) == 2, "both versions were run, for the run was of a part"
    for record in others:
        assert {"--read-only", "--max-rps=400.0"} <= set(record.header.arguments)
        bound = next(word for word in record.header.arguments if word.startswith("--max-requests="))
        assert first.footer is not None
        assert int(bound.partition("=")[2]) <= 500 - first.footer.requests


def test_naming_a_folder_again_loses_nothing_that_was_told_of_an_upgrade(
    conformance: Callable[..., Any], tmp_path: Path
) -> None:
    options = ("run", "--requirement", "versions.repository-tree.missing-path", "--out", "out", "--read-only")
    conformance(*options, "--ready-for", "18.0")
    told = (tmp_path / "out" / "readiness.json").read_bytes()
    older = (tmp_path / "out" / "as-of-18.0" / "results.jsonl").read_bytes()
    conformance(*options)
    assert not (tmp_path / "out" / "readiness.json").exists(), "it is not of the run that the folder holds now"
    assert (tmp_path / "out.1" / "readiness.json").read_bytes() == told
    outcome = conformance(*options, "--ready-for", "18.0")
    assert (tmp_path / "out" / "as-of-18.0.1" / "results.jsonl").read_bytes() == older
    assert "are in out/as-of-18.0.1 now" in outcome.err


def test_a_run_keeps_its_exit_code_if_readiness_cannot_be_determined(
    conformance: Callable[..., Any],
) -> None:
    outcome = conformance("run", "--area", "integrations", "--ready-for", "18.0", "--max-requests", "60")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert "What an upgrade to 18.0 would meet cannot be told: the run stopped early." in outcome.err


def test_an_interrupted_readiness_run_ends_like_an_interrupted_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pytest, "main", lambda _: pytest.ExitCode.INTERRUPTED)
    comparison = Comparison(Options(), tmp_path)
    with pytest.raises(StoppedError) as caught:
        comparison.run_as_of(Version(18, 0), ())
    assert caught.value.exit_code == ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("readiness", "--to", "99.0"), "--to: 99.0 is outside the specification, which speaks of 12.3 to 19.0"),
        (("readiness", "--from", "old", "--to", "18.0"), "--from: 'old' is not a version"),
        (("readiness", "--from", "18.0", "--to", "17.0"), "nothing to be ready for"),
        (("readiness", "--from", "unknown", "--to", "18.0"), "--from"),
        (("run", "--ready-for", "soon"), "--ready-for: 'soon' is not a version"),
        (("run", "--ready-for", "16.0"), "--ready-for: 16.0 is not newer than the target, 17.7"),
    ],
)
def test_invalid_versions_for_readiness_end_with_4(
    tmp_path: Path,
    conformance: Callable[..., Any],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    outcome = conformance(*arguments)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert message in outcome.text
    assert not list(tmp_path.rglob("results.jsonl")), "a run came before the answer"


def test_readiness_at_a_dead_host_ends_like_a_run_there(
    conformance: Callable[..., Any],
    reference: Any,
    write_profile: Callable[..., Path],
) -> None:
    write_profile(reference[0], "http://127.0.0.1:1")
    outcome = conformance("readiness", "--target", "target.yaml", "--to", "18.0", "--out", "out")
    assert outcome.code == ExitCode.COULD_NOT_RUN, outcome.text
    assert "does not answer" in outcome.err
