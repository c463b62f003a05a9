"""Faults of the pages of lists: what a page is that is named by its number alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault, named
from conformance.proof.tampering import around, is_route

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request

#: Requirement -> the operation that lists, and where.
_LISTS = {
    "group-approval-rules.pages": ("listGroupApprovalRules", "/groups/:id/approval_rules"),
    "job-token-scope.allowlist.pages": ("listJobTokenAllowlist", "/projects/:id/job_token_scope/allowlist"),
    "job-token-scope.groups-allowlist.pages": (
        "listJobTokenGroupsAllowlist",
        "/projects/:id/job_token_scope/groups_allowlist",
    ),
    "merge-request-approvals.rules.pages": (
        "listMergeRequestApprovalRules",
        "/projects/:id/merge_requests/:merge_request_iid/approval_rules",
    ),
    "project-approval-rules.pages": ("listProjectApprovalRules", "/projects/:id/approval_rules"),
}


def _not_by_number_alone(operation: str, path: str) -> Callable[[Service], None]:
    def apply(service: Service) -> None:
        def make(admit: Any) -> Any:
            def forgetting(request: Request) -> None:
                if is_route(request.route, f"GET {path}") and b"per_page=" not in request.query:
                    request.query = re.sub(rb"(^|&)page=\d+", rb"\1", request.query)
                admit(request)

            return forgetting

        around(service.access, "admit", make)

    name = f"{re.sub('(?=[A-Z])', '_', operation).lower()}_needs_a_length"
    return named(name, f"GET {path} begins anew on each page that is asked for by its number alone.", apply)


for _requirement, (_operation, _path) in _LISTS.items():
    fault(_requirement, operation=_operation)(_not_by_number_alone(_operation, _path))
