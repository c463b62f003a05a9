"""The pure parts of the mutation job: what is drawn, what is changed, and what counts as found."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.proof import mutation
from conformance.proof.mutant_session import Changed, likeness
from conformance.proof.mutation import Fate, Mutant, Mutation, Told, drawn, fate_of, modules_of_the_reference, try_all
from conformance.results.record import Reason
from selftest.reports.report_samples import failed, left_open, passed, planned, record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Three places; one of them can be changed in many ways.
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


def test_the_same_seed_draws_the_same_sample() -> None:
    assert drawn(KNOWN, 2, seed=5) == drawn(KNOWN, 2, seed=5)


def test_another_seed_draws_another_sample() -> None:
    assert len({drawn(KNOWN, 1, seed) for seed in range(20)}) > 1


def test_a_place_is_drawn_once_even_if_it_can_be_changed_in_many_ways() -> None:
    assert {entry.line for entry in drawn(KNOWN, 3, seed=1)} == {10, 20, 30}
    assert len(drawn(KNOWN, 99, seed=1)) == 3


def test_areas_that_share_words_with_the_module_come_first() -> None:
    assert likeness("areas.merge_request_approval_rules", ["merge-request-approvals"]) == 3
    assert likeness("merge_request_approval_rules", ["integrations", "project-approval-rules"]) == 2
    assert likeness("meta", ["integrations"]) == 0
    assert likeness("meta", []) == 0


def test_a_changed_module_is_loaded_instead_of_its_file(module_of_its_own: Path) -> None:
    sys.meta_path.insert(0, Changed(module_of_its_own.stem, str(module_of_its_own), "VALUE = 2\n"))
    assert importlib.import_module(module_of_its_own.stem).VALUE == 2
    assert module_of_its_own.read_text(encoding="utf-8") == "VALUE = 1\n"


def test_other_modules_are_loaded_from_their_files(module_of_its_own: Path) -> None:
    sys.meta_path.insert(0, Changed("another_module", "another_module.py", "VALUE = 2\n"))
    assert importlib.import_module(module_of_its_own.stem).VALUE == 1


PLAN = (planned("scope.read"), planned("scope.switch"))
BOTH = frozenset({"scope.read", "scope.switch"})


def test_a_mutant_is_killed_by_the_first_check_that_fails() -> None:
    seen = record(*PLAN, checks=(passed("scope.read"), failed("scope.switch")))
    fate, by, reason = fate_of(seen, BOTH)
    assert (fate, by) == (Fate.KILLED, seen.checks[1].test)
    assert reason == "scope.switch: expected 204 without a body; got 204 with 20 bytes"


def test_a_mutant_that_leaves_something_unverified_did_not_survive() -> None:
    left = record(*PLAN, checks=(passed("scope.read"), left_open("scope.switch", Reason.PRECONDITION)))
    assert fate_of(left, BOTH)[:2] == (Fate.UNVERIFIED, "scope.switch")
    assert fate_of(left, frozenset({"scope.read"})) == (Fate.SURVIVED, "", "")


def test_every_module_of_the_reference_can_be_changed() -> None:
    assert {"access", "routing", "areas.integrations", "provisioning.tokens"} <= set(modules_of_the_reference())


def test_a_separate_session_finds_a_mutant_without_changing_files() -> None:
    file = mutation.file_of("areas.job_token_scope")
    before = file.read_text(encoding="utf-8")
    after = before.replace("inbound_enabled=enabled)", "inbound_enabled=not enabled)")
    assert after != before
    told: list[Told] = []
    mutant = Mutant(Mutation("areas.job_token_scope", "by hand", 0, 1, 0), after, "")
    try_all([mutant], "17.7", 1, lambda _, came: told.append(came), "--requirement=job-token-scope.switch.off")
    assert [one.fate for one in told] == [Fate.KILLED], told
    assert file.read_text(encoding="utf-8") == before


def test_the_message_about_a_missing_tool_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cosmic_ray.plugins", None)
    with pytest.raises(UsageError, match="extra `mutation`"):
        mutation.mutations_of("areas.integrations")


def test_annotations_are_not_changed() -> None:
    pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")
    lines = mutation.file_of("areas.job_token_scope").read_text(encoding="utf-8").splitlines()
    found = mutation.mutations_of("areas.job_token_scope")
    assert found
    assert not [entry for entry in found if "TYPE_CHECKING" in lines[entry.line - 1]]
    assert not [entry for entry in found if "BitOr" in entry.operator and "| None" in lines[entry.line - 1]]


def test_a_mutant_differs_from_its_module_and_is_valid_python() -> None:
    pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")
    [chosen] = [entry for entry in mutation.mutations_of("areas.meta") if entry.occurrence == 0][:1]
    mutant = mutation.mutant_of(chosen)
    assert mutant is not None
    assert "\n-" in mutant.difference
    assert "\n+" in mutant.difference
