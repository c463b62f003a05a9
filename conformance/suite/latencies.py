"""How long the target took to answer, operation by operation."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

from conformance.results.grouping import grouped
from conformance.results.record import Latency

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from conformance.contract import Operation
    from conformance.http.exchange import Exchange

#: So that the last of a hundred slices covers 95 of 100 calls.
_SLICES, _MOST = 20, -1


class Latencies:
    """Collects the milliseconds of every call that was answered. Safe to use from several threads."""

    def __init__(self, operation_of: Callable[[str, str], Operation | None]) -> None:
        """Collect by the operation that `operation_of` returns for method and path."""
        self.of: dict[str, list[float]] = {}
        """By method and path of the operation."""
        self._operation_of = operation_of

    def see(self, exchange: Exchange) -> None:
        """Record how long an answer took; ignore calls of no operation, and those without an answer."""
        operation = self._operation_of(exchange.call.method, exchange.call.path)
        if operation is not None and exchange.status is not None:
            self.of.setdefault(operation.label, []).append(round(exchange.seconds * 1000, 2))

    def usual(self) -> float | None:
        """Return the median of all calls so far, in seconds; None before the first."""
        times = [time for times in tuple(self.of.values()) for time in tuple(times)]
        return median(times) / 1000 if times else None


def summed_up(collected: Sequence[Mapping[str, Sequence[float]]]) -> tuple[Latency, ...]:
    """Return the latencies that several processes collected together, operation by operation."""
    together = grouped((operation, time) for part in collected for operation, times in part.items() for time in times)
    return tuple(
        Latency(operation, len(times), round(median(times), 1), round(_most(times), 1))
        for operation, times in sorted(together.items())
    )


def _most(times: Sequence[float]) -> float:
    return quantiles(times, n=_SLICES, method="inclusive")[_MOST] if len(times) > 1 else times[0]
