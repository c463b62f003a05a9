"""Job token scope: the limit on inbound access, and the two allowlists that lift it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from conformance.expectations import (
    Caller,
    Path,
    given,
    observe,
    must,
    project_path,
    unchanged,
    verifies,
)
from conformance.target import Fixture

UNUSED_ID = 2_000_000_001


@dataclass(frozen=True)
class Allowlist:
    """One of the two lists, which are twins but for what they hold."""

    name: str
    parameter: str
    other_parameter: str
    targets: str

    def of(self, project: Fixture) -> Path:
        return scope(project) / self.name.replace("-", "_")


PROJECTS = Allowlist("allowlist", "target_project_id", "target_group_id", "allowlist_projects")
GROUPS = Allowlist("groups-allowlist", "target_group_id", "target_project_id", "allowlist_groups")

both_lists = pytest.mark.parametrize("allowlist", [PROJECTS, GROUPS], ids=lambda allowlist: allowlist.name)


def scope(project: Fixture) -> Path:
    return project_path(project) / "job_token_scope"


@pytest.fixture
def targets(allowlist: Allowlist, request: pytest.FixtureRequest) -> tuple[Fixture, ...]:
    found: tuple[Fixture, ...] = request.getfixturevalue(allowlist.targets)
    return found


@pytest.fixture
def listed(allowlist: Allowlist, maintainer: Caller, project: Fixture) -> Path:
    """The path of the list; what a test adds to it is removed afterwards."""
    return allowlist.of(project)
