"""The areas of the service, one module each; a new area is one import and one line in AREAS."""

from __future__ import annotations

from conformance.reference.areas import (
    administration,
    approval_rules,
    approval_settings,
    audit_events,
    code_completion,
    group_approval_rules,
    group_relations_export,
    integrations,
    job_token_scope,
    merge_request_approval_rules,
    merge_request_approvals,
    meta,
    notes,
    project_approval_configuration,
    project_approval_rules,
    project_content,
    registration,
    subscriptions,
)
from conformance.reference.provisioning import members, merge_requests, people, places, sources, tokens

AREAS = (
    meta.AREA,
    job_token_scope.AREA,
    administration.AREA,
    audit_events.AREA,
    notes.AREA,
    project_content.AREA,
    registration.AREA,
    subscriptions.AREA,
    people.AREA,
    tokens.AREA,
    places.AREA,
    members.AREA,
    sources.AREA,
    merge_requests.AREA,
    approval_rules.AREA,
    group_approval_rules.AREA,
    project_approval_configuration.AREA,
    project_approval_rules.AREA,
    merge_request_approval_rules.AREA,
    merge_request_approvals.AREA,
    approval_settings.AREA,
    code_completion.AREA,
    group_relations_export.AREA,
    integrations.AREA,
)
