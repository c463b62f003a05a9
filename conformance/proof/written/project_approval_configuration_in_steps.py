"""Faults of the approval configuration that only a later step of a story shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, altering, around, handling, is_route, names_nothing, sent
from conformance.proof.written.approval_rules import stored
from conformance.proof.written.approvals_neighbours import losing
from conformance.proof.written.project_approval_configuration import KEY, still_served
from conformance.reference.areas.approval_rule_records import Level, RuleType
from conformance.reference.errors import InvalidError
from conformance.reference.http import ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route

_NUMBER = "approvals_before_merge"


@fault("project-approval-configuration.change.several")
def one_of_two_changes_at_once_is_lost(service: Service) -> None:
    """If a configuration is changed twice concurrently, the first change is lost."""
    losing(service, f"POST {KEY}")


@fault("project-approval-configuration.change.leaves-unsent")
def the_deprecated_number_is_that_of_all_rules(service: Service) -> None:
    """A change of approvals_before_merge also changes how many approvals the rules of the project require."""

    def spread(_: Any, project: Any, wanted: Any) -> None:
        number = wanted.approvals_before_merge
        for rule in list(stored(service).values()) if number is not None else ():
            if rule.home == (Level.PROJECT, project.id) and rule.rule_type is RuleType.REGULAR:
                stored(service)[rule.id] = replace(rule, approvals_required=number)

    afterwards(service.project_approval_configurations, "change_configuration", spread)


@fault("project-approval-configuration.change.settings-are-boolean")
def a_wrong_setting_is_refused_and_switched_over(service: Service) -> None:
    """A setting that is no truth value is refused after it was inverted."""
    area = service.project_approval_configurations

    def make(handler: Callable[..., Any]) -> Any:
        def inverting(request: Request) -> Any:
            before = area.configuration(request.project)
            wrong = [name for name, value in sent(request).items() if isinstance(value, dict | str)]
            for name in wrong:
                value = getattr(before, name)
                if isinstance(value, bool):
                    area.configurations[request.project.id] = replace(before, **{name: not value})
            return handler(request)

        return inverting

    handling(service, f"POST {KEY}", make)


@fault("project-approval-configuration.change.removed")
def a_late_change_is_answered_the_other_way_round(service: Service) -> None:
    """From 16.0 on a change is still done, and the answer shows reset_approvals_on_push inverted."""
    still_served(service)

    def invert(_: Request, response: Response) -> None:
        shown: Any = response.content
        response.content = {**shown, "reset_approvals_on_push": not shown["reset_approvals_on_push"]}

    altering(service, f"POST {KEY}", invert)


@fault("project-approval-configuration.change.removed")
def a_late_change_is_refused_but_for_its_number(service: Service) -> None:
    """From 16.0 on a change is refused, and its approvals_before_merge stored."""
    still_served(service)
    area = service.project_approval_configurations

    def make(handler: Callable[..., Any]) -> Any:
        def refusing(request: Request) -> Any:
            number = sent(request).get(_NUMBER)
            if number is not None:
                known = area.configuration(request.project)
                area.configurations[request.project.id] = replace(known, approvals_before_merge=number)
            raise InvalidError("gone", parameter="id")

        return refusing

    handling(service, f"POST {KEY}", make)


@fault("project-approval-configuration.unknown-project", version="15.2")
def changes_of_unknown_projects_are_served(service: Service) -> None:
    """A change of the configuration of a project that does not exist is answered as if it had been done."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        is_lost = is_route(route, f"POST {KEY}") and names_nothing(request, "id")
        return ok({}, 201) if is_lost else response

    service.transformers.append(transform)


@fault("project-approval-configuration.author-approval.allowed")
def approvals_of_authors_are_not_kept(service: Service) -> None:
    """The approval of an author who may approve is served, and not stored."""
    approvals = service.merge_request_approvals

    def make(add: Callable[..., None]) -> Any:
        def adding(user: Any, merge_request: Any) -> None:
            if user.id != merge_request.author_id:
                add(user, merge_request)

        return adding

    around(approvals, "add_approval", make)
