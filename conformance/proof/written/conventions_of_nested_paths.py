"""Faults of the convention that a project or group is named by its id or its path, for those that lie deep or nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, beforehand
from conformance.proof.written.group_relations_export_in_steps import shared
from conformance.reference.identity import Kind

if TYPE_CHECKING:
    from conformance.reference import Service
    from conformance.reference.http import Request

Named = Callable[[str], Any]


def _by_last_part(service: Service, name: str, known: str) -> None:
    """Let a project, or group, that lies in several groups be found by the last part of its path alone."""

    def make(find: Named) -> Named:
        def finding(reference: str) -> Any:
            deep = [one for one in getattr(service.identities, known).values() if "/" in one.full_path]
            found = [one for one in deep if one.full_path.rpartition("/")[2] == reference]
            return find(reference) or next(iter(found), None)

        return finding

    around(service.identities, name, make)


@fault("conventions.project-id.encoded-subgroup-path")
def last_part_of_a_path_names_its_project(service: Service) -> None:
    """A project is found by the last part of its path alone."""
    _by_last_part(service, "find_project", "projects")


def _breaking(service: Service, name: str) -> None:
    def make(find: Named) -> Named:
        def finding(reference: str) -> Any:
            if not reference.isdigit() and "/" not in reference and find(reference) is None:
                raise RuntimeError
            return find(reference)

        return finding

    around(service.identities, name, make)


@fault("conventions.project-id.encoded-subgroup-path")
def one_word_as_the_path_of_a_project_breaks(service: Service) -> None:
    """A path of one part, which no project has, causes a server error."""
    _breaking(service, "find_project")


@fault("conventions.group-id.encoded-subgroup-path")
def one_word_as_the_path_of_a_group_breaks(service: Service) -> None:
    """A path of one part, which no group has, causes a server error."""
    _breaking(service, "find_group")


@fault("conventions.project-id.encoded-subgroup-path")
def path_of_a_nested_project_shows_another(service: Service) -> None:
    """Named by its path, a project in several groups is taken for one in a single group."""

    def make(find: Named) -> Named:
        def finding(reference: str) -> Any:
            found = find(reference)
            is_nested = found is not None and reference.count("/") > 1
            return service.identities.projects[service.world.one("project").id] if is_nested else found

        return finding

    around(service.identities, "find_project", make)


@fault("conventions.project-id.number")
def projects_of_users_break(service: Service) -> None:
    """Whatever is read of a project in no group causes a server error."""

    def reading(request: Request) -> None:
        is_read = request.method == "GET" and request.route.subject is Kind.PROJECT
        project = service.identities.find_project(request.path["id"]) if is_read else None
        if project is not None and service.identities.namespace_of(project).personal:
            raise RuntimeError

    beforehand(service.access, "admit", reading)


@fault("conventions.project-id.number")
def projects_that_are_read_at_once_are_one(service: Service) -> None:
    """Whoever reads the rules of two projects concurrently gets those of the second one twice."""
    shared(service, lambda request: request.route.key == "GET /projects/:id/approval_rules")
