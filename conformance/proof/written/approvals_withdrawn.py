"""Faults of calls that have nothing to do with approvals, or not with these, and take them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.written.isolation import after

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

#: Requirement -> the operation, its route, and what it does.
_CALLS = {
    "job-token-scope.leaves-the-rest": (
        "updateJobTokenScope",
        "PATCH /projects/:id/job_token_scope",
        "A switch of the limit takes back all approvals.",
    ),
    "integrations.leaves-the-rest": (
        "setUpIntegration",
        "PUT /projects/:id/integrations/:slug",
        "Setting an integration up takes back all approvals.",
    ),
    "approval-settings.leaves-the-rest": (
        "updateProjectApprovalSettings",
        "PUT /projects/:id/merge_request_approval_setting",
        "A change of a project's settings takes back the approvals in all other projects.",
    ),
    "group-approval-rules.leaves-the-rest": (
        "updateGroupApprovalRule",
        "PUT /groups/:id/approval_rules/:approval_rule_id",
        "A change of a group's rule takes back the approvals in all projects.",
    ),
    "group-relations-export.leaves-the-rest": (
        "scheduleGroupRelationsExport",
        "POST /groups/:id/export_relations",
        "Scheduling an export takes back all approvals.",
    ),
}


def _withdrawing(key: str) -> Callable[[Service], None]:
    """Let an operation take back all approvals; a change of settings those in other projects alone."""

    def apply(service: Service) -> None:
        approvals, known = service.merge_request_approvals.approvals, service.repositories.merge_requests

        def withdraw(request: Any) -> None:
            own = request.project.id if key.endswith("approval_setting") else None
            for one in known.values():
                if one.project_id != own:
                    approvals.pop(one.id, None)

        after(service, key, withdraw)

    return apply


for _requirement, (_operation, _key, _says) in _CALLS.items():
    _name = f"approvals_do_not_outlive_calls_about_{_requirement.partition('.')[0].replace('-', '_')}"
    fault(_requirement, operation=_operation)(named(_name, _says, _withdrawing(_key)))
