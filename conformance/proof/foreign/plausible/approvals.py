"""Plausible faults in approving merge requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.changes import changing_the_status
from conformance.proof.foreign.dimensions import (
    CALLER_AND_FORM,
    COUNT,
    NEIGHBOUR,
    NOTHING_DONE,
    REFUSED,
    SIDE_EFFECT,
    STORY,
)
from conformance.proof.foreign.registry import foreign, instead
from conformance.reference.errors import StatedError

if TYPE_CHECKING:
    from conformance.reference import Service


@foreign(STORY, "Merge request approvals: approve with another sha")
def a_wrong_sha_counts_only_once_somebody_approved(service: Service) -> None:
    """A sha is compared only if the merge request has approvals already."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_current_head")
    def _(require: Any, merge_request: Any, sha: Any) -> None:
        if approvals.approvals_of(merge_request):
            require(merge_request, sha)


@foreign(CALLER_AND_FORM, "Merge request approvals: reset_approvals by other callers")
def a_reset_without_approvals_is_for_anybody(service: Service) -> None:
    """If nobody approved, reset_approvals is served to any caller."""

    @instead(service.merge_request_approvals, "reset_approvals")
    def _(reset: Any, merge_request: Any, caller: Any) -> None:
        if service.merge_request_approvals.approvals_of(merge_request):
            reset(merge_request, caller)


@foreign(NEIGHBOUR, "Merge request approvals: approve with a password")
def anybodys_password_will_do(service: Service) -> None:
    """The password of any user is taken for that of the caller."""

    @instead(service.merge_request_approvals, "password_matches")
    def _(_: Any, __: Any, password: Any) -> bool:
        return password in {one.password for one in service.identities.users.values()}


@foreign(STORY, "Merge request approvals: approve checks the sha before the password")
def a_right_sha_stands_for_the_password(service: Service) -> None:
    """With the sha of the HEAD, no password is asked for."""

    @instead(service.merge_request_approvals, "approve")
    def _(approve: Any, merge_request: Any, caller: Any, sha: Any, password: Any) -> None:
        if sha is not None and sha == service.repositories.head_of(merge_request):
            password = caller.password
        approve(merge_request, caller, sha, password)


@foreign(REFUSED, "Merge request approvals: approve with another sha changes nothing")
def a_wrong_sha_takes_back_the_approvals(service: Service) -> None:
    """A sha that is not the HEAD is taken for a push: it takes back all approvals, and is answered with 409."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approve")
    def _(approve: Any, merge_request: Any, *rest: Any) -> None:
        try:
            approve(merge_request, *rest)
        except StatedError:
            approvals.clear_approvals(merge_request)
            raise


@foreign(COUNT, "Merge request approvals: rules of a merge request, paginated")
def the_first_page_lacks_rules_without_approvers(service: Service) -> None:
    """The list is joined with the approvers: rules that have groups and no users are not listed."""

    @instead(service.merge_request_approval_rules, "listed")
    def _(listed: Any, merge_request: Any) -> Any:
        return [one for one in listed(merge_request) if one.users or not one.groups]


@foreign(SIDE_EFFECT, "Merge request approvals: unapprove, several approvals")
def unapproving_takes_back_later_approvals(service: Service) -> None:
    """Taking an approval back takes back those that came after it too."""

    @instead(service.merge_request_approvals, "remove_approval")
    def _(_remove: Any, user: Any, merge_request: Any) -> None:
        area = service.merge_request_approvals
        given = area.approvals_of(merge_request)
        place = next(place for place, one in enumerate(given) if one.user_id == user.id)
        area.approvals[merge_request.id] = given[:place]


@foreign(COUNT, "Merge request approvals: reset_approvals, approvers of all kinds")
def only_approvals_of_named_users_are_reset(service: Service) -> None:
    """Resetting clears the approvals of users whom a rule names, and leaves those of everybody else."""

    @instead(service.merge_request_approvals, "clear_approvals")
    def _(_clear: Any, merge_request: Any) -> None:
        area = service.merge_request_approvals
        named = {number for rule in area.rules(merge_request) for number in rule.users}
        area.approvals[merge_request.id] = tuple(
            one for one in area.approvals_of(merge_request) if one.user_id not in named
        )


@foreign(COUNT, "Merge request approval status: approved_by, several approvals")
def the_status_shows_the_two_newest_approvals(service: Service) -> None:
    """The status shows the last two approvals, and no earlier ones."""

    def change(shown: Any, _merge_request: Any) -> None:
        shown["approved_by"] = shown["approved_by"][-2:]

    changing_the_status(service, change)


@foreign(NOTHING_DONE, "Merge request approvals: approve, named through a group")
def approvals_of_group_members_are_not_kept(service: Service) -> None:
    """Somebody whom rules name through a group alone may approve, and is not in approved_by afterwards."""

    @instead(service.merge_request_approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        rules = service.merge_request_approvals.rules(merge_request)
        eligible = service.approval_rules.eligible_approvers
        through = any(user.id in eligible(rule) and user.id not in rule.users for rule in rules)
        if not through or any(user.id in rule.users for rule in rules):
            add(user, merge_request)
