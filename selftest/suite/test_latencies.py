"""Response times of the target, by operation."""

from __future__ import annotations

from types import MappingProxyType

from conformance.contract import Contract, Operation, Version
from conformance.http.exchange import Call, Exchange
from conformance.suite.latencies import Latencies, summed_up


def _operation(_: str, path: str) -> Operation | None:
    first = Contract.load().operations(Version.parse("17.7"))[0]
    return first if path == "/known" else None


def test_only_answered_calls_of_an_operation_count() -> None:
    found = Latencies(_operation)
    for path, status in (("/known", 200), ("/known", None), ("/unknown", 200), ("/known", 404)):
        found.see(Exchange(Call(None, "GET", path), status, MappingProxyType({}), b"", 0.01))
    assert list(found.of.values()) == [[10.0, 10.0]]


def test_the_typical_time_of_a_response_is_the_median_of_all_in_seconds() -> None:
    found = Latencies(_operation)
    assert found.usual() is None
    for seconds in (0.01, 0.02, 0.5):
        found.see(Exchange(Call(None, "GET", "/known"), 200, MappingProxyType({}), b"", seconds))
    assert found.usual() == 0.02


def test_times_of_several_processes_are_combined() -> None:
    one, other = {"GET /a": [float(number) for number in range(1, 51)]}, {"GET /a": [100.0] * 50, "GET /b": [7.0]}
    first, second = summed_up([one, other])
    assert (first.operation, first.calls, first.median, first.most) == ("GET /a", 100, 75.0, 100.0)
    assert (second.operation, second.calls, second.median, second.most) == ("GET /b", 1, 7.0, 7.0)
    assert summed_up([]) == ()
