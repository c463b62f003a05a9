"""The table of records names only what exists: operations of the same area, requirements, and flags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.contract import Contract
from conformance.contract.lint import problems

RULES = "project-approval-rules.same-everywhere"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"requirement": "no.such"}, "records.yaml names requirement no.such, which does not exist"),
        (
            {"operations": ("noSuch",)},
            f"records.yaml names operation noSuch, which does not exist in the area of {RULES}",
        ),
        (
            {"operations": ("listIntegrations",)},
            f"names operation listIntegrations, which does not exist in the area of {RULES}",
        ),
        ({"unless": {"color": "flag"}}, f"records.yaml says when color means nothing, which {RULES} does not say"),
    ],
)
def test_a_name_in_the_table_that_does_not_exist_is_a_problem(wrong: dict[str, Any], problem: str) -> None:
    contract = Contract.load()
    record = next(one for one in contract.records if one.requirement == RULES)
    told = next(problems(replace(contract, records=(replace(record, **wrong),))))
    assert problem in told
