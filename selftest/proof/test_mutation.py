"""The pure parts of the mutation job: what is drawn, what is changed, and what counts as seen."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.proof import mutation
from conformance.proof.mutation import Changed, Mutation, Seen, drawn, likeness
from conformance.reference import areas
from conformance.results.record import Check, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

# Three places, one of them with many ways to change it.
KNOWN = (
    Mutation("notes", "AddNot", 0, 10, 4),
    *(Mutation("notes", f"Compare{number}", 0, 20, 8) for number in range(7)),
    Mutation("notes", "NumberReplacer", 3, 30, 12),
)


@pytest.fixture
def module_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    file = tmp_path / "changed_by_a_test.py"
    file.write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield file
    sys.modules.pop(file.stem, None)


def check(requirement: str, outcome: Outcome, *, claimed: bool = True) -> Check:
    return Check(requirement=requirement, test="t", outcome=outcome, claimed=claimed)


def test_the_same_seed_draws_the_same_sample() -> None:
    assert drawn(KNOWN, 2, seed=5) == drawn(KNOWN, 2, seed=5)


def test_another_seed_draws_another_sample() -> None:
    assert len({drawn(KNOWN, 1, seed) for seed in range(20)}) > 1


def test_a_place_is_drawn_once_however_many_ways_there_are_to_change_it() -> None:
    assert {entry.line for entry in drawn(KNOWN, 3, seed=1)} == {10, 20, 30}
    assert len(drawn(KNOWN, 99, seed=1)) == 3


def test_tests_of_an_area_with_words_of_the_module_come_first() -> None:
    assert likeness("merge_request_approval_rules", ["merge-request-approvals"]) == 3
    assert likeness("merge_request_approval_rules", ["integrations", "project-approval-rules"]) == 2
    assert likeness("meta", ["integrations"]) == 0
    assert likeness("meta", []) == 0


def test_a_changed_module_is_loaded_in_place_of_its_file(module_of_its_own: Path) -> None:
    sys.meta_path.insert(0, Changed(module_of_its_own.stem, str(module_of_its_own), "VALUE = 2\n"))
    assert importlib.import_module(module_of_its_own.stem).VALUE == 2
    assert module_of_its_own.read_text(encoding="utf-8") == "VALUE = 1\n"


def test_other_modules_are_left_to_their_files(module_of_its_own: Path) -> None:
    sys.meta_path.insert(0, Changed("another_module", "another_module.py", "VALUE = 2\n"))
    assert importlib.import_module(module_of_its_own.stem).VALUE == 1


def test_a_requirement_that_one_test_leaves_open_is_not_verified_by_another() -> None:
    seen = Seen()
    seen.add("a", [check("x", Outcome.PASSED), check("y", Outcome.PASSED)], 0.1)
    seen.add("b", [check("y", Outcome.INCONCLUSIVE)], 0.1)
    assert seen.verified == {"x"}


def test_what_was_only_seen_in_passing_is_not_verified() -> None:
    seen = Seen()
    seen.add("a", [check("x", Outcome.PASSED, claimed=False), check("y", Outcome.PASSED)], 0.1)
    assert seen.verified == {"y"}


def test_a_tool_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cosmic_ray.plugins", None)
    with pytest.raises(UsageError, match="extra `mutation`"):
        mutation.mutations_of("notes")


def test_annotations_are_no_places_to_change() -> None:
    pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")
    lines = (Path(areas.__path__[0]) / "job_token_scope.py").read_text(encoding="utf-8").splitlines()
    found = mutation.mutations_of("job_token_scope")
    assert found
    assert not [entry for entry in found if "TYPE_CHECKING" in lines[entry.line - 1]]
    assert not [entry for entry in found if "BitOr" in entry.operator and "| None" in lines[entry.line - 1]]


def test_a_mutant_differs_from_its_module_and_is_python() -> None:
    pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")
    [chosen] = [entry for entry in mutation.mutations_of("meta") if entry.occurrence == 0][:1]
    mutant = mutation.mutant_of(chosen)
    assert mutant is not None
    assert "\n-" in mutant.difference
    assert "\n+" in mutant.difference
