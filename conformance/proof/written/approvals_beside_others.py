"""Faults of approval rules that come from another rule, such as a copied one or a namesake, or show to some readers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, beforehand
from conformance.reference.areas.approval_rule_records import ApprovalRule, Level, RuleType, home_of
from conformance.reference.errors import ForbiddenError, not_found

if TYPE_CHECKING:
    from conformance.reference import Service

# -- copies ------------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.create.listed")
def copies_are_not_listed(service: Service) -> None:
    """The rules of a merge request are listed without those that were copied from its project."""
    afterwards(
        service.merge_request_approval_rules,
        "listed",
        lambda rules, _: [rule for rule in rules if rule.source_id is None],
    )


@fault("merge-request-approvals.rules.read-one")
def copies_are_not_found(service: Service) -> None:
    """A rule that was copied from the project is found in the list only."""

    def refuse(rule: ApprovalRule, *_: Any) -> None:
        if rule.source_id is not None:
            raise not_found("Approval Rule")

    afterwards(service.merge_request_approval_rules, "find_listed", refuse)


@fault("merge-request-approvals.rules.update.answer")
def copies_cannot_be_changed(service: Service) -> None:
    """A rule that was copied from the project is changed by nobody."""

    def refuse(rule: ApprovalRule) -> None:
        if rule.source_id is not None:
            raise ForbiddenError

    beforehand(service.merge_request_approval_rules, "require_changeable", refuse)


@fault("merge-request-approvals.approvals-leave-rules")
def approving_copies_the_rules_of_the_project(service: Service) -> None:
    """The first approval gives a merge request copies of the rules of its project."""
    rules = service.merge_request_approval_rules

    def copy(_: Any, merge_request: Any) -> None:
        if not service.merge_request_approvals.approvals_of(merge_request):
            for rule in rules.project_rules(merge_request):
                if rule.rule_type is RuleType.REGULAR:
                    service.approval_rules.add_rule(replace(rule, home=home_of(merge_request), source_id=rule.id))

    beforehand(service.merge_request_approvals, "add_approval", copy)


# -- namesakes ---------------------------------------------------------------------------------------------------------


def creation_reaches_namesakes(service: Service, *, of: Level, by: Level) -> None:
    """Let the creation of a rule at one level give its number to rules of the same name elsewhere, at another one."""
    known = service.approval_rules.rules

    def reach(rule: ApprovalRule, _: Any) -> None:
        for other in list(known.values()) if rule.home.level is by else ():
            if other.home.level is of and other.home != rule.home and other.name == rule.name:
                known[other.id] = replace(other, approvals_required=rule.approvals_required, users=rule.users)

    afterwards(service.approval_rules, "add_rule", reach)


@fault("merge-request-approvals.rules.are-separate")
def creation_reaches_namesakes_in_merge_requests(service: Service) -> None:
    """The creation of a rule of a merge request changes the rules of that name in other merge requests."""
    creation_reaches_namesakes(service, of=Level.MERGE_REQUEST, by=Level.MERGE_REQUEST)


@fault("project-approval-rules.projects-are-separate")
def creation_reaches_namesakes_in_projects(service: Service) -> None:
    """The creation of a rule of a project changes the rules of that name in other projects."""
    creation_reaches_namesakes(service, of=Level.PROJECT, by=Level.PROJECT)


@fault("project-approval-rules.leave-merge-requests")
def creation_reaches_namesakes_further_in(service: Service) -> None:
    """The creation of a rule of a project changes the rules of that name in merge requests."""
    creation_reaches_namesakes(service, of=Level.MERGE_REQUEST, by=Level.PROJECT)


# -- deletions ---------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.rules.delete.absent")
def deleting_a_rule_once_more_breaks(service: Service) -> None:
    """A merge request's rule that was deleted causes a server error when it is deleted again."""
    gone: set[int] = set()
    beforehand(service.approval_rules, "delete_rule", lambda rule: gone.add(rule.id))

    def broken(_: Any, number: int) -> None:
        if number in gone:
            raise LookupError("no such rule any more")

    beforehand(service.merge_request_approval_rules, "delete_rule", broken)
