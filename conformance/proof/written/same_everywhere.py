"""Faults of records that differ between two responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, replacing, replacing_in_each
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def shown_to_some(service: Service, key: str, least: Role, **values: Any) -> None:
    """Show other values of a record to callers below a role."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        if service.identities.role_in(request.caller, request.project) < least:
            response.content = {**content, **values}

    altering(service, key, alter)


@fault("job-token-scope.same-everywhere")
def owners_see_another_limit_than_maintainers(service: Service) -> None:
    """Only owners are shown that the limit is on."""
    shown_to_some(service, "GET /projects/:id/job_token_scope", Role.OWNER, inbound_enabled=False)


@fault("project-approval-rules.same-everywhere")
def lists_of_project_rules_show_no_branches(service: Service) -> None:
    """The list of a project's rules has no protected branches."""
    replacing_in_each(service, "GET /projects/:id/approval_rules", protected_branches=[])


@fault("group-approval-rules.same-everywhere")
def answers_about_group_rules_hide_the_groups(service: Service) -> None:
    """The answer to a change of a group's rule has no groups."""
    replacing(service, "PUT /groups/:id/approval_rules/:approval_rule_id", groups=[], users=[])


@fault("merge-request-approvals.same-everywhere")
def developers_see_no_description(service: Service) -> None:
    """Callers below maintainer are shown a status without the description."""
    shown_to_some(service, f"GET {MERGE_REQUEST}/approvals", Role.MAINTAINER, description="")


@fault("project-approval-configuration.same-everywhere")
def developers_see_that_pushes_keep_approvals(service: Service) -> None:
    """Callers below maintainer are shown that a push does not reset approvals."""
    shown_to_some(service, "GET /projects/:id/approvals", Role.MAINTAINER, reset_approvals_on_push=False)


@fault("approval-settings.same-everywhere")
def settings_by_path_are_switched_on(service: Service) -> None:
    """If the group is named by its path, authors are shown as allowed to approve."""

    def switch_on(request: Request, response: Response) -> None:
        content: Any = response.content
        if not request.path["id"].isdigit():
            on = {**content["allow_author_approval"], "value": True}
            response.content = {**content, "allow_author_approval": on}

    altering(service, "GET /groups/:id/merge_request_approval_setting", switch_on)


@fault("integrations.same-everywhere")
def lists_by_path_turn_events_round(service: Service) -> None:
    """If the project is named by its path, the push flag of an integration is inverted."""

    def switch_off(request: Request, response: Response) -> None:
        content: Any = response.content
        if not request.path["id"].isdigit():
            response.content = [{**entry, "push_events": not entry["push_events"]} for entry in content]

    altering(service, "GET /projects/:id/integrations", switch_off)
