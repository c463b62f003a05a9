"""Faults of approval rules that come from another rule, such as a copied one or a namesake, or show to some readers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, beforehand, let_in
from conformance.proof.written.merge_request_approvals import MERGE_REQUEST
from conformance.reference.areas.approval_rule_records import ApprovalRule, Level, RuleType, home_of
from conformance.reference.errors import ForbiddenError, not_found
from conformance.reference.identity import Role, Visibility

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.identity import Group, Project

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


# -- readers -----------------------------------------------------------------------------------------------------------


@fault("merge-request-approvals.approve.lists-caller")
def approvals_are_kept_from_reporters(service: Service) -> None:
    """Whoever has no more than the role of a reporter sees no approvals."""

    def hide(shown: dict[str, Any], merge_request: Any, viewer: Any) -> dict[str, Any]:
        project = service.merge_request_approval_rules.project_of(merge_request)
        is_below = service.identities.role_in(viewer, project) < Role.DEVELOPER
        return {**shown, "approved_by": []} if is_below else shown

    afterwards(service.merge_request_approvals, "status", hide)


@fault("merge-request-approvals.approve.lists-caller")
def approvals_are_kept_from_the_author(service: Service) -> None:
    """The author of a merge request sees no approvals of it."""

    def hide(shown: dict[str, Any], merge_request: Any, viewer: Any) -> dict[str, Any]:
        return {**shown, "approved_by": []} if viewer.id == merge_request.author_id else shown

    afterwards(service.merge_request_approvals, "status", hide)


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def a_group_that_is_shown_hides_the_others(service: Service) -> None:
    """contains_hidden_groups is false if the rule shows any group."""
    _announcing(service, lambda shown, _: shown["contains_hidden_groups"] and not shown["groups"])


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def private_groups_of_a_merge_request_pass_for_hidden(service: Service) -> None:
    """contains_hidden_groups is true for a private group, also if the caller may view it."""
    groups = service.identities.groups

    def is_private(_: dict[str, Any], rule: ApprovalRule) -> bool:
        return any(groups[number].visibility is Visibility.PRIVATE for number in rule.groups)

    _announcing(service, is_private)


def _announcing(service: Service, told: Callable[[dict[str, Any], ApprovalRule], bool]) -> None:
    def announce(shown: dict[str, Any], rule: ApprovalRule, *_: Any) -> dict[str, Any]:
        return {**shown, "contains_hidden_groups": told(shown, rule)}

    afterwards(service.merge_request_approval_rules, "present", announce)


@fault("merge-request-approvals.rules.hidden-groups.are-announced")
def the_state_announces_no_hidden_groups(service: Service) -> None:
    """contains_hidden_groups is false in every approval state."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        rules = [{**rule, "contains_hidden_groups": False} for rule in content["rules"]]
        response.content = {**content, "rules": rules}

    altering(service, f"GET {MERGE_REQUEST}/approval_state", alter)


# -- callers without a token -------------------------------------------------------------------------------------------


def open_without_a_token(service: Service, key: str, places: Iterable[Project | Group], actor: str) -> None:
    """Let calls of a route without a token read what belongs to public places, as an actor would."""
    public = [place for place in places if place.visibility is Visibility.PUBLIC]
    names = {name for place in public for name in (str(place.id), place.full_path)}

    def is_read(request: Request) -> bool:
        asks = request.route.key == key and request.path["id"] in names
        return asks and not request.header("private-token")

    let_in(service, is_read, actor)


@fault("authentication.anonymous-on-public-project")
def single_rules_of_public_projects_are_open(service: Service) -> None:
    """A rule of a public project is read on its own without a token."""
    key = "GET /projects/:id/approval_rules/:approval_rule_id"
    open_without_a_token(service, key, service.identities.projects.values(), "maintainer")


@fault("group-approval-rules.authorization.anonymous-reading")
def rules_of_public_groups_are_open(service: Service) -> None:
    """The rules of a public group are listed without a token."""
    open_without_a_token(service, "GET /groups/:id/approval_rules", service.identities.groups.values(), "owner")
