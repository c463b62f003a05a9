"""Variants in the job token scope, and the alterations that make them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.variants.variant import Variant, transform
from conformance.reference.choices import Choices, OutOfRange
from conformance.reference.errors import ForbiddenError, InvalidError, RejectedError
from conformance.reference.http import Request, Response, created
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.routing import Route

_SUCCESS = range(200, 300)


def takes_paths_of_targets(service: Service) -> None:
    """Accept the full path of a project or group in place of the id of a target."""
    scopes, identities = service.job_token_scope, service.identities

    def by_path(path: str, name: str, find: Callable[[str], Any], add: Callable[[Any, Any], object]) -> None:
        by_number, removed = service.routes.get(f"POST {path}").handler, service.routes.get(f"DELETE {path}/:{name}")

        def added(request: Request) -> Response:
            try:
                return by_number(request)
            except InvalidError:
                target = find(request.parameters.string(name))
                if target is None:
                    raise
                add(request.project, target)
                return created({"source_project_id": request.project.id, name: target.id})

        def without(request: Request) -> Response:
            target = find(request.path[name])
            if target is not None:
                request.path[name] = str(target.id)
            return removed.handler(request)

        service.routes.change(f"POST {path}", handler=added)
        service.routes.change(removed.key, handler=without)

    scope = "/projects/:id/job_token_scope"
    by_path(f"{scope}/allowlist", "target_project_id", identities.find_project, scopes.add_project)
    by_path(f"{scope}/groups_allowlist", "target_group_id", identities.find_group, scopes.add_group)


def asks_for_membership_in_targets(service: Service) -> None:
    """Let only members of a project or group add it to an allowlist."""
    scopes, role_in = service.job_token_scope, service.identities.role_in

    def among_members(find: Callable[..., Any]) -> Callable[..., Any]:
        def found(number: int, caller: Any = None) -> Any:
            target = find(number, caller)
            if caller and role_in(caller, target) is Role.NONE:
                raise ForbiddenError
            return target

        return found

    scopes.target_project = among_members(scopes.target_project)
    scopes.target_group = among_members(scopes.target_group)


def manages_entries_only_while_limited(service: Service) -> None:
    """Add and remove entries of an allowlist only while the limit is on."""
    scopes = service.job_token_scope

    def while_limited(move: Callable[..., Any]) -> Callable[..., Any]:
        def moved(project: Any, target: Any) -> Any:
            if not scopes.of(project).inbound_enabled:
                raise RejectedError("The limit is off.")
            return move(project, target)

        return moved

    scopes.add_project = while_limited(scopes.add_project)
    scopes.add_group = while_limited(scopes.add_group)
    scopes.remove_project = while_limited(scopes.remove_project)
    scopes.remove_group = while_limited(scopes.remove_group)


def lists_the_own_group(service: Service) -> None:
    """List the group of a project among the groups that have access to it."""
    scopes = service.job_token_scope
    groups = scopes.groups

    def with_own(project: Any) -> list[Any]:
        own = service.identities.namespace_of(project)
        return [own, *(group for group in groups(project) if group.id != own.id)]

    scopes.groups = with_own


def shows_projects_by_the_letter(service: Service) -> None:
    """Show a project in an allowlist with topics but no tags, with an avatar of its namespace, and no URL for SSH."""

    def change(route: Route, _: Request, answer: Response) -> None:
        if route.key != "GET /projects/:id/job_token_scope/allowlist" or answer.status not in _SUCCESS:
            return
        entries: Any = answer.content
        answer.content = [
            {
                **entry,
                "tag_list": [],
                "topics": ["a", "ä"],
                "ssh_url_to_repo": "",
                "namespace": {**entry["namespace"], "avatar_url": "picture.png", "kind": "organisation"},
            }
            for entry in entries
        ]

    transform(service, change)


_PLAIN = Choices()

VARIANTS = (
    Variant(
        "limit-enforced",
        "The limit on inbound access starts on and stays on from 18.0 on; targets are let in by their members.",
        replace(_PLAIN, inbound_limit_enforced=True, outbound_enabled_from_18_0=False),
        alterations=(asks_for_membership_in_targets,),
    ),
    Variant(
        "other-scope",
        "Targets have paths and need not be seen, the allowlist goes with its limit, off at first; lists are paged.",
        replace(
            _PLAIN,
            target_must_be_visible=False,
            allowlist_lost_when_limit_off=True,
            outbound_enabled=True,
            inbound_enabled_initially=False,
            per_page_above_maximum=OutOfRange.REFUSE,
            unmarked_lists_are_paged=True,
        ),
        alterations=(takes_paths_of_targets,),
    ),
    Variant(
        "entries-belong-to-the-limit",
        "Allowlists are managed while the limit is on, which is off at first, and hold the project's own group.",
        Choices(inbound_enabled_initially=False),
        alterations=(
            manages_entries_only_while_limited,
            lists_the_own_group,
        ),
    ),
    Variant(
        "projects-by-the-letter",
        "Projects have topics and no tags, and texts where no address is asked for.",
        alterations=(shows_projects_by_the_letter,),
    ),
)
