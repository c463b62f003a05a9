"""Faults of the version table: names, paths that are not there, and what a fresh project allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import altering, fault

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request, Response
    from conformance.reference.routing import Route


@fault("versions.integrations-renamed")
def newer_name_forgets_an_integration(service: Service) -> None:
    """The list under the newer name lacks an integration that the older name shows."""

    def forget(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = content[1:]

    altering(service, "GET /projects/:id/integrations", forget)


@fault("versions.repository-tree.missing-path")
def missing_path_is_an_empty_tree(service: Service) -> None:
    """The tree of a path that does not exist is an empty list, as before 17.7."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        del request
        if route.key == "GET /projects/:id/repository/tree" and response.status == 404:
            response.status, response.content = 200, []
        return response

    service.transformers.append(transform)


@fault("versions.job-token-allowlist.enforced-by-default", version="18.0")
def fresh_project_is_open_to_all(service: Service) -> None:
    """A project whose settings nobody touched lets every job token in."""
    fresh = service.world.one("fresh_project").id

    def opened(request: Request, response: Response) -> None:
        if request.project.id == fresh:
            content: Any = response.content
            response.content = {**content, "inbound_enabled": False}

    altering(service, "GET /projects/:id/job_token_scope", opened)
