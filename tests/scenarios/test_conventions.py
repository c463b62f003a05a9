"""Conventions that no single operation shows: a subgroup, whose path has a slash of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suite.arrange.group_relations_export import of_group
from conformance.suite.expectations import Path, eventually, must, verifies

if TYPE_CHECKING:
    from conformance.suite import Fixture
    from conformance.suite.expectations import Caller


def test_a_subgroup_is_found_by_its_full_path(owner: Caller, subgroup: Fixture) -> None:
    """A slash written as %2F belongs to the name of the group, not to the path of the request."""
    export = of_group(owner, subgroup, "")
    export.accepted().given_served()
    eventually(lambda: bool(export.entries()), "an entry in the status of the subgroup's export")
    wanted = relations(export.entries())
    with verifies("conventions.group-id.encoded-subgroup-path"):
        by_path = owner.get(Path(f"/groups/{subgroup.encoded_path}/export_relations/status")).must_be(200)
        found = relations(by_path.json)
        must(wanted <= found, f"the relations {sorted(wanted)}", f"the relations {sorted(found)}", by_path.exchange)


def relations(status: object) -> set[str]:
    """Return what is exported; how far it has come may differ a moment later, and more may have come to it."""
    entries = status if isinstance(status, list) else []
    return {str(entry.get("relation")) for entry in entries if isinstance(entry, dict)}
