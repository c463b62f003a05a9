"""Features of a target: which exist, what a profile declares, and the message if it forgets one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.contract import Contract, Version
from conformance.errors import UsageError
from conformance.http.client import Client
from conformance.results.plan import SuiteTest, make_plan
from conformance.results.record import Reason
from conformance.runner.collection import all_tests
from conformance.target.embedded import profile_data
from conformance.target.names import FEATURES, PRESUMED
from conformance.target.preflight import undeclared
from conformance.target.profile_file import profile_from

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.results.record import PlannedRequirement
    from conformance.target.profile import Profile

READING = "project-approval-configuration.record.settings"
WITHOUT_NAME = "project-approval-rules.update.name-is-required"


def profile(version: str = "17.7", **features: bool) -> Profile:
    data = {"base_url": "http://127.0.0.1:9", "version": version, "actors": {}, "fixtures": {}, "features": features}
    return profile_from(data, "target.yaml")


def planned(name: str, found: Profile) -> PlannedRequirement:
    """Plan a requirement that one test verifies."""
    area = name.partition(".")[0]
    plan = make_plan(Contract.load(), found, [SuiteTest("test", frozenset({name}), area, frozenset({area}))])
    return next(row for row in plan.requirements if row.id == name)


def test_every_feature_of_the_contract_can_be_declared() -> None:
    contract = Contract.load()
    named = {name for entry in contract.requirements.values() for name in (entry.feature, entry.eased_by) if name}
    named |= {operation.feature for operation in contract.operations(None) if operation.feature}
    assert named <= FEATURES.keys()
    assert PRESUMED.keys() <= FEATURES.keys()


def test_a_misspelt_feature_is_an_error() -> None:
    with pytest.raises(UsageError, match="Did you mean 'group_approval_rules'"):
        profile(group_aproval_rules=True)


@pytest.mark.parametrize(
    ("version", "features", "declared"),
    [
        ("17.7", {}, True),
        ("17.7", {"approval_configuration": False}, False),
        ("unknown", {"approval_configuration": False}, False),
        ("15.9", {"approval_configuration": False}, True),
    ],
)
def test_the_configuration_must_exist_unless_it_is_declared_absent_where_allowed(
    version: str, features: dict[str, bool], *, declared: bool
) -> None:
    found = profile(version, **features)
    assert found.declares("approval_configuration") is declared
    assert planned(READING, found).status == ("applicable" if declared else "not applicable")


#: Fixtures that no target can have without a feature; whether a project has completions can be seen without one.
NEEDS = {
    "password_merge_request": "password_approval",
    "policy_project": "approval_policies",
    "policy_group": "approval_policies",
    "report_approver_merge_request": "approval_policies",
    "hidden_group": "hidden_groups",
    "rules_group": "group_approval_rules",
    "branch_rule_group": "group_branch_rules",
    "code_owner_merge_request": "code_owner_rules",
}


@pytest.mark.parametrize("version", ["12.3", "15.2", "17.7", "19.0"])
def test_without_a_feature_no_test_uses_fixtures_that_depend_on_it(version: str) -> None:
    """Otherwise, what else such a test verifies would stay open on a target that need not have the feature."""
    contract, found = Contract.load(), profile(version, **dict.fromkeys(FEATURES, False))
    plan = make_plan(contract, found, all_tests(contract, Version.parse(version)).values())
    asked = {test.id: test.fixtures & NEEDS.keys() for test in plan.tests.values()}
    assert {name for name, fixtures in asked.items() if fixtures} == set()
    assert {*NEEDS.values()} <= FEATURES.keys()


def test_only_what_is_claimed_counts_as_hidden_from_outside() -> None:
    hidden = "job-token-scope.inbound-access"
    assert planned(hidden, profile()).reason is Reason.NOT_OBSERVABLE
    elsewhere = replace(profile(), scope=("integrations",))
    assert planned(hidden, elsewhere).reason is Reason.OUT_OF_SCOPE


def test_part_of_a_feature_does_not_exist_without_the_feature() -> None:
    assert profile(group_approval_rules=True).declares("group_branch_rules")
    assert not profile(group_approval_rules=True, group_branch_rules=False).declares("group_branch_rules")
    assert not profile(group_approval_rules=False).declares("group_branch_rules")


def test_fixtures_of_a_kind_of_integration_that_the_target_lacks_are_not_missing() -> None:
    assert not profile().has_given_up("chat_app_integration")
    assert profile(chat_app_integration=False).has_given_up("installed_chat_app_integration")
    only_here = profile(installed_chat_app_integration=False)
    assert only_here.has_given_up("installed_chat_app_integration")
    assert not only_here.has_given_up("chat_app_integration")
    assert not profile(chat_app_integration=False).has_given_up("project")


def test_another_reading_of_the_text_turns_a_violation_into_a_warning() -> None:
    assert planned(WITHOUT_NAME, profile()).level == "must"
    assert planned(WITHOUT_NAME, profile(partial_rule_updates=True)).level == "should"


def test_a_feature_that_exists_without_being_declared_is_reported(reference: tuple[Service, str]) -> None:
    service, base_url = reference
    known = profile_from(profile_data(service.world, base_url, "17.7"), "target.yaml")
    hidden = replace(known, features={"approval_configuration": False}, version=Version.parse("17.7"))
    with Client(hidden.client_settings()) as client:
        texts = undeclared(hidden, client)
    features = ("approval_configuration", "group_approval_rules", "member_roles")
    assert [feature in text for feature, text in zip(features, texts, strict=True)] == [True, True, True]
    with Client(known.client_settings()) as client:
        assert undeclared(known, client) == ()
