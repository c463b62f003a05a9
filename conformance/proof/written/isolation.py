"""Faults of calls that change too much: a write or a read in one area changes something in another."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import afterwards, handling
from conformance.reference.areas.approval_rule_records import Level
from conformance.reference.errors import ApiError
from conformance.reference.identity import Project

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service

MERGE_REQUEST = "/projects/:id/merge_requests/:merge_request_iid"


def after(service: Service, key: str, then: Callable[[Any], None]) -> None:
    """Run something after an operation; `then` gets the request."""

    def make(handler: Any) -> Any:
        def more(request: Any) -> Any:
            answer = handler(request)
            then(request)
            return answer

        return more

    handling(service, key, make)


def rename_rules(service: Service, level: Level) -> None:
    """Give every rule of a level another name."""
    rules = service.approval_rules.rules
    for rule in list(rules.values()):
        if rule.home.level is level:
            rules[rule.id] = replace(rule, name=f"{rule.name}+")


@fault("job-token-scope.leaves-the-rest", operation="addGroupToJobTokenAllowlist")
def addition_of_a_group_switches_the_limit_off(service: Service) -> None:
    """Adding a group switches the limit of the project off."""
    scopes = service.job_token_scope

    def switch_off(_: Any, project: Any, *__: Any) -> None:
        scopes.scopes[project.id] = replace(scopes.of(project), inbound_enabled=False)

    afterwards(scopes, "add_group", switch_off)


@fault("job-token-scope.leaves-the-rest", operation="addProjectToJobTokenAllowlist")
def refused_addition_takes_the_limit_back(service: Service) -> None:
    """If an addition to the allowlist is refused, the limit of the project is switched off."""
    scopes = service.job_token_scope

    def make(handler: Any) -> Any:
        def adding(request: Any) -> Any:
            try:
                return handler(request)
            except ApiError:
                scopes.scopes[request.project.id] = replace(scopes.of(request.project), inbound_enabled=False)
                raise

        return adding

    handling(service, "POST /projects/:id/job_token_scope/allowlist", make)


@fault("approval-settings.leaves-the-rest", operation="updateProjectApprovalSettings")
def settings_put_the_limit_back(service: Service) -> None:
    """A change of a project's approval settings switches the limit of its job tokens off."""
    scopes = service.job_token_scope

    def switch_off(_: Any, subject: Any, __: Any) -> None:
        if isinstance(subject, Project):
            scopes.scopes[subject.id] = replace(scopes.of(subject), inbound_enabled=False)

    afterwards(service.approval_settings, "change", switch_off)


@fault("code-completion.leaves-the-rest", operation="createCompletion")
def completions_rename_rules(service: Service) -> None:
    """A completion renames the approval rules of all projects."""
    after(service, "POST /code_suggestions/completions", lambda _: rename_rules(service, Level.PROJECT))


@fault("group-approval-rules.leaves-the-rest", operation="updateGroupApprovalRule")
def change_of_a_group_rule_reaches_projects_elsewhere(service: Service) -> None:
    """A change of a group's rule renames the rules of all projects, including those of other groups."""
    key = "PUT /groups/:id/approval_rules/:approval_rule_id"
    after(service, key, lambda _: rename_rules(service, Level.PROJECT))


@fault("project-approval-rules.leaves-the-rest", operation="deleteProjectApprovalRule")
def deletion_of_a_project_rule_renames_those_of_groups(service: Service) -> None:
    """Deleting a rule of a project renames the rules of all groups."""
    key = "DELETE /projects/:id/approval_rules/:approval_rule_id"
    after(service, key, lambda _: rename_rules(service, Level.GROUP))


@fault("project-approval-configuration.leaves-the-rest", operation="getProjectApprovalConfiguration")
def reading_the_configuration_renames_rules(service: Service) -> None:
    """Reading the configuration of a project renames its rules."""
    after(service, "GET /projects/:id/approvals", lambda _: rename_rules(service, Level.PROJECT))


@fault("merge-request-approvals.leaves-the-rest", operation="resetMergeRequestApprovals")
def reset_deletes_the_rules(service: Service) -> None:
    """A reset of approvals deletes the merge request's own rules."""

    def delete(_: Any, merge_request: Any, *__: Any) -> None:
        for rule in service.merge_request_approval_rules.own_rules(merge_request):
            service.approval_rules.delete_rule(rule)

    afterwards(service.merge_request_approvals, "clear_approvals", delete)


@fault("merge-request-approvals.leaves-the-rest", operation="getMergeRequestApprovalState")
def reading_the_state_takes_the_own_approval_back(service: Service) -> None:
    """A caller who reads the approval state loses the own approval."""

    def forget(request: Any) -> None:
        found = service.merge_request_approval_rules.merge_request(
            request.project, request.path_id("merge_request_iid")
        )
        service.merge_request_approvals.remove_approval(request.caller, found)

    after(service, f"GET {MERGE_REQUEST}/approval_state", forget)


@fault("approval-settings.leaves-the-rest", operation="updateProjectApprovalSettings")
def settings_rename_the_rules(service: Service) -> None:
    """A change of approval settings renames the rules of merge requests."""
    afterwards(service.approval_settings, "change", lambda *_: rename_rules(service, Level.MERGE_REQUEST))


@fault("group-relations-export.leaves-the-rest", operation="scheduleGroupRelationsExport")
def exports_rename_rules(service: Service) -> None:
    """Scheduling the export of a group renames the rules of projects in other groups."""
    after(service, "POST /groups/:id/export_relations", lambda _: rename_rules(service, Level.PROJECT))


@fault("integrations.leaves-the-rest", operation="getIntegration")
def reading_an_integration_switches_its_events_off(service: Service) -> None:
    """Reading the settings of an integration switches its events off."""

    def switch_off(request: Any) -> None:
        key = request.project.id, request.path["slug"]
        one = service.integrations.known[key]
        kept = {name: value for name, value in one.values.items() if not name.endswith("_events")}
        service.integrations.known[key] = replace(one, values=MappingProxyType(kept))

    after(service, "GET /projects/:id/integrations/:slug", switch_off)
