"""Faults of error handling: codes other than those in the text, and refusals that are not refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, answering, done_and_refused, is_route
from conformance.reference.errors import ForbiddenError
from conformance.reference.http import Response
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

SETTINGS = "/projects/:id/merge_request_approval_setting"
SCOPE = "/projects/:id/job_token_scope"
EXPORT = "POST /groups/:id/export_relations"


def coded(service: Service, key: str, status: int) -> None:
    """Answer with another status code."""

    def alter(_: Request, response: Response) -> None:
        response.status = status

    altering(service, key, alter)


@fault("errors.addition-to-allowlist")
def addition_of_a_group_answers_200(service: Service) -> None:
    """Adding a group to its allowlist answers 200."""
    coded(service, f"POST {SCOPE}/groups_allowlist", 200)


@fault("errors.addition-to-allowlist")
def addition_of_a_project_answers_202(service: Service) -> None:
    """Adding a project to its allowlist answers 202."""
    coded(service, f"POST {SCOPE}/allowlist", 202)


@fault("errors.scheduled-export")
def scheduled_export_answers_201(service: Service) -> None:
    """Scheduling an export answers 201."""
    coded(service, EXPORT, 201)


@fault("errors.success-without-body")
def switching_answers_200_with_a_body(service: Service) -> None:
    """Switching the limit answers 200 with the settings."""

    def alter(_: Request, response: Response) -> None:
        response.status, response.content, response.has_content = 200, {"inbound_enabled": True}, True

    altering(service, f"PATCH {SCOPE}", alter)


@fault("errors.success-without-body")
def removal_of_a_group_answers_200(service: Service) -> None:
    """Removing a group from its allowlist answers 200."""
    coded(service, f"DELETE {SCOPE}/groups_allowlist/:target_group_id", 200)


# -- refusals ----------------------------------------------------------------------------------------------------------


def refused_with(service: Service, key: str, status: int) -> None:
    """Answer with another status code whenever a route refuses a call."""

    def transform(route: Any, _: Request, response: Response) -> Response:
        if is_route(route, key) and 400 <= response.status < 500:
            return Response(status, {"message": "refused"}, has_content=True)
        return response

    service.transformers.append(transform)


@fault("errors.refusal.is-client-error", operation="updateProjectApprovalSettings")
def refusals_are_server_errors(service: Service) -> None:
    """A refused update of the approval settings of a project is answered with 500."""
    refused_with(service, f"PUT {SETTINGS}", 500)


@fault("errors.refusal.is-client-error", operation="updateProjectApprovalSettings")
def refusals_say_that_all_is_well(service: Service) -> None:
    """A refused update of the approval settings of a project is answered with 200, and a message about the refusal."""
    refused_with(service, f"PUT {SETTINGS}", 200)


@fault("errors.refusal.is-client-error", operation="getProjectApprovalSettings")
def what_does_not_exist_is_elsewhere(service: Service) -> None:
    """The approval settings of a missing project are a redirect."""

    def transform(route: Any, _: Request, response: Response) -> Response:
        if is_route(route, f"GET {SETTINGS}") and response.status == 404:
            return Response(302, headers={"location": "/"})
        return response

    service.transformers.append(transform)


@fault("errors.refusal.changes-nothing", operation="updateProjectApprovalSettings")
def refused_update_is_done(service: Service) -> None:
    """A developer's update of the approval settings of a project is refused, but done."""
    service.routes.change(f"PUT {SETTINGS}", least_role=Role.DEVELOPER)
    done_and_refused(
        service,
        f"PUT {SETTINGS}",
        lambda request: service.identities.role_in(request.caller, request.project) < Role.MAINTAINER,
    )


@fault("job-token-scope.authorization.changing-allowlist-below-maintainer")
def refused_addition_takes_the_newest_entry_off(service: Service) -> None:
    """A developer who may not let a project in by that takes the project off the allowlist that was let in last."""
    scopes, require = service.job_token_scope.scopes, service.access.require

    def requiring(route: Any, caller: Any, subject: Any) -> None:
        try:
            require(route, caller, subject)
        except ForbiddenError:
            if is_route(route, f"POST {SCOPE}/allowlist") and subject.id in scopes:
                scopes[subject.id] = replace(scopes[subject.id], projects=scopes[subject.id].projects[:-1])
            raise

    service.access.require = requiring  # type: ignore[method-assign]


@fault("integrations.disable.unlisted")
def disabling_answers_and_does_nothing(service: Service) -> None:
    """DELETE of an integration is answered, but not done."""
    answering(service, "DELETE /projects/:id/integrations/:slug", lambda _: True, lambda: Response(204))
