"""Paths of operations, and complete operations, as the reference writes them."""

from __future__ import annotations

SCOPE = "/projects/:id/job_token_scope"
ALLOWLIST = f"{SCOPE}/allowlist"
GROUPS_ALLOWLIST = f"{SCOPE}/groups_allowlist"
POST_COMPLETIONS = "POST /code_suggestions/completions"
POST_ENABLED = "POST /code_suggestions/enabled"
GROUP_RULES = "/groups/:id/approval_rules"
GROUP_RULE = f"{GROUP_RULES}/:approval_rule_id"
PROJECT_RULES = "/projects/:id/approval_rules"
PROJECT_RULE = f"{PROJECT_RULES}/:approval_rule_id"
MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"
MERGE_REQUEST_RULES = f"{MERGE_REQUEST}/approval_rules"
MERGE_REQUEST_RULE = f"{MERGE_REQUEST_RULES}/:approval_rule_id"
APPROVE = f"{MERGE_REQUEST}/approve"
UNAPPROVE = f"{MERGE_REQUEST}/unapprove"
RESET_APPROVALS = f"{MERGE_REQUEST}/reset_approvals"
GROUP_SETTINGS = "/groups/:id/merge_request_approval_setting"
PROJECT_SETTINGS = "/projects/:id/merge_request_approval_setting"
CONFIGURATION = "/projects/:id/approvals"
EXPORT = "/groups/:id/export_relations"
EXPORT_STATUS = f"{EXPORT}/status"
EXPORT_DOWNLOAD = f"{EXPORT}/download"
INTEGRATIONS = "/projects/:id/integrations"
SERVICES = "/projects/:id/services"
BOTH_NAMES = (INTEGRATIONS, SERVICES)
#: Setting up and disabling an integration, under both names of the path.
PUT_INTEGRATION = tuple(f"PUT {path}/:slug" for path in BOTH_NAMES)
DELETE_INTEGRATION = tuple(f"DELETE {path}/:slug" for path in BOTH_NAMES)
