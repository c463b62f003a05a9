"""Sizes and rates that the text leaves open: the target's choice is recorded, and nothing is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.suite.expectations import observe, project_path

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Answer, Caller

MORE_THAN_ANYBODY_GIVES = 100_000
READS_IN_A_ROW = 10


def told(answer: Answer) -> str:
    """Return the page size from the headers; showing it otherwise needs a very long list."""
    size = answer.given_served().exchange.headers.get("x-per-page")
    return f"{size} entries" if size else "not told by any header"


@pytest.mark.calls_area("project-approval-rules")
def test_how_long_pages_are_is_noted(maintainer: Caller, project: Fixture) -> None:
    path = project_path(project) / "approval_rules"
    observe("limits.page-size.default", f"without per_page: {told(maintainer.get(path))}")
    most = maintainer.get(path, per_page=MORE_THAN_ANYBODY_GIVES)
    refused = f"refused with {most.exchange.status}"
    observe("limits.page-size.maximum", f"with a huge per_page: {told(most) if most.is_served else refused}")


@pytest.mark.calls_area("project-approval-rules")
def test_whether_reads_are_rationed_is_noted(maintainer: Caller, project: Fixture) -> None:
    """So few that they disturb nobody."""
    path = project_path(project) / "approval_rules"
    rationed = sum(maintainer.get(path, per_page=1).was_throttled for _ in range(READS_IN_A_ROW))
    observe("limits.rates-elsewhere", f"of {READS_IN_A_ROW} reads in a row, {'some' if rationed else 'none'} met a 429")
