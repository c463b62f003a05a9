"""Faults of the records that rules, approval status and approval state share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group

RULES = "/projects/:id/approval_rules"
MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


@fault("records.user-reference.same-everywhere")
def status_shortens_its_users(service: Service) -> None:
    """The approval status leaves out the username of approvers."""

    def shorten(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {
            **content,
            "approved_by": [
                {"user": {name: value for name, value in entry["user"].items() if name != "username"}}
                for entry in content["approved_by"]
            ],
        }

    altering(service, f"GET {MERGE_REQUEST}/approvals", shorten)


@fault("records.user-reference.same-everywhere")
def state_shortens_its_users(service: Service) -> None:
    """The approval state has the name of each approver as a list of its words."""

    def split(_: Request, response: Response) -> None:
        content: Any = response.content
        for rule in content["rules"]:
            rule["approved_by"] = [{**user, "name": user["name"].split()} for user in rule["approved_by"]]

    altering(service, f"GET {MERGE_REQUEST}/approval_state", split)


@fault("records.group-reference.top-level-has-no-parent")
def top_level_group_is_its_own_parent(service: Service) -> None:
    """A top-level group has itself as its parent."""
    present = service.present.group
    service.present.group = lambda group: {**present(group), "parent_id": group.parent_id or group.id}


@fault("records.group-reference.description")
def group_reference_has_no_description(service: Service) -> None:
    """A group with a description is shown without one."""
    present = service.present.group
    service.present.group = lambda group: {**present(group), "description": None}


@fault("records.project-protected-branch.code-owner-approval-required")
def code_owner_approval_is_a_number(service: Service) -> None:
    """Rules of projects say with 0 or 1 whether a branch requires its code owners."""
    present = service.present.project_protected_branch
    service.present.project_protected_branch = lambda branch: {
        **present(branch),
        "code_owner_approval_required": int(branch.code_owner_approval_required),
    }


@fault("records.group-protected-branch.code-owner-approval-required")
def code_owner_approval_is_a_text_in_groups(service: Service) -> None:
    """Rules of groups say with a text whether a branch requires its code owners."""
    present = service.present.group_protected_branch
    service.present.group_protected_branch = lambda branch: {
        **present(branch),
        "code_owner_approval_required": "false",
    }


@fault("records.group-protected-branch.push-entry-identifiers")
def push_levels_in_groups_have_no_key(service: Service) -> None:
    """Entries of push_access_levels in rules of groups leave out deploy_key_id."""
    present = service.present.group_protected_branch

    def without_key(branch: Any) -> Any:
        shown = present(branch)
        levels: Any = shown["push_access_levels"]
        kept = [{name: value for name, value in level.items() if name != "deploy_key_id"} for level in levels]
        return {**shown, "push_access_levels": kept}

    service.present.group_protected_branch = without_key


@fault("records.user-reference.one-person")
def users_have_each_other_s_names(service: Service) -> None:
    """A user reference has the username of the user with the previous id."""
    present = service.present.user

    def mixed(user: Any) -> dict[str, Any]:
        before = service.identities.users.get(user.id - 1) or user
        return {**present(user), "username": before.username}

    service.present.user = mixed


@fault("records.user-reference.one-person")
def eligible_approvers_have_other_names(service: Service) -> None:
    """Every user in eligible_approvers has the name of the first one."""
    rules = service.approval_rules
    present = rules.present

    def shown(*arguments: Any, **named: Any) -> dict[str, Any]:
        rule = present(*arguments, **named)
        users = rule["eligible_approvers"]
        return {**rule, "eligible_approvers": [{**user, "name": users[0]["name"]} for user in users]}

    rules.present = shown


@fault("records.project-protected-branch.one-branch")
def branches_are_named_as_the_default_one(service: Service) -> None:
    """Every protected branch in a rule has the name main."""
    present = service.present.project_protected_branch
    service.present.project_protected_branch = lambda branch: {**present(branch), "name": "main"}


@fault("records.group-reference.one-group")
def groups_have_each_other_s_paths(service: Service) -> None:
    """Every group reference in a rule has the path of the first one."""
    rules = service.approval_rules
    present = rules.present

    def shown(*arguments: Any, **named: Any) -> dict[str, Any]:
        rule = present(*arguments, **named)
        groups = rule["groups"]
        return {**rule, "groups": [{**group, "full_path": groups[0]["full_path"]} for group in groups]}

    rules.present = shown


# -- one user, and one group -------------------------------------------------------------------------------------------


@fault("records.user-reference.one-person")
def users_share_their_address(service: Service) -> None:
    """Every user is shown with the same web_url."""
    present = service.present.user
    service.present.user = lambda user: {**present(user), "web_url": "https://service.example.com/user"}


@fault("records.group-reference.one-group")
def new_rules_show_public_groups(service: Service) -> None:
    """The answer to the creation of a rule shows its groups as public."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "groups": [{**one, "visibility": "public"} for one in content["groups"]]}

    altering(service, f"POST {RULES}", alter)


def _with_parent(service: Service, parent: Callable[[Group], int | None]) -> None:
    present = service.present.group
    service.present.group = lambda group: {**present(group), "parent_id": parent(group)}


@fault("records.group-reference.one-group")
def groups_at_the_top_lie_in_themselves(service: Service) -> None:
    """A group at the top level is shown as its own parent."""
    _with_parent(service, lambda group: group.parent_id or group.id)


@fault("records.group-reference.one-group")
def groups_inside_have_no_parent(service: Service) -> None:
    """A group inside another one is shown without a parent."""
    _with_parent(service, lambda _: None)


@fault("records.group-reference.one-group")
def groups_inside_lie_in_the_outermost(service: Service) -> None:
    """A group in several groups is shown with the outermost one as its parent."""

    def outermost(group: Group) -> int | None:
        around = [one.id for one in service.identities.lineage(group) if one.id != group.id]
        return around[-1] if around else None

    _with_parent(service, outermost)
