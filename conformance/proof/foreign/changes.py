"""Changes of a service that several faults share: what it reads, finds, answers or stores differently."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from conformance.proof.foreign.registry import handling, instead, is_served, meanwhile
from conformance.reference.areas.approval_rule_records import home_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.reference import Service
    from conformance.reference.areas.approval_rule_records import Level
    from conformance.reference.http import Request

#: The last character that takes at most three bytes, which is the limit of older encodings of databases.
LAST_OF_THREE_BYTES = 65535
#: How long the slower of two concurrent calls waits before it acts.
SLOWER_CALL_SECONDS = 0.06
#: How long the quicker one waits: it acts while the slower one is still waiting.
QUICKER_CALL_SECONDS = 0.03


def changing_the_status(service: Service, change: Any) -> None:
    """Alter the approval status before it is shown; `change` also gets the merge request."""

    @instead(service.merge_request_approvals, "status")
    def _(status: Any, merge_request: Any, viewer: Any) -> Any:
        shown = status(merge_request, viewer)
        change(shown, merge_request)
        return shown


def changing_entries(service: Service, change: Any) -> None:
    """Alter each project of an allowlist before it is shown; `change` also gets the request."""

    @handling(service, "GET /projects/:id/job_token_scope/allowlist")
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = orjson.loads(orjson.dumps(answer.content))
        for entry in answer.content:
            change(entry, request)
        return answer


def cutting_a_list(service: Service, field: str, cut: Any, home: str = "") -> None:
    """Shorten a list of a new rule with `cut`, at one level or at all levels."""

    @instead(service.approval_rules, "create_rule")
    def _(create: Any, subject: Any, at: Any, wanted: Any, caller: Any) -> Any:
        values = getattr(wanted, field)
        if values and (not home or at.level.value == home):
            wanted = replace(wanted, **{field: cut(values)})
        return create(subject, at, wanted, caller)


def without_parameters(request: Any, *names: str) -> None:
    """Remove parameters from a request."""
    values = request.parameters._values
    request.parameters._values = {name: value for name, value in values.items() if name not in names}


def with_parameters(request: Any, values: Mapping[str, Any]) -> None:
    """Add parameters to a request."""
    request.parameters._values = {**request.parameters._values, **values}


def merge_requests_of_the_project(service: Service, merge_request: Any) -> list[Any]:
    """Return all merge requests of the project of a merge request."""
    known = service.repositories.merge_requests.values()
    return [one for one in known if one.project_id == merge_request.project_id]


def is_rule_of_a_merge_request(service: Service, rule: Any, project: Any) -> bool:
    """Tell whether a rule belongs to a merge request of this project."""
    own = [one for one in service.repositories.merge_requests.values() if one.project_id == project.id]
    return rule is not None and rule.home in {home_of(one) for one in own}


def listing_no_groups(service: Service, key: str) -> None:
    """Let a list show rules without their groups."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        answer.content = [{**rule, "groups": []} for rule in answer.content]
        return answer


def finding_any_rule(service: Service, key: str, level: Level) -> None:
    """Let an operation find any rule of a level, even one of another project, group or merge request."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        rules, find = service.approval_rules, service.approval_rules.find

        def everywhere(home: Any, number: int) -> Any:
            rule = rules.rules.get(number)
            return rule if rule is not None and rule.home.level is level else find(home, number)

        rules.find = everywhere
        try:
            return handler(request)
        finally:
            rules.find = find


def acting_on_what_was(service: Service, table: Any, *keys: str) -> None:
    """Let operations act on a table as it was when they began."""

    def write(seen: Any, _: Any) -> None:
        table.clear()
        table.update(seen)

    meanwhile(service, keys, lambda: dict(table), write)


def overtaken(service: Service, slow: str, quick: str, look: Callable[[], Any], write: Callable[..., Any]) -> None:
    """Let an operation act on a state from before a concurrent operation.

    `look` reads that state; `write` gets it and the request, before the operation acts.
    """
    seen: dict[int, Any] = {}

    async def wait(request: Request) -> None:
        if request.route.key == slow:
            seen[id(request)] = look()
            await asyncio.sleep(SLOWER_CALL_SECONDS)
        elif request.route.key == quick:
            await asyncio.sleep(QUICKER_CALL_SECONDS)

    service.interruption = wait

    @handling(service, slow)
    def _(handler: Any, request: Request) -> Any:
        write(seen.pop(id(request)), request)
        return handler(request)


def last_to_come(service: Service, *keys: str) -> Callable[[], Request]:
    """Let operations wait a moment before they act; return a function that gives the request that arrived last."""
    came: list[Request] = []

    async def wait(request: Request) -> None:
        if request.route.key in keys:
            came[:] = [request]
            await asyncio.sleep(QUICKER_CALL_SECONDS)

    service.interruption = wait
    return lambda: came[0]


def asking_otherwise(service: Service, key: str, change: Callable[[Any, bytes], bytes]) -> None:
    """Let an operation read a query other than the one that was sent."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        request.query = change(request, request.query)
        return handler(request)


def answering(service: Service, key: str, change: Any) -> None:
    """Let an operation answer with content other than its own."""

    @handling(service, key)
    def _(handler: Any, request: Any) -> Any:
        answer = handler(request)
        if is_served(answer):
            answer.content = change(request, answer.content)
        return answer


def undoing(service: Service, *keys: str, when: Any = lambda _: True) -> None:
    """Let operations answer, and then restore the former state; `when` says for which requests."""

    @handling(service, *keys)
    def _(handler: Any, request: Any) -> Any:
        lies, before = when(request), service.store.snapshot()
        answer = handler(request)
        if lies and is_served(answer):
            service.store.restore(before)
        return answer
