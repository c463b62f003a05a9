"""Faults of approval rules that show only if two callers concurrently write different things."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import handling
from conformance.proof.written.approval_rules import stored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from conformance.reference import Service
    from conformance.reference.http import Request

_CHANGES = (
    "PUT /projects/:id/approval_rules/:approval_rule_id",
    "PUT /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id",
)
#: How long a change waits between reading and writing, so that a concurrent deletion comes in between.
_MEANWHILE_SECONDS = 0.05


@fault("project-approval-rules.delete.at-once")
@fault("merge-request-approvals.rules.delete.at-once")
def a_change_brings_back_what_went_meanwhile(service: Service) -> None:
    """A change of a rule writes all rules as they were a moment before, including those deleted meanwhile."""
    written_back(service, _CHANGES)


def written_back(service: Service, keys: Collection[str]) -> None:
    """Let some operations write all rules as they were before a moment in which others may be deleted."""
    seen: dict[int, dict[int, Any]] = {}

    async def wait(request: Request) -> None:
        if request.route.key in keys:
            seen[id(request)] = dict(stored(service))
            await asyncio.sleep(_MEANWHILE_SECONDS)

    def make(handler: Any) -> Any:
        def late(request: Request) -> Any:
            for number, rule in seen.pop(id(request), {}).items():
                stored(service).setdefault(number, rule)
            return handler(request)

        return late

    service.interruption = wait
    for key in keys:
        handling(service, key, make)


_DELETIONS = (
    "DELETE /projects/:id/approval_rules/:approval_rule_id",
    "DELETE /projects/:id/merge_requests/:merge_request_iid/approval_rules/:approval_rule_id",
)


@fault("project-approval-rules.delete.at-once")
@fault("merge-request-approvals.rules.delete.at-once")
def a_deletion_brings_back_what_others_delete(service: Service) -> None:
    """A deletion of a rule writes all other rules as they were a moment before, including those deleted meanwhile."""
    written_back(service, _DELETIONS)


def _beside_deletions(service: Service, then: Callable[[Any], None], changed: Callable[[Request, Any], Any]) -> None:
    """Let deletions wait for changes of other rules: `then` gets what was changed meanwhile, `changed` each change."""
    under_way: set[int] = set()
    touched: set[int] = set()

    async def wait(request: Request) -> None:
        if request.route.key in _DELETIONS:
            under_way.add(id(request))
            await asyncio.sleep(_MEANWHILE_SECONDS)

    def deleting(handler: Callable[..., Any]) -> Any:
        def late(request: Request) -> Any:
            under_way.discard(id(request))
            response = handler(request)
            then(touched)
            return response

        return late

    def changing(handler: Callable[..., Any]) -> Any:
        def beside(request: Request) -> Any:
            number = int(request.path["approval_rule_id"])
            if under_way:
                touched.add(number)
            return changed(request, handler) if number in touched else handler(request)

        return beside

    service.interruption = wait
    for key in _DELETIONS:
        handling(service, key, deleting)
    for key in _CHANGES:
        handling(service, key, changing)


@fault("project-approval-rules.delete.at-once")
@fault("merge-request-approvals.rules.delete.at-once")
def a_deletion_takes_what_is_changed_meanwhile(service: Service) -> None:
    """A deletion of a rule also deletes the rules that others change meanwhile."""

    def take(touched: set[int]) -> None:
        for number in touched:
            stored(service).pop(number, None)

    _beside_deletions(service, take, lambda request, handler: handler(request))


@fault("project-approval-rules.delete.at-once")
@fault("merge-request-approvals.rules.delete.at-once")
def changes_beside_a_deletion_are_lost(service: Service) -> None:
    """A rule that is changed while others are deleted is no longer stored, by this change or a later one."""

    def lose(request: Request, handler: Callable[..., Any]) -> Any:
        before = dict(stored(service))
        response = handler(request)
        stored(service).update(before)
        return response

    _beside_deletions(service, lambda _: None, lose)
