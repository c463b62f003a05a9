"""Lists in a rule: sent with none, one, two and three entries, all of which the rule then shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from conformance.suite.arrange import arranged
from conformance.suite.arrange.reviews import fresh_name, given_with_list
from conformance.suite.context import NotTested, current_run
from conformance.suite.derived import caller_named, claims_of, held_against, is_known, served_caller, takes_part
from conformance.suite.expectations import given, must

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.suite import Actor, Operation
    from conformance.suite.arrange import Arranged
    from conformance.suite.expectations import Answer

LISTED = {
    "updateGroupApprovalRule.user_ids": "group-approval-rules.update.user-ids",
    "updateGroupApprovalRule.group_ids": "group-approval-rules.update.group-ids",
    "createProjectApprovalRule.user_ids": "project-approval-rules.create.user-ids",
    "createProjectApprovalRule.group_ids": "project-approval-rules.create.group-ids",
    "createProjectApprovalRule.usernames": "project-approval-rules.create.usernames",
    "createProjectApprovalRule.protected_branch_ids": "project-approval-rules.create.protected-branch-ids",
    "updateProjectApprovalRule.user_ids": "project-approval-rules.update.user-ids",
    "updateProjectApprovalRule.group_ids": "project-approval-rules.update.group-ids",
    "updateProjectApprovalRule.usernames": "project-approval-rules.update.usernames",
    "updateProjectApprovalRule.protected_branch_ids": "project-approval-rules.update.protected-branch-ids",
    "createMergeRequestApprovalRule.user_ids": "merge-request-approvals.rules.create.users",
    "createMergeRequestApprovalRule.group_ids": "merge-request-approvals.rules.create.groups",
    "createMergeRequestApprovalRule.usernames": "merge-request-approvals.rules.create.usernames",
    "updateMergeRequestApprovalRule.user_ids": "merge-request-approvals.rules.update.users-are-replaced",
    "updateMergeRequestApprovalRule.group_ids": "merge-request-approvals.rules.update.groups-are-replaced",
    "updateMergeRequestApprovalRule.usernames": "merge-request-approvals.rules.update.usernames",
}
"""
Operation and parameter, and the requirement that the rule shows what the list names.

New rules of groups are not among them: no operation takes one away again.
"""


#: The caller, who has a role in the project or group, so that a rule may name the caller.
MEMBERS = ("maintainer", "owner")


#: A list of so many entries is sent by the owner, or by the path of the project or group.
BY_OWNER, BY_PATH = 1, 2


@dataclass(frozen=True)
class Kind:
    """What a list names: which fixtures of the profile, and where a rule shows them."""

    one: str
    two: str
    shown: str
    by: str


KINDS = {
    "user_ids": Kind("approver.id", "second_approver.id", "users", "id"),
    "usernames": Kind("approver.username", "second_approver.username", "users", "username"),
    "group_ids": Kind("approver_group", "second_approver_group", "groups", "id"),
    "protected_branch_ids": Kind("protected_branch", "second_protected_branch", "protected_branches", "id"),
}


def lists_of(operation: Operation) -> dict[str, str]:
    """Return the lists that an operation accepts at the version of the target, each with its requirement."""
    names = [parameter.name for parameter in operation.parameters if parameter.place == "body"]
    return {name: LISTED[f"{operation.id}.{name}"] for name in names if f"{operation.id}.{name}" in LISTED}


@pytest.mark.every_operation(
    where=lambda operation: takes_part(operation) and bool(lists_of(operation)),
    requirements=lambda operation: claims_of(*lists_of(operation).values()),
)
def test_a_list_names_none_one_or_two_and_all_are_shown(operation: Operation) -> None:
    """Every call names somebody: a rule that names nobody may be of another type, or exist already."""
    with arranged(operation) as prepared:
        for name, requirement in lists_of(operation).items():
            for values in several(prepared, KINDS[name]):
                body = {**prepared.call.body, **somebody_beside(prepared, name), name: values}
                answer = sent(prepared, body, len(values))
                if not answer.is_served:
                    given(is_served_otherwise(prepared), f"{operation.id} is refused without the list as well")
                with held_against([requirement], go_on=True):
                    answer.must_be_served()
                    must_show(prepared, answer, KINDS[name], values)
                take_back(prepared, answer)


def take_back(prepared: Arranged, answer: Answer) -> None:
    """Delete a rule that was created, because how many may exist at the same time is open."""
    if prepared.operation.method == "POST" and answer.is_served and isinstance(answer.json, dict):
        prepared.keeper.delete(f"{prepared.call.path}/{answer.json.get('id')}")


def is_served_otherwise(prepared: Arranged) -> bool:
    """Tell whether the same operation is served with what its example sends."""
    answer = prepared.sent_by(served_caller(prepared.operation))
    take_back(prepared, answer)
    return answer.is_served


def somebody_beside(prepared: Arranged, name: str) -> dict[str, Any]:
    """Return what else is sent: a name that no other rule has, and an approver if the list of users is empty."""
    users: dict[str, Any] = {"user_ids": []} if name == "usernames" else {}
    groups = {"group_ids": [prepared.place.value("approver_group")]} if KINDS[name].shown == "users" else {}
    return {"name": fresh_name(), **users, **groups}


def several(prepared: Arranged, kind: Kind) -> Iterator[list[Any]]:
    """Yield none, the first, both and the second of two entries of the profile, and both with the caller."""
    values = []
    yield []
    for reference in (kind.one, kind.two):
        try:
            values.append(prepared.place.value(reference))
        except NotTested:
            return
        yield list(values)
    yield values[1:]
    caller = served_caller(prepared.operation).actor
    if kind.shown == "users" and caller is not None and caller.name in MEMBERS and not may_be_author(prepared, caller):
        yield [*values, *(value for value in (getattr(caller, kind.by),) if value is not None)]


def may_be_author(prepared: Arranged, caller: Actor) -> bool:
    """Tell whether somebody may be the author of an operation's merge request, because authors may be in no rule."""
    author = current_run().profile.actors.get("author")
    return "merge_requests" in prepared.operation.path and (author is None or author.id in (None, caller.id))


def sent(prepared: Arranged, body: dict[str, Any], length: int) -> Answer:
    """Send a body, with a list of this length by another member or by the path of the project or group.

    If that is refused, it is sent as usual: other tests say who must be served, and by which names.
    """
    operation, usual, call = prepared.operation, served_caller(prepared.operation), prepared.call
    owner = caller_named("owner") if length == BY_OWNER and is_known("owner") else usual
    path = prepared.by_path.path if length == BY_PATH and prepared.by_path else call.path
    if (owner.name, path) != (usual.name, call.path):
        answer = owner.call(operation.method, path, query=call.query, json=body)
        if answer.is_served:
            return answer
    return usual.call(operation.method, call.path, query=call.query, json=body)


def must_show(prepared: Arranged, answer: Answer, kind: Kind, values: list[Any]) -> None:
    """Expect that the list of rules shows what a rule was sent with; additional content is open."""
    is_new = prepared.operation.method == "POST"
    number = answer.json.get("id") if is_new and isinstance(answer.json, dict) else None
    path = prepared.call.path if is_new else prepared.call.path.rpartition("/")[0]
    number = number if is_new else prepared.call.path_values["approval_rule_id"]
    rule = prepared.keeper.list(path).the(id=number)
    entries = given_with_list(rule, kind.shown, f"the rule does not show {kind.shown}")[kind.shown]
    shown = [entry.get(kind.by) for entry in entries if isinstance(entry, dict)]
    missing = [value for value in values if value not in shown]
    must(not missing, f"{values} among the {kind.shown}", f"{shown}", answer.exchange)
