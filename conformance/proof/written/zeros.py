"""Faults of services that take the text 0 for nothing, as if it had not been sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, bodies

if TYPE_CHECKING:
    from conformance.reference import Service

ZERO = "0"
RULE = "/projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id"


def without_zeros(body: dict[str, Any]) -> dict[str, Any]:
    """Return what was sent without the texts 0."""
    return {name: value for name, value in body.items() if value != ZERO}


@fault("merge-request-approvals.approve.near-sha-is-refused")
def a_sha_of_zero_is_none(service: Service) -> None:
    """An approval with the sha 0 is accepted as one without a sha."""

    def make(require: Any) -> Any:
        def requiring(merge_request: Any, sha: Any) -> None:
            require(merge_request, None if sha == ZERO else sha)

        return requiring

    around(service.merge_request_approvals, "require_current_head", make)


@fault("conventions.requests.are-json", operation="updateMergeRequestApprovalRule")
def a_name_of_zero_is_none(service: Service) -> None:
    """A rule of a merge request keeps its name if the new one is 0."""
    bodies(service, f"PUT {RULE}", without_zeros)


@fault("integrations.parameters.restrict-to-branch.text", operation="setUpIntegration")
def a_branch_named_zero_is_none(service: Service) -> None:
    """An integration keeps its branches if it is to be restricted to one that is named 0."""
    bodies(service, "PUT /projects/:id/integrations/:slug", without_zeros)
