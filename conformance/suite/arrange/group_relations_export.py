"""Request examples of the group relations export."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.results.record import Reason
from conformance.suite.absences import OperationAbsent
from conformance.suite.accepted import DONE_WITHIN_SECONDS
from conformance.suite.arrange.export_entries import FINISHED
from conformance.suite.arrange.exports import Export, export_of
from conformance.suite.arrange.request_examples import Area, RequestExample, Values
from conformance.suite.context import NotTested, Unmet, current_run
from conformance.suite.expectations import Caller

if TYPE_CHECKING:
    from conformance.suite.arrange.places import Place


def _export(caller: Caller, place: Place) -> Export:
    return export_of(caller, place.fixture("export_group"), str(place.value("export_group.relation")))


def _in_one_piece(caller: Caller, place: Place) -> Values:
    """Make the last export one in one piece, so that the call, which asks for batches, changes something.

    It must have ended for all relations, because another export may be refused while one is running, of whatever group.
    """
    with suppress(Unmet):
        export = _export(caller, place)
        export.finished(batched=False)
        export.quiet()
        export.others_quiet()
    return {}


def _exported(caller: Caller, place: Place) -> Values:
    """Export the relation in batches, so that its entry has everything that an entry can have.

    A refused status is reported by the tests; one that is served and shows nothing proves nothing.
    """
    export = _export(caller, place)
    try:
        export.finished(batched=True)
    except Unmet:
        if caller.get(export.path / "status").is_served:
            raise
    return {}


def _downloadable(caller: Caller, place: Place) -> Values:
    """Export the relation: in batches, or in one piece for random calls, which know no batch number."""
    export, batched = _export(caller, place), not place.is_aside
    try:
        export.finished(batched=batched)
    except OperationAbsent:
        raise  # if nobody can export, nothing need be there to download
    except Unmet:
        if not export.is_accepted or _is_unfinished(export, batched=batched):
            raise  # while nothing is exported, or not yet, no answer shows anything
        if lack := export.lack():
            raise NotTested(Reason.PREREQUISITE_MISSING, f"{lack}: name one that has objects") from None
        if not caller.get(export.path / "status").is_served:
            raise  # nobody knows what has ended, and each attempt begins an export again
    return {}


def _is_unfinished(export: Export, *, batched: bool) -> bool:
    """Tell whether the status shows that the wanted export of the relation is running or has failed.

    Before that export begins, the entry belongs to an older export, which may have the other form.
    """
    with suppress(Unmet):
        entry = export.own()
        return bool(entry) and not (entry.get("status") == FINISHED and entry.get("batched") is batched)
    return False


def _file(place: Place) -> Values:
    """Ask for the first batch of the relation, or for its only piece."""
    export = _export(Caller(current_run(), place.profile.actors[AREA.keeper]), place)
    if place.is_aside:
        return {"relation": export.relation}
    numbers = [1]
    with suppress(Unmet):
        numbers = export.numbers() or numbers
    return {"relation": export.relation, "batched": True, "batch_number": numbers[0]}


AREA = Area(
    keeper="owner",
    request_examples={
        "scheduleGroupRelationsExport": RequestExample(
            before=_in_one_piece,
            state=lambda caller, place: _export(caller, place).marks(),
            is_busy=lambda caller, place: _export(caller, place).is_running(),
            busy_seconds=DONE_WITHIN_SECONDS,
        ),
        "getGroupRelationsExportStatus": RequestExample(before=_exported),
        "downloadGroupRelationsExport": RequestExample(before=_downloadable, query=_file),
    },
)
