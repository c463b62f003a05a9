"""Approval rules of a merge request: created and changed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.approval_rules import SYSTEM_TYPES, project_rules_path, update_alone
from conformance.suite.arrange.places import by_full_path
from conformance.suite.arrange.reviews import (
    approvers_named,
    created,
    created_before_another,
    created_named,
    endless_name,
    essence,
    fresh_name,
    merge_request_path,
    must_be_created_unless_it_is_the_second,
    must_become,
    must_leave_the_state,
    name_of_digits,
    naming_only,
    rule_in,
    rule_in_state,
    state_of,
    unusual_name,
    user_id,
    username,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import (
    Answer,
    Caller,
    Path,
    as_json,
    given,
    left_to_others,
    must,
    must_be_as_before,
    named_otherwise,
    observe,
    project_path,
    verifies,
)

if TYPE_CHECKING:
    from conformance.suite import Fixture

Rule = dict[str, Any]


def must_be_stored(reader: Caller, rules: Path, rule: Rule, **values: Any) -> None:
    """Expect values of a rule, read by number and in the list."""
    must_become(
        lambda: reader.read(rules / rule["id"]),
        lambda found: isinstance(found, dict) and holds(found, values),
        f"{values} in the rule read alone",
    )
    listed = reader.list(rules).the(id=rule["id"])
    must(
        holds(listed, values),
        f"{as_json(values)} in the listed rule",
        as_json({name: listed.get(name) for name in values}),
    )


def holds(rule: Rule, values: dict[str, Any]) -> bool:
    return all(rule.get(name) == wanted for name, wanted in values.items())


def must_name(reader: Caller, rules: Path, rule: Rule, users: list[int], groups: list[int]) -> None:
    """Expect exactly these approvers of a rule, in the given answer and when read by number."""
    wanted = (sorted(users), sorted(groups))
    must(approvers_named(rule) == wanted, f"users {wanted[0]} and groups {wanted[1]}", as_json(approvers_named(rule)))
    must_become(
        lambda: approvers_named(reader.read(rules / rule["id"])),
        lambda found: bool(found == wanted),
        f"users {wanted[0]} and groups {wanted[1]} in the rule read alone",
    )


def given_overriding(reader: Caller, project: Fixture, answer: Answer) -> None:
    """Go on unless rules were refused because the project forbids merge requests rules of their own."""
    if answer.is_served:
        return
    settings = reader.get(project_path(project) / "merge_request_approval_setting")
    setting = settings.json.get("allow_overrides_to_approver_list_per_merge_request") if settings.is_served else None
    forbidden = isinstance(setting, dict) and setting.get("value") is False
    given(not forbidden, "the settings of the project let no merge request have rules of its own")


# -- creating ----------------------------------------------------------------------------------------------------------


def test_a_created_rule_is_found_wherever_rules_are_shown(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """The rule names somebody, because the service may choose the name of the rule for any approver."""
    sent = {"name": fresh_name(), "approvals_required": 5}
    path = merge_request_path(project, merge_request)
    # A caller who has read the state before must not get an older one, whichever way the project is named.
    state = by_full_path(path / "approval_state", approver)
    answer = maintainer.post(merge_request_rules, {**sent, "user_ids": [user_id(approver)]})
    given_overriding(maintainer, project, answer)
    with verifies("merge-request-approvals.rules.create.answer"):
        rule = rule_in(answer.must_be(200, 201))
    with verifies("merge-request-approvals.rules.create.listed"):
        maintainer.list(merge_request_rules).must_contain_once(id=rule["id"])
    with verifies("merge-request-approvals.rules.create.name-and-number", go_on=True):
        answer.must_hold(**sent)
        must_be_stored(maintainer, merge_request_rules, rule, **sent)
    with verifies("merge-request-approvals.rules.read-one", go_on=True):
        maintainer.get(merge_request_rules / rule["id"]).must_be(200).must_hold(id=rule["id"])
    with verifies("merge-request-approvals.rules.list", go_on=True):
        maintainer.get(merge_request_rules, per_page=1).must_be(200).must_be_an(list)
    with verifies("merge-request-approvals.rules.create.in-state", go_on=True):
        must_become(
            lambda: [entry.get("id") for entry in state_of(maintainer, path)["rules"]],
            lambda found: rule["id"] in found,
            f"rule {rule['id']} in the approval state",
        )
    with verifies("merge-request-approvals.status.read", go_on=True):
        maintainer.get(path / "approvals").must_be(200).must_be_an(dict)
    with verifies("merge-request-approvals.state.overwritten"):
        maintainer.get(path / "approval_state").given_served().must_hold(approval_rules_overwritten=True)
        again = approver.get(state)
        if again.is_served:
            again.must_hold(approval_rules_overwritten=True)
        # The rules of the project stay overwritten when there is a second rule.
        for name in (endless_name(), unusual_name()):
            second = {"name": name, "approvals_required": 1, "user_ids": [user_id(approver)]}
            beside = maintainer.post(merge_request_rules, second)
            if beside.is_served:
                break
        if beside.is_served:
            with verifies("merge-request-approvals.rules.create.name-and-number", go_on=True):
                # Which characters a name may have is open; an accepted name is stored.
                beside.must_hold(name=second["name"], approvals_required=second["approvals_required"])
            maintainer.get(path / "approval_state").given_served().must_hold(approval_rules_overwritten=True)
            # And so they do when there is one again.
            if maintainer.delete(merge_request_rules / rule_in(beside)["id"]).is_served:
                maintainer.get(path / "approval_state").given_served().must_hold(approval_rules_overwritten=True)


def test_name_and_number_are_all_that_a_creation_needs(
    merge_request_rules: Path, maintainer: Caller, approver: Caller
) -> None:
    created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
    with verifies("merge-request-approvals.rules.create.needs-only-name-and-number"):
        answer = maintainer.post(merge_request_rules, {"name": fresh_name(), "approvals_required": 4})
        rule = must_be_created_unless_it_is_the_second(maintainer, merge_request_rules, answer)
        maintainer.list(merge_request_rules).must_contain_once(id=rule["id"])


def test_a_created_rule_has_the_approvers_that_were_sent(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    users = [user_id(approver), user_id(second_approver)]
    groups = [approver_group.id, second_approver_group.id]
    with verifies("merge-request-approvals.rules.create.users", "merge-request-approvals.rules.create.groups"):
        for some_users, some_groups in ((users, groups), (users[1:], groups[:1])):
            rule = created(maintainer, merge_request_rules, user_ids=some_users, group_ids=some_groups)
            must_name(maintainer, merge_request_rules, rule, some_users, some_groups)
        # Under the name of a deleted rule as well, if a service takes it again.
        maintainer.delete(merge_request_rules / rule["id"]).given_served()
        sent = {"user_ids": users[:1], "group_ids": groups[1:]}
        again = created_named(maintainer, merge_request_rules, rule["name"], **sent)
        must_name(maintainer, merge_request_rules, again, sent["user_ids"], sent["group_ids"])
        # An approver who is named twice may be refused, or is shown once; it breaks nothing.
        twice = {"user_ids": users[:1] * 2, "group_ids": groups[:1] * 2}
        body = {"name": fresh_name(), "approvals_required": 1, **twice}
        maintainer.post(merge_request_rules, body).must_not_break()


def test_a_created_rule_has_the_approvers_sent_by_username(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
) -> None:
    first, second = user_id(approver), user_id(second_approver)
    groups = [one.id for one in current_run().profile.fixtures.get("approver_group", ())[:1]]
    with verifies("merge-request-approvals.rules.create.usernames", go_on=True):
        rule = created(maintainer, merge_request_rules, usernames=[username(second_approver)])
        must_name(maintainer, merge_request_rules, rule, [second], [])
        # An approver in both lists is named, whichever list counts.
        # So are groups beside them.
        lists = {"user_ids": [second], "usernames": [username(second_approver)], "group_ids": groups}
        rule = created(maintainer, merge_request_rules, **lists)
        must_name(maintainer, merge_request_rules, rule, [second], groups)
    with verifies("merge-request-approvals.rules.create.user-ids-and-usernames"):
        names = [username(maintainer), username(second_approver)]
        rule = created(maintainer, merge_request_rules, user_ids=[first, second], usernames=names)
        must_name(maintainer, merge_request_rules, rule, [first, second, user_id(maintainer)], [])
        body = {"name": fresh_name(), "approvals_required": 1, "user_ids": [first], "usernames": []}
        none_by_name = maintainer.post(merge_request_rules, body)
        if none_by_name.is_served:  # a service may refuse an empty list
            must_name(maintainer, merge_request_rules, rule_in(none_by_name), [first], [])


def test_a_rule_that_names_only_a_group_is_listed_and_overwrites(
    merge_request_rules: Path, maintainer: Caller, project: Fixture, merge_request: Fixture
) -> None:
    left_to_others()  # unless the profile names a group
    group = current_run().profile.first("approver_group")
    if group is None:
        return
    with suppress(Unmet):
        number = created(maintainer, merge_request_rules, user_ids=[], group_ids=[group.id])["id"]
        with verifies("merge-request-approvals.rules.create.listed", go_on=True):
            maintainer.list(merge_request_rules).must_contain_once(id=number)
        with verifies("merge-request-approvals.state.overwritten"):
            state = maintainer.get(merge_request_path(project, merge_request) / "approval_state")
            state.given_served().must_hold(approval_rules_overwritten=True)


def test_a_merge_request_that_never_had_a_rule_is_not_overwritten(
    maintainer: Caller,
    project: Fixture,
    untouched_merge_request: Fixture,
    merge_request_rules: Path,
) -> None:
    """Not even if another merge request of the project, or the project itself, has some."""
    path = merge_request_path(project, untouched_merge_request)
    given(owns_no_rule(maintainer, project, path), "the merge request has rules already")
    with verifies("merge-request-approvals.state.not-overwritten"):
        with suppress(Unmet):
            created(maintainer, merge_request_rules)
        maintainer.get(path / "approval_state").given_served().must_hold(approval_rules_overwritten=False)
        with rules_put_back(maintainer, path / "approval_rules"):  # a refused rule overwrites nothing
            if not maintainer.post(path / "approval_rules", {"name": fresh_name()}).is_served:
                maintainer.get(path / "approval_state").given_served().must_hold(approval_rules_overwritten=False)
        if not current_run().profile.claims("project-approval-rules"):
            return
        above = project_rules_path(project)
        with suppress(Unmet), rules_put_back(maintainer, above):
            created(maintainer, above)
            if not maintainer.list(path / "approval_rules").entries:  # which may show a rule of the project
                state = maintainer.get(path / "approval_state").given_served()
                state.must_hold(approval_rules_overwritten=False)


def owns_no_rule(maintainer: Caller, project: Fixture, path: Path) -> bool:
    """Tell whether a merge request shows only rules of others: its project, and a system that overwrites nothing."""
    left = own_rules(maintainer, project, path / "approval_rules")
    if any(not isinstance(rule, dict) or rule.get("rule_type") not in SYSTEM_TYPES for rule in left):
        return False
    return not left or state_of(maintainer, path).get("approval_rules_overwritten") is False


def own_rules(maintainer: Caller, project: Fixture, rules: Path) -> list[Any]:
    """Return a merge request's list without project rules, if it was seen to list those as well."""
    listed = maintainer.list(rules).entries
    if listed and current_run().profile.claims("project-approval-rules"):
        above = project_rules_path(project)
        with suppress(Unmet), rules_put_back(maintainer, above):
            new = created(maintainer, above)
            if maintainer.list(rules).having(name=new["name"]):
                names = {rule.get("name") for rule in maintainer.list(above).entries if isinstance(rule, dict)}
                return [rule for rule in listed if not isinstance(rule, dict) or rule.get("name") not in names]
    return listed


@pytest.mark.calls_area("project-approval-rules")
def test_a_copy_leaves_the_copy_of_another_rule(
    merge_request_rules: Path, project_rules: Path, maintainer: Caller, approver: Caller
) -> None:
    copies = []
    for _ in range(2):
        source = created(maintainer, project_rules, user_ids=[user_id(approver)])
        sent = {"approval_project_rule_id": source["id"], "name": fresh_name(), "approvals_required": 4}
        copies.append(rule_in(maintainer.post(merge_request_rules, sent).given_served()))
    with verifies("merge-request-approvals.rules.create.listed"):
        for copy in copies:
            maintainer.list(merge_request_rules).must_contain(id=copy["id"])


# -- changing ----------------------------------------------------------------------------------------------------------


def test_an_update_changes_what_it_sends_and_keeps_the_other_value(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
) -> None:
    rule, name = created_before_another(maintainer, merge_request_rules, user_ids=[user_id(approver)]), name_of_digits()
    names = update_alone(maintainer, merge_request_rules / rule["id"], {"name": name})
    counts = update_alone(maintainer, merge_request_rules / rule["id"], {"approvals_required": 5})
    with verifies("merge-request-approvals.rules.update.needs-no-parameter", go_on=True):
        for update in (names, counts):
            update.given_owed()
            update.alone.must_be_served()
    renamed, counted = names.telling, counts.telling
    with verifies("merge-request-approvals.rules.update.answer", go_on=True):
        renamed.must_be(200, 201).must_hold(id=rule["id"])
    with verifies("merge-request-approvals.rules.update.name", go_on=True):
        renamed.given_served().must_hold(name=name)
        if not counts.left_nobody:  # which may have given the rule another name since
            must_be_stored(maintainer, merge_request_rules, rule, name=name)
        with suppress(Unmet):  # other tests report a state that cannot be read
            review = Path(merge_request_rules.rpartition("/")[0])
            must_leave_the_state(maintainer, review, (rule["id"], rule.get("name")))
    with verifies("merge-request-approvals.rules.update.approvals-required", go_on=True):
        counted.given_served().must_hold(approvals_required=5)
        must_be_stored(maintainer, merge_request_rules, rule, approvals_required=5)
        again = {"name": name, "approvals_required": 4, **naming_only(approver)}  # the name that it has already
        maintainer.put(merge_request_rules / rule["id"], again).given_served().must_hold(approvals_required=4)
        must_be_stored(maintainer, merge_request_rules, rule, approvals_required=4)
    # Which characters a name may have is open; an accepted name is stored.
    for long in (endless_name(), unusual_name()):
        if maintainer.put(merge_request_rules / rule["id"], {"name": long, **naming_only(approver)}).is_served:
            with verifies("merge-request-approvals.rules.update.name", go_on=True):
                must_be_stored(maintainer, merge_request_rules, rule, name=long)
    with verifies("merge-request-approvals.rules.update.leaves-unsent"):
        renamed.given_served().must_hold(approvals_required=rule.get("approvals_required"))
        if not counts.left_nobody:
            counted.given_served().must_hold(name=name)


def test_a_rule_named_like_another_one_leaves_that_one(
    merge_request_rules: Path, maintainer: Caller, approver: Caller, second_approver: Caller
) -> None:
    """Whether two rules of a merge request may have one name is open."""
    left_to_others()  # if no such name is accepted
    sent = {"approvals_required": 5, **naming_only(second_approver)}
    for is_new in (True, False):
        there = created(maintainer, merge_request_rules, user_ids=[user_id(approver)])
        before = essence(maintainer.read(merge_request_rules / there["id"]))
        body = {"name": there["name"], **sent}
        if is_new:
            alike = maintainer.post(merge_request_rules, body)
        else:
            other = created(maintainer, merge_request_rules, user_ids=[user_id(second_approver)])["id"]
            maintainer.put(merge_request_rules / other, {**body, "name": fresh_name()})
            alike = maintainer.put(merge_request_rules / other, body)
            maintainer.put(merge_request_rules / other, {**body, "approvals_required": 6})  # now it has the name
        if alike.is_served:
            with verifies("merge-request-approvals.leaves-the-rest", go_on=True):
                listed = maintainer.list(merge_request_rules).must_contain(id=there["id"])
                must_be_as_before("the rule of that name", before, essence(listed.the(id=there["id"])))


def test_an_update_replaces_the_approvers(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    """Somebody who stays although left out can still approve."""
    first, second = user_id(approver), user_id(second_approver)
    one, other = approver_group.id, second_approver_group.id
    rule = created_before_another(maintainer, merge_request_rules, user_ids=[first], group_ids=[one])
    with verifies(
        "merge-request-approvals.rules.update.users-are-replaced",
        "merge-request-approvals.rules.update.groups-are-replaced",
    ):
        for users, groups in (([second], [other]), ([first, second], [one, other]), ([first], [one]), ([first], [one])):
            answer = maintainer.put(merge_request_rules / rule["id"], {"user_ids": users, "group_ids": groups})
            must_name(maintainer, merge_request_rules, rule_in(answer), users, groups)
    with verifies("merge-request-approvals.rules.update.leaves-unsent"):
        must_be_stored(
            maintainer,
            merge_request_rules,
            rule,
            **{name: rule.get(name) for name in ("name", "approvals_required")},
        )


def test_an_update_takes_approvers_by_username(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
) -> None:
    """Also by the path of the project, if that can be read: there the old users might remain."""
    rule = created_before_another(maintainer, merge_request_rules)
    change = {"user_ids": [user_id(approver)], "usernames": [username(second_approver)], "group_ids": []}
    named = named_otherwise(merge_request_rules, project, maintainer)

    def users() -> list[list[int]]:
        return [approvers_named(maintainer.read(one / rule["id"]))[0] for one in (merge_request_rules, named)]

    users()  # an answer that is kept from now on does not show the change
    with verifies("merge-request-approvals.rules.update.usernames"):
        maintainer.put(named / rule["id"], change).given_served()
        wanted = sorted([user_id(approver), user_id(second_approver)])
        must_become(users, lambda found: found == [wanted] * 2, f"the users {wanted}, and nobody who was there before")


def test_groups_beside_usernames_are_those_of_the_rule(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    left_to_others()  # where usernames are refused, as perhaps before 15.8
    users = [user_id(approver)]
    rule = created_before_another(maintainer, merge_request_rules, user_ids=users, group_ids=[approver_group.id])
    for groups in ([second_approver_group.id], [approver_group.id]):
        change = {"user_ids": users, "usernames": [username(approver)], "group_ids": groups}
        answer = maintainer.put(merge_request_rules / rule["id"], change)
        if answer.is_served:
            with verifies("merge-request-approvals.rules.update.groups-are-replaced"):
                must_name(maintainer, merge_request_rules, rule_in(answer), users, groups)


def test_what_becomes_of_approvers_that_an_update_does_not_name(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    approver_group: Fixture,
) -> None:
    named = {"user_ids": [user_id(approver)], "group_ids": [approver_group.id]}
    rule = created_before_another(maintainer, merge_request_rules, **named)
    with verifies("merge-request-approvals.rules.update.accepts-remove-hidden-groups"):
        maintainer.put(merge_request_rules / rule["id"], {**named, "remove_hidden_groups": False}).must_be_served()
    with verifies("merge-request-approvals.rules.update.groups-are-replaced", go_on=True):
        # Those that are sent stay: only hidden ones are removed, and this one is shown.
        given(approver_group.id in approvers_named(rule)[1], "the rule does not show the group that it was given")
        told = maintainer.put(merge_request_rules / rule["id"], {**named, "remove_hidden_groups": True})
        must_name(maintainer, merge_request_rules, rule_in(told), named["user_ids"], named["group_ids"])
    maintainer.put(merge_request_rules / rule["id"], {"name": fresh_name()}).given_served()
    absent = approvers_named(maintainer.read(merge_request_rules / rule["id"]))
    observe("merge-request-approvals.rules.update.absent-lists", f"lists that are not sent: {kept(absent)}")
    maintainer.put(merge_request_rules / rule["id"], {"user_ids": [], "group_ids": []}).given_served()
    empty = approvers_named(maintainer.read(merge_request_rules / rule["id"]))
    observe("merge-request-approvals.rules.update.empty-lists", f"lists that are sent empty: {kept(empty)}")


def kept(approvers: tuple[list[int], list[int]]) -> str:
    users, groups = approvers
    return f"users are {'kept' if users else 'removed'}, groups are {'kept' if groups else 'removed'}"


def test_an_update_may_remove_the_groups_that_its_caller_cannot_see(
    merge_request_rules: Path,
    owner: Caller,
    maintainer: Caller,
    approver: Caller,
    hidden_group: Fixture,
) -> None:
    """Beside it, the rule has a group that everybody can see, if the profile gives one."""
    visible = [group.id for group in current_run().profile.fixtures.get("approver_group", ())[:1]]
    rule = created_before_another(
        owner, merge_request_rules, user_ids=[user_id(approver)], group_ids=[*visible, hidden_group.id]
    )
    known = owner.read(merge_request_rules / rule["id"])
    given(hidden_group.id in approvers_named(known)[1], "the owner does not see the group")
    # What the owner sees must not be kept for the maintainer.
    owner.list(merge_request_rules)
    owner.get(Path(merge_request_rules.rpartition("/")[0]) / "approval_state")
    seen, listed = maintainer.read(merge_request_rules / rule["id"]), maintainer.list(merge_request_rules)
    given(hidden_group.id not in approvers_named(seen)[1], "the group is not hidden from the maintainer")
    with verifies("merge-request-approvals.rules.hidden-groups.are-announced", go_on=True):
        # The state may show a rule of the project with the same number, but of another name.
        state = state_of(maintainer, Path(merge_request_rules.rpartition("/")[0]))["rules"]
        named = [one for one in state if isinstance(one, dict) and one.get("name") == rule.get("name")]
        for shown in (seen, listed.the(id=rule["id"]), rule_in_state({"rules": named}, rule["id"])):
            told = shown.get("contains_hidden_groups")
            must(told is True, "contains_hidden_groups = true", f"contains_hidden_groups = {as_json(told)}")
            groups = approvers_named(shown)[1]
            must(hidden_group.id not in groups, f"not the hidden group {hidden_group.id}", f"the groups {groups}")
        told = known.get("contains_hidden_groups")
        must(
            told is not True,
            "nothing hidden from the owner, who sees the group",
            f"contains_hidden_groups = {as_json(told)}",
        )
    change = {"user_ids": [user_id(approver)], "group_ids": [], "remove_hidden_groups": True}
    with verifies("merge-request-approvals.rules.update.remove-hidden-groups"):
        maintainer.put(merge_request_rules / rule["id"], change).given_served()
        must_become(
            lambda: approvers_named(owner.read(merge_request_rules / rule["id"]))[1],
            lambda found: hidden_group.id not in found,
            f"no group {hidden_group.id} in the rule",
        )
