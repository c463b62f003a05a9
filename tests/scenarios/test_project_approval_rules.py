"""Approval rules of a project: what is created, how it is read, and what changes nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.approval_rules import (
    FLAG,
    approvers_by_turns,
    asked_by_default,
    by_id,
    given_owed,
    in_answer,
    in_list,
    must_name_the_same,
    must_stay,
    others_of,
    pages_of,
    project_rules_path,
    standing,
)
from conformance.suite.arrange.reviews import (
    created,
    created_before_another,
    endless_name,
    fresh_name,
    must_be_created_unless_it_is_the_second,
    naming,
    naming_only,
    numbers,
    rule_in,
    unusual_name,
    user_id,
    username,
)
from conformance.suite.context import Unmet, current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    left_to_others,
    must,
    named_otherwise,
    observe,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture


# -- creation ----------------------------------------------------------------------------------------------------------


def test_a_created_rule_is_answered_read_and_listed(maintainer: Caller, project_rules: Path) -> None:
    with suppress(Unmet):
        created(maintainer, project_rules, **approvers_by_turns()[0])
    before = others_of(maintainer, project_rules)
    # Which characters a name may have, and how large the number may be, is open; what is accepted is stored.
    for name, number in ((endless_name(), 9), (unusual_name(), 3), (fresh_name(), 3)):
        body = {"name": name, "approvals_required": number}
        answer = maintainer.post(project_rules, {**body, **naming(maintainer)})
        if answer.is_served:
            break
    with verifies("project-approval-rules.create.answers-with-rule", go_on=True):
        answer.must_be(200, 201).must_be_an(dict)
    with verifies("project-approval-rules.create.values", go_on=True):
        answer.given_served().must_hold(**body)
    made = rule_in(answer)["id"]
    with verifies("project-approval-rules.create.readable", go_on=True):
        by_id(maintainer, project_rules, made).must_hold(id=made, **body)
    with verifies("project-approval-rules.create.listed", go_on=True):
        maintainer.list(project_rules).must_contain_once(id=made, **body)
        must(made not in before, "an id that the list did not have before", f"id = {made}")
    with verifies("project-approval-rules.create.leaves-other-rules"):
        must_stay(maintainer, project_rules, before)


def test_a_name_and_a_number_are_enough(maintainer: Caller, project_rules: Path) -> None:
    with verifies("project-approval-rules.create.minimal"):
        answer = maintainer.post(project_rules, {"name": fresh_name(), "approvals_required": 1})
        rule = must_be_created_unless_it_is_the_second(maintainer, project_rules, answer)
    observe(
        "project-approval-rules.create.rule-type-unsent",
        f"a rule created without rule_type is of type {rule.get('rule_type')}"
        if answer.is_served
        else "a rule created without rule_type is refused where it names nobody and there is one for any approver",
    )
    listed = "no branch" if numbers(rule, "protected_branches") == [] else "branches that were not sent"
    observe(
        "project-approval-rules.create.protected-branch-ids.unsent",
        f"a rule created without protected_branch_ids shows {listed}",
    )


def test_a_new_rule_takes_nothing_from_the_one_before(
    maintainer: Caller, project_rules: Path, approver: Caller, approver_group: Fixture
) -> None:
    """What a rule names whose call does not say so is open; what the call before it said is no reason."""
    left_to_others()  # if a rule that names no user is refused
    known = [current_run().profile.first(name) for name in ("protected_branch", "second_protected_branch")]
    one, other = ([branch.id] if branch is not None else [] for branch in known)
    alone = {"approvals_required": 1, "group_ids": [approver_group.id]}
    created(maintainer, project_rules, user_ids=[user_id(approver)], protected_branch_ids=one)
    first = maintainer.post(project_rules, {"name": fresh_name(), **alone})
    created(maintainer, project_rules, user_ids=[user_id(maintainer)], protected_branch_ids=other)
    again = maintainer.post(project_rules, {"name": fresh_name(), **alone})
    if first.is_served and again.is_served:
        both = rule_in(first)["id"], rule_in(again)["id"]
        with verifies("project-approval-rules.create.user-ids", go_on=True):
            must_name_the_same(maintainer, project_rules, *both, "users")
        if one:  # or no call names a branch, which another rule could take over
            with verifies("project-approval-rules.create.protected-branch-ids"):
                must_name_the_same(maintainer, project_rules, *both, "branches")


def test_a_rule_holds_for_every_protected_branch_only_if_asked_to(maintainer: Caller, project_rules: Path) -> None:
    rule = created(maintainer, project_rules)
    given_owed(maintainer, FLAG in rule, f"{FLAG}, which came with 15.3")
    with verifies("project-approval-rules.create.applies-to-all-protected-branches.default"):
        must(rule.get(FLAG) is False, f"{FLAG} = false", f"{FLAG} = {rule.get(FLAG, 'nothing')}")
        by_id(maintainer, project_rules, rule["id"]).must_hold(**{FLAG: False})


def test_the_flag_for_all_protected_branches_is_taken_by_creation_and_change(
    maintainer: Caller, project: Fixture, project_rules: Path
) -> None:
    """Back to false as well: a flag that can only be switched on is not really accepted. On again by the path."""
    sent = {"name": fresh_name(), "approvals_required": 1, **naming_only(maintainer)}
    answer = maintainer.post(project_rules, {**sent, FLAG: True})
    rule = rule_in(answer)
    given_owed(maintainer, FLAG in rule, f"{FLAG}, which came with 15.3")
    body: dict[str, Any] = {"name": rule.get("name"), "approvals_required": 1, **naming_only(maintainer)}
    stored = by_id(maintainer, project_rules, rule["id"])
    with verifies(
        "project-approval-rules.versions.applies-to-all-protected-branches",
        "project-approval-rules.create.applies-to-all-protected-branches.stored",
    ):
        in_answer(answer).must_hold(**{FLAG: True})
        stored.must_hold(**{FLAG: True})
        off = created(maintainer, project_rules, **{FLAG: False})
        by_id(maintainer, project_rules, off["id"]).must_hold(**{FLAG: False})
    with verifies(
        "project-approval-rules.versions.applies-to-all-protected-branches",
        "project-approval-rules.update.applies-to-all-protected-branches",
    ):
        by_path = named_otherwise(project_rules, project, maintainer)
        for rules, wanted in ((project_rules, False), (by_path, True), (project_rules, False)):
            changed = maintainer.put(rules / rule["id"], {**body, FLAG: wanted}).must_be_served()
            in_answer(changed).must_hold(**{FLAG: wanted})
            stored.must_hold(**{FLAG: wanted})
        maintainer.put(project_rules / rule["id"], body).must_be_served()  # keeps it off, or means its default
        stored.must_hold(**{FLAG: False})


def test_all_protected_branches_outweigh_single_ones(
    maintainer: Caller,
    project: Fixture,
    project_rules: Path,
    protected_branch: Fixture,
) -> None:
    """Which branches such a rule shows is open, but it applies to every one. It is created by the path."""
    beside = created(maintainer, project_rules)
    given_owed(maintainer, FLAG in beside, f"{FLAG}, which came with 15.3")
    both = {"name": fresh_name(), "approvals_required": 1, FLAG: True, "protected_branch_ids": [protected_branch.id]}
    with verifies("project-approval-rules.create.applies-to-all-protected-branches.over-branch-ids"):
        by_path = named_otherwise(project_rules, project, maintainer)
        answer = maintainer.post(by_path, {**both, **naming_only(maintainer)}).must_be_served()
        in_answer(answer).must_hold(**{FLAG: True})
        by_id(maintainer, project_rules, rule_in(answer)["id"]).must_hold(**{FLAG: True})
    rule = created(maintainer, project_rules)
    with verifies("project-approval-rules.update.applies-to-all-protected-branches.over-branch-ids"):
        change = {**both, "name": rule["name"], **naming_only(maintainer)}
        changed = maintainer.put(project_rules / rule["id"], change).must_be_served()
        in_answer(changed).must_hold(**{FLAG: True})
        by_id(maintainer, project_rules, rule["id"]).must_hold(**{FLAG: True})
    with verifies("project-approval-rules.update.applies-to-all-protected-branches", go_on=True):
        # Each rule has its own: neither the one that has it nor the one without it follows the changed one.
        by_id(maintainer, project_rules, beside["id"]).must_hold(**{FLAG: beside[FLAG]})
        # The branches that a rule applied to before do not matter.
        maintainer.put(project_rules / rule["id"], {**change, FLAG: False}).must_be_served()
        by_id(maintainer, project_rules, rule["id"]).must_name_only(protected_branches=[protected_branch.id])
    created(maintainer, project_rules, **{FLAG: True})
    with verifies("project-approval-rules.update.applies-to-all-protected-branches"):
        # Several rules may apply to every branch.
        by_id(maintainer, project_rules, rule_in(answer)["id"]).must_hold(**{FLAG: True})


def test_a_rule_holds_for_the_branches_it_was_created_with(
    maintainer: Caller,
    project_rules: Path,
    protected_branch: Fixture,
) -> None:
    with verifies("project-approval-rules.create.protected-branch-ids"):
        rule = created(maintainer, project_rules, protected_branch_ids=[protected_branch.id])
        shown = numbers(rule, "protected_branches")
        must(
            shown == [protected_branch.id], f"protected_branches {[protected_branch.id]} in the answer", as_json(shown)
        )
        by_id(maintainer, project_rules, rule["id"]).must_name_only(protected_branches=[protected_branch.id])
    if FLAG in rule:  # switched off, it is as if it was not sent
        with verifies("project-approval-rules.create.protected-branch-ids"):
            off = created(maintainer, project_rules, protected_branch_ids=[protected_branch.id], **{FLAG: False})
            by_id(maintainer, project_rules, off["id"]).must_name_only(protected_branches=[protected_branch.id])
    other = current_run().profile.first("second_protected_branch") or protected_branch
    with verifies("project-approval-rules.create.leaves-other-rules"):
        # A rule neither gets the branches of a later one, nor loses those that both have.
        created(maintainer, project_rules, protected_branch_ids=[*dict.fromkeys((protected_branch.id, other.id))])
        by_id(maintainer, project_rules, rule["id"]).must_name_only(protected_branches=[protected_branch.id])


def test_single_branches_leave_the_flag_for_all_of_them_off(
    maintainer: Caller,
    project_rules: Path,
    protected_branch: Fixture,
) -> None:
    rule = created(maintainer, project_rules, protected_branch_ids=[protected_branch.id])
    given_owed(maintainer, FLAG in rule, f"{FLAG}, which came with 15.3")
    with verifies("project-approval-rules.create.protected-branch-ids.keep-the-flag-off"):
        by_id(maintainer, project_rules, rule["id"]).must_hold(**{FLAG: False})


@pytest.mark.requirements(
    "project-approval-rules.rule.fields",
    "project-approval-rules.rule.contains-hidden-groups",
    "project-approval-rules.rule.rule-type",
    "project-approval-rules.rule.eligible-approvers",
    "project-approval-rules.rule.users",
    "project-approval-rules.rule.groups",
    "project-approval-rules.rule.protected-branches",
    "project-approval-rules.update.group-ids",
)
def test_users_and_groups_that_are_sent_become_approvers_of_the_rule(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    """If numbers are in the answer but not stored, nobody could approve."""
    users, groups = [user_id(approver)], [approver_group.id]
    answer = maintainer.post(
        project_rules,
        {
            "name": fresh_name(),
            "approvals_required": 1,
            "rule_type": "regular",
            "user_ids": users,
            "group_ids": groups,
        },
    )
    stored = by_id(maintainer, project_rules, rule_in(answer)["id"])
    with verifies("project-approval-rules.create.user-ids", go_on=True):
        in_answer(answer).must_name(users=users)
        stored.must_name(users=users)
    with verifies("project-approval-rules.create.group-ids", go_on=True):
        in_answer(answer).must_name(groups=groups)
        stored.must_name(groups=groups)
    with verifies("project-approval-rules.create.rule-type", go_on=True):
        in_answer(answer).must_hold(rule_type="regular")
        stored.must_hold(rule_type="regular")
    left_to_others("project-approval-rules.create.applies-to-all-protected-branches.default")  # unless rules have it
    if FLAG in stored.rule:
        with verifies("project-approval-rules.create.applies-to-all-protected-branches.default", go_on=True):
            stored.must_hold(**{FLAG: False})
    left_to_others("project-approval-rules.update.group-ids")  # unless groups are known, one inside the other
    inner = current_run().profile.first("subgroup")
    if inner is not None and inner.id is not None:
        groups_inside_each_other_approve_for_themselves(maintainer, project_rules, users, inner.id)


def groups_inside_each_other_approve_for_themselves(
    maintainer: Caller, path: Path, users: list[int], inner: int
) -> None:
    """Whether an inner group may approve is open; but no other group may approve in its place."""
    body = {"name": fresh_name(), "approvals_required": 1, "user_ids": users, "group_ids": [inner]}
    within = maintainer.post(path, body)
    if not within.is_served:
        return
    named = numbers(rule_in(within), "groups")
    with verifies("project-approval-rules.create.group-ids"):
        must(set(named or ()) <= {inner}, f"no group but {inner}", as_json(named), within.exchange)
    others = [current_run().profile.first(name) for name in ("group", "inner_group")]  # around it, and beside it
    known = [one.id for one in others if one is not None and one.id is not None and named == [inner]]
    for one in known:
        both = maintainer.post(path, {**body, "name": fresh_name(), "group_ids": [one, inner]})
        shown = numbers(rule_in(both), "groups") if both.is_served else None
        if shown and one in shown:  # each is taken by itself
            with verifies("project-approval-rules.create.group-ids"):
                must(inner in shown, f"the groups {[one, inner]}", as_json(shown), both.exchange)
    for sent, other in [(both, one) for one in known for both in ([one, inner], [inner, one])]:
        changed = maintainer.put(path / rule_in(within)["id"], {**body, "group_ids": sent})
        shown = numbers(rule_in(changed), "groups") if changed.is_served else None
        # It existed and was sent: that another one is added removes no group.
        if shown and other in shown:
            with verifies("project-approval-rules.update.group-ids"):
                must(inner in shown, f"the groups {sent}", as_json(shown), changed.exchange)


@pytest.mark.requirements("project-approval-rules.rule.applies-to-all-protected-branches")
def test_every_rule_says_whether_it_holds_for_all_protected_branches(maintainer: Caller, project_rules: Path) -> None:
    given_owed(maintainer, FLAG in created(maintainer, project_rules), f"{FLAG}, which came with 15.3")
    maintainer.list(project_rules)


def test_usernames_name_users_beside_those_named_by_number(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """Both lists are combined, and neither a user named in both nor a group beside them is lost."""
    first, second, third = user_id(approver), user_id(second_approver), user_id(maintainer)
    both_names = [username(maintainer), username(second_approver)]
    groups = [one.id for one in current_run().profile.fixtures.get("approver_group", ())[:1]]
    by_name = created(maintainer, project_rules, usernames=[username(second_approver)])
    given_owed(maintainer, bool(numbers(by_name, "users")), "usernames, which came with 15.8")
    with verifies("project-approval-rules.versions.usernames", "project-approval-rules.create.usernames"):
        shown = numbers(by_name, "users") or []
        must(second in shown, f"user {second} in the answer", as_json(shown))
        by_id(maintainer, project_rules, by_name["id"]).must_name(users=[second])
    with verifies("project-approval-rules.create.user-ids-and-usernames", go_on=True):
        lists = {"user_ids": [first, second], "usernames": both_names, "group_ids": groups}
        both = created(maintainer, project_rules, **lists)
        by_id(maintainer, project_rules, both["id"]).must_name_only(users=[first, second, third], groups=groups)
        body = {"name": fresh_name(), "approvals_required": 1, "user_ids": [first], "usernames": []}
        none_by_name = maintainer.post(project_rules, body)
        if none_by_name.is_served:  # a service may refuse an empty list
            by_id(maintainer, project_rules, rule_in(none_by_name)["id"]).must_name(users=[first])
    rule = created_before_another(maintainer, project_rules, user_ids=[second])
    # Another username may begin with this one: that user must not be added.
    sent = {"user_ids": [third], "usernames": [username(approver)], "group_ids": []}
    with verifies("project-approval-rules.versions.usernames", "project-approval-rules.update.usernames"):
        body = {"name": fresh_name(), "approvals_required": 1, **sent}
        others = others_of(maintainer, project_rules, rule["id"])
        changed = maintainer.put(project_rules / rule["id"], body).must_be_served()
        for reading in (in_answer(changed), by_id(maintainer, project_rules, rule["id"])):
            reading.must_name(users=[first])
    with verifies("project-approval-rules.update.user-ids-and-usernames"):
        by_id(maintainer, project_rules, rule["id"]).must_name_only(users=[first, third])
        must_stay(maintainer, project_rules, others)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_the_older_of_two_rules_is_read_under_its_own_number(maintainer: Caller, project_rules: Path) -> None:
    rules = [created(maintainer, project_rules) for _ in range(2)]
    with verifies("project-approval-rules.read"):
        for rule in rules:
            maintainer.get(project_rules / rule["id"]).must_be(200).must_hold(id=rule["id"], name=rule["name"])


def test_a_rule_is_the_same_alone_and_in_the_list(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    body = {"name": fresh_name(), "user_ids": [user_id(approver)], "group_ids": [approver_group.id]}
    number = created(maintainer, project_rules, **body)["id"]
    with verifies("project-approval-rules.list", go_on=True):
        maintainer.get(project_rules, page=1, per_page=1).must_be(200).must_be_an(list)
    with verifies("project-approval-rules.read", go_on=True):
        maintainer.get(project_rules / number).must_be(200).must_hold(id=number, name=body["name"])
    with verifies("project-approval-rules.read.equals-list-entry"):
        listed, alone = in_list(maintainer, project_rules, number).rule, by_id(maintainer, project_rules, number).rule
        # Who is eligible is not defined, and a list may show fewer people.
        for said in (standing, lambda rule: {"contains_hidden_groups": rule.get("contains_hidden_groups")}):
            must(said(alone) == said(listed), f"as in the list: {said(listed)}", as_json(said(alone)))


def test_a_group_that_everybody_can_see_is_not_hidden(
    maintainer: Caller,
    project_rules: Path,
    approver_group: Fixture,
) -> None:
    with_group = created(maintainer, project_rules, group_ids=[approver_group.id])
    without = created(maintainer, project_rules)
    by_id(maintainer, project_rules, with_group["id"]).given_naming(groups=[approver_group.id])
    with verifies("project-approval-rules.hidden-groups.none"):
        for rule in (with_group, without):
            by_id(maintainer, project_rules, rule["id"]).must_hold(contains_hidden_groups=False)


def test_the_list_is_walked_page_by_page(maintainer: Caller, project_rules: Path) -> None:
    made = {created(maintainer, project_rules)["id"] for _ in range(3)}
    pages = pages_of(maintainer, project_rules, per_page=2)
    given_owed(maintainer, all(len(page) <= 2 for page in pages), "pagination, which came with 15.3")
    seen = [rule.get("id") for page in pages for rule in page if isinstance(rule, dict)]
    with verifies("project-approval-rules.pages", "project-approval-rules.versions.pagination"):
        must(all(len(page) <= 2 for page in pages), "no page above per_page = 2", f"{[len(page) for page in pages]}")
        must(len(seen) == len(set(seen)), "each rule on one page", f"the ids {seen}")
        must(made <= set(seen), f"the rules {sorted(made)} on some page", f"the ids {seen}")


def test_a_rule_that_nobody_has_touched_asks_for_no_approval(
    maintainer: Caller,
    project_rules: Path,
    fresh_project: Fixture,
) -> None:
    """A project need not list such a rule, so only a list that shows rules counts."""
    number = created(maintainer, project_rules)["id"]
    maintainer.list(project_rules).the(id=number)
    with verifies("project-approval-rules.any-approver.asks-for-none"):
        owner = caller_named("owner") if is_known("owner") else None
        asked = asked_by_default(maintainer, project_rules_path(fresh_project), owner, fresh_project)
        must(all(number == 0 for number in asked), "approvals_required = 0", f"approvals_required = {as_json(asked)}")


def test_a_policy_puts_a_rule_into_the_list(maintainer: Caller, policy_project: Fixture) -> None:
    with verifies("project-approval-rules.report-approver.from-policies"):
        maintainer.list(project_rules_path(policy_project)).must_contain(rule_type="report_approver")


def test_whether_an_outsider_may_read_the_rules(maintainer: Caller, outsider: Caller, project_rules: Path) -> None:
    number = created(maintainer, project_rules)["id"]
    statuses = [outsider.get(path).status for path in (project_rules, project_rules / number)]
    observe(
        "project-approval-rules.authorization.outsider-answer",
        f"a caller without a role who asks for the rules of a private project is answered {statuses[0]}, "
        f"and for one of them {statuses[1]}",
    )
