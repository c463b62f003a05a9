"""What commands print for programs, and options that the environment can set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from conformance.cli import commands
from conformance.contract import Contract

if TYPE_CHECKING:
    import pytest

_ID = "job-token-scope.switch.on"


def _printed(*arguments: str) -> Any:
    result = CliRunner().invoke(commands, [*arguments, "--format", "json"], standalone_mode=False)
    assert result.exception is None, result.output
    return json.loads(result.stdout)


def test_requirements_are_printed_completely() -> None:
    found = {entry["id"]: entry for entry in _printed("requirements")}
    assert found.keys() == Contract.load().requirements.keys()
    assert found[_ID]["level"] == "must"


def test_a_requirement_is_explained_with_its_tests() -> None:
    found = _printed("explain", _ID)
    assert found["statement"] == Contract.load().requirements[_ID].statement
    assert any("test_switching_the_limit" in test for test in found["tests"])


def test_the_coverage_of_all_areas_is_the_sum_of_each() -> None:
    found = _printed("coverage")
    areas = found["areas"]
    total = areas.pop("all")
    assert total["requirements"] == len(Contract.load().requirements)
    assert total["requirements"] == sum(area["requirements"] for area in areas.values())
    assert found["claimed_and_missing"] == []


def test_an_option_may_be_set_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFORMANCE_REQUIREMENTS_AREA", "limits")
    result = CliRunner().invoke(commands, ["requirements"], standalone_mode=False)
    assert {line.split(".")[0] for line in result.stdout.splitlines() if not line.startswith(" ")} == {"limits"}


def test_every_schema_is_printed() -> None:
    for name in ("attestation", "ctrf", "diff", "earl", "json", "record", "totals"):
        result = CliRunner().invoke(commands, ["report", "--schema", name], standalone_mode=False)
        assert json.loads(result.stdout)["$schema"].endswith("2020-12/schema")
