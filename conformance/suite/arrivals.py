"""Watches, in whichever test reads it, that nobody is shown as approver of a merge request without having asked.

An approval that also lands on another merge request stays there: a later story finds it, takes it for an older one, and
sees no change. This costs one look at the merge requests of each project, before the first of them is approved; later,
only what tests read anyhow is checked.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from conformance.suite.shown_records import values_under
from conformance.target.spots import Spot, Spots

if TYPE_CHECKING:
    from conformance.http.exchange import Call, Exchange
    from conformance.schema.response_validator import ResponseValidator
    from conformance.target import Profile

#: The requirement that approving one merge request does not approve another.
SEPARATE = "merge-request-approvals.approvals-are-separate"
_APPROVING = "approveMergeRequest"
_SHOWING = ("getMergeRequestApprovals", _APPROVING)


class Arrivals:
    """Who asked to approve which merge request of the profile in this run. Safe to use from several threads."""

    def __init__(self, profile: Profile, validator: ResponseValidator) -> None:
        """Begin with nobody; only actors of the profile are watched, because others may approve what they like."""
        self._people = {actor.id for actor in profile.actors.values() if actor.id is not None}
        self._spots, self._validator = Spots(profile), validator
        self._may_show: dict[Spot, set[int]] = {}
        """By merge request: who had approved it when it was first read."""
        self._asked: defaultdict[Spot | None, Counter[int]] = defaultdict(Counter)
        """By merge request: who asked to approve, and how often; None stands for a path that does not tell which one.

        There a refused call takes back only itself, and nothing that the same people asked for elsewhere.
        """
        self._looked_around: set[object] = set()
        """The projects whose merge requests were all read before the first of them was approved."""
        self._lock = threading.Lock()

    def unseen_beside(self, call: Call) -> list[str]:
        """Return the paths of the merge requests beside one that is about to be approved, before the first approval."""
        about = self._spots.called(call.path) if self._operation(call) == _APPROVING else None
        if about is None or about.number in self._looked_around:
            return []
        beside = (spot for spot in self._spots.all if spot.number == about.number and spot.iid is not None)
        return [f"/projects/{spot.number}/merge_requests/{spot.iid}/approvals" for spot in beside]

    def saw_beside(self, exchange: Exchange) -> None:
        """Remember who has approved a merge request before the first approval of the run."""
        spot = self._spots.called(exchange.call.path)
        if spot is not None and exchange.is_success:
            self._looked_around.add(spot.number)
            self.contradicted_by(exchange)

    def expect(self, call: Call) -> None:
        """Record who asks to approve, before the call is sent, because a read beside it may show it at once."""
        if self._operation(call) == _APPROVING:
            with self._lock:
                self._asked[self._spots.called(call.path)].update(self._asking(call))

    def contradicted_by(self, exchange: Exchange) -> list[int]:
        """Return the people whom an answer shows as approvers though they never asked to be."""
        operation, spot = self._operation(exchange.call), self._spots.called(exchange.call.path)
        with self._lock:
            if operation == _APPROVING and spot is None and exchange.is_refusal:
                self._asked[None].subtract(self._asking(exchange.call))
        if operation not in _SHOWING or spot is None or not exchange.is_success:
            return []
        shown = self._people & _approvers(exchange.body)
        with self._lock:
            first = self._may_show.setdefault(spot, shown)
            return sorted(shown - first - (+self._asked[spot] + +self._asked[None]).keys())

    def _asking(self, call: Call) -> set[int]:
        """Return who may be asking: anybody, if the profile does not say whose token it is."""
        number = getattr(call.actor, "id", None)
        return set(self._people) if number is None else {number}

    def _operation(self, call: Call) -> str | None:
        found = self._validator.operation_of(call.method, call.path)
        return found.id if found is not None else None


def _approvers(body: bytes) -> set[int]:
    try:
        entries = json.loads(body)["approved_by"]
        return {number for number in values_under("id", [entry["user"] for entry in entries]) if type(number) is int}
    except (ValueError, RecursionError, LookupError, TypeError):
        return set()
