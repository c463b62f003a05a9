"""Faults that only some callers of a project meet: an owner, or a developer behind a refusal."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, done_and_refused, handling, sent
from conformance.proof.written.integrations import NEWER, OLDER
from conformance.reference.choices import Choices
from conformance.reference.errors import ForbiddenError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

SCOPE = "/projects/:id/job_token_scope"


def role_of(request: Request) -> Role:
    """Return the role of the caller in the project."""
    return request.service.identities.role_in(request.caller, request.project)


@fault("job-token-scope.authorization.switching-below-maintainer")
def developer_is_refused_and_the_limit_is_off(service: Service) -> None:
    """A developer who sends enabled false is refused, and the limit is switched off."""
    service.routes.change(f"PATCH {SCOPE}", least_role=Role.DEVELOPER)

    def make(handler: Any) -> Any:
        def switched(request: Request) -> Response:
            is_below = role_of(request) < Role.MAINTAINER
            if is_below and sent(request).get("enabled") is not False:
                raise ForbiddenError
            answer: Response = handler(request)
            if is_below:
                raise ForbiddenError
            return answer

        return switched

    handling(service, f"PATCH {SCOPE}", make)


@fault("job-token-scope.allowlist.add.result-names-both")
def owner_is_named_as_the_source(service: Service) -> None:
    """The answer to an owner who adds a project names the owner as its source."""

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        if role_of(request) == Role.OWNER:
            response.content = {**content, "source_project_id": request.caller.id}

    altering(service, f"POST {SCOPE}/allowlist", alter)


@fault("integrations.update.followed")
def flags_of_owners_are_passed_over(service: Service) -> None:
    """The flags of events that an owner sends are accepted, and not stored."""

    def make(handler: Any) -> Any:
        def stored(request: Request) -> Response:
            if role_of(request) == Role.OWNER:
                kept = {name: value for name, value in sent(request).items() if not name.endswith("_events")}
                request.body = json.dumps(kept).encode()
            answer: Response = handler(request)
            return answer

        return stored

    for path in (NEWER, OLDER):
        handling(service, f"PUT {path}/:slug", make)


@fault("integrations.disable.settings-reset")
def an_owner_disables_and_nothing_is_reset(service: Service) -> None:
    """An integration that an owner disables keeps its settings."""
    known = service.integrations.known

    def make(handler: Any) -> Any:
        def disabled(request: Request) -> Response:
            key = request.project.id, request.path["slug"]
            before = known.get(key)
            answer: Response = handler(request)
            if before is not None and role_of(request) == Role.OWNER:
                known[key] = replace(before, active=False)
            return answer

        return disabled

    for path in (NEWER, OLDER):
        handling(service, f"DELETE {path}/:slug", make)


# -- where no role is stated -------------------------------------------------------------------------------------------


def refuses_lower_roles_and_does_it(service: Service, key: str) -> None:
    """Refuse those below the Maintainer role after what they asked for has been done."""
    done_and_refused(service, key, lambda request: role_of(request) < Role.MAINTAINER)


@fault(
    "errors.refusal.changes-nothing",
    operation="deleteProjectApprovalRule",
    choices=Choices(approval_rules_writer=Role.DEVELOPER),
)
def developer_is_refused_and_the_rule_is_gone(service: Service) -> None:
    """A developer who deletes a rule of a project is refused, and the rule is deleted."""
    refuses_lower_roles_and_does_it(service, "DELETE /projects/:id/approval_rules/:approval_rule_id")


@fault("errors.refusal.changes-nothing", operation="createMergeRequestApprovalRule")
def developer_is_refused_and_the_rule_is_there(service: Service) -> None:
    """A developer who creates a rule of a merge request is refused, and the rule is created."""
    refuses_lower_roles_and_does_it(service, "POST /projects/:id/merge_requests/:merge_request_iid/approval_rules")


@fault(
    "errors.refusal.changes-nothing",
    operation="updateProjectApprovalConfiguration",
    version="15.9",
    choices=Choices(configuration_writer=Role.DEVELOPER),
)
def developer_is_refused_and_the_configuration_is_changed(service: Service) -> None:
    """A developer who changes the approval configuration of a project is refused, and it is changed."""
    refuses_lower_roles_and_does_it(service, "POST /projects/:id/approvals")
