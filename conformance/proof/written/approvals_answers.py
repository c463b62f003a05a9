"""Faults of approvals that only a second look shows: at the answer to a write, at what is done twice, and beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, around, handling
from conformance.proof.written.merge_request_approvals import MERGE_REQUEST
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.areas.merge_request_approval_rules import merge_request_of
from conformance.reference.areas.merge_request_approvals import Approval
from conformance.reference.choices import Choices, Repeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response

RULES_OF_PROJECT = "/projects/:id/approval_rules"
#: Where an approval by somebody who has approved is served, and so may be counted twice.
_TWICE = Choices(repeated_approval=Repeat.ACCEPT)


def sent_in(request: Request) -> dict[str, Any]:
    """Return what a call sends as JSON."""
    return dict(json.loads(request.body or b"{}"))


# -- answers -----------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.left-falls")
def answer_to_approval_counts_as_before(service: Service) -> None:
    """The answer to an approval has the approvals_left from before it."""

    def make(handler: Any) -> Any:
        def late(request: Request) -> Any:
            left = service.merge_request_approvals.approvals_left(merge_request_of(request))
            response = handler(request)
            response.content = {**response.content, "approvals_left": left}
            return response

        return late

    handling(service, f"POST {MERGE_REQUEST}/approve", make)


@fault("merge-request-approvals.approve.lists-caller")
def answer_to_a_later_approval_leaves_its_caller_out(service: Service) -> None:
    """The answer to an approval shows only who approved before, if anybody did."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        others = [one for one in content["approved_by"] if one["user"]["id"] != request.caller.id]
        response.content = {**content, "approved_by": others or content["approved_by"]}

    altering(service, f"POST {MERGE_REQUEST}/approve", alter)


def answers_with_former(service: Service, name: str) -> None:
    """Answer a change of a project's rule with the former content of one list."""

    def make(update: Any) -> Any:
        def late(project: Any, number: int, wanted: Any, caller: Any) -> Any:
            before = service.project_approval_rules.find(project, number)
            return replace(update(project, number, wanted, caller), **{name: getattr(before, name)})

        return late

    around(service.project_approval_rules, "update_rule", make)


@fault("project-approval-rules.update.user-ids")
def answer_to_change_names_former_users(service: Service) -> None:
    """The answer to a change of a project's rule names the former users."""
    answers_with_former(service, "users")


@fault("project-approval-rules.update.group-ids")
def answer_to_change_names_former_groups(service: Service) -> None:
    """The answer to a change of a project's rule names the former groups."""
    answers_with_former(service, "groups")


@fault("project-approval-rules.update.protected-branch-ids")
def answer_to_change_names_former_branches(service: Service) -> None:
    """The answer to a change of a project's rule names the former branches."""
    answers_with_former(service, "protected_branches")


@fault("project-approval-rules.create.protected-branch-ids")
def answer_to_creation_names_no_branch(service: Service) -> None:
    """The answer to the creation of a project's rule names no branch."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "protected_branches": []}

    altering(service, f"POST {RULES_OF_PROJECT}", alter)


@fault("project-approval-rules.create.usernames")
def answer_to_creation_names_users_by_number_only(service: Service) -> None:
    """The answer to the creation of a project's rule leaves out users who were named by username."""

    def alter(request: Request, response: Response) -> None:
        content, ids = response.content, sent_in(request).get("user_ids") or ()
        users = [user for user in content["users"] if user["id"] in ids]  # type: ignore[index,call-overload]
        response.content = {**content, "users": users}  # type: ignore[dict-item]

    altering(service, f"POST {RULES_OF_PROJECT}", alter)


def switching_off_the_rest(off: Callable[[Any], Any]) -> Callable[[Request, Response], None]:
    """Return what shows as off, in an answer, what the call did not send."""

    def alter(request: Request, response: Response) -> None:
        content, sent = response.content, sent_in(request)
        shown: dict[str, Any] = dict(content)  # type: ignore[call-overload]
        response.content = {name: value if name in sent else off(value) for name, value in shown.items()}

    return alter


@fault("approval-settings.group.update.leaves-unsent")
def answer_of_a_group_shows_unsent_settings_off(service: Service) -> None:
    """The answer to an update of a group shows settings as off that were not sent."""
    off = switching_off_the_rest(lambda entry: {**entry, "value": False})
    altering(service, "PUT /groups/:id/merge_request_approval_setting", off)


@fault("project-approval-configuration.change.leaves-unsent")
def answer_shows_unsent_settings_off(service: Service) -> None:
    """The answer to a change of the configuration shows settings as off that were not sent."""
    off = switching_off_the_rest(lambda value: False if isinstance(value, bool) else value)
    altering(service, "POST /projects/:id/approvals", off)


# -- twice -------------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.unapprove.caller-is-gone", choices=_TWICE)
def repeated_approval_is_withdrawn_once(service: Service) -> None:
    """Who approved twice is still listed after taking the approval back once."""
    twice = remembering_repeats(service)

    def make(remove: Any) -> Any:
        def once(user: Any, merge_request: Any) -> None:
            if twice.pop((merge_request.id, user.id), None) is None:
                remove(user, merge_request)

        return once

    around(service.merge_request_approvals, "remove_approval", make)


@fault("merge-request-approvals.reset.clears-all", choices=_TWICE)
def repeated_approval_outlives_a_reset(service: Service) -> None:
    """Who approved twice is still listed after a reset."""
    twice, approvals = remembering_repeats(service), service.merge_request_approvals

    def make(clear: Any) -> Any:
        def once(merge_request: Any) -> None:
            clear(merge_request)
            left = tuple(twice.pop(key) for key in list(twice) if key[0] == merge_request.id)
            if left:
                approvals.approvals[merge_request.id] = left

        return once

    around(approvals, "clear_approvals", make)


def remembering_repeats(service: Service) -> dict[tuple[int, int], Approval]:
    """Return the approvals, by merge request and user, that are given a second time from now on."""
    twice: dict[tuple[int, int], Approval] = {}

    def make(approve: Any) -> Any:
        def counting(merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
            had = service.merge_request_approvals.approved_by(caller, merge_request)
            approve(merge_request, caller, sha, password)
            if had:
                twice[merge_request.id, caller.id] = Approval(caller.id, service.clock.now())

        return counting

    around(service.merge_request_approvals, "approve", make)
    return twice


# -- beside it ---------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.current-sha")
def first_merge_request_has_the_only_head(service: Service) -> None:
    """A sha is compared with the HEAD of the first merge request of the project."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            known = service.repositories.merge_requests.values()
            beside = (one for one in known if one.project_id == merge_request.project_id)
            require(min(beside, key=lambda one: one.iid), sha)

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


def removing_all_groups(service: Service, level: Level) -> None:
    """Let remove_hidden_groups remove every group, where no hidden one is there."""
    rules = service.approval_rules

    def make(after: Any) -> Any:
        def bare(rule: Any, wanted: Any, caller: Any) -> Any:
            all_go = wanted.remove_hidden_groups and not rules.hidden_groups(rule, caller)
            return () if all_go and rule.home.level is level else after(rule, wanted, caller)

        return bare

    around(rules, "groups_after", make)


@fault("merge-request-approvals.rules.update.groups-are-replaced")
def removing_hidden_groups_of_a_merge_request_removes_all(service: Service) -> None:
    """With remove_hidden_groups, an update of a merge request's rule removes the groups that were sent as well."""
    removing_all_groups(service, Level.MERGE_REQUEST)


@fault("project-approval-rules.update.group-ids")
def removing_hidden_groups_of_a_project_removes_all(service: Service) -> None:
    """With remove_hidden_groups, a change of a project's rule removes the groups that were sent as well."""
    removing_all_groups(service, Level.PROJECT)
