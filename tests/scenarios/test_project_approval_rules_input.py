"""Approval rules of a project: special types, and input that is refused or ignored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from conformance.suite.arrange import ABSENT, INHERITED, UNUSED_ID
from conformance.suite.arrange.approval_rules import (
    FLAG,
    KNOWN_TYPES,
    UNHEARD_OF,
    attempt,
    by_id,
    given_owed,
    must_be_dropped_or_refused,
    must_stay,
    standing,
    standings,
)
from conformance.suite.arrange.reviews import (
    Rule,
    approvals_required,
    created,
    created_before_another,
    fresh_name,
    naming_only,
    numbers,
    rule_in,
    user_id,
)
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    left_to_others,
    must,
    must_be_as_before,
    observe,
    unchanged,
    verifies,
)


@dataclass(frozen=True)
class Unfit:
    """An object in place of a list: refused or ignored, so that it adds nothing."""

    create: str
    """Requirement that it adds nothing to a new rule."""
    update: str
    """Requirement that it adds nothing to a changed rule."""
    shown: dict[str, str]
    """Parameter -> the list of the rule that would show it."""


UNFIT = {
    "approvers": Unfit(
        "project-approval-rules.create.approvers-are-lists",
        "project-approval-rules.update.approvers-are-lists",
        {"user_ids": "users", "group_ids": "groups"},
    ),
    "protected-branches": Unfit(
        "project-approval-rules.create.protected-branches-are-a-list",
        "project-approval-rules.update.protected-branches-are-a-list",
        {"protected_branch_ids": "protected_branches"},
    ),
    "usernames": Unfit(
        "project-approval-rules.create.usernames-are-a-list",
        "project-approval-rules.update.usernames-are-a-list",
        {"usernames": "users"},
    ),
}


# -- special types -----------------------------------------------------------------------------------------------------


def test_types_that_come_from_elsewhere_are_created_or_refused_without_breaking(
    maintainer: Caller,
    spare_project_rules: Path,
) -> None:
    """Whether callers can make such rules is open, but they must not break the service."""
    created(maintainer, spare_project_rules)
    answer, made = attempt(maintainer, spare_project_rules, rule_type="any_approver")
    with verifies("project-approval-rules.create.any-approver", go_on=True):
        answer.must_not_break()
        types = [rule.get("rule_type") for rule in made]
        must(all(shown in KNOWN_TYPES for shown in types), f"one of {KNOWN_TYPES}", f"rule_type = {as_json(types)}")
    observe("project-approval-rules.create.any-approver-answer", f"creating such a rule is answered {answer.status}")
    left_to_others("project-approval-rules.update.answers-with-rule")  # unless there is such a rule
    for rule in [rule for rule in made if rule.get("rule_type") == "any_approver"][:1]:
        # A change has no parameter for the type, so a change to the current values keeps it.
        same = {name: rule.get(name) for name in ("name", "approvals_required")}
        changed = maintainer.put(spare_project_rules / rule["id"], same)
        if changed.is_served:
            with verifies("project-approval-rules.update.answers-with-rule", go_on=True):
                changed.must_hold(rule_type="any_approver")
    answer, _ = attempt(maintainer, spare_project_rules, rule_type="report_approver")
    with verifies("project-approval-rules.create.report-approver", go_on=True):
        answer.must_not_break()
    observe("project-approval-rules.create.report-approver-answer", f"creating such a rule is answered {answer.status}")
    with verifies("project-approval-rules.create.code-owner"):
        answer, made = attempt(maintainer, spare_project_rules, rule_type="code_owner")
        answer.must_not_break()
        types = [rule.get("rule_type") for rule in made]
        must("code_owner" not in types, "no rule of type code_owner", f"rule_type = {as_json(types)}")


@pytest.mark.parametrize(
    ("report", "noted"),
    [
        ("code_coverage", "project-approval-rules.create.report-type.code-coverage-answer"),
        ("license_scanning", "project-approval-rules.create.report-type.license-scanning-answer"),
    ],
    ids=["code-coverage", "license-scanning"],
)
def test_a_rule_about_a_report_may_be_created_or_refused(
    report: str, noted: str, maintainer: Caller, spare_project_rules: Path
) -> None:
    created(maintainer, spare_project_rules)
    with verifies("project-approval-rules.create.report-type"):
        special = {"rule_type": "report_approver", "report_type": report}
        answer, _ = attempt(maintainer, spare_project_rules, **special)
        answer.must_not_break()
    observe(
        noted,
        f"creating a rule about this report is answered {answer.status}",
    )


@pytest.mark.parametrize(
    ("requirement", "unknown"),
    [
        ("project-approval-rules.create.rule-type-is-known", {"rule_type": UNHEARD_OF}),
        ("project-approval-rules.create.rule-type-is-known", {"rule_type": INHERITED}),
        (
            "project-approval-rules.create.report-type-is-known",
            {"rule_type": "report_approver", "report_type": UNHEARD_OF},
        ),
        (
            "project-approval-rules.create.report-type-is-known",
            {"rule_type": "report_approver", "report_type": {UNHEARD_OF: "maybe"}},
        ),
    ],
    ids=["rule-type", "inherited-name-as-rule-type", "report-type", "object-as-report-type"],
)
def test_an_unknown_type_shows_in_no_rule(
    requirement: str, unknown: dict[str, object], maintainer: Caller, spare_project_rules: Path
) -> None:
    created(maintainer, spare_project_rules)
    with verifies(requirement):
        answer, made = attempt(maintainer, spare_project_rules, **unknown)
        must_be_dropped_or_refused(answer, made)
        # An answer may name the ignored part in a field of its own.
        types = [rule.get(name) for rule in made for name in ("rule_type", "report_type")]
        for word in (UNHEARD_OF, INHERITED):
            must(word not in json.dumps(types), f"no rule of the type {word}", json.dumps(types))


def test_another_type_in_a_change(maintainer: Caller, project_rules: Path) -> None:
    rule = created_before_another(maintainer, project_rules, rule_type="regular")
    body: dict[str, Any] = {"name": rule.get("name"), "approvals_required": 1, **naming_only(maintainer)}
    answer = maintainer.put(project_rules / rule["id"], {**body, "rule_type": "any_approver"})
    left_to_others("project-approval-rules.update.answers-with-rule")  # if it is refused
    if answer.is_served or answer.is_broken:
        with verifies("project-approval-rules.update.answers-with-rule", go_on=True):
            answer.must_be(200, 201).must_be_an(dict)
    shown = by_id(maintainer, project_rules, rule["id"]).rule.get("rule_type")
    observe(
        "project-approval-rules.update.rule-type-stays",
        f"a change of a regular rule that sends any_approver is answered {answer.status}; the rule is {shown} then",
    )


# -- values that cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_an_object_in_place_of_a_list_gives_a_new_rule_nothing(
    unfit: Unfit, maintainer: Caller, approver: Caller, project_rules: Path
) -> None:
    plain = created(maintainer, project_rules, user_ids=[user_id(approver)])
    with verifies(unfit.create):
        for parameter, shown in unfit.shown.items():
            # The named approvers are checked; otherwise somebody is named, because a rule for anybody may be refused.
            named = {} if shown == "users" else {"user_ids": [user_id(approver)]}
            sent = {parameter: inside_an_object(maintainer, parameter), **named}
            answer, made = attempt(maintainer, project_rules, **sent)
            must_be_dropped_or_refused(answer, made)
            for rule in made:
                must_add_nothing(shown, rule, plain)


@pytest.mark.parametrize("unfit", UNFIT.values(), ids=UNFIT)
def test_an_object_in_place_of_a_list_adds_nothing_to_a_rule(
    unfit: Unfit, maintainer: Caller, approver: Caller, project_rules: Path
) -> None:
    before = created_before_another(maintainer, project_rules, user_ids=[user_id(approver)])
    valid = {"name": before.get("name"), "approvals_required": 1}
    maintainer.put(project_rules / before["id"], {**valid, **naming_only(approver)}).given_served()
    with verifies(unfit.update):
        for parameter, shown in unfit.shown.items():
            # As it is read: whether a change is stored is a requirement of its own.
            number = approvals_required(by_id(maintainer, project_rules, before["id"]).rule)
            sent = {**naming_only(approver), parameter: inside_an_object(maintainer, parameter)}
            answer = maintainer.put(project_rules / before["id"], {**valid, **sent, "approvals_required": number + 1})
            must_be_dropped_or_refused(answer, [])
            now = by_id(maintainer, project_rules, before["id"])
            must_add_nothing(shown, now.rule, before)
            if answer.exchange.is_refusal:  # as a whole: no part of it is stored either
                now.must_hold(approvals_required=number)


def inside_an_object(caller: Caller, parameter: str) -> dict[str, object]:
    """Put an entry that would be right in a list into an object: the caller, whom rules may name, or some number."""
    actor = caller.actor
    right = {"user_ids": actor.id, "usernames": actor.username} if actor else {}
    return {UNHEARD_OF: right.get(parameter) or 1}


def must_add_nothing(shown: str, rule: Rule, plain: Rule) -> None:
    """Expect nothing in a list of a rule that is not in the same list of another one."""
    now, without = numbers(rule, shown), numbers(plain, shown)
    must(set(now or ()) <= set(without or ()), f"{shown} = {as_json(without)}", f"{shown} = {as_json(now)}")


NO_TRUTH_VALUES = ("maybe", {UNHEARD_OF: 1})


def test_what_is_no_truth_value_gives_a_new_rule_no_branches(maintainer: Caller, project_rules: Path) -> None:
    """Reading any value as true would extend the branches that a rule applies to."""
    right = {"approvals_required": 1, **naming_only(maintainer)}
    control = maintainer.post(project_rules, {"name": fresh_name(), **right, FLAG: False})
    given_owed(maintainer, FLAG in rule_in(control), f"{FLAG}, which came with 15.3")
    with verifies("project-approval-rules.create.applies-to-all-protected-branches-is-boolean"):
        for value in NO_TRUTH_VALUES:
            name = fresh_name()
            answer = maintainer.post(project_rules, {"name": name, **right, FLAG: value})
            answer.must_be_refused(beside=control)
            must(not maintainer.list(project_rules).having(name=name), "no new rule", f"a rule named {name}")


@pytest.mark.parametrize(
    ("requirement", "parameter"),
    [
        ("project-approval-rules.update.applies-to-all-protected-branches-is-boolean", FLAG),
        ("project-approval-rules.update.remove-hidden-groups-is-boolean", "remove_hidden_groups"),
    ],
    ids=["applies-to-all-protected-branches", "remove-hidden-groups"],
)
def test_what_is_no_truth_value_changes_no_rule(
    requirement: str, parameter: str, maintainer: Caller, approver: Caller, project_rules: Path
) -> None:
    """What is sent beside the value would change every other part of the rule."""
    rule = created_before_another(maintainer, project_rules)
    given_owed(maintainer, parameter != FLAG or FLAG in rule, f"{FLAG}, which came with 15.3")
    body: dict[str, Any] = {"name": rule.get("name"), "approvals_required": 1, **naming_only(maintainer)}
    control = maintainer.put(project_rules / rule["id"], {**body, parameter: False})
    before = standing(by_id(maintainer, project_rules, rule["id"]).rule)
    with verifies(requirement):
        for value in NO_TRUTH_VALUES:
            other = {"name": fresh_name(), "approvals_required": 3, **naming_only(approver)}
            answer = maintainer.put(project_rules / rule["id"], {**other, parameter: value})
            answer.must_be_refused(beside=control)
            after = standing(by_id(maintainer, project_rules, rule["id"]).rule)
            must_be_as_before("the rule", before, after)


# -- rules and projects that do not exist ------------------------------------------------------------------------------


def test_a_number_that_is_none_names_no_rule(maintainer: Caller, project_rules: Path) -> None:
    number = created(maintainer, project_rules)["id"]
    body = {"name": fresh_name(), "approvals_required": 1, **naming_only(maintainer)}
    control = maintainer.put(project_rules / number, body)
    before = standings(maintainer, project_rules)
    with verifies("project-approval-rules.read.rule-id-is-integer", go_on=True):
        maintainer.get(project_rules / "abc").must_be_refused(beside=maintainer.get(project_rules / number))
    with verifies("project-approval-rules.update.rule-id-is-integer", go_on=True):
        # With another name, because the rule has this one by now.
        maintainer.put(project_rules / "abc", {**body, "name": fresh_name()}).must_be_refused(beside=control)
        must_stay(maintainer, project_rules, before)
    before = standings(maintainer, project_rules)  # the second call is not to blame for what the first has changed
    with verifies("project-approval-rules.delete.rule-id-is-integer"):
        # There is no such rule afterwards, which a service may treat as success.
        maintainer.delete(project_rules / "abc").must_not_break()
        must_stay(maintainer, project_rules, before)


def test_a_rule_that_the_project_does_not_have(maintainer: Caller, project_rules: Path) -> None:
    number = created(maintainer, project_rules)["id"]
    body = {"name": fresh_name(), "approvals_required": 1, **naming_only(maintainer)}
    control = maintainer.put(project_rules / number, body)
    with verifies("project-approval-rules.read.unknown-rule", go_on=True):
        maintainer.get(project_rules / UNUSED_ID).must_be_refused(beside=maintainer.get(project_rules / number))
    with (
        verifies("project-approval-rules.update.unknown-rule", go_on=True),
        unchanged(lambda: standings(maintainer, project_rules), "the rules"),
    ):
        # With another name, because the rule has this one by now.
        other = {**body, "name": fresh_name()}
        maintainer.put(project_rules / UNUSED_ID, other).must_be_refused(beside=control)
    with (
        verifies("project-approval-rules.delete.unknown-rule"),
        unchanged(lambda: standings(maintainer, project_rules), "the rules"),
    ):
        unknown = maintainer.delete(project_rules / UNUSED_ID).must_not_break()
    observe(
        "project-approval-rules.delete.unknown-rule-answer",
        f"deleting a rule that the project does not have is answered {unknown.status}",
    )
    # The number of a deleted rule must not be found afterwards.
    maintainer.delete(project_rules / number).given_served()
    with verifies("project-approval-rules.update.unknown-rule"):
        maintainer.list(project_rules).given_without(id=number)
        with unchanged(lambda: standings(maintainer, project_rules), "the rules"):
            maintainer.put(project_rules / number, body).must_be_refused(beside=control)


def test_every_operation_refuses_a_project_that_does_not_exist(maintainer: Caller, project_rules: Path) -> None:
    """The answer to a deletion there is open, as long as nothing breaks."""
    rule = created(maintainer, project_rules)
    body = {"approvals_required": 1, **naming_only(maintainer)}
    calls: tuple[tuple[str, str, Any], ...] = (
        ("GET", "", ABSENT),
        ("POST", "", {**body, "name": fresh_name()}),
        ("GET", f"/{rule['id']}", ABSENT),
        ("PUT", f"/{rule['id']}", {**body, "name": fresh_name()}),
    )
    elsewhere = f"/projects/{UNUSED_ID}/approval_rules"
    with verifies("project-approval-rules.unknown-project"):
        for method, below, sent in calls:
            control = maintainer.call(method, f"{project_rules}{below}", json=sent)
            maintainer.call(method, f"{elsewhere}{below}", json=sent).must_be_refused(beside=control)
        maintainer.delete(f"{elsewhere}/{rule['id']}").must_not_break()
        by_id(maintainer, project_rules, rule["id"]).must_hold(id=rule["id"])
