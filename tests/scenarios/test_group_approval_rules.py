"""Approval rules of a group: creation, change, and what leaves everything unchanged.

No operation deletes a rule of a group. So stories make as few as possible, and change one that an earlier story or run
has made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.arrange import UNUSED_ID
from conformance.suite.arrange.approval_rules import (
    FLAG,
    administrator_of,
    approvers_by_turns,
    asked_by_default,
    given_declared,
    given_owed,
    group_rules_path,
    in_answer,
    in_list,
    is_for_anybody,
    leaves_nobody,
    must_stay,
    other_administrators,
    others_of,
    own_rule,
    page_length,
    pages_of,
    standings,
    update_alone,
)
from conformance.suite.arrange.reviews import (
    Rule,
    created,
    endless_name,
    fresh_name,
    must_be_created_unless_it_is_the_second,
    name_of_digits,
    naming,
    numbers,
    rule_in,
    unusual_name,
    user_id,
)
from conformance.suite.context import current_run
from conformance.suite.expectations import (
    Caller,
    Path,
    as_json,
    given,
    group_path,
    left_to_others,
    must,
    observe,
    unchanged,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Answer

LONG = "for everybody who approves what is changed in here"  # no longer than names that are drawn for other rules

# -- creation ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirements(
    "group-approval-rules.rule.fields",
    "group-approval-rules.rule.contains-hidden-groups",
    "group-approval-rules.rule.rule-type",
    "group-approval-rules.rule.eligible-approvers",
    "group-approval-rules.rule.users",
    "group-approval-rules.rule.groups",
    "group-approval-rules.rule.protected-branches",
)
def test_a_created_rule_is_answered_and_listed(
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    before = standings(admin_of_group, group_rules)
    users, groups = and_more(user_id(approver), approver_group.id)
    # Which characters a name may have is open; an accepted name is stored.
    for name in (endless_name(), f"{unusual_name()} 🚀 {LONG}", f"{unusual_name()} {LONG}", fresh_name()):
        values = {"name": name, "approvals_required": 3, "rule_type": "regular"}
        answer = admin_of_group.post(group_rules, {**values, "user_ids": users, "group_ids": groups})
        if answer.is_served:
            break
    with verifies("group-approval-rules.create.answers-with-rule", go_on=True):
        answer.must_be(200, 201).must_be_an(dict)
    with verifies("group-approval-rules.authorization.administrator-may-create", go_on=True):
        answer.must_be_served()
    number = rule_in(answer)["id"]
    stored = in_list(admin_of_group, group_rules, number)
    with verifies("group-approval-rules.create.values", go_on=True):
        answer.must_hold(**values)
    with verifies("group-approval-rules.create.listed", go_on=True):
        stored.must_hold(**values)
        must(number not in before, "an id that the list did not have before", f"id = {as_json(number)}")
    with verifies("group-approval-rules.create.leaves-other-rules", go_on=True):
        given(group_rule["id"] in before, "the list did not show the other rules of the group")
        must_stay(admin_of_group, group_rules, before)
    for reading in (in_answer(answer), stored):
        # Nobody else either: a new rule has no former approvers, and numbers of groups are not users.
        with verifies("group-approval-rules.create.user-ids", go_on=True):
            reading.must_name_only(users=users)
        with verifies("group-approval-rules.create.group-ids", go_on=True):
            reading.must_name_only(groups=groups)
    with verifies("group-approval-rules.rule.without-hidden-groups"):
        stored.given_naming(groups=groups)
        stored.must_hold(contains_hidden_groups=False)


def and_more(user: int, group: int) -> tuple[list[int], list[int]]:
    """Return the numbers of a user and a group, with further ones of members and a group if the profile has them."""
    profile = current_run().profile
    others = [profile.actors.get(name) for name in ("second_approver", "owner")]
    users = [user, *(one.id for one in others if one is not None and one.id is not None)]
    return users, [group, *(one.id for one in profile.fixtures.get("second_approver_group", ()))]


def test_a_name_and_a_number_are_enough(admin_of_group: Caller, group_rules: Path) -> None:
    body = {"name": fresh_name(), "approvals_required": 1}
    with verifies("group-approval-rules.create.minimal"):
        answer = admin_of_group.post(group_rules, body)
        made = must_be_created_unless_it_is_the_second(admin_of_group, group_rules, answer)
        in_list(admin_of_group, group_rules, made["id"]).must_hold(approvals_required=1)
    observe(
        "group-approval-rules.create.rule-type-unsent",
        f"a rule created without rule_type is of type {made.get('rule_type')}"
        if answer.is_served
        else "a rule created without rule_type is refused where it names nobody and there is one for any approver",
    )


def test_the_parameters_may_be_sent_in_the_query(admin_of_group: Caller, group_rules: Path) -> None:
    """Only numbers and texts: how a list is written in a query is not stated.

    Which characters a name may have is open; an accepted name is stored, whatever its characters mean in a query.
    """
    values: dict[str, str | int] = {"approvals_required": 2, "rule_type": "regular"}
    number: int | None = None
    with verifies("group-approval-rules.create.query-parameters", go_on=True):
        answer = sent_in_the_query(admin_of_group, group_rules, values)
        made = rule_in(answer.must_be_served())
        if made.get("rule_type") == "any_approver":
            # The service may choose the name of such a rule, and that it is of this type.
            values = {"approvals_required": 2}
        else:
            number = made["id"]
        answer.must_hold(**values)
        in_list(admin_of_group, group_rules, made["id"]).must_hold(**values)
    if number is None:
        number = own_rule(admin_of_group, group_rules)["id"]
    values = {"name": fresh_name(), "approvals_required": 3}
    with verifies("group-approval-rules.update.query-parameters"):
        answer = admin_of_group.call("PUT", group_rules / number, query=values)
        if answer.exchange.is_refusal and leaves_nobody(admin_of_group, group_rules / number, values, answer):
            answer = beside_a_list(admin_of_group, "PUT", group_rules / number, values)
        if is_for_anybody(rule_in(answer.must_be_served())):
            values = {"approvals_required": 3}
        answer.must_hold(**values)
        in_list(admin_of_group, group_rules, number).must_hold(**values)


def sent_in_the_query(writer: Caller, rules: Path, values: dict[str, str | int]) -> Answer:
    """Create a rule with these values and a name of its own in the query, and return the answer; the name joins them.

    The rule names nobody, which perhaps only one rule may do: then a body with the same content is refused as well.
    """
    for name in (f"{fresh_name()} A+B & 50%25 Prüfung", fresh_name()):
        values["name"] = name
        answer = writer.call("POST", rules, query=values)
        if answer.is_served:
            return answer
    if answer.exchange.is_refusal and not writer.post(rules, {**values, "name": fresh_name()}).is_served:
        values["name"] = fresh_name()
        return beside_a_list(writer, "POST", rules, values)
    return answer


def beside_a_list(writer: Caller, method: str, path: Path, values: dict[str, str | int]) -> Answer:
    """Send values in the query and an approver in the body, as lists have no form in a query; return the answer.

    Whether a service reads both at once is not stated, so nothing is shown where the answer lacks the values.
    """
    answer = writer.call(method, path, query=values, json=naming(writer))
    shown = answer.json if answer.is_served else None
    reads_both = isinstance(shown, dict) and all(shown.get(name) == value for name, value in values.items())
    given(reads_both, "a rule that names nobody is not served here, wherever its parameters are sent")
    return answer


# -- change ------------------------------------------------------------------------------------------------------------


def test_a_rule_shows_the_name_that_a_change_sends_alone(
    admin_of_group: Caller, group_rules: Path, group_rule: Rule
) -> None:
    """What happens to lists that a change does not send is open. A caller who has read before reads again."""
    change = {"name": name_of_digits()}
    others = [in_list(one, group_rules, group_rule["id"]) for one in other_administrators(admin_of_group, group_rules)]
    update = update_alone(admin_of_group, group_rules / group_rule["id"], change)
    with verifies("group-approval-rules.update.answers-with-rule", go_on=True):
        update.telling.must_be(200, 201).must_hold(id=group_rule["id"])
    with verifies("group-approval-rules.update.name-alone", go_on=True):
        update.given_owed()
        update.alone.must_be_served()
    with verifies("group-approval-rules.update.name"):
        in_answer(update.telling).must_hold(**change)
        in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(**change)
        # Which characters a name may have is open; an accepted name is stored.
        for name in (f"{fresh_name()} R&D's Prüfung {LONG}", fresh_name()):
            again = {"name": name}
            changed = update_alone(admin_of_group, group_rules / group_rule["id"], again).telling
            if changed.is_served:
                break
        changed.given_served()
        in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(**again)
        for read_by_another in others:
            read_by_another.must_hold(**again)


def test_a_rule_shows_the_number_that_a_change_sends_alone(
    admin_of_group: Caller, group_rules: Path, group_rule: Rule
) -> None:
    change = {"approvals_required": other_number(group_rule)}
    update = update_alone(admin_of_group, group_rules / group_rule["id"], change)
    with verifies("group-approval-rules.update.approvals-required-alone", go_on=True):
        update.given_owed()
        update.alone.must_be_served()
    with verifies("group-approval-rules.update.approvals-required"):
        in_answer(update.telling).must_hold(**change)
        in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(**change)
        # Beside the name that the rule has already, another number is a change all the same.
        name = fresh_name()
        for number in (other_number(change), change["approvals_required"]):
            again = {"name": name, "approvals_required": number}
            update_alone(admin_of_group, group_rules / group_rule["id"], again).telling.given_served()
            in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(**again)


def other_number(rule: Rule) -> int:
    """Return another number than a rule requires, and a small one, as it may apply to the group's merge requests."""
    return 1 if rule["approvals_required"] == 2 else 2


def test_a_change_of_a_rule_leaves_the_others(admin_of_group: Caller, group_rules: Path, group_rule: Rule) -> None:
    """Each of two rules gets approvers of its own: if the service kept one list for both, it would show."""
    # A profile need not have two of each.
    left_to_others("group-approval-rules.update.user-ids", "group-approval-rules.update.group-ids")
    other = own_rule(admin_of_group, group_rules, but=group_rule["id"])
    for rule, lists in zip((group_rule, other), approvers_by_turns(), strict=True):
        others = others_of(admin_of_group, group_rules, rule["id"])
        change = {"name": fresh_name(), "approvals_required": other_number(rule), **lists}
        answer = admin_of_group.put(group_rules / rule["id"], change)
        with verifies("group-approval-rules.update.leaves-other-rules"):
            answer.given_served()
            must_stay(admin_of_group, group_rules, others)
        stored = in_list(admin_of_group, group_rules, rule["id"])
        with verifies("group-approval-rules.update.name", go_on=True):
            stored.must_hold(name=change["name"])
        with verifies("group-approval-rules.update.approvals-required", go_on=True):
            stored.must_hold(approvals_required=change["approvals_required"])
        if "user_ids" in lists:
            with verifies("group-approval-rules.update.user-ids", go_on=True):
                stored.must_name(users=lists["user_ids"])
        if "group_ids" in lists:
            with verifies("group-approval-rules.update.group-ids", go_on=True):
                stored.must_name(groups=lists["group_ids"])


def test_users_and_groups_that_a_change_names_become_approvers_of_the_rule(
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    """Unlike in a project, it is open what happens to those whom a change of a group's rule does not name."""
    first = {"user_ids": [user_id(approver)], "group_ids": [approver_group.id]}
    second = {"user_ids": [user_id(second_approver)], "group_ids": [second_approver_group.id]}
    path, stored = group_rules / group_rule["id"], in_list(admin_of_group, group_rules, group_rule["id"])
    both = {name: [*first[name], *second[name]] for name in first}
    for sent in (both, first, second):
        answer = admin_of_group.put(path, sent).given_served()
        for reading in (in_answer(answer), stored):
            with verifies("group-approval-rules.update.user-ids", go_on=True):
                reading.must_name(users=sent["user_ids"])
            with verifies("group-approval-rules.update.group-ids", go_on=True):
                reading.must_name(groups=sent["group_ids"])
    users, groups = (numbers(stored.rule, name) or [] for name in ("users", "groups"))
    with verifies("group-approval-rules.update.user-ids", go_on=True):
        # An approver who is named twice may be refused; it breaks nothing.
        admin_of_group.put(path, {name: ids * 2 for name, ids in second.items()}).must_not_break()
    stay = [
        kind
        for kind, shown, former in (("users", users, first["user_ids"]), ("groups", groups, first["group_ids"]))
        if former[0] in shown
    ]
    observe(
        "group-approval-rules.update.former-approvers",
        f"of the former approvers that a change does not name, {' and '.join(stay) or 'none'} stay",
    )


def test_whoever_a_rule_names_changes_it_no_more_for_that(
    admin_of_group: Caller, group_rules: Path, group_rule: Rule, developer: Caller
) -> None:
    """Whether a developer may approve for a group is open; if not, there is nothing to see."""
    if developer.actor is None or developer.actor.id is None:
        left_to_others("group-approval-rules.authorization.updating-below-administrator")
        return
    path, change = group_rules / group_rule["id"], {"name": fresh_name(), "approvals_required": 1}
    stored = in_list(admin_of_group, group_rules, group_rule["id"])
    before = stored.rule.get("users")
    control = admin_of_group.put(path, {**change, "user_ids": [user_id(developer)]})
    if not control.is_served or user_id(developer) not in (numbers(stored.rule, "users") or ()):
        left_to_others("group-approval-rules.authorization.updating-below-administrator")
        return
    with verifies("group-approval-rules.authorization.updating-below-administrator"):
        with unchanged(lambda: standings(admin_of_group, group_rules), "the rules of the group"):
            refused = developer.put(path, {**change, "name": fresh_name()})
        refused.must_be_refused(beside=control)
    former = [user["id"] for user in before or () if isinstance(user, dict) and "id" in user]
    admin_of_group.put(path, {"user_ids": former})


def test_a_regular_rule_may_be_told_to_be_regular(admin_of_group: Caller, group_rules: Path, group_rule: Rule) -> None:
    """It names somebody, because a rule without approvers may be of another type, and requires one approval."""
    with verifies("group-approval-rules.update.rule-type"):
        change = {"rule_type": "regular", "approvals_required": 1, **naming(admin_of_group)}
        admin_of_group.put(group_rules / group_rule["id"], change).must_be_served()
        in_list(admin_of_group, group_rules, group_rule["id"]).must_hold(rule_type="regular")


# -- the list ----------------------------------------------------------------------------------------------------------


def test_the_list_is_walked_page_by_page(admin_of_group: Caller, group_rules: Path, group_rule: Rule) -> None:
    known = set(admin_of_group.list(group_rules).ids())
    for _ in range(3 - len(known)):
        created(admin_of_group, group_rules)
        known = set(admin_of_group.list(group_rules).ids())
    # Rules cannot be removed, so a list that does not show them must not make for more and more of them.
    given(group_rule["id"] in known and len(known) > 2, "the list does not show the rules of the group")
    size = page_length(len(known))
    pages = pages_of(admin_of_group, group_rules, per_page=size)
    lengths, seen = [len(page) for page in pages], [entry.get("id") for page in pages for entry in page]
    given_owed(admin_of_group, all(length <= size for length in lengths), "pagination, which came with 15.3")
    with verifies("group-approval-rules.pages", "group-approval-rules.versions.pagination"):
        must(all(length <= size for length in lengths), f"no page above per_page = {size}", f"pages of {lengths}")
        must(len(seen) == len(set(seen)), "each rule on one page", f"the ids {seen}")
        must(known <= set(seen), f"the rules {sorted(known)} on some page", f"the ids {seen}")


@pytest.mark.requirements("group-approval-rules.rule.applies-to-all-protected-branches")
def test_every_rule_says_whether_it_holds_for_all_protected_branches(
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
) -> None:
    answer = admin_of_group.put(group_rules / group_rule["id"], {"approvals_required": 1}).given_served()
    given_owed(admin_of_group, FLAG in rule_in(answer), f"{FLAG}, which came with 15.3")
    with verifies("group-approval-rules.versions.applies-to-all-protected-branches"):
        for shown in (rule_in(answer), admin_of_group.list(group_rules).the(id=group_rule["id"])):
            must(isinstance(shown.get(FLAG), bool), f"{FLAG} true or false", f"{FLAG} = {shown.get(FLAG, 'nothing')}")


def test_a_rule_that_nobody_has_touched_asks_for_no_approval(
    owner: Caller,
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    fresh_group: Fixture,
) -> None:
    """A group need not list such a rule, so only a list that shows rules counts."""
    admin_of_group.list(group_rules).the(id=group_rule["id"])
    admin = administrator_of(owner, fresh_group)
    with verifies("group-approval-rules.any-approver.asks-for-none"):
        asked = asked_by_default(admin, group_rules_path(fresh_group), admin, fresh_group)
        must(all(number == 0 for number in asked), "approvals_required = 0", f"approvals_required = {as_json(asked)}")


@pytest.mark.needs_feature("group_approval_rules")
def test_a_policy_puts_a_rule_into_the_list(owner: Caller, policy_group: Fixture) -> None:
    """Policies are a separate feature; without rules of groups, no list could show their rules."""
    with verifies("group-approval-rules.report-approver.from-policies"):
        listed = administrator_of(owner, policy_group).list(group_rules_path(policy_group))
        listed.must_contain(rule_type="report_approver")


# -- one group and another ---------------------------------------------------------------------------------------------


def test_a_rule_is_changed_only_by_way_of_its_own_group(
    owner: Caller,
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    sibling_group: Fixture,
) -> None:
    foreign = group_rules_path(sibling_group)
    elsewhere = administrator_of(owner, sibling_group)
    # A service that numbers the rules of each group separately may have that number there too.
    has_its_own = elsewhere.list(foreign).having(id=group_rule["id"])
    control = admin_of_group.put(group_rules / group_rule["id"], {"approvals_required": 1})
    before = standings(admin_of_group, group_rules)
    given(group_rule["id"] in before, "the list does not show the rule")
    if has_its_own:
        left_to_others("group-approval-rules.update.rule-of-another-group")
    else:
        with verifies("group-approval-rules.update.rule-of-another-group", go_on=True):
            elsewhere.put(foreign / group_rule["id"], {"name": fresh_name()}).must_be_refused(beside=control)
            must_stay(admin_of_group, group_rules, before)
    # What one call has changed is read before the next, which is not to blame for it.
    before = standings(admin_of_group, group_rules)
    with verifies("group-approval-rules.update.rule-id-is-integer", go_on=True):
        admin_of_group.put(group_rules / "abc", {"name": fresh_name()}).must_be_refused(beside=control)
        must_stay(admin_of_group, group_rules, before)
    before = standings(admin_of_group, group_rules)
    with verifies("group-approval-rules.update.unknown-rule"):
        admin_of_group.put(group_rules / UNUSED_ID, {"name": fresh_name()}).must_be_refused(beside=control)
        must_stay(admin_of_group, group_rules, before)


def test_a_change_in_one_group_leaves_the_other_groups(
    owner: Caller,
    admin_of_group: Caller,
    group_rules: Path,
    group_rule: Rule,
    sibling_group: Fixture,
) -> None:
    neighbour, reader = group_rules_path(sibling_group), administrator_of(owner, sibling_group)
    with (
        verifies("group-approval-rules.groups-are-separate"),
        unchanged(lambda: standings(reader, neighbour), "the rules of the sibling group"),
    ):
        admin_of_group.put(
            group_rules / group_rule["id"], {"name": fresh_name(), "approvals_required": 2}
        ).given_served()


# -- the feature flag --------------------------------------------------------------------------------------------------


def test_while_the_flag_is_off_nothing_is_served(owner: Caller, group: Fixture) -> None:
    """Only if the profile says that it is off; another resource of the group shows that the owner is served."""
    given_declared(owner, "group_approval_rules_flag_off")
    rules = group_rules_path(group)
    control = owner.get(group_path(group) / "merge_request_approval_setting")
    body = {"name": fresh_name(), "approvals_required": 1}
    with verifies("group-approval-rules.flag-off-is-refused"):
        owner.get(rules, page=1, per_page=1).must_be_refused(beside=control)
        owner.post(rules, body).must_be_refused(beside=control)
        owner.put(rules / 1, body).must_be_refused(beside=control)
