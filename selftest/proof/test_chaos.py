"""The suite on a failing network: no false failure, and all changes are undone; the matrix lists the exceptions."""

from __future__ import annotations

from dataclasses import replace

from conformance.proof.chaos.cells import Cell, run_cell
from conformance.proof.chaos.kinds import MIXED
from conformance.proof.chaos.matrix import CALM, is_as_promised, published


def test_a_failing_network_is_no_failure_of_the_service_and_changes_are_undone() -> None:
    area = ("--area=job-token-scope", "--max-examples=2")
    rough = run_cell(Cell(MIXED, 1 / 50, options=area))
    assert rough.failures == ()
    assert rough.leftovers == ()
    assert rough.disturbed[MIXED] > 10
    assert rough.share >= 0.95, rough.open
    calm = replace(rough, kind=CALM, rate=0.0, leftovers=("/a",))
    worse = [replace(rough, leftovers=("/a", "/b")), replace(rough, failures=("a requirement",))]
    assert [is_as_promised(one, [calm]) for one in (rough, *worse)] == [True, False, False]
    figures = published([calm, rough, *worse], 9)
    assert (figures["cells"], figures["leftovers"], figures["false_failures"]) == (4, 1, 1)
    assert figures["left_out"].startswith("5 of 9 cells;")
