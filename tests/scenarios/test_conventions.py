"""Conventions that no single operation shows: a subgroup, whose path has a slash of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.expectations import Path, group_path, must, verifies

if TYPE_CHECKING:
    from conformance.expectations import Answer, Caller
    from conformance.target import Fixture


def test_a_subgroup_is_found_by_its_full_path(owner: Caller, subgroup: Fixture) -> None:
    """A slash written as %2F belongs to the name of the group, not to the path of the request."""
    by_number = owner.get(group_path(subgroup) / "export_relations" / "status").given_served()
    with verifies("conventions.group-id.encoded-subgroup-path"):
        by_path = owner.get(Path(f"/groups/{subgroup.encoded_path}/export_relations/status")).must_be(200)
        must(body(by_path) == body(by_number), "the answer that the number gives", "another answer", by_path.exchange)


def body(answer: Answer) -> object:
    return json.loads(answer.exchange.body)
