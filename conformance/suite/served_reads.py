"""
Watches that what somebody was shown is shown again: a list that became empty has no entry, and is not missing.

A test that reads to prepare, or to see what came of a call, takes a refusal for something that it cannot know and ends
inconclusive. Where the same caller was served the same read before, and has the role for it, nothing excuses it.
"""

from __future__ import annotations

import threading
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from conformance.target.spots import Spots

if TYPE_CHECKING:
    from conformance.contract import Operation
    from conformance.http.exchange import Exchange
    from conformance.schema.response_validator import ResponseValidator
    from conformance.target import Profile

#: Reads of what a call makes or takes away, which nothing obliges to be there.
_SHOWS_WHAT_WAS_MADE = frozenset({"getGroupRelationsExportStatus", "downloadGroupRelationsExport"})
#: What names something that stays for the whole run, unlike a rule or an integration, which a call takes away.
_STAYS = frozenset({"id", "merge_request_iid"})
#: What may be why something is not shown any more, such as the entries of a list while nothing is limited to them.
_MAY_WITHHOLD = frozenset(
    {
        "updateJobTokenScope",
        "updateProjectApprovalConfiguration",
        "updateProjectApprovalSettings",
        "updateGroupApprovalSettings",
    }
)


class ServedReads:
    """The reads of projects, groups and merge requests of the profile that were served. Safe to use from threads."""

    def __init__(self, profile: Profile, validator: ResponseValidator) -> None:
        """Begin with none. What was made just before is not everywhere as long as the target takes to settle."""
        self._spots, self._validator = Spots(profile), validator
        self._settle_seconds = profile.limits.settle_seconds
        self._served: dict[tuple[str, str, frozenset[Any]], tuple[Exchange, float]] = {}
        """By caller, path and query; each with when it was everywhere, in seconds of the same clock."""
        self._lock = threading.Lock()

    def contradicted_by(self, exchange: Exchange) -> tuple[str, Exchange] | None:
        """Return what states that a read is served which is refused now, with the answer that was served before."""
        call, path = exchange.call, exchange.call.path.partition("?")[0]
        operation = self._validator.operation_of(call.method, path)
        if operation is not None and operation.id in _MAY_WITHHOLD and not exchange.is_refusal:
            with self._lock:
                self._served.clear()
        if operation is None or call.actor is None or not self._is_plain(operation, exchange):
            return None
        if operation.id in _SHOWS_WHAT_WAS_MADE or {one.name for one in operation.path_parameters} - _STAYS:
            return None
        if call.actor.name not in operation.served or self._spots.called(path) is None:
            return None
        # A service may refuse pages of one length and serve others.
        key = call.actor.name, path, frozenset(call.query.items())
        with self._lock:
            if exchange.is_success:
                self._served.setdefault(key, (exchange, time.monotonic() + self._settle_seconds))
                return None
            # A token may run out, and a target that is asked too much says so: neither is about what is read.
            if not exchange.is_refusal or exchange.status == HTTPStatus.UNAUTHORIZED or key not in self._served:
                return None
            before, settled = self._served[key]
            began = time.monotonic() - exchange.seconds
            return (operation.served[call.actor.name], before) if began >= settled else None

    def _is_plain(self, operation: Operation, exchange: Exchange) -> bool:
        """
        Tell whether a read is made as it must be served again: plain, or in pages of some length where any are stated.

        Which page is the last may be read in two ways: a first one without an entry may be past the end.
        """
        call = exchange.call
        if call.method != "GET" or call.headers or call.raw or "?" in call.path or call.is_elsewhere:
            return False
        return call.query.keys() <= ({"per_page"} if operation.paginated else set())
