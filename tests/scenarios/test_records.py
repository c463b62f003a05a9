"""Records that approval rules, approval status and approval state share: users, groups and protected branches."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange.approval_rules import administrator_of, group_rules_path, own_group, own_rule_put_back
from conformance.suite.arrange.reviews import (
    Rule,
    approvals_put_back,
    created,
    fresh_name,
    given_in_profile,
    given_open,
    merge_request_path,
    must_be_in_the_state_as_listed,
    must_become,
    rule_in,
    state_of,
    status_of,
    user_id,
    username,
)
from conformance.suite.arrange.rule_lists import rules_put_back
from conformance.suite.context import Unmet, current_run
from conformance.suite.expectations import Caller, Path, as_json, given, given_field, must, verifies, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.suite import Fixture

SIX_FIELDS: dict[str, type | tuple[type, ...]] = {
    "id": int,
    "name": str,
    "username": str,
    "state": str,
    "avatar_url": (str, type(None)),
    "web_url": str,
}


def the_one(rule: Rule, name: str, number: int) -> dict[str, Any]:
    """Return the record that a rule shows for one of its approvers; inconclusive when it does not show it."""
    found = [entry for entry in rule.get(name) or () if isinstance(entry, dict) and entry.get("id") == number]
    given(bool(found), f"the rule does not show {number} among its {name}")
    return dict(found[0])


# -- users and groups --------------------------------------------------------------------------------------------------


@pytest.mark.requirements(
    "records.user-reference.fields",
    "records.user-reference.web-url",
    "records.user-reference.avatar-url",
)
@pytest.mark.calls_area("project-approval-rules")
def test_an_approver_is_described_as_a_user_reference(
    maintainer: Caller, project_rules: Path, approver: Caller
) -> None:
    """The answer is validated on its arrival; this test makes sure that it names somebody."""
    rule = created(maintainer, project_rules, user_ids=[user_id(approver)])
    the_one(rule, "users", user_id(approver))


@pytest.mark.requirements(
    "records.group-reference.fields",
    "records.group-reference.avatar-url",
    "records.group-reference.parent-id",
    "records.group-reference.ldap",
)
@pytest.mark.calls_area("project-approval-rules")
def test_an_approver_group_is_described_as_a_group_reference(
    maintainer: Caller,
    project_rules: Path,
    approver_group: Fixture,
) -> None:
    """The fixture has a description, so its reference must show one."""
    rule = created(maintainer, project_rules, group_ids=[approver_group.id])
    shown = the_one(rule, "groups", approver_group.id)
    with verifies("records.group-reference.description", go_on=True):
        is_described = isinstance(shown.get("description"), str) and bool(shown["description"])
        if not is_described:
            given_field(approver_group, "description", str)
        must(is_described, "a description as text", f"description = {as_json(shown.get('description'))}")
    path = approver_group.get("path")
    given(isinstance(path, str) and "/" not in path, "the profile does not say that the group is at the top level")
    with verifies("records.group-reference.top-level-has-no-parent"):
        parent = shown.get("parent_id", "nothing")
        must(parent is None, "parent_id = null", f"parent_id = {parent}")


@pytest.mark.calls_area("project-approval-rules", "merge-request-approvals")
def test_a_user_is_described_alike_wherever_one_stands(
    maintainer: Caller,
    approver: Caller,
    project_rules: Path,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """As approver and eligible approver in a rule, and as author of an approval in the status and in the state."""
    number = user_id(approver)
    path = merge_request_path(project, merge_request)
    given_open(maintainer, path)
    rule = created(maintainer, project_rules, user_ids=[number], approvals_required=1)
    with approvals_put_back(maintainer, path, approver):
        approver.post(path / "approve").given_served()
        status, state = status_of(maintainer, path), state_of(maintainer, path)
    in_state = [entry for entry in state["rules"] if isinstance(entry, dict)]
    places = {
        "users of a rule": [the_one(rule, "users", number)],
        "eligible_approvers of a rule": rule.get("eligible_approvers"),
        "approved_by of the status": [entry.get("user") for entry in status["approved_by"]],
        "users in the state": [user for entry in in_state for user in entry.get("users") or ()],
        "approved_by in the state": [user for entry in in_state for user in entry.get("approved_by") or ()],
    }
    for where in ("users of a rule", "approved_by of the status"):
        given(any(user.get("id") == number for user in places[where] or ()), f"there is no user in {where}")
    given(bool(places["approved_by in the state"]), "no rule of the approval state shows who approved")
    with verifies("records.user-reference.same-everywhere"):
        for where, users in places.items():
            for user in users or ():
                missing = [name for name in SIX_FIELDS if not is_there(user, name)]
                must(not missing, f"six fields in {where}", f"without, or of another type: {', '.join(missing)}")


def is_there(user: Any, name: str) -> bool:
    if not isinstance(user, dict) or name not in user:
        return False
    return whole_number(user[name]) is not None if name == "id" else isinstance(user[name], SIX_FIELDS[name])


@pytest.mark.calls_area("project-approval-rules", "merge-request-approvals")
def test_whoever_is_named_is_named_whole(
    maintainer: Caller,
    owner: Caller,
    approver: Caller,
    second_approver: Caller,
    project_rules: Path,
    project: Fixture,
    group: Fixture,
    merge_request: Fixture,
) -> None:
    """Two users in each list, because the number of one may be shown with the name of the other."""
    people = {user_id(caller): username(caller) for caller in (approver, second_approver)}
    path = merge_request_path(project, merge_request)
    given_open(maintainer, path)
    rules = path / "approval_rules"
    records = in_rules_of_groups(owner, group, user_ids=list(people))
    with rules_put_back(maintainer, rules), approvals_put_back(maintainer, path, approver, second_approver):
        records += [created(maintainer, place, user_ids=list(people)) for place in (project_rules, rules)]
        for caller in (approver, second_approver):
            caller.post(path / "approve").given_served()
        records += [*maintainer.list(project_rules).entries, *maintainer.list(rules).entries]
        state, status = state_of(maintainer, path), status_of(maintainer, path)
        # Before anything is put back: the last calls are those that show it.
        with verifies("records.user-reference.one-person"):
            must_be_named_whole([*records, *state["rules"]], status["approved_by"], people)


def must_be_named_whole(records: list[Rule], approved_by: list[Any], people: dict[int, str]) -> None:
    """Expect the username of each of these people, and one name and address, wherever rules or a status name them."""
    users = [entry.get("user") for entry in approved_by if isinstance(entry, dict)]
    for record in records:
        users += [user for name in ("users", "eligible_approvers", "approved_by") for user in record.get(name) or ()]
    shown = [user for user in users if isinstance(user, dict) and user.get("id") in people]
    given(len(shown) >= 2 * len(people), "hardly any list names the approvers")
    for user in shown:
        wanted, username = people[user["id"]], as_json(user.get("username"))
        must(user.get("username") == wanted, f"user {user['id']} as {wanted}", f"username = {username}")
    names = {number: {user.get("name") for user in shown if user["id"] == number} for number in people}
    must(all(len(found) <= 1 for found in names.values()), "one name for each user", as_json(names))
    # A reader sees only one address of a person, and two people do not share one.
    pages = {number: {user.get("web_url") for user in shown if user["id"] == number} for number in people}
    addresses = [address for found in pages.values() for address in found if isinstance(address, str)]
    must(len(set(addresses)) == len(addresses), "no address of one user shown for another one", as_json(pages))


def in_rules_of_groups(owner: Caller, group: Fixture, **named: list[int]) -> list[Rule]:
    """Return what rules of a group show about those whom they name; empty if no rule can name these."""
    if not owner.target_declares("group_approval_rules"):
        return []
    with suppress(Unmet):  # the other lists are checked anyway
        administrator, rules = administrator_of(owner, own_group(group)), group_rules_path(own_group(group))
        with own_rule_put_back(administrator, rules) as rule:
            changed = rule_in(administrator.put(rules / rule["id"], named))
            return [changed, *administrator.list(rules).entries]
    return []


@pytest.mark.calls_area("project-approval-rules")
def test_a_group_is_named_whole(
    maintainer: Caller,
    owner: Caller,
    group: Fixture,
    project_rules: Path,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    paths = {
        group.id: given_in_profile(group.get("path"), "path", group.name)
        for group in (approver_group, second_approver_group)
    }
    # Whether an inner group counts as approver is open; if it does, it is named by its full path.
    deeper = filter(None, map(current_run().profile.first, ("subgroup", "nested_subgroup")))
    inside = {one.id: one["path"] for one in deeper if one.get("path")}
    sent = {"name": fresh_name(), "approvals_required": 1, "group_ids": list(inside)}
    nested = maintainer.post(project_rules, sent) if inside else None
    rule = created(maintainer, project_rules, group_ids=list(paths))
    shown = [*(rule.get("groups") or ()), *(maintainer.read(project_rules / rule["id"]).get("groups") or ())]
    named = [group for group in shown if isinstance(group, dict) and group.get("id") in paths]
    given(len(named) >= len(paths), "the rule does not show its groups")
    if nested and nested.is_served:
        named += [
            one for one in rule_in(nested).get("groups") or () if isinstance(one, dict) and one.get("id") in inside
        ]
    paths |= inside
    parents = {path: number for number, path in {**inside, group.id: group.get("path")}.items()}
    for one in in_rules_of_groups(owner, group, group_ids=[*{**paths, **inside}]):
        named += [found for found in one.get("groups") or () if isinstance(found, dict) and found.get("id") in paths]
    with verifies("records.group-reference.one-group"):
        must_have_their_paths(named, paths)
        seen = {number: {str(one.get("visibility")) for one in named if one["id"] == number} for number in paths}
        must(all(len(found) <= 1 for found in seen.values()), "one visibility for each group", as_json(seen))
        for found in named:
            path = paths[found["id"]]
            parent = found.get("parent_id", "nothing")
            if "/" not in path:
                must(parent is None, f"parent_id = null, as {path} is at the top level", f"parent_id = {parent}")
            elif found["id"] in inside:
                around = path.rpartition("/")[0]
                is_parent = parent is not None and parent == parents.get(around, parent)
                must(is_parent, f"the id of {around}, in which {path} lies", f"parent_id = {parent}")


@pytest.mark.calls_area("merge-request-approvals")
def test_a_group_is_named_whole_in_rules_of_merge_requests(
    maintainer: Caller,
    merge_request_rules: Path,
    approver_group: Fixture,
    second_approver_group: Fixture,
) -> None:
    groups = (approver_group, second_approver_group)
    paths = {group.id: given_in_profile(group.get("path"), "path", group.name) for group in groups}
    rule = created(maintainer, merge_request_rules, group_ids=list(paths))
    shown = [*(rule.get("groups") or ()), *(maintainer.read(merge_request_rules / rule["id"]).get("groups") or ())]
    with verifies("records.group-reference.one-group"):
        named = [group for group in shown if isinstance(group, dict) and group.get("id") in paths]
        given(bool(named), "the rule does not show its groups")
        must_have_their_paths(named, paths)


def must_have_their_paths(groups: list[dict[str, Any]], paths: dict[int, str]) -> None:
    """Expect that each of these groups is shown with its own path."""
    for group in groups:
        path = paths[group["id"]]
        must(
            group.get("full_path") == path,
            f"group {group['id']} as {path}",
            f"full_path = {as_json(group.get('full_path'))}",
        )


# -- protected branches ------------------------------------------------------------------------------------------------


@pytest.mark.requirements(
    "records.project-protected-branch.fields",
    "records.project-protected-branch.push-access-levels",
    "records.project-protected-branch.merge-access-levels",
    "records.project-protected-branch.unprotect-access-levels",
    "records.project-protected-branch.code-owner-approval-required",
)
@pytest.mark.calls_area("project-approval-rules")
def test_a_branch_in_a_rule_of_a_project_is_described(
    maintainer: Caller,
    project_rules: Path,
    protected_branch: Fixture,
) -> None:
    """Without access levels, a branch would not show how such a level is described."""
    rule = created(maintainer, project_rules, protected_branch_ids=[protected_branch.id])
    branch = the_one(rule, "protected_branches", protected_branch.id)
    for levels in ("push_access_levels", "merge_access_levels"):
        given(levels not in branch or bool(branch[levels]), f"the branch has no {levels}")


@pytest.mark.calls_area("project-approval-rules")
def test_a_protected_branch_has_its_own_name(
    maintainer: Caller,
    project_rules: Path,
    protected_branch: Fixture,
    second_protected_branch: Fixture,
) -> None:
    names = {
        branch.id: given_in_profile(branch.get("name"), "name", branch.name)
        for branch in (protected_branch, second_protected_branch)
    }
    rule = created(maintainer, project_rules, protected_branch_ids=list(names))
    with verifies("records.project-protected-branch.one-branch"):
        for shown in (rule, maintainer.read(project_rules / rule["id"])):
            for number, name in names.items():
                found = the_one(shown, "protected_branches", number).get("name")
                must(found == name, f"branch {number} as {name}", f"name = {as_json(found)}")


@pytest.mark.requirements(
    "records.group-protected-branch.fields",
    "records.group-protected-branch.push-access-levels",
    "records.group-protected-branch.merge-access-levels",
    "records.group-protected-branch.unprotect-access-levels",
    "records.group-protected-branch.push-entry-identifiers",
    "records.group-protected-branch.merge-entry-identifiers",
    "records.group-protected-branch.code-owner-approval-required",
    "records.group-protected-branch.allow-force-push",
    "records.group-protected-branch.inherited",
)
@pytest.mark.calls_area("group-approval-rules")
def test_a_branch_in_a_rule_of_a_group_is_described(owner: Caller, branch_rule_group: Fixture) -> None:
    """No parameter gives a group's rule a branch, so the profile must name a group whose rules have some."""
    given(owner.target_declares("group_approval_rules"), "the target does not declare group_approval_rules")
    listed = administrator_of(owner, branch_rule_group).list(group_rules_path(branch_rule_group)).entries
    branches = [branch for rule in listed if isinstance(rule, dict) for branch in rule.get("protected_branches") or ()]
    given(bool(branches), "no rule of the group lists a protected branch")
    for levels in ("push_access_levels", "merge_access_levels"):
        shown = [branch[levels] for branch in branches if isinstance(branch, dict) and levels in branch]
        given(not shown or any(shown), f"no branch has {levels}")


def absent_from(state: Mapping[str, Any], rules: Iterable[Rule]) -> list[str]:
    """Return the names of those rules that a state shows neither by id nor by name."""
    shown = [rule for rule in state["rules"] if isinstance(rule, dict)]
    known = {str(rule.get(key)) for rule in shown for key in ("id", "name")}
    return [rule["name"] for rule in rules if not {str(rule["id"]), rule["name"]} & known]


def test_a_rule_is_the_same_in_the_state_as_in_the_list(
    merge_request_rules: Path,
    maintainer: Caller,
    approver: Caller,
    second_approver: Caller,
    project: Fixture,
    merge_request: Fixture,
) -> None:
    """Three rules, each with its own name, number and approver."""
    path = merge_request_path(project, merge_request)
    given_open(maintainer, path)
    own = [
        created(maintainer, merge_request_rules, approvals_required=number, user_ids=[user_id(caller)])
        for number, caller in ((2, approver), (3, second_approver), (4, approver))
    ]
    with verifies("merge-request-approvals.rules.create.in-state"):
        must_be_in_the_state_as_listed(maintainer, merge_request_rules)
        # A service may number the rules of the state otherwise.
        must_become(lambda: absent_from(state_of(maintainer, path), own), lambda left: not left, "all three rules")
