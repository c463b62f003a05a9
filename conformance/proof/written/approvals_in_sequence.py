"""Faults of approvals that several people give and withdraw one after another, and of rules that two calls spoil."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, beforehand, parameters
from conformance.reference.identity import Visibility

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

PROJECT_RULES = "/projects/:id/approval_rules"


@fault("merge-request-approvals.approve.keeps-others")
def no_more_are_listed_than_required(service: Service) -> None:
    """The status lists no more people than approvals are required."""

    def make(status: Callable[..., Any]) -> Any:
        def cut(merge_request: Any, viewer: Any) -> Any:
            shown = status(merge_request, viewer)
            wanted = shown["approvals_required"]
            return {**shown, "approved_by": shown["approved_by"][:wanted]} if wanted else shown

        return cut

    around(service.merge_request_approvals, "status", make)


@fault("merge-request-approvals.approve.left-falls")
def users_beside_a_group_do_not_count(service: Service) -> None:
    """In a rule that names users and groups, only approvals of the groups' members count."""

    def make(approvers: Callable[..., Any]) -> Any:
        def of_groups(rule: Any, merge_request: Any) -> Any:
            found = approvers(rule, merge_request)
            return tuple(user for user in found if user not in rule.users) if rule.groups else found

        return of_groups

    around(service.merge_request_approvals, "approvers", make)


@fault("merge-request-approvals.unapprove.caller-is-gone")
def only_whom_a_rule_names_may_unapprove(service: Service) -> None:
    """The approval of somebody whom no rule names can be given, but not withdrawn, whatever the answer says."""
    approvals = service.merge_request_approvals

    def make(remove: Callable[..., Any]) -> Any:
        def remove_named(user: Any, merge_request: Any) -> None:
            eligible = service.approval_rules.eligible_approvers
            if any(user.id in eligible(rule) for rule in approvals.rules(merge_request)):
                remove(user, merge_request)

        return remove_named

    around(approvals, "remove_approval", make)


@fault("merge-request-approvals.unapprove.without-approval")
def unapproving_once_more_breaks(service: Service) -> None:
    """Whoever has withdrawn an approval causes a server error by withdrawing it again."""
    _breaking_without(service, "remove_approval", lambda user, merge_request: {(user.id, merge_request.id)})


@fault("merge-request-approvals.unapprove.without-approval")
def unapproving_after_a_reset_breaks(service: Service) -> None:
    """Whoever withdraws an approval that a reset has cleared causes a server error."""
    approvals = service.merge_request_approvals
    _breaking_without(
        service,
        "clear_approvals",
        lambda merge_request: {(one.user_id, merge_request.id) for one in approvals.approvals_of(merge_request)},
    )


def _breaking_without(service: Service, method: str, gone: Callable[..., set[tuple[int, int]]]) -> None:
    """Break when somebody unapproves whose approval a method has removed."""
    approvals, removed = service.merge_request_approvals, set[tuple[int, int]]()
    beforehand(approvals, method, lambda *arguments: removed.update(gone(*arguments)))

    def broken(merge_request: Any, caller: Any) -> None:
        if (caller.id, merge_request.id) in removed and not approvals.approved_by(caller, merge_request):
            raise LookupError("no such approval any more")

    beforehand(approvals, "unapprove", broken)


@fault("merge-request-approvals.unapprove.without-approval")
def authors_clear_all_approvals(service: Service) -> None:
    """Unapproving by the author of a merge request clears all of its approvals."""

    def clear(merge_request: Any, caller: Any) -> None:
        if caller.id == merge_request.author_id:
            service.merge_request_approvals.clear_approvals(merge_request)

    beforehand(service.merge_request_approvals, "unapprove", clear)


@fault("merge-request-approvals.approvals-are-separate")
def an_approval_moves_between_projects(service: Service) -> None:
    """Approving a merge request withdraws the caller's approvals in all other projects."""
    approvals = service.merge_request_approvals

    def elsewhere(user: Any, merge_request: Any) -> None:
        for other in list(service.repositories.merge_requests.values()):
            if other.project_id != merge_request.project_id:
                approvals.remove_approval(user, other)

    beforehand(approvals, "add_approval", elsewhere)


@fault("project-approval-rules.create.values")
def names_are_escaped_for_pages(service: Service) -> None:
    """A creation of a project's rule escapes its name as for HTML."""
    parameters(
        service,
        f"POST {PROJECT_RULES}",
        lambda values: {**values, "name": escape(values["name"])} if isinstance(values.get("name"), str) else values,
    )


@fault("merge-request-approvals.state.overwritten")
def approved_rules_overwrite_no_longer(service: Service) -> None:
    """Once somebody has approved, the rules of a merge request count as those of its project."""

    def make(overwritten: Callable[..., bool]) -> Any:
        approvals = service.merge_request_approvals
        return lambda merge_request: overwritten(merge_request) and not approvals.approvals_of(merge_request)

    around(service.merge_request_approval_rules, "overwritten", make)


@fault("merge-request-approvals.rules.leave-project-rules")
def rules_of_the_project_are_changed_through_reviews(service: Service) -> None:
    """A merge request finds the rules of its project under their numbers, and changes them there."""

    def make(find: Callable[..., Any]) -> Any:
        def find_also(merge_request: Any, number: int) -> Any:
            rule = service.approval_rules.rules.get(number)
            inherited = rule in service.merge_request_approval_rules.project_rules(merge_request)
            return rule if inherited else find(merge_request, number)

        return find_also

    around(service.merge_request_approval_rules, "find", make)


@fault("project-approval-rules.update.group-ids.removes-others")
def private_groups_pass_for_hidden(service: Service) -> None:
    """A change keeps every private group, also where its caller may view it."""
    groups = service.identities.groups

    def make(after: Callable[..., tuple[int, ...]]) -> Any:
        def kept(rule: Any, wanted: Any, caller: Any) -> tuple[int, ...]:
            private = [number for number in rule.groups if groups[number].visibility is Visibility.PRIVATE]
            left = after(rule, wanted, caller)
            return left if wanted.remove_hidden_groups else tuple(dict.fromkeys((*left, *private)))

        return kept

    around(service.approval_rules, "groups_after", make)


@fault("project-approval-rules.update.user-ids")
def users_go_with_hidden_groups(service: Service) -> None:
    """A change with remove_hidden_groups removes the users as well."""

    def make(after: Callable[..., tuple[int, ...]]) -> Any:
        return lambda rule, wanted, project: () if wanted.remove_hidden_groups else after(rule, wanted, project)

    around(service.approval_rules, "users_after", make)


@fault("project-approval-rules.delete.unknown-rule")
def deleting_a_deleted_rule_breaks(service: Service) -> None:
    """A project's rule that was deleted causes a server error when it is deleted again."""
    gone: set[int] = set()
    beforehand(service.approval_rules, "delete_rule", lambda rule: gone.add(rule.id))

    def broken(_project: Any, number: int) -> None:
        if number in gone:
            raise LookupError("no such rule any more")

    beforehand(service.project_approval_rules, "delete_rule", broken)
