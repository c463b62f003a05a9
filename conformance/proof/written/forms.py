"""Faults of texts that look like a date or an address but are invalid or wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

STATUS = "GET /projects/:id/merge_requests/:merge_request_iid/approvals"
RULES = "GET /projects/:id/approval_rules"


def showing(service: Service, key: str, name: str, value: str) -> None:
    """Show another text for a field of a record."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, name: value}

    altering(service, key, alter)


@fault("merge-request-approvals.status.timestamps", operation="getMergeRequestApprovals")
def status_was_updated_in_the_thirteenth_month(service: Service) -> None:
    """updated_at of the approval status is an impossible time."""
    showing(service, STATUS, "updated_at", "2024-13-45T99:99:99Z")


@fault("merge-request-approvals.status.timestamps", operation="getMergeRequestApprovals")
def status_was_created_on_the_thirtieth_of_february(service: Service) -> None:
    """created_at of the approval status is an impossible date."""
    showing(service, STATUS, "created_at", "2024-02-30T10:00:00Z")


@fault("merge-request-approvals.status.created-before-updated")
def status_was_created_in_another_time_zone(service: Service) -> None:
    """created_at of the approval status is local time marked as UTC."""
    status, present = service.merge_request_approvals.status, service.present

    def shifted(merge_request: Any, viewer: Any) -> Any:
        moment = merge_request.created_at + timedelta(hours=2)
        return {**status(merge_request, viewer), "created_at": present.timestamp(moment)}

    service.merge_request_approvals.status = shifted


@fault("integrations.entry.created-before-updated")
def integrations_were_created_in_another_time_zone(service: Service) -> None:
    """created_at of an integration is local time marked as UTC."""
    entry, present = service.integrations.present_entry, service.present

    def shifted(integration: Any) -> Any:
        return {**entry(integration), "created_at": present.timestamp(integration.created_at + timedelta(hours=2))}

    service.integrations.present_entry = shifted


@fault("records.user-reference.web-url", operation="listProjectApprovalRules")
def addresses_of_users_have_blanks(service: Service) -> None:
    """web_url of a user contains a space."""

    def spaced(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = [
            {
                **rule,
                "eligible_approvers": [{**user, "web_url": "http://a b/c d"} for user in rule["eligible_approvers"]],
            }
            for rule in content
        ]

    altering(service, RULES, spaced)


def twice_encoded(value: Any) -> Any:
    """Return a text in UTF-8 as a service shows it that takes it for Latin-1."""
    return value.encode().decode("latin-1") if isinstance(value, str) else value


@fault("merge-request-approvals.status.title-and-description", operation="getMergeRequestApprovals")
def description_is_encoded_twice(service: Service) -> None:
    """The approval status shows a description in UTF-8 that was taken for Latin-1."""

    def alter(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, "description": twice_encoded(content["description"])}

    altering(service, STATUS, alter)


@fault("job-token-scope.project-entry.describes-target", operation="listJobTokenAllowlist")
def descriptions_of_projects_are_encoded_twice(service: Service) -> None:
    """The allowlist shows descriptions in UTF-8 that were taken for Latin-1."""

    def alter(_: Request, response: Response) -> None:
        listed: Any = response.content
        response.content = [{**entry, "description": twice_encoded(entry["description"])} for entry in listed]

    altering(service, "GET /projects/:id/job_token_scope/allowlist", alter)
