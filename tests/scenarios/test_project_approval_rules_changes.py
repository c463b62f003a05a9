"""Approval rules of a project: what a change or a deletion does to the rule, and that it does nothing else."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange.approval_rules import (
    approvers_by_turns,
    by_id,
    created_last,
    in_answer,
    in_list,
    must_stay,
    others_of,
    standings,
)
from conformance.suite.arrange.reviews import (
    created,
    created_before_another,
    endless_name,
    fresh_name,
    in_other_case,
    name_of_digits,
    naming_only,
    numbers,
    rule_in,
    unusual_name,
    user_id,
    username,
)
from conformance.suite.context import current_run
from conformance.suite.derived import caller_named, is_known
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    given,
    left_to_others,
    must,
    named_otherwise,
    observe,
    verifies,
)
from conformance.suite.load import ROUNDS, at_once, over_and_over

if TYPE_CHECKING:
    from conformance.suite import Fixture


def changed(named: Caller, **more: object) -> dict[str, object]:
    """Return a change of name and number that sends both lists of approvers."""
    return {"name": fresh_name(), "approvals_required": 3, **naming_only(named), **more}


# -- change ------------------------------------------------------------------------------------------------------------


def test_a_changed_rule_shows_its_new_name_and_number_everywhere(maintainer: Caller, project_rules: Path) -> None:
    """The rule beside it has other approvers and no branches: this shows when the change reaches that rule too."""
    rule, _ = created(maintainer, project_rules), created(maintainer, project_rules, **approvers_by_turns()[0])
    number = rule["id"]
    others = others_of(maintainer, project_rules, number)
    body = changed(maintainer, name=in_other_case(rule))
    values = {name: body[name] for name in ("name", "approvals_required")}
    answer = maintainer.put(project_rules / number, body)
    with verifies("project-approval-rules.update.answers-with-rule", go_on=True):
        answer.must_be(200, 201).must_hold(id=number)
    with verifies("project-approval-rules.update.values", go_on=True):
        answer.given_served().must_hold(**values)
    with verifies("project-approval-rules.update.stored", go_on=True):
        answer.given_served()
        by_id(maintainer, project_rules, number).must_hold(**values)
        in_list(maintainer, project_rules, number).must_hold(**values)
        digits = name_of_digits()  # the second time, it is the name that the rule has already
        # The rule beside it has no branches, and must not get these.
        branches = [one.id for one in current_run().profile.fixtures.get("protected_branch", ())[:1]]
        beside = changed(maintainer, **({"protected_branch_ids": branches} if branches else {}))
        for again in ({"name": digits, "approvals_required": more} for more in (3, 2)):
            maintainer.put(project_rules / number, {**beside, **again}).given_served()
            by_id(maintainer, project_rules, number).must_hold(**again)
        # Which characters a name may have is open; an accepted name is stored.
        for name in (endless_name(), unusual_name()):
            if maintainer.put(project_rules / number, {**beside, "name": name}).is_served:
                by_id(maintainer, project_rules, number).must_hold(name=name)
    with verifies("project-approval-rules.update.leaves-other-rules"):
        answer.given_served()
        must_stay(maintainer, project_rules, others)


def test_users_that_a_change_names_come_and_those_it_leaves_out_go(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    project: Fixture,
) -> None:
    """A removed approver who remains can still let changes through, by number or by path of the project."""
    first, second, groups = user_id(approver), user_id(second_approver), [approver_group.id]
    number = created_before_another(maintainer, project_rules, user_ids=[first], group_ids=groups)["id"]
    stored = by_id(maintainer, project_rules, number)
    stored.given_naming(users=[first], groups=groups)
    answer = maintainer.put(project_rules / number, changed(maintainer, user_ids=[second], group_ids=groups))
    with verifies("project-approval-rules.update.user-ids", go_on=True):
        in_answer(answer).must_name(users=[second])
        stored.must_name(users=[second])
        # An approver who is named twice may be refused; it breaks nothing.
        twice = changed(maintainer, user_ids=[second] * 2, group_ids=groups * 2)
        maintainer.put(project_rules / number, twice).must_not_break()
    with verifies("project-approval-rules.update.user-ids.removes-others"):
        in_answer(answer).must_not_name(users=[first])
        stored.must_not_name(users=[first])
        by_path = named_otherwise(project_rules, project, maintainer) / number
        if maintainer.put(by_path, changed(maintainer, user_ids=[first], group_ids=groups)).is_served:
            stored.must_name_only(users=[first])
            # An empty list of names beside the numbers names nobody else, and several numbers replace a single one.
            both = [second, user_id(maintainer)]
            none_by_name = changed(maintainer, user_ids=both, group_ids=groups, usernames=[])
            if maintainer.put(project_rules / number, none_by_name).is_served:
                stored.must_not_name(users=[first])
                maintainer.put(project_rules / number, {**none_by_name, "user_ids": [second]}).given_served()
                stored.must_not_name(users=[user_id(maintainer)])


def test_groups_that_a_change_names_come_and_those_it_leaves_out_go(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    first, second, users = approver_group.id, second_approver_group.id, [user_id(approver)]
    number = created_before_another(maintainer, project_rules, user_ids=users, group_ids=[first])["id"]
    stored = by_id(maintainer, project_rules, number)
    stored.given_naming(users=users, groups=[first])
    answer = maintainer.put(project_rules / number, changed(maintainer, user_ids=users, group_ids=[second]))
    with verifies("project-approval-rules.update.group-ids", go_on=True):
        in_answer(answer).must_name(groups=[second])
        stored.must_name(groups=[second])
    with verifies("project-approval-rules.update.group-ids.removes-others"):
        in_answer(answer).must_not_name(groups=[first])
        stored.must_not_name(groups=[first])
        maintainer.put(project_rules / number, changed(maintainer, user_ids=users, group_ids=[second])).given_served()
        stored.must_not_name(groups=[first])
        third = current_run().profile.first("group")  # which a service may refuse or pass over
        if third is not None and third.id is not None:
            several = [first, third.id]
            told = maintainer.put(project_rules / number, changed(maintainer, user_ids=users, group_ids=several))
            if told.is_served and {*several} <= {*(numbers(rule_in(told), "groups") or ())}:
                stored.must_not_name(groups=[second])


def test_groups_beside_usernames_are_those_of_the_rule(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    left_to_others()  # where usernames are refused, as perhaps before 15.8
    first, second, users = [approver_group.id], [second_approver_group.id], [user_id(approver)]
    number = created_before_another(maintainer, project_rules, user_ids=users, group_ids=first)["id"]
    for sent, gone in ((second, first), (first, second)):
        body = changed(maintainer, user_ids=users, usernames=[username(approver)], group_ids=sent)
        answer = maintainer.put(project_rules / number, body)
        for reading in (in_answer(answer), by_id(maintainer, project_rules, number)) if answer.is_served else ():
            with verifies("project-approval-rules.update.group-ids"):
                reading.must_name(groups=sent)
            with verifies("project-approval-rules.update.group-ids.removes-others"):
                reading.must_not_name(groups=gone)


def test_what_empty_lists_of_approvers_do(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    rule = created(maintainer, project_rules, user_ids=[user_id(approver)], group_ids=[approver_group.id])
    stored = by_id(maintainer, project_rules, rule["id"])
    stored.given_naming(users=[user_id(approver)], groups=[approver_group.id])
    answer = maintainer.put(project_rules / rule["id"], changed(maintainer, user_ids=[], group_ids=[]))
    left = [name for name in ("users", "groups") if numbers(stored.rule, name)]
    observe(
        "project-approval-rules.update.empty-lists",
        f"empty lists in a change are {'served' if answer.is_served else 'refused'} "
        f"and {'leave ' + ' and '.join(left) if left else 'leave nobody'}",
    )


def test_a_change_of_branches_replaces_them(
    maintainer: Caller,
    project_rules: Path,
    protected_branch: Fixture,
    second_protected_branch: Fixture,
) -> None:
    number = created_before_another(maintainer, project_rules, protected_branch_ids=[protected_branch.id])["id"]
    stored = by_id(maintainer, project_rules, number)
    stored.given_naming(protected_branches=[protected_branch.id])
    with verifies("project-approval-rules.update.protected-branch-ids"):
        first, second = protected_branch.id, second_protected_branch.id
        for branches in ([second], [first, second], [second]):
            body = changed(maintainer, protected_branch_ids=branches)
            for reading in (in_answer(maintainer.put(project_rules / number, body).must_be_served()), stored):
                reading.must_name_only(protected_branches=branches)


def test_two_rules_created_at_once_are_both_kept(maintainer: Caller, owner: Caller, project_rules: Path) -> None:
    before = maintainer.list(project_rules).ids()
    bodies = [{"name": fresh_name(), "approvals_required": number, **naming_only(maintainer)} for number in (1, 2)]
    with verifies("project-approval-rules.create.at-once"):
        answers = at_once(
            *(
                partial(caller.post, project_rules, body)
                for caller, body in zip((maintainer, owner), bodies, strict=True)
            )
        )
        made = [rule_in(answer)["id"] for answer in answers]
        must(len(set(made) - set(before)) == len(made), "two rules with ids of their own", f"the ids {made}")
        for number, body in zip(made, bodies, strict=True):
            wanted = {name: body[name] for name in ("name", "approvals_required")}
            in_list(maintainer, project_rules, number).must_hold(**wanted)


def test_two_rules_changed_at_once_are_both_changed(maintainer: Caller, owner: Caller, project_rules: Path) -> None:
    """Both callers are told that it was done; a caller who was refused meanwhile shows nothing."""
    rules = [created(maintainer, project_rules)["id"] for _ in range(2)]
    bodies = [changed(maintainer, name=fresh_name(), approvals_required=number) for number in (2, 3)]
    with verifies("project-approval-rules.update.at-once"):
        answers = at_once(
            *(
                partial(caller.put, project_rules / number, body)
                for caller, number, body in zip((maintainer, owner), rules, bodies, strict=True)
            )
        )
        for answer, number, body in zip(answers, rules, bodies, strict=True):
            answer.given_served()
            in_list(maintainer, project_rules, number).must_hold(name=body["name"])


def test_rules_are_deleted_while_another_one_is_changed(maintainer: Caller, owner: Caller, project_rules: Path) -> None:
    """A service that writes all rules of a project together restores those that were deleted at the same time.

    Or it loses what was changed: so each change sends another name.
    """
    staying, *going = (created(maintainer, project_rules)["id"] for _ in range(4))
    listed, body = maintainer.list(project_rules), changed(maintainer)

    def change() -> Answer:
        body["name"] = fresh_name()
        return maintainer.put(project_rules / staying, body)

    with verifies("project-approval-rules.delete.at-once"):
        deletions = [partial(owner.delete, project_rules / number) for number in going]
        answers = over_and_over(change, during=deletions)
        # It stays even if it could no longer be changed.
        now = maintainer.list(project_rules).must_contain_once(id=staying)
        for answer in answers:
            answer.given_served()
        now.must_contain_once(id=staying, name=body["name"])
        for number in going:
            now.must_not_contain(id=number, after=listed)


def test_a_rule_that_is_deleted_while_it_is_changed_stays_deleted(
    maintainer: Caller,
    owner: Caller,
    project_rules: Path,
) -> None:
    """Whichever of the two comes first, the deleted rule stays deleted."""
    left_to_others()  # if the change prevents the deletion
    for _ in range(ROUNDS):
        number = created(maintainer, project_rules)["id"]
        listed, body = maintainer.list(project_rules), changed(maintainer)
        _, deleted = at_once(
            partial(maintainer.put, project_rules / number, body),
            partial(owner.delete, project_rules / number),
        )
        if deleted.is_served:
            with verifies("project-approval-rules.delete.at-once"):
                maintainer.list(project_rules).must_not_contain(id=number, after=listed)


def test_whoever_has_read_before_sees_a_change_and_a_deletion(
    maintainer: Caller,
    owner: Caller,
    project_rules: Path,
    project: Fixture,
) -> None:
    """A response cached for one caller, or under one name of the project, must not hide the change."""
    number = created(maintainer, project_rules)["id"]
    named = named_otherwise(project_rules, project, owner)
    alone, by_path = owner.get(project_rules / number), owner.get(named / number)
    listed = owner.list(project_rules)
    with verifies("project-approval-rules.update.stored"):
        for wanted in ({"name": fresh_name(), "approvals_required": more} for more in (2, 3)):
            maintainer.put(project_rules / number, {**changed(maintainer), **wanted}).given_served()
            for rules in (project_rules, named):
                by_id(owner, rules, number).must_hold(**wanted)
                in_list(owner, rules, number).must_hold(**wanted)
    maintainer.delete(project_rules / number).given_served()
    with verifies("project-approval-rules.delete.gone", go_on=True):
        owner.get(project_rules / number).must_be_refused(beside=alone)
        owner.get(named / number).must_be_refused(beside=by_path)
    with verifies("project-approval-rules.delete.unlisted"):
        owner.list(project_rules).must_not_contain(id=number, after=listed)


def test_a_rule_named_like_another_one_is_a_rule_of_its_own(
    maintainer: Caller,
    project_rules: Path,
    approver: Caller,
    second_approver: Caller,
) -> None:
    """The name of a deleted rule, or of an existing one, perhaps in other case. A service may refuse such a name."""
    first, second = user_id(approver), user_id(second_approver)
    gone = created(maintainer, project_rules, user_ids=[first])
    maintainer.delete(project_rules / gone["id"]).given_served()
    left_to_others()  # if no such name is accepted
    sent = {"approvals_required": 2, "user_ids": [second], "group_ids": []}
    again = maintainer.post(project_rules, {"name": gone["name"], **sent})
    if again.is_served:
        with verifies("project-approval-rules.create.user-ids", go_on=True):
            by_id(maintainer, project_rules, rule_in(again)["id"]).must_not_name(users=[first])
    there = created(maintainer, project_rules, user_ids=[first])
    before = standings(maintainer, project_rules)
    alike = maintainer.post(project_rules, {"name": in_other_case(there), **sent})
    if alike.is_served:
        with verifies("project-approval-rules.update.leaves-other-rules"):
            must_stay(maintainer, project_rules, before)
    if maintainer.post(project_rules, {"name": there["name"], **sent}).is_served:
        with verifies("project-approval-rules.create.leaves-other-rules", go_on=True):
            must_stay(maintainer, project_rules, before)
    there = created(maintainer, project_rules, user_ids=[first])
    before = standings(maintainer, project_rules)
    other = created(maintainer, project_rules, user_ids=[second])["id"]
    answers = [maintainer.put(project_rules / other, {"name": name, **sent}) for name in (fresh_name(), there["name"])]
    if answers[-1].is_served:
        maintainer.put(project_rules / other, {**sent, "name": fresh_name(), "approvals_required": 3})
        with verifies("project-approval-rules.update.leaves-other-rules"):
            must_stay(maintainer, project_rules, before)


# -- hidden groups -----------------------------------------------------------------------------------------------------


@pytest.fixture
def half_hidden(owner: Caller, project_rules: Path, hidden_group: Fixture, approver_group: Fixture) -> int:
    """A rule with one group that everybody can see, and one that only its owner can see, not its maintainer."""
    groups = [hidden_group.id, approver_group.id]
    number = int(created(owner, project_rules, group_ids=groups)["id"])
    by_id(owner, project_rules, number).given_naming(groups=groups)
    return number


def test_a_group_is_hidden_from_those_who_may_not_view_it(
    owner: Caller,
    maintainer: Caller,
    project_rules: Path,
    half_hidden: int,
    hidden_group: Fixture,
    approver_group: Fixture,
) -> None:
    seen = by_id(maintainer, project_rules, half_hidden)
    with verifies("project-approval-rules.hidden-groups.are-not-shown", go_on=True):
        seen.must_name(groups=[approver_group.id])
        for reading in (seen, in_list(maintainer, project_rules, half_hidden)):
            reading.must_not_name(groups=[hidden_group.id])
    with verifies("project-approval-rules.hidden-groups.are-announced"):
        for reading in (seen, in_list(maintainer, project_rules, half_hidden)):
            reading.must_hold(contains_hidden_groups=True)
        by_id(owner, project_rules, half_hidden).must_hold(contains_hidden_groups=False)
        for admin in (caller_named("admin"),) if is_known("admin") else ():
            read = admin.get(project_rules / half_hidden)
            if read.is_served and hidden_group.id in (numbers(rule_in(read), "groups") or ()):
                read.must_hold(contains_hidden_groups=False)


@pytest.mark.needs_feature("hidden_groups")
def test_a_hidden_group_goes_only_when_that_is_asked_for(
    owner: Caller,
    maintainer: Caller,
    project_rules: Path,
    half_hidden: int,
    hidden_group: Fixture,
    approver_group: Fixture,
) -> None:
    """A caller who cannot see a group must not remove it by accident."""
    visible, hidden = [approver_group.id], [hidden_group.id]
    insider = by_id(owner, project_rules, half_hidden)
    with verifies("project-approval-rules.update.hidden-groups.stay"):
        answer = maintainer.put(project_rules / half_hidden, changed(maintainer, group_ids=visible)).given_served()
        insider.must_name(groups=hidden)
    with verifies("project-approval-rules.hidden-groups.are-announced", go_on=True):
        answer.must_hold(contains_hidden_groups=True)
    with verifies("project-approval-rules.update.hidden-groups.stay-when-told"):
        body = changed(maintainer, group_ids=visible, remove_hidden_groups=False)
        maintainer.put(project_rules / half_hidden, body).given_served()
        insider.must_name(groups=hidden)
    without_groups = {name: value for name, value in changed(maintainer).items() if name != "group_ids"}
    for body in (changed(maintainer, group_ids=[]), without_groups):  # for others, whether they stay is open
        if maintainer.put(project_rules / half_hidden, body).is_served:
            with verifies("project-approval-rules.update.hidden-groups.stay", go_on=True):
                insider.must_name(groups=hidden)
    beside = created(owner, project_rules, group_ids=[*visible, *hidden])
    with verifies("project-approval-rules.update.hidden-groups.removed"):
        body = changed(maintainer, group_ids=visible, remove_hidden_groups=True)
        maintainer.put(project_rules / half_hidden, body).must_be_served()
        insider.must_not_name(groups=hidden)
        insider.must_name(groups=visible)  # which was sent
        by_id(maintainer, project_rules, half_hidden).must_hold(contains_hidden_groups=False)
    with verifies("project-approval-rules.update.leaves-other-rules", go_on=True):
        given(hidden[0] in (numbers(beside, "groups") or ()), "the rule beside it was created without the hidden group")
        by_id(owner, project_rules, beside["id"]).must_name(groups=hidden)
    with verifies("project-approval-rules.update.user-ids", go_on=True):
        insider.must_name(users=naming_only(maintainer)["user_ids"])
    with verifies("project-approval-rules.update.group-ids.removes-others"):  # the owner may view what is private
        for groups in ([*visible, *hidden], visible):
            owner.put(project_rules / half_hidden, changed(maintainer, group_ids=groups)).given_served()
        insider.must_not_name(groups=hidden)


def test_there_need_be_no_hidden_group_to_be_kept(maintainer: Caller, project_rules: Path) -> None:
    number = created_before_another(maintainer, project_rules)["id"]
    with verifies("project-approval-rules.update.remove-hidden-groups.without-any"):
        body = changed(maintainer, remove_hidden_groups=False)
        maintainer.put(project_rules / number, body).must_be_served()
        by_id(maintainer, project_rules, number).must_hold(name=body["name"])


def test_groups_that_are_sent_stay_where_hidden_ones_are_removed(
    maintainer: Caller,
    project_rules: Path,
    approver_group: Fixture,
) -> None:
    """Also if there is no hidden group."""
    groups = [approver_group.id]
    number = created_before_another(maintainer, project_rules, group_ids=groups)["id"]
    by_id(maintainer, project_rules, number).given_naming(groups=groups)  # what is shown is not hidden
    body = changed(maintainer, group_ids=groups, remove_hidden_groups=True)
    with verifies("project-approval-rules.update.group-ids"):
        answer = maintainer.put(project_rules / number, body)
        for reading in (in_answer(answer), by_id(maintainer, project_rules, number)):
            reading.must_name(groups=groups)


# -- deletion ----------------------------------------------------------------------------------------------------------


def test_a_deleted_rule_is_gone_and_the_others_are_not(maintainer: Caller, project_rules: Path) -> None:
    """At first the oldest of three."""
    number, second, _ = (created(maintainer, project_rules)["id"] for _ in range(3))
    others = others_of(maintainer, project_rules, number)
    listed = maintainer.list(project_rules)
    alone = maintainer.get(project_rules / number)
    answer = maintainer.delete(project_rules / number)
    with verifies("project-approval-rules.delete.succeeds", go_on=True):
        answer.must_be_served()
    with verifies("project-approval-rules.delete.no-bytes-under-204", go_on=True):
        silent = answer.given_served().status == 204
        must(not (silent and answer.exchange.body), "no body under 204", f"{len(answer.exchange.body)} bytes")
    with verifies("project-approval-rules.delete.gone", go_on=True):
        answer.given_served()
        maintainer.get(project_rules / number).must_be_refused(beside=alone)
    with verifies("project-approval-rules.delete.unlisted", go_on=True):
        answer.given_served()
        maintainer.list(project_rules).must_not_contain(id=number, after=listed)
    with verifies("project-approval-rules.delete.unknown-rule", go_on=True):
        maintainer.delete(project_rules / number).must_not_break()
    with verifies("project-approval-rules.delete.leaves-other-rules"):
        answer.given_served()
        must_stay(maintainer, project_rules, others)
    with verifies("project-approval-rules.create.leaves-other-rules", go_on=True):
        answer.given_served()
        # Numbers that are counted but not stored are given a second time when there are fewer rules.
        created(maintainer, project_rules)
        must_stay(maintainer, project_rules, others)
    with verifies("project-approval-rules.delete.gone"):
        maintainer.delete(project_rules / second).given_served()
        maintainer.get(project_rules / second).must_be_refused(beside=alone)
    observe(
        "project-approval-rules.delete.answer",
        f"deleting a rule is answered {answer.status} with{'' if answer.exchange.body else 'out'} a body",
    )


def test_the_last_rule_can_be_deleted_like_any_other(maintainer: Caller, project_rules: Path) -> None:
    """Nothing says that a project must keep one, the first time or later."""
    for _ in range(2):
        rule = created_last(maintainer, project_rules)
        listed = maintainer.list(project_rules)
        with verifies("project-approval-rules.delete.succeeds"):
            maintainer.delete(project_rules / rule["id"]).must_be_served()
        with verifies("project-approval-rules.delete.unlisted"):
            maintainer.list(project_rules).must_not_contain(id=rule["id"], after=listed)
