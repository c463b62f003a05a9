"""Two callers who write at once: both are answered, and one of them wrote for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, meanwhile

if TYPE_CHECKING:
    from conformance.reference import Service

_DIMENSION = "two write at once"
_SCOPE = "/projects/:id/job_token_scope"
_MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def _table(service: Service, table: Any, *keys: str) -> None:
    """Let operations act on a table as it was when they began."""

    def write(seen: Any, _: Any) -> None:
        table.clear()
        table.update(seen)

    meanwhile(service, keys, lambda: dict(table), write)


@foreign(_DIMENSION, "Job token scope: POST")
def of_two_additions_one_is_lost(service: Service) -> None:
    """Of two projects that are let in at the same time one is not listed, though both were answered with 201."""
    _table(service, service.job_token_scope.scopes, f"POST {_SCOPE}/allowlist")


@foreign(_DIMENSION, "Job token scope: POST")
def an_addition_to_one_list_undoes_the_other(service: Service) -> None:
    """Of a project and a group that are let in at the same time one is not listed."""
    _table(service, service.job_token_scope.scopes, f"POST {_SCOPE}/allowlist", f"POST {_SCOPE}/groups_allowlist")


@foreign(_DIMENSION, "Merge request approvals: approve")
def of_two_approvals_one_is_lost(service: Service) -> None:
    """Of two who approve at the same time one is not among the approvers."""
    _table(service, service.merge_request_approvals.approvals, f"POST {_MERGE_REQUEST}/approve")


@foreign(_DIMENSION, "Project approval rules: POST")
def of_two_rules_one_is_lost(service: Service) -> None:
    """Of two rules that are made for a project at the same time one is not there."""
    _table(service, service.approval_rules.rules, "POST /projects/:id/approval_rules")


@foreign(_DIMENSION, "Merge request approvals: POST of a rule")
def two_rules_get_one_id(service: Service) -> None:
    """Two rules of a merge request that are made at the same time get the same id, and one of them is lost."""
    sequences = service.store._sequences

    def write(seen: Any, _: Any) -> None:
        sequences["approval_rules"] = seen

    key = f"POST {_MERGE_REQUEST}/approval_rules"
    meanwhile(service, (key,), lambda: sequences.get("approval_rules", 1), write)


@foreign(_DIMENSION, "Integrations: PUT")
def of_two_integrations_one_is_lost(service: Service) -> None:
    """Of two integrations that are set up at the same time one is not listed."""
    _table(service, service.integrations.known, "PUT /projects/:id/integrations/:slug")


@foreign(_DIMENSION, "Approval settings: PUT")
def of_two_settings_one_is_lost(service: Service) -> None:
    """Of two different settings of a project that are changed at the same time one stays as it was."""
    _table(service, service.approval_settings.values, "PUT /projects/:id/merge_request_approval_setting")


@foreign(_DIMENSION, "Group approval rules: POST")
def of_two_rules_of_a_group_one_is_lost(service: Service) -> None:
    """Of two rules that are made for a group at the same time one is not there."""
    _table(service, service.approval_rules.rules, "POST /groups/:id/approval_rules")


@foreign(_DIMENSION, "Job token scope: DELETE")
def of_an_addition_and_a_removal_one_is_lost(service: Service) -> None:
    """Of a project that is let in while another one is removed one is not as it was answered to be."""
    keys = f"POST {_SCOPE}/allowlist", f"DELETE {_SCOPE}/allowlist/:target_project_id"
    _table(service, service.job_token_scope.scopes, *keys)


@foreign(_DIMENSION, "Job token scope: POST")
def of_two_groups_one_is_lost(service: Service) -> None:
    """Of two groups that are let in at the same time one is not listed."""
    _table(service, service.job_token_scope.scopes, f"POST {_SCOPE}/groups_allowlist")


@foreign(_DIMENSION, "Merge request approvals: approve")
def approving_and_taking_back_get_in_each_others_way(service: Service) -> None:
    """Of an approval that is given while somebody else takes one back one is not as it was answered to be."""
    keys = f"POST {_MERGE_REQUEST}/approve", f"POST {_MERGE_REQUEST}/unapprove"
    _table(service, service.merge_request_approvals.approvals, *keys)


@foreign(_DIMENSION, "Approval settings: PUT")
def of_two_settings_of_a_group_one_is_lost(service: Service) -> None:
    """Of two different settings of a group that are changed at the same time one stays as it was."""
    _table(service, service.approval_settings.values, "PUT /groups/:id/merge_request_approval_setting")


@foreign(_DIMENSION, "Project approval rules: PUT")
def of_two_changes_of_rules_one_is_lost(service: Service) -> None:
    """Of two rules of a project that are changed at the same time one stays as it was."""
    _table(service, service.approval_rules.rules, "PUT /projects/:id/approval_rules/:approval_rule_id")


@foreign(_DIMENSION, "Integrations: DELETE")
def of_two_disabled_integrations_one_comes_back(service: Service) -> None:
    """Of two integrations that are disabled at the same time one is listed still."""
    _table(service, service.integrations.known, "DELETE /projects/:id/integrations/:slug")
