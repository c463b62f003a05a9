"""Faults of code completion that show beside another call, to another caller, or for a project in several groups."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, sent
from conformance.proof.written.code_completion import CHECK, COMPLETE
from conformance.reference.errors import StatedError
from conformance.reference.identity import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.http import Request
    from conformance.reference.identity import Project, User

#: How long each call waits that keeps something in a place which all requests share.
_MEANWHILE_SECONDS = 0.03


def _shared(service: Service, key: str, name: str, is_kept: Callable[[Any], bool]) -> None:
    """Let what is sent in one call be read in all calls that are handled meanwhile, if it is of some kind."""
    under_way: list[list[Any]] = []

    async def wait(request: Request) -> None:
        if request.route.key == key:
            value = sent(request).get(name)
            beside = [value, *(other[0] for other in under_way)]
            for other in under_way:
                other.append(value)
            under_way.append(beside)
            await asyncio.sleep(_MEANWHILE_SECONDS)
            under_way[:] = [other for other in under_way if other is not beside]
            kept = [one for one in beside if is_kept(one)]
            if kept:
                request.body = json.dumps({**sent(request), name: kept[0]}).encode()

    service.interruption = wait


@fault("code-completion.stream.off")
def streams_are_contagious(service: Service) -> None:
    """A completion that is requested concurrently with a streamed one is streamed too."""
    _shared(service, COMPLETE, "stream", lambda value: value is True)


@fault("code-completion.enabled.unknown-project")
def of_two_checks_at_once_both_are_of_the_known_project(service: Service) -> None:
    """Whoever asks for a project that does not exist, concurrently with one that does, is told about that one."""
    _shared(service, CHECK, "project_path", lambda value: service.identities.find_project(str(value)) is not None)


def _found(service: Service, is_meant: Callable[[str, list[str]], bool]) -> None:
    """Let a check find a project also by other paths: `is_meant` gets what was asked for, and the parts of a path."""

    def make(check: Any) -> Any:
        def checking(caller: User, path: str) -> None:
            known = service.identities.projects.values()
            found = [one.full_path for one in known if is_meant(path, one.full_path.split("/"))]
            check(caller, next(iter(found), path))

        return checking

    around(service.code_completion, "check", make)


@fault("code-completion.enabled.unknown-project")
def last_group_and_name_are_enough(service: Service) -> None:
    """A project in several groups is found by the last two parts of its path."""
    _found(service, lambda path, parts: len(parts) > 2 and path == "/".join(parts[-2:]))


@fault("code-completion.enabled.unknown-project")
def first_group_and_name_are_enough(service: Service) -> None:
    """A project in several groups is found by the first and the last part of its path."""
    _found(service, lambda path, parts: len(parts) > 2 and path == f"{parts[0]}/{parts[-1]}")


def _for(service: Service, caller: User, path: str) -> Role:
    project = service.identities.find_project(path)
    return Role.NONE if project is None else service.identities.role_in(caller, project)


def _telling(service: Service, is_told: Callable[[User, str], bool], status: int) -> None:
    """Answer the checks of some callers, or for some paths, with another status."""

    def make(check: Any) -> Any:
        def checking(caller: User, path: str) -> None:
            if not is_told(caller, path):
                check(caller, path)
            elif status >= 300:
                raise StatedError(status, "No")

        return checking

    around(service.code_completion, "check", make)


@fault("code-completion.enabled.is-off")
def owners_are_told_that_it_is_on(service: Service) -> None:
    """An owner of a project without completions is told that it has some."""
    _telling(service, lambda caller, path: _for(service, caller, path) >= Role.OWNER, 200)


@fault("code-completion.enabled.is-off")
def developers_are_told_that_it_is_unknown(service: Service) -> None:
    """A developer of a project without completions, who can read it, is told that it does not exist."""

    def is_told(caller: User, path: str) -> bool:
        project: Project | None = service.identities.find_project(path)
        is_off = project is not None and not service.code_completion.enabled(project)
        return is_off and _for(service, caller, path) is Role.DEVELOPER

    _telling(service, is_told, 404)


@fault("code-completion.enabled.answers")
def projects_of_users_are_unknown(service: Service) -> None:
    """A project in no group is not found."""

    def is_personal(_: User, path: str) -> bool:
        project = service.identities.find_project(path)
        return project is not None and service.identities.namespace_of(project).personal

    _telling(service, is_personal, 404)
