"""Watches that a served read stays served: a list that became empty has no entries, but still exists.

A test that reads to prepare, or to see the effect of a call, cannot explain a refusal and becomes inconclusive. But if
the same read was served before to the same caller, who has the role for it, nothing excuses the refusal.
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

#: Reads of things that a call makes or removes, so that they need not exist.
SHOWS_WHAT_WAS_MADE = frozenset({"getGroupRelationsExportStatus", "downloadGroupRelationsExport"})
#: Parameters that name something which exists for the whole run, unlike a rule or an integration.
_STAYS = frozenset({"id", "merge_request_iid"})
#: Changes that may be the reason why something is no longer shown, such as entries of a list while no limit is on.
_MAY_WITHHOLD = frozenset(
    {"updateJobTokenScope", "updateProjectApprovalConfiguration"}
    | {"updateProjectApprovalSettings", "updateGroupApprovalSettings"}
)


class ServedReads:
    """The reads of projects, groups and merge requests of the profile that were served. Safe to use from threads."""

    def __init__(self, profile: Profile, validator: ResponseValidator) -> None:
        """Begin with none. A new thing is not shown everywhere until the target has settled."""
        self._spots, self._validator = Spots(profile), validator
        self._settle_seconds = profile.limits.settle_seconds
        self._served: dict[tuple[str, str, frozenset[Any]], tuple[Exchange, float]] = {}
        """By caller, path and query; each with when it was everywhere, in seconds of the same clock."""
        self._lock = threading.Lock()

    def contradicted_by(self, exchange: Exchange) -> tuple[str, Exchange] | None:
        """Return the requirement that a read is served which is refused now, with the answer that was served before."""
        call, path = exchange.call, exchange.call.path.partition("?")[0]
        operation = self._validator.operation_of(call.method, path)
        if operation is not None and operation.id in _MAY_WITHHOLD and not exchange.is_refusal:
            with self._lock:
                self._served.clear()
        if operation is None or call.actor is None or not self._is_plain(operation, exchange):
            return None
        if operation.id in SHOWS_WHAT_WAS_MADE or {one.name for one in operation.path_parameters} - _STAYS:
            return None
        if call.actor.name not in operation.served or self._spots.called(path) is None:
            return None
        # A service may refuse one page size and serve others.
        key = call.actor.name, path, frozenset(call.query.items())
        with self._lock:
            if exchange.is_success:
                self._served.setdefault(key, (exchange, time.monotonic() + self._settle_seconds))
                return None
            # A token may expire, and a busy target says so: neither is about what is read.
            if not exchange.is_refusal or exchange.status == HTTPStatus.UNAUTHORIZED or key not in self._served:
                return None
            before, settled = self._served[key]
            began = time.monotonic() - exchange.seconds
            return (operation.served[call.actor.name], before) if began >= settled else None

    def _is_plain(self, operation: Operation, exchange: Exchange) -> bool:
        """Tell whether a read must be served again in this form: plain, or in pages of some size if paginated.

        Which page is the last may be read in two ways: a first one without an entry may be past the end.
        """
        call = exchange.call
        if call.method != "GET" or call.headers or call.raw or "?" in call.path or call.is_elsewhere:
            return False
        return call.query.keys() <= ({"per_page"} if operation.paginated else set())
