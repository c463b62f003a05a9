"""Faults of integrations that show only when two callers set up or disable something at the same time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, handling
from conformance.proof.written.integrations import name_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.reference import Service
    from conformance.reference.areas.integrations import Integration
    from conformance.reference.http import Request

Place = tuple[int, str]


@dataclass(frozen=True)
class Write:
    """A call that changed an integration."""

    method: str
    caller: int
    place: Place
    """The number of the project, and the slug."""
    before: Integration | None
    """The integration as it was before the call."""


def together(service: Service, then: Callable[[Write, Write], None]) -> None:
    """Run something after the second of two writes by different callers between which no list was read."""
    last: list[Write] = []

    def make_reading(active: Any) -> Any:
        def reading(project: Any) -> Any:
            last.clear()
            return active(project)

        return reading

    def make(handler: Any) -> Any:
        def writing(request: Request) -> Any:
            place = request.project.id, request.path["slug"]
            own = Write(request.method, request.caller.id, place, service.integrations.known.get(place))
            answer = handler(request)
            for other in last:
                if other.caller != own.caller:
                    then(other, own)
            last[:] = [own]
            return answer

        return writing

    around(service.integrations, "active", make_reading)
    for method in ("PUT", "DELETE"):
        handling(service, f"{method} {name_at(service)}/:slug", make)


def _restore(service: Service, write: Write) -> None:
    if write.before is not None:
        service.integrations.known[write.place] = write.before


@fault("integrations.set-up.side-by-side")
def of_two_disablings_at_once_one_is_lost(service: Service) -> None:
    """If two callers disable two integrations concurrently, the first one stays."""

    def then(other: Write, own: Write) -> None:
        if other.method == own.method == "DELETE" and other.place != own.place:
            _restore(service, other)

    together(service, then)


@fault("integrations.set-up.side-by-side")
def what_two_set_up_at_once_is_listed_twice(service: Service) -> None:
    """If two callers set up the same integration concurrently, it is listed twice."""
    twice: set[Place] = set()

    def then(other: Write, own: Write) -> None:
        if other.method == own.method == "PUT" and other.place == own.place:
            twice.add(own.place)

    together(service, then)

    def make(active: Any) -> Any:
        def listing(project: Any) -> Any:
            found = active(project)
            again = [one for one in found if (one.project_id, one.slug) in twice]
            return [*found, *(replace(one, id=one.id + 100_000) for one in again)]

        return listing

    around(service.integrations, "active", make)


@fault("integrations.set-up.side-by-side")
def a_disabling_undoes_a_set_up_at_once(service: Service) -> None:
    """If one integration is set up and another one is disabled concurrently, neither is listed."""

    def then(other: Write, own: Write) -> None:
        if {other.method, own.method} == {"PUT", "DELETE"} and other.place != own.place:
            service.integrations.known.pop(next(one.place for one in (other, own) if one.method == "PUT"), None)

    together(service, then)


@fault("integrations.set-up.side-by-side")
def a_set_up_undoes_a_disabling_at_once(service: Service) -> None:
    """If one integration is set up and another one is disabled concurrently, both are listed."""

    def then(other: Write, own: Write) -> None:
        if {other.method, own.method} == {"PUT", "DELETE"} and other.place != own.place:
            _restore(service, next(one for one in (other, own) if one.method == "DELETE"))

    together(service, then)


def _in_two_projects(service: Service, act: Callable[[Write, Write], None]) -> None:
    def then(other: Write, own: Write) -> None:
        are_alike = other.method == own.method == "PUT" and other.place[1] == own.place[1]
        if are_alike and other.place[0] != own.place[0]:
            act(other, own)

    together(service, then)


@fault("integrations.set-up.side-by-side")
def in_two_projects_at_once_only_one_is_set_up(service: Service) -> None:
    """If an integration is set up in two projects concurrently, it is listed in the second one alone."""
    _in_two_projects(service, lambda other, _: service.integrations.known.pop(other.place, None) and None)


@fault("integrations.belong-to-their-project")
def in_two_projects_at_once_both_have_one_text(service: Service) -> None:
    """If an integration is set up in two projects concurrently, both have the settings that were sent for the second."""
    known = service.integrations.known

    def act(other: Write, own: Write) -> None:
        known[other.place] = replace(known[other.place], values=known[own.place].values)

    _in_two_projects(service, act)
