"""Drawn cases from run to run: what is replayed and what is not. The state of the folder never costs a result."""

from __future__ import annotations

import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract, Operation, Version
from conformance.errors import UsageError
from conformance.fuzzing.cases import DrawnCase
from conformance.fuzzing.corpus import FAILED_AT_MOST, FOLDER, Budget, Corpus, corpus_folder, shape
from conformance.reference.parameters import Parameters
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

pytestmark = pytest.mark.usefixtures("inside_this_process")

VERSION = Version.parse("17.7")
FIRST, SECOND, THIRD = (Budget(seed, 4, 10.0) for seed in (1, 2, 3))


class Numbered(Corpus):
    """A corpus that draws a given number of integers for its own operation and seed."""

    def _drawn(self, operation: Operation, phase: str, budget: Budget) -> list[DrawnCase]:
        return [case_of(operation, f"{phase} {budget.seed} {number}") for number in range(budget.max_examples)]


def case_of(operation: Operation, body: Any) -> DrawnCase:
    path_values = tuple((parameter.name, "1") for parameter in operation.parameters if parameter.place == "path")
    return DrawnCase(operation.id, operation.method, operation.path, path_values, body=body)


def bodies(cases: Any) -> list[Any]:
    return [case.body for case in cases]


@pytest.fixture(scope="module")
def operation() -> Operation:
    return next(each for each in Contract.load().operations(VERSION) if each.id == "updateJobTokenScope")


@pytest.fixture
def night(tmp_path: Path) -> Callable[..., Numbered]:
    """A run that knows of other runs only what is in the folder."""

    def new(version: Version = VERSION) -> Numbered:
        return Numbered(Contract.load(), version, tmp_path / "corpus")

    return new


def age(folder: Path, days: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (path.stat().st_mtime - 86400 * days,) * 2)


def test_another_seed_replays_some_cases_of_the_last_one_and_adds_new_ones(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    assert night().draw(operation, FIRST).earlier == ()
    draw = night().draw(operation, SECOND)
    assert bodies(draw.fresh) == [f"fuzz 2 {number}" for number in range(4)]
    assert bodies(draw.earlier) == ["fuzz 1 0"]
    assert bodies(draw.cases) == bodies([*draw.fresh, *draw.earlier])


def test_of_many_runs_the_newest_are_replayed_up_to_a_quarter_of_the_new_cases(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    for days, budget in ((2, FIRST), (1, SECOND)):
        night().draw(operation, budget)
        age(night().folder or Path(), days)
    assert {body.split()[1] for body in bodies(night().draw(operation, THIRD).earlier)} == {"2"}
    few = night().draw(operation, Budget(4, 8, 10.0))
    assert bodies(few.earlier) == ["fuzz 3 0", "fuzz 3 2"]


def test_a_given_seed_sends_what_it_drew_before_and_nothing_else(
    night: Callable[..., Numbered], operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    night().draw(operation, FIRST)
    drawn = night().draw(operation, SECOND, with_earlier=False)
    night().keep_failed(operation, drawn.fresh[:1])
    monkeypatch.setattr(Numbered, "_drawn", None)
    assert night().draw(operation, SECOND, with_earlier=False) == drawn
    assert (drawn.earlier, drawn.failed) == ((), ())


def test_what_failed_once_is_sent_first_by_every_later_run_and_only_once(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    failing = night().draw(operation, FIRST).fresh[2]
    night().keep_failed(operation, [failing])
    for budget in (SECOND, THIRD, FIRST):
        draw = night().draw(operation, budget)
        assert draw.failed == (failing,)
        assert draw.cases[0] == failing
        assert bodies(draw.cases).count(failing.body) == 1
        assert draw.counts["replayed"] == 1 + len(draw.earlier)


def test_the_latest_of_the_failed_cases_are_kept(night: Callable[..., Numbered], operation: Operation) -> None:
    night().keep_failed(operation, [case_of(operation, "old")])
    age(night().folder or Path(), 1)
    night().keep_failed(operation, [case_of(operation, number) for number in range(FAILED_AT_MOST)])
    kept = bodies(night().draw(operation, FIRST).failed)
    assert len(kept) == FAILED_AT_MOST
    assert "old" not in kept


def test_cases_that_differ_only_in_a_property_named_like_prose_are_two(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    night().keep_failed(operation, [case_of(operation, {"title": title}) for title in ("a", "b")])
    assert len(night().draw(operation, FIRST).failed) == 2


def test_another_version_replays_nothing_of_this_one(night: Callable[..., Numbered], operation: Operation) -> None:
    night().keep_failed(operation, night().draw(operation, FIRST).fresh)
    draw = night(Version.parse("18.0")).draw(operation, SECOND)
    assert (draw.earlier, draw.failed) == ((), ())


def test_without_a_folder_nothing_is_kept(
    operation: Operation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for budget in (FIRST, SECOND):
        corpus = Numbered(Contract.load(), VERSION, None)
        draw = corpus.draw(operation, budget)
        corpus.keep_failed(operation, draw.fresh)
        assert draw.counts == {"coverage": 0, "fresh": 4, "replayed": 0, "failed_before": 0}
    assert not list(tmp_path.iterdir())


def test_through_a_gateway_few_cases_are_sent_at_most_half_of_them_failed_ones(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    night().draw(operation, Budget(1, 40, 10.0))
    night().keep_failed(operation, [case_of(operation, f"failed {number}") for number in range(20)])
    draw = night().draw(operation, Budget(2, 40, 10.0)).rationed(8)
    assert (len(draw.failed), len(draw.fresh), len(draw.earlier)) == (4, 4, 0)


def test_old_draws_are_removed_and_files_of_others_stay(night: Callable[..., Numbered], operation: Operation) -> None:
    folder = night().folder or Path()
    (folder / "17.7" / "fuzz-notes").mkdir(parents=True)
    for seed in range(30):
        night().draw(operation, Budget(seed, 1, 10.0))
    names = {path.name for path in (folder / "17.7").iterdir()}
    assert "fuzz-notes" in names
    assert len(names) == 21


# -- shape -------------------------------------------------------------------------------------------------------------


def changed(operation: Operation, change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(json.dumps(operation.document))
    change(document)
    return shape(replace(operation, document=document))


def body_schema(document: dict[str, Any], operation: Operation) -> dict[str, Any]:
    node = document["paths"][operation.path][operation.method.lower()]
    name = node["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema: dict[str, Any] = document["components"]["schemas"][name]
    return schema


def test_changed_descriptions_and_responses_keep_the_corpus(operation: Operation) -> None:
    def reword(document: dict[str, Any]) -> None:
        node = document["paths"][operation.path][operation.method.lower()]
        node["summary"] = node["description"] = "Other words."
        node["responses"]["299"] = {"description": "Another answer."}
        node["x-authorization"] = {}
        for schema in body_schema(document, operation)["properties"].values():
            schema["description"] = "Other words."
        document["info"]["description"] = "Other words."
        document["components"]["schemas"]["Unused"] = {"type": "string"}

    assert changed(operation, reword) == changed(operation, lambda _: None) == shape(operation)


@pytest.mark.parametrize("name", ["description", "title", "anything"])
def test_another_property_of_the_request_makes_another_corpus(operation: Operation, name: str) -> None:
    def extend(document: dict[str, Any]) -> None:
        body_schema(document, operation)["properties"][name] = {"type": "string"}

    assert changed(operation, extend) != shape(operation)


def test_a_parameter_behind_a_reference_belongs_to_the_shape(operation: Operation) -> None:
    def narrow(document: dict[str, Any]) -> None:
        document["components"]["parameters"]["ProjectId"]["schema"] = {"type": "integer"}

    assert changed(operation, narrow) != shape(operation)


def test_another_shape_replays_nothing_of_the_old_one(night: Callable[..., Numbered], operation: Operation) -> None:
    night().keep_failed(operation, night().draw(operation, FIRST).fresh)
    document = json.loads(json.dumps(operation.document))
    body_schema(document, operation)["required"] = []
    draw = night().draw(replace(operation, document=document), SECOND)
    assert (draw.earlier, draw.failed) == ((), ())


# -- the folder --------------------------------------------------------------------------------------------------------


ODD_CASE = '{"form": 2, "cases": [{"path": [["%s", "%s"]], "query": [], "positive": %s, "description": ""}]}'
DAMAGED = {
    "cut off": '{"form": 2, "cases": [{"path"',
    "not text": b"\xff\xfe\x00".decode("latin-1"),
    "something else": "[1, 2]",
    "too deep": "[" * 100_000,
    "the call of another path": ODD_CASE % ("id", "..", "true"),
    "the call of another operation": ODD_CASE % ("other", "1", "true"),
    "neither right nor wrong": ODD_CASE % ("id", "1", "7"),
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_costs_one_message_and_is_drawn_again(
    night: Callable[..., Numbered], operation: Operation, content: str
) -> None:
    drawn = night().draw(operation, FIRST)
    night().keep_failed(operation, drawn.fresh[:1])
    for file in (night().folder or Path()).rglob("*.json"):
        file.write_text(content, encoding="latin-1")
    damaged = night()
    assert damaged.draw(operation, FIRST) == drawn
    assert damaged.warning is not None
    assert "2 stored files left out" in damaged.warning
    assert night().draw(operation, FIRST, with_earlier=False) == drawn


def test_cases_in_an_older_format_are_drawn_again_without_a_message(
    night: Callable[..., Numbered], operation: Operation
) -> None:
    drawn = night().draw(operation, FIRST)
    for file in (night().folder or Path()).rglob("*.json"):
        file.write_text('{"form": 1, "cases": "of another form"}', encoding="utf-8")
    corpus = night()
    assert corpus.draw(operation, FIRST) == drawn
    assert corpus.warning is None


def test_a_folder_that_cannot_be_written_to_costs_one_message(operation: Operation, tmp_path: Path) -> None:
    (tmp_path / "corpus").write_text("in the way", encoding="utf-8")
    corpus = Numbered(Contract.load(), VERSION, tmp_path / "corpus")
    assert len(corpus.draw(operation, FIRST).cases) == 4
    corpus.keep_failed(operation, [case_of(operation, 1)])
    assert corpus.warning is not None
    assert corpus.warning.count("could be stored") == 1


def test_a_full_disk_leaves_no_partial_file(
    night: Callable[..., Numbered], operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    night().draw(operation, FIRST)
    write = Path.write_text

    def half(path: Path, text: str, **more: Any) -> int:
        write(path, text[: len(text) // 2], **more)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", half)
    corpus = night()
    draw = corpus.draw(operation, SECOND)
    assert (len(draw.fresh), len(draw.earlier)) == (4, 1)
    assert "No space left" in (corpus.warning or "")
    files = [file for file in (night().folder or Path()).rglob("*") if file.is_file()]
    assert all(file.suffix != ".tmp" for file in files)
    assert [len(json.loads(file.read_text())["cases"]) for file in files if file.suffix == ".json"] == [4]


def test_runs_at_the_same_time_share_a_folder(night: Callable[..., Numbered], operation: Operation) -> None:
    corpora = [night() for _ in range(6)]
    ready = threading.Barrier(len(corpora))
    drawn: list[int] = []

    def work(corpus: Numbered) -> None:
        ready.wait()
        for seed in range(5):
            corpus.keep_failed(operation, corpus.draw(operation, Budget(seed, 4, 10.0)).fresh[:1])
            drawn.append(seed)

    threads = [threading.Thread(target=work, args=(corpus,)) for corpus in corpora]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 30
    assert [corpus.warning for corpus in corpora] == [None] * 6
    assert {body.split()[1] for body in bodies(night().draw(operation, THIRD).failed)} == {"0", "1", "2", "3", "4"}
    assert not list((night().folder or Path()).rglob("*.tmp"))


def test_a_folder_with_other_content_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds something else than drawn cases, such as precious\.txt"):
        corpus_folder(str(tmp_path))
    with pytest.raises(UsageError, match="is no folder"):
        corpus_folder(str(tmp_path / "precious.txt"))
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_an_empty_folder_a_new_one_and_an_own_one_are_accepted(
    night: Callable[..., Numbered], operation: Operation, tmp_path: Path
) -> None:
    assert corpus_folder(str(tmp_path)) == tmp_path
    night().draw(operation, FIRST)
    assert corpus_folder(str(tmp_path / "corpus")) == tmp_path / "corpus"
    assert corpus_folder(str(tmp_path / "new")) == tmp_path / "new"
    assert (corpus_folder("none"), corpus_folder(None)) == (None, FOLDER)


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_next_run_sends_failed_cases_first_and_the_report_says_so(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_profile(*reference)

    def run() -> tuple[Any, dict[str, int]]:
        asked = ("--target", "target.yaml", "--out", "out", "--max-examples", "6", "--corpus", "nights")
        outcome = conformance("run", *asked, "--", "-k", "test_fuzz and updateJobTokenScope")
        report = report_of(tmp_path / "out")
        return outcome, report["run"]["drawn"]

    with monkeypatch.context() as broken:
        broken.delattr(Parameters, "boolean")
        outcome, drawn = run()
        assert outcome.code == 1, outcome.text
        assert (drawn["replayed"], drawn["failed_before"]) == (0, 0)
    outcome, drawn = run()
    assert outcome.code == 6, outcome.text
    assert drawn["failed_before"] > 0
    assert drawn["replayed"] + drawn["fresh"] <= 12
    assert f"{drawn['failed_before']} of which had failed before" in outcome.out
