"""Faults of the rate of completions; the idle minute that they need passes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.faults import fault
from conformance.proof.tampering import around, does_nothing
from conformance.reference.errors import ThrottledError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.proof.faults import Apply
    from conformance.reference import Service


def rated(requirement: str) -> Callable[[Apply], Apply]:
    """Register a fault of the rate, which shows only where the profile says that there is one."""
    return fault(requirement, features={"completion_rate_limit": True})


def limited(service: Service, most: int) -> None:
    """Serve another number of completions a minute."""
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
    """Nobody is ever refused for the rate."""
    service.code_completion.count = does_nothing


@rated("limits.completions.refused-above-rate")
def rate_is_twice_as_high(service: Service) -> None:
    """A user gets 130 completions a minute."""
    limited(service, 130)


@rated("limits.completions.refused-above-rate")
def more_are_served_than_two_windows_admit(service: Service) -> None:
    """A user gets 123 completions a minute, and is refused only then."""
    limited(service, 123)


@rated("limits.completions.served-below-rate")
def rate_is_lower(service: Service) -> None:
    """A user gets 59 completions a minute."""
    limited(service, 59)


@rated("limits.completions.per-user")
def rate_is_shared(service: Service) -> None:
    """All users together get 60 completions a minute."""
    one = next(iter(service.identities.users.values()))
    around(service.code_completion, "count", lambda count: lambda _: count(one))


@rated("limits.completions.window")
def rate_is_never_restored(service: Service) -> None:
    """Who had 60 completions gets no more."""
    service.code_completion.in_window = lambda _moment, _now: True


@rated("limits.completions.window")
def window_lasts_two_minutes(service: Service) -> None:
    """Who had 60 completions gets more after two minutes."""
    service.code_completion.in_window = lambda moment, now: now - moment < 120
