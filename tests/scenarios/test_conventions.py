"""Conventions that no single operation shows: a subgroup, whose path has a slash of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suite.expectations import Path, eventually, group_path, must, verifies

if TYPE_CHECKING:
    from conformance.suite.expectations import Answer, Caller
    from conformance.target import Fixture


def test_a_subgroup_is_found_by_its_full_path(owner: Caller, subgroup: Fixture) -> None:
    """A slash written as %2F belongs to the name of the group, not to the path of the request."""
    export = group_path(subgroup) / "export_relations"
    owner.post(export).given_served()
    eventually(lambda: bool(owner.read(export / "status")), "an entry in the status of the subgroup's export")
    by_number = owner.get(export / "status").given_served()
    with verifies("conventions.group-id.encoded-subgroup-path"):
        by_path = owner.get(Path(f"/groups/{subgroup.encoded_path}/export_relations/status")).must_be(200)
        found, wanted = relations(by_path), relations(by_number)
        must(found == wanted, f"the relations {wanted}", f"the relations {found}", by_path.exchange)


def relations(answer: Answer) -> list[str]:
    """Return what is exported; how far it has come may differ a moment later."""
    return sorted(str(entry.get("relation")) for entry in answer.json if isinstance(entry, dict))
