"""Group relations export: scheduled, followed and downloaded, in one piece and in batches, byte by byte."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import TYPE_CHECKING

import pytest

from conformance.arrange.group_relations_export import FAILED, FINISHED, STARTED, Export, of_group
from conformance.expectations import Answer, Caller, Path, given, must, observe, unchanged, verifies

if TYPE_CHECKING:
    from conformance.target import Fixture

UNUSED_ID = 2_000_000_001
NO_RELATION = "conformance_no_such_relation"
GZIP = b"\x1f\x8b"


@pytest.fixture
def export(owner: Caller, export_group: Fixture) -> Export:
    """The export of the group that is set aside for it."""
    given(export_group.get("relation") is not None, "the profile does not name export_group.relation")
    return of_group(owner, export_group, export_group["relation"])


@pytest.fixture
def foreign_export(owner: Caller, sibling_group: Fixture, export: Export) -> Export:
    """That of a group which nobody exports."""
    return of_group(owner, sibling_group, export.relation)


# -- scheduling and following ------------------------------------------------------------------------------------------


def test_entries_appear_after_an_export_was_scheduled(export: Export) -> None:
    """How long that may take is open; but what can be downloaded has been exported, and must have an entry."""
    before = export.marks()
    with verifies("group-relations-export.schedule.entries-appear"):
        export.schedule(batched=not export.is_batched()).given_served()
        try:
            eventually(lambda: export.marks_now() != before, f"an entry of the export in {export.path}")
        except Unmet:
            file = export.download()
            must(bool(before) or not file.is_served, "entries in the status", "none, but a file", file.exchange)
            raise
        must(bool(export.entries()), "entries in the status", "none")


def test_an_export_can_be_scheduled_in_batches(export: Export) -> None:
    answer, entries = export.made_anew(batched=True)
    with verifies("group-relations-export.schedule.batched.may-be-true", go_on=True):
        answer.must_be(202)
    with verifies("group-relations-export.schedule.in-batches"):
        own = [entry for entry in entries if entry.get("batched") is True]
        must(bool(own), "entries that are batched", f"batched of {[entry.get('relation') for entry in own]}")
