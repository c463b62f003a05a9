"""Watches that deleted things stay deleted, whoever deleted them and whoever looks.

Most tests delete only to prepare or to restore, and check something else. If a deletion is answered as done but is not
done, these tests would become inconclusive one after the other, and none would fail.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from conformance.http.bodies import object_in, objects_in
from conformance.suite.accepted import DONE_WITHIN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import ResponseValidator

#: Operations that remove an entry from the list above their path, and the requirement that it is no longer listed.
GONE: Mapping[str, str] = {
    "removeProjectFromJobTokenAllowlist": "job-token-scope.allowlist.remove.gone",
    "removeGroupFromJobTokenAllowlist": "job-token-scope.groups-allowlist.remove.gone",
    "deleteProjectApprovalRule": "project-approval-rules.delete.gone",
    "deleteMergeRequestApprovalRule": "merge-request-approvals.rules.delete.gone",
    "disableIntegration": "integrations.disable.unlisted",
}
#: Operations that bring back only the entry that their path ends with.
_BRINGS_BACK_ITS_OWN = ("setUpIntegration", "setUpService")
#: Operations that make a rule which lists below it may show too. It may have got the number of a deleted one of these.
_MAY_SHOW_BELOW = ("createGroupApprovalRule", "createProjectApprovalRule")
#: By operation that deletes a rule, the one that made it. A list may also show rules that belong elsewhere, and to
#: delete such a rule there may be answered as done though nothing is.
_MADE_BY: Mapping[str, str] = {
    "deleteProjectApprovalRule": "createProjectApprovalRule",
    "deleteMergeRequestApprovalRule": "createMergeRequestApprovalRule",
}
#: The field that identifies an entry of one of these lists in its path.
_NAMES = ("id", "slug")
#: A rule for any approver may come back by itself, because it is the default.
_COMES_BACK = "any_approver"


@dataclass(frozen=True, slots=True)
class Deletion:
    """One deletion that was answered as done."""

    requirement: str
    area: str
    exchange: Exchange
    shows_from: float
    """When it must show in reads, in seconds of the monotonic clock."""


class Deletions:
    """The deletions of a run that nothing has undone since. Safe to use from several threads."""

    def __init__(self, validator: ResponseValidator, settle_seconds: float) -> None:
        """Begin with none; reads within this many seconds after a deletion may not show it yet."""
        self._validator = validator
        self._settle_seconds = settle_seconds
        self._known: dict[tuple[str, str], Deletion] = {}
        """By the path of the list, and the last segment of that of the entry."""
        self._made: Counter[tuple[str, str]] = Counter()
        """How many rules that are not deleted yet were made by an operation and have a number."""
        self._lock = threading.Lock()

    def contradicted_by(self, exchange: Exchange) -> list[tuple[Deletion, str]]:
        """Remember what a call deletes; return the deletions whose entry a list shows again, each with the entry."""
        call, now = exchange.call, time.monotonic()
        path = call.path.partition("?")[0]
        operation = self._validator.operation_of(call.method, path)
        with self._lock:
            if call.method == "GET":
                return list(self._shown(path, exchange, now - exchange.seconds)) if exchange.is_success else []
            if operation is None or exchange.status is None:
                self._known.clear()  # the effect of such a call is not known
            elif operation.id in _BRINGS_BACK_ITS_OWN:
                self._forget_named(path.rpartition("/")[2])
            elif operation.id not in GONE:
                # With another name, or another form of the id, it may be the same list.
                self._known = {at: known for at, known in self._known.items() if known.area != operation.area}
                self._learn(operation.id, exchange)
            elif exchange.is_success and call.actor is not None and call.actor.name in operation.served:
                owner, _, name = path.rpartition("/")
                if not self._is_of_its_list(operation.id, name):
                    return []
                shows_after = DONE_WITHIN_SECONDS if exchange.status == HTTPStatus.ACCEPTED else self._settle_seconds
                found = Deletion(GONE[operation.id], operation.area, exchange, now + shows_after)
                self._known[owner, name] = found
        return []

    def has(self, path: str, name: str) -> bool:
        """Tell whether an entry of a list was deleted, and nothing may have brought it back since."""
        with self._lock:
            return (path, name) in self._known

    def disregard(self, path: str) -> None:
        """Forget the deletion of the entry at a path: it belongs elsewhere and must stay, and a list may show it."""
        owner, _, name = path.partition("?")[0].rpartition("/")
        with self._lock:
            self._known.pop((owner, name), None)

    def _is_of_its_list(self, operation: str, name: str) -> bool:
        """Tell whether what was deleted was made at its level before, as often as it was deleted there."""
        if operation not in _MADE_BY:
            return True
        made = _MADE_BY[operation], name
        is_known = self._made[made] > 0
        self._made[made] -= is_known
        return is_known

    def _learn(self, operation: str, exchange: Exchange) -> None:
        """Remember the number of a rule that was made."""
        if operation not in (*_MADE_BY.values(), *_MAY_SHOW_BELOW):
            return
        name = str(object_in(exchange.body).get("id"))
        self._made[operation, name] += 1
        if operation in _MAY_SHOW_BELOW:
            self._forget_named(name)

    def _forget_named(self, name: str) -> None:
        self._known = {place: known for place, known in self._known.items() if place[1] != name}

    def _shown(self, path: str, exchange: Exchange, started: float) -> Iterator[tuple[Deletion, str]]:
        known = {name: deletion for (owner, name), deletion in self._known.items() if owner == path}
        for entry in objects_in(exchange.body) if known else ():
            name = next((str(entry[name]) for name in _NAMES if str(entry.get(name)) in known), None)
            if name is not None and started >= known[name].shows_from and entry.get("rule_type") != _COMES_BACK:
                del self._known[path, name]
                yield known.pop(name), name  # once, even if a list shows it twice
