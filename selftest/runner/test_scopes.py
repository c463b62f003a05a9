"""A service that has one area, and says so, can be verified: no statement about it is left to tests of other areas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract, Version
from conformance.errors import ExitCode
from conformance.reference.errors import NoRouteError
from conformance.target.embedded import profile_data
from selftest.conftest import lacking
from selftest.reads import report_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.reference import Service

pytestmark = pytest.mark.usefixtures("inside_this_process")

AREAS = sorted({operation.area for operation in Contract.load().operations(Version.parse("17.7"))} - {"versions"})


@pytest.mark.parametrize(
    ("area", "version"),
    # The only write of this area is gone from 16.0 on: what all writes show together does not apply then.
    [*((area, "17.7") for area in AREAS), ("project-approval-configuration", "unknown")],
)
def test_a_sound_service_is_conformant_for_the_one_area_that_it_claims(
    area: str,
    version: str,
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    write_profile(*reference, scope=[area], version=version)
    outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--max-examples", "1", "--corpus", "none")
    report = report_of(tmp_path / "out")
    left = {
        row["id"]: (row["verdict"], row["detail"])
        for row in report["requirements"]
        if row["level"] == "must" and row["verdict"] not in ("passed", "not applicable")
    }
    assert left == {}
    assert (outcome.code, report["verdict"]) == (0, "conformant")


@pytest.mark.parametrize("area", AREAS)
def test_a_service_that_has_one_area_alone_is_conformant_for_it(
    area: str,
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    paths = {(one.method, _shape(one.path)): one.area for one in Contract.load().operations(Version.parse("17.7"))}
    areas = {route.key: paths.get((route.method, _shape(route.key.partition(" ")[2]))) for route in reference[0].routes}
    lacking({key for key, of in areas.items() if of not in (None, area)}, NoRouteError, reference[0])
    write_profile(*reference, scope=[area])
    usual = ("--out", "out", "--max-examples", "1", "--seed", "1", "--corpus", "none")
    outcome = conformance("run", "--target", "target.yaml", *usual)
    rows = report_of(tmp_path / "out")["requirements"]
    shut = ("passed", "not applicable")
    left = {row["id"] for row in rows if row["level"] == "must" and row["verdict"] not in shut}
    assert left == set(), outcome.text
    assert outcome.code == ExitCode.CONFORMANT


def _shape(path: str) -> str:
    """Return a path without the names of its parameters."""
    return re.sub(r"{\w+}|:\w+", "*", path)


def test_a_profile_without_the_fixture_of_its_only_area_is_told_what_to_add(
    conformance: Callable[..., Any],
    reference: tuple[Service, str],
    write_profile: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """Only a write could be tried, about a group that does not exist: its 404 does not say that nothing is there."""
    service, base_url = reference
    fixtures = profile_data(service.world, base_url, "17.7")["fixtures"]
    del fixtures["export_group"]
    write_profile(service, base_url, scope=["group-relations-export"], fixtures=fixtures)
    outcome = conformance("run", "--target", "target.yaml", "--out", "out", "--max-examples", "1", "--corpus", "none")
    assert outcome.code == ExitCode.INCOMPLETE, outcome.text
    assert "export_group" in outcome.text
    row = next(row for row in report_of(tmp_path / "out")["requirements"] if row["id"].endswith("schedule.accepted"))
    assert (row["verdict"], row["reason"]) == ("not tested", "prerequisite missing")
