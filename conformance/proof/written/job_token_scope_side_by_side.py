"""Faults of the job token scope that show only when two callers do something at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import altering, handling, is_number
from conformance.proof.written.job_token_scope_in_steps import (
    LISTS,
    OTHER,
    address_of,
    for_each_list,
    keep,
    listed,
    removal_from,
    target_of,
)

if TYPE_CHECKING:
    from conformance.proof.written.job_token_scope_in_steps import Numbers
    from conformance.reference import Service
    from conformance.reference.http import Request, Response

#: Two calls are made at the same time if they are not so many seconds apart.
_MOMENT = 0.05


class Latest:
    """The latest call of one operation in each project."""

    def __init__(self, service: Service, kind: str, key: str) -> None:
        """Watch an operation; `kind` is what its list holds."""
        self.calls: dict[int, tuple[int, float, int, Numbers]] = {}
        self._clock = service.clock

        def make(handler: Any) -> Any:
            def watched(request: Request) -> Any:
                before = listed(service, request.project, kind)
                answer = handler(request)
                target = target_of(request, kind)
                self.calls[request.project.id] = (request.caller.id, self._clock.seconds(), target, before)
                return answer

            return watched

        handling(service, key, make)

    def beside(self, request: Request) -> tuple[int, Numbers] | None:
        """Return the target of another caller's call at the same time, and what was listed before; None without one."""
        caller, at, target, before = self.calls.get(request.project.id, (request.caller.id, 0.0, 0, ()))
        is_beside = caller != request.caller.id and self._clock.seconds() - at < _MOMENT
        return (target, before) if is_beside else None


def _answers_are_mixed_up(service: Service, kind: str) -> None:
    key = f"POST {address_of(kind)}"
    beside: dict[int, int] = {}
    latest = Latest(service, kind, key)

    def make(handler: Any) -> Any:
        def adding(request: Request) -> Any:
            other = latest.beside(request)
            beside[id(request)] = other[0] if other else target_of(request, kind)
            return handler(request)

        return adding

    def alter(request: Request, response: Response) -> None:
        content: Any = response.content
        response.content = {**content, f"target_{kind}_id": beside.pop(id(request))}

    handling(service, key, make)
    altering(service, key, alter)


for_each_list(
    "additions_of_{kind}s_answer_each_other",
    "If two callers add two {kind}s concurrently, the second is told that it added the first one.",
    "add.side-by-side",
    _answers_are_mixed_up,
)


def _goes_beside_a_removal(service: Service, kind: str) -> None:
    adding, removing = f"POST {address_of(kind)}", removal_from(kind)
    added, removed = Latest(service, kind, adding), Latest(service, kind, removing)

    def make(other: Latest) -> Any:
        """Write the list as it was before the other call, with what this call changed."""

        def wrap(handler: Any) -> Any:
            def writing(request: Request) -> Any:
                beside, before = other.beside(request), listed(service, request.project, kind)
                answer = handler(request)
                now = listed(service, request.project, kind)
                if beside:
                    gone, come = {*before} - {*now}, [number for number in now if number not in before]
                    keep(service, request.project, kind, (*(n for n in beside[1] if n not in gone), *come))
                return answer

            return writing

        return wrap

    handling(service, adding, make(removed))
    handling(service, removing, make(added))


for_each_list(
    "additions_of_{kind}s_and_removals_overwrite_each_other",
    "If one caller adds a {kind} and another one removes one concurrently, only the second call has an effect.",
    "add.side-by-side",
    _goes_beside_a_removal,
)


def _same_one_twice(service: Service, kind: str) -> None:
    key = f"POST {address_of(kind)}"
    latest = Latest(service, kind, key)

    def make(handler: Any) -> Any:
        def adding(request: Request) -> Any:
            other, target = latest.beside(request), target_of(request, kind)
            if other and other[0] == target:
                keep(service, request.project, kind, (*listed(service, request.project, kind), target), once=False)
            return handler(request)

        return adding

    handling(service, key, make)


for_each_list(
    "{kind}s_are_listed_twice_if_two_add_them",
    "If two callers add the same {kind} concurrently, it is listed twice.",
    "add.side-by-side",
    _same_one_twice,
)


@fault("job-token-scope.allowlists.are-separate")
def removals_from_both_lists_overwrite_each_other(service: Service) -> None:
    """If two callers remove an entry from either list concurrently, only the second entry is removed."""
    latest = {kind: Latest(service, kind, removal_from(kind)) for kind, _, _ in LISTS}

    def make(kind: str) -> Any:
        def wrap(handler: Any) -> Any:
            def removing(request: Request) -> Any:
                other = latest[OTHER[kind]].beside(request)
                if other:
                    keep(service, request.project, OTHER[kind], other[1])
                return handler(request)

            return removing

        return wrap

    for kind, _, _ in LISTS:
        handling(service, removal_from(kind), make(kind))


@fault("job-token-scope.allowlists.belong-to-their-project")
def lists_are_found_by_the_end_of_the_path(service: Service) -> None:
    """By the path of a project, its list is that of the first project whose path ends alike."""

    def make(handler: Any) -> Any:
        def reading(request: Request) -> Any:
            if not is_number(request, "id"):
                end = request.project.full_path.rpartition("/")[2]
                alike = (one for one in service.identities.projects.values() if one.full_path.endswith(f"/{end}"))
                request.admit(request.caller, next(alike, request.project))
            return handler(request)

        return reading

    for kind, _, _ in LISTS:
        handling(service, f"GET {address_of(kind)}", make)
