"""Small bugs that were first put on another implementation: what reaches too far, and what is taken for its like."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import by_path, foreign, handling, instead
from conformance.reference.areas.approval_settings import Setting
from conformance.reference.errors import ApiError, NotFoundError

if TYPE_CHECKING:
    from conformance.reference import Service

_RESET = "PUT /projects/:id/merge_requests/:merge_request_iid/reset_approvals"
_GROUP_SETTINGS = "PUT /groups/:id/merge_request_approval_setting"
_MOST_CHARACTERS = 60


# The limit is that of the project in the path.
@foreign("write x everything that must stay", "Job token scope: PATCH")
def the_limit_is_that_of_all_in_the_group(service: Service) -> None:
    """Switching the limit of a project switches that of every project below the same top group."""
    scopes, identities = service.job_token_scope, service.identities

    @instead(scopes, "limit_inbound")
    def _(limit: Any, project: Any, *, enabled: bool) -> None:
        limit(project, enabled=enabled)
        for other in list(identities.projects.values()):
            if identities.lineage(other)[-1:] == identities.lineage(project)[-1:]:
                scopes.scopes[other.id] = replace(scopes.of(other), inbound_enabled=enabled)


# Whoever is no bot of a token is told 401, whichever way the project is named.
@foreign("caller x form of id x operation", "Merge request approvals: reset_approvals")
def people_who_reset_by_the_path_are_told_404(service: Service) -> None:
    """A reset by somebody who is no bot answers 404 where the project is named by its path."""

    @handling(service, _RESET)
    def _(handler: Any, request: Any) -> Any:
        if by_path(request) and request.caller.bot is None:
            raise NotFoundError
        return handler(request)


# An approval is one of the merge request in the path.
@foreign("write x everything that must stay", "Merge request approvals: approve")
def approvals_land_on_the_next_merge_request_too(service: Service) -> None:
    """An approval is also given to the merge request of the next number, where it stays."""
    approvals = service.merge_request_approvals

    @instead(approvals, "add_approval")
    def _(add: Any, user: Any, merge_request: Any) -> None:
        add(user, merge_request)
        known = service.repositories.merge_requests
        for (project, iid), other in list(known.items()):
            is_next = (project, iid) == (merge_request.project_id, merge_request.iid + 1)
            if is_next and not approvals.approved_by(user, other):
                add(user, other)


# A password is required of everybody.
@foreign("again, by another caller, after an undo", "Merge request approvals: approval_password")
def only_the_first_approver_is_asked_for_a_password(service: Service) -> None:
    """Once somebody has approved, nobody is asked for a password any more."""
    approvals = service.merge_request_approvals

    @instead(approvals, "require_password")
    def _(require: Any, caller: Any, merge_request: Any, password: Any) -> None:
        if not approvals.approvals_of(merge_request):
            require(caller, merge_request, password)


# approvals_left is recalculated with each approval.
@foreign("none, one or two values", "Merge request approval status: approvals_left")
def no_more_than_one_approval_is_counted(service: Service) -> None:
    """approvals_left falls with the first approval and stays there."""
    approvals = service.merge_request_approvals

    @instead(approvals, "approvals_left")
    def _(left: Any, merge_request: Any, rules: Any = None) -> int:
        given = approvals.approvals_of(merge_request)
        return int(left(merge_request, rules)) + max(0, len(given) - 1)


# What is stored is what was sent.
@foreign("value x neighbour of the right value", "Project approval rules: name")
def names_are_cut_to_fit_a_column(service: Service) -> None:
    """A name of more than sixty characters is cut and accepted."""

    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, home: Any, wanted: Any, caller: Any) -> Any:
        name = wanted.name[:_MOST_CHARACTERS] if wanted.name else wanted.name
        return create(subject, home, replace(wanted, name=name), caller)


# Each flag of an entry is the one of its kind of event.
@foreign("settings and their resets", "Integration list entry: event flags")
def confidential_notes_are_shown_as_notes(service: Service) -> None:
    """confidential_note_events of an entry is read from the column of note_events."""

    @instead(service.integrations, "event_flags")
    def _(flags: Any, integration: Any) -> Any:
        shown = flags(integration)
        return {**shown, "confidential_note_events": shown["note_events"]}


# A call that is refused changes nothing.
@foreign("refusal x everything that must stay", "Approval settings: PUT")
def refused_settings_are_stored_up_to_the_wrong_one(service: Service) -> None:
    """Of an update that is refused for one value, the others are stored."""

    @handling(service, _GROUP_SETTINGS)
    def _(handler: Any, request: Any) -> Any:
        try:
            return handler(request)
        except ApiError:
            settings, sent = service.approval_settings, request.parameters._values
            right = {one: sent[one.value] for one in Setting if isinstance(sent.get(one.value), bool)}
            settings.change(request.group, {one: value for one, value in right.items() if one in settings.accepted()})
            raise
