"""Drawing: the same seed gives the same cases, fixtures are used as values, and no case calls another operation."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.provider_conformance import run_conformance_test

from conformance.contract import Contract, Operation, Version
from conformance.fuzzing.case_adapter import CaseAdapter, without_like_mistakes, without_repeated_queries
from conformance.fuzzing.cases import DrawnCase, without_small_steps
from conformance.fuzzing.choices import SeededChoices
from conformance.fuzzing.corpus import Budget, Corpus
from conformance.suite.arrange import ABSENT, Place
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.target.profile import Profile

VERSION = Version.parse("17.7")
BUDGET = Budget(seed=11, max_examples=20, seconds=60)

FIXTURES = {
    "project": {"id": 1001, "path": "group/project"},
    "fuzz_project": {"id": 1002, "path": "group/fuzz"},
    "allowlist_projects": [{"id": 1011}, {"id": 1012}, {"id": 1013}],
    "allowlist_groups": [{"id": 1021}, {"id": 1022}, {"id": 1023}],
}


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract.load()


@pytest.fixture
def corpus(contract: Contract, tmp_path: Path) -> Corpus:
    return Corpus(contract, VERSION, tmp_path / "corpus")


@pytest.fixture
def profile() -> Profile:
    data = {"base_url": "http://127.0.0.1:9", "actors": {"approver": {"token": "t", "id": 7}}, "fixtures": FIXTURES}
    return profile_from(data, "test")


def operation_named(contract: Contract, name: str) -> Operation:
    return next(operation for operation in contract.operations(VERSION) if operation.id == name)


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_the_same_seed_draws_the_same_cases(contract: Contract, tmp_path: Path, phase: str) -> None:
    operation = operation_named(contract, "addProjectToJobTokenAllowlist")
    first = Corpus(contract, VERSION, tmp_path / "one").cases(operation, phase, BUDGET)
    second = Corpus(contract, VERSION, tmp_path / "two").cases(operation, phase, BUDGET)
    assert [case.wire for case in first] == [case.wire for case in second]
    assert len(first) > 5


def test_another_process_with_other_modules_draws_the_same_cases(contract: Contract, tmp_path: Path) -> None:
    """Hypothesis also draws constants from loaded modules; a case must not depend on which modules were imported."""
    program = (
        "from pathlib import Path; from conformance.contract import Contract, Version; "
        "from conformance.fuzzing.corpus import Budget, Corpus; "
        "contract = Contract.load(); version = Version.parse('17.7'); "
        "operation = next(o for o in contract.operations(version) if o.id == 'updateJobTokenScope'); "
        "cases = Corpus(contract, version, Path('corpus')).cases("
        "operation, 'fuzz', Budget(11, 20, 60)); "
        "print([case.wire for case in cases])"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    operation = operation_named(contract, "updateJobTokenScope")
    here = Corpus(contract, VERSION, tmp_path / "here").cases(operation, "fuzz", BUDGET)
    assert elsewhere.stdout.strip() == str([case.wire for case in here])
    assert not (tmp_path / ".hypothesis").exists()
    assert not (tmp_path / ".schemathesis").exists()


def test_seeded_choices_are_a_valid_hypothesis_backend() -> None:
    run_conformance_test(SeededChoices, settings=settings(max_examples=50, database=None))


def test_another_seed_draws_other_cases(corpus: Corpus, contract: Contract) -> None:
    operation = operation_named(contract, "addProjectToJobTokenAllowlist")
    first = corpus.cases(operation, "fuzz", BUDGET)
    second = corpus.cases(operation, "fuzz", replace(BUDGET, seed=12))
    assert [case.wire for case in first] != [case.wire for case in second]


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_cases_can_be_drawn_for_every_operation(drawn: Any, phase: str) -> None:
    for operation, cases in drawn[phase].values():
        assert any(case.is_positive for case in cases), operation.id
        assert {case.method for case in cases} == {operation.method}
        assert not any(case.headers for case in cases)


def test_some_of_the_bodies_of_one_property_or_one_more_are_left_out(drawn: Any) -> None:
    _, cases = drawn["coverage"]["setUpIntegration"]
    kept = list(without_small_steps(cases))
    steps = [case for case in cases if case not in kept]
    assert len([case for case in steps if len(case.body) == 1]) > 30
    assert len([case for case in steps if len(case.body) > 1]) > 30
    assert all(case.is_positive for case in steps)
    bodies = [case.body for case in kept if case.is_positive]
    assert {name for body in bodies for name in body} >= {name for case in steps for name in case.body}
    assert max(len(body) for body in bodies) > max(len(case.body) for case in steps)


@pytest.mark.parametrize("name", ["listGroupApprovalRules", "downloadGroupRelationsExport"])
def test_each_wrong_value_in_a_query_is_sent_once(drawn: Any, name: str) -> None:
    operation, cases = drawn["coverage"][name]
    kept = without_repeated_queries(operation, cases)
    assert len(kept) < len(cases)
    wrong = [case for case in cases if not case.is_positive]
    # What is left out is in a call that is kept, and what is missing in a call is missing in a kept one.
    assert {pair for case in wrong for pair in case.query} == {
        pair for case in kept if not case.is_positive for pair in case.query
    }
    adapter = CaseAdapter(operation)
    diagnosed = [[adapter.diagnose(case).mutated for case in some] for some in (cases, kept)]
    assert set(diagnosed[0]) == set(diagnosed[1])


def test_each_property_of_a_type_gets_null_and_a_wrong_value_and_one_all_of_them(drawn: Any) -> None:
    operation, cases = drawn["coverage"]["setUpIntegration"]
    kept = without_like_mistakes(operation, cases)
    adapter = CaseAdapter(operation)

    def mistakes(listed: list[DrawnCase]) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for case in map(adapter.diagnose, listed):
            parameter = adapter.only_mistake(case)
            if parameter is not None:
                found.setdefault(parameter.name, set()).add(json.dumps(case.body[parameter.name]))
        return found

    before, after = mistakes(cases), mistakes(kept)
    of_type = {one.name: one.schema.get("type") for one in operation.parameters}
    switches = [name for name in before if of_type[name] == "boolean"]
    assert len(switches) > 20
    assert before.keys() == after.keys()
    assert after[switches[0]] == before[switches[0]]
    others = [after[name] - {"null"} for name in switches[1:]]
    assert all("null" in after[name] for name in switches)
    assert {len(values) for values in others} == {0, 1}
    assert set.union(*others) == before[switches[0]] - {"null"}
    next_time = mistakes(without_like_mistakes(operation, cases, seed=1))
    assert all(next_time[name] != after[name] for name in switches[1:])
    assert [case for case in kept if case.is_positive] == [case for case in cases if case.is_positive]


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_no_drawn_path_belongs_to_another_operation(drawn: Any, phase: str) -> None:
    for _, cases in drawn[phase].values():
        for case in cases:
            values = [value for _, value in case.path_values]
            assert all(value.strip() and value not in {".", ".."} and "/" not in value for value in values), case


def fitted(corpus: Corpus, operation: Operation, phase: str, place: Place) -> list[DrawnCase]:
    named = {each.name: place.value(each.fixture) for each in operation.path_parameters if each.fixture}
    return CaseAdapter(operation).fitted(corpus.cases(operation, phase, BUDGET), place, named)


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_ids_of_the_target_are_used_unless_they_are_wrong_on_purpose(
    corpus: Corpus, contract: Contract, profile: Profile, phase: str
) -> None:
    place = Place(profile, is_aside=True)
    operation = operation_named(contract, "addProjectToJobTokenAllowlist")
    cases = fitted(corpus, operation, phase, place)
    assert {dict(case.path_values)["id"] for case in cases} == {"1002"}
    right = [case for case in cases if case.is_positive]
    assert right
    assert {case.body["target_project_id"] for case in right} <= {1011, 1012, 1013}
    wrong = [case for case in cases if any(mutation.name == "target_project_id" for mutation in case.mutated)]
    assert wrong
    sent = [case.body.get("target_project_id") for case in wrong if isinstance(case.body, dict)]
    assert not any(isinstance(value, int) and value > 1000 for value in sent)


def test_a_wrong_path_value_stays_wrong(corpus: Corpus, contract: Contract, profile: Profile) -> None:
    operation = operation_named(contract, "removeProjectFromJobTokenAllowlist")
    cases = fitted(corpus, operation, "coverage", Place(profile))
    targets = {dict(case.path_values)["target_project_id"] for case in cases if not case.is_positive}
    assert targets
    assert "1011" not in targets
    assert {dict(case.path_values)["target_project_id"] for case in cases if case.is_positive} == {"1011"}


def test_each_call_is_drawn_once(corpus: Corpus, contract: Contract, profile: Profile) -> None:
    operation = operation_named(contract, "getJobTokenScope")
    cases = fitted(corpus, operation, "coverage", Place(profile))
    assert [case.path for case in cases] == ["/projects/1001/job_token_scope"]


@pytest.mark.parametrize("phase", ["coverage", "fuzz"])
def test_a_case_can_be_stored_and_loaded(drawn: Any, phase: str) -> None:
    for operation, cases in drawn[phase].values():
        for case in cases:
            assert DrawnCase.restored(operation, case.stored()) == case


def test_a_smaller_case_has_one_element_less() -> None:
    case = DrawnCase("x", "POST", "/x", query=(("a", "1"), ("b", "2")), body={"c": 1, "d": 2})
    assert [(smaller.query, smaller.body) for smaller in case.smaller()] == [
        ((("b", "2"),), {"c": 1, "d": 2}),
        ((("a", "1"),), {"c": 1, "d": 2}),
        ((("a", "1"), ("b", "2")), {"d": 2}),
        ((("a", "1"), ("b", "2")), {"c": 1}),
    ]
    assert list(replace(case, query=(), body=ABSENT).smaller()) == []
