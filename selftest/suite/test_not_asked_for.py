"""What a profile does not declare is not judged although it shows, and breaks no run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from conformance.contract import Contract
from conformance.proof import all_faults
from conformance.target.embedded import prepared_service, profile_data
from selftest.conftest import VERSION, serving
from selftest.reads import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAULTY = "records.group-protected-branch.push-entry-identifiers"
#: A test of this requirement reads rules of a group that list branches, and checks nothing about these.
ASKED_FOR = "group-approval-rules.update.rule-of-another-group"


@pytest.mark.parametrize("declared", [True, False])
def test_a_fault_in_an_undeclared_feature_is_a_note(
    conformance: Callable[..., Any], tmp_path: Path, *, declared: bool
) -> None:
    service = prepared_service(version=VERSION)
    faults = (fault for fault in all_faults(Contract.load()) if fault.sort == "written")
    next(fault for fault in faults if fault.requirement == FAULTY).apply(service)
    with serving(service) as (_, base_url):
        data = profile_data(service.world, base_url, VERSION)
        data["features"]["group_branch_rules"] = declared
        (tmp_path / "target.yaml").write_text(json.dumps(data), encoding="utf-8")
        chosen = ("--requirement", ASKED_FOR, "--requirement", FAULTY, "--max-examples", "1")
        outcome = conformance("run", "-q", "--target", "target.yaml", "--out", "out", *chosen)
    verdict = rows_of(tmp_path / "out")[FAULTY]["verdict"]
    assert (outcome.code, verdict) == ((1, "failed") if declared else (0, "not applicable")), outcome.text
