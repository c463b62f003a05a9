"""Faults of the version table: names, missing paths, and what a new project allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, answering, bodies, breaking, refusing, replacing
from conformance.reference.errors import NoRouteError
from conformance.reference.http import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.routing import Route

_TREE = "GET /projects/:id/repository/tree"
_REMOVED = "POST /projects/:id/approvals"


@fault("versions.integrations-renamed")
def newer_name_forgets_an_integration(service: Service) -> None:
    """The list under the newer name lacks an integration that the older name shows."""

    def forget(_: Request, response: Response) -> None:
        content: Any = response.content
        response.content = content[1:]

    altering(service, "GET /projects/:id/integrations", forget)


@fault("integrations.alias.set-up-shows", version="16.4")
def older_name_ignores_what_came_after_the_newer_one(service: Service) -> None:
    """The older name takes only parameters from before 16.4: vulnerability_events has no effect there."""
    ignored = "vulnerability_events"
    bodies(
        service,
        "PUT /projects/:id/services/:slug",
        lambda sent: {name: value for name, value in sent.items() if name != ignored},
    )


@fault("versions.repository-tree.missing-path")
def missing_path_is_an_empty_tree(service: Service) -> None:
    """The tree of a missing path is an empty list, as before 17.7."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        del request
        if route.key == "GET /projects/:id/repository/tree" and response.status == 404:
            response.status, response.content = 200, []
        return response

    service.transformers.append(transform)


@fault("versions.job-token-allowlist.enforced-by-default", version="18.0")
def fresh_project_is_open_to_all(service: Service) -> None:
    """A project with untouched settings gives access to every job token."""
    fresh = service.world.one("fresh_project").id

    def opened(request: Request, response: Response) -> None:
        if request.project.id == fresh:
            content: Any = response.content
            response.content = {**content, "inbound_enabled": False}

    altering(service, "GET /projects/:id/job_token_scope", opened)


# -- deprecated items and their replacements ---------------------------------------------------------------------------

_REPLACEMENT = "versions.approvals-before-merge.replacement"


@fault(_REPLACEMENT)
def rules_ask_for_no_approval(service: Service) -> None:
    """An approval rule shows 0 required approvals, whatever number it was created with."""
    replacing(service, "GET /projects/:id/approval_rules/:approval_rule_id", approvals_required=0)


@fault(_REPLACEMENT)
def rules_are_refused_as_long_as_the_deprecated_number_is_there(service: Service) -> None:
    """No rule can be added to a project, because approvals_before_merge still has the number."""
    answering(service, "POST /projects/:id/approval_rules", lambda _: True, lambda: Response(400))


# -- what was introduced -----------------------------------------------------------------------------------------------


@fault("job-token-scope.available")
def allowlist_entries_cannot_be_removed(service: Service) -> None:
    """Of the operations on allowlists, the one that removes a project does not exist."""
    key = "DELETE /projects/:id/job_token_scope/allowlist/:target_project_id"
    answering(service, key, lambda _: True, lambda: Response(405))


@fault("project-approval-configuration.change.removed")
def removed_change_breaks(service: Service) -> None:
    """The operation that was removed in 16.0 causes a server error."""
    service.routes.change(_REMOVED, removed=None)
    breaking(service, _REMOVED, lambda _: True)


@fault("project-approval-configuration.change.removed")
def removed_change_is_answered_and_not_done(service: Service) -> None:
    """The operation that was removed in 16.0 is served, and changes nothing."""
    reading = service.routes.get("GET /projects/:id/approvals").handler
    service.routes.change(_REMOVED, removed=None, handler=reading)


@fault("versions.integrations-renamed")
def newer_list_is_refused(service: Service) -> None:
    """The list of integrations is refused under its newer name alone."""
    refusing(service, "GET /projects/:id/integrations", lambda _: True, NoRouteError)


def _in_the_tree(service: Service, is_found: Callable[[Request], bool]) -> None:
    """Answer some requests for the tree of a missing path with an empty list."""

    def transform(route: Route, request: Request, response: Response) -> Response:
        if route.key == _TREE and response.status == 404 and is_found(request):
            response.status, response.content = 200, []
        return response

    service.transformers.append(transform)


def _path(request: Request) -> str:
    return str(parse_qs(request.query.decode()).get("path", [""])[0])


@fault("versions.repository-tree.missing-path")
def missing_path_is_an_empty_tree_of_many_levels(service: Service) -> None:
    """The tree of a missing path is an empty list, if all levels or another page of it are asked for."""
    _in_the_tree(service, lambda request: b"recursive=" in request.query or b"page=2" in request.query)


@fault("versions.repository-tree.missing-path")
def missing_path_in_a_folder_is_an_empty_tree(service: Service) -> None:
    """The tree of a missing path inside a folder is an empty list."""
    _in_the_tree(service, lambda request: "/" in _path(request))


@fault("versions.repository-tree.missing-path")
def path_is_found_by_its_beginning(service: Service) -> None:
    """The tree of a missing path with which the name of a file or folder begins is an empty list."""
    _in_the_tree(service, lambda request: len(_path(request)) > 1 and "no-such" not in _path(request))
