"""Faults of the rate of completions; the minute without calls that they need is skipped."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, does_nothing, handling
from conformance.reference.errors import ThrottledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.proof.faults import Apply
    from conformance.reference import Service


def rated(requirement: str) -> Callable[[Apply], Apply]:
    """Register a fault of the rate, which shows only if the profile says that there is a limit."""
    return fault(requirement, features={"completion_rate_limit": True})


def limited(service: Service, most: int) -> None:
    """Serve another number of completions per minute."""
    area = service.code_completion

    def count(caller: Any) -> None:
        now = service.clock.seconds()
        recent = tuple(moment for moment in area.requests.get(caller.id, ()) if area.in_window(moment, now))
        if len(recent) >= most:
            raise ThrottledError
        area.requests[caller.id] = (*recent, now)

    area.count = count


@rated("limits.completions.refused-above-rate")
def completions_are_unlimited(service: Service) -> None:
    """Nobody is refused because of the rate."""
    service.code_completion.count = does_nothing


@rated("limits.completions.refused-above-rate")
def rate_is_twice_as_high(service: Service) -> None:
    """A user gets 130 completions per minute."""
    limited(service, 130)


@rated("limits.completions.refused-above-rate")
def more_are_served_than_two_windows_admit(service: Service) -> None:
    """A user gets 123 completions per minute before a refusal."""
    limited(service, 123)


@rated("limits.completions.refused-above-rate")
def minute_has_ten_seconds(service: Service) -> None:
    """A user gets 60 completions in ten seconds."""
    service.code_completion.in_window = lambda moment, now: now - moment < 10  # type: ignore[method-assign]


def _counting_apart(service: Service, kind: Callable[[Any], object]) -> None:
    """Count the completions of a user apart for each kind, which is told from the request."""
    kinds: list[object] = []

    def remember(handler: Any) -> Any:
        def completing(request: Any) -> Any:
            kinds[:] = [kind(request)]
            return handler(request)

        return completing

    handling(service, "POST /code_suggestions/completions", remember)
    around(
        service.code_completion,
        "count",
        lambda count: lambda caller: count(replace(caller, id=hash((caller.id, *kinds)))),
    )


@rated("limits.completions.refused-above-rate")
def bearer_tokens_have_a_rate_of_their_own(service: Service) -> None:
    """A user gets 60 completions per minute by the usual header, and 60 by a bearer token."""
    _counting_apart(service, lambda request: b"authorization" in request.headers)


@rated("limits.completions.refused-above-rate")
def each_intent_has_a_rate_of_its_own(service: Service) -> None:
    """A user gets 60 completions per minute with each intent, and 60 without one."""
    _counting_apart(service, lambda request: json.loads(request.body).get("intent"))


@rated("limits.completions.served-below-rate")
def rate_is_lower(service: Service) -> None:
    """A user gets 59 completions per minute."""
    limited(service, 59)


@rated("limits.completions.per-user")
def rate_is_shared(service: Service) -> None:
    """All users together get 60 completions per minute."""
    one = next(iter(service.identities.users.values()))
    around(service.code_completion, "count", lambda count: lambda _: count(one))


@rated("limits.completions.window")
def rate_is_never_restored(service: Service) -> None:
    """After 60 completions a user gets none any more."""
    service.code_completion.in_window = lambda _moment, _now: True


@rated("limits.completions.window")
def window_lasts_two_minutes(service: Service) -> None:
    """After 60 completions a user gets more only after two minutes."""
    service.code_completion.in_window = lambda moment, now: now - moment < 120
