"""Shards of a run and an interrupted run: merged, they have the same result as one complete run on one machine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance.errors import ExitCode, UsageError
from conformance.reference import EmbeddedServer
from conformance.reports.facts import Facts
from conformance.results.durations import in_order, part_of, weights_by_file
from conformance.results.parts import Part, merge_into, require_same_run, require_shards
from conformance.results.reading import read_record
from conformance.results.record import TestOutcome
from conformance.results.recorder import Recorder
from conformance.results.verdicts import RunVerdict, add_up
from conformance.runner.location import SUITE_FOLDER
from conformance.target.embedded import prepared_service, profile_of
from selftest.conftest import VERSION, run_conformance
from selftest.proof.test_caught import pages_are_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("inside_this_process")

FEW = ("-q", "--area", "job-token-scope", "--max-examples", "2", "--seed", "1", "--corpus", "none")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A complete run and its two shards, each in its own world on one service with a fault."""
    made = tmp_path_factory.mktemp("parts")
    service = prepared_service(version=VERSION, worlds=2)
    pages_are_whole(service)
    with EmbeddedServer(service) as server:
        profile = profile_of(service, server.base_url, VERSION)
        (made / "target.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
        for name, more in (("whole", ()), ("one", ("--shard", "1/2")), ("two", ("--shard", "2/2"))):
            options = ("--target", "target.yaml", *FEW, "--workers", "1", "--out", name, *more)
            outcome = run_conformance("run", *options, cwd=made)
            assert outcome.code in (ExitCode.NON_CONFORMANT, ExitCode.INCOMPLETE), outcome.text
        yield made


def verdicts(folder: Path) -> dict[str, Any]:
    return {row.requirement.id: (row.verdict, row.reason) for row in add_up(read_record(folder / "results.jsonl")).rows}


def test_merged_shards_have_the_verdicts_of_one_run(folder: Path) -> None:
    outcome = run_conformance("merge", "one", "two", "--out", "merged", cwd=folder)
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert "NON-CONFORMANT" in outcome.out
    assert verdicts(folder / "merged") == verdicts(folder / "whole")
    whole, merged = (read_record(folder / name / "results.jsonl") for name in ("whole", "merged"))
    assert {end.test: end.outcome for end in merged.tests} == {end.test: end.outcome for end in whole.tests}
    assert (folder / "merged" / "index.html").is_file()


def test_merging_into_the_folder_of_a_run_keeps_its_record_elsewhere(folder: Path) -> None:
    assert run_conformance("merge", "one", "two", "--out", "twice", cwd=folder).code == ExitCode.NON_CONFORMANT
    before = (folder / "twice" / "results.jsonl").read_bytes()
    outcome = run_conformance("merge", "one", "--out", "twice", cwd=folder)
    assert "are in twice.1 now" in outcome.err
    assert (folder / "twice.1" / "results.jsonl").read_bytes() == before


def test_a_shard_that_was_killed_at_once_hides_no_results_of_another(folder: Path) -> None:
    """In any order of merging: its record does not say yet which tests belong to other shards."""
    seen = {name: {str(verdict) for verdict, _ in verdicts(folder / name).values()} for name in ("one", "two")}
    one, other = sorted(seen, key=lambda name: "failed" not in seen[name])
    for name, killed in ((other, "killed-at-once"), (one, "killed-too")):
        lines = (folder / name / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        begun = [line for line in lines if json.loads(line)["kind"] in ("header", "plan", "table", "access")]
        (folder / killed).mkdir()
        (folder / killed / "results.jsonl").write_text("".join(begun), encoding="utf-8")
    nothing = run_conformance("merge", "killed-at-once", "killed-too", "--out", "merged-nothing", cwd=folder)
    assert (nothing.code, "was cut off" in nothing.text) == (ExitCode.INCOMPLETE, True), nothing.text
    for number, order in enumerate(((one, "killed-at-once"), ("killed-at-once", one))):
        outcome = run_conformance("merge", *order, "--out", f"merged-{number}", cwd=folder)
        assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text


def test_a_shard_whose_target_could_not_be_tested_hides_no_results_of_another(folder: Path) -> None:
    for name in ("one", "two"):
        other = "two" if name == "one" else "one"
        part, failing = (Part.of(folder / place) for place in (name, other))
        assert failing.record.footer is not None
        footer = replace(failing.record.footer, could_not_run=True, detail="nobody answers")
        record = replace(failing.record, tests=(), checks=(), items=(), footer=footer)
        rows = tuple(row for row in failing.rows if row["kind"] not in ("check", "item", "test"))
        unable = replace(failing, record=record, rows=rows)
        for number, parts in enumerate(((part, unable), (unable, part), (unable,))):
            recorder = Recorder(folder / f"unable-{name}-{number}" / "results.jsonl")
            result = merge_into(recorder, parts)[1]
            assert (result.verdict is RunVerdict.COULD_NOT_RUN) == (len(parts) == 1), result.explanation


def test_every_report_of_merged_shards_names_the_shards(folder: Path) -> None:
    run_conformance("merge", "one", "two", "--out", "told", cwd=folder)
    one, two = (read_record(folder / name / "results.jsonl") for name in ("one", "two"))
    assert one.footer
    assert two.footer
    said = (
        f"from 2 shards: 1/2 from one, which ran from {one.header.started} to {one.footer.ended}; "
        f"2/2 from two, which ran from {two.header.started} to {two.footer.ended}"
    )
    for name in ("compliance.html", "index.html", "report.json", "junit.xml", "ctrf.json", "earl.jsonld", "summary.md"):
        assert said in (folder / "told" / name).read_text(encoding="utf-8"), name
    merged = read_record(folder / "told" / "results.jsonl")
    assert (merged.header.started, merged.header.shard) == (one.header.started, "")
    assert Facts.of(merged).headline["merged"] == said
    assert "merged" not in Facts.of(read_record(folder / "whole" / "results.jsonl")).headline


def test_each_shard_runs_about_half_in_its_own_world_and_verifies_nothing_alone(folder: Path) -> None:
    whole, *shards = (read_record(folder / name / "results.jsonl") for name in ("whole", "one", "two"))
    ran = [{end.test for end in shard.tests if end.outcome is not TestOutcome.DESELECTED} for shard in shards]
    assert ran[0] | ran[1] == {end.test for end in whole.tests if end.outcome is not TestOutcome.DESELECTED}
    assert not ran[0] & ran[1]
    assert [shard.header.shard for shard in shards] == ["1/2", "2/2"]
    assert shards[0].header.profile["fixtures"] != shards[1].header.profile["fixtures"]
    assert "this is --shard 1/2" in (folder / "one" / "summary.md").read_text(encoding="utf-8")
    outcome = run_conformance("merge", "one", "--out", "half", cwd=folder)
    assert "Shard 2/2 is missing" in outcome.out
    ends = read_record(folder / "half" / "results.jsonl").tests
    assert {end.detail for end in ends if "another shard" in str(end.detail)} == {
        "left to another shard: 2/2, which is missing"
    }
    assert "CONFORMANT" not in outcome.out.replace("NON-CONFORMANT", "")


def killed_copy(folder: Path, name: str, of_tests: float = 0.5) -> list[str]:
    """Make the record of a run that was killed after a part of its tests; return its complete lines."""
    lines = (folder / "whole" / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    ended = [number for number, line in enumerate(lines) if '"kind": "test"' in line and "deselected" not in line]
    (folder / name).mkdir()
    kept = lines[: ended[int(len(ended) * of_tests)]]
    (folder / name / "results.jsonl").write_text("".join([*kept, lines[-1][:9]]), encoding="utf-8")
    return kept


def test_a_complete_run_cannot_be_resumed(folder: Path) -> None:
    before = {file: file.read_bytes() for file in (folder / "whole").rglob("*") if file.is_file()}
    outcome = run_conformance("run", "--resume", "whole", cwd=folder)
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert outcome.err == "The run in whole is complete: there is nothing to go on with.\n"
    assert outcome.out.startswith("non-conformant: ")
    printed = run_conformance("run", "--resume", "whole", "--format", "json", cwd=folder)
    assert (printed.code, json.loads(printed.out)["verdict"]) == (ExitCode.NON_CONFORMANT, "non-conformant")
    assert {file: file.read_bytes() for file in (folder / "whole").rglob("*") if file.is_file()} == before


def test_a_run_can_be_resumed_from_another_folder(folder: Path) -> None:
    kept = killed_copy(folder, "killed-elsewhere", 0.9)
    assert json.loads(kept[0])["started_in"] == ".."
    (folder / "deep" / "down").mkdir(parents=True)
    outcome = run_conformance("run", "--resume", "../../killed-elsewhere", cwd=folder / "deep" / "down")
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert verdicts(folder / "killed-elsewhere") == verdicts(folder / "whole")
    assert str(folder.resolve() / "killed-elsewhere" / "index.html") in outcome.out
    assert not list((folder / "deep" / "down").iterdir())


def test_resuming_a_run_without_its_profile_says_in_which_folder_to_do_it(folder: Path, tmp_path: Path) -> None:
    kept = killed_copy(folder, "killed-and-moved")
    (folder / "killed-and-moved").rename(tmp_path / "moved")
    outcome = run_conformance("run", "--resume", "moved", cwd=tmp_path)
    assert outcome.code == ExitCode.USAGE
    assert "begun with --target=target.yaml" in outcome.err
    assert f"conformance run --resume {tmp_path.resolve() / 'moved'}" in outcome.err
    assert (tmp_path / "moved" / "results.jsonl").read_text(encoding="utf-8").startswith("".join(kept))


def test_a_run_on_a_target_that_was_created_again_cannot_be_resumed(folder: Path) -> None:
    kept = killed_copy(folder, "killed-before")
    header = json.loads(kept[0])
    header["profile"]["actors"]["maintainer"]["id"] = 999
    record = folder / "killed-before" / "results.jsonl"
    record.write_text("".join([json.dumps(header) + "\n", *kept[1:]]), encoding="utf-8")
    before = record.read_bytes()
    outcome = run_conformance("run", "--resume", "killed-before", cwd=folder)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert "made anew since" in outcome.err
    assert "the maintainer had the id 999" in outcome.err
    assert record.read_bytes() == before


def test_a_killed_and_resumed_run_has_the_same_result(folder: Path) -> None:
    kept = killed_copy(folder, "killed")
    outcome = run_conformance("run", "--resume", "killed", cwd=folder)
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert verdicts(folder / "killed") == verdicts(folder / "whole")
    again = (folder / "killed" / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    settled = [line for line in kept if '"kind": "test"' in line and '"outcome": "passed"' in line]
    assert settled
    assert set(settled) <= set(again)  # with the times that they took in the killed run


def test_an_interrupt_at_the_beginning_of_a_resumed_run_costs_no_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results of the first part are written anew then."""
    killed_copy(folder, "killed-twice")
    before = (folder / "killed-twice" / "results.jsonl").read_bytes()

    def lines_until_interrupted(self: Part, tests: Collection[str]) -> Iterator[str]:
        yield from list(lines(self, tests))[:10]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        lines = Part.lines_of
        patched.setattr(Part, "lines_of", lines_until_interrupted)
        assert run_conformance("run", "--resume", "killed-twice", cwd=folder).code == ExitCode.INTERRUPTED
    assert (folder / "killed-twice" / "results.jsonl").read_bytes() == before
    outcome = run_conformance("run", "--resume", "killed-twice", cwd=folder)
    assert outcome.code == ExitCode.NON_CONFORMANT, outcome.text
    assert not list((folder / "killed-twice").glob("*.new"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("run", "--resume", "absent"), "There is no record"),
        (("run", "--resume", "whole", "--seed", "2"), "takes all options from the run"),
        (("run", "--shard", "1/2"), "--shard needs --seed"),
        (("run", "--shard", "3/2", "--seed", "1"), "--shard 1/4"),
        (("run", "--target", "target.yaml", "--shard", "3/3", "--seed", "1"), "worlds"),
        (("merge", "one", "one", "--out", "wrong"), "both shard 1/2"),
        (("merge", "one", "two", "--out", "one"), "would write over the record in one"),
        (
            ("run", "--target", "target.yaml", "--failed", "whole", "--out", "whole"),
            "would write over the record in whole",
        ),
        (("merge", "one", "whole", "--out", "wrong"), "not run with --shard"),
    ],
)
def test_parts_that_do_not_fit_are_refused_with_one_message(
    folder: Path, arguments: tuple[str, ...], word: str
) -> None:
    outcome = run_conformance(*arguments, cwd=folder)
    assert outcome.code == ExitCode.USAGE, outcome.text
    assert word in outcome.err
    assert not (folder / "wrong").exists()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"base_url": "http://other.example"}, "addresses"),
        ({"contract": "0" * 64}, "contracts"),
        ({"version": "17.6"}, "versions"),
        ({"seed": 2}, "seeds"),
        ({"shard": "2/3"}, "numbers of shards"),
        ({"subjects": ("service=gitCommit:" + "b" * 40,)}, "subjects"),
        ({"arguments": ("--read-only",)}, "--read-only"),
        ({"arguments": ("--max-examples=3",)}, "generated calls"),
    ],
)
def test_records_of_different_runs_are_not_merged(folder: Path, changed: dict[str, Any], word: str) -> None:
    one, two = (Part.of(folder / name) for name in ("one", "two"))
    other = replace(two, record=replace(two.record, header=replace(two.record.header, **changed)))
    with pytest.raises(UsageError, match=word):
        require_shards((one, other))


def test_the_embedded_reference_is_the_same_target_on_every_port(folder: Path) -> None:
    header = read_record(folder / "whole" / "results.jsonl").header
    reference = replace(header, version_source="the embedded reference")
    require_same_run("one", reference, "two", replace(reference, base_url="http://127.0.0.1:1"))


def test_shards_are_the_same_everywhere_of_about_equal_work_and_complete() -> None:
    tests = [f"tests/scenarios/test_{kind}.py::test_{number}" for kind in ("a_model", "b") for number in range(40)]
    parts = [part_of(tests, number, 3) for number in (1, 2, 3)]
    assert parts == [part_of(reversed(tests), number, 3) for number in (1, 2, 3)]
    assert sorted(test for part in parts for test in part) == sorted(tests)
    assert max(sum("model" in test for test in part) for part in parts) == 14


def test_the_longest_tests_start_first_by_measured_times() -> None:
    tests = [f"tests/test_{number}.py::test" for number in range(9)]
    order = in_order(tests, {name: float(number) for number, name in enumerate(tests)}, 2)
    assert [order.index(name) for name in (tests[8], tests[7], tests[6], tests[5])] == [0, 2, 4, 5]
    assert sorted(order) == tests


def test_each_worker_gets_consecutive_tests_if_all_take_equally_long() -> None:
    tests = [f"tests/contract/test_isolation.py::test[{number}]" for number in range(8)]
    assert in_order(tests, {}, 2)[4:] == [tests[1], tests[5], tests[2], tests[6]]
    seconds = {name: float(number) for number, name in enumerate(tests)}
    assert in_order(tests, seconds, 2) == in_order(tests, {}, 2)


def test_every_file_with_measured_work_exists_in_the_suite() -> None:
    files = [file.name for file in SUITE_FOLDER.rglob("test_*.py")]
    unknown = {end for end in weights_by_file() if not any(name.endswith(end) for name in files)}
    assert unknown == {"others"}
