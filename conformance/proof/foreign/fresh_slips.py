"""Small bugs that were first put on another implementation, of other words and other choices, and not seen there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling, instead
from conformance.reference.errors import ForbiddenError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service

_COMPLETIONS = "POST /code_suggestions/completions"


# The allowed values of intent are the same, whichever way the answer is sent.
@foreign("forms of what is sent", "Code completion: intent and stream")
def streamed_completions_take_any_intent(service: Service) -> None:
    """A completion in chunks is begun before intent has been looked at."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("stream") is True:
            request.parameters._values = {name: value for name, value in values.items() if name != "intent"}
        return handler(request)


# Somebody who is no bot of a token is answered with 401, whatever the role.
@foreign("caller x value", "Merge request approvals: reset_approvals")
def who_may_not_even_approve_is_forbidden_to_reset(service: Service) -> None:
    """Reporters and guests who reset approvals are told 403, as their role is looked at before who they are."""

    @handling(service, "PUT /projects/:id/merge_requests/:merge_request_iid/reset_approvals")
    def _(handler: Any, request: Any) -> Any:
        if service.identities.role_in(request.caller, request.project) < Role.DEVELOPER:
            raise ForbiddenError
        return handler(request)


# Removing a group from its list is no removal of a project from the other one.
@foreign("write x everything that must stay", "Job token scope: DELETE, groups_allowlist")
def both_lists_are_one_table(service: Service) -> None:
    """Whoever removes a group removes the project of that number as well; with no such group, it is refused then."""
    scopes = service.job_token_scope

    @handling(service, "DELETE /projects/:id/job_token_scope/groups_allowlist/:target_group_id")
    def _(handler: Any, request: Any) -> Any:
        scope = scopes.of(request.project)
        left = tuple(number for number in scope.projects if str(number) != request.path["target_group_id"])
        scopes.scopes[request.project.id] = replace(scope, projects=left)
        return handler(request)


# Each kind of event has a destination of its own, by the name of the kind.
@foreign("value x neighbour of the right value", "Integrations: pipeline_channel")
def pipelines_go_where_notes_go(service: Service) -> None:
    """The channel that is sent for pipelines is kept as the one of notes."""

    @instead(service.integrations, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        kept = dict(values)
        if kept.get("pipeline_channel"):
            kept["note_channel"] = kept.pop("pipeline_channel")
        return keep(project, kind, kept, **more)


# The integrations are those of a project; nothing hands them on to another one.
@foreign("level x id of another level", "Integrations: PUT")
def subgroups_take_over_integrations(service: Service) -> None:
    """What is set up for a project is set up for the projects of the subgroups of its group as well."""
    area, identities = service.integrations, service.identities

    @instead(area, "keep")
    def _(keep: Any, project: Any, kind: Any, values: Any, **more: Any) -> Any:
        for other in list(identities.projects.values()):
            if project.namespace_id in {group.id for group in identities.lineage(other)[1:]}:
                keep(other, kind, values, **more)
        return keep(project, kind, values, **more)


# Hidden groups are those that this caller may not view, and no others.
@foreign("caller x form of id x operation", "Project approval rules: contains_hidden_groups")
def private_groups_count_as_hidden(service: Service) -> None:
    """A rule that names a private group is said to hide it, also from who may view it."""

    @instead(service.approval_rules, "present")
    def _(present: Any, rule: Any, viewer: Any, *more: Any) -> Any:
        shown = present(rule, viewer, *more)
        private = any(group["visibility"] == "private" for group in shown["groups"])
        return {**shown, "contains_hidden_groups": private or shown["contains_hidden_groups"]}
