"""Approval rules of a merge request: their origin, which of them nobody can change, and what separates them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_rules import by_id
from conformance.suite.arrange.reviews import (
    approvals_required,
    created,
    created_named,
    essence,
    essences,
    fresh_name,
    merge_request_path,
    must_be_in_the_state_as_listed,
    must_become,
    must_leave_the_state,
    naming,
    naming_only,
    rule_in,
    settled,
    state_of,
    user_id,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import (
    Caller,
    Listing,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    must_be_as_before,
    named_otherwise,
    observe,
    project_path,
    unchanged,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from conformance.suite import Fixture

Rule = dict[str, Any]

OVERWRITTEN = "approval_rules_overwritten"


# -- copying a project rule --------------------------------------------------------------------------------------------


@pytest.fixture
def project_rule(maintainer: Caller, project: Fixture, approver: Caller, approver_group: Fixture) -> Iterator[Rule]:
    """A rule of the project, for all branches, with the approvers and the groups that the profile gives for that."""
    path, profile = project_path(project) / "approval_rules", current_run().profile
    more = profile.actors.get("second_approver")
    groups = [approver_group.id, *(one.id for one in profile.fixtures.get("second_approver_group", ())[:1])]
    users = [user_id(approver), *([more.id] if more is not None and more.id is not None else [])]
    approvers = {"user_ids": users, "group_ids": groups}
    with rules_put_back(maintainer, path):
        yield created(maintainer, path, approvals_required=1, **approvers)


@pytest.mark.requirements(
    "merge-request-approvals.rules.update.answer",
    "merge-request-approvals.rules.update.name",
    "merge-request-approvals.rules.update.approvals-required",
    "merge-request-approvals.rules.create.in-state",
    "merge-request-approvals.state.overwritten",
)
@pytest.mark.calls_area("project-approval-rules")
def test_a_copy_takes_everything_but_the_number_from_the_project_rule(
    merge_request_rules: Path,
    project_rule: Rule,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
    second_approver: Caller,
    project: Fixture,
) -> None:
    """A change of the copy must not change the rule that every other merge request follows."""
    source = project_path(project) / "approval_rules" / project_rule["id"]
    original = essence(maintainer.read(source))
    sent = {"approval_project_rule_id": project_rule["id"], "name": fresh_name(), "approvals_required": 4}
    state_of(maintainer, Path(merge_request_rules.rpartition("/")[0]))  # read before, and again with the copy
    copy = rule_in(maintainer.post(merge_request_rules, sent))
    with verifies("merge-request-approvals.rules.create.listed", go_on=True):
        maintainer.list(merge_request_rules).must_contain(id=copy["id"])
    alone = maintainer.get(merge_request_rules / copy["id"])
    with verifies("merge-request-approvals.rules.read-one", go_on=True):
        alone.must_be(200).must_hold(id=copy["id"])
    copied = essence(rule_in(alone))
    with verifies("merge-request-approvals.rules.copy.name", go_on=True):
        names = [copy.get("name"), copied["name"]]
        must(names == [original["name"]] * 2, f"name = {original['name']}, in the answer as well", as_json(names))
    with verifies("merge-request-approvals.rules.copy.users", go_on=True):
        given(user_id(approver) in original["users"], "the project rule does not name the approver")
        must(copied["users"] == original["users"], f"users = {original['users']}", as_json(copied["users"]))
    with verifies("merge-request-approvals.rules.copy.groups", go_on=True):
        given(approver_group.id in original["groups"], "the project rule does not name the group")
        must(copied["groups"] == original["groups"], f"groups = {original['groups']}", as_json(copied["groups"]))
    with verifies("merge-request-approvals.rules.copy.approvals-required", go_on=True):
        told = [copy.get("approvals_required"), copied["approvals_required"]]
        must(told == [4, 4], "approvals_required = 4, in the answer as well", as_json(told))
    with verifies("merge-request-approvals.rules.create.in-state", go_on=True):
        must_be_in_the_state_as_listed(maintainer, merge_request_rules)  # with its groups, which a change removes
    others = sorted([user_id(second_approver), user_id(maintainer)])  # several, so that none joins the former ones
    a_copy_is_changed_like_any_other_rule(maintainer, merge_request_rules, copy["id"], others)
    with verifies("merge-request-approvals.rules.copy.leaves-project-rule", go_on=True):
        now = essence(maintainer.read(source))
        must(now == original, f"the project rule as before: {original}", as_json(now))
    with verifies("merge-request-approvals.rules.update.users-are-replaced"):
        must_name_in_the_end(maintainer, merge_request_rules / copy["id"], others)
        # Whether a copy is changed or deleted with its source is open; a surviving copy stays the same.
        if maintainer.delete(source).is_served and copy["id"] in maintainer.list(merge_request_rules).ids():
            must_name_in_the_end(maintainer, merge_request_rules / copy["id"], others)
            first = {"user_ids": sorted([user_id(approver), user_id(maintainer)]), "group_ids": []}
            maintainer.put(merge_request_rules / copy["id"], first).must_be_served()
            must_name_in_the_end(maintainer, merge_request_rules / copy["id"], first["user_ids"])


def a_copy_is_changed_like_any_other_rule(maintainer: Caller, path: Path, number: int, users: list[int]) -> None:
    change = {"name": fresh_name(), "approvals_required": 5, "user_ids": users, "group_ids": []}
    changed = maintainer.put(path / number, change)
    with verifies("merge-request-approvals.rules.update.answer"):
        if not changed.is_served:  # as many approvals as that may be too many for any rule that names one user
            own = created(maintainer, path, user_ids=users)
            maintainer.put(path / own["id"], {**change, "name": fresh_name()}).given_served()
        changed.must_be(200, 201)
    stored = by_id(maintainer, path, number)
    with verifies("merge-request-approvals.rules.update.name", go_on=True):
        changed.must_hold(name=change["name"])
        stored.must_hold(name=change["name"])
    with verifies("merge-request-approvals.rules.update.approvals-required", go_on=True):
        changed.must_hold(approvals_required=change["approvals_required"])
        stored.must_hold(approvals_required=change["approvals_required"])
    with verifies("merge-request-approvals.rules.create.in-state", go_on=True):
        must_be_in_the_state_as_listed(maintainer, path)
    with verifies("merge-request-approvals.state.overwritten", go_on=True):
        review = Path(path.rpartition("/")[0])
        must_become(
            lambda: state_of(maintainer, review).get(OVERWRITTEN),
            lambda told: told is True,
            f"{OVERWRITTEN} = true",
        )


@pytest.mark.calls_area("project-approval-rules")
def test_a_copy_asks_for_the_number_that_was_sent_though_its_source_asks_for_more(
    merge_request_rules: Path,
    project_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """It may be refused; if not, it has that number. Whether whoever is named beside the source is added is open."""
    more = created(maintainer, project_rules, approvals_required=3, user_ids=[user_id(approver)])
    users = [user_id(second_approver)]
    change = {"name": fresh_name(), "approvals_required": 3, "user_ids": users, "group_ids": []}
    maintainer.put(project_rules / more["id"], change).given_served()
    sent = {"approval_project_rule_id": more["id"], "name": fresh_name(), "approvals_required": 2, **naming(maintainer)}
    answer = maintainer.post(merge_request_rules, sent)
    if answer.exchange.is_refusal:
        left_to_others()
        return
    with verifies("merge-request-approvals.rules.copy.approvals-required"):
        shown = essence(maintainer.read(merge_request_rules / rule_in(answer)["id"]))
        must(shown["approvals_required"] == 2, "approvals_required = 2", as_json(shown["approvals_required"]))
    named = settled(lambda: essence(maintainer.list(project_rules).the(id=more["id"]))["users"], wanted=users)
    given(named == users, "the source does not name whom it was changed to")
    with verifies("merge-request-approvals.rules.copy.users"):
        is_right = {*users} <= {*shown["users"]} and user_id(approver) not in shown["users"]
        must(is_right, f"users {users}, as its source has by now", as_json(shown["users"]))


def must_name_in_the_end(reader: Caller, rule: Path, users: list[int]) -> None:
    must_become(
        lambda: essence(reader.read(rule))["users"],
        lambda found: bool(found == users),
        f"users {users} in {rule}",
    )


@pytest.mark.calls_area("project-approval-rules")
def test_a_copy_needs_its_own_number(
    merge_request_rules: Path, project_rule: Rule, maintainer: Caller, project: Fixture
) -> None:
    """It goes alone, and leaves the rule that it was copied from."""
    rules = project_path(project) / "approval_rules"
    original = essence(maintainer.list(rules).the(id=project_rule["id"]))
    sent = {"approval_project_rule_id": project_rule["id"], "name": fresh_name()}
    with verifies("merge-request-approvals.rules.copy.approvals-required-stays-required"):
        # The list may show each project rule, and a copy may replace the shown one, which is shown again afterwards.
        with unchanged(lambda: maintainer.list(merge_request_rules).ids(), "the rules"):
            refused = maintainer.post(merge_request_rules, sent)
        # As many approvals as its source, because the merge request has a rule of its own anyway.
        control = maintainer.post(merge_request_rules, {**sent, "approvals_required": 1})
        with verifies("merge-request-approvals.state.overwritten", go_on=True):
            control.given_served()
            must_become(
                lambda: state_of(maintainer, Path(merge_request_rules.rpartition("/")[0])).get(OVERWRITTEN),
                lambda told: told is True,
                f"{OVERWRITTEN} = true",
            )
        maintainer.delete(merge_request_rules / rule_in(control)["id"]).given_served()
        again = maintainer.post(merge_request_rules, {**sent, "approvals_required": 1})
        if again.is_served:
            maintainer.delete(merge_request_rules / rule_in(again)["id"])
        with verifies("merge-request-approvals.rules.copy.leaves-project-rule", go_on=True):
            listed = maintainer.list(rules).must_contain(id=project_rule["id"])
            must_be_as_before("the project rule", original, essence(listed.the(id=project_rule["id"])))
        refused.must_be_refused(beside=control)


@pytest.mark.calls_area("project-approval-rules")
def test_how_a_copy_without_a_name_is_answered(
    merge_request_rules: Path, project_rule: Rule, maintainer: Caller
) -> None:
    answer = maintainer.post(
        merge_request_rules, {"approval_project_rule_id": project_rule["id"], "approvals_required": 4}
    )
    observe(
        "merge-request-approvals.rules.copy.without-name",
        f"creating a copy of a project rule without a name answers {answer.status}",
    )


@pytest.mark.calls_area("project-approval-rules")
def test_a_copy_of_a_rule_that_goes_meanwhile_names_whom_it_named(
    merge_request_rules: Path,
    project_rules: Path,
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
) -> None:
    """A late copy may be refused; one that is served has the approvers of its source."""
    left_to_others()  # if each copy is refused
    for _ in range(ROUNDS):
        source = created(maintainer, project_rules, user_ids=[user_id(approver)])
        sent = {"approval_project_rule_id": source["id"], "name": fresh_name(), "approvals_required": 1}
        copy, _ = at_once(
            partial(maintainer.post, merge_request_rules, sent), partial(owner.delete, project_rules / source["id"])
        )
        if copy.is_served:
            with verifies("merge-request-approvals.rules.copy.users"):
                shown, wanted = (essence(rule)["users"] for rule in (rule_in(copy), source))
                must(shown == wanted, f"users = {as_json(wanted)}", as_json(shown), copy.exchange)


@pytest.mark.calls_area("project-approval-rules")
def test_copying_a_project_rule_that_does_not_exist_breaks_nothing(
    merge_request_rules: Path,
    project_rule: Rule,
    maintainer: Caller,
    project: Fixture,
) -> None:
    sent = {"name": fresh_name(), "approvals_required": 4}
    with verifies("merge-request-approvals.rules.copy.unknown-project-rule"):
        maintainer.post(merge_request_rules, {**sent, "approval_project_rule_id": project_rule["id"]}).given_served()
        unknown = maintainer.post(merge_request_rules, {**sent, "approval_project_rule_id": UNUSED_ID}).must_not_break()
        must(unknown.is_served or unknown.exchange.is_refusal, "a rule or a refusal", as_json(unknown.status))
        with suppress(Unmet, NotTested):  # other tests report a rule that cannot be deleted
            source = project_path(project) / "approval_rules" / project_rule["id"]
            maintainer.delete(source).given_served()
            is_gone = settled(lambda: maintainer.get(source).exchange.is_refusal, wanted=True)
            given(is_gone, "the project rule is shown after it was deleted")
            # The number of a deleted rule must not be found afterwards.
            gone = maintainer.post(merge_request_rules, {**sent, "approval_project_rule_id": project_rule["id"]})
            gone.must_not_break()
            made = rule_in(gone).get("name") if gone.is_served else None
            must(made != project_rule["name"], "no copy of a rule that was deleted", f"name = {made}", gone.exchange)
    observe(
        "merge-request-approvals.rules.copy.unknown-project-rule-answer",
        f"copying a project rule that does not exist answers {unknown.status}",
    )


def strange_rule(maintainer: Caller, path: Path, known: Collection[Any], approver: Caller) -> Rule | None:
    """Make a rule whose number no project rule has; if each place counts separately, the first numbers are taken."""
    for _ in range(len(known) + 1):
        rule = created(maintainer, path, user_ids=[user_id(approver)])
        if rule["id"] not in known:
            return rule
    return None


@pytest.mark.calls_area("project-approval-rules")
def test_no_rule_but_one_of_the_project_is_copied(
    merge_request_rules: Path,
    project_rule: Rule,
    project: Fixture,
    sibling_project: Fixture,
    maintainer: Caller,
    approver: Caller,
) -> None:
    """A rule of another project or of the merge request itself is no project rule, whatever its number."""
    sent, theirs = {"name": fresh_name(), "approvals_required": 2}, project_path(sibling_project) / "approval_rules"
    with rules_put_back(maintainer, theirs):
        maintainer.post(merge_request_rules, {**sent, "approval_project_rule_id": project_rule["id"]}).given_served()
        known = maintainer.list(project_path(project) / "approval_rules").ids()
        found = [strange_rule(maintainer, path, known, approver) for path in (theirs, merge_request_rules)]
        foreign = [rule for rule in found if rule is not None]
        given(bool(foreign), "whatever number a rule elsewhere has, a rule of the project has it too")
        with verifies("merge-request-approvals.rules.copy.unknown-project-rule"):
            for rule in foreign:
                answer = maintainer.post(merge_request_rules, {**sent, "approval_project_rule_id": rule["id"]})
                answer.must_not_break()
                made = essence(rule_in(answer)) if answer.is_served else {"name": None, "users": []}
                is_copy = made["name"] == rule["name"] or user_id(approver) in made["users"]
                must(not is_copy, "no copy of what is no rule of the project", as_json(made), answer.exchange)
        left_to_others("project-approval-rules.projects-are-separate")  # unless the profile knows a third project
        listed = rules_of_a_third_project(maintainer, project, sibling_project)
        if listed is not None:
            with verifies("project-approval-rules.projects-are-separate"):
                names = [rule["name"] for rule in foreign]
                found = [rule.get("name") for rule in listed.entries if isinstance(rule, dict)]
                must(not set(names) & set(found), f"none of the rules {names}", as_json(found))


def rules_of_a_third_project(maintainer: Caller, *others: Fixture) -> Listing | None:
    """Return the rules of the project that requires passwords, if it is none of the others: it may be beside one."""
    there = current_run().profile.first("password_merge_request")
    number = there.get("project_id") if there is not None else None
    if number is None or number in {other.id for other in others}:
        return None
    with suppress(Unmet):
        return maintainer.list(Path(f"/projects/{number}") / "approval_rules")
    return None


# -- separate merge requests -------------------------------------------------------------------------------------------


def test_rules_of_one_merge_request_leave_those_of_another(
    merge_request_rules: Path,
    other_merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
) -> None:
    theirs = created(maintainer, other_merge_request_rules, user_ids=[user_id(approver)])
    more = current_run().profile.fixtures.get("second_merge_request", ())[:1]
    others = [other_merge_request_rules, *(merge_request_path(project, one) / "approval_rules" for one in more)]
    with (
        verifies("merge-request-approvals.rules.are-separate"),
        unchanged(lambda: [essences(maintainer, rules) for rules in others], "the rules of other merge requests"),
    ):
        rule = created_named(maintainer, merge_request_rules, theirs["name"], user_ids=[user_id(second_approver)])
        for name in (theirs["name"], fresh_name()):  # a name that the other one has may be refused
            change = {"name": name, "approvals_required": 5, **naming_only(second_approver)}
            answer = maintainer.put(merge_request_rules / rule["id"], change)
        answer.given_served()
        # With these it equals the other one, which must follow neither the next change nor the deletion.
        equal = {"approvals_required": theirs["approvals_required"], **naming_only(approver)}
        maintainer.put(merge_request_rules / rule["id"], equal).given_served()
        maintainer.put(merge_request_rules / rule["id"], change).given_served()
    for rules in others:  # what counts is what the state shows
        with suppress(Unmet), verifies("merge-request-approvals.rules.are-separate", go_on=True):
            must_leave_the_state(maintainer, Path(rules.rpartition("/")[0]), (rule["id"], change["name"]))
    with (
        verifies("merge-request-approvals.rules.are-separate"),
        unchanged(lambda: [essences(maintainer, rules) for rules in others], "the rules of other merge requests"),
    ):
        maintainer.put(merge_request_rules / rule["id"], equal).given_served()
        for each in (created(maintainer, merge_request_rules, user_ids=[user_id(second_approver)]), rule):
            maintainer.delete(merge_request_rules / each["id"]).given_served()


@pytest.mark.calls_area("project-approval-rules")
def test_copies_in_two_merge_requests_are_rules_of_their_own(
    merge_request_rules: Path,
    other_merge_request_rules: Path,
    project_rule: Rule,
    maintainer: Caller,
    project: Fixture,
) -> None:
    """The other one is made by the path of the project."""
    sent = {"approval_project_rule_id": project_rule["id"], "name": fresh_name()}
    by_path = named_otherwise(other_merge_request_rules, project, maintainer)
    one, other = (
        rule_in(maintainer.post(rules, {**sent, "approvals_required": number}))
        for rules, number in ((merge_request_rules, 5), (by_path, 4))
    )
    with verifies("merge-request-approvals.rules.copy.name", go_on=True):
        names = [other.get("name"), essences(maintainer, other_merge_request_rules).get(other["id"], {}).get("name")]
        must(names == [project_rule["name"]] * 2, f"name = {project_rule['name']}, in the list as well", as_json(names))
    original, copied = essence(project_rule), essence(maintainer.read(other_merge_request_rules / other["id"]))
    with verifies("merge-request-approvals.rules.copy.users", go_on=True):
        must(copied["users"] == original["users"], f"users = {original['users']}", as_json(copied["users"]))
    with verifies("merge-request-approvals.rules.copy.groups", go_on=True):
        must(copied["groups"] == original["groups"], f"groups = {original['groups']}", as_json(copied["groups"]))
    with verifies("merge-request-approvals.rules.copy.approvals-required", go_on=True):
        must_become(
            lambda: essences(maintainer, other_merge_request_rules).get(other["id"], {}).get("approvals_required"),
            lambda found: bool(found == 4),
            "approvals_required = 4 in the second copy",
        )
    with (
        verifies("merge-request-approvals.rules.are-separate"),
        unchanged(lambda: essences(maintainer, other_merge_request_rules).get(other["id"]), "the other copy"),
    ):
        # It keeps the name, which the other rule has too: a lookup by name would hit both.
        change = {"approvals_required": 5, "user_ids": [], "group_ids": []}
        changed = maintainer.put(merge_request_rules / one["id"], change)
        if changed.exchange.is_refusal:  # it may be gone since the other one was made
            maintainer.list(merge_request_rules).must_contain(id=one["id"])
        changed.given_served()
        maintainer.delete(merge_request_rules / one["id"]).given_served()


# -- rules that the system makes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule_type", "cannot_be_updated", "cannot_be_deleted"),
    [
        (
            "code_owner",
            "merge-request-approvals.rules.code-owner.cannot-be-updated",
            "merge-request-approvals.rules.code-owner.cannot-be-deleted",
        ),
        (
            "report_approver",
            "merge-request-approvals.rules.report-approver.cannot-be-updated",
            "merge-request-approvals.rules.report-approver.cannot-be-deleted",
        ),
    ],
    ids=["code-owner", "report-approver"],
)
def test_a_rule_of_the_system_can_be_neither_updated_nor_deleted(
    rule_type: str,
    cannot_be_updated: str,
    cannot_be_deleted: str,
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
    project: Fixture,
    request: pytest.FixtureRequest,
) -> None:
    """Beside it, there is a rule of the merge request's own, which can be changed. The project is named both ways."""
    merge_request: Fixture = request.getfixturevalue(f"{rule_type}_merge_request")
    path = merge_request_path(project, merge_request) / "approval_rules"
    with rules_put_back(maintainer, path):
        own = created(maintainer, path, user_ids=[user_id(approver)])
        system = maintainer.list(path).the(rule_type=rule_type)
        # More than it requires, at each run, because what may become stricter changes too.
        more = approvals_required(system) + 4
        change = {"name": fresh_name(), "approvals_required": more, "user_ids": [user_id(approver)], "group_ids": []}
        by_path = named_otherwise(path, project, maintainer)

        def rule() -> Rule | None:
            return essences(maintainer, path).get(system["id"])

        with verifies(cannot_be_updated, go_on=True), unchanged(rule, "the rule"):
            # Alone as well, because a check of one value may let the other pass.
            alone = ({name: value} for name, value in change.items() if name in ("name", "approvals_required"))
            ways = ((path, change), *((by_path, sent) for sent in alone))
            answers = [maintainer.put(way / system["id"], sent) for way, sent in ways]
            control = maintainer.put(path / own["id"], change)
            for answer in answers:
                answer.must_be_refused(beside=control)
        with verifies(cannot_be_deleted), unchanged(rule, "the rule"):
            refused = [maintainer.delete(path / system["id"]), owner.delete(by_path / system["id"])]
            control = maintainer.delete(path / own["id"])
            for answer in refused:
                answer.must_be_refused(beside=control)
